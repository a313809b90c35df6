"""Reads of kinds with large objects, against a real API server: they are noticed, and searches among them go in turn."""

from __future__ import annotations

import asyncio
from secrets import token_hex

import pytest

from tenantry.api import Api
from tenantry.api.turns import LITTLE_S, Turns, party
from tenantry.model.kinds import CONFIG_MAP, SECRET, Object
from tenantry.testing.objects import obj

NAME = f"large-{token_hex(4)}"


def config_map(text: str) -> Object:
    return obj(CONFIG_MAP, NAME, "default", data={"text": text})


async def test_that_a_kind_has_large_objects_is_known_for_a_while(admin: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a read of one, and by a list of some; small ones say nothing."""

    async def get() -> None:
        await admin.get(CONFIG_MAP, NAME, "default")

    async def search() -> None:
        await admin.list(CONFIG_MAP, field_selector=f"metadata.name={NAME}")

    await admin.apply(CONFIG_MAP, config_map("x"))
    for read in (get, search):
        monkeypatch.setattr(admin, "_large_until", {})
        await read()
        assert not admin.has_large(CONFIG_MAP)
    await admin.apply(CONFIG_MAP, config_map("x" * 100_000))
    for read in (get, search):
        monkeypatch.setattr(admin, "_large_until", {})
        await read()
        assert admin.has_large(CONFIG_MAP)
        assert not admin.has_large(SECRET)
    monkeypatch.setattr("tenantry.api.client.LARGE_S", 0.0)
    await get()
    assert not admin.has_large(CONFIG_MAP)


async def test_searches_go_in_turn_between_those_they_are_for(admin: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists by field over all namespaces: who asks for one does not wait for all of who asks for many (a-14)."""
    monkeypatch.setattr(admin, "_searches", Turns(1))
    order: list[str] = []

    async def search(whom: str) -> None:
        party.set(whom)
        await admin.list(CONFIG_MAP, field_selector=f"metadata.name={NAME}")
        order.append(whom)

    async with admin._searches.turn("many"):
        await asyncio.sleep(2 * LITTLE_S)  # what they had already
    async with admin._searches.turn("whoever"):
        waiting = [asyncio.create_task(search(whom)) for whom in ["many"] * 8 + ["one"]]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert order.index("one") <= 1, order
