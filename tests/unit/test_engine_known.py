"""What was read to find the owners of an event is known to their runs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from engine_units import FUNCTION, OBJECT, Still, Stub, look, make

from tenantry.api.client import Listing
from tenantry.engine import engine, shared
from tenantry.engine.reader import Reader
from tenantry.engine.unit import Stages
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Kind, Object


class Few(Stub):
    """An API server with one ConfigMap, and a list of what it was asked for."""

    def __init__(self, *, complete: bool) -> None:
        self.complete = complete
        self.asked: list[str] = []

    async def list(self, kind: Kind, namespace: str = "", **more: object) -> Listing:
        since = f" since {version}" if (version := more.get("not_older_than")) else ""
        self.asked.append(f"list {kind.kind} {namespace} {more.get('limit', '')}".rstrip() + since)
        return Listing([OBJECT], str(len(self.asked)), complete=self.complete)

    async def get(self, kind: Kind, name: str, namespace: str) -> Object:
        self.asked.append(f"get {kind.kind} {namespace}/{name}")
        return OBJECT


class WholeKind(Still):
    """Finds its owners by all ConfigMaps that there are; its run asks for some of them."""

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        await reader.all_shared(CONFIG_MAP, 3)
        return await super().owners(key, hint, reader)


async def ask(_: str, reader: Reader) -> None:
    assert await reader.list(CONFIG_MAP, "n", name="c") == [OBJECT]
    assert await reader.get(CONFIG_MAP, "c", "n") == OBJECT


async def test_a_kind_that_is_known_whole_is_not_asked_for_again() -> None:
    """One request found the owners and answers the run: lists, and objects by name, that are there or not."""
    api = Few(complete=True)

    async def act(owner: str, reader: Reader) -> None:
        await ask(owner, reader)
        assert await reader.list(CONFIG_MAP, "elsewhere") == []
        assert await reader.list(CONFIG_MAP, labels={"a": "b"}) == []
        assert await reader.get(CONFIG_MAP, "other", "n") is None

    assert (await make(WholeKind(act=act), api=api).handle(look())).status == 204
    assert api.asked == ["list ConfigMap  3"]


async def test_a_kind_of_many_objects_is_asked_for_one_by_one() -> None:
    """A page that is not all of it answers nothing."""
    api = Few(complete=False)
    assert (await make(WholeKind(act=ask), api=api).handle(look())).status == 204
    assert api.asked == ["list ConfigMap  3", "list ConfigMap n since 1", "get ConfigMap n/c"]


async def test_a_list_need_be_no_newer_than_a_version() -> None:
    """Lists that follow are as new as ever."""
    api = Few(complete=False)

    async def act(_: str, reader: Reader) -> None:
        await reader.list_since(CONFIG_MAP, "n", "101")
        await reader.list(CONFIG_MAP, "m")

    assert (await make(Still(act=act), api=api).handle(look())).status == 204
    assert api.asked == ["list ConfigMap n since 101", "list ConfigMap m"]


async def test_that_a_kind_has_many_objects_is_known_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Few(complete=False)
    made = make(WholeKind(act=ask), api=api)
    await made.handle(look())
    api.asked.clear()
    await made.handle(look())
    assert api.asked == ["list ConfigMap n", "get ConfigMap n/c"]
    monkeypatch.setattr(shared, "MANY_S", 0.0)
    for kinds in made._shared._many:
        made._shared.found_many(*kinds)
    api.asked.clear()
    await made.handle(look())
    assert api.asked[0] == "list ConfigMap  3"


async def test_a_kind_of_large_objects_is_asked_for_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of all is no cheap look then: everybody's events would wait for one tenant's objects (a-14)."""
    api = Few(complete=True)
    monkeypatch.setattr(api, "has_large", lambda kind: kind == CONFIG_MAP)
    assert (await make(WholeKind(act=ask), api=api).handle(look())).status == 204
    assert api.asked == ["list ConfigMap n", "get ConfigMap n/c"]


async def test_further_lists_of_a_kind_are_as_of_the_first() -> None:
    """Within what an event causes; not by a second look, nor to verify, nor by a run that began later."""
    api, first = Few(complete=False), True

    async def act(_: str, reader: Reader) -> None:
        nonlocal first
        await reader.list(CONFIG_MAP, "a")
        await reader.list(NAMESPACE)
        if not first:
            return
        first = False
        again = reader.anew()
        await again.list(CONFIG_MAP, "b")
        await again.list_shared(CONFIG_MAP, "c")
        await again.list(CONFIG_MAP, "d")

        async def verified(fresh: Reader) -> int:
            return len(await fresh.list(CONFIG_MAP, "e"))

        reader.depends_on(verified, 1)
        assert await reader.unchanged()

    tried = make(WholeKind(act=act), api=api)
    assert (await tried.handle(look())).status == 204
    assert api.asked == [
        "list ConfigMap  3",
        "list ConfigMap a since 1",
        "list Namespace",
        "list ConfigMap b",
        "list ConfigMap c since 4",
        "list ConfigMap d since 4",
        "list ConfigMap e",
    ]
    api.asked.clear()
    assert (await tried.handle(engine.requested(FUNCTION, "still", "o/1", "c"))).status == 204
    assert api.asked == ["list ConfigMap a", "list Namespace"]


async def test_what_is_asked_for_anew_is_read_anew() -> None:
    """What is concluded from the order of two reads, and what is verified, is no matter of what was known before."""
    api = Few(complete=True)

    async def act(_: str, reader: Reader) -> None:
        assert await reader.get(CONFIG_MAP, "c", "n", again=True) == OBJECT

    assert (await make(WholeKind(act=act), api=api).handle(look())).status == 204
    assert api.asked == ["list ConfigMap  3", "get ConfigMap n/c"]
