"""What cannot be served is told where its author looks, harms nobody else, and heals (hpo-17, hpo-18, hpo-21)."""

from __future__ import annotations

import pytest
from flawless import Calm
from people import (
    CHART_CONFIG_MAP,
    FUNCTION,
    LABEL,
    OPERATED,
    PROJECT_ID,
    People,
    condition_of,
    marks,
    marks_of,
    registration,
    token,
)
from refusing import refusing
from times import CONTROLLER_S, START_S

from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, NETWORK_POLICY, RESOURCE_QUOTA, SERVICE_ACCOUNT, Kind, labels_of
from tenantry.testing import eventually

BAD_IDS = ("Foo_Bar", "", "p" + 59 * "x", "p.a")


@pytest.mark.check("hpo-17")
async def test_bad_project_ids_are_told_and_harm_nobody(c1: Knative, people: People, calm: Calm) -> None:
    """A project id that cannot be served is a Warning on its namespace, and the others are served, restarts included."""
    run = token()
    good, later = f"p-a{run}", f"p-b{run}"
    bad = {f"bad{number}-{run}": value for number, value in enumerate(BAD_IDS)}
    for name, value in bad.items():
        await people.namespace(name, value)
    await people.namespace(f"a1-{run}", good)
    await people.registered(good)
    for name in bad:
        assert LABEL in await people.warned(name, "InvalidProjectID")
        found = await people.until(NAMESPACE, name, "", condition_of)
        told = condition_of(found)
        assert told is not None
        assert (told["status"], told["reason"]) == ("False", "InvalidProjectID")
        assert PROJECT_ID not in labels_of(found)

    function = c1.functions[FUNCTION]
    before = function.pid
    function.kill()
    await people.namespace(f"b1-{run}", later)
    await people.registered(later, within=START_S)
    assert function.pid != before
    await calm(c1)
    warnings = {name: len(await people.warnings(name)) for name in bad}
    await c1.sweep(FUNCTION)
    assert warnings == {name: len(await people.warnings(name)) for name in bad}, "told once, not with every sweep"

    for name in bad:
        await people.label(name, {LABEL: good})
        await people.until(NAMESPACE, name, "", lambda found: labels_of(found).get(PROJECT_ID) == good)
    await calm(c1)
    assert [condition_of(await people.get(NAMESPACE, name)) for name in bad] == [None for _ in bad]


async def test_withdrawn_bad_id_takes_the_complaint_with_it(c1: Knative, people: People) -> None:
    """When the bad label is removed, the condition disappears as well."""
    name = f"bad-{token()}"
    await people.namespace(name, "Foo_Bar")
    await people.until(NAMESPACE, name, "", condition_of)
    await people.label(name, {LABEL: None})

    await people.until(NAMESPACE, name, "", lambda found: condition_of(found) is None)


async def test_member_that_moves_to_a_bad_id_leaves_its_project(c1: Knative, people: People) -> None:
    """A namespace whose project id becomes invalid is out of its old project, which is orphaned."""
    project = await people.project()
    await people.label(f"a1-{project}", {LABEL: "Foo_Bar"})

    await people.orphaned(project)
    await people.until(NAMESPACE, f"a1-{project}", "", lambda found: PROJECT_ID not in labels_of(found) and condition_of(found))


@pytest.mark.check("hpo-18")
async def test_foreign_namespace_is_not_taken_over(c1: Knative, people: People, calm: Calm) -> None:
    """A namespace that happens to have the name is not modified; each member of the project is told how to go on."""
    project = f"p-{token()}"
    name = registration(project)
    made = await people.namespace(name, labels={"team": "x"})
    await people.namespace(f"x1-{project}", project)
    text = await people.warned(f"x1-{project}", "NamespaceConflict")
    await people.namespace(f"x2-{project}", project)
    await people.warned(f"x2-{project}", "NamespaceConflict")
    await calm(c1)

    assert name in text
    assert "tenantry.dev/adopt=true" in text
    assert made["metadata"]["resourceVersion"] == (await people.get(NAMESPACE, name))["metadata"]["resourceVersion"]
    assert await people.admin.get(CONFIG_MAP, CHART_CONFIG_MAP, name) is None
    assert await people.admin.get(NETWORK_POLICY, "hpo-generated-default", name) is None


@pytest.mark.parametrize("when", ["before", "after"])
async def test_foreign_namespace_is_adopted_on_request(c1: Knative, people: People, calm: Calm, when: str) -> None:
    """With the annotation of an administrator an existing namespace becomes the registration namespace, as it is."""
    project = f"p-{token()}"
    name, adopt = registration(project), {"tenantry.dev/adopt": "true"}
    made = await people.namespace(name, labels={"team": "x"}, annotations=adopt if when == "before" else {})
    await people.namespace(f"x1-{project}", project)
    if when == "after":
        await people.warned(f"x1-{project}", "NamespaceConflict")
        await people.label(name, adopt, "annotations")
    await people.registered(project)
    await calm(c1)

    found = await people.get(NAMESPACE, name)
    assert marks_of(project) == marks(found)
    assert (made["metadata"]["uid"], "x") == (found["metadata"]["uid"], labels_of(found)["team"])
    assert await people.condition(f"x1-{project}") is None


