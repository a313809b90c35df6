"""A release's manifest as objects: documents split, lists expanded, and what cannot be read is reported instead of cut off.

YAML is read as the Kubernetes tools read it: no dates, no sexagesimal numbers, ``1e3`` is a number.  One bad document
spoils none of the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tenantry.model import limits
from tenantry.model.kinds import Object

_SEPARATOR = re.compile(r"^---(?=\s|$)[^\n]*\n?", re.MULTILINE)
_SOURCE = re.compile(r"^# Source: (\S+)", re.MULTILINE)
_DEPTH = 5
"""How deep lists may stand in lists."""

_LONGEST = {"apiVersion": 317, "kind": 63, "name": 253, "namespace": 63}
"""Characters that the API server allows in what an object is called."""

NO_OBJECT = "not an object"
NO_KIND = "no apiVersion and kind"

_BRACKET = re.compile(r"[\[\]{}]")
_STAIRS = re.compile(rf"(?:[-?] +){{{limits.DOCUMENT_LEVELS},}}")

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


class NotReadable(ValueError):
    """A YAML text that is none, or is not meant to be read; the message says why and holds nothing of the content."""


def _weight(text: str, most: int) -> int:
    """How many values a document has, counted before any is made; an alias counts as all that it repeats.

    Raises:
        NotReadable: more than ``most``, or no YAML.
    """
    total = 0
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            if anchor is not None:
                sizes[anchor] = total - before
            continue
        if isinstance(event, yaml.AliasEvent):
            total += sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.NodeEvent):
            if isinstance(event, yaml.CollectionStartEvent):
                open_.append((event.anchor, total))
            elif event.anchor is not None:
                sizes[event.anchor] = 1
            total += 1
        if total > most:
            raise NotReadable(f"more than {most} values, those that aliases repeat included: divide it")
    return total


def load_yaml(text: str) -> Any:
    """One YAML document as the Kubernetes tools read it: plain maps, lists, texts, numbers, booleans and nulls.

    Raises:
        NotReadable: it is no YAML, nests too deep, has too many values, or ones that JSON does not have.
    """
    return _loaded(text, limits.DOCUMENT_VALUES)[0]


def _loaded(text: str, most: int) -> tuple[Any, int]:
    """A document, and how many values it has."""
    if _is_tower(text):
        raise NotReadable(f"nested deeper than {limits.DOCUMENT_LEVELS} levels")
    try:
        weight = _weight(text, most)
        loaded = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with fewer scalars
    except NotReadable:
        raise
    except Exception as error:  # constructors of tags raise whatever they like
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        raise NotReadable("not valid YAML" + (f" in its line {line + 1}" if line is not None else "")) from None
    _expect_plain(loaded, limits.DOCUMENT_LEVELS, [2 * len(text) + 10_000])
    return loaded, weight


def _is_tower(text: str) -> bool:
    """Whether lists stand in lists so deep that reading it would take seconds: the time grows with the square of the depth."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket[0] in "[{" else max(0, depth - 1)
        if depth > limits.DOCUMENT_BRACKETS:
            return True
    return _STAIRS.search(text) is not None


def _expect_plain(value: Any, levels: int, left: list[int]) -> None:
    """Visit every value once for each place where it stands; aliases stand in many."""
    left[0] -= 1
    if left[0] < 0:
        raise NotReadable("aliases make it many times as large as it is")
    if levels < 0:
        raise NotReadable(f"nested deeper than {limits.DOCUMENT_LEVELS} levels")
    if isinstance(value, dict):
        for below in value.values():
            _expect_plain(below, levels - 1, left)
    elif isinstance(value, list):
        for below in value:
            _expect_plain(below, levels - 1, left)
    elif isinstance(value, int) and value.bit_length() > limits.NUMBER_BITS:
        raise NotReadable(f"a number of more than {limits.NUMBER_BITS} bits")
    elif not (value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))):
        raise NotReadable(f"a value of type {type(value).__name__}, which JSON does not have")


def read_manifest(text: str) -> Manifest:
    """The objects of a manifest.  Never raises: what is wrong is in ``problems``."""
    objects: list[Object] = []
    problems: list[Problem] = []
    seen: set[tuple[str, str, str, str]] = set()
    left = limits.MANIFEST_VALUES
    for number, document in enumerate(_documents(text), 1):
        source = _SOURCE.search(document)
        where = f"document {number}" + (f" ({source[1]})" if source else "")
        if len(objects) >= limits.MANIFEST_OBJECTS or left <= 0 or len(problems) >= limits.MANIFEST_OBJECTS:
            most = f"{limits.MANIFEST_OBJECTS} objects or {limits.MANIFEST_VALUES} values"
            problems.append(Problem(where, f"the manifest has more than {most} before it: this and what follows is not kept"))
            break
        try:
            loaded, weight = _loaded(document, min(limits.DOCUMENT_VALUES, left))
        except NotReadable as error:
            problems.append(Problem(where, str(error)))
            left -= min(limits.DOCUMENT_VALUES, len(document))  # what was counted until it was given up
            continue
        left -= weight
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
            elif len(objects) < limits.MANIFEST_OBJECTS:
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
        yield NO_OBJECT
        return
    api_version, kind = loaded.get("apiVersion"), loaded.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
        yield NO_KIND
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
    named = {"apiVersion": api_version, "kind": kind, "name": name, "namespace": metadata.get("namespace") or ""}
    if long := [part for part, text in named.items() if isinstance(text, str) and len(text) > _LONGEST[part]]:
        yield f"an object whose {long[0]} has more than {_LONGEST[long[0]]} characters"
    elif not isinstance(metadata.get("namespace") or "", str) or not _has_text_keys(loaded):
        yield f"{kind} {name} has a name or key that is not text"
    elif wrong := _wrong_metadata(metadata):
        yield f"{kind} {name}: {wrong}"
    else:
        yield loaded


def _wrong_metadata(metadata: Object) -> str:
    """What of the metadata that is compared the API server would not take; empty when nothing."""
    for part in ("labels", "annotations"):
        texts = metadata.get(part)
        if not isinstance(texts, dict | None) or not all(isinstance(text, str | None) for text in (texts or {}).values()):
            return f"metadata.{part} is not a map of texts"
    finalizers, owners = metadata.get("finalizers") or [], metadata.get("ownerReferences") or []
    if not isinstance(finalizers, list) or not all(isinstance(each, str) for each in finalizers):
        return "metadata.finalizers is not a list of texts"
    if not isinstance(owners, list) or not all(isinstance(each, dict) and isinstance(each.get("uid"), str) for each in owners):
        return "metadata.ownerReferences is not a list of references with a uid"
    return ""


def _has_text_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _has_text_keys(below) for key, below in value.items())
    return all(_has_text_keys(below) for below in value) if isinstance(value, list) else True
