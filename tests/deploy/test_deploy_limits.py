"""A real API server holds pods to our quotas, limits, priority and budget, and the pages say the same (a-61)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import manifests
import pytest
import pytest_asyncio
from knative_pods import HELM, SYSTEM
from manifests import Body, Document, kind_of, within
from plain_pods import CONTROLLER_S, PLAIN, pod
from test_deploy_services import RESTRICTED
from times import LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.model.kinds import ADMISSION_POLICY, DEPLOYMENT, NAMESPACE, POD, SECRET, SERVICE_ACCOUNT, Kind, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

GUARD = "tenantry-guard-priority"
BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
QUEUE_PROXY = {"name": "queue-proxy", "image": "image.invalid/x", "securityContext": RESTRICTED}
"""The container that Knative Serving 1.22 puts beside a function's (``pkg/reconciler/revision/resources/queue.go``)."""
NOT_HERE = {"serviceAccountName", "priorityClassName", "containerConcurrency", "timeoutSeconds"}
"""Of a template what only Knative knows, and what is only in our own namespace."""


def shipped(kind: str, namespace: str = "", name: str = "") -> Body:
    found = manifests.resolve(manifests.ROOT / "knative")
    (body,) = [d.body for d in found if d.kind == kind and namespace in ("", d.namespace) and name in ("", d.name)]
    return body


