"""ProjectHelmCharts that real Helm deploys, with all functions at work: from the request to the release, and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from flawless import Calm, flawless
from helm_people import NEEDY
from people import LABEL, ORPHANED, changed, registration, token
from releases import CONFIG, FUNCTIONS, SYSTEM, Owners, conditions_of
from rights import AGGREGATION, Project, cluster_role, named, user
from times import FULL, HELM_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.local.control_plane import Lines, ensure_helm
from tenantry.local.deployment import documents
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    HELM_RELEASE,
    JOB,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    PROJECT_HELM_CHART,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
    is_terminating,
    labels_of,
)
from tenantry.testing import eventually
from tenantry.testing.helm import unpacked
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle, snapshot

ROOT = Path(__file__).parents[2]
ALL = (*FUNCTIONS, AGGREGATION, "lock-enforcement", "scope-binding")
PACE_S = 0.3
"""Between two namespaces of a burst: slow enough for Helm to run in between, if nobody waits for its end."""
MONITORED = "apps.example.com/v1alpha1"
PICKY = "picky.example.com/v1"
WRITTEN = (
    NAMESPACE,
    PROJECT_HELM_CHART,
    HELM_CHART,
    HELM_RELEASE,
    CONFIG_MAP,
    SECRET,
    SERVICE_ACCOUNT,
    NETWORK_POLICY,
    ROLE,
    ROLE_BINDING,
    CLUSTER_ROLE_BINDING,
    JOB,
    POD,
)
"""What the functions, Helm and charts write."""


@pytest.fixture
def owners(admin: Api) -> Owners:
    return Owners(admin, HELM_S)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def deploying(
    knative: Callable[..., Awaitable[Knative]], admin: Api, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Knative]:
    """All functions, the local runner of Jobs with a real Helm, and two charts whose objects may be locked."""
    picky = tmp_path_factory.mktemp("picky")
    (picky / "templates").mkdir()
    (picky / "Chart.yaml").write_text("apiVersion: v2\nname: picky\nversion: 1.0.0\n")
    (picky / "templates" / "greeting.yaml").write_text(NEEDY)
    charts = [
        *CONFIG["helmProjectOperator"]["charts"],
        {"helmApiVersion": MONITORED, "releaseName": "monitored", "chart": str(ROOT / "docs/examples/monitored-app")},
        {"helmApiVersion": PICKY, "releaseName": "picky", "chart": str(picky)},
    ]
    config = changed(CONFIG, operator={"charts": charts, "helmController": {"enabled": True}})
    for role in documents(ROOT / "knative" / "lockable-kinds"):
        await admin.apply(CLUSTER_ROLE, role)
    running = await knative(config, functions=ALL, helm=ensure_helm(Lines()))
    async with flawless(running):
        yield running


def is_ready(chart: Object) -> bool:
    """Whether Helm has deployed what a ProjectHelmChart asks for."""
    ready = conditions_of(chart)["Ready"] == ("True", "Deployed")
    return ready and (find_condition(chart, "Ready") or {}).get("observedGeneration") == chart["metadata"]["generation"]


async def records(owners: Owners, release: str) -> dict[str, str]:
    """Helm's records of a release: revision to uid."""
    found = (await owners.admin.list(SECRET, release, label_selector=f"owner=helm,name={release}")).items
    return {labels_of(each)["version"]: each["metadata"]["uid"] for each in found}


async def bind(owners: Owners, project: str, who: str, level: str) -> None:
    """Give a person a level in a project."""
    body = obj(ROLE_BINDING, who, registration(project), roleRef=cluster_role(level), subjects=[user(who)])
    await owners.admin.create(ROLE_BINDING, body)


async def deployed(owners: Owners, name: str, project: str, who: str) -> None:
    """Wait until a monitored release is deployed and locked, and its admin is bound to the chart's Role."""
    release = f"{name}-monitored"
    await owners.told(name, project, "Deployed", holds=is_ready)
    await owners.until(
        ROLE_BINDING, f"{release}-admin", release, lambda found: named(found) == [f"User {who}"], what=f"{who} in {release}"
    )
    await owners.until(
        HELM_RELEASE,
        release,
        SYSTEM,
        lambda found: (find_condition(found, "Complete") or {}).get("status") == "True",
        what=f"lock of {release}",
    )


@pytest.fixture
def project() -> str:
    return f"p-{token()}"


@pytest.fixture
def name(project: str) -> str:
    return f"demo-{project}"


@pytest_asyncio.fixture(loop_scope="session")
async def release(owners: Owners, deploying: Knative, project: str, name: str) -> str:
    """A deployed release of a project with the admin alice."""
    del deploying
    await owners.project(name=project)
    await bind(owners, project, "alice", "admin")
    await owners.ask(name, project, version=MONITORED)
    await deployed(owners, name, project, "alice")
    return f"{name}-monitored"


