"""Which namespace is what, from its own labels, annotations and field ownership."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.model.config import Config
from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import ADOPT, NAMESPACE_NAME, OPERATED, PROJECT_ID
from tenantry.model.projects import (
    REGISTRATION_MANAGER,
    Place,
    is_member,
    is_registration,
    place_of,
    project_annotation,
    project_id_problem,
    project_of_registration_name,
    registration_name,
)

LABEL = "field.cattle.io/projectId"


def config(cluster_id: str = "c-test", label: str = LABEL, **operator: Any) -> Config:
    """Return a configuration with system project p-system and denied project p-denied."""
    return Config.model_validate(
        {
            "global": {"cattle": {"clusterId": cluster_id, "systemProjectId": "p-system", "projectLabel": label}},
            "helmProjectOperator": {"otherSystemProjectLabelValues": ["p-denied"], **operator},
        }
    )


CONFIG = config()
SINGLE = config(label="")


def namespace(
    name: str,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    managed: Object | None = None,
    manager: str = REGISTRATION_MANAGER,
    **metadata: Any,
) -> Object:
    """Return a namespace, with what a manager owns in its metadata."""
    made = {"name": name, **metadata}
    made |= {"labels": labels} if labels is not None else {}
    made |= {"annotations": annotations} if annotations is not None else {}
    if managed is not None:
        made["managedFields"] = [{"manager": manager, "operation": "Update", "fieldsV1": {"f:metadata": managed}}]
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": made}


OWNS_NAME: Object = {"f:labels": {".": {}, f"f:{NAMESPACE_NAME}": {}}}
OURS = {OPERATED: "true", PROJECT_ID: "p-a", LABEL: "p-a"}


@pytest.mark.parametrize(
    ("found", "ours"),
    [
        (namespace("cattle-project-p-a", OURS), True),
        (namespace("cattle-project-p-a", {OPERATED: "true"}), True),
        (namespace("cattle-project-p-a", {OPERATED: ""}), True),
        (namespace("cattle-project-p-a", {OPERATED: "true", PROJECT_ID: "p-b"}), False),
        pytest.param(
            namespace("cattle-project-p-a", {PROJECT_ID: "p-a", LABEL: "p-a"}), False, marks=pytest.mark.check("hpo-18")
        ),
        pytest.param(namespace("cattle-project-p-a"), False, marks=pytest.mark.check("hpo-18")),
        (namespace("cattle-project-p-a", annotations={ADOPT: "true"}), True),
        (namespace("cattle-project-p-a", annotations={ADOPT: "false"}), False),
        pytest.param(namespace("cattle-project-p-a", {}, {}, OWNS_NAME), True, marks=pytest.mark.check("hpo-5")),
        (namespace("cattle-project-p-a", {}, {}, OWNS_NAME, "kubectl"), False),
        (namespace("cattle-project-p-a", {}, {}, {"f:labels": {"f:team": {}}}), False),
        (namespace("cattle-project-p-a", {}, {}, OWNS_NAME, "tenantry-release-provisioning"), False),
        (namespace("cattle-project-", OURS), False),
        (namespace("cattle-project-Foo", OURS), False),
        (namespace("p-a", OURS), False),
        (namespace("a1", OURS, {ADOPT: "true"}, OWNS_NAME), False),
        # A release namespace may have such a name; its mark is of another project.
        (namespace("cattle-project-p-a-dummy", {OPERATED: "true", PROJECT_ID: "p-a", LABEL: "p-system"}), False),
    ],
)
def test_what_makes_a_registration_namespace_ours(found: Object, ours: bool) -> None:
    """Our mark for that project, our ownership or an opt-in make it ours; a name alone never does."""
    assert is_registration(found, CONFIG) is ours


def test_there_are_no_registration_namespaces_without_projects() -> None:
    """In single-namespace mode no namespace is a registration namespace by its name."""
    assert not is_registration(namespace("cattle-project-p-a", OURS), SINGLE)
    assert place_of(namespace("a1", {"": "x", LABEL: "p-a"}), SINGLE) == Place("ordinary")


@pytest.mark.parametrize(
    ("found", "place"),
    [
        (namespace("a1"), Place("ordinary")),
        (namespace("a1", {LABEL: "p-a"}), Place("ordinary", "p-a")),
        (namespace("a1", {LABEL: "Foo_Bar"}), Place("ordinary", "Foo_Bar")),
        pytest.param(
            namespace("a1", {LABEL: "p-a", OPERATED: "true"}), Place("ordinary", "p-a"), marks=pytest.mark.check("hpo-26")
        ),
        pytest.param(namespace("d1", {LABEL: "p-denied"}), Place("system"), marks=pytest.mark.check("hpo-7")),
        pytest.param(namespace("s1", {LABEL: "p-system"}), Place("system"), marks=pytest.mark.check("hpo-8")),
        pytest.param(namespace("kube-system", {LABEL: "p-a"}), Place("system"), marks=pytest.mark.check("hpo-9")),
        (namespace("cattle-helm-system", {LABEL: "p-a"}), Place("system")),
        (namespace("demo-dummy", {LABEL: "p-system", OPERATED: "true", PROJECT_ID: "p-a"}), Place("release", "p-a")),
        (namespace("demo-dummy", {LABEL: "p-system", OPERATED: "true"}), Place("release")),
        (namespace("d1", {LABEL: "p-denied", OPERATED: "true"}), Place("system")),
        (namespace("cattle-project-p-a", OURS), Place("registration", "p-a")),
        (namespace("cattle-project-p-x", {LABEL: "p-b"}), Place("ordinary", "p-b")),
        (namespace("cattle-project-p-denied", {OPERATED: "true"}), Place("registration", "p-denied")),
    ],
)
def test_classes_of_namespaces(found: Object, place: Place) -> None:
    """Registration comes before system, system by name before release, release before system by label."""
    assert place_of(found, CONFIG) == place


def test_the_registration_class_comes_before_the_system_class() -> None:
    """A registration namespace of ours stays one even when it is listed as a system namespace."""
    listed = config(systemNamespaces=["cattle-project-p-a"])
    assert place_of(namespace("cattle-project-p-a", OURS), listed) == Place("registration", "p-a")


@pytest.mark.parametrize(
    ("found", "member"),
    [
        (namespace("a1", {LABEL: "p-a"}), True),
        (namespace("a1", {LABEL: "p-b"}), False),
        (namespace("a1"), False),
        (None, False),
        pytest.param(namespace("a1", {LABEL: "p-a"}, deletionTimestamp="now"), False, marks=pytest.mark.check("hpo-10")),
        (namespace("kube-system", {LABEL: "p-a"}), False),
        (namespace("cattle-project-p-a", OURS), False),
    ],
)
def test_members_of_a_project(found: Object | None, member: bool) -> None:
    """Ordinary namespaces in the project count, unless they are on their way out."""
    assert is_member(found, "p-a", CONFIG) is member


@pytest.mark.check("hpo-18")
def test_a_foreign_namespace_is_no_member_of_the_project_that_it_blocks() -> None:
    """A foreign namespace with the registration name is left alone even when it carries the project's label."""
    assert not is_member(namespace("cattle-project-p-x", {LABEL: "p-x"}), "p-x", CONFIG)


