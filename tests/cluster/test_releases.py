"""A ProjectHelmChart becomes a release: namespace, HelmChart, HelmRelease, values and status (hpo-9, hpo-27 to 38)."""

from __future__ import annotations

import pytest
from flawless import Calm
from people import LABEL, OPERATED, ORPHANED, PROJECT_ID, registration
from releases import DUMMY, FINALIZER, SYSTEM, Demo, Owners, cattle_of, conditions_of, values_of
from times import PROJECTS_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.model.names import HARDENING_POLICY
from tenantry.testing import eventually
from tenantry.testing.objects import obj

A_DASHBOARD = '{"k": 1, "graphs": ["a"], "deep": {"x": 1}}'

pytestmark = pytest.mark.usefixtures("releasing")


@pytest.mark.check("hpo-27")
@pytest.mark.check("hpo-28")
@pytest.mark.check("hpo-29")
@pytest.mark.check("hpo-30")
@pytest.mark.check("hpo-34")
async def test_a_chart_that_is_asked_for_is_provisioned(owners: Owners) -> None:
    """Release namespace, HelmChart and HelmRelease appear with their marks and values, and the owner is told."""
    project = await owners.project()
    name, member = f"demo-{project}", f"a1-{project}"
    release = f"{name}-dummy"

    await owners.ask(name, project)
    chart = await owners.provisioned(release)
    namespace = await owners.get(NAMESPACE, release)
    lock = await owners.get(HELM_RELEASE, release, SYSTEM)

    assert chart["spec"]["targetNamespace"] == release
    assert lock["spec"]["release"] == {"name": release, "namespace": release}
    assert labels_of(namespace) == {
        OPERATED: "true",
        PROJECT_ID: project,
        LABEL: "p-system",
        "kubernetes.io/metadata.name": release,
    }
    assert annotations_of(namespace)[LABEL] == "c-test:p-system"
    for made in (chart, lock):
        assert labels_of(made) == {
            OPERATED: "true",
            PROJECT_ID: project,
            "helm.cattle.io/helm-api-version": "dummy.cattle.io",
        }
    assert annotations_of(chart)["helmcharts.cattle.io/managed-by"] == "helm-project-operator"
    assert annotations_of(lock)["helmreleases.cattle.io/managed-by"] == "helm-project-operator"
    assert cattle_of(chart) == {
        "clusterId": "c-test",
        "projectID": project,
        "projectNamespaces": [member, release],
        "projectNamespaceSelector": {"matchLabels": {PROJECT_ID: project}},
        "releaseProjectID": "p-system",
        "rkeVersion": "from-the-file",
        "systemDefaultRegistry": "",
        "url": "https://cattle.example",
    }

    asked = await owners.told(name, project, "WaitingForDashboardValues")

    assert asked["metadata"]["finalizers"] == [FINALIZER]
    status = asked["status"]
    assert (status["systemNamespace"], status["releaseNamespace"], status["releaseName"]) == (SYSTEM, release, release)
    assert status["targetNamespaces"] == [member, release]
    assert status["observedGeneration"] == 1
    assert "dashboardValues" not in status
    assert conditions_of(asked) == {
        "Ready": ("False", "WaitingForHelm"),
        "Reconciling": ("True", "WaitingForHelm"),
        "Stalled": ("False", "WaitingForHelm"),
    }


