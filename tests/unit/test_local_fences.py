"""Fences follow the configuration."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.fence_policy import merged
from tenantry.local.fences import configured, fence_policies
from tenantry.model.config import Config
from tenantry.model.kinds import ADMISSION_POLICY, Object
from tenantry.serving.installed import descriptors, services_of

FUNCTIONS = [each.name for each in services_of(descriptors())]


def fence(function: str) -> Object:
    """The policy of its file that needs no param: those are installed as they are written."""
    kind = ADMISSION_POLICY.kind
    every = documents(deployment_folder("knative") / function / "fence.yaml")
    (found,) = (each for each in every if each["kind"] == kind and "paramKind" not in each["spec"])
    return found


def lists(function: str, **sections: Any) -> dict[str, set[str]]:
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
        anywhere = function in ("scope-binding", "scope-binding-sources", "lock-enforcement-access") or function.endswith("-paas")
        assert (found is None) == anywhere, (
            "what templates bind, they bind anywhere, as sources and consumers may be; Paas has marked namespaces"
        )
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


def part(identity: str, variables: dict[str, str], rule: dict[str, Any] | None = None) -> Object:
    """A fence that refuses where ``variables.x`` says so."""
    user = f'request.userInfo.username == "{identity}"'
    rules = [rule or {"apiGroups": [""], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["pods", "pods/status"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "identity", "expression": user}],
        "variables": [{"name": name, "expression": text} for name, text in variables.items()],
        "validations": [{"expression": "variables.x == 1", "message": "no", "messageExpression": "string(variables.x)"}],
    }
    return {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": f"tenantry-fence-{identity}"}, "spec": spec}


def test_variables_stand_in_their_place() -> None:
    """Those that say what a request changes are bound to a name, once and each after those that it uses; only what is needed."""
    fence = part(
        "a", {"list": '[\n  "m",\n]', "now": "object", "newLabels": "variables.now.labels", "x": "variables.newLabels.size()"}
    )
    spec = merged([fence])[0]["spec"]
    bound = "[object].all(now_,\n[now_.labels].all(newLabels_,\n((newLabels_.size()) == 1)))"
    told = "[object].map(now_,\n[now_.labels].map(newLabels_,\nstring((newLabels_.size())))[0])[0]"
    assert "variables" not in spec
    (condition,) = spec["matchConditions"]
    names, _, rest = condition["expression"].partition("((\n")
    assert names.endswith(" &&\n[object].all(now_,\n[now_.labels].all(newLabels_,\n")
    assert "!(((newLabels_.size()) == 1))" in rest
    assert spec["validations"] == [
        {"expression": f'!(request.userInfo.username == "a") ||\n({bound})', "message": "no", "messageExpression": told}
    ]


def test_names_are_bound_once_for_all_fences_that_mean_the_same_by_them() -> None:
    """What two fences work out in two ways each binds itself, within the names that they share."""
    fences = [part(each, {"now": "object", "owned": f"variables.now.{each}", "x": "variables.owned"}) for each in "ab"]
    (condition,) = merged(fences)[0]["spec"]["matchConditions"]
    assert condition["expression"].count("[object].all(now_,") == 1
    outside, a, b = condition["expression"].split("userInfo.username == ")
    assert "[object].all(now_," in outside
    assert "[now_.a].all(owned_," in a
    assert "[now_.b].all(owned_," in b


def test_a_fence_is_asked_about_its_own_requests_alone() -> None:
    """What one fence looks at does not concern another's identity; what is plainly allowed comes first, lists written out."""
    everything = {"apiGroups": ["*"], "operations": ["CREATE"], "resources": ["*"]}
    deletions = {"apiGroups": ["x", "y"], "operations": ["DELETE"], "resources": ["z"]}
    fences = [
        part("a", {"x": "1"}, everything),
        part("b", {"list": '[\n  "m",\n]', "x": "2", "plain": "object.name in variables.list"}, deletions),
        part("c", {"x": "2"}),
    ]
    spec = merged(fences)[0]["spec"]
    (rule,) = fences[2]["spec"]["matchConstraints"]["resourceRules"]
    assert spec["matchConstraints"]["resourceRules"] == [everything, {**rule, "resources": ["pods/status"]}]
    (condition,) = spec["matchConditions"]
    plain, _, rest = condition["expression"].partition("((\n")
    a, b, c = rest.split("\n) || (\n")
    assert "request.resource" not in a
    assert 'request.operation in ["DELETE"]' in b
    assert '["x/z", "y/z"]' in b
    assert plain.endswith('&&\n!(request.userInfo.username == "b" &&\n(object.name in ([ "m", ]))) &&\n')
    assert "object.name" not in rest
    assert '["/pods", "/pods/status"]' in c
    assert "request.operation" not in c


def test_a_fence_is_left_out_by_its_name() -> None:
    """The policy is there without it; without the policy's own name nothing is."""
    user = '"system:serviceaccount:tenantry-system:scope-binding"'
    assert user in str(fence_policies(Config())[0]["spec"])
    assert user not in str(fence_policies(Config(), ["tenantry-fence-scope-binding"])[0]["spec"])
    assert fence_policies(Config(), ["tenantry-fence"]) == fence_policies(Config(), ["all"]) == []


def test_there_is_room_for_more_fences() -> None:
    """The API server takes expressions of 100,000 characters."""
    (condition,) = fence_policies(Config())[0]["spec"]["matchConditions"]
    assert len(condition["expression"]) < 75_000


def test_a_fence_that_looks_at_namespaces_is_a_policy_of_its_own() -> None:
    """As it is written: a condition does not have the namespace of what is written."""
    fence = part("a", {"x": "namespaceObject.metadata.labels.size()"})
    policy, binding = merged([fence])
    assert policy["spec"] == fence["spec"]
    assert binding["spec"]["policyName"] == policy["metadata"]["name"] == "tenantry-fence-a"
