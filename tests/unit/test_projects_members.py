"""A member remembers its project, and says itself what is wrong with its label."""

from __future__ import annotations

import pytest
from project_objects import A1, CONFIG, LABEL, NAME, changes, namespace, project, registration, told, unwell

from namespace_registration.projects.plan import plan_member, report_member, report_project
from tenantry.model.kinds import NAMESPACE, Key, Object
from tenantry.model.names import OPERATED, PROJECT_ID
from tenantry.model.plan import Apply, Refusal, RemoveLabel

MEMORY = f"metadata.labels[{PROJECT_ID}]"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        (namespace("a1"), []),
        pytest.param(A1, [f"update Namespace a1: ~ {MEMORY}"], marks=pytest.mark.check("hpo-2")),
        (namespace("a1", {LABEL: "p-a", PROJECT_ID: "p-a"}), []),
        pytest.param(
            namespace("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}),
            [f"update Namespace a1: ~ {MEMORY}"],
            marks=pytest.mark.check("hpo-13"),
        ),
        pytest.param(
            namespace("a1", {PROJECT_ID: "p-a"}), [f"update Namespace a1: - {MEMORY}"], marks=pytest.mark.check("hpo-12")
        ),
        pytest.param(
            namespace("a1", {LABEL: "p-denied", PROJECT_ID: "p-a"}),
            [f"update Namespace a1: - {MEMORY}"],
            marks=pytest.mark.check("hpo-14"),
        ),
        pytest.param(namespace("s1", {LABEL: "p-system"}), [], marks=pytest.mark.check("hpo-8")),
        pytest.param(namespace("kube-system", {LABEL: "p-a"}), [], marks=pytest.mark.check("hpo-9")),
        (namespace("kube-system", {LABEL: "p-a", PROJECT_ID: "p-a"}), []),
        (namespace("a1", {LABEL: "p-b", PROJECT_ID: "p-a"}, deletionTimestamp="now"), []),
        (namespace("bad", {LABEL: "Foo_Bar"}), []),
        (namespace("bad", {LABEL: "Foo_Bar", PROJECT_ID: "p-a"}), [f"update Namespace bad: - {MEMORY}"]),
        (namespace("bad", {LABEL: "", PROJECT_ID: "p-a"}), [f"update Namespace bad: - {MEMORY}"]),
        (registration(), []),
        (namespace("demo-dummy", {LABEL: "p-system", OPERATED: "true", PROJECT_ID: "p-a"}), []),
        (namespace("cattle-project-p-x"), []),
        (namespace("a1", {LABEL: "p-a", OPERATED: "true"}), [f"update Namespace a1: ~ {MEMORY}"]),
    ],
)
def test_the_memory_of_the_project(found: Object | None, expected: list[str]) -> None:
    """Set while a namespace is in a project that can be served, else taken off; never on what is not ordinary."""
    plan = plan_member(found, CONFIG)
    assert changes(plan) == expected
    assert all(isinstance(write, Apply | RemoveLabel) for write in plan.writes())


@pytest.mark.check("hpo-26")
def test_a_label_of_ours_on_a_users_namespace_brings_no_policy() -> None:
    """Nothing but the memory of its project is ever written to a namespace that we did not make."""
    plan = plan_member(namespace("a1", {LABEL: "p-a", OPERATED: "true"}), CONFIG)
    assert {write.kind for write in plan.writes()} == {NAMESPACE}


@pytest.mark.parametrize(
    ("value", "part"),
    [("Foo_Bar", "'Foo_Bar' cannot be part"), ("", "is empty"), ("a" * 49, "49 characters"), ("a" * 60, "60 characters")],
)
@pytest.mark.check("hpo-17")
def test_bad_project_ids_are_told(value: str, part: str) -> None:
    """A project id that cannot be served gets a condition and a Warning that name the label, the limit and the fix."""
    ((_, reason, message),) = told(report_member(namespace("bad", {LABEL: value}), (), CONFIG))
    assert reason == "InvalidProjectID"
    assert message.startswith(f"label {LABEL}: ")
    assert part in message


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        (namespace("a1"), []),
        (namespace("bad", {LABEL: "Foo_Bar"}, deletionTimestamp="now"), []),
        (unwell(A1), []),  # for the project's own run to say
        (unwell(namespace("a1")), ["status Namespace a1: - status"]),
        (unwell(namespace("a1", {LABEL: "p-denied"})), ["status Namespace a1: - status"]),
        (unwell(registration()), []),
        (unwell(A1, message="Namespace a1 was refused: no"), ["status Namespace a1: - status"]),
        (unwell(A1, message=f"Namespace {NAME} was refused: no"), []),
    ],
)
def test_a_member_is_healed_when_its_label_is_gone(found: Object | None, expected: list[str]) -> None:
    """A namespace in no project carries no condition; in a project, the project's run decides."""
    assert changes(report_member(found, (), CONFIG)) == expected


def test_a_refused_label_is_told_by_the_member_alone() -> None:
    """The refusal stands on the member, and the run of its project neither takes it back nor talks over it."""
    no = Refusal(Key("v1", "Namespace", "", "a1"), "admission", "no labels here")
    ((name, reason, message),) = told(report_member(A1, [no], CONFIG))
    assert (name, reason) == ("a1", "AdmissionDenied")
    live = unwell(A1, reason, message)
    assert changes(report_project(project(members=(live,)), [], CONFIG)) == []
    assert changes(report_project(project(registration=namespace(NAME), ours=False, members=(live,)), [], CONFIG)) == []
    again = Refusal(no.key, no.cause, "no labels here (request 2)")
    assert changes(report_member(live, [again], CONFIG)) == []
