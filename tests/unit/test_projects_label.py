"""Another label key in the configuration: what a project has stays until a namespace has the new key, or somebody accepts it."""

from __future__ import annotations

from typing import Any

import pytest
from project_objects import CHARTS, CONFIG, LABEL, NAME, changes, config, namespace, project, registration, told

from namespace_registration.projects.plan import plan_member, plan_project, report_project
from tenantry.model.kinds import Object
from tenantry.model.names import OPERATED, PROJECT_ID, PROJECT_LABEL_ACCEPTED
from tenantry.model.projects import earlier_label

WRONG = "field.cattle.io/projectid"
CHANGED = config(label=WRONG)
ACCEPTED = {PROJECT_LABEL_ACCEPTED: WRONG}
MEMORY = f"metadata.labels[{PROJECT_ID}]"


def accepted(key: str = WRONG) -> Object:
    """The registration namespace with the annotation of an administrator."""
    live = registration()
    return {**live, "metadata": {**live["metadata"], "annotations": {PROJECT_LABEL_ACCEPTED: key}}}


@pytest.mark.parametrize(
    ("live", "used", "earlier"),
    [
        (None, CHANGED, ""),
        (registration(), CONFIG, ""),
        (registration(), CHANGED, LABEL),
        (namespace(NAME, {OPERATED: "true", PROJECT_ID: "p-a", LABEL: "p-a"}), CHANGED, ""),
        (registration({WRONG: "p-a"}), CHANGED, LABEL),
        (accepted(), CHANGED, ""),
        (accepted("another"), CHANGED, LABEL),
        (registration(), config(label=""), ""),
        (registration({"team": "p-a"}), CHANGED, LABEL),
    ],
)
def test_the_key_of_before_is_what_we_wrote(live: Object | None, used: Any, earlier: str) -> None:
    """Proven by field ownership: what others wrote, or an accepted key, is none."""
    assert earlier_label(live, used) == earlier


@pytest.mark.parametrize("alive", [False, None])
def test_a_project_without_a_namespace_by_the_new_key_stays_as_it_is(alive: bool | None) -> None:
    """It is not orphaned, keeps its labels, and is told; what we keep inside is still put back."""
    seen = project(alive=alive)
    assert not [each for each in plan_project(seen, CHARTS, CHANGED).writes() if each.key.name == NAME]
    assert plan_project(seen, CHARTS, CHANGED).changes("tenantry-namespace-registration")
    ((name, reason, message),) = told(report_project(seen, [], CHANGED))
    assert (name, reason) == (NAME, "ProjectLabelChanged")
    assert LABEL in message
    assert f"{PROJECT_LABEL_ACCEPTED}={WRONG}" in message
    assert not told(report_project(seen, [], CONFIG))


@pytest.mark.parametrize("seen", [project(alive=True), project(alive=False, registration=accepted())])
def test_a_namespace_by_the_new_key_or_an_administrator_lets_it_go_on(seen: Any) -> None:
    """Then the registration namespace gets the new key."""
    assert any(WRONG in each for each in changes(plan_project(seen, CHARTS, CHANGED)))
    assert not told(report_project(seen, [], CHANGED))


@pytest.mark.parametrize(
    ("labels", "registered", "goes"),
    [
        ({LABEL: "p-a", PROJECT_ID: "p-a"}, registration(), False),
        ({LABEL: "p-a", PROJECT_ID: "p-a"}, accepted(), True),
        ({LABEL: "p-a", PROJECT_ID: "p-a"}, None, True),
        ({PROJECT_ID: "p-a"}, registration(), True),
        ({LABEL: "p-b", PROJECT_ID: "p-a"}, registration(), True),
    ],
)
def test_a_member_by_the_old_key_keeps_its_memory(labels: dict[str, str], registered: Object | None, *, goes: bool) -> None:
    """One that has left by the old key, too, does not."""
    assert bool(changes(plan_member(namespace("a1", labels), CHANGED, registered))) is goes
