"""A project gets a registration namespace with our marks, and an orphan label when nobody is left."""

from __future__ import annotations

import pytest
from project_objects import (
    A1,
    ANNOTATIONS,
    CHARTS,
    CONFIG,
    LABEL,
    MARKS,
    NAME,
    changes,
    config,
    namespace,
    orphan,
    project,
    reasons,
    registration,
    settled,
    wanted,
)

from namespace_registration.projects.plan import Project, plan_project
from tenantry.model.kinds import NAMESPACE, Object
from tenantry.model.names import ADOPT, OPERATED, ORPHANED
from tenantry.model.plan import NOTHING, Apply
from tenantry.model.projects import REGISTRATION_MANAGER as US
from tenantry.testing.objects import obj

CONTENTS = [
    f"create ConfigMap {NAME}/dummy.cattle.io.v1alpha1",
    f"create ConfigMap {NAME}/other.io.v1",
    f"create ServiceAccount {NAME}/default",
    f"create NetworkPolicy {NAME}/hpo-generated-default",
]


@pytest.mark.check("hpo-1")
def test_registering_a_project() -> None:
    """A living project without registration namespace gets one with all marks, made and never taken over, then its contents."""
    plan = plan_project(project(registration=None, ours=False), CHARTS, CONFIG)
    assert changes(plan) == [f"create Namespace {NAME}", *CONTENTS]
    assert wanted(plan, NAMESPACE) == obj(NAMESPACE, NAME, labels=MARKS, annotations={LABEL: "c-test:p-a"})
    (first,) = plan.stages[0]
    assert isinstance(first, Apply)
    assert first.create_only
    assert reasons(plan) == ["ProjectRegistered"]


@pytest.mark.check("hpo-6")
def test_the_annotation_without_a_cluster_id() -> None:
    """Without a cluster id the annotation is the project id alone."""
    plan = plan_project(project(registration=None), CHARTS, config(cluster_id=""))
    assert wanted(plan, NAMESPACE)["metadata"]["annotations"] == {LABEL: "p-a"}


def test_configured_labels_and_annotations() -> None:
    """What policies ask for is added on namespaces that we make."""
    plan = plan_project(
        project(registration=None), (), config(namespaceLabels={"team": "x"}, namespaceAnnotations={"owner": "me"})
    )
    metadata = wanted(plan, NAMESPACE)["metadata"]
    assert metadata["labels"] == {**MARKS, "team": "x"}
    assert metadata["annotations"] == {**ANNOTATIONS, "owner": "me"}


@pytest.mark.check("hpo-20")
def test_a_settled_project_wants_nothing() -> None:
    """Over a converged project the plan changes nothing."""
    assert changes(plan_project(settled(project()), CHARTS, CONFIG)) == []


@pytest.mark.check("hpo-5")
def test_our_marks_are_restored_and_foreign_labels_stay() -> None:
    """A mark that was taken off comes back; a label of somebody else is not touched."""
    live = registration({"team": "x"})
    del live["metadata"]["labels"][OPERATED]
    plan = plan_project(settled(project(registration=live)), CHARTS, CONFIG)
    assert changes(plan) == [f"update Namespace {NAME}: ~ metadata.labels[{OPERATED}]"]
    assert reasons(plan) == ["Restored"]


ORPHAN_PATH = f"metadata.labels[{ORPHANED}]"


@pytest.mark.parametrize(
    ("live", "alive", "expected", "said"),
    [
        pytest.param(registration(), False, [f"~ {ORPHAN_PATH}"], ["ProjectOrphaned"], marks=pytest.mark.check("hpo-10")),
        (registration(), None, [], []),
        (registration(), True, [], []),
        pytest.param(orphan(US), True, [f"- {ORPHAN_PATH}"], ["ProjectReturned"], marks=pytest.mark.check("hpo-11")),
        (orphan(US), None, [], []),
        (orphan(US), False, [], []),
        (orphan("kubectl"), True, [f"- {ORPHAN_PATH}"], ["Restored"]),
        (orphan("kubectl"), False, [], []),
        (orphan(US, "kubectl"), True, [f"- {ORPHAN_PATH}", f"- {ORPHAN_PATH}"], ["ProjectReturned", "Restored"]),
        (registration({ORPHANED: "true"}), True, [f"- {ORPHAN_PATH}"], ["Restored"]),
    ],
)
def test_the_orphan_label(live: Object, alive: bool | None, expected: list[str], said: list[str]) -> None:
    """It is set when nobody is left and taken off, whoever set it, when somebody is; unasked it stays as it is."""
    plan = plan_project(settled(project(registration=live, alive=alive)), CHARTS, CONFIG)
    texts = [text.removeprefix(f"update Namespace {NAME}: ") for text in changes(plan)]
    assert (texts, reasons(plan)) == (expected, said)


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(project(registration=None, alive=False), id="gone orphan", marks=pytest.mark.check("hpo-16")),
        pytest.param(project(registration=None, alive=None), id="gone, nobody asked"),
        pytest.param(project(registration=namespace(NAME), ours=False), id="foreign", marks=pytest.mark.check("hpo-18")),
        pytest.param(project(registration=registration(deletionTimestamp="now")), id="terminating"),
        pytest.param(project(registration=registration(deletionTimestamp="now"), alive=False), id="terminating orphan"),
    ],
)
def test_when_nothing_is_done(seen: Project) -> None:
    """An orphan that was deleted stays deleted, a foreign namespace is left alone, and a terminating one is waited for."""
    assert plan_project(seen, CHARTS, CONFIG) == NOTHING


@pytest.mark.check("hpo-15")
def test_a_deleted_registration_namespace_is_made_again() -> None:
    """While its project lives, a registration namespace that is gone is made anew with its contents."""
    plan = plan_project(project(registration=None, ours=False, members=(A1,)), CHARTS, CONFIG)
    assert changes(plan)[0] == f"create Namespace {NAME}"


def test_an_adopted_namespace_gets_our_marks() -> None:
    """With the opt-in annotation a namespace of somebody else is taken over by an update of exactly that object."""
    foreign = namespace(NAME, {"team": "x"}, annotations={ADOPT: "true"})
    plan = plan_project(project(registration=foreign), CHARTS, CONFIG)
    assert plan.changes(US)[0].verb == "update"
    assert changes(plan)[1:] == CONTENTS
    assert reasons(plan) == ["Adopted"]


def test_a_denied_project_keeps_its_namespace_as_an_orphan() -> None:
    """Nothing in it is removed: the namespace is only marked, as for any project without namespaces."""
    plan = plan_project(settled(project(alive=False)), CHARTS, CONFIG)
    assert changes(plan) == [f"update Namespace {NAME}: ~ {ORPHAN_PATH}"]
