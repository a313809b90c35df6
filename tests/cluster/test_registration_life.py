"""Projects over time: members that leave, move and return, and registration namespaces that are deleted (hpo-10 to hpo-16)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
import pytest_asyncio
from flawless import Calm
from people import CHART_CONFIG_MAP, LABEL, OPERATED, ORPHANED, POLICY, PROJECT_ID, People, marks, marks_of, registration, token

from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Object, is_terminating, labels_of


@pytest.fixture
async def project(c1: Knative, people: People) -> str:
    """A project with one namespace, ``a1-<project>``, that is registered."""
    made = await people.project()
    await people.until(NAMESPACE, f"a1-{made}", "", lambda found: labels_of(found).get(PROJECT_ID) == made)
    return made


@pytest.mark.check("hpo-10", "hpo-11")
async def test_deleted_last_member_orphans_and_a_new_one_revives(project: str, people: People, c1: Knative, calm: Calm) -> None:
    """When the last namespace is deleted the registration namespace is marked and stays; a new member takes the mark off."""
    await people.delete(NAMESPACE, f"a1-{project}")
    await people.orphaned(project)
    await calm(c1)
    assert marks_of(project, orphaned=True) == marks(await people.get(NAMESPACE, registration(project)))

    await people.namespace(f"a2-{project}", project)
    await people.registered(project)
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))


@pytest.mark.check("hpo-12")
async def test_unlabelled_last_member_orphans(project: str, people: People) -> None:
    """When the project label is taken off the last namespace, the project is orphaned and the namespace forgets it."""
    name = f"a1-{project}"
    await people.label(name, {LABEL: None})

    await people.orphaned(project)
    await people.until(NAMESPACE, name, "", lambda found: PROJECT_ID not in labels_of(found))


async def test_one_of_two_members_leaving_orphans_nothing(project: str, people: People, c1: Knative, calm: Calm) -> None:
    """As long as one namespace is left, nothing happens to the registration namespace."""
    await people.namespace(f"a2-{project}", project)
    await calm(c1)
    before = await people.get(NAMESPACE, registration(project))

    await people.label(f"a1-{project}", {LABEL: None})
    await people.delete(NAMESPACE, f"a1-{project}")
    await calm(c1)

    after = await people.get(NAMESPACE, registration(project))
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


@pytest.mark.check("hpo-13")
async def test_moved_member_changes_both_projects(project: str, people: People) -> None:
    """A namespace that moves takes its label with it: the new project is registered, the old one orphaned."""
    name, other = f"a1-{project}", f"p-{token()}"
    await people.label(name, {LABEL: other})

    await people.registered(other)
    await people.orphaned(project)
    await people.until(NAMESPACE, name, "", lambda found: labels_of(found).get(PROJECT_ID) == other)


@pytest.mark.check("hpo-13")
async def test_moved_member_leaves_the_others_alone(project: str, people: People, c1: Knative, calm: Calm) -> None:
    """When another namespace stays behind, the old project goes on as it is."""
    other = f"p-{token()}"
    await people.namespace(f"a2-{project}", project)
    await calm(c1)
    await people.label(f"a2-{project}", {LABEL: other})
    await people.registered(other)
    await calm(c1)

    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))
    assert labels_of(await people.get(NAMESPACE, f"a2-{project}"))[PROJECT_ID] == other


@pytest.mark.check("hpo-14")
@pytest.mark.parametrize("target", ["p-denied", "p-system"])
async def test_member_that_moves_to_a_system_project_forgets_its_project(project: str, people: People, target: str) -> None:
    """A namespace that moves to a denied or the system project leaves its project for good."""
    name = f"a1-{project}"
    await people.label(name, {LABEL: target})

    await people.until(NAMESPACE, name, "", lambda found: PROJECT_ID not in labels_of(found))
    await people.orphaned(project)


async def test_edited_memory_is_put_back_and_harms_nobody(project: str, people: People, c1: Knative, calm: Calm) -> None:
    """Somebody who writes another project into a member's memory changes neither project."""
    other = f"p-{token()}"
    await people.namespace(f"b1-{other}", other)
    await people.registered(other)
    await people.label(f"a1-{project}", {PROJECT_ID: other})
    await people.until(NAMESPACE, f"a1-{project}", "", lambda found: labels_of(found).get(PROJECT_ID) == project)
    await calm(c1)

    for each in (project, other):
        assert marks_of(each) == marks(await people.get(NAMESPACE, registration(each)))


async def test_moving_back_and_forth_ends_where_it_began(project: str, people: People, c1: Knative, calm: Calm) -> None:
    """However often and fast a namespace changes its project, the end depends on its last label alone."""
    name, others = f"a1-{project}", [f"p-{token()}" for _ in range(3)]
    for each in (*others, project, *reversed(others), project):
        await people.label(name, {LABEL: each})
    await calm(c1)

    assert labels_of(await people.get(NAMESPACE, name))[PROJECT_ID] == project
    assert marks_of(project) == marks(await people.get(NAMESPACE, registration(project)))
    for each in others:
        left = await people.admin.get(NAMESPACE, registration(each))
        assert left is None or marks_of(each, orphaned=True) == marks(left)


