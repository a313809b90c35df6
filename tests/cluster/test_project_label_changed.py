"""A configuration with another project label loses nothing, and says so (docs/namespace-registration.md)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from people import LABEL, ORPHANED, PROJECT_ID, changed, registration, token
from releases import CONFIG, FUNCTIONS, Owners

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CONFIG_MAP, HELM_CHART, HELM_RELEASE, NAMESPACE, Object, annotations_of, labels_of
from tenantry.model.names import PROJECT_LABEL_ACCEPTED
from tenantry.testing.settling import settle

Running = Callable[..., AbstractAsyncContextManager[Knative]]
WRONG = "field.cattle.io/projectid"


async def declared(admin: Api, project: str) -> dict[str, Any]:
    """What a project has, without what is told of it."""
    found: dict[str, Any] = {}
    for kind in (NAMESPACE, CONFIG_MAP, HELM_CHART, HELM_RELEASE):
        for each in (await admin.list(kind)).items:
            metadata = each["metadata"]
            if project in f"{metadata.get('namespace', '')}/{metadata['name']}":
                marks = (labels_of(each), {key: text for key, text in annotations_of(each).items() if key != "touched"})
                found[f"{each['kind']}/{metadata['name']}"] = (metadata["uid"], marks, each.get("spec"), each.get("data"))
    return found


async def test_a_wrong_project_label_takes_nothing_away(running: Running, owners: Owners, admin: Api) -> None:
    """Neither a sweep nor events under it; it is told on the project and on the ProjectHelmChart until it is put right."""
    project = f"p-{token()}"
    home, release = registration(project), f"demo-{project}-dummy"
    async with running(CONFIG, functions=FUNCTIONS) as knative:
        await owners.project(name=project)
        await owners.namespace(f"a2-{project}", project)
        await owners.ask(f"demo-{project}", project)
        await owners.provisioned(release)
        await settle(knative, admin)
    before = await declared(admin, project)
    assert len(before) >= 5

    def waits(found: Object) -> bool:
        told = [each for each in found["status"].get("conditions") or () if each["reason"] == "ProjectLabelChanged"]
        return bool(told) and all(LABEL in each["message"] and WRONG in each["message"] for each in told)

    wrong = changed(CONFIG, cattle={"projectLabel": WRONG})
    async with running(wrong, functions=FUNCTIONS) as knative:
        await settle(knative, admin)
        for name in (home, f"a2-{project}", release):
            await owners.label(name, {"touched": "1"}, "annotations")
        await settle(knative, admin)
        assert await declared(admin, project) == before
        await owners.until(NAMESPACE, home, "", waits)
        await owners.told(f"demo-{project}", project, "UnableToCreateHelmRelease", holds=waits)
    async with running(CONFIG, functions=FUNCTIONS) as knative:
        await settle(knative, admin)
        assert await declared(admin, project) == before
        await owners.until(NAMESPACE, home, "", lambda found: not waits(found))
        await owners.told(f"demo-{project}", project, "WaitingForDashboardValues")
    async with running(wrong, functions=FUNCTIONS) as knative:
        await owners.label(home, {PROJECT_LABEL_ACCEPTED: WRONG}, "annotations")
        await owners.until(NAMESPACE, home, "", lambda found: ORPHANED in labels_of(found))
        await owners.taken_away(release)
        await knative.sweep("namespace-registration")
        await settle(knative, admin)
        assert PROJECT_ID not in labels_of(await owners.get(NAMESPACE, f"a2-{project}"))