@pytest.mark.check("hpo-31")
@pytest.mark.check("hpo-32")
@pytest.mark.check("hpo-33")
async def test_values_come_in_four_layers(owners: Owners) -> None:
    """The owner's values win over defaults, the configuration over the owner's, and what the project is over everything."""
    project = await owners.project()
    expressions = [{"key": "team", "operator": "Exists"}]
    selector = {"matchLabels": {"evil": "1"}, "matchExpressions": expressions}
    given = {
        "global": {
            "cattle": {
                "projectID": "evil",
                "url": "https://mine",
                "rkeVersion": "mine",
                "systemDefaultRegistry": "reg",
                "projectNamespaceSelector": selector,
            }
        },
        "data": {"hello": "w"},
        "targets": ["mine", "too"],
    }
    layered, stubborn = f"layers-{project}", f"string-{project}"

    await owners.ask(layered, project, values=given)
    await owners.ask(stubborn, project, values={"global": "x"})
    values = values_of(await owners.provisioned(f"{layered}-dummy"))
    cattle = values["global"]["cattle"]
    forced = cattle_of(await owners.provisioned(f"{stubborn}-dummy"))

    assert (cattle["projectID"], values["data"]) == (project, {"hello": "w"})
    assert cattle["url"] == "https://mine"
    assert cattle["projectNamespaceSelector"] == {"matchLabels": {PROJECT_ID: project}, "matchExpressions": expressions}
    assert cattle["systemDefaultRegistry"] == "reg"
    assert cattle["rkeVersion"] == "from-the-file"
    assert values["targets"] == ["file"]
    assert forced == {
        "clusterId": "c-test",
        "projectID": project,
        "projectNamespaces": [f"a1-{project}", f"{stubborn}-dummy"],
        "projectNamespaceSelector": {"matchLabels": {PROJECT_ID: project}},
        "releaseProjectID": "p-system",
        "rkeVersion": "from-the-file",
    }


@pytest.mark.check("hpo-35")
@pytest.mark.check("hpo-36")
async def test_dashboard_values_are_shown(owners: Owners, demo: Demo) -> None:
    """JSON that a chart leaves in labelled ConfigMaps is shown merged, by name and key; what is no JSON is left out and told."""
    project, name, release = demo
    second = {"2.json": '{"graphs": ["c"]}', "1.json": '{"graphs": ["b"], "k": 2}', "x.txt": "text", "bad.json": "not json"}

    await owners.dashboard("my-dash", release, release, **{"data.json": A_DASHBOARD})
    shown = await owners.told(name, project, "Deployed")
    await owners.dashboard("other", release, release, **second)
    both = await owners.told(name, project, "Deployed", holds=lambda found: found["status"]["dashboardValues"].get("k") == 2)

    assert shown["status"]["dashboardValues"] == {"k": 1, "graphs": ["a"], "deep": {"x": 1}}
    assert both["status"]["dashboardValues"] == {"k": 2, "graphs": ["a", "b", "c"], "deep": {"x": 1}}
    assert "other/bad.json" in both["status"]["statusMessage"]
    assert "other/x.txt" in both["status"]["statusMessage"]

    for config_map in ("my-dash", "other"):
        await owners.delete(CONFIG_MAP, config_map, release)
    waiting = await owners.told(name, project, "WaitingForDashboardValues")

    assert "dashboardValues" not in waiting["status"]


@pytest.mark.check("hpo-37")
async def test_a_namespace_that_joins_reaches_the_values(owners: Owners, demo: Demo) -> None:
    """A further namespace of the project is listed; an unrelated label changes nothing."""
    project, name, release = demo
    before = await owners.provisioned(release)
    await owners.label(f"a1-{project}", {"team": "x"})
    await owners.namespace(f"a2-{project}", project)

    wanted = [f"a1-{project}", f"a2-{project}", release]
    after = await owners.provisioned(release, holds=lambda found: cattle_of(found)["projectNamespaces"] == wanted)
    shown = await owners.told(
        name, project, "WaitingForDashboardValues", holds=lambda found: found["status"]["targetNamespaces"] == wanted
    )

    assert int(after["metadata"]["generation"]) == int(before["metadata"]["generation"]) + 1  # not for the label of a1
    assert shown["status"]["releaseNamespace"] == release


