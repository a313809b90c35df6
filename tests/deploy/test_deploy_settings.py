"""What functions read of the configuration: the settings of a descriptor are those that its code, and what that calls, reads."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from functools import cache

import manifests
import pytest
from pydantic import BaseModel

from tenantry.model import config as configuration
from tenantry.serving.installed import descriptors

CONFIGS = {"config", "_config"}
SECTIONS = {"cattle", "helm_project_operator", "operator", "scope_binding", "flux", "chart"}
"""Names that the configuration and its sections have in the code."""
Code = tuple[str, ast.AST]
"""A piece of a module."""
TABLE = manifests.ROOT / "docs" / "namespace-registration.md"
"""The reference of the configuration; its last column says who reads a key."""
_ROW = re.compile(r"\| `((?:global|helmProjectOperator|\.{4}charts)[^`]+)` \|.*\| ([^|]+) \|")


def keys(section: type[BaseModel], path: str) -> dict[str, str]:
    """The paths of the keys of a section by attribute."""
    return {name: f"{path}.{field.alias or name}" for name, field in section.model_fields.items()}


CHARTS = "helmProjectOperator.charts"
CHART = keys(configuration.Chart, CHARTS)
KEYS = {
    **CHART,
    **keys(configuration.Cattle, "global.cattle"),
    **keys(configuration.HelmProjectOperator, "helmProjectOperator"),
    **keys(configuration.ScopeBinding, "scopeBinding"),
    **keys(configuration.Flux, "flux"),
}
PROPERTIES = {
    node.name: node
    for part in ast.parse(inspect.getsource(configuration)).body
    if isinstance(part, ast.ClassDef) and part.name in ("Chart", "Config")
    for node in part.body
    if isinstance(node, ast.FunctionDef)
}


@cache
def definitions(module: str) -> dict[str, Code]:
    """What a module of ours defines or imports from another one, by name."""
    places = [manifests.ROOT / folder / module.replace(".", "/") for folder in ("shared", "functions")]
    (path,) = (file for place in places for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())
    found: dict[str, Code] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found[node.name] = (module, node)
            case ast.ImportFrom() if node.module and node.module.startswith("tenantry."):
                found |= {each.asname or each.name: (node.module, ast.Name(each.name)) for each in node.names}
    return found


def reached(code: Iterable[Code]) -> Iterator[Code]:
    """These pieces, and what they name of ours, again and again; the configuration itself apart."""
    left, seen = list(code), set[tuple[str, str]]()
    while left:
        module, piece = left.pop()
        yield module, piece
        for name in (node.id for node in ast.walk(piece) if isinstance(node, ast.Name)):
            if (module, name) not in seen and module != configuration.__name__ and name in definitions(module):
                seen.add((module, name))
                left.append(definitions(module)[name])


def read_by(code: Iterable[Code]) -> set[str]:
    """The paths that these pieces of code read themselves or by a property of the configuration."""
    left, found, used = list(code), set[str](), set[str]()
    while left:
        module, piece = left.pop()
        own = {"self"} if module == configuration.__name__ else set()
        for node in (node for node in ast.walk(piece) if isinstance(node, ast.Attribute)):
            base = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
            if base in SECTIONS | own and node.attr in KEYS:
                found.add((CHART if base in {"chart"} | own else KEYS).get(node.attr, KEYS[node.attr]))
            elif base in CONFIGS | {"chart"} | own and node.attr in PROPERTIES.keys() - used:
                used.add(node.attr)
                left.append((configuration.__name__, PROPERTIES[node.attr]))
    # What is read of a chart says more than that charts are read.
    return found - {CHARTS} if found & set(CHART.values()) else found


def code_of(function: str) -> Iterator[Code]:
    """All modules of a function but its commands, which a person runs."""
    package = function.replace("-", "_")
    for path in sorted((manifests.ROOT / "functions" / package).rglob("*.py")):
        if path.name != "command.py":
            name = ".".join(path.relative_to(manifests.ROOT / "functions").with_suffix("").parts)
            yield name, ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("function", descriptors())
def test_a_descriptor_names_what_its_function_reads(function: str) -> None:
    """No key is read that it does not name, and none is named that nothing reads."""
    descriptor, paths = descriptors()[function], {*KEYS.values(), *CHART.values()} - {CHARTS}
    assert {path for path in paths if descriptor.reads_setting(path)} == read_by(reached(code_of(function)))
    assert [each for each in descriptor.settings if not any(f"{path}.".startswith(f"{each}.") for path in paths)] == []


def test_the_reference_says_who_reads_a_key() -> None:
    """The last column of the table follows from the descriptors."""
    rows = _ROW.findall(TABLE.read_text(encoding="utf-8"))
    assert rows
    for key, readers in rows:
        path = key.replace("....charts[]", CHARTS)
        below = CHART.values() if path == CHARTS else [path]
        assert readers == ", ".join(name for name, each in descriptors().items() if any(map(each.reads_setting, below))), key
