"""Who is asked whether a project lives, what else is read, and which member of before saves a list."""

from __future__ import annotations

from typing import Any

import owning
import pytest
from project_objects import CHARTS, LABEL, SINGLE, UNIT, Fixed, key, namespace, projects, registered
from served import Served

from namespace_registration.projects.plan import Project, SystemNamespace
from tenantry.engine.last_runs import ReadStates
from tenantry.engine.reader import Reader
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT, Key, Object
from tenantry.model.names import ADOPT
from tenantry.model.plan import NOTHING


def a(name: str, project: str = "p-a", **metadata: Any) -> Object:
    return namespace(name, {LABEL: project}, **metadata)


@pytest.mark.parametrize(
    ("causes", "there", "alive", "members"),
    [
        ([], [a("a1"), a("a2"), a("b1", "p-b")], True, ["a1", "a2"]),
        ([], [a("b1", "p-b")], False, []),
        ([], [a("a1", deletionTimestamp="now")], False, []),
        ([key(NAMESPACE, "a2")], [a("a1"), a("a2")], True, ["a2"]),
        ([key(NAMESPACE, "a1"), key(NAMESPACE, "a2")], [a("a1"), a("a2")], True, ["a1"]),
        ([key(NAMESPACE, "gone")], [a("a1")], True, ["a1"]),
        ([key(NAMESPACE, "gone")], [], False, []),
        ([key(NAMESPACE, "b1")], [a("b1", "p-b")], False, []),
        ([key(NAMESPACE, "cattle-project-p-a")], [a("a1")], True, ["a1"]),
        ([key(CONFIG_MAP, "c", "cattle-project-p-a")], [a("a1")], None, []),
        ([key(CONFIG_MAP, "c", "cattle-project-p-b")], [a("a1")], True, ["a1"]),
        ([key(CONFIG_MAP, "c", "cattle-project-p-a"), key(NAMESPACE, "gone")], [a("a1")], True, ["a1"]),
    ],
)
async def test_whether_a_project_is_alive(causes: list[Key], there: list[Object], alive: bool | None, members: list[str]) -> None:
    """Who woke the run is asked first, else all are listed; what lives inside the registration namespace does not ask."""
    seen = await owning.observe(UNIT, "project/p-a", Fixed(*there, registered("p-a"), causes=causes))
    assert isinstance(seen, Project)
    assert (seen.alive, [member["metadata"]["name"] for member in seen.members], seen.ours) == (alive, members, True)


async def test_an_object_inside_without_its_namespace_asks() -> None:
    """When the registration namespace is gone, its objects' events do ask, so that a living project gets it back."""
    seen = await owning.observe(UNIT, "project/p-a", Fixed(a("a1"), causes=[key(CONFIG_MAP, "c", "cattle-project-p-a")]))
    assert isinstance(seen, Project)
    assert (seen.alive, seen.registration) == (True, None)


async def test_a_denied_project_is_not_alive() -> None:
    """A project on the deny list has no members, whatever namespaces say."""
    seen = await owning.observe(UNIT, "project/p-denied", Fixed(a("a1", "p-denied"), registered("p-denied")))
    assert isinstance(seen, Project)
    assert (seen.alive, seen.members, seen.ours) == (False, (), True)


@pytest.mark.parametrize(
    ("found", "ours"),
    [
        (None, False),
        (namespace("cattle-project-p-a"), False),
        ({**registered("p-a"), "metadata": {**registered("p-a")["metadata"], "deletionTimestamp": "now"}}, True),
    ],
)
async def test_contents_are_read_only_where_they_are_ours(found: Object | None, ours: bool) -> None:
    """Nothing inside a missing, foreign or terminating namespace is read."""
    reader = Fixed(*([] if found is None else [found]))
    seen = await owning.observe(UNIT, "project/p-a", reader)
    assert isinstance(seen, Project)
    assert (seen.ours, seen.config_maps, {kind for kind, _ in reader.asked} - {NAMESPACE}) == (ours, {}, set())


async def test_hardening_objects_are_read_only_when_they_are_wanted() -> None:
    """With hardening off neither ServiceAccount nor NetworkPolicy is read."""
    on, off = Fixed(registered("p-a")), Fixed(registered("p-a"))
    await owning.observe(UNIT, "project/p-a", on)
    await owning.observe(projects(hardenedNamespaces={"enabled": False}), "project/p-a", off)
    assert {kind for kind, _ in on.asked} == {CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY}
    assert {kind for kind, _ in off.asked} == {CONFIG_MAP}


async def test_a_witness_must_still_be_there_after_the_writes() -> None:
    """The member that carries the decision is an input: when it leaves, the run starts over."""
    reader = Fixed(a("a1"), registered("p-a"), causes=[key(NAMESPACE, "a1")])
    await owning.observe(UNIT, "project/p-a", reader)
    ((compute, before),) = reader._inputs
    assert before is True
    assert await compute(Fixed(a("a1"))) is True
    assert await compute(Fixed(a("a1", "p-b"))) is False
    assert await compute(Fixed()) is False


