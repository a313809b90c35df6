"""Names give nobody anything: whoever asks for a release by another project's name gets neither its namespace nor word of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attackers import Attackers
from flawless import calming
from people import registration, token
from releases import SYSTEM, Owners, conditions_of
from times import LEFT_TO_MAKE_WHOLE
from victims import asked, somebody

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import HELM_CHART, NAMESPACE, PROJECT_HELM_CHART, SECRET, Object, annotations_of, labels_of
from tenantry.model.names import ADOPT, ORPHANED, PROJECT_CHART, PROJECT_ID
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

UNABLE = "UnableToCreateHelmRelease"
SERVED = "WaitingForDashboardValues"


async def ask(who: Api, name: str, project: str) -> Object:
    """A ProjectHelmChart by an owner, with his own rights."""
    return await who.create(PROJECT_HELM_CHART, asked(name, registration(project)))


async def two_owners(owners: Owners, attackers: Attackers) -> tuple[str, Api, str, Api]:
    """Two projects, each with its owner."""
    (mine, _, owner), (theirs, _, neighbour) = await somebody(owners, attackers), await somebody(owners, attackers)
    return mine, owner, theirs, neighbour


async def left_behind(owners: Owners, who: Api, name: str, project: str) -> Object:
    """A release that came and went; its namespace stays with a Secret, as Helm or a person leaves it."""
    release = f"{name}-dummy"
    await ask(who, name, project)
    await owners.told(name, project, SERVED)
    await owners.admin.create(SECRET, obj(SECRET, "database", release, stringData={"password": "of-the-first"}))
    await who.delete(PROJECT_HELM_CHART, name, registration(project))
    await owners.away(PROJECT_HELM_CHART, name, registration(project))
    await owners.taken_away(release)
    return await owners.until(NAMESPACE, release, "", lambda found: ORPHANED in labels_of(found))


def stalls(reason: str) -> Callable[[Object], bool]:
    return lambda found: conditions_of(found)["Stalled"] == ("True", reason)


@pytest.mark.check("a-32", without="leftovers-kept")
async def test_what_a_release_left_is_not_handed_on(owners: Owners, attackers: Attackers, system: Knative) -> None:
    """Another project that asks for the name is refused and told while the namespace is there, and served when it is gone."""
    first, its_owner, second, neighbour = await two_owners(owners, attackers)
    name = f"shop-{token()}"
    release = f"{name}-dummy"
    left = await left_behind(owners, its_owner, name, first)

    await ask(neighbour, name, second)
    told = await owners.told(name, second, UNABLE, holds=stalls("NotOurs"))
    await calming(owners.admin)(system)

    message = told["status"]["statusMessage"]
    assert f"namespace {release} has what a release of another project left" in message
    assert f"{ADOPT}=true" in message
    assert first not in message
    assert await owners.warning(name, second, "NotOurs") == message
    assert await owners.admin.get(HELM_CHART, release, SYSTEM) is None
    live = await owners.get(NAMESPACE, release)
    assert labels_of(live) == labels_of(left)
    assert annotations_of(live) == annotations_of(left)
    assert await owners.admin.get(SECRET, "database", release) is not None

    await owners.delete(NAMESPACE, release)
    await owners.told(name, second, SERVED)
    await owners.provisioned(release)
    fresh = await owners.until(NAMESPACE, release, "", lambda found: labels_of(found).get(PROJECT_ID) == second)
    assert fresh["metadata"]["uid"] != left["metadata"]["uid"]
    assert await owners.admin.get(SECRET, "database", release) is None


@pytest.mark.check("a-32", without="leftovers-kept")
async def test_an_administrator_hands_over_what_was_left_and_only_once(owners: Owners, attackers: Attackers) -> None:
    """The annotation gives the namespace to who asks now, and is taken off: the next project needs a word of its own."""
    first, its_owner, second, neighbour = await two_owners(owners, attackers)
    name = f"shop-{token()}"
    release = f"{name}-dummy"
    left = await left_behind(owners, its_owner, name, first)
    await ask(neighbour, name, second)
    await owners.told(name, second, UNABLE, holds=stalls("NotOurs"))

    await owners.label(release, {ADOPT: "true"}, "annotations")
    await owners.told(name, second, SERVED)
    await owners.provisioned(release)
    given = await owners.until(NAMESPACE, release, "", lambda found: ADOPT not in annotations_of(found))

    assert given["metadata"]["uid"] == left["metadata"]["uid"]
    assert labels_of(given)[PROJECT_ID] == second
    assert annotations_of(given)[PROJECT_CHART] == f"{registration(second)}/{name}"
    assert await owners.admin.get(SECRET, "database", release) is not None

    await neighbour.delete(PROJECT_HELM_CHART, name, registration(second))
    await owners.away(PROJECT_HELM_CHART, name, registration(second))
    await owners.taken_away(release)
    await ask(its_owner, name, first)
    await owners.told(name, first, UNABLE, holds=stalls("NotOurs"))
    assert await owners.admin.get(HELM_CHART, release, SYSTEM) is None


@pytest.mark.check("a-32")
async def test_a_project_gets_its_own_namespace_back(owners: Owners, attackers: Attackers) -> None:
    """The project whose release left the namespace asks for it again and gets it as it is."""
    project, _, owner = await somebody(owners, attackers)
    name = f"shop-{token()}"
    left = await left_behind(owners, owner, name, project)

    await ask(owner, name, project)
    await owners.told(name, project, SERVED)
    back = await owners.until(NAMESPACE, f"{name}-dummy", "", lambda found: ORPHANED not in labels_of(found))

    assert back["metadata"]["uid"] == left["metadata"]["uid"]


@pytest.mark.check("a-36", without="first-come")
async def test_a_squatted_name_is_told_without_the_neighbours_objects(owners: Owners, attackers: Attackers) -> None:
    """Who comes second learns that another project has the name, and neither which nor what it is called."""
    first, its_owner, second, neighbour = await two_owners(owners, attackers)
    name = f"shop-{token()}"
    await ask(its_owner, name, first)
    await owners.told(name, first, SERVED)
    before = await owners.get(HELM_CHART, f"{name}-dummy", SYSTEM)

    await ask(neighbour, name, second)
    told = await owners.told(name, second, UNABLE, holds=stalls("ReleaseNameTaken"))
    warning = await owners.warning(name, second, "ReleaseNameTaken")

    assert "it belongs to another project" in warning
    assert first not in str(told)
    assert first not in warning
    assert (await owners.get(HELM_CHART, f"{name}-dummy", SYSTEM))["metadata"]["uid"] == before["metadata"]["uid"]
    assert (await owners.get(PROJECT_HELM_CHART, name, registration(first)))["status"]["status"] == SERVED


@pytest.mark.check("a-31")
async def test_a_release_is_never_called_like_a_registration_namespace(
    owners: Owners, attackers: Attackers, system: Knative
) -> None:
    """A ProjectHelmChart whose release would get another project's registration namespace is refused; that project is served."""
    project, _, owner = await somebody(owners, attackers)
    victim = f"v-{token()}"
    name = registration(victim)

    await ask(owner, name, project)
    told = await owners.told(name, project, UNABLE, holds=stalls("InvalidReleaseName"))
    await calming(owners.admin)(system)
    assert "kept for a registration or system namespace" in told["status"]["statusMessage"]
    assert await owners.admin.get(NAMESPACE, f"{name}-dummy") is None

    await owners.project(name=f"{victim}-dummy")
    registered = await owners.get(NAMESPACE, registration(f"{victim}-dummy"))
    assert labels_of(registered)[PROJECT_ID] == f"{victim}-dummy"
    assert PROJECT_CHART not in annotations_of(registered)
