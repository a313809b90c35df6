"""A Paas against the PaasConfig: what is refused because administrators say so, and what is not judged again."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from admitting import V2, VERSIONS, Admitting, paas, says
from paasing import CONFIG, CONFIG_NAME, paas_name
from times import POLICY_S, SIDE_BY_SIDE

from tenantry.model.kinds import Object
from tenantry.model.paas.names import PAAS, PAAS_CONFIG
from tenantry.testing import eventually

CONFIGURED, SHAPE = "tenantry-guard-paas-configured", "tenantry-guard-paas-shape"
CPU = "limits.cpu"
REJECTING = {**CONFIG, "unknownRolePolicy": "Reject", "unknownCapabilityPolicy": "Reject"}


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def nothing_is_left(admitting: Admitting) -> AsyncIterator[None]:
    """Each test begins without a PaasConfig."""
    yield
    await admitting.forget()


def with_expression(field: str, expression: str) -> dict[str, Any]:
    return {"validations": {"paas": {field: expression}}}


def fields(**custom: Object) -> Object:
    """A PaasConfig whose capability argocd has these custom fields."""
    return {"capabilities": {"argocd": {"custom_fields": custom}}}


def argocd(enabled: bool = True, **spec: Any) -> Object:
    return {"argocd": {"enabled": enabled, **spec}}


async def test_where_nothing_is_configured_everything_is_admitted(admitting: Admitting) -> None:
    """What needs a PaasConfig is not judged without one (3.3)."""
    await admitting.configure(**REJECTING)
    await admitting.forget()
    await admitting.admitted(paas(groups={"us": {"roles": ["viewer"]}}, capabilities={"nope": {}}))


# -- roles and capabilities ------------------------------------------------------------------------------------------


async def test_a_role_that_is_not_mapped_is_refused_where_that_is_the_policy(admitting: Admitting) -> None:
    """Under Reject with the role and its path, each role for itself; under Ignore and UseDefault it is admitted (p-45)."""
    await admitting.configure(**REJECTING)
    groups = {"us": {"roles": ["view", "viewer", "ops"]}, "them": {"roles": ["view"]}}
    said = await admitting.refused(paas(groups=groups), "spec.groups[us].roles: viewer, ops: no such role")
    assert "them" not in said
    for policy in ("Ignore", "UseDefault"):
        await admitting.configure(**{**REJECTING, "unknownRolePolicy": policy})
        await admitting.admitted(paas(groups=groups))


async def test_a_capability_that_is_not_configured_is_refused_where_that_is_the_policy(admitting: Admitting) -> None:
    """Under Reject with its path, when it is enabled; under NamespaceOnly it is admitted (p-46)."""
    await admitting.configure(**REJECTING)
    await admitting.refused(paas(capabilities={"nope": {}, "argocd": {}}), "spec.capabilities[nope]: no such capability")
    await admitting.admitted(paas(capabilities={"nope": {"enabled": False}, "argocd": {}}))
    await admitting.configure(**CONFIG)
    await admitting.admitted(paas(capabilities={"nope": {}}))


@pytest.mark.check("p-91", without=CONFIGURED)
async def test_the_name_of_a_shared_quota_is_no_name_of_a_paas(admitting: Admitting) -> None:
    """paas-<c> is the quota that all Paas share for a clusterwide capability."""
    tekton = {"quotas": {"clusterwide": True, "defaults": {CPU: 1}}}
    await admitting.configure(capabilities={"tekton": tekton, "argocd": {}})
    await admitting.refused(paas("paas-tekton"), "metadata.name: paas-tekton is the name of the quota")
    for name in ("paas-argocd", "paas-tekton2", "tekton", "paass"):
        await admitting.admitted(paas(name))


# -- expressions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "good", "bad", "path"),
    [
        ("name", {}, {}, "metadata.name"),
        ("groupName", {"groups": {"my-group": {}}}, {"groups": {"my_group": {}}}, "spec.groups"),
        ("namespaceName", {"namespaces": ["cicd"]}, {"namespaces": ["a1"]}, "spec.namespaces[a1]"),
        ("namespaceName", {"namespaces": {"cicd": {}}}, {"namespaces": {"cicd": None, "a1": None}}, "spec.namespaces[a1]"),
        ("requestor", {"requestor": "team-a"}, {"requestor": "Team.A"}, "spec.requestor: Team.A"),
    ],
)
async def test_names_match_the_expressions_of_administrators(
    admitting: Admitting, field: str, good: Object, bad: Object, path: str
) -> None:
    """What does not match is refused with its path and the expression (p-55); what was there before is not judged again."""
    good_name, bad_name = ("abc", "abc1") if field == "name" else (paas_name(), paas_name())
    async with admitting.kept(paas(bad_name, **bad)) as old:
        await admitting.configure({"name": "abc"}, **with_expression(field, "^[a-z-]*$"))
        await admitting.admitted(paas(good_name, **good))
        await admitting.refused(
            paas(bad_name, **bad) if field == "name" else paas(**bad), path, "^[a-z-]*$", f"validations.paas.{field}"
        )
        answer = await admitting.merge(old, {"spec": {"quota": {CPU: "1"}}})
        assert answer.status == 200, answer


async def test_an_expression_of_paasns_stands_in_for_that_of_namespaces(admitting: Admitting) -> None:
    """Of the two each stands in for the other where one is missing (1.3)."""
    await admitting.configure(validations={"paasNs": {"name": "^[a-z]*$"}})
    await admitting.refused(paas(namespaces=["a1"]), "spec.namespaces[a1] does not match ^[a-z]*$")
    await admitting.configure(validations={"paasNs": {"name": "^[a-z]*$"}, "paas": {"namespaceName": "^a1$"}})
    await admitting.admitted(paas(namespaces=["a1"]))


@pytest.mark.check("p-94", without=CONFIGURED)
async def test_no_expression_holds_up_admission(admitting: Admitting) -> None:
    """One that costs other engines the age of the universe is answered within a second."""
    await admitting.configure(**with_expression("groupName", "^(a+)+$"))
    for key in ("a" * 189 + "!", "a" * 190):
        began = time.monotonic()
        answer = await admitting.create(paas(groups={key: {}}))
        assert time.monotonic() - began < 1 * SIDE_BY_SIDE, key
        assert ("does not match ^(a+)+$" in answer.message) is key.endswith("!"), answer


async def test_expressions_judge_the_largest_paas(admitting: Admitting) -> None:
    """500 keys of the greatest length against an expression of the greatest length cost less than policies may."""
    expression = "^(" + "|".join(["[a-z0-9]{190}"] * 17) + ")$"
    await admitting.configure(**with_expression("groupName", expression))
    keys = [f"{number:03}".ljust(190, "k") for number in range(500)]
    await admitting.admitted(paas(groups=dict.fromkeys(keys)))
    await admitting.refused(
        paas(groups=dict.fromkeys([*keys[:-1], "short"])), "spec.groups[", "short", "validations.paas.groupName"
    )


# -- quotas ----------------------------------------------------------------------------------------------------------


@pytest.mark.check("p-56", without=CONFIGURED)
@pytest.mark.parametrize("version", VERSIONS)
async def test_no_quota_is_above_the_largest_that_is_allowed(admitting: Admitting, version: str) -> None:
    """Compared as numbers: 10 and 8001m are more than 8, and 8000m is not."""
    await admitting.configure(maxAllowedSubmittedQuota={"maxQuota": {CPU: "8", "limits.memory": "1Gi"}})
    for amount in ("10", "8001m", 9, "1e1"):
        await admitting.refused(paas(version=version, quota={CPU: amount}), f"spec.quota[{CPU}]: {amount} is more than 8")
    for amount in ("8000m", 8, "8", "0.5"):
        await admitting.admitted(paas(version=version, quota={CPU: amount, "limits.memory": "1024Mi", "pods": "99"}))


@pytest.mark.check("p-155", without=(CONFIGURED, "tenantry-guard-paas-config"))
async def test_quotas_are_of_resources_that_are_allowed(admitting: Admitting) -> None:
    """Others are refused in the quota of a Paas and of a capability, in the quotas of the PaasConfig, and in its maximum."""
    allowed = with_expression("allowedQuotas", r"^requests\..*$")
    await admitting.configure(**allowed)
    await admitting.refused(paas(quota={CPU: 1, "requests.cpu": 1}), f"spec.quota[{CPU}] does not match")
    quota = {"quota": {CPU: 1, "requests.cpu": 1}}
    await admitting.refused(paas(capabilities=argocd(**quota)), f"spec.capabilities[argocd].quota[{CPU}] does not match")
    await admitting.admitted(paas(quota={"requests.cpu": 1}, capabilities=argocd(quota={"requests.memory": "1Gi"})))

    config = {"apiVersion": V2, "kind": "PaasConfig", "metadata": {"name": CONFIG_NAME}}
    for field in ("defaults", "min", "max"):
        quotas = {"defaults": {CPU: 1}, "min": {}, "max": {}} | {field: {CPU: 1}}
        change = {"spec": {"capabilities": {"argocd": {"quotas": quotas}}}}
        says(await admitting.merge(config, change), f"spec.capabilities[argocd].quotas.{field}[{CPU}]", "allowedQuotas")
    change = {"spec": {"maxAllowedSubmittedQuota": {"maxQuota": {CPU: 1}}}}
    says(await admitting.merge(config, change), f"spec.maxAllowedSubmittedQuota.maxQuota[{CPU}]", "allowedQuotas")


# -- group_user_management -------------------------------------------------------------------------------------------


@pytest.mark.check("p-119", without=CONFIGURED)
async def test_users_are_blocked_where_they_are_new(admitting: Admitting) -> None:
    """A new Paas, or a change, with users and no query is refused with the group's path; other changes of an old one are not."""
    before = {"us": {"users": ["me"]}, "others": {"query": "CN=others"}, "nobody": {}}
    async with admitting.kept(paas(groups=before)) as old:
        await admitting.configure(feature_flags={"group_user_management": "block"})
        await admitting.refused(paas(groups=before), "spec.groups[us].users: me")
        await admitting.admitted(paas(groups={"others": {"query": "CN=others", "users": ["me"]}, "nobody": {}}))
        change: Object
        for change in ({"us": {"users": ["me", "you"]}}, {"us": {"roles": ["admin"]}}, {"new": {"users": ["me"]}}):
            (key,) = change
            says(await admitting.merge(old, {"spec": {"groups": change}}), f"spec.groups[{key}].users: me")
        for change in ({"groups": {"us": None}}, {"groups": {"nobody": None}}, {"quota": {CPU: 1}}, {"namespaces": ["a"]}):
            answer = await admitting.merge(old, {"spec": change})
            assert answer.status == 200, answer


