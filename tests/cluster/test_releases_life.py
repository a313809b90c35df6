"""Releases come, clash, follow their project and go (hpo-13, 40, 42, 43, 45 to 49, 53), and wrong requests are told."""

from __future__ import annotations

import pytest
from flawless import Calm
from people import OPERATED, ORPHANED, PROJECT_ID, registration, token
from refusing import refusing
from releases import CLEANUP, DUMMY, FINALIZER, PROVISIONING, SYSTEM, Demo, Owners, cattle_of, conditions_of, values_of
from times import CONTROLLER_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    JOB,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    RESOURCE_QUOTA,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
    annotations_of,
    is_terminating,
    labels_of,
)
from tenantry.model.names import HARDENING_POLICY, PROJECT_CHART
from tenantry.testing import eventually
from tenantry.testing.objects import obj

MADE = (NAMESPACE, PROJECT_HELM_CHART, HELM_CHART, HELM_RELEASE, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, JOB, ROLE, ROLE_BINDING)
"""What could be made for a release."""
UNABLE = "UnableToCreateHelmRelease"
UPSTREAM = "wrangler.cattle.io/on-project-helm-chart-remove"

pytestmark = pytest.mark.usefixtures("releasing")


async def uids(owners: Owners, release: str) -> list[str]:
    found = [await owners.get(HELM_CHART, release, SYSTEM), await owners.get(HELM_RELEASE, release, SYSTEM)]
    return [each["metadata"]["uid"] for each in [*found, await owners.get(NAMESPACE, release)]]


@pytest.mark.check("hpo-13")
async def test_a_namespace_that_moves_reaches_both_projects(owners: Owners, demo: Demo) -> None:
    """The project that is left no longer has the namespace in its values, and the one that is joined has it."""
    project, _, release = demo
    other = await owners.project()
    await owners.ask(f"demo-{other}", other)
    await owners.namespace(f"a2-{project}", project)
    await owners.provisioned(release, holds=lambda found: f"a2-{project}" in cattle_of(found)["projectNamespaces"])
    await owners.provisioned(f"demo-{other}-dummy")

    await owners.label(f"a2-{project}", {"field.cattle.io/projectId": other})

    left = [f"a1-{project}", release]
    joined = [*sorted([f"a1-{other}", f"a2-{project}"]), f"demo-{other}-dummy"]
    await owners.provisioned(release, holds=lambda found: cattle_of(found)["projectNamespaces"] == left)
    await owners.provisioned(f"demo-{other}-dummy", holds=lambda found: cattle_of(found)["projectNamespaces"] == joined)
    await owners.until(NAMESPACE, f"a2-{project}", "", lambda found: labels_of(found).get(PROJECT_ID) == other)


@pytest.mark.check("hpo-40")
async def test_a_chart_that_stops_being_ours_keeps_its_release(
    owners: Owners, demo: Demo, releasing: Knative, calm: Calm
) -> None:
    """A foreign helmApiVersion leaves everything that was made and says so; another system's words are not overwritten."""
    project, name, release = demo
    made = await uids(owners, release)
    before = values_of(await owners.get(HELM_CHART, release, SYSTEM))
    home = registration(project)

    await owners.edit(PROJECT_HELM_CHART, name, home, ("replace", "/spec/helmApiVersion", "monitoring.cattle.io/v1alpha1"))
    told = await owners.told(name, project, UNABLE)
    await owners.edit(PROJECT_HELM_CHART, name, home, ("add", "/metadata/labels", {"team": "x"}))
    body = obj(PROJECT_HELM_CHART, name, home, status={"status": "Theirs"})
    await owners.admin.apply(PROJECT_HELM_CHART, body, subresource="status")
    await calm(releasing)

    assert "no longer managed" in told["status"]["statusMessage"]
    assert conditions_of(told)["Stalled"] == ("True", "NotManaged")
    assert await uids(owners, release) == made
    assert values_of(await owners.get(HELM_CHART, release, SYSTEM)) == before
    assert (await owners.get(PROJECT_HELM_CHART, name, home))["status"]["status"] == "Theirs"

    await owners.delete(PROJECT_HELM_CHART, name, home)
    await owners.taken_away(release)
    await owners.away(PROJECT_HELM_CHART, name, home)


