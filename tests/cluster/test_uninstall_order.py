"""The order of ``tenantry uninstall``: what sends events, then what runs functions, and at last their rights."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from times import LEFT_TO_MAKE_WHOLE
from upping import tenantry

from tenantry.api import Api
from tenantry.api.errors import NotFound
from tenantry.local import uninstall
from tenantry.local.control_plane import ControlPlane
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.followed import stand_in
from tenantry.local.install import INSTALL_MANAGER, install, until_served
from tenantry.local.presence import END, Presence
from tenantry.local.removal import Files
from tenantry.local.uninstall import Uninstaller
from tenantry.model.config import Config
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    API_SERVER_SOURCE,
    CLUSTER_ROLE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    LEASE,
    NAMESPACE,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Kind,
    is_terminating,
)
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.dead_letters import NAME as SINK
from tenantry.serving.dead_letters.letter import now, unreadable
from tenantry.serving.dead_letters.store import Store
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTION = "scope-binding"
TRIGGER = Kind("eventing.knative.dev/v1", "Trigger", "triggers")
KNATIVE_SERVICE = Kind("serving.knative.dev/v1", "Service", "services")
PRIORITY_CLASS = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)
JOB_SINK = Kind("sinks.knative.dev/v1alpha1", "JobSink", "jobsinks")
HOLD = "tests.tenantry.dev/hold"

pytestmark = [pytest.mark.no_policies, LEFT_TO_MAKE_WHOLE]


@pytest_asyncio.fixture(loop_scope="session")
async def pod(control_plane: ControlPlane, admin: Api) -> AsyncIterator[str]:
    """A function as in a cluster, with its source, Trigger and rights; its pod's name.  The pod ends when a finalizer is gone."""
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:
        await install(api, [FUNCTION], Config(), lambda _: None)
        for kind in (API_SERVER_SOURCE, TRIGGER, KNATIVE_SERVICE):
            await _serve(api, kind)
        for kind in (API_SERVER_SOURCE, TRIGGER):
            await api.apply(kind, next(each for each in Files.read().sending if each["kind"] == kind.kind))
        await _deploy(api, FUNCTION)
        (service,) = documents(deployment_folder("knative") / f"{FUNCTION}/service.yaml")
        await api.apply(KNATIVE_SERVICE, service)
    name = await _held_pod(admin, FUNCTION)
    yield name
    await _let_go(admin, name)


async def _serve(api: Api, kind: Kind) -> None:
    await api.apply(CUSTOM_RESOURCE_DEFINITION, stand_in(kind))
    await until_served(api, stand_in(kind))


async def _deploy(api: Api, name: str) -> None:
    """A Deployment, and the PriorityClass that it names, which only clusters with nodes get."""
    for file, kind in (("base/priority", PRIORITY_CLASS), (f"overlays/deployment/{name}", DEPLOYMENT)):
        for each in documents(deployment_folder("knative") / f"{file}.yaml"):
            if each["kind"] == kind.kind:
                await api.apply(kind, each)


async def _held_pod(admin: Api, name: str) -> str:
    """Wait for the pod of a Deployment, and give it a finalizer; returns its name."""
    selector = f"app.kubernetes.io/name={name}"
    pods = await eventually(
        lambda: admin.list(POD, SYSTEM_NAMESPACE, label_selector=selector),
        lambda found: found.items,
        within=30,
        what="the Deployment has a pod",
    )
    pod = str(pods.items[0]["metadata"]["name"])
    await admin.json_patch(POD, pod, SYSTEM_NAMESPACE, [{"op": "add", "path": "/metadata/finalizers", "value": [HOLD]}])
    return pod


async def _let_go(admin: Api, pod: str) -> None:
    if (await admin.get(POD, pod, SYSTEM_NAMESPACE) or {}).get("metadata", {}).get("finalizers"):
        await admin.json_patch(POD, pod, SYSTEM_NAMESPACE, [{"op": "remove", "path": "/metadata/finalizers"}])


async def _rights(admin: Api) -> list[bool]:
    """Whether account, role and policy of the function are there."""
    return [
        await admin.get(SERVICE_ACCOUNT, FUNCTION, SYSTEM_NAMESPACE) is not None,
        await admin.get(CLUSTER_ROLE, f"tenantry-{FUNCTION}") is not None,
        bool((await admin.list(ADMISSION_POLICY)).items),
    ]