# -- how much ----------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(loop_scope="session")
async def limited(admin: Api, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A namespace with the labels, the quota and the limits of one of ours, which the parameter names."""
    ours = shipped("Namespace", name=request.param)
    name = f"limits-{secrets.token_hex(4)}"
    await admin.create(NAMESPACE, {**ours, "metadata": {"name": name, "labels": ours["metadata"]["labels"]}})
    for kind in ("ResourceQuota", "LimitRange"):
        body = within(shipped(kind, namespace=request.param), name)
        await admin.create(kind_of(body), body)

    async def counted() -> bool:
        quota = await admin.get(QUOTA, "tenantry", name)
        return quota is not None and (quota.get("status") or {}).get("hard") == quota["spec"]["hard"]

    await eventually(counted, within=CONTROLLER_S)
    await eventually(lambda: admin.get(SERVICE_ACCOUNT, "default", name), within=CONTROLLER_S)
    yield name
    await admin.delete(NAMESPACE, name)


async def fill(admin: Api, kind: Kind, bodies: Iterable[Object]) -> tuple[int, str]:
    """Create objects; how many were taken, and what was said about the others."""
    taken, told = 0, ""
    for body in bodies:
        try:
            await admin.create(kind, body)
        except ApiError as error:
            told = str(error)
        else:
            taken += 1
    return taken, told


@pytest.mark.check("a-61")
@pytest.mark.parametrize("limited", [SYSTEM], indirect=True)
async def test_what_piles_up_in_our_namespace_is_refused(admin: Api, limited: str) -> None:
    """Beyond the quota no Secret, Job, claim or load balancer is made; everything that an installation runs has its place."""
    hard = shipped("ResourceQuota", namespace=SYSTEM)["spec"]["hard"]
    templates = manifests.pod_templates(manifests.resolve(manifests.ROOT / "knative"))
    queue_proxy = {**QUEUE_PROXY, "resources": {"requests": {"cpu": "25m"}}}
    pods = []
    for name, template in templates:
        spec = {key: value for key, value in template["spec"].items() if key not in NOT_HERE}
        service = ":Service/" in name
        if service:  # two instances, of the revision that goes and of the one that comes
            spec = {**spec, "containers": [*spec["containers"], queue_proxy]}
        pods += [pod(limited, spec) for _ in range(4 if service else 1)]

    assert await fill(admin, POD, pods) == (len(pods), "")
    for number in range(8):  # adapters that Knative makes say nothing about resources
        made = await admin.create(POD, pod(limited, PLAIN, f"adapter-{number}"))
        assert made["spec"]["containers"][0]["resources"]["limits"] == {"memory": "256Mi"}

    many = (obj(SECRET, f"s-{n}", limited) for n in range(int(hard["secrets"]) + 5))
    taken, told = await fill(admin, SECRET, many)
    assert taken == int(hard["secrets"])
    assert "exceeded quota: tenantry" in told
    others: dict[str, Object] = {
        "Job": {"template": {"spec": {**PLAIN, "restartPolicy": "Never"}}},
        "Service": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        "PersistentVolumeClaim": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    for kind, spec in others.items():
        version = "batch/v1" if kind == "Job" else "v1"
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": "x", "namespace": limited}, "spec": spec}
        with pytest.raises(ApiError, match="exceeded quota: tenantry"):
            await admin.create(kind_of(body), body)


async def refused(admin: Api, namespace: str) -> bool:
    """Whether one more Pod is beyond the quota, which the controller counts anew from what it has seen of Pods by then."""
    try:
        more = await admin.create(POD, pod(namespace, PLAIN))
    except ApiError as error:
        return "exceeded quota: tenantry" in error.message
    await admin.delete(POD, more["metadata"]["name"], namespace)
    return False


@pytest.mark.check("a-61")
@pytest.mark.parametrize("limited", [HELM], indirect=True)
async def test_helm_jobs_wait_for_each_other_and_are_bounded(admin: Api, limited: str) -> None:
    """So many Helms as the quota says work at a time, each with a limit of memory; the next one waits until one has ended."""
    hard = shipped("ResourceQuota", namespace=HELM)["spec"]["hard"]
    (made, *_) = await asyncio.gather(*(admin.create(POD, pod(limited, PLAIN)) for _ in range(int(hard["pods"]))))

    assert made["spec"]["containers"][0]["resources"]["limits"] == {"memory": "512Mi"}
    await eventually(lambda: refused(admin, limited), within=CONTROLLER_S, what="one more has to wait")
    await set_status(admin, made, {"phase": "Succeeded"})
    await eventually(
        lambda: fill(admin, POD, [pod(limited, PLAIN)]), lambda found: found[0] == 1, within=CONTROLLER_S, what="next one"
    )


# -- who goes first ----------------------------------------------------------------------------------------


@pytest.mark.check("a-61", without=GUARD)
async def test_nobody_else_has_our_priority(admin: Api, system: str, identity: Callable[..., Awaitable[Path]]) -> None:
    """The class is for tenantry-system: elsewhere a pod that names it is refused with the field and the way out; no other is."""
    await identity("namespace-registration")
    greedy = pod(system, {**PLAIN, "priorityClassName": "tenantry"})

    async def told() -> str:
        try:
            await admin.create(POD, greedy, dry_run=True)
        except ApiError as error:
            return str(error)
        return ""

    assert "spec.priorityClassName: the class tenantry is kept for the namespace tenantry-system" in await eventually(told)
    assert await admin.create(POD, pod(system, PLAIN), dry_run=True)

    async def checked() -> Any:
        policy = await admin.get(ADMISSION_POLICY, GUARD)
        return (policy or {}).get("status")

    assert not (await eventually(checked, within=CONTROLLER_S))["typeChecking"].get("expressionWarnings")
    await eventually(lambda: admin.get(SERVICE_ACCOUNT, "default", SYSTEM), within=CONTROLLER_S)
    ours = await admin.create(POD, pod(SYSTEM, greedy["spec"]), dry_run=True)
    assert (ours["spec"]["priority"], ours["spec"]["preemptionPolicy"]) == (1_000_000, "Never")


def test_sources_and_deployments_name_the_class(documents: list[Document]) -> None:
    """Every pod template that may name a class names ours: those of Knative Services may not without a feature flag."""
    for name, template in manifests.pod_templates(documents):
        named = template["spec"].get("priorityClassName")
        serving = ":Service/" in name
        assert named == (None if serving else "tenantry"), name


# -- disruption --------------------------------------------------------------------------------------------


async def set_status(admin: Api, body: Object, status: Object) -> None:
    """Write a pod's status as a kubelet would."""
    metadata = body["metadata"]
    path = POD.path(metadata["namespace"], metadata["name"]) + "/status"
    await admin.request("PUT", path, None, {**body, "status": status})


@pytest.mark.check("a-61")
async def test_a_drain_takes_one_instance_at_a_time(admin: Api, system: str) -> None:
    """Of functions that are ready one is evicted and the next refused until it is back; one that is not ready holds nobody up."""
    budget = within(shipped("PodDisruptionBudget", name="tenantry-functions"), system)
    await admin.apply(BUDGET, budget)
    names = ("namespace-registration", "lock-enforcement")
    for name in names:
        labels = {"app.kubernetes.io/part-of": "tenantry", "app.kubernetes.io/name": name}
        template = {"metadata": {"labels": labels}, "spec": PLAIN}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        await admin.create(DEPLOYMENT, obj(DEPLOYMENT, name, system, spec=spec))

    async def pods() -> list[Object]:
        found = (await admin.list(POD, system, label_selector="app.kubernetes.io/part-of=tenantry")).items
        return [each for each in found if not each["metadata"].get("deletionTimestamp")]

    async def both() -> list[Object]:
        found = await pods()
        return found if len(found) == 2 else []

    async def healthy() -> int:
        found = await admin.get(BUDGET, "tenantry-functions", system)
        status = (found or {}).get("status") or {}
        current = status.get("observedGeneration") == (found or {})["metadata"]["generation"]
        return int(status.get("currentHealthy", 0)) if current else -1

    async def evict(name: str) -> str:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": system}}
        try:
            await admin.request("POST", POD.path(system, name) + "/eviction", None, body)
        except ApiError as error:
            return str(error)
        return ""

    async def ready(count: int) -> bool:
        for each in await both():
            if each["status"]["phase"] == "Pending":
                # On a node it takes its time to end, as it does where there is a kubelet.
                target = {"apiVersion": "v1", "kind": "Node", "name": "somewhere"}
                place = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": each["metadata"]["name"]}, "target": target}
                await admin.request("POST", POD.path(system, each["metadata"]["name"]) + "/binding", None, place)
                state = [{"type": "Ready", "status": "True"}]
                placed = await admin.get(POD, each["metadata"]["name"], system)
                await set_status(admin, placed or each, {"phase": "Running", "conditions": state})
        return await healthy() == count

    await eventually(lambda: ready(2), within=CONTROLLER_S)
    first, second = (each["metadata"]["name"] for each in await pods())
    assert await evict(first) == ""
    assert "violate the pod's disruption budget" in await evict(second)

    await admin.request("DELETE", POD.path(system, first), None, {"gracePeriodSeconds": 0})  # it has ended
    await eventually(lambda: ready(2), within=CONTROLLER_S)
    (sick,) = [each for each in await pods() if each["metadata"]["name"] == second]
    await set_status(admin, sick, {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]})
    await eventually(healthy, lambda found: found == 1, within=CONTROLLER_S, what="noticed")
    assert await evict(second) == ""


