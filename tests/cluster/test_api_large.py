"""Reads of kinds with large objects, against a real API server: they are noticed, and searches among them go in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from secrets import token_hex
from typing import Any

import pytest
import pytest_asyncio

from tenantry.api import Api
from tenantry.api.turns import LITTLE_S, Turns, party
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, SECRET, Object
from tenantry.testing.objects import obj


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def api(control_plane: Any) -> AsyncIterator[Api]:
    async with await Api.connect(field_manager="tests-api", kubeconfig=control_plane.kubeconfig) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(admin: Api) -> str:
    name = f"api-{token_hex(4)}"
    await admin.create(NAMESPACE, {"metadata": {"name": name}})
    return name


def config_map(namespace: str, text: str) -> Object:
    return obj(CONFIG_MAP, "large", namespace, data={"text": text})


async def test_that_a_kind_has_large_objects_is_known_for_a_while(
    api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a read of one, and by a list of some; small ones say nothing."""

    async def get() -> None:
        await api.get(CONFIG_MAP, "large", namespace)

    async def search() -> None:
        await api.list(CONFIG_MAP, field_selector="metadata.name=large")

    await api.apply(CONFIG_MAP, config_map(namespace, "x"))
    for read in (get, search):
        monkeypatch.setattr(api, "_large_until", {})
        await read()
        assert not api.has_large(CONFIG_MAP)
    await api.apply(CONFIG_MAP, config_map(namespace, "x" * 100_000))
    for read in (get, search):
        monkeypatch.setattr(api, "_large_until", {})
        await read()
        assert api.has_large(CONFIG_MAP)
        assert not api.has_large(SECRET)
    monkeypatch.setattr("tenantry.api.client.LARGE_S", 0.0)
    await get()
    assert not api.has_large(CONFIG_MAP)


async def test_searches_go_in_turn_between_those_they_are_for(api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists by field over all namespaces: who asks for one does not wait for all of who asks for many (a-14)."""
    monkeypatch.setattr(api, "_searches", Turns(1))
    order: list[str] = []

    async def search(whom: str) -> None:
        party.set(whom)
        await api.list(CONFIG_MAP, field_selector=f"metadata.name=one-of-{namespace}")
        order.append(whom)

    async with api._searches.turn("many"):
        await asyncio.sleep(2 * LITTLE_S)  # what they had already
    async with api._searches.turn("whoever"):
        waiting = [asyncio.create_task(search(whom)) for whom in ["many"] * 8 + ["one"]]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert order.index("one") <= 1, order
