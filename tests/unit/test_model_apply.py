"""What one apply would change, compared with a small pure model of server-side apply (KEP-555)."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tenantry.model.conditions import stamped
from tenantry.model.difference import as_apply_entries, difference
from tenantry.model.kinds import Object

US = "tenantry-test"
OTHER = "kubectl"
NOW = "2026-01-02T03:04:05Z"
Steps = tuple[str, ...]
Flat = dict[Steps, Any]
ATOMIC = ("podSelector", "namespaceSelector", "roleRef", "projectNamespaceSelector", "dashboardValues")
KEYED = {"ownerReferences": "uid", "conditions": "type", "secrets": "name"}
IDENTITY = ("name", "namespace", "uid", "resourceVersion", "managedFields")


def flat(value: Any, at: Steps = (), name: str = "") -> Flat:
    """Return an object as its leaves, each under the steps that fieldsV1 has for it."""
    if isinstance(value, dict) and value and name not in ATOMIC:
        found: Flat = {}
        for key, below in value.items():
            if not (at == ("f:metadata",) and key in IDENTITY) and not (not at and key in ("apiVersion", "kind")):
                found |= flat(below, (*at, f"f:{key}"), key)
        return found
    if isinstance(value, list) and name in KEYED:
        return {
            steps: leaf
            for entry in value
            for steps, leaf in flat(entry, (*at, "k:" + json.dumps({KEYED[name]: entry[KEYED[name]]}))).items()
        }
    if isinstance(value, list) and name == "finalizers":
        return {(*at, "v:" + json.dumps(entry)): entry for entry in value}
    return {} if at in ((), ("f:metadata",)) else {at: value}


def unflat(leaves: Flat) -> Object:
    made: Object = {}
    for steps, value in leaves.items():
        here: Any = made
        for index, step in enumerate(steps):
            last = index == len(steps) - 1
            following = "" if last else steps[index + 1][:2]
            tag, rest = step[:2], step[2:]
            if tag == "f:":
                here = here.setdefault(rest, deepcopy(value) if last else [] if following in ("k:", "v:") else {})
            elif tag == "v:":
                here.append(value)
            else:
                key = json.loads(rest)
                found = next((entry for entry in here if key.items() <= entry.items()), None)
                if found is None:
                    here.append(found := dict(key))
                here = found
    return made


def fields_v1(steps: set[Steps], *, dots: bool = False) -> Object:
    """Return a fieldsV1 set; ``dots`` as the server writes it for updates, which own the containers too."""
    made: Object = {}
    for path in sorted(steps):
        here = made
        for step in path:
            here = here.setdefault(step, {})
            container = dots and step != path[-1] and step not in ("f:metadata", "f:spec", "f:status")
            if container or step.startswith("k:"):
                here.setdefault(".", {})
    return made


def owned(live: Object | None, manager: str, operation: str) -> set[Steps]:
    def walk(fields: Object, at: Steps) -> set[Steps]:
        below = {step: inner for step, inner in fields.items() if step != "."}
        return {at} if not below else {path for step, inner in below.items() for path in walk(inner, (*at, step))}

    entries = (live or {}).get("metadata", {}).get("managedFields", [])
    chosen = [entry for entry in entries if (entry["manager"], entry["operation"]) == (manager, operation)]
    return {path for entry in chosen for path in walk(entry["fieldsV1"], ())} - {()}


def record(manager: str, operation: str, steps: set[Steps]) -> list[Object]:
    if not steps:
        return []
    fields = fields_v1(steps, dots=operation == "Update")
    return [{"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}]


def written(leaves: Flat, entries: list[Object], live: Object | None) -> Object:
    made = unflat(leaves)
    made.setdefault("metadata", {}).update({"name": "x", "uid": "u", "managedFields": entries})
    made.update({"apiVersion": "v1", "kind": "Thing"})
    return made


def applied(wanted: Object, live: Object | None, manager: str = US) -> Object:
    """Return what a forced apply of ``wanted`` stores: fields of this manager's apply that it leaves out go."""
    new = flat(stamped(wanted, live, NOW))
    old = {} if live is None else flat(live)
    mine = owned(live, manager, "Apply")
    rest: dict[tuple[str, str], set[Steps]] = {}
    for entry in (live or {}).get("metadata", {}).get("managedFields", []):
        who = (entry["manager"], entry["operation"])
        if who != (manager, "Apply"):
            rest[who] = owned(live, *who)
    held = set().union(*rest.values()) if rest else set()
    kept = {path: value for path, value in old.items() if path in new or path not in mine or path in held}
    lost_to_us = {path for path in new if path in old and old[path] != new[path]}
    entries = record(manager, "Apply", set(new))
    for (name, operation), paths in rest.items():
        entries += record(name, operation, paths - lost_to_us if name != manager else paths)
    return written({**kept, **new}, entries, live)


