"""What a namespace is shown of the sources that are granted to it (2.8)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from served import Served

from scope_binding.shown.plan import MANAGER, plan_shown
from scope_binding.shown.seen import ASKS_NOT, MOST_BYTES, Granted, ShownSeen, asks, kept_home, state_of_home
from scope_binding.shown.unit import SHOWN_IN, ShownSources
from tenantry.api import Listing
from tenantry.engine.reader import FEW, Reader
from tenantry.engine.shared import Shared
from tenantry.engine.unit import Owner
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, SHOW_SOURCES, SHOWN_MARK, SOURCES_SHOWN
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Kind, Object, key_of
from tenantry.model.plan import NOTHING, Apply, Delete
from tenantry.testing.objects import obj

TWO, SHOWN = {"team": "two"}, {SHOW_SOURCES: "true"}
READ = {
    "GitRepository/dev-team1/b": "team=two",
    "Bucket/dev-team1/a": "*",
    "GitRepository/dev-team1/c": "team=one|env=prod,team=two",
    "GitRepository/dev-team2/own": "*",
}
ENTRIES = AccessEntries(READ, {"GitRepository/x/w": "team=two", "HelmRepository/x/h": "*"}, complete=True)


def home(annotations: dict[str, str] | None = None, **metadata: Any) -> Object:
    return obj(NAMESPACE, "dev-team2", labels=TWO, annotations=SHOWN if annotations is None else annotations, metadata=metadata)


def listed(**parts: Any) -> Object:
    owned = [{"manager": MANAGER, "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:read": {}}}}]
    metadata = {"uid": "u", "resourceVersion": "1", "managedFields": owned}
    return obj(CONFIG_MAP, SOURCES_SHOWN, "dev-team2", metadata=metadata, **parts)


class Cut(Served):
    """Lists no more than it is asked for."""

    async def list(self, kind: Kind, *parts: Any, limit: int = 0, **more: Any) -> Listing:
        found = await super().list(kind, *parts, **more)
        is_cut = bool(limit) and len(found.items) > limit
        return replace(found, items=found.items[:limit], complete=False) if is_cut else found


def test_what_is_granted_is_listed_in_order() -> None:
    """Of other namespaces, by the labels of the namespace; what is pushed to is a GitRepository."""
    assert Granted(ENTRIES).to(home()) == {"read": "Bucket/dev-team1/a\nGitRepository/dev-team1/b", "write": "GitRepository/x/w"}


def test_a_list_has_a_budget() -> None:
    """The last line says how many are left out."""
    many = AccessEntries({f"GitRepository/n/s{number:05}": "*" for number in range(30_000)}, complete=True)
    lines = Granted(many).to(home())["read"].splitlines()
    assert lines[-1] == f"# and {30_000 - len(lines) + 1} more"
    assert MOST_BYTES - 100 < len("\n".join(lines[:-1])) <= MOST_BYTES


@pytest.mark.parametrize("said", [{}, {SHOW_SOURCES: "false"}, {SHOW_SOURCES: ""}])
def test_who_does_not_ask_has_no_list(said: dict[str, str]) -> None:
    """One that we made goes; another's of that name stays."""
    assert not asks(home(said))
    assert plan_shown(ShownSeen(home(said), None, None)) == NOTHING
    (gone,) = plan_shown(ShownSeen(home(said), None, listed())).writes()
    assert isinstance(gone, Delete)
    assert plan_shown(ShownSeen(home(said), None, obj(CONFIG_MAP, SOURCES_SHOWN, "dev-team2"))) == NOTHING


def test_who_asks_has_one() -> None:
    """With a mark; it is made anew where it cannot be changed."""
    (made,) = plan_shown(ShownSeen(home(), ENTRIES, None)).writes()
    assert isinstance(made, Apply)
    assert made.wanted["data"] == Granted(ENTRIES).to(home())
    assert made.wanted["metadata"]["labels"] == {SHOWN_MARK: "true"}
    stuck = listed(immutable=True, data={"read": "x"})
    assert [type(each) for each in plan_shown(ShownSeen(home(), ENTRIES, stuck)).writes()] == [Delete, Apply]


