"""Many locked releases: a cold start writes nothing, and events that come twice, in any order or not at all end the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from locking import FUNCTION, Helm, Locks, config_map, copy_of, locking, marked_for, token
from people import look, post

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, SECRET, Object
from tenantry.testing.settling import snapshot

RELEASES, EACH = 100, 2


async def many(helm: Helm, locks: Locks, admin: Api, name: str) -> list[str]:
    """Releases that are copies of one that real Helm made; returns the names of their objects."""
    await locks.namespace(name)
    await helm.install(name, name, config_map("first", {"a": "1"}))
    record = await locks.until(SECRET, f"sh.helm.release.v1.{name}.v1", name, bool)
    names: list[str] = []

    async def release(number: int) -> None:
        called = f"{name}-{number}"
        objects: list[Object] = [config_map(f"{called}-{each}", {"a": "1"}) for each in range(EACH)]
        names.extend(obj["metadata"]["name"] for obj in objects)
        await asyncio.gather(*(admin.create(CONFIG_MAP, marked_for(called, name, obj)) for obj in objects))
        await admin.create(SECRET, copy_of(record, called, "---\n".join(json.dumps(obj) + "\n" for obj in objects)))
        await locks.lock(called, called, name)

    for start in range(0, RELEASES, 10):
        await asyncio.gather(*(release(number) for number in range(start, start + 10)))
    return names


@pytest.mark.check("hpo-84")
@pytest.mark.check("hpo-85")
@pytest.mark.check("hpo-86")
async def test_many_releases(
    control_plane: ControlPlane,
    admin: Api,
    knative: Callable[..., Awaitable[Knative]],
    identity: Callable[..., Awaitable[Path]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Cold start over 100 locked releases: no write reaches a locked object, and a second sweep writes nothing at all."""
    locks, helm, name = Locks(admin), Helm(control_plane.kubeconfig, tmp_path_factory.mktemp("helm")), f"many-{token()}"
    await identity(FUNCTION)
    await locks.lockable(CONFIG_MAP)
    names = await many(helm, locks, admin, name)
    before = await snapshot(admin, [CONFIG_MAP], containing=name)
    logged: list[str] = []
    running = await knative(
        locking(), functions=[FUNCTION], watch=False, on_log=lambda _, line: logged.append(str(line.get("message", "")))
    )
    await running.broker.drain()
    await running.sweep(FUNCTION)
    for number in (0, RELEASES - 1):
        await locks.locked(f"{name}-{number}")
    assert await snapshot(admin, [CONFIG_MAP], containing=name) == before
    logged.clear()
    await running.sweep(FUNCTION)
    assert "sweep: nothing to do, 0 writes" in logged, logged

    drifted = names[:20]
    await asyncio.gather(*(locks.edit(CONFIG_MAP, each, name, ("replace", "/data/a", "x")) for each in drifted))
    url = running.functions[FUNCTION].url
    heard = [each for number, each in enumerate(drifted) if number % 10]
    for each in reversed([*heard, *heard]):  # twice, in reverse order, and one of ten never
        assert (await post(url, *look(CONFIG_MAP, each, name)))[0] == 204
    await asyncio.gather(*(locks.data(each, name, {"a": "1"}) for each in heard))
    for each in set(drifted) - set(heard):
        assert ((await admin.get(CONFIG_MAP, each, name)) or {})["data"] == {"a": "x"}
    await running.sweep(FUNCTION)
    for each in set(drifted) - set(heard):
        assert ((await admin.get(CONFIG_MAP, each, name)) or {})["data"] == {"a": "1"}
    after = await snapshot(admin, [CONFIG_MAP], containing=name)
    await running.sweep(FUNCTION)
    assert await snapshot(admin, [CONFIG_MAP], containing=name) == after
    await locks.leave(lambda: running.sweep(FUNCTION))
