"""States that can be compared, and masks: what differs between two undisturbed runs is not compared afterwards.

A state is flattened to ``role -> path -> value``, with the run's tag replaced.  Learning compares undisturbed runs with each
other; a path that differs in one object is masked for its kind.  Nobody writes a mask by hand; what is decided here is the
form of a state.  Objects on their way out count as gone; Kubernetes Events are judged by number and not by content;
``managedFields`` is reduced to what counts, which fields each of our managers owns; and ``generation``, which counts how often
a spec was changed, says nothing but whether an ``observedGeneration`` is current.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tenantry.model.kinds import EVENT, Key, Object
from tenantry.testing.naming import PLACE, role_of

Flat = dict[str, Any]
State = dict[str, Flat]
OUR_MANAGERS = "tenantry-"
KUBERNETES_OWN = "kube-root-ca.crt"
"""The ConfigMap that is in every namespace: it differs from control plane to control plane, and is nobody's business."""
HISTORY = ("lastDrift", "reconcile.fluxcd.io/requestedAt", "generators")
"""A status field, an annotation and who has changed the list of others' ApplicationSets: they tell what was, not what is, so two
ways to one state leave them different."""


def state_of(objects: Mapping[Key, Object], tag: str) -> State:
    """The comparable state of a run's objects."""
    compared = {key: obj for key, obj in sorted(objects.items()) if key.kind != EVENT.kind and key.name != KUBERNETES_OWN}
    return {role_of(str(key)): flatten(_reduced(obj, tag)) for key, obj in compared.items()}


def _reduced(obj: Object, tag: str) -> Object:
    metadata = dict(obj["metadata"])
    generation = metadata.pop("generation", None)
    owned: dict[str, set[str]] = {}
    for entry in metadata.pop("managedFields", None) or ():
        manager = str(entry.get("manager"))
        if manager.startswith(OUR_MANAGERS):
            paths = owned.setdefault(f"{manager}/{entry.get('subresource') or ''}", set())
            paths.update(leaf for leaf in _leaves(entry.get("fieldsV1") or {}, "") if not _tells_what_was(leaf))
    made = {
        **_generations(obj, generation),
        "metadata": {**metadata, "owned": {name: _fields(paths) for name, paths in sorted(owned.items()) if paths}},
    }
    decoded: Object = json.loads(json.dumps(made).replace(tag, PLACE))
    return decoded


def _tells_what_was(leaf: str) -> bool:
    return any(f"/f:{name}" in leaf for name in HISTORY)


def _fields(paths: set[str]) -> list[str]:
    """Without the maps that hold other fields: an entry of before may still name one whose own fields went."""
    return sorted(path for path in paths if not any(other.startswith(f"{path}/") for other in paths))


def _generations(value: Any, current: Any) -> Any:
    if isinstance(value, list):
        return [_generations(each, current) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: below == current if name == "observedGeneration" else _generations(below, current)
        for name, below in value.items()
        if name not in HISTORY
    }


def _leaves(fields: Mapping[str, Any], path: str) -> Iterable[str]:
    """The fields that hold something: a map whose last entry somebody took out by hand is a field of no meaning."""
    for step, below in fields.items():
        if step == ".":
            continue
        here = f"{path}/{step}"
        if set(below) - {"."}:
            yield from _leaves(below, here)
        elif not step.endswith(":lastTransitionTime") and step not in ("f:annotations", "f:labels"):
            yield here


def flatten(value: Any, path: str = "") -> Flat:
    """The leaves of a JSON value by path; empty maps and lists are leaves."""
    if isinstance(value, dict) and value:
        below = ((f"{path}.{name}" if path else str(name), each) for name, each in value.items())
    elif isinstance(value, list) and value:
        below = ((f"{path}[{number}]", each) for number, each in enumerate(value))
    else:
        return {path: value}
    made: Flat = {}
    for here, each in below:
        made |= flatten(each, here)
    return made


@dataclass(slots=True)
class Mask:
    """What is not compared: paths by kind, and objects that are not always there."""

    paths: set[tuple[str, str]] = field(default_factory=set)
    roles: set[str] = field(default_factory=set)

    def learn(self, one: State, two: State) -> None:
        """Mask what differs between two undisturbed runs."""
        self.roles |= set(one) ^ set(two)
        for role in set(one) & set(two):
            for path in set(one[role]) | set(two[role]):
                if one[role].get(path) != two[role].get(path):
                    self.paths.add((_kind(role), _general(path)))

    def differences(self, expected: State, found: State) -> list[str]:
        """What is not as expected, a line each, masked paths left out."""
        lines = [f"{role} is missing" for role in sorted(set(expected) - set(found) - self.roles)]
        lines += [f"{role} is there and should not be" for role in sorted(set(found) - set(expected) - self.roles)]
        for role in sorted(set(expected) & set(found)):
            wanted, seen = expected[role], found[role]
            for path in sorted(set(wanted) | set(seen)):
                if wanted.get(path) == seen.get(path) or (_kind(role), _general(path)) in self.paths:
                    continue
                lines.append(f"{role} {path}: expected {wanted.get(path)!r}, found {seen.get(path)!r}")
        return lines

    def __str__(self) -> str:
        paths = ", ".join(sorted(f"{kind} {path}" for kind, path in self.paths))
        return "; ".join(part for part in (paths, ", ".join(sorted(self.roles))) if part) or "nothing"


def _general(path: str) -> str:
    """A path for all entries of a list."""
    return re.sub(r"\[[0-9]+\]", "[]", path)


def _kind(role: str) -> str:
    return role.partition(" ")[0]