# -- custom fields ---------------------------------------------------------------------------------------------------


@pytest.mark.check("p-127", without=CONFIGURED)
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_required_field_is_asked_for(admitting: Admitting, version: str) -> None:
    """Not set: refused with capability and field; set: admitted, also by the name that v1alpha1 has for it."""
    await admitting.configure(**fields(git_url={"required": True}, key={"required": True}, other={"default": "x"}))
    path = "spec.capabilities[argocd].custom_fields"
    said = await admitting.refused(paas(version=version, capabilities=argocd()), f"{path}[", "git_url", "key", "]: required")
    assert "other" not in said
    given = {"git_url": "https://x", "key": "a"}
    await admitting.refused(
        paas(version=version, capabilities=argocd(custom_fields={**given, "key": ""})), f"{path}[key]: required"
    )
    await admitting.admitted(paas(version=version, capabilities=argocd(custom_fields=given)))
    await admitting.admitted(paas(version=version, capabilities=argocd(gitUrl="https://x", custom_fields={"key": "a"})))
    await admitting.admitted(paas(version=version, capabilities=argocd(enabled=False)))


@pytest.mark.check("p-129", without=(CONFIGURED, "tenantry-guard-paas-config"))
async def test_the_value_of_a_field_is_validated(admitting: Admitting) -> None:
    """A value that does not match is refused, and so is such a default, in the PaasConfig."""
    await admitting.configure(**fields(key={"validation": "^key_[0-9]+$"}, git_url={"validation": "^https:"}))
    path = "spec.capabilities[argocd].custom_fields"
    await admitting.admitted(paas(capabilities=argocd(custom_fields={"key": "key_1"}, gitUrl="https://x")))
    await admitting.refused(
        paas(capabilities=argocd(custom_fields={"key": "key_x"})), f"{path}[key]: key_x does not match ^key_[0-9]+$"
    )
    await admitting.refused(paas(capabilities=argocd(gitUrl="http://x")), f"{path}[git_url]: http://x does not match ^https:")
    config = {"apiVersion": V2, "kind": "PaasConfig", "metadata": {"name": CONFIG_NAME}}
    change = {"spec": {"capabilities": {"argocd": {"custom_fields": {"key": {"default": "key_x"}}}}}}
    says(await admitting.merge(config, change), f"{path}[key].default: key_x", "does not match")
    change["spec"]["capabilities"]["argocd"]["custom_fields"]["key"]["default"] = "key_7"
    assert (await admitting.merge(config, change)).status == 200


