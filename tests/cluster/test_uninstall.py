"""A project from its namespace to rights in its release, and ``tenantry uninstall``, on a control plane of its own."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
import upping
import yaml
from helm_people import helm_chart
from operators import FINALIZER, LIST, Operators
from people import LABEL, PROJECT_ID, People, changed, registration
from releases import CONFIG, DUMMY, PROVISIONING, SYSTEM, Owners
from rights import Project, account, cluster_role, named, user
from scoping import INSTANCE_UID, SCOPES, TEMPLATE_UID, Scoping, role
from times import HELM_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import ControlPlane, Lines, ensure_helm
from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    HELM_CHART,
    HELM_RELEASE,
    JOB,
    LEASE,
    NAMESPACE,
    NAMESPACE_SCOPE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    SECRET,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOKS,
    Kind,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.model.names import (
    CHART_LABEL,
    CHART_MANAGED_BY,
    GIVEN_FROM,
    HELM_CHART_FINALIZER,
    INJECTION_ORIGINAL,
    SCOPE_GENERATED,
)
from tenantry.model.pointer import pointer
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle, snapshot

OURS = (NAMESPACE, CONFIG_MAP, NETWORK_POLICY, SERVICE_ACCOUNT, ROLE, ROLE_BINDING, CLUSTER_ROLE, CLUSTER_ROLE_BINDING)
PROJECT = "p-a"
EXAMPLE = Path(__file__).parents[2] / "docs/examples/monitored-app"
WITH_HELM = changed(
    CONFIG,
    operator={
        "helmController": {"enabled": True},
        "charts": [{"helmApiVersion": DUMMY, "releaseName": "dummy", "chart": str(EXAMPLE)}],
    },
)
THEIR_CHART = "theirs"
LEFT = "left"
MEMBER_ROLE = "namespacescope-managed-role-from-common-service"
STAND_IN = "apiserversources.sources.knative.dev"
MADE = (
    (JOB, CHART_LABEL),
    (SECRET, CHART_LABEL),
    (CONFIG_MAP, CHART_LABEL),
    (SERVICE_ACCOUNT, CHART_LABEL),
    (ROLE_BINDING, CHART_LABEL),
    (CLUSTER_ROLE_BINDING, CHART_LABEL),
    (ROLE_BINDING, INSTANCE_UID),
    (CLUSTER_ROLE_BINDING, INSTANCE_UID),
    (CLUSTER_ROLE, TEMPLATE_UID),
    (SCOPE_TEMPLATE, SCOPE_GENERATED),
    (ROLE, GIVEN_FROM),
    (ROLE_BINDING, GIVEN_FROM),
)
"""What functions make for HelmCharts and scopes, by label."""

pytestmark = [pytest.mark.no_policies, LEFT_TO_MAKE_WHOLE]


@dataclass
class Cluster:
    """A control plane with the whole system, and a project with a release in it."""

    plane: ControlPlane
    admin: Api
    knative: Knative
    owners: Owners
    project: Project
    operators: Operators
    folder: Path

    async def tenantry(self, *arguments: str, answer: str = "") -> tuple[int, str, str]:
        """The command line with this cluster's kubeconfig and configuration."""
        environment = {"KUBECONFIG": str(self.plane.kubeconfig), "TENANTRY_CONFIG": str(self.folder / "config.yaml")}
        return await upping.tenantry(*arguments, answer=answer, within=100, **environment)