async def made_by_chart(owners: Owners, release: str) -> list[str]:
    """The objects in a release namespace that Helm made, and bindings to its Roles."""
    found = [
        obj
        for kind in (CONFIG_MAP, ROLE, ROLE_BINDING, SECRET)
        for obj in (await owners.admin.list(kind, release)).items
        if release in obj["metadata"]["name"]
    ]
    return sorted(f"{obj['kind']} {obj['metadata']['name']}" for obj in found)


@pytest.mark.check("hpo-47")
async def test_a_deleted_chart_is_uninstalled_by_helm(
    owners: Owners, deploying: Knative, calm: Calm, project: str, name: str, release: str
) -> None:
    """Chart objects, Helm's record and what ran Helm go with the ProjectHelmChart; what people put into the namespace stays."""
    await owners.admin.create(CONFIG_MAP, obj(CONFIG_MAP, "mine", release))
    roles = [f"Role {release}-{level}" for level in ("admin", "edit", "view")]
    binding = f"RoleBinding {release}-admin"
    secret = f"Secret sh.helm.release.v1.{release}.v1"
    assert await made_by_chart(owners, release) == sorted([f"ConfigMap {release}-dashboard", *roles, binding, secret])

    await owners.delete(PROJECT_HELM_CHART, name, registration(project))

    await owners.away(PROJECT_HELM_CHART, name, registration(project))
    await owners.taken_away(release)
    for kind, left in ((JOB, f"helm-install-{release}"), (JOB, f"helm-delete-{release}"), (SERVICE_ACCOUNT, f"helm-{release}")):
        await owners.away(kind, left, SYSTEM)
    await owners.until(NAMESPACE, release, "", lambda found: labels_of(found).get(ORPHANED) == "true")
    await calm(deploying)
    assert await made_by_chart(owners, release) == []
    assert await owners.admin.get(CONFIG_MAP, "mine", release) is not None
    assert await owners.admin.get(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{release}") is None


@pytest.mark.check("hpo-48")
async def test_a_deleted_release_namespace_is_filled_again_by_helm(owners: Owners, project: str, name: str, release: str) -> None:
    """The namespace of a release that was deleted is made again, and Helm installs the chart anew, with the rights in it."""
    before = await owners.get(NAMESPACE, release)
    first = await records(owners, release)
    assert list(first) == ["1"]

    await owners.delete(NAMESPACE, release)
    await owners.gone(release, before["metadata"]["uid"])
    await eventually(
        lambda: records(owners, release),
        lambda found: found.keys() == first.keys() and found != first,
        within=HELM_S,
        what="a new first revision",
    )
    await deployed(owners, name, project, "alice")
    await owners.until(CONFIG_MAP, f"{release}-dashboard", release, bool)
    assert LABEL in labels_of(await owners.get(NAMESPACE, release))


@pytest.mark.check("hpo-67")
@LEFT_TO_MAKE_WHOLE
async def test_a_foreign_binding_does_not_hold_up_the_release(
    owners: Owners, deploying: Knative, calm: Calm, project: str, name: str, release: str
) -> None:
    """A user's RoleBinding under the name of a chart's Role stays and is told; the HelmChart is provisioned all the same."""
    rights = Project(owners, project=project, chart=name, place=release)
    clash = f"{release}-edit"
    theirs = await rights.bind(clash, cluster_role("view"), user("carol"), namespace=release)
    await rights.bind("bob", "edit", user("bob"))

    message = await rights.told("RoleBindingConflict")
    assert f"RoleBinding {release}/{clash}" in message
    warned = await rights.events(lambda event: event["reason"] == "RoleBindingConflict")
    assert [(event["type"], event["involvedObject"]["name"], event["message"]) for event in warned] == [
        ("Warning", name, message)
    ]

    before = await owners.get(HELM_CHART, release, SYSTEM)
    await owners.admin.delete(HELM_CHART, release, SYSTEM)
    await owners.provisioned(release, holds=lambda found: found["metadata"]["uid"] != before["metadata"]["uid"])
    await deployed(owners, name, project, "alice")
    await owners.namespace(f"a2-{project}", project)
    await owners.provisioned(release, holds=lambda found: f"a2-{project}" in found["spec"]["valuesContent"])
    await calm(deploying)
    assert await rights.binding(clash) == theirs
    assert (await rights.condition())["reason"] == "RoleBindingConflict"


@pytest.mark.check("hpo-88")
async def test_helm_follows_its_project(owners: Owners, deploying: Knative, calm: Calm, project: str, release: str) -> None:
    """A namespace that joins is in Helm's record of every release, as a new revision; ten in a row bring one more."""
    other = f"also-{project}"
    await owners.ask(other, project, version=MONITORED)
    await deployed(owners, other, project, "alice")
    releases = (release, f"{other}-monitored")

    members = [f"a1-{project}", f"a2-{project}"]
    await owners.namespace(members[1], project)
    for each in releases:
        await recorded(owners, each, 2, [*members, each])

    before = await jobs(owners, releases)
    burst = [f"b{number}-{project}" for number in range(10)]

    async def joins(number: int) -> None:
        await asyncio.sleep(number * PACE_S)
        await owners.namespace(burst[number], project)

    await asyncio.gather(*(joins(number) for number in range(len(burst))))
    assert await jobs(owners, releases) == before, "Helm runs for what the whole burst comes to"
    for each in releases:
        await recorded(owners, each, 3, [*members, *burst, each])
    await calm(deploying)
    for each in releases:
        assert sorted(await records(owners, each)) == ["1", "2", "3"]


async def jobs(owners: Owners, releases: Sequence[str]) -> list[str]:
    """The uids of the Jobs that ran Helm last, where they are not on their way out."""
    found = [await owners.get(JOB, f"helm-install-{release}", SYSTEM) for release in releases]
    return [job["metadata"]["uid"] for job in found if not is_terminating(job)]


async def recorded(owners: Owners, release: str, revision: int, namespaces: list[str]) -> None:
    """Wait until Helm has recorded a revision as deployed; it must have been made with these namespaces as values."""
    secret = await owners.until(
        SECRET,
        f"sh.helm.release.v1.{release}.v{revision}",
        release,
        lambda found: labels_of(found)["status"] == "deployed",
        within=30,
        what=f"revision {revision} of {release}",
    )
    assert unpacked(secret)["config"]["global"]["cattle"]["projectNamespaces"] == namespaces


async def test_a_chart_that_helm_cannot_deploy_is_told_to_its_owner(owners: Owners, deploying: Knative, project: str) -> None:
    """Helm's words reach the ProjectHelmChart while it is tried again; given up they are a Warning, and put right all is well."""
    del deploying
    name, home = f"fails-{project}", registration(project)
    release = f"{name}-picky"
    await owners.project(name=project)
    await owners.ask(name, project, version=PICKY)

    def reads(type_: str, reason: str) -> Callable[[Object], bool]:
        def holds(chart: Object) -> bool:
            found = find_condition(chart, type_) or {}
            return (found.get("status"), found.get("reason")) == ("True", reason) and "greeting is needed" in found["message"]

        return holds

    await owners.told(name, project, "WaitingForDashboardValues", holds=reads("Reconciling", "WaitingForHelm"))
    await owners.edit(HELM_CHART, release, SYSTEM, ("add", "/spec/backOffLimit", 0))
    await owners.told(name, project, "WaitingForDashboardValues", holds=reads("Stalled", "HelmFailed"))
    await hears(owners, name, home, ("Warning", "HelmFailed"))
    assert await records(owners, release) == {}

    await owners.edit(PROJECT_HELM_CHART, name, home, ("add", "/spec/values", {"greeting": "servus"}))
    await owners.told(name, project, "WaitingForDashboardValues", holds=is_ready)
    assert (await owners.get(CONFIG_MAP, release, release))["data"] == {"greeting": "servus"}
    await hears(owners, name, home, ("Normal", "Deployed"))


async def hears(owners: Owners, name: str, home: str, event: tuple[str, str]) -> None:
    """Wait for a Kubernetes Event about a ProjectHelmChart."""
    await eventually(lambda: owners.said(name, home), lambda found: event in found, within=HELM_S, what=f"{event} on {name}")


@pytest.mark.check("hpo-51")
@pytest.mark.timeout(1200)
@LEFT_TO_MAKE_WHOLE
async def test_restarts_change_nothing(owners: Owners, deploying: Knative, project: str) -> None:
    """Restarts and sweeps of all functions over deployed releases write nothing; `make volume`: 20 restarts, 50 releases."""
    charts, restarts = (50, 20) if FULL else (4, 2)
    names = [f"demo{number}-{project}" for number in range(charts)]
    await owners.project(name=project)
    await bind(owners, project, "alice", "admin")
    await asyncio.gather(*(owners.ask(name, project, version=MONITORED) for name in names))

    async def all_deployed() -> bool:
        found = {each["metadata"]["name"]: each for each in (await owners.admin.list(PROJECT_HELM_CHART)).items}
        return all(found[name].get("status") and is_ready(found[name]) for name in names)

    await eventually(all_deployed, within=HELM_S * charts, what="all releases deployed")
    for name in names:
        await deployed(owners, name, project, "alice")
    await settle(deploying, owners.admin)

    async def seen() -> dict[str, dict[str, str]]:
        return {kind.kind: await snapshot(owners.admin, [kind], containing=project) for kind in WRITTEN}

    before = await seen()
    for name in names:
        assert list(await records(owners, f"{name}-monitored")) == ["1"]
    assert len(before["RoleBinding"]) >= charts + 1, "each release has that of its admin, and the project has one"
    assert len(before["Role"]) == 3 * charts
    assert len(before["Job"]) == len(before["Pod"]) == charts

    for _ in range(restarts):
        await asyncio.gather(*(function.stop() for function in deploying.functions.values()))
        await asyncio.gather(*(function.start() for function in deploying.functions.values()))
        for function in deploying.names:
            await deploying.sweep(function)
        assert await seen() == before
    await settle(deploying, owners.admin)
    assert await seen() == before