def test_nothing_is_said_on_the_word_of_half_an_index() -> None:
    """One that is not complete or not there; nor in a namespace that is going, or gone."""
    incomplete = AccessEntries(READ)
    for seen in (
        ShownSeen(home(), incomplete, None),
        ShownSeen(home(), None, listed()),
        ShownSeen(home(deletionTimestamp="2026-01-01T00:00:00Z"), ENTRIES, None),
        ShownSeen(None, None, listed()),
    ):
        assert plan_shown(seen) == NOTHING


async def test_an_index_that_becomes_complete_concerns_all_who_ask() -> None:
    """They asked of an index that was not, and were shown nothing; later only those whose list has to change."""
    unit, asking = ShownSources(), [[Owner(SHOWN_IN, "dev-team2")]]

    def index(entries: AccessEntries, uid: str = "u") -> Object:
        return obj(ACCESS_INDEX, DEFAULT, metadata={"uid": uid}, spec=entries.spec())

    async def owners(entries: AccessEntries, *others: Object, uid: str = "u") -> Any:
        made = index(entries, uid)
        return await unit.owners(key_of(made), {}, Served(made, home(), obj(NAMESPACE, "quiet"), *others).reader())

    assert await owners(AccessEntries(READ)) == []
    assert await owners(ENTRIES) == asking
    mark = {"labels": {SHOWN_MARK: "true"}}
    shown = obj(CONFIG_MAP, SOURCES_SHOWN, "dev-team2", metadata=mark, data=Granted(ENTRIES).to(home()))
    assert await owners(ENTRIES, shown) == await owners(ENTRIES) == []
    assert await owners(AccessEntries(complete=True), shown) == asking
    assert await owners(ENTRIES, uid="made anew") == asking


def test_of_a_namespace_its_labels_are_kept() -> None:
    """And whether it asks."""
    kept = kept_home(obj(NAMESPACE, "n", labels=TWO, annotations={**SHOWN, "other": "x"}, spec={"finalizers": []}))
    assert kept == obj(NAMESPACE, "n", labels=TWO, annotations=SHOWN)


def test_only_what_a_namespace_that_asks_has_is_a_state_of_it() -> None:
    """A label that comes to one that asks changes what it is granted; to another one nothing."""
    assert state_of_home(home({})) == state_of_home(home({}, resourceVersion="2")) == ASKS_NOT
    assert state_of_home(home({}, labels={})) == ASKS_NOT
    assert state_of_home(home(deletionTimestamp="now")) == ASKS_NOT
    assert state_of_home(home()) not in (ASKS_NOT, state_of_home(obj(NAMESPACE, "dev-team2", annotations=SHOWN)))


@pytest.mark.parametrize("lists", [0, 1, FEW + 1])
async def test_a_namespace_that_does_not_ask_is_looked_at_where_it_has_a_list(lists: int) -> None:
    """Known from one list of names, by its own name where too many have one or few ask; and where an event tells nothing."""
    others = [obj(CONFIG_MAP, SOURCES_SHOWN, f"n{number}", metadata={"resourceVersion": "1"}) for number in range(lists)]

    async def looked_at(*objects: Object, told: object = hash(ASKS_NOT), asking: int = 50) -> bool:
        shared, cluster = Shared(), Cut(*others, *objects)
        for _ in range(asking):
            reader = Reader(cluster.api, shared=shared)
            reader.told = told
            found = await ShownSources().owners(key_of(home({})), {}, reader)
        return bool(found)

    for asking in (1, 50):
        assert not await looked_at(asking=asking)
        assert await looked_at(listed(), asking=asking)
    assert await looked_at(told=None)
    assert await looked_at(told=hash(state_of_home(home())))
