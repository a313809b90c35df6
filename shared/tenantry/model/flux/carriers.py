"""Carriers: where the owner of a source says who may use it, and what of that counts (1.4, 1.5).

A carrier is a field, an annotation or a SourceGrant.  What it says is read within budgets, and selector by selector: an illegal
one grants nothing, and the others count (2.1, row 12).  Texts of the AccessIndex are made of legal labels only; that is what
makes them unambiguous (f-80).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_core import to_json

from tenantry.model import limits
from tenantry.model.flux.names import CHART_OWNER_NAMESPACE
from tenantry.model.identifiers import is_label_key, is_label_value
from tenantry.model.kinds import Object, labels_of

AccessSelector = tuple[tuple[str, str], ...]
"""Labels that a namespace must have, by key; without any it is every namespace."""
TOO_LARGE = f"is more than {limits.ACCESS_FROM_BYTES:,} bytes: make it smaller"
"""Stands in an object for what is over its budget, and is what is told about it."""
_SELECTORS, _LABELS = "namespaceSelectors", "matchLabels"
_QUOTED = 80


class AclProblem(NamedTuple):
    """What of a carrier does not count: a reason, as conditions have it, and a text with the place and the fix."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Acl:
    """What a carrier says: the selectors that count, and what is wrong with the rest."""

    selectors: frozenset[AccessSelector] = frozenset()
    problems: tuple[AclProblem, ...] = ()


def tenants_may_set(key: str, keys: Collection[str]) -> bool:
    """Whether ``tenantLabelKeys`` list the key of a label, as itself or by ``prefix/*`` (f-124)."""
    prefix, slash, _ = key.partition("/")
    return key in keys or (slash != "" and f"{prefix}/*" in keys)


def within_budget(written: Any) -> Any:
    """What a carrier says, or `TOO_LARGE` in its place: for what is kept of an object when it is read."""
    return TOO_LARGE if written is not None and len(to_json(written)) > limits.ACCESS_FROM_BYTES else written


def text_within_budget(annotation: str) -> str:
    """The same for an annotation, whose text is not parsed before."""
    return TOO_LARGE if len(annotation.encode(errors="replace")) > limits.ACCESS_FROM_BYTES else annotation


def acl_of_text(text: str, settable: Collection[str], place: str) -> Acl:
    """What an annotation says; ``settable`` are the ``tenantLabelKeys``, ``place`` names the annotation in problems."""
    text = text_within_budget(text)
    if text == TOO_LARGE:
        return _bad(f"{place} {TOO_LARGE}")
    try:
        written = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else "it cannot be parsed"
        return _bad(f"{place} is no JSON ({why}): write it as spec.accessFrom, in JSON")
    return acl_of(written, settable, place)


def acl_of(written: Any, settable: Collection[str], place: str) -> Acl:
    """What is written as ``accessFrom``."""
    if written == TOO_LARGE:
        return _bad(f"{place} {TOO_LARGE}")
    if not isinstance(written, Mapping):
        return _bad(f"{place} is no map: write {_SELECTORS} in it")
    if unknown := sorted(set(map(str, written)) - {_SELECTORS}):
        return _bad(f"{place} has the unknown field {_quoted(unknown[0])}: write only {_SELECTORS}")
    selectors = written.get(_SELECTORS)
    if not isinstance(selectors, list):
        return _bad(f"{place}.{_SELECTORS} is no list: write a list of selectors")
    if len(selectors) > limits.ACCESS_SELECTORS:
        return _bad(f"{place}.{_SELECTORS} has {len(selectors):,} selectors: write at most {limits.ACCESS_SELECTORS}")
    found: set[AccessSelector] = set()
    problems: list[AclProblem] = []
    for number, each in enumerate(selectors):
        parsed = _selector(each, settable, f"{place}.{_SELECTORS}[{number}]")
        if isinstance(parsed, AclProblem):
            problems.append(parsed)
        else:
            found.add(parsed)
    return Acl(frozenset(found), tuple(problems))


def _selector(written: Any, settable: Collection[str], place: str) -> AccessSelector | AclProblem:
    if not isinstance(written, Mapping):
        return _problem(f"{place} is no map: write {_LABELS} in it")
    if unknown := sorted(set(map(str, written)) - {_LABELS}):
        return _problem(f"{place} has the unknown field {_quoted(unknown[0])}: write only {_LABELS}")
    labels = written.get(_LABELS, {})
    if not isinstance(labels, Mapping):
        return _problem(f"{place}.{_LABELS} is no map: write labels and their values")
    if len(labels) > limits.ACCESS_PAIRS:
        return _problem(f"{place}.{_LABELS} has {len(labels):,} labels: write at most {limits.ACCESS_PAIRS}")
    for key, value in sorted(labels.items()):
        if not is_label_key(key):
            return _problem(f"{place}.{_LABELS} has the key {_quoted(key)}, which no label can have: correct it")
        if not isinstance(value, str) or not is_label_value(value):
            return _problem(f"{place}.{_LABELS}[{key}] is {_quoted(value)}, which no label can be: correct it")
        if tenants_may_set(key, settable):
            text = f"{place}.{_LABELS} has the key {key}, which tenants may set on their namespaces: select by another label"
            return AclProblem("TenantSettableKey", text)
    return tuple(sorted(labels.items()))


def _bad(text: str) -> Acl:
    return Acl(problems=(_problem(text),))


def _problem(text: str) -> AclProblem:
    return AclProblem("InvalidACL", text)


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def is_made_for_another(chart: Object) -> bool:
    """Whether a HelmChart was made for a HelmRelease of another namespace: its metadata is that one's word (1.5, f-118)."""
    owner = labels_of(chart).get(CHART_OWNER_NAMESPACE)
    return owner is not None and owner != chart["metadata"].get("namespace")


def text_of_selectors(selectors: Collection[AccessSelector]) -> str:
    """The text of an entry of the index, sorted: ``*``, or selectors joined by ``|``, each of pairs joined by ``,`` (1.5)."""
    if () in selectors:
        return "*"
    return "|".join(sorted(",".join(f"{key}={value}" for key, value in sorted(each)) for each in set(selectors)))


def selectors_of_text(text: str) -> Sequence[AccessSelector]:
    """The selectors of an entry."""
    if text == "*":
        return [()]
    pairs = ([pair.partition("=") for pair in each.split(",")] for each in text.split("|") if each)
    return [tuple((key, value) for key, _, value in each) for each in pairs]
