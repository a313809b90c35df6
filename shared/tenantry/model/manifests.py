"""A release's manifest as objects: documents split, lists expanded, and what cannot be read told instead of cut off.

YAML is read as the Kubernetes tools read it: no dates, no sexagesimal numbers, ``1e3`` is a number.  One bad document
spoils none of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tenantry.model.kinds import Object

_SEPARATOR = re.compile(r"^---(?=\s|$)[^\n]*\n?", re.MULTILINE)
_SOURCE = re.compile(r"^# Source: (\S+)", re.MULTILINE)
_DEPTH = 5
"""How deep lists may stand in lists."""

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """A safe loader with the scalars of JSON and of YAML 1.1's booleans."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own way


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first))


_resolve("bool", "yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO")
_resolve("int", r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", "-+0123456789")
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789")
_resolve("null", "~|null|Null|NULL|", "~nN\0")
_Loader.yaml_implicit_resolvers.setdefault("", []).append(("tag:yaml.org,2002:null", re.compile("^$")))
_resolve("merge", "<<", "<")


def _int(loader: Any, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node).replace("_", "").replace("0o", "0")
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if digits.startswith(("0b", "0x")):
        return sign * int(digits, 0)
    return sign * (int(digits, 8) if len(digits) > 1 and digits.startswith("0") else int(digits))


def _float(loader: Any, node: yaml.ScalarNode) -> float | int:
    value = float(loader.construct_scalar(node))
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


_Loader.add_constructor("tag:yaml.org,2002:int", _int)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)


@dataclass(frozen=True, slots=True)
class Problem:
    """A document that is not enforced: where it stands and why."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The objects of a manifest in order, and the documents that are none."""

    objects: tuple[Object, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_manifest(text: str) -> Manifest:
    """The objects of a manifest.  Never raises: what is wrong is in ``problems``."""
    objects: list[Object] = []
    problems: list[Problem] = []
    seen: set[tuple[str, str, str, str]] = set()
    for number, document in enumerate(_documents(text), 1):
        source = _SOURCE.search(document)
        where = f"document {number}" + (f" ({source[1]})" if source else "")
        try:
            loaded = yaml.load(document, Loader=_Loader)  # noqa: S506 - a safe loader with fewer scalars
        except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
            line = getattr(getattr(error, "problem_mark", None), "line", None)
            problems.append(Problem(where, "not valid YAML" + (f" in its line {line + 1}" if line is not None else "")))
            continue
        if loaded is None:
            continue
        for found in _flat(loaded, 0):
            if isinstance(found, str):
                problems.append(Problem(where, found))
                continue
            metadata = found["metadata"]
            key = (found["apiVersion"], found["kind"], str(metadata.get("namespace") or ""), metadata["name"])
            if key in seen:
                problems.append(Problem(where, f"{key[1]} {key[3]} is there twice; the first is kept"))
            else:
                seen.add(key)
                objects.append(found)
    return Manifest(tuple(objects), tuple(problems))


def _documents(text: str) -> Iterator[str]:
    for document in _SEPARATOR.split(text.replace("\r\n", "\n")):
        if document.strip():
            yield document


def _flat(loaded: Any, depth: int) -> Iterator[Object | str]:
    """The objects in a document, lists expanded; a text says what is wrong with one."""
    if not isinstance(loaded, dict):
        yield "not an object"
        return
    api_version, kind = loaded.get("apiVersion"), loaded.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
        yield "no apiVersion and kind"
        return
    if kind.endswith("List") and "items" in loaded:
        items = loaded["items"]
        if depth >= _DEPTH or not isinstance(items, list | None):
            yield f"a {kind} whose items are not a list of objects"
            return
        for item in items or ():
            typed = {"apiVersion": api_version, "kind": kind.removesuffix("List"), **item} if isinstance(item, dict) else item
            yield from _flat(typed, depth + 1)
        return
    metadata = loaded.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(name, str) or not name:
        yield f"a {kind} without metadata.name"
        return
    if not isinstance(metadata.get("namespace") or "", str) or not _has_text_keys(loaded):
        yield f"{kind} {name} has a name or key that is not text"
        return
    yield loaded


def _has_text_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _has_text_keys(below) for key, below in value.items())
    return all(_has_text_keys(below) for below in value) if isinstance(value, list) else True