def is_installed(helm_chart: Object) -> bool:
    """Whether Helm has done what a HelmChart asks for."""
    return (find_condition(helm_chart, "Failed") or {}).get("reason") == "Complete"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def cluster(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """All functions that a release needs, a real Helm, and people who use them."""
    del control_plane  # the programs are there
    folder = tmp_path_factory.mktemp("uninstall")
    (folder / "config.yaml").write_text(yaml.safe_dump(WITH_HELM))
    plane = ControlPlane(ephemeral=True)
    await asyncio.to_thread(plane.start)
    try:
        async with await Api.connect(field_manager="tests-admin", kubeconfig=plane.kubeconfig) as admin:
            for each in documents(deployment_folder("knative") / "lockable-kinds"):
                await admin.apply(CLUSTER_ROLE, each)
            async with Knative(plane.kubeconfig, folder, config=WITH_HELM, helm=ensure_helm(Lines())) as knative:
                owners = Owners(admin, HELM_S)
                project = Project(People(admin), project=PROJECT, chart="demo")
                await owners.project(name=PROJECT)
                await owners.ask("demo", PROJECT)
                await owners.provisioned("demo-dummy", holds=is_installed)
                await project.role()
                await project.bind("alice", "admin", user("alice"))
                await project.bind("r-edit", cluster_role("view"), user("carol"), namespace=project.place)
                operators = Operators(admin, prefix="n-")
                yield Cluster(plane, admin, knative, owners, project, operators, folder)
    finally:
        await asyncio.to_thread(plane.stop)


async def test_from_a_binding_in_the_project_to_rights_in_its_release(cluster: Cluster) -> None:
    """Who is bound in the registration namespace has the Role in the release namespace that the chart was given."""
    await cluster.project.bound("User alice")


async def test_what_people_ask_for_beside_projects_is_served(cluster: Cluster) -> None:
    """A HelmChart made by hand, a NamespaceScope and scopes get what the functions make for them."""
    admin, own = cluster.admin, cluster.operators
    chart = helm_chart(THEIR_CHART, valuesContent="greeting: hello")
    await admin.create(HELM_CHART, {**chart, "metadata": {**chart["metadata"], "namespace": SYSTEM}})
    await cluster.owners.until(HELM_CHART, THEIR_CHART, SYSTEM, is_installed)
    await own.begin(1)
    await admin.create(CONFIG_MAP, obj(CONFIG_MAP, "shared-list", own.home, data={"mine": "1"}))
    await own.scope(1)
    await own.scope(1, name="other", configmapName="shared-list")
    await own.ready()
    await own.given(1, MEMBER_ROLE)
    await own.listed(1, config_map="shared-list")
    scoping = Scoping(admin)
    await scoping.template("t", role("reader"))
    await scoping.instance("here", "t", namespaces=[own.member(1)])
    await scoping.instance("everywhere", "t")
    for name in ("here", "everywhere"):
        await scoping.scoped(name)
    labels = {GIVEN_FROM: own.home, INSTANCE_UID: "x"}
    view = cluster_role("view")
    theirs = obj(ROLE_BINDING, "labelled", own.member(1), labels, roleRef=view, subjects=[user("carol")])
    await admin.create(ROLE_BINDING, theirs)
    generated = obj(SCOPE_TEMPLATE, "generated", labels={SCOPE_GENERATED: "true"}, spec={"clusterRoles": []})
    await admin.apply(SCOPE_TEMPLATE, generated, manager=f"tenantry-{SCOPES}")
    await admin.create(
        VALIDATING_WEBHOOKS, obj(VALIDATING_WEBHOOKS, "narrowed", annotations={INJECTION_ORIGINAL: "{}"}, webhooks=[])
    )
    for kind, where in ((ROLE_BINDING, own.member(1)), (CLUSTER_ROLE_BINDING, "")):
        # What a killed process left: at rest Helm's account has no rights.
        subjects = [account(f"helm-{LEFT}", SYSTEM)]
        left = obj(kind, f"helm-{SYSTEM}-{LEFT}", where, {CHART_LABEL: LEFT}, roleRef=view, subjects=subjects)
        await admin.apply(kind, left, manager=f"tenantry-{PROVISIONING}")
    assert [kind.kind for kind, label in MADE if not await _labelled(cluster, kind, label)] == []


async def _labelled(cluster: Cluster, kind: Kind, label: str) -> list[str]:
    """The names of objects with a label, the markers of the proof kit apart."""
    names = [each["metadata"]["name"] for each in (await cluster.admin.list(kind, label_selector=label)).items]
    return [name for name in names if not name.startswith("marker-")]


async def _users_things(cluster: Cluster) -> dict[str, Any]:
    """What people made, as it is: uid and content."""
    home, place, own = cluster.project.home, cluster.project.place, cluster.operators
    wanted = (
        (NAMESPACE, f"a1-{PROJECT}", ""),
        (NAMESPACE, home, ""),
        (NAMESPACE, place, ""),
        (ROLE_BINDING, "alice", home),
        (ROLE_BINDING, "r-edit", place),
        (ROLE, "r-admin", place),
        (CONFIG_MAP, "mine", home),
        (CONFIG_MAP, "mine", place),
        (CONFIG_MAP, "mine", "tenantry-system"),
        (HELM_CHART, THEIR_CHART, SYSTEM),
        (NAMESPACE, THEIR_CHART, ""),
        (SECRET, f"sh.helm.release.v1.{THEIR_CHART}.v1", THEIR_CHART),
        (CONFIG_MAP, THEIR_CHART, THEIR_CHART),
        (ROLE, THEIR_CHART, THEIR_CHART),
        (NAMESPACE_SCOPE, "common-service", own.home),
        (NAMESPACE_SCOPE, "other", own.home),
        (CONFIG_MAP, "shared-list", own.home),
        (CONFIG_MAP, LIST, own.home),
        (ROLE, f"nss-managed-role-from-{own.home}", own.member(1)),
        (ROLE_BINDING, f"nss-managed-role-from-{own.home}", own.member(1)),
        (ROLE_BINDING, "labelled", own.member(1)),
        (SCOPE_TEMPLATE, "t", ""),
        (SCOPE_INSTANCE, "here", ""),
        (SCOPE_INSTANCE, "everywhere", ""),
    )
    found: dict[str, Any] = {}
    for kind, name, namespace in wanted:
        live: Object = await cluster.admin.get(kind, name, namespace) or {"metadata": {}}
        content = {part: live.get(part) for part in ("data", "rules", "subjects", "roleRef", "spec")}
        found[f"{kind.kind} {namespace}/{name}"] = (live["metadata"].get("uid"), content)
    return found


async def _made_by_helm(cluster: Cluster) -> list[str]:
    """What the release of the ProjectHelmChart consists of, Helm's own record included."""
    place, kinds = cluster.project.place, (CONFIG_MAP, ROLE, SECRET)
    found = [each for kind in kinds for each in (await cluster.admin.list(kind, place)).items]
    names = [f"{each['kind']} {each['metadata']['name']}" for each in found]
    return sorted(name for name in names if "demo-dummy" in name)


async def test_dry_run_and_refusal_change_nothing(cluster: Cluster) -> None:
    """A dry run shows what would be done, and a no to the question ends it; neither writes anything."""
    for namespace in (cluster.project.home, cluster.project.place, "tenantry-system"):
        await cluster.admin.create(CONFIG_MAP, obj(CONFIG_MAP, "mine", namespace, data={"a": "b"}))
    await settle(cluster.knative, cluster.admin)
    kinds = (*OURS, *(JOB, SECRET), *(PROJECT_HELM_CHART, HELM_CHART, HELM_RELEASE, NAMESPACE_SCOPE, CUSTOM_RESOURCE_DEFINITION))
    before = await snapshot(cluster.admin, kinds)
    code, output, errors = await cluster.tenantry("uninstall", "--dry-run", "-o", "json")
    assert code == 0, errors
    shown = json.loads(output)
    assert shown["cleaned_up"] == [f"ProjectHelmChart {cluster.project.home}/demo"]
    assert "ClusterRole tenantry-rbac-aggregation" in shown["removed"]
    assert [line for line in shown["kept"] if line.startswith("ValidatingWebhookConfiguration narrowed: ")]
    assert f"ClusterRoleBinding helm-{SYSTEM}-{LEFT}" in shown["removed"]
    assert f"RoleBinding {cluster.operators.member(1)}/helm-{SYSTEM}-{LEFT}" in shown["removed"]
    assert not [line for line in shown["removed"] if line.endswith(("/mine", "r-edit", "/labelled"))]
    code, _, errors = await cluster.tenantry("uninstall", answer="n\n")
    assert code == 1
    assert "Go on?" in errors
    assert before == await snapshot(cluster.admin, kinds)


@asynccontextmanager
async def _busy(cluster: Cluster) -> AsyncIterator[None]:
    """Meanwhile somebody changes a namespace of the project again and again, of which every function hears."""

    async def change() -> None:
        path = pointer("metadata", "annotations")
        for number in itertools.count():
            patch = [{"op": "add", "path": path, "value": {"busy": str(number)}}]
            await cluster.admin.json_patch(NAMESPACE, f"a1-{PROJECT}", "", patch)

    changing = asyncio.create_task(change())
    try:
        yield
    finally:
        changing.cancel()
        await asyncio.gather(changing, return_exceptions=True)


async def test_uninstall_ends_with_nothing_of_ours_and_everything_of_theirs(cluster: Cluster) -> None:
    """Releases with all that Helm made, functions, rights and what functions made are gone; what people made is as it was.

    The functions, which run on this machine, end while they still have their rights: no event is a dead letter.
    """
    before = await _users_things(cluster)
    assert all(uid for uid, _ in before.values()), before
    roles = [f"Role demo-dummy-{level}" for level in ("admin", "edit", "view")]
    assert await _made_by_helm(cluster) == ["ConfigMap demo-dummy-dashboard", *roles, "Secret sh.helm.release.v1.demo-dummy.v1"]
    async with _busy(cluster):
        code, output, errors = await cluster.tenantry("uninstall", "--yes", "-o", "json", "--timeout", "60")
    assert code == 0, errors + output
    done = json.loads(output)
    await cluster.knative.drain()
    letters = cluster.knative.dead_letters
    assert not letters.exists(), letters.read_text()
    assert cluster.knative.broker.counters.lost == 0
    assert [function.pid for function in cluster.knative.functions.values() if psutil.pid_exists(function.pid)] == []
    assert (await cluster.admin.list(LEASE, "tenantry-system")).items == []

    admin, home, place = cluster.admin, cluster.project.home, cluster.project.place
    assert before == await _users_things(cluster)
    assert await _made_by_helm(cluster) == []
    assert (await admin.list(HELM_RELEASE, SYSTEM)).items == []
    assert [each["metadata"]["name"] for each in (await admin.list(HELM_CHART, SYSTEM)).items] == [THEIR_CHART]
    assert [named(each) for each in (await admin.list(ROLE_BINDING, place)).items] == [["User carol"]]
    assert await admin.get(NETWORK_POLICY, "hpo-generated-default", home) is None
    assert PROJECT_ID not in labels_of(await admin.get(NAMESPACE, f"a1-{PROJECT}"))
    assert labels_of(await admin.get(NAMESPACE, f"a1-{PROJECT}"))[LABEL] == PROJECT
    for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT):
        items = (await admin.list(kind, label_selector="app.kubernetes.io/part-of=tenantry")).items
        assert [each["metadata"]["name"] for each in items] == []
    assert any(line.startswith(f"Namespace {registration(PROJECT)}") for line in done["kept"])
    assert "Namespace tenantry-system: it has ConfigMap tenantry-system/mine" in done["kept"], done["kept"]
    chart = await admin.get(PROJECT_HELM_CHART, "demo", home)
    assert chart is not None
    assert not chart["metadata"].get("finalizers"), "nobody would take it off"