@pytest.mark.check("hpo-42", open="Of another project's objects the message says nothing (a-36).")
@pytest.mark.check("hpo-43", open="The second waits until what the first has left is gone (a-32).")
async def test_the_oldest_gets_a_name_and_the_next_follows(owners: Owners) -> None:
    """The second chart of one name is told and touches nothing; when the first and its namespace go, it is provisioned."""
    first, second = await owners.project(name=f"a-{token()}"), await owners.project(name=f"b-{token()}")
    name = f"demo-{token()}"
    release = f"{name}-dummy"
    await owners.ask(name, first)
    await owners.provisioned(release)
    before = await uids(owners, release)

    await owners.ask(name, second)  # in the same second the name of the namespace decides
    told = await owners.told(name, second, UNABLE)
    assert await owners.warning(name, second, "ReleaseNameTaken") == told["status"]["statusMessage"]
    assert "releaseName" not in told["status"]
    assert await uids(owners, release) == before
    assert (await owners.get(PROJECT_HELM_CHART, name, registration(first)))["status"]["status"] == "WaitingForDashboardValues"

    await owners.delete(PROJECT_HELM_CHART, name, registration(first))
    await owners.told(name, second, UNABLE, holds=lambda found: conditions_of(found)["Stalled"] == ("True", "NotOurs"))
    await owners.taken_away(release)
    await owners.delete(NAMESPACE, release)
    await owners.gone(release, before[2])
    await owners.told(name, second, "WaitingForDashboardValues")
    chart = await owners.provisioned(release, holds=lambda found: cattle_of(found)["projectID"] == second)
    namespace = await owners.until(NAMESPACE, release, "", lambda found: labels_of(found)[PROJECT_ID] == second)

    assert chart["metadata"]["uid"] != before[0]
    assert ORPHANED not in labels_of(namespace)
    assert annotations_of(namespace)[PROJECT_CHART] == f"{registration(second)}/{name}"


@pytest.mark.check("hpo-45")
@pytest.mark.parametrize("characters", [60, 45], ids=["60", "one too many for the Job"])
async def test_a_name_that_is_too_long_is_told(
    owners: Owners, demo: Demo, releasing: Knative, calm: Calm, characters: int
) -> None:
    """A name that does not fit: the limit is in the message, nothing is made, and others are served."""
    project, _, _ = demo
    run = token()
    name = f"{run}{'x' * (characters - len(run))}"
    await owners.ask(name, project)

    told = await owners.told(name, project, UNABLE)
    await owners.ask(f"after-{run}", project)
    await owners.provisioned(f"after-{run}-dummy")
    await calm(releasing)

    assert len(name) == characters
    assert "at most 50" in told["status"]["statusMessage"]
    assert await owners.warning(name, project, "InvalidReleaseName") == told["status"]["statusMessage"]
    found = await owners.get(PROJECT_HELM_CHART, name, registration(project))
    assert "finalizers" not in found["metadata"]
    assert found["status"].keys() == {"status", "statusMessage", "conditions", "observedGeneration"}
    made = [each for kind in MADE for each in (await owners.admin.list(kind)).items if name in str(each)]
    assert [f"{each['kind']} {each['metadata']['name']}" for each in made] == [f"ProjectHelmChart {name}"]


@pytest.mark.check("hpo-46")
async def test_a_project_without_namespaces_loses_its_release(owners: Owners, demo: Demo) -> None:
    """With its last namespace goes the release; its namespace stays, orphaned; both are back when a namespace is."""
    project, name, release = demo
    await owners.label(f"a1-{project}", {"field.cattle.io/projectId": None})

    told = await owners.told(name, project, "NoTargetProjectNamespaces")
    await owners.taken_away(release)
    await owners.until(NAMESPACE, release, "", lambda found: labels_of(found).get(ORPHANED) == "true")
    assert "releaseName" not in told["status"]

    await owners.namespace(f"a2-{project}", project)
    chart = await owners.provisioned(release)
    await owners.until(NAMESPACE, release, "", lambda found: ORPHANED not in labels_of(found))
    assert cattle_of(chart)["projectNamespaces"] == [f"a2-{project}", release]