@pytest.mark.parametrize(
    ("project", "problem"),
    [
        ("p-a", ""),
        ("a" * 48, ""),
        ("", "empty"),
        ("a" * 49, "49 characters and at most 48"),
        ("b" * 60, "60 characters and at most 48"),
        ("Foo_Bar", "'Foo_Bar' cannot be part"),
        ("-a", "cannot be part"),
        ("a-", "cannot be part"),
        ("a.b", "cannot be part"),
        ("../../x", "cannot be part"),
        ("a\n", "cannot be part"),
    ],
)
@pytest.mark.check("hpo-17")
def test_project_ids_that_cannot_be_served(project: str, problem: str) -> None:
    """The problem of a project id names the limit and the fix; valid ids have none, and a name each."""
    found = project_id_problem(project)
    assert (problem in found) if problem else found == ""
    assert project_of_registration_name(registration_name(project)) == ("" if problem else project)
    assert not problem or "use" in found or "remove" in found


@pytest.mark.parametrize("name", ["a1", "cattle-project-", "cattle-projectp-a", "", "x-cattle-project-p-a"])
def test_other_names_have_no_project(name: str) -> None:
    """A name without the prefix, or with nothing behind it, is of no project."""
    assert project_of_registration_name(name) == ""


def test_the_project_annotation() -> None:
    """The cluster id is a prefix when there is one."""
    assert project_annotation("p-a", CONFIG) == "c-test:p-a"
    assert project_annotation("p-a", config(cluster_id="")) == "p-a"


@pytest.mark.parametrize(
    "obj", [None, {}, {"metadata": None}, {"metadata": {}}, {"metadata": {"labels": None, "annotations": None}}]
)
def test_metadata_that_is_not_there_is_empty(obj: Object | None) -> None:
    """Labels, annotations and deletion of anything incomplete are empty."""
    assert (dict(labels_of(obj)), dict(annotations_of(obj)), is_terminating(obj)) == ({}, {}, False)