async def test_a_field_that_is_not_configured_is_refused(admitting: Admitting) -> None:
    """With its path, also where the whole capability is not known (p-130)."""
    await admitting.configure(**fields(key={}))
    path = "spec.capabilities[argocd].custom_fields"
    await admitting.refused(
        paas(capabilities=argocd(custom_fields={"key": "a", "kay": "a"})), f"{path}[kay]: no such custom field"
    )
    await admitting.refused(
        paas(capabilities={"nope": {"custom_fields": {"key": "a"}}}), "spec.capabilities[nope].custom_fields[key]"
    )


# -- labels that follow ----------------------------------------------------------------------------------------------


async def test_what_manages_a_paas_fits_a_label(admitting: Admitting) -> None:
    """The other Paas, or the Paas itself, with the configured suffix, has 63 characters at most (p-123)."""
    await admitting.configure(**CONFIG)
    await admitting.admitted(paas("a" * 40, managedByPaas="b" * 56))
    await admitting.refused(paas(managedByPaas="b" * 57), f"spec.managedByPaas: {'b' * 57}-argocd", "64 characters")
    await admitting.admitted(paas("a" * 56))
    await admitting.refused(paas("a" * 57), f"metadata.name: {'a' * 57}-argocd", "64 characters")
    await admitting.configure(managed_by_suffix="a")
    await admitting.admitted(paas(managedByPaas="b" * 61))
    await admitting.configure(managed_by_label="")
    await admitting.admitted(paas("a" * 57, managedByPaas="b" * 63))