@pytest.mark.check("hpo-47")
async def test_a_deleted_chart_leaves_its_namespaces(owners: Owners, demo: Demo, releasing: Knative, calm: Calm) -> None:
    """HelmChart and HelmRelease go with the ProjectHelmChart; its namespace is orphaned and stays hardened, and stays deleted if
    somebody does."""
    project, name, release = demo
    policy = (NETWORK_POLICY, HARDENING_POLICY, release)
    hardened = (await owners.until(*policy, bool))["spec"]
    await owners.delete(PROJECT_HELM_CHART, name, registration(project))

    await owners.taken_away(release)
    await owners.away(PROJECT_HELM_CHART, name, registration(project))
    namespace = await owners.until(NAMESPACE, release, "", lambda found: labels_of(found).get(ORPHANED) == "true")
    home = await owners.get(NAMESPACE, registration(project))

    assert not is_terminating(namespace)
    assert ORPHANED not in labels_of(home)
    await owners.edit(*policy, ("add", "/spec/ingress", [{}]))
    await owners.until(*policy, lambda found: found["spec"] == hardened)
    await owners.delete(NAMESPACE, release)
    await owners.gone(release)
    await calm(releasing)
    assert await owners.admin.get(NAMESPACE, release) is None


@pytest.mark.check("hpo-48")
async def test_a_deleted_release_namespace_is_made_again(owners: Owners, demo: Demo) -> None:
    """The namespace of a release is back when it was deleted, and so is the release, as a new installation."""
    project, name, release = demo
    before = await uids(owners, release)

    await owners.delete(NAMESPACE, release)
    await owners.told(name, project, UNABLE, holds=lambda found: conditions_of(found)["Reconciling"][0] == "True")
    await owners.gone(release, before[2])
    chart = await owners.provisioned(release, holds=lambda found: found["metadata"]["uid"] != before[0])
    namespace = await owners.get(NAMESPACE, release)

    assert namespace["metadata"]["creationTimestamp"] <= chart["metadata"]["creationTimestamp"]
    await owners.told(name, project, "WaitingForDashboardValues")


@pytest.mark.check("hpo-49")
async def test_the_cleanup_label_takes_the_release_away(owners: Owners, demo: Demo, releasing: Knative, calm: Calm) -> None:
    """With the label the release goes and stays away; without it the release is made again."""
    project, name, release = demo
    home = registration(project)
    await owners.edit(PROJECT_HELM_CHART, name, home, ("add", "/metadata/labels", {CLEANUP: "true"}))

    told = await owners.told(name, project, "AwaitingOperatorRedeployment")
    await owners.taken_away(release)
    await calm(releasing)
    assert await owners.admin.get(HELM_CHART, release, SYSTEM) is None
    assert set(told["status"]) == {"status", "statusMessage", "observedGeneration", "conditions"}

    await owners.edit(PROJECT_HELM_CHART, name, home, ("remove", "/metadata/labels", None))
    await owners.provisioned(release)
    asked = await owners.told(name, project, "WaitingForDashboardValues")
    assert not annotations_of(asked)