async def test_that_nobody_is_left_must_still_hold_after_the_writes() -> None:
    """An orphaned project is an input too: when somebody joins, the run starts over."""
    reader = Fixed(registered("p-a"))
    await owning.observe(UNIT, "project/p-a", reader)
    ((compute, before),) = reader._inputs
    assert before is False
    assert await compute(Fixed(a("a1"))) is True


async def test_each_kind_of_owner_is_observed_planned_and_reported() -> None:
    """The wiring gives every observed value to its own plan and report."""
    member = await owning.observe(UNIT, "namespace/a1", Fixed(a("a1")))
    assert member.namespace == a("a1")
    assert [write.key.name for write in owning.handler(UNIT, "namespace/a1").plan(member).writes()] == ["a1"]
    assert owning.handler(UNIT, "namespace/a1").report(member, ()) == NOTHING
    system = await owning.observe(SINGLE, "system/cattle-helm-system", Fixed(namespace("cattle-helm-system")))
    assert isinstance(system, SystemNamespace)
    assert [write.key.name for write in owning.handler(SINGLE, "system/x").plan(system).writes()] == [
        chart.config_map_name for chart in CHARTS
    ]
    assert owning.handler(SINGLE, "system/x").report(system, ()) == NOTHING
    nowhere = await owning.observe(SINGLE, "system/cattle-helm-system", Fixed())
    assert nowhere == SystemNamespace(None)
    project = await owning.observe(UNIT, "project/p-a", Fixed(a("a1")))
    assert next(owning.handler(UNIT, "project/p").plan(project).writes()).key.kind == "Namespace"
    assert owning.handler(UNIT, "project/p").report(project, ()) == NOTHING


def managed(found: Object) -> Object:
    """Return the object as one that we have applied before."""
    entry = {"manager": "tenantry-namespace-registration", "operation": "Apply", "fieldsV1": {"f:metadata": {}}}
    return {**found, "metadata": {**found["metadata"], "managedFields": [entry]}}


async def test_a_member_of_before_saves_the_list() -> None:
    """A namespace that was a member last time is looked at before all are listed, while the project is served."""
    unit, reg = projects(), managed(registered("p-a"))
    await owning.observe(unit, "project/p-a", Fixed(a("a1"), reg, causes=[key(NAMESPACE, "a1")]))
    reader = Fixed(a("a1"), reg, causes=[key(NAMESPACE, "cattle-project-p-a")])
    reader.list = None  # type: ignore[assignment,method-assign]
    seen = await owning.observe(unit, "project/p-a", reader)
    assert isinstance(seen, Project)
    assert seen.alive is True


@pytest.mark.parametrize("there", [[a("a2")], [a("a1", "p-b"), a("a2")], [a("a1", deletionTimestamp="now"), a("a2")]])
async def test_a_member_of_before_is_only_a_hint(there: list[Object]) -> None:
    """When it is no member any more all namespaces are listed."""
    unit, reg = projects(), managed(registered("p-a"))
    await owning.observe(unit, "project/p-a", Fixed(a("a1"), reg, causes=[key(NAMESPACE, "a1")]))
    seen = await owning.observe(unit, "project/p-a", Fixed(*there, reg, causes=[key(NAMESPACE, "cattle-project-p-a")]))
    assert isinstance(seen, Project)
    assert (seen.alive, [member["metadata"]["name"] for member in seen.members]) == (True, ["a2"])


async def test_a_run_that_does_not_ask_who_is_in_a_project_does_not_know_its_namespace() -> None:
    """Its members' conditions go with the event of the registration namespace, which then begins a run of its own."""
    cause, server = key(CONFIG_MAP, "c", "cattle-project-p-a"), Served(a("a1"), registered("p-a"))
    home = key(NAMESPACE, "cattle-project-p-a")
    for causes, knows in (((cause,), False), ((home,), True), ((cause, home), True)):
        noted = ReadStates()
        await owning.observe(UNIT, "project/p-a", Reader(server.api, causes, noted=noted))
        assert (home in noted) is knows


async def test_who_hands_a_namespace_over_lets_all_members_be_read() -> None:
    """Each of them may say that the project is not served; a process that was not there before has nothing else to go by."""
    home = key(NAMESPACE, "cattle-project-p-a")
    adopted = registered("p-a")
    adopted = {**adopted, "metadata": {**adopted["metadata"], "annotations": {ADOPT: "true"}}}
    causes = [home, key(NAMESPACE, "a2")]
    seen = await owning.observe(UNIT, "project/p-a", Fixed(a("a1"), a("a2"), adopted, causes=causes))
    assert isinstance(seen, Project)
    assert [member["metadata"]["name"] for member in seen.members] == ["a1", "a2"]
