"""Many locked releases: a cold start writes nothing (hpo-84)."""

from __future__ import annotations

import asyncio
import json

import pytest
from locking import FUNCTION, SYSTEM, Helm, Locks, config_map, copy_of, locking, marked_for, token, true, written
from people import Start
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import CONFIG_MAP, HELM_RELEASE, SECRET, Object
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.settling import settle, snapshot

pytestmark = LEFT_TO_MAKE_WHOLE


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
async def test_a_cold_start_writes_nothing(
    control_plane: ControlPlane,
    admin: Api,
    running: Start,
    audit_log: AuditLog,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Over 100 locked releases without drift everything is started anew: no write request reaches a locked object."""
    locks, helm, name = Locks(admin), Helm(control_plane.kubeconfig, tmp_path_factory.mktemp("helm")), f"many-{token()}"
    logged: list[str] = []
    wanted = {
        "config": locking(),
        "functions": [FUNCTION],
        "on_log": lambda _, line: logged.append(str(line.get("message", ""))),
    }

    async def all_locked() -> bool:
        found = [each for each in (await admin.list(HELM_RELEASE, SYSTEM)).items if name in each["metadata"]["name"]]
        good = [each for each in found if true(each.get("status") or {}, "Locked") and true(each["status"], "Complete")]
        return len(good) == RELEASES and all(each["metadata"]["finalizers"] == ["tenantry.dev/lock"] for each in good)

    async with running(**wanted) as knative:
        await locks.lockable(CONFIG_MAP)
        names = await many(helm, locks, admin, name)
        await eventually(all_locked, within=60, what=f"{RELEASES} releases locked")
        await settle(knative, admin)
    kinds = [CONFIG_MAP, SECRET, HELM_RELEASE]
    before, requests = await snapshot(admin, kinds, containing=name), written(audit_log, name)
    assert len(names) == RELEASES * EACH

    async with running(**wanted) as knative:  # everything is announced, and swept
        await knative.drain()
        assert written(audit_log, name) == requests
        await settle(knative, admin)
        logged.clear()
        await knative.sweep(FUNCTION)
        assert await all_locked()
        assert written(audit_log, name) == requests
        assert await snapshot(admin, kinds, containing=name) == before
        assert "sweep: nothing to do, 0 writes" in logged, logged
        # It does look at them.
        await locks.edit(CONFIG_MAP, names[-1], name, ("replace", "/data/a", "x"))
        await locks.data(names[-1], name, {"a": "1"})
        await locks.leave(lambda: knative.sweep(FUNCTION))