@pytest.mark.check("hpo-9")
@pytest.mark.parametrize("name", ["kube-system", SYSTEM])
async def test_a_system_namespace_is_no_target(owners: Owners, demo: Demo, releasing: Knative, calm: Calm, name: str) -> None:
    """A system namespace that is given a project gets nothing of ours, and no release of the project has it as a target."""
    project, chart, release = demo
    before = await owners.get(NAMESPACE, name)
    await owners.label(name, {LABEL: project})
    try:
        await owners.namespace(f"a2-{project}", project)
        wanted = [f"a1-{project}", f"a2-{project}", release]
        await owners.provisioned(release, holds=lambda found: cattle_of(found)["projectNamespaces"] == wanted)
        await calm(releasing)

        assert cattle_of(await owners.get(HELM_CHART, release, SYSTEM))["projectNamespaces"] == wanted
        told = await owners.get(PROJECT_HELM_CHART, chart, registration(project))
        assert told["status"]["targetNamespaces"] == wanted
        after = await owners.get(NAMESPACE, name)
        assert labels_of(after) == {**labels_of(before), LABEL: project}
        assert annotations_of(after) == annotations_of(before)
    finally:
        await owners.label(name, {LABEL: None})


@pytest.mark.check("hpo-38")
async def test_what_was_made_is_put_back(owners: Owners, demo: Demo, releasing: Knative, calm: Calm) -> None:
    """An edited HelmChart, HelmRelease or release namespace is as asked for again, and a deleted one is made again."""
    project, _, release = demo
    chart = await owners.provisioned(release)
    await owners.edit(HELM_CHART, release, SYSTEM, ("replace", "/spec/valuesContent", "evil: 1"))
    await owners.edit(HELM_RELEASE, release, SYSTEM, ("replace", "/spec/release/name", "evil"))
    await owners.label(release, {OPERATED: None, LABEL: project, PROJECT_ID: None, ORPHANED: "true", "team": "x"})

    await owners.provisioned(release, holds=lambda found: found["spec"] == chart["spec"])
    await owners.until(HELM_RELEASE, release, SYSTEM, lambda found: found["spec"]["release"]["name"] == release)
    marks = {OPERATED: "true", LABEL: "p-system", PROJECT_ID: project, "team": "x", "kubernetes.io/metadata.name": release}
    await owners.until(NAMESPACE, release, "", lambda found: labels_of(found) == marks)

    await owners.delete(HELM_CHART, release, SYSTEM)
    await owners.delete(HELM_RELEASE, release, SYSTEM)
    again = await owners.provisioned(release, holds=lambda found: found["metadata"]["uid"] != chart["metadata"]["uid"])

    assert again["spec"] == chart["spec"]
    await calm(releasing)


@pytest.mark.check("hpo-22")
@pytest.mark.check("hpo-23")
async def test_a_release_namespace_is_hardened(owners: Owners, demo: Demo) -> None:
    """Pods of a release get no token and no traffic unless its chart says so; an edit or a deletion is put back."""
    _, _, release = demo
    account, policy = (SERVICE_ACCOUNT, "default", release), (NETWORK_POLICY, HARDENING_POLICY, release)
    deny = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    await owners.until(
        *account, lambda found: found.get("automountServiceAccountToken") is False and OPERATED in labels_of(found)
    )
    await owners.until(*policy, lambda found: found["spec"] == deny and labels_of(found) == {OPERATED: "true"})

    await owners.edit(*account, ("replace", "/automountServiceAccountToken", True))
    await owners.edit(*policy, ("add", "/spec/ingress", [{}]))
    await owners.until(*account, lambda found: found.get("automountServiceAccountToken") is False)
    await owners.until(*policy, lambda found: found["spec"] == deny)

    await owners.delete(*policy)
    await owners.until(*policy, lambda found: found["spec"] == deny)


@pytest.mark.check("hpo-39")
@pytest.mark.check("hpo-41")
async def test_what_is_not_ours_is_left_alone(owners: Owners, demo: Demo, releasing: Knative, calm: Calm) -> None:
    """A chart of another system, and a chart in an ordinary namespace, get no status, no finalizer and no release."""
    project = demo[0]
    ordinary = f"a1-{project}"
    await owners.ask(f"other-{project}", project, version="monitoring.cattle.io/v1alpha1")
    await owners.ask(f"stray-{project}", project, namespace=ordinary)

    await calm(releasing)

    for name, namespace in ((f"other-{project}", registration(project)), (f"stray-{project}", ordinary)):
        found = await owners.get(PROJECT_HELM_CHART, name, namespace)
        assert "status" not in found
        assert "finalizers" not in found["metadata"]
        assert await owners.admin.get(HELM_CHART, f"{name}-dummy", SYSTEM) is None
        assert await owners.admin.get(NAMESPACE, f"{name}-dummy") is None