async def test_adopted_namespace_stays_ours_without_the_annotation(c1: Knative, people: People, calm: Calm) -> None:
    """The opt-in is needed once: taking the annotation away later disowns nothing."""
    project = f"p-{token()}"
    name = registration(project)
    await people.namespace(name, annotations={"tenantry.dev/adopt": "true"})
    await people.namespace(f"x1-{project}", project)
    await people.registered(project)
    await people.label(name, {"tenantry.dev/adopt": None}, "annotations")
    await people.label(name, {OPERATED: None})
    await calm(c1)

    assert marks_of(project) == marks(await people.get(NAMESPACE, name))


async def test_release_namespace_of_another_project_is_not_adopted(c1: Knative, people: People, calm: Calm) -> None:
    """A project id that spells the name of another project's release namespace gets a complaint, not that namespace."""
    victim = f"p-{token()}"
    thief = f"{victim}-monitoring"
    name = registration(thief)
    await people.project(name=victim)
    made = await people.namespace(name, "p-system", labels={OPERATED: "true", PROJECT_ID: victim})
    await people.namespace(f"x1-{victim}", thief)
    await people.warned(f"x1-{victim}", "NamespaceConflict")
    await calm(c1)

    found = await people.get(NAMESPACE, name)
    assert made["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
    assert await people.admin.get(CONFIG_MAP, CHART_CONFIG_MAP, name) is None


@pytest.mark.check("hpo-21")
async def test_quota_that_forbids_the_config_map_is_told_and_heals(c1: Knative, people: People, calm: Calm) -> None:
    """A ResourceQuota in one registration namespace is told there with its fix; the others go on; without it all is well."""
    project, other = f"p-{token()}", f"p-{token()}"
    name = registration(project)
    await people.project(name=project)
    spec = {"hard": {"configmaps": "0"}}
    metadata = {"name": "none", "namespace": name}
    await people.admin.create(RESOURCE_QUOTA, {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec})
    await people.until(RESOURCE_QUOTA, "none", name, lambda found: "used" in (found.get("status") or {}))
    await people.delete(CONFIG_MAP, CHART_CONFIG_MAP, name)

    told = condition_of(await people.until(NAMESPACE, name, "", condition_of))
    assert told is not None
    assert (told["status"], told["reason"]) == ("False", "QuotaExceeded")
    assert CHART_CONFIG_MAP in told["message"]
    assert "raise the ResourceQuota" in told["message"]
    assert "raise the ResourceQuota" in await people.warned(name, "QuotaExceeded")
    await people.namespace(f"b1-{other}", other)
    await people.registered(other)
    await people.until(SERVICE_ACCOUNT, "default", name, lambda found: found.get("automountServiceAccountToken") is False)
    await calm(c1)
    assert await people.condition(name) is not None
    said = len(await people.warnings(name))
    await c1.sweep(FUNCTION)
    assert said == len(await people.warnings(name)), "told once, not with every sweep"

    await people.delete(RESOURCE_QUOTA, "none", name)
    await c1.sweep(FUNCTION)

    async def healed() -> bool:
        # The API server goes on counting for a moment after the quota is gone; a schedule would simply fire again.
        if await people.admin.get(CONFIG_MAP, CHART_CONFIG_MAP, name) is None:
            await c1.sweep(FUNCTION)
        return await people.condition(name) is None

    await eventually(healed, within=CONTROLLER_S, what="healed after the quota is gone")
    await people.get(CONFIG_MAP, CHART_CONFIG_MAP, name)


@pytest.mark.parametrize("kind", [NAMESPACE, CONFIG_MAP], ids=lambda kind: kind.plural)
async def test_what_an_admission_policy_refuses_is_told_and_heals(c1: Knative, people: People, calm: Calm, kind: Kind) -> None:
    """A refused registration namespace is told on its member, a refused ConfigMap on its namespace; a sweep heals both."""
    project, other = f"p-{token()}", f"p-{token()}"
    member, name = f"a1-{project}", registration(project)
    inside = kind is CONFIG_MAP
    refused, told_on = ((CHART_CONFIG_MAP, name), name) if inside else ((name,), member)
    if inside:
        await people.namespace(member, project)
        await people.registered(project)
    async with refusing(people.admin, kind, *refused):
        if inside:
            await people.delete(kind, *refused)
        else:
            await people.namespace(member, project)

        told = condition_of(await people.until(NAMESPACE, told_on, "", condition_of))
        assert told is not None
        assert (told["status"], told["reason"]) == ("False", "AdmissionDenied")
        assert f"{kind.kind} {'/'.join(reversed(refused))} was refused: " in told["message"]
        assert "denied request: request " in told["message"]
        assert told["message"] == await people.warned(told_on, "AdmissionDenied")
        await people.namespace(f"b1-{other}", other)
        await people.registered(other)
        await calm(c1)
        assert await people.admin.get(kind, *refused) is None
        assert told == await people.condition(told_on), "told once, though in other words each time"
        assert len(await people.warnings(told_on)) == 1
    await c1.sweep(FUNCTION)

    await people.registered(project)
    await people.until(NAMESPACE, told_on, "", lambda found: condition_of(found) is None)
    assert marks_of(project) == marks(await people.get(NAMESPACE, name))
