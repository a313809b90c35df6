"""What a namespace is shown of the sources that are granted to it (2.8)."""

from __future__ import annotations

from typing import Any

import pytest
from served import Served

from scope_binding.shown.plan import MANAGER, plan_shown
from scope_binding.shown.seen import MOST_BYTES, Granted, ShownSeen, asks, kept_home
from scope_binding.shown.unit import SHOWN_IN, ShownSources
from tenantry.engine.unit import Owner
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, SHOW_SOURCES, SHOWN_MARK, SOURCES_SHOWN
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object, key_of
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
