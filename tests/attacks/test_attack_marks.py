"""Marks of ours on kinds other than namespaces: whoever may write the objects, but has no right to write marks, writes none.

The marker may write every kind that we read marks from, and its status.  The victims carry every mark of their kind.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from attackers import Attackers, refused
from people import OPERATED, ORPHANED, PROJECT_ID, registration, token
from releases import CONFIG, DASHBOARD, DUMMY, FUNCTIONS, SYSTEM, Owners
from rights import AGGREGATE_FROM, AGGREGATION, ROLE_OF, Project, cluster_role, user
from times import LEFT_TO_MAKE_WHOLE
from writing import WAYS, create, with_part

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    ADMISSION_POLICY,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    NAMESPACE_SCOPE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_INSTANCE_FRAMEWORK,
    SCOPE_TEMPLATE,
    SCOPE_TEMPLATE_FRAMEWORK,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle

pytestmark = LEFT_TO_MAKE_WHOLE

GUARD = "tenantry-guard-marks"
WRITE = "write on marks.tenantry.dev"
OLM = "operators.coreos.io/"
CHART = "helmcharts.helm.cattle.io/chart"
GIVEN = ("scope-binding/from-namespace", "namespace-scope-configmap", "scope-binding/service-account")
SCOPED = (f"{OLM}scopeInstanceUID", f"{OLM}scopeInstanceAndTemplateHash", f"{OLM}generateName")
SCOPES = ("tenantry.dev/scope-template", "tenantry.dev/framework-scope-template")
INSTANCES = ("tenantry.dev/scope-instance", "tenantry.dev/framework-scope-instance")
RELEASED = (OPERATED, PROJECT_ID, "helm.cattle.io/helm-api-version")
MANAGERS = tuple(
    f"tenantry-{each}" for each in ("namespace-registration", "rbac-aggregation", "release-provisioning", "scope-binding")
)
NO_ROLE = "guards-nothing"
EVE = [user("eve")]


@dataclass(frozen=True)
class Carrier:
    """A kind with all marks of ours that we read from it, and what else an object of it needs."""

    kind: Kind
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    finalizer: str = ""
    namespace: str = "default"
    status: Any = None
    other_status: Any = None
    fields: Any = None
    selected_by: str = ""
    """The label without which we never look at one, so that neither does the guard."""

    def body(self, name: str, *, marks: bool = True) -> Object:
        """An object of the kind, with all its marks or none."""
        made = obj(self.kind, name, self.namespace if self.kind.namespaced else "", {"team": "x"})
        if marks:
            made["metadata"]["labels"] |= dict.fromkeys(self.labels, "theirs")
            made["metadata"]["annotations"] = dict.fromkeys(self.annotations, "theirs")
            made["metadata"]["finalizers"] = [self.finalizer] if self.finalizer else []
        return {**made, **copy.deepcopy(self.fields or {})}

    def each(self) -> list[tuple[str, str]]:
        """Part and key of each mark."""
        finalizers = [("finalizers", self.finalizer)] if self.finalizer else []
        return [*(("labels", each) for each in self.labels), *(("annotations", each) for each in self.annotations), *finalizers]


def condition(type_: str) -> Object:
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"conditions": [{"type": type_, "status": "True", "reason": "Evil", "message": "evil", **times}]}


UNGUARDED: dict[Kind, Object] = {
    CONFIG_MAP: {"data": {"namespaces": "kube-system"}},
    SERVICE_ACCOUNT: {},
    NETWORK_POLICY: {"spec": {"podSelector": {}}},
    SECRET: {},
}
"""Kinds on which our marks mean nothing, and what an object of them needs."""

SAID, OTHERWISE = condition("Ready"), condition("Other")
PROJECT_CHART, ADOPT = "tenantry.dev/project-helm-chart", "tenantry.dev/adopt"
CARRIERS = [
    Carrier(CONFIG_MAP, ("managedby-namespace-scope",), ("scope-binding/namespaces-hash", "scope-binding/restart-pending"),
            selected_by="managedby-namespace-scope"),
    Carrier(ROLE, GIVEN),
    Carrier(
        ROLE_BINDING,
        (OPERATED, PROJECT_ID, "helm.cattle.io/project-helm-chart-role-binding", *GIVEN, *SCOPED, *SCOPES, *INSTANCES),
        (PROJECT_CHART, "tenantry.dev/level-taken-from"),
        fields={"roleRef": cluster_role(NO_ROLE), "subjects": EVE},
    ),
    Carrier(
        CLUSTER_ROLE,
        (f"{OLM}scopeTemplateUID", f"{OLM}scopeTemplateHash", f"{OLM}generateName", *SCOPES,
         "tenantry.dev/aggregate-to-helm-job", "tenantry.dev/aggregate-to-locks", "tenantry.dev/aggregate-to-lock-source",
         "tenantry.dev/aggregate-to-consumers"),
        fields={"rules": []},
    ),
    Carrier(
        CLUSTER_ROLE_BINDING,
        (*SCOPED, *SCOPES, *INSTANCES, CHART),
        fields={"roleRef": cluster_role(NO_ROLE), "subjects": EVE},
    ),
    Carrier(
        HELM_CHART, RELEASED, ("helmcharts.cattle.io/managed-by", "tenantry.dev/helm-api-version", PROJECT_CHART, ADOPT),
        "tenantry.dev/helm-chart", SYSTEM, {"jobName": "a"}, {"jobName": "b"}, {"spec": {}},
    ),
    Carrier(
        HELM_RELEASE, RELEASED, ("helmreleases.cattle.io/managed-by", PROJECT_CHART, ADOPT),
        "tenantry.dev/lock", SYSTEM, {"state": "Deployed"}, {"state": "Failed"}, {"spec": {}},
    ),
    Carrier(
        PROJECT_HELM_CHART, ("helm.cattle.io/helm-project-operator-cleanup",), ("tenantry.dev/cleaned-up-by",),
        "tenantry.dev/release", "default", {"status": "Deployed"}, {"status": "NoTargetProjectNamespaces"},
        {"spec": {"helmApiVersion": "nobody.example/v1"}},
    ),
    Carrier(NAMESPACE_SCOPE, (), (), "finalizer.nss.operator.ibm.com", "default", SAID, OTHERWISE, {"spec": {}}),
    *(
        Carrier(kind, ("scope-binding/generated",), status=SAID, other_status=OTHERWISE, fields={"spec": spec})
        for kind, spec in (
            (SCOPE_TEMPLATE, {"clusterRoles": []}), (SCOPE_TEMPLATE_FRAMEWORK, {"clusterRoles": []}),
            (SCOPE_INSTANCE, {"scopeTemplateName": "none"}), (SCOPE_INSTANCE_FRAMEWORK, {"scopeTemplateName": "none"}),
        )
    ),
]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def aggregating(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """One function, and the whole installation; the others would put the victims right, which have marks without a reason."""
    running = await flawlessly(CONFIG, functions=[AGGREGATION])
    await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, NO_ROLE, rules=[]))
    return running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(aggregating: Knative, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """Projects and releases."""
    return await flawlessly(CONFIG, functions=FUNCTIONS)


@pytest_asyncio.fixture(loop_scope="session")
async def marker(aggregating: Knative, attackers: Attackers) -> Api:
    return await attackers.someone("marker")


@pytest.mark.check("a-34", without=GUARD)
@pytest.mark.parametrize("carrier", CARRIERS, ids=[str(each.kind).replace("/", ".") for each in CARRIERS])
async def test_no_mark_is_written_without_the_right(carrier: Carrier, marker: Api, admin: Api) -> None:
    """No mark is on anything that he makes, comes onto anything, changes or goes, in no way that the API has, nor is a status
    written or a field owner forged; what carries the marks of others he edits as before."""
    kind, name = carrier.kind, f"victim-{token()}"
    victim = await admin.create(kind, carrier.body(name))
    if carrier.status is not None:
        victim = await WAYS["merge"](admin, kind, victim, {**victim, "status": carrier.status}, "status")
    plain = await create(marker, kind, carrier.body(f"mine-{token()}", marks=False))
    for part, key in carrier.each():
        told = (f"metadata.{part}[{key}]", WRITE)
        if part == "annotations" and carrier.selected_by:
            continue  # without the label nothing is read from it: what carries the label comes below
        await refused(create(marker, kind, with_part(carrier.body(f"new-{token()}", marks=False), part, key, "evil")), *told)
        made_up = carrier.body("", marks=False)
        made_up["metadata"] |= {"generateName": "new-"}
        del made_up["metadata"]["name"]
        await refused(create(marker, kind, with_part(made_up, part, key, "evil")), *told)
        applied = with_part(carrier.body(f"new-{token()}", marks=False), part, key, "evil")
        await refused(marker.apply(kind, applied), *told)
        for way in WAYS.values():
            await refused(way(marker, kind, plain, with_part(plain, part, key, "evil")), *told)
    for part, key in carrier.each():
        for value in (None, "evil"):
            for named, way in WAYS.items():
                if (value is None and named == "apply") or (value and part == "finalizers"):
                    continue
                changed = way(marker, kind, victim, with_part(victim, part, key, value))
                await refused(changed, f"metadata.{part}[{key}]", WRITE)
    for before in (victim, plain) if carrier.status is not None else ():
        for way in WAYS.values():
            after = {**with_part(before, "labels", "team", "x"), "status": carrier.other_status}
            await refused(way(marker, kind, before, after, "status"), "denied request: status", WRITE)
    if not carrier.selected_by:
        await no_owner_is_forged(carrier, marker, plain)

    owners, place = Owners(admin), victim["metadata"].get("namespace", "")
    assert await owners.get(kind, name, place) == victim
    for number, way in enumerate(WAYS.values()):  # what is nobody's mark, of an object that is full of them
        live = await owners.get(kind, name, place)
        await way(marker, kind, live, with_part(live, "labels", "team", str(number)))
    found = await owners.get(kind, name, place)
    assert found["metadata"].get("finalizers", []) == victim["metadata"].get("finalizers", [])
    assert found.get("status") == victim.get("status")
    assert labels_of(found) == {**labels_of(victim), "team": str(len(WAYS) - 1)}
    if carrier.finalizer:
        await WAYS["merge"](admin, kind, found, with_part(found, "finalizers", carrier.finalizer, None))
    await admin.delete(kind, name, place)


async def no_owner_is_forged(carrier: Carrier, marker: Api, plain: Object) -> None:
    """Nobody writes under the name of a field manager of ours."""
    kind = carrier.kind
    for manager in MANAGERS:
        told = (f"metadata.managedFields[{manager}]", WRITE)
        await refused(create(marker, kind, carrier.body(f"new-{token()}", marks=False), manager), *told)
        for way in WAYS.values():
            await refused(way(marker, kind, plain, with_part(plain, "labels", "team", "y"), manager=manager), *told)
        entry = {**plain["metadata"]["managedFields"][0], "manager": manager}
        after = with_part(plain, "labels", "team", "y")
        after["metadata"]["managedFields"] = [*plain["metadata"]["managedFields"], entry]
        await refused(WAYS["put"](marker, kind, plain, after), *told)


async def test_who_holds_the_right_writes_marks(marker: Api, admin: Api, attackers: Attackers) -> None:
    """With `write` on `marks.tenantry.dev` every mark is written: that is the way that the message names."""
    await attackers.allow(marker, {"apiGroups": ["tenantry.dev"], "resources": ["marks"], "verbs": ["write"]})
    for carrier in CARRIERS:
        name = f"given-{token()}"
        await create(marker, carrier.kind, carrier.body(name))
        live = await admin.get(carrier.kind, name, carrier.namespace if carrier.kind.namespaced else "")
        assert live is not None
        for part, key in carrier.each():
            await WAYS["merge"](marker, carrier.kind, live, with_part(live, part, key, None))
        await admin.delete(carrier.kind, name, carrier.namespace if carrier.kind.namespaced else "")


async def test_what_is_deleted_goes_to_its_end(aggregating: Knative, admin: Api) -> None:
    """The garbage collector takes what carries our marks after its owner, and no controller waits for a right."""
    owner = await admin.create(CONFIG_MAP, obj(CONFIG_MAP, f"o-{token()}", "default"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    made = []
    for carrier in CARRIERS:
        if carrier.kind.namespaced and carrier.namespace == "default" and not carrier.finalizer:
            body = carrier.body(f"dependent-{token()}")
            body["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": True}]
            made.append((carrier.kind, (await admin.create(carrier.kind, body))["metadata"]["name"]))
    await admin.delete(CONFIG_MAP, owner["metadata"]["name"], "default", propagation="Foreground")
    owners = Owners(admin, eventually_s=30)
    for kind, name in [(CONFIG_MAP, owner["metadata"]["name"]), *made]:
        await owners.away(kind, name, "default")


@pytest.mark.check("hpo-87", without="tenantry-guard-namespaces")
async def test_a_namespace_in_use_stays_while_its_function_is_away(aggregating: Knative, admin: Api) -> None:
    """No function that makes namespaces runs: what is in use stays, what is marked as orphaned goes."""
    owners = Owners(admin)
    project = await Project(owners).set_up()
    for name in (project.home, project.place):
        await refused(admin.delete(NAMESPACE, name), "is in use", ORPHANED)
        await owners.label(name, {ORPHANED: "true"})
        await admin.delete(NAMESPACE, name)
        await owners.gone(name)


async def test_every_policy_of_ours_type_checks(aggregating: Knative, admin: Api) -> None:
    """The API server has no doubt about any expression."""

    async def checked() -> list[Object]:
        found = [each for each in (await admin.list(ADMISSION_POLICY)).items if each["metadata"]["name"].startswith("tenantry-")]
        return found if all("typeChecking" in (each.get("status") or {}) for each in found) else []

    for policy in await eventually(checked, within=30, what="the policies are type-checked"):
        assert policy["status"]["typeChecking"].get("expressionWarnings", []) == [], policy["metadata"]["name"]


async def test_what_is_the_users_to_write_stays_so(system: Knative, admin: Api, attackers: Attackers) -> None:
    """An owner asks for a chart, changes it and deletes it; a chart's Roles are bound and its dashboards shown, whoever runs
    Helm; a lock is paused, and a HelmChart elsewhere carries what its own controller writes."""
    owners = Owners(admin)
    project = Project(owners, project=await owners.project())
    owner = await attackers.someone("owner", project.home)
    chart = await create(
        owner,
        PROJECT_HELM_CHART,
        obj(PROJECT_HELM_CHART, project.chart, project.home, labels={"team": "x"}, spec={"helmApiVersion": DUMMY}),
    )
    await owners.provisioned(project.release)
    eve = obj(ROLE_BINDING, "eve", project.home, roleRef=cluster_role("admin"), subjects=EVE)
    await create(owner, ROLE_BINDING, eve)

    helm = await attackers.someone("owner", project.release)
    labels = {ROLE_OF: project.release, AGGREGATE_FROM: "admin"}
    await create(helm, ROLE, obj(ROLE, "r-admin", project.release, labels))
    board = obj(CONFIG_MAP, "dash", project.release, {DASHBOARD: project.release}, data={"a.json": '{"k": 1}'})
    await create(helm, CONFIG_MAP, board)
    await project.bound("User eve")
    shown = await owners.told(project.chart, project.id, "Deployed")
    assert shown["status"]["dashboardValues"] == {"k": 1}
    for way in WAYS.values():  # of a RoleBinding that carries our marks he changes what is nobody's
        live = await owners.get(ROLE_BINDING, "r-admin", project.release)
        await way(helm, ROLE_BINDING, live, with_part(live, "labels", "team", token()))

    live = await owners.get(PROJECT_HELM_CHART, project.chart, project.home)
    assert live["metadata"]["uid"] == chart["metadata"]["uid"]
    for way in WAYS.values():
        await way(owner, PROJECT_HELM_CHART, live, with_part(live, "labels", "team", token()))
    await owner.json_patch(
        PROJECT_HELM_CHART,
        project.chart,
        project.home,
        [{"op": "add", "path": "/spec/values", "value": {"data": {"hello": "me"}}}],
    )
    await owners.provisioned(project.release, holds=lambda found: "hello: me" in found["spec"]["valuesContent"])
    await owner.delete(PROJECT_HELM_CHART, project.chart, project.home)
    await owners.away(PROJECT_HELM_CHART, project.chart, project.home)

    marker = await attackers.someone("marker")
    carriers = {each.kind: each for each in CARRIERS}
    lock = await create(marker, HELM_RELEASE, carriers[HELM_RELEASE].body(f"l-{token()}", marks=False))
    await WAYS["merge"](marker, HELM_RELEASE, lock, with_part(lock, "annotations", "tenantry.dev/lock", "paused"))
    body = carriers[HELM_CHART].body(f"elsewhere-{token()}")
    body["metadata"]["namespace"] = "default"
    await create(marker, HELM_CHART, body)


@pytest.mark.check("a-34")
async def test_marks_on_other_kinds_have_no_effect(system: Knative, admin: Api, attackers: Attackers) -> None:
    """What is not guarded means nothing there: an owner puts all marks of a neighbour's objects on his own, a sweep looks at
    everything, and his objects and the neighbour's stay as they are."""
    owners = Owners(admin)
    mine, theirs = await owners.project(), await owners.project()
    owner = await attackers.someone("owner", registration(mine))
    name = f"shop-{token()}"
    await owners.ask(name, theirs)
    await owners.told(name, theirs, "WaitingForDashboardValues")
    labels = {OPERATED: "true", PROJECT_ID: theirs, ORPHANED: "true", CHART: f"{name}-dummy"}
    annotations = {PROJECT_CHART: f"{registration(theirs)}/{name}", ADOPT: "true", "scope-binding/namespaces-hash": "x"}
    made = []
    for kind, fields in UNGUARDED.items():
        body = obj(kind, f"mine-{token()}", registration(mine), labels=labels, annotations=annotations, **fields)
        made.append((kind, await create(owner, kind, body)))
    before = [await owners.get(NAMESPACE, f"{name}-dummy"), await owners.get(HELM_CHART, f"{name}-dummy", SYSTEM)]
    await settle(system, admin)
    for function in FUNCTIONS:
        await system.sweep(function)
    await settle(system, admin)
    for kind, body in made:
        assert await admin.get(kind, body["metadata"]["name"], registration(mine)) == body
    assert [await admin.get(NAMESPACE, f"{name}-dummy"), await admin.get(HELM_CHART, f"{name}-dummy", SYSTEM)] == before