async def test_nothing_is_left_of_what_was_made_for_charts_and_scopes(cluster: Cluster) -> None:
    """What ran Helm and gave rights is gone, a foreign object with our label is not; a HelmChart is free for others."""
    admin, own = cluster.admin, cluster.operators
    left = {name for kind, label in MADE for name in await _labelled(cluster, kind, label)}
    assert left == {"labelled"}
    chart = await admin.get(HELM_CHART, THEIR_CHART, SYSTEM)
    assert chart is not None
    assert not chart["metadata"].get("finalizers")
    assert CHART_MANAGED_BY not in annotations_of(chart)
    for name in ("common-service", "other"):
        scope = await admin.get(NAMESPACE_SCOPE, name, own.home)
        assert scope is not None
        assert not scope["metadata"].get("finalizers")


async def test_what_people_made_can_be_deleted_at_once(cluster: Cluster) -> None:
    """No finalizer holds anything; a list goes with its NamespaceScope, unless others have something in it."""
    admin, own = cluster.admin, cluster.operators
    for kind, name, namespace in (
        (HELM_CHART, THEIR_CHART, SYSTEM),
        (NAMESPACE_SCOPE, "common-service", own.home),
        (NAMESPACE_SCOPE, "other", own.home),
        (SCOPE_INSTANCE, "here", ""),
    ):
        await admin.delete(kind, name, namespace)
        assert await admin.get(kind, name, namespace) is None
    # The garbage collector takes it, which met it before it knew the kind of the owner: it tries again in ever longer intervals.
    await own.people.away(CONFIG_MAP, LIST, own.home, within=120)
    assert (await own.people.get(CONFIG_MAP, "shared-list", own.home))["data"]["mine"] == "1"


