"""Reading the configuration file, with errors that name the key's path and what is allowed there.

The path comes from ``TENANTRY_CONFIG``; without it the defaults are in force.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from tenantry.model.config import Config

CONFIG_VARIABLE = "TENANTRY_CONFIG"
_MERGE = "tag:yaml.org,2002:merge"
_NOT_KEYS = frozenset({"(path)", "(repository)", "[key]"})
"""Steps in pydantic's locations that are no keys of the file: the forms of a chart, and "this key itself"."""


class ConfigError(ValueError):
    """The configuration cannot be used; the message has one line for each problem."""


class StrictLoader(yaml.SafeLoader):
    """A YAML loader that refuses a key given twice, which plain YAML silently drops."""


def _mapping(loader: StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == _MERGE:
            continue  # what `<<` brings in may be given again: that is what it is for
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise ConfigError(f"line {key_node.start_mark.line + 1}: a key must be plain text")
        if key in seen:
            raise ConfigError(f"line {key_node.start_mark.line + 1}: key {key!r} is given twice")
        seen.add(key)
    return loader.construct_mapping(node, deep=True)


StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_config(path: Path | None = None) -> Config:
    """The configuration from a file, or from the one that ``TENANTRY_CONFIG`` names, or the defaults.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or has unknown keys or wrong values.
    """
    if path is None:
        named = os.environ.get(CONFIG_VARIABLE, "")
        if not named:
            return Config()
        path = Path(named)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}; correct {CONFIG_VARIABLE}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read the configuration {path}: it is not UTF-8 text") from error
    return parse_config(text, str(path))


def parse_config(text: str, name: str = "configuration") -> Config:
    """The configuration from YAML text.

    Raises:
        ConfigError: see `load_config`.
    """
    try:
        document = yaml.load(text, StrictLoader)  # noqa: S506 - a SafeLoader underneath
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date such as 2024-13-45
        raise ConfigError(f"{name} is not YAML: {' '.join(str(error).split())}") from error
    return checked_config(document, name)


def checked_config(document: Any, name: str = "configuration") -> Config:
    """Check a configuration that is no text any more.

    Raises:
        ConfigError: see `load_config`.
    """
    if not isinstance(document, dict | None):
        raise ConfigError(f"{name}: the file must be a mapping with the keys {', '.join(_allowed((), Config))}")
    try:
        return Config.model_validate(document or {}, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{name}: {line}" for _, line in explain(error, Config))) from None


Location = tuple[int | str, ...]


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[Location, str]]:
    """Each problem as its location in the document and a line that names the key's path and what is allowed there.

    ``model`` is what the document was validated by, by alias.
    """
    problems = error.errors()
    for problem in problems:
        loc, path = problem["loc"], _path(problem["loc"])
        if problem["type"] == "too_short" and any(other["loc"][:-1][: len(loc)] == loc for other in problems):
            continue  # a list is only short because an entry is wrong, and that is reported already
        match problem["type"]:
            case "extra_forbidden":
                allowed = _allowed(loc[:-1], model)
                near = difflib.get_close_matches(str(loc[-1]), allowed, 1)
                line = f"{path}: unknown key{f'; did you mean {near[0]}?' if near else ''} (allowed here: {', '.join(allowed)})"
            case "missing":
                line = f"{path}: required, and not given"
            case _:
                message = problem["msg"].removeprefix("Value error, ")
                line = f"{path}: {message}" if path else message
                if not isinstance(problem.get("input"), dict | list):
                    line += f" (given: {problem.get('input')!r})" if "given" not in line else ""
        yield loc, line


def _path(loc: Location) -> str:
    path = ""
    for step in loc:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step not in _NOT_KEYS:
            path += f".{step}" if path else step
    return path


def _allowed(loc: Location, model: type[BaseModel]) -> list[str]:
    """The keys that a section knows, by walking the JSON schema along the path."""
    schema = here = model.model_json_schema(by_alias=True)

    def resolve(node: dict[str, Any]) -> dict[str, Any]:
        while reference := node.get("$ref") or next((each["$ref"] for each in node.get("anyOf", ()) if "$ref" in each), ""):
            node = schema["$defs"][reference.rpartition("/")[2]]
        return node

    for step in loc:
        here = resolve(here)
        if isinstance(step, int):
            here = here.get("items") or {}
        elif step in here.get("properties", {}):
            here = here["properties"][step]
        else:
            # The one step that is no key: a chart, given as a mapping.
            options = [resolve(option) for union in here["anyOf"] for option in union.get("oneOf", ())]
            here = next(option for option in options if "properties" in option)
    return list(resolve(here).get("properties", {}))
