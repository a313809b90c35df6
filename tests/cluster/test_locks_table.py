"""Every kind of object against every kind of drift, on a release that real Helm made; manifests that cannot be kept whole."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from locking import (
    DEPLOYMENT,
    FUNCTION,
    JOB,
    POD,
    PRIORITY_CLASS,
    SERVICE,
    SYSTEM,
    Helm,
    Locks,
    condition,
    config_map,
    locking,
    pod_hook,
    token,
)
from times import CONTROLLER_S, POLICY_S, PROJECTS_S

from lock_enforcement.fields import drifted, locked_fields
from lock_enforcement.locks import resource_name
from tenantry.api import Api
from tenantry.api.errors import ConflictError
from tenantry.local.knative import Knative
from tenantry.model.comparison import Schema, shown
from tenantry.model.kinds import (
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    HORIZONTAL_POD_AUTOSCALER,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
)
from tenantry.testing import eventually
from tenantry.testing.helm import packed, unpacked
from tenantry.testing.objects import obj

ADMISSION = "admissionregistration.k8s.io/v1"
MUTATING_POLICY = Kind(ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", namespaced=False)
MUTATING_BINDING = Kind(ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", namespaced=False)
NAME = f"table-{token()}"
GROUP = f"{NAME}.example"


@dataclass(frozen=True)
class Row:
    """A kind with its manifest, and a change by hand to a field that the manifest names."""

    kind: Kind
    manifest: Object
    path: str
    value: Any

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return NAME if self.kind.namespaced else ""

    def same(self, live: Object, schema: Schema) -> bool:
        return not drifted(locked_fields(self.manifest, self.namespace), live, schema)


def row(kind: Kind, path: str, changed: Any, name: str = NAME, **fields: Any) -> Row:
    return Row(kind, obj(kind, name, labels={"chart.example/part": "one"}, **fields), path, changed)


PODS = {
    "metadata": {"labels": {"app": NAME}},
    "spec": {
        "restartPolicy": "Always",
        "containers": [
            {"name": "web", "image": "web", "env": [{"name": "A", "value": "1"}], "resources": {"limits": {"cpu": "1000m"}}}
        ],
    },
}
MEMORY = {"resources": {"limits": {"memory": "1024Mi"}}}
WORK = {"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}}
RIGHT = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
SCHEMA = {"openAPIV3Schema": {"type": "object", "description": "a thing", "x-kubernetes-preserve-unknown-fields": True}}
GIVEN = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME}
ROWS = [
    row(
        DEPLOYMENT,
        "/spec/template/spec/containers/0/env/0/value",
        "2",
        spec={"replicas": 1, "selector": {"matchLabels": {"app": NAME}}, "template": PODS},
    ),
    row(SERVICE, "/spec/ports/0/targetPort", 81, spec={"selector": {"app": NAME}, "ports": [{"port": 80, "targetPort": 80}]}),
    row(CONFIG_MAP, "/data/a", "2", data={"a": "1"}),
    row(SECRET, "/data/a", "Mg==", stringData={"a": "1"}),
    row(ROLE, "/rules/0/verbs", ["get", "list"], rules=[RIGHT]),
    row(ROLE_BINDING, "/subjects/-", {"apiGroup": GIVEN["apiGroup"], "kind": "User", "name": "eve"},
        roleRef=GIVEN, subjects=[{"apiGroup": GIVEN["apiGroup"], "kind": "User", "name": "alice"}]),
    row(
        CUSTOM_RESOURCE_DEFINITION,
        "/spec/versions/0/schema/openAPIV3Schema/description",
        "something else",
        name=f"things.{GROUP}",
        spec={
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": SCHEMA}],
        },
    ),
    row(JOB, "/spec/parallelism", 3, spec={"suspend": True, "parallelism": 1, "template": WORK}),
    row(PRIORITY_CLASS, "/description", "other", value=1, description="one"),
]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def knative_(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    return await flawlessly(locking(interruptedGraceSeconds=2), functions=[FUNCTION])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def locks(admin: Api, helm: Helm, knative_: Knative) -> AsyncIterator[Locks]:
    made = Locks(admin, knative_)
    await made.lockable(*(each.kind for each in ROWS))
    await made.namespace(NAME)
    await helm.install(NAME, NAME, *(each.manifest for each in ROWS))
    await made.lock(
        NAME, NAME, NAME, allow={"clusterKinds": sorted(resource_name(each.kind) for each in ROWS if not each.namespace)}
    )
    await made.locked(NAME)
    yield made
    await made.leave()


async def edit(locks: Locks, each: Row) -> str:
    await locks.edit(each.kind, each.name, each.namespace, ("add", each.path, each.value))
    return ""


async def delete(locks: Locks, each: Row) -> str:
    live = await locks.until(each.kind, each.name, each.namespace, bool)
    await locks.admin.delete(each.kind, each.name, each.namespace)
    return str(live["metadata"]["uid"])


async def label(locks: Locks, each: Row) -> str:
    changes = [("chart.example~1part", "two"), ("people.example~1team", "blue")]
    await locks.edit(each.kind, each.name, each.namespace, *[("add", f"/metadata/labels/{key}", value) for key, value in changes])
    return ""


async def own(locks: Locks, each: Row) -> str:
    namespace = await locks.until(NAMESPACE, NAME, "", bool)
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": NAME, "uid": namespace["metadata"]["uid"]}
    await locks.edit(each.kind, each.name, each.namespace, ("add", "/metadata/ownerReferences", [owner]))
    await edit(locks, each)
    return ""


@pytest.mark.parametrize("drift", [edit, label, own, delete])
async def test_every_kind_of_drift_is_put_right(locks: Locks, drift: Callable[[Locks, Row], Awaitable[str]]) -> None:
    """What the manifest names is put back or made again for each kind; labels and owners that others add stay."""
    gone = await asyncio.gather(*(drift(locks, each) for each in ROWS))
    schemas = await asyncio.gather(*(locks.admin.schema(each.kind) for each in ROWS))
    for each, uid, schema in zip(ROWS, gone, schemas, strict=True):

        def right(live: Object, each: Row = each, uid: str = uid, schema: Schema = schema) -> bool:
            ours = [entry for entry in live["metadata"]["managedFields"] if entry["manager"].startswith("tenantry-")]
            return each.same(live, schema) and live["metadata"]["uid"] != uid and not ours

        live = await locks.until(each.kind, each.name, each.namespace, right)
        if drift is label:
            assert live["metadata"]["labels"]["people.example/team"] == "blue"
        if drift is own:
            assert live["metadata"]["ownerReferences"][0]["kind"] == "Namespace"
        if drift is delete:
            assert live["metadata"]["annotations"]["meta.helm.sh/release-name"] == NAME
    await locks.locked(NAME)


async def test_an_autoscaler_may_scale_and_people_may_not(locks: Locks, admin: Api) -> None:
    """Replicas that a HorizontalPodAutoscaler of the Deployment sets stay; without one they are put back."""
    path = DEPLOYMENT.path(NAME, NAME) + "/scale"

    async def scale(replicas: int) -> None:
        async def done() -> bool:
            live = await admin.request("GET", path)
            with contextlib.suppress(ConflictError):  # the Deployment's controller writes too
                await admin.request("PUT", path, None, {**live, "spec": {"replicas": replicas}})
                return True
            return False

        await eventually(done, within=CONTROLLER_S)

    await scale(3)
    await locks.until(DEPLOYMENT, NAME, NAME, lambda found: found["spec"]["replicas"] == 1)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, "metrics": []}
    body = obj(HORIZONTAL_POD_AUTOSCALER, NAME, NAME, spec=spec)
    await admin.create(HORIZONTAL_POD_AUTOSCALER, body)
    await scale(4)
    await locks.edit(DEPLOYMENT, NAME, NAME, ("replace", "/spec/template/spec/containers/0/image", "evil"))
    live = await locks.until(DEPLOYMENT, NAME, NAME, lambda f: f["spec"]["template"]["spec"]["containers"][0]["image"] == "web")
    assert live["spec"]["replicas"] == 4


async def test_what_cannot_be_kept_is_told_and_the_rest_is_kept(helm: Helm, locks: Locks, admin: Api) -> None:
    """Unknown kinds, missing rights, lists, documents that do not parse, a mebibyte: told by name; the rest stays locked."""
    name = f"bad-{token()}"
    await locks.namespace(name)
    await helm.install(name, name, config_map("c1", {"a": "1"}))
    record = await locks.until(SECRET, f"sh.helm.release.v1.{name}.v1", name, bool)
    release = unpacked(record)
    many = "".join(
        f"  - {{apiVersion: v1, kind: ConfigMap, metadata: {{name: m{i}}}, data: {{a: '{'x' * 1000}'}}}}\n" for i in range(20)
    )
    release["manifest"] += (
        "---\napiVersion: nowhere.example/v1\nkind: Widget\nmetadata: {name: w}\n"
        "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: []}\n"
        "---\n# Source: bad/templates/broken.yaml\na: [b\n"
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo}\ndata: {a: '1'}\nimmutible: true\n"
        f"---\napiVersion: v1\nkind: ConfigMapList\nitems:\n{many}"
        f"---\n# {'x' * 2**20}\n"
    )
    await locks.edit(SECRET, record["metadata"]["name"], name, ("replace", "/data/release", packed(release)))
    await locks.lock(name, name, name)
    status = await locks.status(name, lambda status: condition(status, "Complete").get("status") == "False")

    message = condition(status, "Complete")["message"]
    for part in ("does not serve Widget", "LimitRange", "tenantry-lock-enforcement-kinds", "bad/templates/broken.yaml"):
        assert part in message, message
    assert status["lockedVersion"] == 1
    await locks.data("m19", name, {"a": "x" * 1000})
    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/a", "x"))
    await locks.data("c1", name, {"a": "1"})
    warnings = [event for event in await locks.events(name, SYSTEM) if event["type"] == "Warning"]
    assert "does not serve Widget" in warnings[0]["note"]

    healed = {**release, "manifest": release["manifest"][: release["manifest"].index("---\napiVersion: nowhere")]}
    await locks.edit(SECRET, record["metadata"]["name"], name, ("replace", "/data/release", packed(healed)))
    await locks.locked(name)
    assert shown(("data", "a")) == "data[a]"


@pytest.mark.check("hpo-79")
async def test_an_interrupted_upgrade_leaves_the_deployed_revision_kept(helm: Helm, locks: Locks, knative_: Knative) -> None:
    """Helm that was killed in the middle says for ever that it is at work; after the grace period that counts no more."""
    name = await locks.release(helm, "cut", config_map("c1", {"rev": "1"}))
    await locks.until(SERVICE_ACCOUNT, "default", name, bool)
    upgrade = asyncio.create_task(helm.upgrade(name, name, config_map("c1", {"rev": "2"}), pod_hook("pre-upgrade")))
    await locks.until(POD, "hook-pre-upgrade", name, bool)
    upgrade.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await upgrade
    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/rev", "by hand"))

    async def kept() -> bool:
        await knative_.sweep(FUNCTION)
        return ((await locks.admin.get(CONFIG_MAP, "c1", name)) or {})["data"] == {"rev": "1"}

    await eventually(kept, within=PROJECTS_S)
    status = await locks.status(name, lambda status: status.get("lockedVersion") == 1)
    assert (status["state"], status["version"]) == ("Transitioning", 2)


async def test_what_admission_makes_of_an_object_is_no_drift(helm: Helm, locks: Locks, admin: Api, knative_: Knative) -> None:
    """A policy that changes what Helm wrote has its way: the lock sees that it cannot win, and does not write."""
    name = f"policy-{token()}"
    await locks.namespace(name)
    await admin.create(MUTATING_POLICY, policy(name))
    await admin.create(MUTATING_BINDING, binding(name))
    probe = {**config_map("probe", {"a": "1"}), "metadata": {"name": "probe", "namespace": name}}

    async def works() -> bool:
        return (await admin.create(CONFIG_MAP, probe, dry_run=True))["data"] == {"a": "policy"}

    await eventually(works, within=POLICY_S, what="the policy is in force")
    await helm.install(name, name, config_map("c1", {"a": "1", "b": "1"}))
    await locks.lock(name, name, name)
    await locks.locked(name)
    touched = await locks.edit(CONFIG_MAP, "c1", name, ("add", "/metadata/labels/touched", "yes"))
    assert touched["data"] == {"a": "policy", "b": "1"}
    await knative_.drain()
    await knative_.sweep(FUNCTION)
    assert await admin.get(CONFIG_MAP, "c1", name) == touched
    await locks.edit(CONFIG_MAP, "c1", name, ("replace", "/data/b", "drift"))
    await locks.data("c1", name, {"a": "policy", "b": "1"})
    status = await locks.status(name, lambda status: "lastDrift" in status)
    assert status["lastDrift"]["fields"] == ["data[b]"]


async def test_what_the_server_writes_otherwise_is_no_drift(helm: Helm, locks: Locks, admin: Api, knative_: Knative) -> None:
    """Zeros that the server drops, defaults that it fills in and amounts in its own form: locked, and not written."""
    name = f"filled-{token()}"
    await locks.namespace(name)
    container = {"name": "web", "image": "web", "tty": False, "env": [{"name": "EMPTY", "value": ""}], **MEMORY}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"hostNetwork": False, "containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    rows = [
        row(DEPLOYMENT, "", None, name, spec=spec),
        row(SERVICE, "", None, name, spec={"clusterIP": "", "selector": {"app": name}, "ports": [{"port": 80}]}),
        row(ROLE_BINDING, "", None, name, roleRef=GIVEN, subjects=[{"kind": "User", "name": "alice"}]),
    ]
    await helm.install(name, name, *(each.manifest for each in rows))
    await locks.lock(name, name, name)
    await locks.locked(name)

    async def specs() -> list[Any]:
        found = [await admin.get(each.kind, name, name) or {} for each in rows]
        return [(each["metadata"]["uid"], each.get("spec"), each.get("subjects")) for each in found]

    before = await specs()
    await locks.edit(SERVICE, name, name, ("add", "/metadata/labels/touched", "yes"))
    await knative_.drain()
    await knative_.sweep(FUNCTION)
    assert await specs() == before
    assert "lastDrift" not in await locks.status(name, bool)
    await locks.edit(DEPLOYMENT, name, name, ("replace", "/spec/template/spec/containers/0/image", "evil"))
    status = await locks.status(name, lambda status: "lastDrift" in status)
    assert status["lastDrift"]["fields"] == ["spec.template.spec.containers[web].image"]


def policy(name: str) -> Object:
    """A policy that sets a field of every ConfigMap in a namespace."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    where = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [name]}]}
    change = {"expression": 'Object{data: {"a": "policy"}}'}
    return obj(
        MUTATING_POLICY,
        name,
        spec={
            "matchConstraints": {"namespaceSelector": where, "resourceRules": [rule]},
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": change}],
        },
    )


def binding(name: str) -> Object:
    """What puts a policy to work."""
    return obj(MUTATING_BINDING, name, spec={"policyName": name})