@pytest.mark.check("hpo-39")
async def test_who_asks_for_what_nobody_has_is_told_what_there_is(
    owners: Owners, demo: Demo, releasing: Knative, calm: Calm
) -> None:
    """A helmApiVersion that no chart has gets one Warning that names those there are, however often it is looked at."""
    project, name = demo[0], f"typo-{demo[0]}"
    await owners.ask(name, project, version="dummy.cattle.io/v1")
    text = await owners.warning(name, project, "UnknownHelmApiVersion")
    assert "'dummy.cattle.io/v1', which no chart here has" in text
    assert "dummy.cattle.io/v1alpha1" in text
    await owners.edit(PROJECT_HELM_CHART, name, registration(project), ("add", "/metadata/labels", {"seen": "again"}))
    await calm(releasing)
    await releasing.sweep("release-provisioning")
    assert await owners.said(name, registration(project)) == [("Warning", "UnknownHelmApiVersion")]

    await owners.edit(PROJECT_HELM_CHART, name, registration(project), ("replace", "/spec/helmApiVersion", DUMMY))
    await owners.provisioned(f"{name}-dummy")


async def test_events_tell_what_was_done(owners: Owners, demo: Demo) -> None:
    """Each decision that changed something is one Event on the ProjectHelmChart."""
    project, name, release = demo
    await owners.edit(HELM_CHART, release, SYSTEM, ("replace", "/spec/targetNamespace", "evil"))
    await owners.provisioned(release, holds=lambda found: found["spec"]["targetNamespace"] == release)
    await owners.namespace(f"a2-{project}", project)
    await owners.provisioned(release, holds=lambda found: f"a2-{project}" in found["spec"]["valuesContent"])

    wanted = [("Normal", "ReleaseRequested"), ("Normal", "Restored"), ("Normal", "ReleaseUpdated")]
    await eventually(
        lambda: owners.said(name, registration(project)), lambda found: found == wanted, within=PROJECTS_S, what="three Events"
    )


@pytest.mark.parametrize(
    ("helm", "lock", "ready", "stalled"),
    [
        ([{"type": "Failed", "status": "True", "message": "no such image"}], "", ("False", "HelmFailed"), "True"),
        ([{"type": "JobCreated", "status": "True"}], "Deployed", ("True", "Deployed"), "False"),
        ([{"type": "JobCreated", "status": "True"}], "Transitioning", ("False", "WaitingForHelm"), "False"),
        ([], "Failed", ("False", "HelmFailed"), "True"),
    ],
)
async def test_the_owner_sees_what_helm_and_the_lock_say(
    owners: Owners, demo: Demo, helm: list[Object], lock: str, ready: tuple[str, str], stalled: str
) -> None:
    """The result of Helm's Job and the state of the lock are in the conditions of the ProjectHelmChart."""
    project, name, release = demo
    await put_status(owners.admin, HELM_CHART, release, {"jobName": f"helm-install-{release}", "conditions": helm})
    await put_status(owners.admin, HELM_RELEASE, release, {"state": lock, "description": "it broke"})

    def holds(found: Object) -> bool:
        conditions = conditions_of(found)
        said = (find_condition(found, "Ready") or {})["message"]
        return (conditions["Ready"], conditions["Stalled"][0]) == (ready, stalled) and (
            not lock or lock in said or "it broke" in said
        )

    found = await owners.told(name, project, "WaitingForDashboardValues", holds=holds)

    if helm and helm[0]["type"] == "Failed":
        assert "no such image" in (find_condition(found, "Stalled") or {})["message"]


async def put_status(admin: Api, kind: Kind, name: str, status: Object) -> None:
    """Write a status as another controller does."""
    await admin.apply(kind, obj(kind, name, SYSTEM, status=status), subresource="status")
