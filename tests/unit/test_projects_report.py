"""Refusals, and a name that is taken, are told with their fix until they are over."""

from __future__ import annotations

import pytest
from project_objects import (
    A1,
    CHARTS,
    CONFIG,
    LABEL,
    NAME,
    changes,
    namespace,
    owned,
    project,
    reasons,
    refusal,
    registration,
    told,
    unwell,
)

from namespace_registration.projects.plan import FIXES, Project, plan_project, report_project
from tenantry.model.kinds import NAMESPACE
from tenantry.model.names import ADOPT
from tenantry.model.plan import NOTHING, Apply, Cause


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        ("quota", "QuotaExceeded"),
        ("admission", "AdmissionDenied"),
        ("rights", "RightMissing"),
        ("invalid", "InvalidConfiguration"),
    ],
)
@pytest.mark.check("hpo-21")
def test_refusals_are_told_with_their_fix(cause: Cause, reason: str) -> None:
    """A refusal inside the registration namespace stands on that namespace: what, why in the server's words, and the fix."""
    report = report_project(project(members=(A1,)), [refusal(cause)], CONFIG)
    ((name, found, message),) = told(report)
    assert (name, found) == (NAME, reason)
    assert message == f"ConfigMap {NAME}/c was refused: to fix it, {FIXES[cause]} (the API server says: no room)"
    assert [write.live for write in report.writes() if isinstance(write, Apply)] == [project().registration]


def test_one_refusal_is_told_whatever_the_order() -> None:
    """Of many refusals the same one is told each time; one of the namespace itself comes first."""
    many = [refusal("quota", name="b"), refusal("admission", name="a"), refusal("quota", name="a")]
    texts = {told(report_project(project(), order, CONFIG))[0] for order in (many, many[::-1], many[1:] + many[:1])}
    assert len(texts) == 1
    assert f"ConfigMap {NAME}/a" in texts.pop()[2]
    itself = told(report_project(project(), [*many, refusal("admission", NAMESPACE)], CONFIG))
    assert itself[0][:2] == (NAME, "AdmissionDenied")
    assert "Namespace cattle-project-p-a was refused" in itself[0][2]


def test_long_refusals_fit() -> None:
    """However long the server's words are, the fix is still told within the limits of a condition and an Event."""
    ((_, _, message),) = told(report_project(project(), [refusal("quota", message="x" * 5000)], CONFIG))
    assert len(message) <= 1024
    assert FIXES["quota"] in message


def test_a_refusal_in_the_run_that_registered() -> None:
    """A registration namespace that was made in the same run carries the condition though it was not observed."""
    report = report_project(project(registration=None, ours=False), [refusal("quota")], CONFIG)
    (write,) = report.writes()
    assert isinstance(write, Apply)
    assert (write.live, write.create_only, write.subresource) == (None, False, "status")
    assert told(report)[0][:2] == (NAME, "QuotaExceeded")


@pytest.mark.check("hpo-21")
def test_a_namespace_that_cannot_be_made_is_told_on_the_members() -> None:
    """Where there is no registration namespace to carry it, each member that was looked at does."""
    b1 = namespace("b1", {LABEL: "p-a"})
    report = report_project(project(registration=None, ours=False, members=(A1, b1)), [refusal("admission", NAMESPACE)], CONFIG)
    assert [entry[:2] for entry in told(report)] == [("a1", "AdmissionDenied"), ("b1", "AdmissionDenied")]


@pytest.mark.check("hpo-18")
def test_a_name_that_is_taken_is_told_on_the_members() -> None:
    """A foreign namespace with the name is not written to; the members say what can be done."""
    seen = project(registration=namespace(NAME), ours=False, members=(A1,))
    ((name, reason, message),) = told(report_project(seen, [], CONFIG))
    assert (name, reason) == ("a1", "NamespaceConflict")
    assert f"namespace {NAME} exists" in message
    assert f"{ADOPT}=true" in message
    assert len(message) <= 1024
    assert plan_project(seen, CHARTS, CONFIG) == NOTHING


def test_a_told_problem_is_not_told_again() -> None:
    """The same problem over the condition that says so is no change, though its time is not part of what is wanted."""
    first = report_project(project(), [refusal("quota")], CONFIG)
    (write,) = first.writes()
    assert isinstance(write, Apply)
    live = unwell(registration())
    live["status"]["conditions"][0] |= write.wanted["status"]["conditions"][0]
    assert changes(report_project(project(registration=live), [refusal("quota")], CONFIG)) == []
    assert changes(report_project(project(registration=live), [refusal("quota", message="request 2: no room")], CONFIG)) == []
    assert changes(report_project(project(registration=live), [refusal("quota", name="d")], CONFIG)) != []
    assert changes(report_project(project(registration=live), [refusal("rights")], CONFIG)) != []


def test_healing() -> None:
    """When all is well our conditions are given up with an Event, on the registration namespace and on members."""
    report = report_project(project(registration=unwell(registration()), members=(unwell(A1), namespace("b1"))), [], CONFIG)
    assert changes(report) == [f"status Namespace {NAME}: - status", "status Namespace a1: - status"]
    assert reasons(report) == ["Healed", "Healed"]


@pytest.mark.parametrize(
    "seen",
    [
        project(members=(A1,)),
        project(registration=None, ours=False, alive=False),
        project(registration=None, ours=False, members=(A1,)),
        project(registration=unwell(registration(deletionTimestamp="now"))),
        project(registration=owned(registration(), {"f:status": {}}, subresource="status")),
        project(registration={**registration(), "status": unwell(A1)["status"]}),
    ],
)
def test_nothing_to_tell(seen: Project) -> None:
    """Without a problem and without a condition of ours nothing is written; a terminating namespace is left in peace."""
    assert report_project(seen, [], CONFIG) == NOTHING