# -- what is not judged again ----------------------------------------------------------------------------------------


@pytest.mark.check("p-39")
@pytest.mark.check("p-171")
@pytest.mark.parametrize("version", VERSIONS)
async def test_what_was_admitted_once_is_in_nobodys_way(admitting: Admitting, version: str) -> None:
    """The configuration became stricter: labels, annotations, finalizers, status and deletion of a Paas are not refused, nor is
    a change that only takes something away."""
    name = paas_name()
    groups = {"my_group": {"users": ["me"], "roles": ["viewer"]}, "us": {"roles": ["ops"]}}
    old = paas(name, version, groups=groups, namespaces=["a1"], quota={CPU: 10}, capabilities={"nope": {}})
    stored = await admitting.made(old)
    await admitting.configure(
        {"name": "x", "requestor": "x"},
        **REJECTING,
        maxAllowedSubmittedQuota={"maxQuota": {CPU: 1}},
        feature_flags={"group_user_management": "block"},
        validations={"paas": dict.fromkeys(("name", "groupName", "namespaceName", "requestor"), "^x$")},
    )
    says(await admitting.create({**old, "metadata": {"name": paas_name()}}))

    finalizers = ["tenantry.dev/rbac-aggregation"]
    condition = {"type": "Ready", "status": "True", "reason": "Reconciling", "message": ""}
    status = {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    changes: list[tuple[Object, str]] = [
        ({"metadata": {"labels": {"team": "a"}, "annotations": {"a": "b"}}}, ""),
        ({"metadata": {"finalizers": finalizers}}, ""),
        ({"status": status}, "status"),
        ({"spec": {"groups": {"us": None}}}, ""),
        ({"spec": {"capabilities": None}}, ""),
    ]
    for change, subresource in changes:
        answer = await admitting.merge(old, change, dry=False, subresource=subresource)
        assert answer.status == 200, answer
    await admitting.admin.delete(PAAS, name, uid=stored["metadata"]["uid"])
    answer = await admitting.merge(old, {"metadata": {"labels": {"team": "b"}}}, dry=False)
    assert answer.status == 200, answer
    answer = await admitting.merge(old, {"spec": {"groups": {"us": {"roles": ["ops"]}}}}, dry=False)
    assert answer.status == 200, answer
    answer = await admitting.merge(old, {"metadata": {"finalizers": []}}, dry=False)
    assert answer.status == 200, answer
    await eventually(lambda: admitting.admin.get(PAAS, name), lambda found: found is None, within=POLICY_S)


async def test_a_config_that_is_not_in_use_judges_nothing(admitting: Admitting) -> None:
    """One that the functions say is not active, and one that is being deleted, have no say."""
    await admitting.configure(**REJECTING)
    wrong = paas(groups={"us": {"roles": ["viewer"]}})
    await admitting.refused(wrong, "viewer")
    condition = {"type": "Active", "status": "False", "reason": "NotActive", "message": ""}
    status = {"conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    config = {"apiVersion": V2, "kind": "PaasConfig", "metadata": {"name": CONFIG_NAME}}
    answer = await admitting.merge(config, {"status": status}, dry=False, subresource="status")
    assert answer.status == 200, answer

    async def admitted() -> bool:
        return (await admitting.create(wrong)).status == 201

    await eventually(admitted, within=POLICY_S, what="it judges nothing")
    await admitting.merge(config, {"status": None}, dry=False, subresource="status")
    await eventually(admitted, lambda found: not found, within=POLICY_S, what="it judges again")
    await admitting.merge(config, {"metadata": {"finalizers": ["example.com/hold"]}}, dry=False)
    await admitting.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    await eventually(admitted, within=POLICY_S, what="nor does it on its way out")
    await admitting.merge(config, {"metadata": {"finalizers": []}}, dry=False)
