"""Reads that many runs want at the same time give each run what a read of its own would give."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from people import token

from tenantry.api import Api, Listing
from tenantry.engine import reader as reading
from tenantry.engine.reader import Reader
from tenantry.engine.shared import Shared
from tenantry.model import limits
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object
from tenantry.testing.objects import obj

ASKED = 30
LABEL = "tests.example/of"


@pytest.fixture(autouse=True)
def one_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """One read is under way apart, so that all others wait for it."""
    monkeypatch.setattr(limits, "READS_APART", 1)


class Counting:
    """An API client that counts lists."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.lists: list[str] = []
        self.gets = 0

    async def list(self, kind: object, *args: object, **options: object) -> Listing:
        self.lists.append(str(options.get("label_selector") or options.get("field_selector") or ""))
        return await self._api.list(kind, *args, **options)  # type: ignore[arg-type]

    async def get(self, *args: object, **options: object) -> Object | None:
        self.gets += 1
        return await self._api.get(*args, **options)  # type: ignore[arg-type]


@pytest.fixture
def counting(admin: Api) -> Counting:
    return Counting(admin)


@pytest.fixture
def readers(counting: Counting) -> Iterator[Reader]:
    """Readers of different runs of one process."""
    shared = Shared(frozenset({NAMESPACE}))
    return iter(lambda: Reader(counting, shared=shared), None)  # type: ignore[arg-type, return-value]


@asynccontextmanager
async def namespaces(admin: Api, run: str, count: int) -> AsyncIterator[list[str]]:
    """Some namespaces, each with a label of its own and a ConfigMap ``same``."""
    names = [f"r{number}-{run}" for number in range(count)]
    for number, name in enumerate(names):
        await admin.create(NAMESPACE, obj(NAMESPACE, name, labels={LABEL: f"{run}-{number}"}))
        await admin.create(CONFIG_MAP, obj(CONFIG_MAP, f"same-{run}", name, data={"number": str(number)}))
    yield names
    for name in names:
        await admin.delete(NAMESPACE, name)


async def test_namespaces_by_name(admin: Api, counting: Counting, readers: Iterator[Reader]) -> None:
    """Those that are there and those that are not, in one list and one read."""
    run = token()
    async with namespaces(admin, run, 3) as there:
        wanted = [*there, *(f"absent{number}-{run}" for number in range(ASKED))]
        found = await asyncio.gather(*(next(readers).get(NAMESPACE, name) for name in wanted))
        assert [each and each["metadata"]["name"] for each in found] == [*there, *[None] * ASKED]
        assert (counting.gets, len(counting.lists)) == (1, 1)


async def test_lists_by_the_value_of_a_label(admin: Api, counting: Counting, readers: Iterator[Reader]) -> None:
    """Each has the objects with its own value, and none where there are none."""
    run = token()
    async with namespaces(admin, run, 3) as there:
        values = [f"{run}-{number}" for number in range(ASKED)]
        found = await asyncio.gather(*(next(readers).list(NAMESPACE, labels={LABEL: value}) for value in values))
        assert [[each["metadata"]["name"] for each in items] for items in found] == [
            *([name] for name in there),
            *[[]] * (ASKED - 3),
        ]
        assert len(counting.lists) == 2


@pytest.mark.parametrize("headers", [False, True])
async def test_names_in_all_namespaces(
    admin: Api, counting: Counting, readers: Iterator[Reader], headers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks has all objects with the name, whole unless he wants headers; a name that very many have is listed."""
    run = token()
    async with namespaces(admin, run, 3) as there:
        names = ["first", *(f"absent{number}-{run}" for number in range(ASKED)), f"same-{run}"]
        for few in (reading.FEW, 2):
            monkeypatch.setattr(reading, "FEW", few)
            found = await asyncio.gather(*(next(readers).named(CONFIG_MAP, name, headers=headers) for name in names))
            assert not any(found[:-1])
            assert {each["metadata"]["namespace"] for each in found[-1]} == set(there)
            assert [("data" in each) for each in found[-1]] == [not headers] * 3
        assert sum(not selector for selector in counting.lists) == 2  # one list of headers each time
