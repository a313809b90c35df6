"""Fences follow the configuration."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.fences import configured
from tenantry.model.config import Config
from tenantry.model.duties import all_services
from tenantry.model.kinds import ADMISSION_POLICY, Object
from tenantry.serving.server import FUNCTIONS as FUNCTIONS_

FUNCTIONS = all_services(FUNCTIONS_)


def fence(function: str) -> Object:
    found = documents(deployment_folder("knative") / function / "fence.yaml")
    return next(each for each in found if each["kind"] == ADMISSION_POLICY.kind)


def lists(function: str, **sections: Any) -> dict[str, set[str]]:
    """The lists of a fence under a configuration."""
    policy = configured(fence(function), Config.model_validate(sections))
    found = {each["name"]: each["expression"] for each in policy["spec"]["variables"] if each["expression"].startswith("[")}
    return {name: set(re.findall(r'"([^"]*)"', text)) for name, text in found.items()}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_default_is_in_the_file(function: str) -> None:
    """Under the default configuration a fence is as its file says."""
    assert configured(fence(function), Config()) == fence(function)


def test_labels_of_the_configuration() -> None:
    """Another project label takes the place of the default's; further labels come beside the fixed ones."""
    cattle, operator = {"projectLabel": "team.example/project"}, {"namespaceLabels": {"owner": "x"}}
    for function in ("namespace-registration", "release-provisioning"):
        found = lists(function, **{"global": {"cattle": cattle}, "helmProjectOperator": operator})["labels"]
        assert {"team.example/project", "owner", "helm.cattle.io/projectId"} <= found
        assert "field.cattle.io/projectId" not in found


def test_places_of_releases() -> None:
    """Namespaces of their own by their ends, else registration namespaces, else the system namespace."""
    assert lists("rbac-aggregation")["places"] == {"-dummy"}
    shared = {"helmProjectOperator": {"projectReleaseNamespaces": {"enabled": False}}}
    assert lists("rbac-aggregation", **shared)["places"] == {"cattle-project-"}
    single = lists("rbac-aggregation", **{"global": {"cattle": {"projectLabel": ""}}})
    assert (single["places"], single["homes"]) == (set(), {"cattle-helm-system"})
    assert single["systemNamespaces"] == {"kube-system", "tenantry-system"}


def test_system_namespaces_are_kept_whatever_is_configured() -> None:
    """Those of Kubernetes and of Tenantry stay; the configured ones come."""
    operator = {"systemNamespace": "charts", "systemNamespaces": ["ops"]}
    for function in FUNCTIONS:
        found = lists(function, helmProjectOperator=operator).get("systemNamespaces")
        assert (found is None) == (function == "scope-binding"), "what templates bind, they bind anywhere"
        assert found is None or found == {"charts", "ops", "kube-system", "tenantry-system"}, function


def test_what_runs_helm_is_what_is_configured() -> None:
    """Repositories, image, role and names of releases."""
    chart = {
        "helmApiVersion": "a.example/v1",
        "releaseName": "shop",
        "chart": {"repo": "https://charts.example", "name": "shop", "version": "1"},
        "jobClusterRole": "narrow",
    }
    operator = {"charts": [chart], "helmController": {"jobImage": "registry.example/helm:1"}}
    found = lists("release-provisioning", helmProjectOperator=operator)
    assert found["releases"] == {"shop"}
    assert found["repositories"] == {"https://charts.example"}
    assert "registry.example/helm:1" in found["images"]
    found = lists("release-provisioning-helm-jobs", helmProjectOperator=operator)
    assert "registry.example/helm:1" in found["images"]
    assert "narrow" in found["roles"]