async def test_orphaned_registration_namespace_is_still_repaired(project: str, people: People, c1: Knative, calm: Calm) -> None:
    """Labels, ConfigMap and hardening of an orphaned registration namespace are kept as well, the orphan label too."""
    name = registration(project)
    await people.label(f"a1-{project}", {LABEL: None})
    await people.orphaned(project)

    await people.delete(CONFIG_MAP, CHART_CONFIG_MAP, name)
    await people.delete(NETWORK_POLICY, POLICY, name)
    await people.label(name, {OPERATED: None, PROJECT_ID: None})
    await calm(c1)
    assert marks_of(project, orphaned=True) == marks(await people.get(NAMESPACE, name))
    await people.get(CONFIG_MAP, CHART_CONFIG_MAP, name)
    await people.get(NETWORK_POLICY, POLICY, name)

    await people.label(name, {ORPHANED: None})
    await calm(c1)
    assert marks_of(project, orphaned=True) == marks(await people.get(NAMESPACE, name))


@dataclass(frozen=True)
class Departed:
    """Projects whose registration namespaces were deleted, and are gone; with the deleted objects."""

    alive: str
    orphaned: str
    emptied: str
    busy: str
    foreign: str
    before: dict[str, Object]
    answers: list[int]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def departed(c1: Knative, people: People) -> Departed:
    """All deletions of this module at once: the namespace controller takes its five seconds for them together."""
    alive, orphaned, emptied, busy, foreign = (f"p-{token()}" for _ in range(5))
    await people.namespace(registration(foreign))
    await asyncio.gather(*(people.namespace(f"a1-{project}", project) for project in (alive, orphaned, emptied, busy, foreign)))
    await people.warned(f"a1-{foreign}", "NamespaceConflict")
    for project in (alive, orphaned, emptied, busy):
        await people.registered(project)
    await people.label(f"a1-{orphaned}", {LABEL: None})
    await people.orphaned(orphaned)
    names = [registration(project) for project in (alive, orphaned, emptied, busy, foreign)]
    before = {name: await people.get(NAMESPACE, name) for name in names}

    answers: list[int] = []
    c1.on_delivery.append(lambda _, __, status, *___: answers.append(status))
    await asyncio.gather(*(people.delete(NAMESPACE, name) for name in names))
    # While it is on its way out: its last member leaves one project, members join another, and somebody edits labels.
    await people.label(f"a1-{emptied}", {LABEL: None})
    await people.namespace(f"a2-{busy}", busy)
    await people.label(registration(busy), {OPERATED: None, "team": "x"})
    await people.delete(CONFIG_MAP, CHART_CONFIG_MAP, registration(busy))
    await c1.sweep("namespace-registration")
    assert all([is_terminating(await people.get(NAMESPACE, name)) for name in names])

    await asyncio.gather(*(people.gone(name, before[name]["metadata"]["uid"]) for name in names))
    return Departed(alive, orphaned, emptied, busy, foreign, before, answers)


@pytest.mark.check("hpo-15")
async def test_deleted_registration_namespace_comes_back(departed: Departed, people: People) -> None:
    """The registration namespace of a living project comes back with everything in it, as soon as it is gone."""
    await people.registered(departed.alive)

    found = await people.get(NAMESPACE, registration(departed.alive))
    assert marks_of(departed.alive) == marks(found)
    assert found["metadata"]["uid"] != departed.before[registration(departed.alive)]["metadata"]["uid"]
    await people.until(NETWORK_POLICY, POLICY, registration(departed.alive), lambda _: True)
    await people.until(
        SERVICE_ACCOUNT,
        "default",
        registration(departed.alive),
        lambda found: found.get("automountServiceAccountToken") is False,
    )


@pytest.mark.check("hpo-16")
async def test_deleted_orphan_stays_deleted(departed: Departed, people: People, c1: Knative, calm: Calm) -> None:
    """An orphaned registration namespace that somebody deletes is not made again."""
    await calm(c1)

    assert await people.admin.get(NAMESPACE, registration(departed.orphaned)) is None


async def test_project_emptied_during_the_deletion_stays_deleted(
    departed: Departed, people: People, c1: Knative, calm: Calm
) -> None:
    """When the last member leaves while the registration namespace is on its way out, it is not made again either."""
    await calm(c1)

    assert await people.admin.get(NAMESPACE, registration(departed.emptied)) is None


async def test_terminating_registration_namespace_is_waited_for(departed: Departed, people: People) -> None:
    """Work on a registration namespace that is on its way out neither fails nor is lost: a clean one follows."""
    await people.registered(departed.busy)

    found = await people.get(NAMESPACE, registration(departed.busy))
    assert marks_of(departed.busy) == marks(found)
    assert "team" not in labels_of(found), "this is another namespace than the one that was edited"
    assert set(departed.answers) <= {204}


@pytest.mark.check("hpo-18")
async def test_clash_heals_when_the_foreign_namespace_goes(departed: Departed, people: People, c1: Knative, calm: Calm) -> None:
    """A project whose name was taken is served as soon as the foreign namespace is gone, and the complaint disappears."""
    await people.registered(departed.foreign)
    await calm(c1)

    assert marks_of(departed.foreign) == marks(await people.get(NAMESPACE, registration(departed.foreign)))
    assert await people.condition(f"a1-{departed.foreign}") is None
