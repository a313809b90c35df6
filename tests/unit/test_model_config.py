"""What the settings mean: system namespaces, denied projects, release project, names."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tenantry.model.config import Chart, Config, RepoChart


def config(label: str = "field.cattle.io/projectId", system: str = "p-system", **operator: Any) -> Config:
    cattle = {"projectLabel": label, "systemProjectId": system}
    return Config.model_validate({"global": {"cattle": cattle}, "helmProjectOperator": operator})


@pytest.mark.parametrize(
    ("made", "release", "denied"),
    [
        (Config(), "", set()),
        (config(), "p-system", {"p-system"}),
        (config(projectReleaseNamespaces={"labelValue": "p-rel"}), "p-rel", {"p-rel", "p-system"}),
        (config(system="", projectReleaseNamespaces={"labelValue": "p-rel"}), "p-rel", {"p-rel"}),
        (config(projectReleaseNamespaces={"enabled": False, "labelValue": "p-rel"}), "", {"p-system"}),
        (config(system="", projectReleaseNamespaces={"enabled": False}), "", set()),
        (config(otherSystemProjectLabelValues=["p-denied", "", "p-x"]), "p-system", {"p-system", "p-denied", "p-x"}),
        (config(label="", otherSystemProjectLabelValues=["p-x"]), "", {"p-system", "p-x"}),
    ],
)
def test_release_project_and_denied_projects(made: Config, release: str, denied: set[str]) -> None:
    """The system project stands in for the release project, both are denied, and empty ids never are."""
    assert made.release_project_id == release
    assert made.denied_project_ids == denied


@pytest.mark.parametrize(
    ("made", "dedicated"),
    [
        (Config(), True),
        (config(system=""), True),
        (config(projectReleaseNamespaces={"enabled": False, "labelValue": "p-rel"}), False),
        (config(label=""), False),
    ],
)
def test_releases_have_namespaces_of_their_own_unless_somebody_says_otherwise(made: Config, dedicated: bool) -> None:
    """No project id has to be configured for it; without projects there are none."""
    assert made.dedicated is dedicated


def test_system_namespaces() -> None:
    """The system namespace is always among them, beside those that are configured."""
    assert Config().system_namespaces == {"cattle-helm-system", "kube-system"}
    assert config(systemNamespace="ops", systemNamespaces=[]).system_namespaces == {"ops"}


def test_names_of_config_maps() -> None:
    """A chart's ConfigMap has the helmApiVersion as its name, with a dot for the slash."""
    assert Chart(helm_api_version="dummy.cattle.io/v1alpha1", release_name="d").config_map_name == "dummy.cattle.io.v1alpha1"


def test_python_callers_use_field_names() -> None:
    """Charts given as objects keep their form."""
    by_repo = Chart(helm_api_version="a/v1", release_name="r", chart=RepoChart(repo="u", name="n", version="1"))
    assert isinstance(by_repo.chart, RepoChart)


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("helm.cattle.io/helm-project-operated", "namespaceLabels"),
        ("helm.cattle.io/projectId", "namespaceLabels"),
        ("helm.cattle.io/helm-project-operator-orphaned", "namespaceLabels"),
        ("kubernetes.io/metadata.name", "namespaceLabels"),
        ("field.cattle.io/projectId", "namespaceLabels"),
        ("field.cattle.io/projectId", "namespaceAnnotations"),
        ("tenantry.dev/adopt", "namespaceAnnotations"),
    ],
)
def test_our_own_marks_cannot_be_configured(key: str, where: str) -> None:
    """Labels and annotations by which namespaces are recognised cannot be set for every namespace."""
    with pytest.raises(ValidationError, match=f"helmProjectOperator.{where} may not set {key}"):
        Config.model_validate({"helmProjectOperator": {where: {key: "x"}}})


def test_further_labels_can_be_configured() -> None:
    """Any other label and annotation may be asked for."""
    made = config(namespaceLabels={"team": "x", "a.b/c": ""}, namespaceAnnotations={"owner": "me & you"})
    assert made.helm_project_operator.namespace_labels == {"team": "x", "a.b/c": ""}
    assert made.helm_project_operator.namespace_annotations == {"owner": "me & you"}


def test_a_configuration_cannot_be_changed() -> None:
    """The configuration is frozen."""
    with pytest.raises(ValidationError, match="frozen"):
        Config().global_ = Config().global_  # type: ignore[misc]
