"""The promises of the fault workloads of Flux tenancy: each is broken by a history that breaks it, and by no other here."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tenantry.model.flux.names import ACCESS_INDEX, LOCK_FINALIZER, LOCKED, SOURCE_GRANT, SUSPENDED_BY_LOCK
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.kinds import NAMESPACE, Key, Kind, Object, key_of
from tenantry.testing.objects import obj
from tenantry.testing.workload import load_workload
from tenantry.testing.world import Change, Moment

WORKLOADS = Path(__file__).parents[1] / "faults" / "workloads"
RUN = "r000001r"
HOME, OWNER, KEY = f"n-{RUN}", f"s-{RUN}", f"GitRepository/s-{RUN}/app"


def broken(function: str, history: Sequence[tuple[str, Object | None, Object | None]]) -> set[str]:
    """The promises that the changes of a history break: who wrote (a function, or nobody), before and after."""
    objects: dict[Key, Object] = {}
    past: dict[Key, list[Object]] = {}
    found = set()
    for number, (by, before, after) in enumerate(history, 1):
        key = key_of(after or before or {})
        change = Change("update", key, before, after, number, float(number))
        for promise in load_workload(function, WORKLOADS).safe:
            if promise(Moment(change, by, objects, past)):
                found.add(promise.__name__)
        if after is None:
            objects.pop(key)
        else:
            objects[key] = after
            past.setdefault(key, []).append(after)
    return found


def changed(found: Object, **spec: Any) -> Object:
    return {**found, "spec": {**found["spec"], **spec}}


def made(kind: Kind, name: str, namespace: str = "", **rest: Any) -> Object:
    return obj(kind, name, namespace, **{"metadata": {"uid": name, "generation": 1}, **rest})


# -- the index ---------------------------------------------------------------------------------------------


def index(read: dict[str, str] | None = None, *, complete: bool = True) -> Object:
    return made(ACCESS_INDEX, "default", spec={"read": read or {}, "complete": complete})


def grant(*teams: str) -> Object:
    selectors = [{"matchLabels": {"team": each}} for each in teams]
    reference = {"kind": "GitRepository", "name": "app"}
    return made(
        SOURCE_GRANT,
        "g",
        OWNER,
        spec={"sourceRef": reference, "access": ["Read"], "accessFrom": {"namespaceSelectors": selectors}},
    )


SOURCE = made(GIT_REPOSITORY, "app", OWNER, spec={})
EMPTY, ONE, TWO = index(), index({KEY: "team=a"}), index({KEY: "team=a|team=b"})
STANDING = [("", None, EMPTY), ("", None, SOURCE), ("", None, grant("a", "b")), ("f", EMPTY, TWO)]
REVOKED = [*STANDING, ("", grant("a", "b"), None)]
NARROWED = [*STANDING, ("", grant("a", "b"), grant("a")), ("f", TWO, ONE)]


@pytest.mark.parametrize(
    ("history", "promises"),
    [
        (NARROWED, set()),
        ([*REVOKED, ("f", TWO, EMPTY)], set()),
        # a run under way may write what was declared a moment ago, but not what the index had lost by then
        ([*STANDING[:3], ("", grant("a", "b"), grant("a")), ("f", EMPTY, TWO)], set()),
        ([*NARROWED, ("f", ONE, TWO)], {"what_is_revoked_stays_away"}),
        ([*NARROWED, ("", ONE, TWO), ("f", TWO, ONE)], set()),
        ([*STANDING, ("f", TWO, index({KEY: "*"}))], {"grants_only_what_is_declared", "keeps_what_is_declared"}),
        ([*STANDING, ("f", TWO, ONE)], {"keeps_what_is_declared"}),
        ([*STANDING, ("f", TWO, None)], {"keeps_what_is_declared"}),
        ([*STANDING, ("", TWO, None), ("f", None, ONE)], {"keeps_what_is_declared"}),
        ([*STANDING, ("", TWO, None), ("f", None, TWO)], set()),
        ([*STANDING, ("f", TWO, index(TWO["spec"]["read"], complete=False))], {"is_never_split"}),
        ([*STANDING, ("f", TWO, {**TWO, "metadata": {**TWO["metadata"], "name": "second"}})], {"is_never_split"}),
    ],
)
def test_the_index_keeps_its_promises(history: list[tuple[str, Object | None, Object | None]], promises: set[str]) -> None:
    """What is declared is granted at every moment, nothing else is, and what went stays away."""
    assert broken("scope-binding-sources", history) == promises


def test_in_force_is_only_what_the_index_has() -> None:
    """A SourceGrant that says otherwise breaks a promise; of another generation it says nothing."""
    said = {"type": "ACLValid", "status": "True", "observedGeneration": 1}
    well = {**grant("a", "b"), "status": {"conditions": [said]}}
    late = {**well, "metadata": {**well["metadata"], "generation": 2}}
    for before, after, promises in (
        (STANDING, well, set()),
        (STANDING[:3], well, {"says_what_is_in_force"}),
        (STANDING[:3], late, set()),
    ):
        assert broken("scope-binding-sources", [*before, ("f", grant("a", "b"), after)]) == promises


def test_an_annotation_grants_too() -> None:
    """Both to read and to write; what is no JSON grants nothing."""
    said = json.dumps({"namespaceSelectors": [{"matchLabels": {"team": "a"}}]})
    for text, promises in ((said, set()), ("{", {"grants_only_what_is_declared"})):
        source = made(GIT_REPOSITORY, "app", OWNER, spec={})
        source["metadata"]["annotations"] = {"tenantry.dev/access-from": text}
        assert broken("scope-binding-sources", [("", None, source), ("f", EMPTY, ONE)]) == promises


# -- locks -------------------------------------------------------------------------------------------------


def consumer(*, locked: bool = False, by_lock: bool = False, suspended: bool = False, going: bool = False) -> Object:
    marks = {LOCKED: "AccessDenied"} if locked else {}
    marks |= {SUSPENDED_BY_LOCK: "true"} if by_lock else {}
    metadata = {"uid": "k", "annotations": marks, "finalizers": [LOCK_FINALIZER] if locked else []}
    metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}
    reference = {"kind": "GitRepository", "name": "app", "namespace": "standing"}
    spec = {"sourceRef": reference, **({"suspend": True} if suspended else {})}
    return obj(KUSTOMIZATION, "k", HOME, metadata=metadata, spec=spec)


def space(env: str) -> Object:
    return made(NAMESPACE, HOME, labels={"env": env})


FREE, BY_LOCK = consumer(), consumer(locked=True, by_lock=True, suspended=True)
OWN, OWN_LOCKED = consumer(suspended=True), consumer(locked=True, suspended=True)
DENIED = [("", None, space("old")), ("", space("old"), space("test")), ("", None, FREE)]
LOST = [("", None, space("prod")), ("", None, FREE), ("", space("prod"), space("test"))]
HALF = copy.deepcopy(BY_LOCK)
HALF["metadata"]["finalizers"] = []


@pytest.mark.parametrize(
    ("history", "promises"),
    [
        ([*DENIED, ("f", FREE, BY_LOCK)], set()),
        ([*LOST, ("f", FREE, BY_LOCK)], set()),
        ([("", None, space("prod")), ("", None, FREE), ("f", FREE, BY_LOCK)], {"locks_only_what_is_denied"}),
        # an index that is away, or not complete, locks nothing
        ([*DENIED, ("", None, index()), ("", index(), None), ("f", FREE, BY_LOCK)], set()),
        ([*DENIED, ("", None, index(complete=False)), ("f", FREE, BY_LOCK)], {"locks_only_what_is_denied"}),
        ([*DENIED, ("f", FREE, BY_LOCK), ("f", BY_LOCK, FREE)], {"frees_only_what_is_allowed"}),
        ([*DENIED, ("", None, index(complete=False)), ("", FREE, BY_LOCK), ("f", BY_LOCK, FREE)], {"frees_only_what_is_allowed"}),
        ([*DENIED, ("f", FREE, BY_LOCK), ("", space("test"), space("prod")), ("f", BY_LOCK, FREE)], set()),
        (
            [
                *DENIED,
                ("", FREE, consumer(locked=True, by_lock=True, suspended=True, going=True)),
                ("f", consumer(locked=True, going=True), consumer(going=True)),
            ],
            set(),
        ),
        ([*DENIED, ("f", FREE, HALF)], {"is_one_update"}),
        ([*DENIED, ("f", FREE, consumer(locked=True))], {"is_one_update"}),
        ([*LOST[:1], ("", None, OWN), *LOST[2:], ("f", OWN, OWN_LOCKED)], set()),
        ([*LOST[:1], ("", None, OWN), *LOST[2:], ("f", OWN, BY_LOCK)], {"is_one_update", "keeps_its_users_suspension"}),
        (
            [*DENIED, ("", FREE, OWN), ("f", OWN, OWN_LOCKED), ("", space("test"), space("prod")), ("f", OWN_LOCKED, FREE)],
            {"keeps_its_users_suspension"},
        ),
        (
            [*DENIED, ("f", FREE, {**FREE, "status": {"conditions": [{"type": "Ready", "reason": "AccessDenied"}]}})],
            {"says_only_what_is"},
        ),
    ],
)
def test_locks_keep_their_promises(history: list[tuple[str, Object | None, Object | None]], promises: set[str]) -> None:
    """What is denied is locked and nothing else, whole; a suspension of its user's stays his."""
    assert broken("lock-enforcement-access", history) == promises