async def test_crds_go_whatever_held_their_objects(cluster: Cluster) -> None:
    """With ``--crds`` our kinds go, the stand-in for Knative's too, objects that came since and hold our finalizers included."""
    admin, own = cluster.admin, cluster.operators
    chart = helm_chart(THEIR_CHART)
    metadata = {**chart["metadata"], "namespace": SYSTEM, "finalizers": [HELM_CHART_FINALIZER]}
    await admin.create(HELM_CHART, {**chart, "metadata": metadata})
    scope = (NAMESPACE_SCOPE, "late", own.home)
    await admin.create(NAMESPACE_SCOPE, obj(*scope, spec={"namespaceMembers": []}))
    await admin.apply(NAMESPACE_SCOPE, obj(*scope, metadata={"finalizers": [FINALIZER]}), manager=f"tenantry-{SCOPES}")
    labels = {"app.kubernetes.io/name": "knative-eventing"}
    await admin.apply(CUSTOM_RESOURCE_DEFINITION, obj(CUSTOM_RESOURCE_DEFINITION, STAND_IN, labels=labels))
    _, output, _ = await cluster.tenantry("uninstall", "--crds", "--dry-run", "-o", "json")
    assert f"CustomResourceDefinition {STAND_IN}: not Tenantry's alone" in json.loads(output)["kept"]
    await admin.apply(CUSTOM_RESOURCE_DEFINITION, obj(CUSTOM_RESOURCE_DEFINITION, STAND_IN))
    code, output, errors = await cluster.tenantry("uninstall", "--yes", "--crds", "-o", "yaml")
    assert code == 0, errors + output
    names = [each["metadata"]["name"] for each in (await admin.list(CUSTOM_RESOURCE_DEFINITION)).items]
    assert names == []
    code, output, errors = await cluster.tenantry("uninstall", "--yes", "--crds", "-o", "json")
    assert (code, json.loads(output)["removed"]) == (0, []), "a third time there is nothing, kinds that are not served included"