@pytest.mark.check("hpo-53")
async def test_a_namespace_of_somebody_else_is_not_touched(owners: Owners, releasing: Knative, calm: Calm) -> None:
    """A namespace that has the release's name is left as it is, and the owner is told; handed over, it is used."""
    project = await owners.project()
    name = f"kube-{project}"
    theirs = await owners.namespace(f"{name}-dummy", labels={"team": "x"})
    await owners.ask(name, project)

    told = await owners.told(name, project, UNABLE)
    await calm(releasing)
    live = await owners.get(NAMESPACE, f"{name}-dummy")

    assert f"namespace {name}-dummy exists" in told["status"]["statusMessage"]
    assert await owners.warning(name, project, "NotOurs") == told["status"]["statusMessage"]
    assert live["metadata"]["labels"] == theirs["metadata"]["labels"]
    assert not annotations_of(live)
    assert await owners.admin.get(HELM_CHART, f"{name}-dummy", SYSTEM) is None

    await owners.label(f"{name}-dummy", {"tenantry.dev/adopt": "true"}, "annotations")
    await owners.provisioned(f"{name}-dummy")
    adopted = await owners.until(NAMESPACE, f"{name}-dummy", "", lambda found: OPERATED in labels_of(found))
    assert labels_of(adopted)["team"] == "x"


async def test_a_helm_chart_of_somebody_else_is_not_touched(owners: Owners) -> None:
    """A HelmChart of that name that an administrator made is left as it is until it goes."""
    project = await owners.project()
    name = f"clash-{project}"
    await owners.admin.create(HELM_CHART, obj(HELM_CHART, f"{name}-dummy", SYSTEM, spec={"chart": "theirs"}))
    await owners.ask(name, project)

    told = await owners.told(name, project, UNABLE)
    assert "somebody else's" in told["status"]["statusMessage"]
    assert (await owners.get(HELM_CHART, f"{name}-dummy", SYSTEM))["spec"]["chart"] == "theirs"

    await owners.delete(HELM_CHART, f"{name}-dummy", SYSTEM)
    await owners.provisioned(f"{name}-dummy")


async def test_a_chart_of_the_former_operator_is_taken_over(owners: Owners) -> None:
    """What the Helm Project Operator made is taken over without a new installation, and its finalizer does not hang."""
    project = await owners.project()
    name = f"old-{project}"
    release, home = f"{name}-dummy", registration(project)
    objectset = {
        "objectset.rio.cattle.io/owner-namespace": home,
        "objectset.rio.cattle.io/owner-name": name,
        "helmcharts.cattle.io/managed-by": "helm-project-operator",
    }
    labels = {OPERATED: "true", PROJECT_ID: project, "helm.cattle.io/helm-api-version": "dummy.cattle.io"}
    await owners.namespace(release, "p-system", labels={OPERATED: "true", PROJECT_ID: project})
    old = await owners.admin.create(
        HELM_CHART,
        obj(HELM_CHART, release, SYSTEM, spec={"chart": release, "targetNamespace": release, "valuesContent": "old: 1"}),
    )
    asked: Object = obj(PROJECT_HELM_CHART, name, home, metadata={"finalizers": [UPSTREAM]}, spec={"helmApiVersion": DUMMY})
    await owners.admin.create(PROJECT_HELM_CHART, asked)
    # Marked last: a HelmChart that was made for a ProjectHelmChart that is not there is taken away.
    marks = (("add", "/metadata/labels", labels), ("add", "/metadata/annotations", objectset))
    await owners.edit(HELM_CHART, release, SYSTEM, *marks)

    chart = await owners.provisioned(release, holds=lambda found: "projectNamespaces" in found["spec"]["valuesContent"])
    told = await owners.told(name, project, "WaitingForDashboardValues")

    assert chart["metadata"]["uid"] == old["metadata"]["uid"]
    assert told["metadata"]["finalizers"] == [FINALIZER]
    await owners.delete(PROJECT_HELM_CHART, name, home)
    await owners.taken_away(release)
    await owners.away(PROJECT_HELM_CHART, name, home)


async def test_a_finalizer_cannot_hang(owners: Owners, demo: Demo) -> None:
    """A deleted registration namespace takes its ProjectHelmChart and the release with it, in whatever order."""
    project, name, release = demo
    await owners.delete(NAMESPACE, registration(project))

    await owners.taken_away(release)
    await owners.away(PROJECT_HELM_CHART, name, registration(project))


