"""The policies that are generated: the rules that each of them keeps (3.3), and what a profile and the served versions change."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from tenantry.local.deployment import deployment_folder
from tenantry.model.flux.consumers import CONSUMERS, Consumer
from tenantry.model.flux.policies import Served, documents, manifests, policies
from tenantry.model.flux.policies.compared import is_as_generated
from tenantry.model.flux.policies.served import newest
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Object

Documents = dict[tuple[str, str], Object]
POLICY, MUTATION = "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"
ALL = {"onDenied": "Quarantine", "allowIntraTenant": True, "pinToTenant": True, "kubeConfig": "Deny"}
TERRAFORM = {
    "group": "infra.contrib.fluxcd.io",
    "resource": "terraforms",
    "references": [
        {"path": "spec.sourceRef", "class": "read"},
        {"path": "spec.dependsOn[]", "class": "local", "kind": "Terraform"},
    ],
    "stop": {"field": "spec.suspend"},
}


def profile(**spec: Any) -> Profile:
    return Profile.of({"spec": {"profile": "multi-tenant", **spec}})


def made(served: Served | None = None, **spec: Any) -> Documents:
    """What is generated, by kind and name without its beginning."""
    found = manifests(profile(**spec), served or newest())
    return {(each["kind"], each["metadata"]["name"].removeprefix("tenantry-")): each for each in found}


def names(found: Documents, kind: str = POLICY) -> set[str]:
    return {name for of, name in found if of == kind}


def rules(policy: Object) -> list[Object]:
    return list(policy["spec"]["matchConstraints"]["resourceRules"])


def bindings(found: Documents) -> Iterator[Object]:
    return (each for (kind, _), each in found.items() if kind.endswith("Binding"))


@pytest.mark.parametrize("spec", [{}, ALL, {"mode": "Audit"}, {"serviceAccountMode": "Require", "consumers": [TERRAFORM]}])
def test_every_policy_keeps_the_rules(spec: Mapping[str, Any]) -> None:
    """Explicit versions, what must fail fails, refusals are Forbidden, and each policy has its binding."""
    found = made(**spec)
    for (kind, name), each in found.items():
        assert each["metadata"]["name"] == f"tenantry-{name}"
        if kind.endswith("Binding"):
            assert each["spec"]["policyName"] == each["metadata"]["name"]
            assert (kind.removesuffix("Binding"), name) in found
            continue
        assert (f"{kind}Binding", name) in found
        assert each["spec"]["failurePolicy"] == "Fail"
        assert each["spec"]["matchConstraints"]["matchPolicy"] == "Equivalent"
        assert all("*" not in rule["apiVersions"] and "*" not in rule["resources"] for rule in rules(each))
        assert each["spec"].get("validations") or each["spec"].get("mutations")
        for one in each["spec"].get("validations", ()):
            assert one["reason"] == "Forbidden"
            assert "\n" not in one["message"]


def test_only_what_judges_by_the_index_takes_it() -> None:
    """References of read and write, and target namespaces while tenants may share; no guard, and nothing for local references."""
    takes = {name for (kind, name), each in made(**ALL).items() if kind == POLICY and "paramKind" in each["spec"]}
    read = {"kustomizations.kustomize", "helmreleases.helm", "imageupdateautomations.image", "imagepolicies.image"}
    wanted = {f"references-{each}.toolkit.fluxcd.io" for each in read}
    wanted |= {"references-artifactgenerators.source.extensions.fluxcd.io"}
    wanted |= {"delivery-kustomizations", "delivery-helmreleases"}
    assert takes == wanted
    plain = {name for (kind, name), each in made().items() if kind == POLICY and "paramKind" in each["spec"]}
    assert plain == {each for each in wanted if each.startswith("references")}


@pytest.mark.parametrize(
    ("mode", "missing", "actions"), [("Enforce", "Deny", ["Deny", "Audit"]), ("Audit", "Allow", ["Audit", "Warn"])]
)
def test_audit_refuses_nothing(mode: str, missing: str, actions: list[str]) -> None:
    """Not when the index is missing either, and nothing is mutated."""
    found = made(**ALL, mode=mode)
    for each in bindings(found):
        if "validationActions" in each["spec"]:
            assert each["spec"]["validationActions"] == actions
        if "paramRef" in each["spec"]:
            assert each["spec"]["paramRef"] == {"name": "default", "parameterNotFoundAction": missing}
    assert bool(names(found, MUTATION)) == (mode == "Enforce")


def test_exempt_namespaces_are_named_and_our_own_is_always() -> None:
    """By the label that only the API server sets; guards that nobody is exempt from are everywhere."""
    found = made(exemptNamespaces=["platform"])
    everywhere = set()
    for each in bindings(found):
        if "matchResources" not in each["spec"]:
            everywhere.add(each["spec"]["policyName"])
            continue
        (named,) = each["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        assert named == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["platform", "tenantry-system"]}
    assert everywhere == {
        f"tenantry-{each}"
        for each in ("helmchart-owner", "helmrelease-status", "source-status", "protected-labels", "index-undeletable")
    }


def test_order_is_that_in_which_it_is_applied() -> None:
    """The index with nothing in it, who is the platform, policies, then their bindings."""
    found = documents(profile(), newest())
    kinds = [each["kind"] for each in found]
    assert found[0] == {
        "apiVersion": "tenantry.dev/v1alpha1",
        "kind": "AccessIndex",
        "metadata": {"name": "default"},
        "spec": {},
    }
    order = list(dict.fromkeys(kinds))
    assert order == [
        "AccessIndex",
        "ClusterRole",
        "ClusterRoleBinding",
        POLICY,
        MUTATION,
        f"{POLICY}Binding",
        f"{MUTATION}Binding",
    ]
    assert kinds.index(f"{POLICY}Binding") > max(number for number, kind in enumerate(kinds) if kind in (POLICY, MUTATION))


def test_a_single_tenant_has_none() -> None:
    """Neither policies nor an index."""
    assert documents(Profile.of(None), newest()) == []
    assert documents(Profile.of({"spec": {"profile": "single-tenant"}}), newest()) == []


def test_versions_are_those_that_are_served() -> None:
    """Of a kind that is not served nothing is generated, and of the others each version is named."""
    resources = {
        ("kustomize.toolkit.fluxcd.io", "kustomizations"): ("v1", "v1beta2"),
        ("source.toolkit.fluxcd.io", "gitrepositories"): ("v1", "v1beta2"),
        ("source.toolkit.fluxcd.io", "buckets"): ("v1",),
    }
    found = made(Served(resources, mutates=True))
    assert rules(found[POLICY, "references-kustomizations.kustomize.toolkit.fluxcd.io"])[0]["apiVersions"] == ["v1", "v1beta2"]
    assert {each for each in names(found) if each.startswith(("references", "lock-guard"))} == {
        "references-kustomizations.kustomize.toolkit.fluxcd.io",
        "lock-guard-kustomizations.kustomize.toolkit.fluxcd.io",
    }
    assert [(each["apiVersions"], each["resources"]) for each in rules(found[POLICY, "source-status"])] == [
        (["v1", "v1beta2"], ["gitrepositories/status"]),
        (["v1"], ["buckets/status"]),
    ]
    assert not [each for each in names(found) if each.startswith("helm")]


def test_without_mutations_accounts_are_required_and_denials_refused() -> None:
    """An older server, as discovery shows it."""
    older = Served(newest().resources, mutates=False)
    found = made(older, onDenied="Quarantine")
    assert names(found, MUTATION) == set()
    assert "delivery-kustomizations" in names(found)
    (refused,) = found[POLICY, "references-kustomizations.kustomize.toolkit.fluxcd.io"]["spec"]["validations"]
    assert "tenantry.dev/locked" not in refused["expression"]
    assert profile().account_mode(mutates=False) == "Require"
    assert profile(onDenied="Quarantine").denial(mutates=False) == "Deny"


def test_what_is_not_judged_has_no_policy() -> None:
    """Without the ACL only local references are; without checkDependsOn what depends on others is not."""
    acl = {
        each.removeprefix("references-").partition(".")[0] for each in names(made(enforceSourceACL=False)) if "references" in each
    }
    assert acl == {"kustomizations", "helmreleases", "alerts", "receivers", "resourcesets", "resourcesetinputproviders"}
    without = made(checkDependsOn=False)
    assert "references-resourcesets.fluxcd.controlplane.io" not in names(without)
    assert "dependsOn" not in str(without[POLICY, "references-kustomizations.kustomize.toolkit.fluxcd.io"])
    assert "serviceAccountName" not in str(made(serviceAccountMode="Off"))


def test_a_row_is_a_kind_like_the_others() -> None:
    """It has the policies of a Kustomization that are about references and locks."""
    served = newest((*CONSUMERS, Consumer.of(TERRAFORM)))
    found = made(served, consumers=[TERRAFORM], onDenied="Quarantine")
    name = "terraforms.infra.contrib.fluxcd.io"
    assert {f"references-{name}", f"lock-guard-{name}"} < names(found)
    assert f"quarantine-{name}" in names(found, MUTATION)
    assert {each for each in names(made(consumers=[TERRAFORM])) if "terraform" in each} == set()


def test_the_table_is_what_the_crd_refuses_rows_for() -> None:
    """A row for a kind of the table would judge it twice."""
    crd = yaml.safe_load((deployment_folder("knative") / "crds" / "tenancyprofiles.yaml").read_text(encoding="utf-8"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    (ruled,) = spec["consumers"]["items"]["x-kubernetes-validations"]
    assert set(re.findall(r"'([a-z.]+/[a-z]+)'", ruled["rule"])) == {f"{each.group}/{each.resource}" for each in CONSUMERS}


def test_defaults_are_those_of_the_crd() -> None:
    """A profile that states nothing is read as the API server fills it in."""
    crd = yaml.safe_load((deployment_folder("knative") / "crds" / "tenancyprofiles.yaml").read_text(encoding="utf-8"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    filled = {name: each["default"] for name, each in spec.items()}
    assert Profile.of({"spec": filled}) == Profile.of(None) == Profile()


def test_names_are_unique() -> None:
    """Of policies and mutations."""
    found = [each.full_name for each in policies(profile(**ALL), newest())]
    assert len(found) == len(set(found))


def test_what_the_api_server_fills_in_is_no_difference() -> None:
    """Everything else that somebody edits is one: a selector that lets something out, an action, an expression, a label."""
    for wanted in manifests(profile(), newest()):
        live = copy.deepcopy(wanted)
        live["metadata"] |= {"uid": "x", "generation": 1}
        for part in ("matchConstraints", "matchResources"):
            if part in live["spec"]:
                live["spec"][part].setdefault("namespaceSelector", {})
                live["spec"][part].setdefault("objectSelector", {})
        assert is_as_generated(wanted, live)
        for edited in edits(live):
            assert not is_as_generated(wanted, edited), edited


def edits(live: Object) -> Iterator[Object]:
    """The same as somebody has edited it."""
    named = {"matchLabels": {"a": "b"}}
    binding = live["kind"].endswith("Binding")
    part = "matchResources" if binding else "matchConstraints"
    for change in (
        {"spec": {**live["spec"], part: {**live["spec"].get(part, {}), "objectSelector": named}}},
        {"spec": {**live["spec"], "policyName" if binding else "failurePolicy": "Ignore"}},
        {"metadata": {**live["metadata"], "labels": {}}},
        {"spec": {}},
    ):
        yield {**live, **change}