async def test_rights_go_when_the_last_pod_has_gone(control_plane: ControlPlane, admin: Api, pod: str) -> None:
    """Source and Trigger go first, then the function; as long as its pod is there it keeps its rights."""
    said: list[str] = []
    ending = asyncio.create_task(Uninstaller(admin, Config(), said.append, timeout_s=60).run())

    async def stopping() -> bool:
        waits = any(line.startswith("waiting for") for line in said)
        return waits and is_terminating(await admin.get(POD, pod, SYSTEM_NAMESPACE))

    assert await eventually(stopping, within=30)
    for kind in (API_SERVER_SOURCE, TRIGGER, KNATIVE_SERVICE):
        assert [each for each in (await admin.list(kind)).items if not is_terminating(each)] == []
    assert await _rights(admin) == [True, True, True]
    command = ("uninstall", "--yes", "-o", "json", "--timeout", "1")
    code, output, errors = await tenantry(*command, KUBECONFIG=str(control_plane.kubeconfig))
    assert code == 1
    assert f"Pod {SYSTEM_NAMESPACE}/{pod}" in json.loads(output)["remaining"]
    assert "at the pods. Then call this again." in errors
    assert not ending.done()
    assert await _rights(admin) == [True, True, True]

    await _let_go(admin, pod)
    with contextlib.suppress(NotFound):  # the garbage collector learns of the stand-in for Knative's kind half a minute later
        patch = [{"op": "remove", "path": "/metadata/finalizers"}]
        await admin.json_patch(KNATIVE_SERVICE, FUNCTION, SYSTEM_NAMESPACE, patch)
    assert (await ending).remaining == []
    assert await _rights(admin) == [False, False, False]
    kinds = ("ApiServerSource", "Trigger", "Deployment", "ValidatingAdmissionPolicy", "ClusterRole", "ServiceAccount")
    order = [next(number for number, line in enumerate(said) if line.startswith(f"removed {kind} ")) for kind in kinds]
    assert order == sorted(order), said


async def _before_is_gone(admin: Api) -> None:
    await eventually(
        lambda: admin.get(NAMESPACE, SYSTEM_NAMESPACE),
        lambda found: not is_terminating(found),
        within=30,
        what="the namespace of the installation before is gone",
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uninstall, "ANSWER_S", 0.5)
    monkeypatch.setattr(uninstall, "POLL_S", 0.1)


@pytest.mark.usefixtures("impatient")
async def test_a_lease_that_nobody_answers_for_holds_nothing_up(control_plane: ControlPlane, admin: Api) -> None:
    """What a killed `tenantry up` left is removed; one that answers is waited for."""
    said: list[str] = []
    await _before_is_gone(admin)
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:
        await install(api, [FUNCTION], Config(), lambda _: None)
        killed = Presence(api)
        await api.apply(LEASE, killed._lease({"holderIdentity": "elsewhere/1"}))
        async with Presence(api) as alive:
            uninstaller = Uninstaller(api, Config(), said.append, timeout_s=1)
            done = await uninstaller.run()
            assert alive.asked.is_set()
            (left,) = (await api.list(LEASE, SYSTEM_NAMESPACE)).items
            assert left["metadata"]["name"] == alive.name
            assert left["metadata"]["annotations"][END] == "true"
        assert [each for each in done.remaining if alive.name in each]
        assert "elsewhere/1 does not answer: nothing runs there any more" in said
        assert await _rights(api) == [True, True, True]

        done = await Uninstaller(api, Config(), said.append, timeout_s=60).run()
        assert done.remaining == []
        assert await _rights(api) == [False, False, False]


async def test_dead_letters_go_with_everything_that_keeps_them(control_plane: ControlPlane, admin: Api) -> None:
    """The store, the sink's identity and rights, and the JobSink of earlier installations go; the sink's pod is waited for."""
    await _before_is_gone(admin)
    async with await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=control_plane.kubeconfig) as api:
        await install(api, [FUNCTION], Config(), lambda _: None)
        await _serve(api, JOB_SINK)
        labels = {"app.kubernetes.io/part-of": "tenantry"}
        await api.apply(JOB_SINK, obj(JOB_SINK, "tenantry-dead-letters", SYSTEM_NAMESPACE, labels))
        await _deploy(api, SINK)
        await Store(api).change(lambda book: book.add(unreadable("/scope-binding", "no event", now())))
        pod = await _held_pod(admin, SINK)
        try:
            done = await Uninstaller(api, Config(), lambda _: None, timeout_s=1).run()
            assert f"Pod {SYSTEM_NAMESPACE}/{pod}" in done.remaining
            assert await api.get(ROLE, "tenantry-dead-letters", SYSTEM_NAMESPACE) is not None
        finally:
            await _let_go(admin, pod)
        done = await Uninstaller(api, Config(), lambda _: None, timeout_s=60).run()

    assert done.remaining == []
    for kind, name in (
        (CONFIG_MAP, "tenantry-dead-letters"),
        (SERVICE_ACCOUNT, SINK),
        (ROLE, "tenantry-dead-letters"),
        (ROLE_BINDING, "tenantry-dead-letters"),
        (JOB_SINK, "tenantry-dead-letters"),
    ):
        assert await admin.get(kind, name, SYSTEM_NAMESPACE) is None, name
    assert is_terminating(await admin.get(NAMESPACE, SYSTEM_NAMESPACE) or {"metadata": {"deletionTimestamp": "gone"}})