def updated(obj: Object, live: Object | None, manager: str = OTHER) -> Object:
    """Return what a plain update by a manager stores: it owns what it changed."""
    new, old = flat(obj), {} if live is None else flat(live)
    both = {**old, **new}
    touched = {path for path in new if old.get(path, ...) != new[path]}
    entries: list[Object] = []
    for entry in (live or {}).get("metadata", {}).get("managedFields", []):
        who = (entry["manager"], entry["operation"])
        if who != (manager, "Update"):
            entries += record(*who, owned(live, *who) - touched)
    return written(both, entries + record(manager, "Update", touched | owned(live, manager, "Update")), live)


NAMES = st.sampled_from(["a", "b", "helm.cattle.io/projectId", "lastTransitionTime", "podSelector"])
TEXT = st.sampled_from(["", "x", "y", "true"])
MAPS = st.dictionaries(NAMES, TEXT, min_size=1, max_size=3)
KEYS = st.sampled_from(["k1", "k2", "k3"])


def keyed(key: str) -> st.SearchStrategy[list[Object]]:
    entry = st.fixed_dictionaries({key: KEYS, "status": st.sampled_from(["True", "False"]), "message": TEXT})
    return st.lists(entry, min_size=1, max_size=3, unique_by=lambda made: made[key])


OBJECTS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": MAPS,
                "annotations": MAPS,
                "finalizers": st.lists(TEXT, min_size=1, max_size=2, unique=True),
                "ownerReferences": keyed("uid"),
            },
        )
    },
    optional={
        "data": MAPS,
        "secrets": keyed("name"),
        "immutable": st.booleans(),
        "spec": st.fixed_dictionaries(
            {"podSelector": st.one_of(st.just({}), st.fixed_dictionaries({"matchLabels": MAPS}))},
            optional={"ingress": st.lists(MAPS, max_size=2), "deep": st.fixed_dictionaries({"n": st.integers(0, 2)})},
        ),
        "status": st.fixed_dictionaries({"conditions": keyed("type")}),
    },
)


@settings(max_examples=60, deadline=None)
@given(wanted=OBJECTS, before=st.none() | OBJECTS, foreign=st.none() | OBJECTS)
def test_nothing_differs_after_an_apply(wanted: Object, before: Object | None, foreign: Object | None) -> None:
    """Whatever we and others had written before, after an apply there is nothing left to write."""
    live = None if before is None else applied(before, None)
    live = live if foreign is None else updated(foreign, live)
    assert difference(wanted, applied(wanted, live), manager=US) is None


@settings(max_examples=60, deadline=None)
@given(wanted=OBJECTS, before=OBJECTS, foreign=st.none() | OBJECTS)
def test_what_an_apply_would_change_is_a_difference(wanted: Object, before: Object, foreign: Object | None) -> None:
    """When an apply would change a value or what we own, a difference says so."""
    live = applied(before, None)
    live = live if foreign is None else updated(foreign, live)
    after = applied(wanted, live)

    def without_times(obj: Object) -> Flat:
        return {path: leaf for path, leaf in flat(obj).items() if not ("conditions" in str(path) and "Time" in path[-1])}

    if without_times(after) != without_times(live):
        assert difference(wanted, live, manager=US) is not None


@settings(max_examples=40, deadline=None)
@given(wanted=OBJECTS, before=OBJECTS)
def test_what_we_created_by_an_update_is_given_up_after_migration(wanted: Object, before: Object) -> None:
    """Fields of an object that we created by POST can be given up once the record is an apply."""
    live = updated(before, None, US)
    found = difference(wanted, live, manager=US)
    if found is not None and found.migrate:
        live["metadata"]["managedFields"] = as_apply_entries(live, US)
    assert difference(wanted, applied(wanted, live), manager=US) is None