async def test_values_that_are_nested_too_deep_are_told(owners: Owners, demo: Demo) -> None:
    """Values of 230 levels, which the API server takes, are told to whoever wrote them and keep nobody else from being served."""
    project = demo[0]
    deep: Object = {}
    for _ in range(230):
        deep = {"a": deep}
    await owners.ask(f"deep-{project}", project, values=deep)

    told = await owners.told(f"deep-{project}", project, "UnableToParseValues")
    await owners.ask(f"next-{project}", project)
    await owners.provisioned(f"next-{project}-dummy")

    assert "spec.values has more than 100 levels" in told["status"]["statusMessage"]
    assert await owners.warning(f"deep-{project}", project, "InvalidValues") == told["status"]["statusMessage"]
    assert await owners.admin.get(HELM_CHART, f"deep-{project}-dummy", SYSTEM) is None
    await owners.delete(PROJECT_HELM_CHART, f"deep-{project}", registration(project))


async def test_a_policy_that_refuses_a_release_namespace_is_told_and_heals(
    owners: Owners, releasing: Knative, admin: Api
) -> None:
    """The owner reads which namespace is refused and what to change, others are served, and the release comes afterwards."""
    project, other = await owners.project(), await owners.project()
    name = f"refused-{project}"
    async with refusing(admin, NAMESPACE, f"{name}-dummy"):
        await owners.ask(name, project)
        told = await owners.told(
            name, project, UNABLE, holds=lambda found: conditions_of(found)["Stalled"] == ("True", "AdmissionDenied")
        )
        warned = await owners.warning(name, project, "AdmissionDenied")
        await owners.ask(f"served-{other}", other)
        await owners.provisioned(f"served-{other}-dummy")
        await owners.told(f"served-{other}", other, "WaitingForDashboardValues")
        assert await admin.get(NAMESPACE, f"{name}-dummy") is None
        assert await admin.get(HELM_CHART, f"{name}-dummy", SYSTEM) is None

    assert f"Namespace {name}-dummy was refused" in told["status"]["statusMessage"]
    assert "change the admission policy" in told["status"]["statusMessage"]
    assert "change the admission policy" in warned
    await releasing.sweep(PROVISIONING)  # a policy is not watched
    await owners.provisioned(f"{name}-dummy")
    healed = await owners.told(name, project, "WaitingForDashboardValues")
    assert conditions_of(healed)["Stalled"][0] == "False"


async def test_a_refused_helm_chart_is_told_and_heals(owners: Owners, admin: Api) -> None:
    """A quota in the system namespace refuses the HelmChart: the owner reads what to change, and others are served."""
    project, calm = await owners.project(), await owners.project()
    hard = {f"count/{HELM_CHART.plural}.helm.cattle.io": "0"}
    quota = obj(RESOURCE_QUOTA, "none", SYSTEM, spec={"hard": hard})
    await owners.ask(f"served-{calm}", calm)
    await owners.provisioned(f"served-{calm}-dummy")
    await admin.create(RESOURCE_QUOTA, quota)
    try:
        await owners.until(RESOURCE_QUOTA, "none", SYSTEM, lambda found: (found.get("status") or {}).get("used"))
        name = f"demo-{project}"
        await owners.ask(name, project)
        refused = await owners.told(name, project, UNABLE)
        assert f"HelmChart {SYSTEM}/{name}-dummy was refused" in refused["status"]["statusMessage"]
        told = await owners.told(
            name, project, UNABLE, holds=lambda found: conditions_of(found)["Stalled"] == ("True", "QuotaExceeded")
        )
        assert "exceeded quota" in told["status"]["statusMessage"]
        assert "raise the ResourceQuota" in told["status"]["statusMessage"]
        await owners.label(f"a1-{calm}", {"team": "x"})
    finally:
        await admin.delete(RESOURCE_QUOTA, "none", SYSTEM)

    async def healed() -> bool:
        await owners.label(f"a1-{project}", {"touched": token()})  # what a quota lets through again is no event
        found = await owners.get(PROJECT_HELM_CHART, name, registration(project))
        return bool(found["status"]["status"] == "WaitingForDashboardValues")

    await eventually(healed, within=CONTROLLER_S, what="healed after the quota is gone")
