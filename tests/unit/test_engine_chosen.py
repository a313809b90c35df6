"""The one object of a kind that counts is read by its name, as long as it is that one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from engine_units import Stub

from tenantry.api import Api
from tenantry.api.client import Listing
from tenantry.engine import shared
from tenantry.engine.reader import Reader
from tenantry.engine.shared import Shared
from tenantry.engine.snapshot import Snapshot
from tenantry.model.kinds import NAMESPACE, Kind, Object, is_terminating


def oldest(found: Iterable[Object]) -> Object | None:
    alive = [each for each in found if not is_terminating(each)]
    return min(alive, key=lambda each: each["metadata"]["creationTimestamp"], default=None)


def made(name: str, when: str = "1", **more: Any) -> Object:
    metadata = {"name": name, "uid": f"{name}-{when}", "resourceVersion": when, "creationTimestamp": when, **more}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


@dataclass
class There(Stub):
    """An API server with some namespaces, and what it was asked for."""

    objects: list[Object] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def list(self, kind: Kind, namespace: str = "", **_: Any) -> Listing:
        self.asked.append("list")
        return Listing(list(self.objects), "1")

    async def get(self, kind: Kind, name: str, namespace: str = "", **_: Any) -> Object | None:
        self.asked.append(f"get {name}")
        return next((each for each in self.objects if each["metadata"]["name"] == name), None)


@dataclass
class Asking:
    """Runs that ask for it, one after the other."""

    api: There
    shared: Shared = field(default_factory=Shared)

    async def ask(self) -> str:
        self.api.asked.clear()
        found = await Reader(cast(Api, self.api), shared=self.shared).chosen_shared(NAMESPACE, oldest)
        return str(found["metadata"]["name"]) if found is not None else ""


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Two objects, and nothing that is too young to be believed, nor a rest between two reads."""
    monkeypatch.setattr(shared, "SAME_AGE_S", 0.0)
    monkeypatch.setattr(shared, "LONGEST_REST_S", 0.0)
    return Asking(There([made("a", "2"), made("b", "1")]))


async def test_it_is_listed_once_and_then_read_by_name(asking: Asking) -> None:
    assert (await asking.ask(), asking.api.asked) == ("b", ["list"])
    assert (await asking.ask(), asking.api.asked) == ("b", ["get b"])
    asking.api.objects.append(made("c", "3"))
    assert (await asking.ask(), asking.api.asked) == ("b", ["get b"])


@pytest.mark.parametrize("now", [[], [made("b", "5")], [made("b", "1", deletionTimestamp="6")]], ids=["gone", "anew", "going"])
async def test_when_it_counts_no_more_all_are_listed(asking: Asking, now: list[Object]) -> None:
    """One that goes, and one of its name that is another."""
    await asking.ask()
    asking.api.objects = [made("a", "2"), *now]
    assert (await asking.ask(), asking.api.asked) == ("a", ["get b", "list"])
    assert (await asking.ask(), asking.api.asked) == ("a", ["get a"])


async def test_where_there_is_none_it_is_looked_for_each_time(asking: Asking) -> None:
    asking.api.objects.clear()
    for _ in range(2):
        assert (await asking.ask(), asking.api.asked) == ("", ["list"])


async def test_one_that_was_just_made_is_not_believed(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another can be made in the same second, whose name comes first."""
    monkeypatch.setattr(shared, "SAME_AGE_S", 60.0)
    for _ in range(2):
        assert (await asking.ask(), asking.api.asked) == ("b", ["list"])


async def test_a_snapshot_chooses_from_its_list(asking: Asking) -> None:
    found = await Snapshot(cast(Api, asking.api)).chosen_shared(NAMESPACE, oldest)
    assert found is not None
    assert (found["metadata"]["name"], asking.api.asked) == ("b", ["list"])
