"""Locks on releases that real Helm makes: drift is put back, and Helm's own changes pass."""

from __future__ import annotations

import asyncio
import json

import pytest
from locking import (
    DEPLOYMENT,
    FUNCTION,
    JOB,
    POD,
    SERVICE,
    SYSTEM,
    Helm,
    Locks,
    condition,
    config_map,
    copy_of,
    end_hook,
    pod_hook,
    token,
    true,
    watched,
    written,
)

from lock_enforcement.started import is_ready
from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane, Lines, ensure_helm4
from tenantry.local.knative import Knative
from tenantry.model.kinds import API_SERVER_SOURCE, CONFIG_MAP, HELM_RELEASE, RESOURCE_QUOTA, SECRET, SERVICE_ACCOUNT, Object
from tenantry.model.names import LOCKED_SOURCE, SYSTEM_NAMESPACE
from tenantry.testing import eventually
from tenantry.testing.audit import AuditLog
from tenantry.testing.helm import lockable, unpacked
from tenantry.testing.objects import obj


@pytest.fixture(scope="module")
def helm4(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The real helm, version 4."""
    return Helm(control_plane.kubeconfig, tmp_path_factory.mktemp("helm4"), ensure_helm4(Lines()))


@pytest.mark.check("hpo-69")
@pytest.mark.check("hpo-70")
@pytest.mark.check("hpo-73")
async def test_a_release_is_locked_and_unlocked(helm: Helm, locks: Locks, admin: Api) -> None:
    """Locked with state, version, finalizer and Event; drift and deletion are put right, extras stay; unlocked, edits stay."""
    name = f"demo-{token()}"
    await locks.namespace(name)
    await helm.install(name, name, config_map("c1", {"a": "1", "b": "2"}), notes="Have a look at c1.")
    await locks.lock(name, name, name)
    status = await locks.locked(name)

    assert (status["state"], status["version"]) == ("Deployed", 1)
    assert (status["description"], status["notes"]) == ("Install complete", "Have a look at c1.")
    assert condition(status, "Locked")["reason"] == "Enforced"
    live = await admin.get(HELM_RELEASE, name, SYSTEM)
    assert live is not None
    assert live["metadata"]["finalizers"] == ["tenantry.dev/lock"]
    assert [event["reason"] for event in await locks.events(name, SYSTEM)] == ["Locked"]

    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", "drift"), ("add", "/data/extra", "x"))
    await locks.data("c1", name, {"a": "1", "b": "2", "extra": "x"})
    status = await locks.status(name, lambda status: "lastDrift" in status)
    assert status["lastDrift"] == {
        "object": f"ConfigMap {name}/c1",
        "action": "Restored",
        "fields": ["data[a]"],
        "managers": ["tests-admin"],
    }
    (event,) = await locks.events("c1", name)
    assert event["reason"] == "Restored"
    assert "data[a]" in event["note"]
    assert "tests-admin" in event["note"]

    await admin.delete(CONFIG_MAP, "c1", name)
    await locks.data("c1", name, {"a": "1", "b": "2"})
    await watched(admin, name, True)

    await admin.delete(HELM_RELEASE, name, SYSTEM)
    await locks.away(HELM_RELEASE, name, SYSTEM)
    edited = await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", "free"))
    await watched(admin, name, False)
    await locks.swept()
    assert await admin.get(CONFIG_MAP, "c1", name) == edited


async def test_the_finalizer_of_helm_locker_holds_nothing(helm: Helm, locks: Locks, admin: Api) -> None:
    """A HelmRelease that Helm Locker has had goes when it is deleted, though nobody of before takes its finalizer off."""
    name = await locks.release(helm, "theirs", config_map("c1", {"a": "1"}))
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("add", "/metadata/finalizers/-", "wrangler.cattle.io/on-helm-release-remove"))
    await admin.delete(HELM_RELEASE, name, SYSTEM)
    await locks.away(HELM_RELEASE, name, SYSTEM)


async def test_what_changed_before_its_source_watched(helm: Helm, locks: Locks, admin: Api, locker: Knative) -> None:
    """What is deleted after a lock began and before its source watches comes back once it does, without a sweep.

    The source has no right to watch the kind yet, so it begins as late as the test wants.
    """
    name = f"late-{token()}"
    to_lock, to_watch = lockable(f"late-{token()}", RESOURCE_QUOTA)
    quota = obj(RESOURCE_QUOTA, "q1", spec={"hard": {"pods": "7"}})
    await locks.give(to_lock)
    await locks.namespace(name)
    await helm.install(name, name, config_map("c1", {"a": "1"}), quota)
    await locks.lock(name, name, name)
    await locks.status(name, lambda status: status.get("lockedVersion") == 1 and true(status, "Complete"))
    await watched(admin, name, True)

    async def started() -> bool:
        source = (locker.followed and locker.followed.sources.get(LOCKED_SOURCE)) or None
        return source is not None and name in str(source.spec.namespace_selector)

    async def quiet() -> None:
        for _ in range(2):  # what comes of an event may be an event
            await asyncio.gather(*(source.drain() for source in locker.sources))
            await locker.broker.drain()

    await eventually(started, within=30, what="the source of locked objects plays")
    await quiet()
    await admin.delete(RESOURCE_QUOTA, "q1", name)
    await quiet()
    assert await admin.get(RESOURCE_QUOTA, "q1", name) is None
    assert not is_ready(await admin.get(API_SERVER_SOURCE, LOCKED_SOURCE, SYSTEM_NAMESPACE))
    await locks.give(to_watch)

    await locks.until(RESOURCE_QUOTA, "q1", name, lambda found: found["spec"] == quota["spec"], within=10)
    assert is_ready(await admin.get(API_SERVER_SOURCE, LOCKED_SOURCE, SYSTEM_NAMESPACE))


@pytest.mark.check("hpo-71")
@pytest.mark.check("hpo-72")
@pytest.mark.check("hpo-79")
async def test_helm_at_work_is_left_alone(helm: Helm, locks: Locks, admin: Api) -> None:
    """During an upgrade edits stay; when it is deployed its content is kept; after a failed one the last deployed content is."""
    name = await locks.release(helm, "work", config_map("c1", {"rev": "1"}))
    await locks.until(SERVICE_ACCOUNT, "default", name, bool)

    upgrade = asyncio.create_task(helm.upgrade(name, name, config_map("c1", {"rev": "2"}), pod_hook("post-upgrade")))
    status = await locks.status(name, lambda status: status.get("state") == "Transitioning")
    assert (status["version"], condition(status, "Locked")["reason"]) == (2, "HelmAtWork")
    assert "Transitioning" in [event["reason"] for event in await locks.events(name, SYSTEM)]
    await locks.until(POD, "hook-post-upgrade", name, bool)
    edited = await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/rev", "by hand"))
    await locks.swept()
    live = await admin.get(CONFIG_MAP, "c1", name)
    assert live is not None
    assert live["metadata"]["resourceVersion"] == edited["metadata"]["resourceVersion"]

    await end_hook(admin, "post-upgrade", name, "Succeeded")
    await upgrade
    status = await locks.locked(name, 2)
    assert (status["state"], status["version"]) == ("Deployed", 2)
    await locks.data("c1", name, {"rev": "2"})

    await admin.delete(POD, "hook-post-upgrade", name)
    failing_chart = helm.chart(name, config_map("c1", {"rev": "3"}), pod_hook("pre-upgrade"))
    failing = asyncio.create_task(helm.run("upgrade", name, failing_chart, "-n", name, check=False))
    await locks.until(POD, "hook-pre-upgrade", name, bool)
    await end_hook(admin, "pre-upgrade", name, "Failed")
    assert (await failing)[0] != 0
    status = await locks.status(name, lambda status: status.get("state") == "Failed" and status.get("lockedVersion") == 2)
    assert status["version"] == 3
    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/rev", "by hand"))
    await locks.data("c1", name, {"rev": "2"})


def web(name: str) -> Object:
    """A Deployment, in a manner of writing that the API server changes."""
    labels = {"app": name}
    container = {"name": "web", "image": "web", "resources": {"limits": {"cpu": "1000m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return obj(DEPLOYMENT, name, spec=spec)


@pytest.mark.check("hpo-77")
async def test_no_stray_copies(helm: Helm, locks: Locks, admin: Api) -> None:
    """An object without namespace is kept in the release namespace and appears nowhere else."""
    name = f"stray-{token()}"
    await locks.namespace(name)
    await helm.install(name, name, web(name), config_map(name, {"a": "1"}))
    await locks.lock(name, name, name)
    await locks.locked(name)

    await locks.edit(CONFIG_MAP, name, name, ("replace", "/data/a", "x"))
    await locks.edit(DEPLOYMENT, name, name, ("replace", "/spec/replicas", 1))
    await locks.data(name, name, {"a": "1"})
    await locks.until(DEPLOYMENT, name, name, lambda found: found["spec"]["replicas"] == 0)
    await locks.swept()
    for kind in (CONFIG_MAP, DEPLOYMENT):
        found = [each["metadata"]["namespace"] for each in (await admin.list(kind)).items if each["metadata"]["name"] == name]
        assert found == [name], kind.kind


@pytest.mark.check("hpo-78")
async def test_status_changes_cause_no_write(helm: Helm, locks: Locks, admin: Api, locker: Knative, audit_log: AuditLog) -> None:
    """A hundred changes to the status of a locked Deployment: not a single write request to it, no Event, no new status."""
    name = f"busy-{token()}"
    await locks.namespace(name)
    await helm.install(name, name, web(name))
    await locks.lock(name, name, name)
    await locks.locked(name)
    await locks.until(DEPLOYMENT, name, name, lambda found: found.get("status"))
    await locker.drain()
    said = [await locks.events(name, place) for place in (SYSTEM, name)]
    before, requests = await admin.get(HELM_RELEASE, name, SYSTEM), written(audit_log, name)
    heard: list[str] = []
    locker.on_delivery.append(lambda trigger, event, *_: heard.append(trigger) if event.extensions.get("name") == name else None)

    versions = set()
    for number in range(100):
        condition_ = {"type": "Busy", "status": "True", "reason": f"R{number}", "message": ""}
        body = obj(DEPLOYMENT, name, name, status={"conditions": [condition_]})
        live = await admin.apply(DEPLOYMENT, body, subresource="status")
        versions.add(live["metadata"]["resourceVersion"])
    await locks.swept()

    assert len(versions) == 100
    assert "lock-enforcement-locked" in heard
    assert written(audit_log, name) == requests
    assert [await locks.events(name, place) for place in (SYSTEM, name)] == said
    assert [event["reason"] for event in said[0]] == ["Locked"]
    assert await admin.get(HELM_RELEASE, name, SYSTEM) == before
    found = await admin.get(DEPLOYMENT, name, name)
    assert found is not None
    assert [each["reason"] for each in found["status"]["conditions"] if each["type"] == "Busy"] == ["R99"]


@pytest.mark.check("hpo-82")
async def test_the_lock_is_never_in_the_way_of_helm_4(helm4: Helm, locks: Locks, admin: Api) -> None:
    """After drift was put right Helm owns the fields again: its server-side apply without force changes and prunes them.

    What it does meet in a conflict is a field that somebody else took.
    """
    name = f"four-{token()}"
    await locks.namespace(name)
    await helm4.install(name, name, config_map("c1", {"a": "1", "b": "1"}), config_map("c2", {"a": "1"}))
    record = await locks.until(SECRET, f"sh.helm.release.v1.{name}.v1", name, bool)
    assert unpacked(record)["apply_method"] == "ssa"
    await locks.lock(name, name, name)
    await locks.locked(name)
    for value in ("x", "y"):
        await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", value))
        await locks.data("c1", name, {"a": "1", "b": "1"})
    await admin.delete(CONFIG_MAP, "c2", name)
    for each, keys in (("c1", {"a", "b"}), ("c2", {"a"})):
        live = await locks.until(CONFIG_MAP, each, name, lambda found: not owners(found, "tenantry-lock-enforcement"))
        assert owners(live, "helm") == keys

    await helm4.upgrade(name, name, config_map("c1", {"a": "2"}), config_map("c2", {"a": "2"}))
    await locks.locked(name, 2)
    for each in ("c1", "c2"):
        await locks.data(each, name, {"a": "2"})

    await locks.edit(HELM_RELEASE, name, SYSTEM, ("add", "/spec/suspend", True))
    await locks.status(name, lambda status: condition(status, "Locked").get("reason") == "Paused")
    await admin.apply(CONFIG_MAP, config_map("c1", {"a": "taken"}, namespace=name))
    chart = helm4.chart(name, config_map("c1", {"a": "3"}))
    code, said = await helm4.run("upgrade", name, chart, "-n", name, check=False)
    assert code != 0
    assert "conflict" in said


def owners(live: Object, manager: str) -> set[str]:
    """The data keys that a manager owns."""
    fields = [entry["fieldsV1"].get("f:data", {}) for entry in live["metadata"]["managedFields"] if entry["manager"] == manager]
    return {step.removeprefix("f:") for below in fields for step in below if step != "."}


@pytest.mark.check("hpo-83")
async def test_what_cannot_be_changed_back_is_made_anew(helm: Helm, locks: Locks, admin: Api) -> None:
    """A Service's type and a Job's template are put right by making the object anew once, with one Event that names it."""
    name = f"anew-{token()}"
    await locks.namespace(name)
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}}
    job = obj(JOB, "job", spec={"suspend": True, "template": template})
    await helm.install(name, name, job, obj(SERVICE, "svc", spec={"ports": [{"port": 80}], "type": "ClusterIP"}))
    await locks.lock(name, name, name)
    await locks.locked(name)
    before = {kind: await locks.until(kind, each, name, bool) for kind, each in ((JOB, "job"), (SERVICE, "svc"))}

    await locks.edit(SERVICE, "svc", name, ("replace", "/spec/type", "NodePort"))
    image = "/spec/template/spec/containers/0/image"
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("add", "/spec/suspend", True))
    await locks.status(name, lambda status: condition(status, "Locked").get("reason") == "Paused")
    await admin.delete(JOB, "job", name)
    await locks.away(JOB, "job", name)
    changed = {**template["spec"], "containers": [{"name": "work", "image": "other"}]}
    spec = {"suspend": True, "template": {"spec": changed}}
    await admin.create(JOB, obj(JOB, "job", name, labels, before[JOB]["metadata"]["annotations"], spec=spec))
    await locks.edit(HELM_RELEASE, name, SYSTEM, ("remove", "/spec/suspend", None))

    for kind, each, path in ((SERVICE, "svc", "spec.type"), (JOB, "job", "spec.template.spec.containers[work].image")):
        old = before[kind]["metadata"]["uid"]
        live = await locks.until(kind, each, name, lambda found, old=old: found["metadata"]["uid"] != old and right(found))  # type: ignore[misc]
        assert right(live), image
        told = [event for event in await locks.events(each, name) if "lock" in event["reportingController"]]
        assert [event["reason"] for event in told][-1] == "Recreated"
        assert path in told[-1]["note"]
        assert f"{kind.kind} {name}/{each}" in told[-1]["note"]
        assert len(told) == 1


async def test_a_quantity_beyond_all_bounds(helm: Helm, locks: Locks, admin: Api, locker: Knative) -> None:
    """One that Kubernetes takes drifts and is put back like any other; one that it refuses is told, and the rest is kept."""
    name, huge = f"huge-{token()}", "1e1000000"
    await locks.namespace(name)
    await locks.lockable(RESOURCE_QUOTA)
    quota = obj(RESOURCE_QUOTA, "q", spec={"hard": {"limits.cpu": "2"}})
    other = {**quota, "metadata": {"name": "other"}, "spec": {"hard": {"limits.cpu": huge}}}
    await helm.install(name, name, quota, json.dumps(other), config_map("c1", {"a": "1"}))
    await locks.lock(name, name, name)
    await locks.locked(name)
    for each, drifted, kept in (("q", huge, "2"), ("other", "2", "10e999999")):
        await locks.edit(RESOURCE_QUOTA, each, name, ("replace", "/spec/hard/limits.cpu", drifted))
        await locks.until(RESOURCE_QUOTA, each, name, lambda found, kept=kept: found["spec"]["hard"]["limits.cpu"] == kept)  # type: ignore[misc]

    (record,) = (await admin.list(SECRET, name, label_selector="owner=helm")).items
    no_number = {**quota, "spec": {"hard": {"limits.cpu": "1e99999999999999999999"}}}
    parts = [{**part, "metadata": {**part["metadata"], "namespace": name}} for part in (no_number, config_map("c1", {"a": "1"}))]
    edited = copy_of({**record, "apiVersion": "v1"}, name, "---\n".join(json.dumps(part) + "\n" for part in parts))
    await locks.edit(SECRET, record["metadata"]["name"], name, ("replace", "/data/release", edited["data"]["release"]))
    status = await locks.status(name, lambda found: condition(found, "Complete").get("status") == "False")
    told = condition(status, "Complete")
    assert told["reason"] == "Refused"
    assert f"ResourceQuota {name}/q was refused" in told["message"]
    assert "quantity" in told["message"]
    assert "correct the chart" in told["message"]
    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", "2"))
    await locker.sweep(FUNCTION)  # what is watched changes with the kinds of the manifest
    await locks.until(CONFIG_MAP, "c1", name, lambda found: found["data"] == {"a": "1"})


def right(found: Object) -> bool:
    """Whether a Job or Service is as in the chart."""
    spec = found["spec"]
    return bool(
        spec["type"] == "ClusterIP"
        if found["kind"] == "Service"
        else spec["template"]["spec"]["containers"][0]["image"] == "work"
    )
