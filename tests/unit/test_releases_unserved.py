"""A ProjectHelmChart that nobody serves: who is told, and what."""

from __future__ import annotations

from typing import Any

import owning
import pytest

from release_provisioning.projects.unit import Releases
from release_provisioning.projects.unserved import Asked, is_unserved, report_unserved
from tenantry.model.config import Config
from tenantry.model.kinds import PROJECT_HELM_CHART, Object, object_of
from tenantry.model.plan import Apply
from tenantry.model.projects import RELEASE_MANAGER

CONFIG = Config.model_validate({"helmProjectOperator": {"charts": [{"helmApiVersion": "a/v1", "releaseName": "a"}]}})


def asked(version: Any = "b/v1", **fields: Any) -> Object:
    metadata = {"name": "demo", "namespace": "cattle-project-p", "uid": "u", **fields.pop("metadata", {})}
    return object_of(PROJECT_HELM_CHART, metadata, spec={} if version is None else {"helmApiVersion": version}, **fields)


@pytest.mark.check("hpo-39")
@pytest.mark.parametrize(
    ("version", "said"),
    [("b/v1", "spec.helmApiVersion is 'b/v1', which no chart here has"), (None, "spec.helmApiVersion is missing"), (7, "is '7'")],
)
def test_a_warning_names_the_field_and_what_there_is(version: Any, said: str) -> None:
    """One Event on the ProjectHelmChart and nothing on the object itself; there it is not written again."""
    (write,) = report_unserved(Asked(asked(version), True, None, "now"), CONFIG).writes()
    assert isinstance(write, Apply)
    assert write.wanted["kind"] == "Event"
    assert write.wanted["type"] == "Warning"
    assert write.wanted["regarding"]["name"] == "demo"
    assert said in write.wanted["note"]
    assert "one of these: a/v1" in write.wanted["note"]
    live = {**write.wanted, "note": "in other words"}
    entry = {"manager": RELEASE_MANAGER, "operation": "Update", "fieldsV1": {}}
    live["metadata"] = {**live["metadata"], "uid": "e", "managedFields": [entry]}
    again = report_unserved(Asked(asked(version), True, live, "later"), CONFIG)
    assert again.changes(RELEASE_MANAGER) == []


def test_many_charts_do_not_make_the_warning_too_long() -> None:
    """An Event's note has at most 1,024 bytes: names at the end of the list are left out, what to do is not."""
    charts = [
        {"helmApiVersion": f"{number}.charts.of-a-large-installation.example.com/v1", "releaseName": f"r{number}"}
        for number in range(60)
    ]
    config = Config.model_validate({"helmProjectOperator": {"charts": charts}})
    (write,) = report_unserved(Asked(asked("ü" * 300), True, None, "now"), config).writes()
    assert isinstance(write, Apply)
    assert len(write.wanted["note"].encode()) <= 1024
    assert "set it to one of these: 0.charts.of-a-large" in write.wanted["note"]


@pytest.mark.parametrize(
    "chart",
    [
        asked("a/v1"),
        asked(status={"status": "Deployed"}),
        asked(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    ],
    ids=["served here", "served elsewhere", "going"],
)
def test_who_is_served_or_goes_is_told_nothing(chart: Object) -> None:
    """Another system's words are enough, and what goes needs none."""
    assert not is_unserved(chart, CONFIG)
    assert list(report_unserved(Asked(chart, True, None, "now"), CONFIG).writes()) == []


def test_outside_of_projects_nothing_is_told() -> None:
    """A ProjectHelmChart in an ordinary namespace concerns nobody (hpo-41)."""
    assert list(report_unserved(Asked(asked(), False, None, "now"), CONFIG).writes()) == []


@pytest.mark.parametrize(
    ("owner", "accepted"),
    [
        ("unserved/cattle-project-p/demo", True),
        ("unserved/cattle-project-p/", False),
        ("unserved//demo", False),
        ("unserved/a/b/c", False),
        ("release/demo", True),
    ],
)
def test_owners_are_well_formed(owner: str, accepted: bool) -> None:
    """Requests by event may name any owner."""
    assert owning.accepts(Releases(CONFIG, {}), owner) == accepted
