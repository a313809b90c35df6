"""A registration namespace holds a ConfigMap for each chart; an edit is put back."""

from __future__ import annotations

from typing import Any

import pytest
from project_objects import CHARTS, CONFIG, NAME, changes, orphan, project, reasons, settled, wanted

from namespace_registration.projects.plan import Project, plan_project
from tenantry.model.kinds import CONFIG_MAP
from tenantry.model.names import OPERATED, PROJECT_ID
from tenantry.model.plan import Delete, Write


@pytest.mark.check("hpo-3")
def test_the_config_map_of_a_chart() -> None:
    """It has the chart's files and the project's marks; a chart without files has empty texts."""
    plan = plan_project(project(), CHARTS, CONFIG)
    made = wanted(plan, CONFIG_MAP, "dummy.cattle.io.v1alpha1")
    assert made["metadata"]["labels"] == {OPERATED: "true", PROJECT_ID: "p-a"}
    assert made["data"] == {"values.yaml": "a: 1\n", "questions.yaml": "questions: []\n"}
    assert wanted(plan, CONFIG_MAP, "other.io.v1")["data"] == {"values.yaml": "", "questions.yaml": ""}
    assert reasons(plan) == []


def with_map(**fields: Any) -> Project:
    """Return the settled project with its first ConfigMap changed."""
    seen = settled(project())
    name = CHARTS[0].config_map_name
    live = seen.config_maps[name] or {}
    metadata = {**live["metadata"], "uid": "u", "resourceVersion": "1", **fields.pop("metadata", {})}
    seen.config_maps[name] = {**live, **fields, "metadata": metadata}
    return seen


MAP = f"ConfigMap {NAME}/dummy.cattle.io.v1alpha1"
FILES = {"values.yaml": "a: 1\n", "questions.yaml": "questions: []\n"}


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (with_map(), []),
        (with_map(data=None), [f"update {MAP}: ~ data[values.yaml], ~ data[questions.yaml]"]),
        (with_map(data={**FILES, "values.yaml": "evil"}), [f"update {MAP}: ~ data[values.yaml]"]),
        (with_map(data={**FILES, "more": "x"}), []),
        (with_map(metadata={"labels": {OPERATED: "true"}}), [f"update {MAP}: ~ metadata.labels[{PROJECT_ID}]"]),
        (with_map(immutable=True), [f"delete {MAP}"]),
        (with_map(immutable=True, data={}), [f"delete {MAP}"]),
        (with_map(immutable=False), []),
        (with_map(immutable=True, metadata={"deletionTimestamp": "now"}), []),
    ],
)
@pytest.mark.check("hpo-4")
def test_config_maps_are_repaired(seen: Project, expected: list[str]) -> None:
    """An edit is put back, an immutable one is deleted once to be made anew, and what others add stays."""
    plan = plan_project(seen, CHARTS, CONFIG)
    assert changes(plan) == expected
    assert reasons(plan) == ["Restored"] * len(expected)


def test_deletion_and_creation_are_two_looks() -> None:
    """An immutable ConfigMap is deleted as it was observed; only the next look makes it anew."""
    writes = plan_project(with_map(immutable=True), CHARTS, CONFIG).writes()
    assert [type(write) for write in writes if write.key.name == CHARTS[0].config_map_name] == [Delete]


def test_every_write_is_of_a_known_make() -> None:
    """Deletions are of ConfigMaps only: no plan of this unit deletes a namespace."""
    seen: list[Project] = [project(), project(alive=False), with_map(immutable=True), project(registration=orphan("kubectl"))]
    writes: list[Write] = [write for found in seen for write in plan_project(found, CHARTS, CONFIG).writes()]
    assert {write.kind for write in writes if isinstance(write, Delete)} == {CONFIG_MAP}