# -- what the pages say ------------------------------------------------------------------------------------


Figures = dict[str, tuple[str, str, str, float]]


def sizing() -> Figures:
    """The table of docs/running.md: request of CPU and memory, limit, largest measured MiB (0: not measured) by service."""
    text = (manifests.ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    section = text.partition("### Sizing\n")[2].partition("\n### ")[0]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| `")]
    return {name: (cpu, memory, limit, float(measured.split(" ")[0] or 0)) for name, cpu, memory, limit, measured in rows}


@pytest.mark.check("a-61")
def test_pages_and_manifests_say_the_same_about_memory(documents: list[Document]) -> None:
    """Requests and limits stand in the page as they are, and a quarter of each limit is left above the largest figure."""
    figures = sizing()
    services = [d for d in documents if d.kind in ("Service", "Deployment") and "template" in d.spec]

    assert {d.name for d in services} == figures.keys()
    assert {*manifests.services()} < figures.keys()
    for service in services:
        (container,) = service.spec["template"]["spec"]["containers"]
        cpu, memory, limit, measured = figures[service.name]
        resources = container["resources"]
        assert resources == {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}}, str(service)
        assert limit.endswith("Mi"), limit
        assert measured <= 0.75 * float(limit.removesuffix("Mi")), str(service)


def test_pages_say_the_same_about_what_was_measured() -> None:
    """The largest figure of the README is the one that the limit is held against."""
    text = (manifests.ROOT / "README.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| memory of namespace-registration:")]
    numbers = row.split("|")[2].replace("MiB", "").split(",")

    assert max(map(float, numbers)) == sizing()["namespace-registration"][3]


@pytest.mark.check("a-61")
def test_pages_name_the_quotas() -> None:
    """Each figure of the quotas and limits stands in the page."""
    text = (manifests.ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    section = text.partition("### Quotas and limits\n")[2].partition("\n### ")[0]
    lines = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in section.splitlines()]
    rows = {cells[0]: cells[1:] for cells in lines}
    hard = {each: shipped("ResourceQuota", namespace=each)["spec"]["hard"] for each in (SYSTEM, HELM)}

    for resource in hard[SYSTEM].keys() | hard[HELM].keys():
        assert rows[resource] == [hard[SYSTEM].get(resource, ""), hard[HELM].get(resource, "")], resource
