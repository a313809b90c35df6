"""PaasConfigs on plain Kubernetes: which one counts, what of it has no effect, what is wrong with it (section 4.22)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from configuring import CONFIGURED, got_in, second
from paasing import CONFIG_NAME, Paasing, make_roles, paas_name
from people import FUNCTION, token
from times import POLICY_S

from tenantry.api import Api
from tenantry.api.errors import RefusedError
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CLUSTER_ROLE, RESOURCE_QUOTA, Object, finalizers_of
from tenantry.model.paas.names import PAAS, PAAS_CONFIG
from tenantry.testing import eventually

CPU = "limits.cpu"
UPSTREAM_FINALIZER = "paasconfig.cpet.belastingdienst.nl/finalizer"
UNUSED: Mapping[str, Any] = {
    "decryptKeySecret": {"name": "x", "namespace": "y"},
    "decryptKeyPaths": ["/x"],
    "exclude_appset_name": "x",
    "groupsynclist": {"name": "x", "namespace": "y"},
    "groupsynclist_key": "x",
    "ldap": {"host": "x", "port": 389},
    "argoenabled": True,
    "debug": False,
    "components_debug": {"x": True},
}
WIDE = {"quotas": {"clusterwide": True, "ratio": 0.1, "defaults": {CPU: "1"}}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plain(admin: Api, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """namespace-registration on plain Kubernetes, with the configuration of the checks."""
    running = await flawlessly({}, functions=[FUNCTION])
    await make_roles(admin)
    await Paasing(admin).config()
    return running


@pytest_asyncio.fixture(loop_scope="session")
async def paasing(plain: Knative, admin: Api) -> AsyncIterator[Paasing]:
    """The administrators; the configuration of the checks is the only one again when a test ends."""
    del plain
    made = Paasing(admin)
    yield made
    for each in (await admin.list(PAAS_CONFIG)).items:
        if each["metadata"]["name"] != CONFIG_NAME:
            await admin.delete(PAAS_CONFIG, each["metadata"]["name"])
            await made.away(PAAS_CONFIG, each["metadata"]["name"])
    await eventually(lambda: _applied(made, {}), within=POLICY_S, what="the policy knows that there is none")
    await says(made, "Warnings", "Reconciling")


async def says(paasing: Paasing, type_: str, reason: str, words: str = "", name: str = CONFIG_NAME, **more: Any) -> Object:
    """Wait for a condition of a PaasConfig."""
    return await paasing.says(name, type_, reason, words, kind=PAAS_CONFIG, **more)


# -- which one counts ------------------------------------------------------------------------------------------------


@pytest.mark.check("p-183")
async def test_when_the_older_one_goes_the_younger_counts(paasing: Paasing) -> None:
    """Both are told at once; at no moment do two say that they are in use."""
    name = f"younger-{token()}"
    await says(paasing, "Active", "Reconciling", status="True")
    since = (await paasing.admin.list(PAAS_CONFIG)).resource_version
    await second(paasing, name, capabilities={"wide": WIDE})
    told = await says(paasing, "Active", "NotInUse", CONFIG_NAME, name, status="False")
    assert "delete one of them" in told["message"]
    await says(paasing, "HasErrors", "NotInUse", name=name, status="True")
    await says(paasing, "Active", "Reconciling", status="True")
    await paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    await says(paasing, "Active", "Reconciling", name=name, status="True")
    await says(paasing, "Warnings", "ClusterwideQuotaPerNamespace", "spec.capabilities[wide]", name)
    assert not await both_active(paasing.admin, since)


async def both_active(admin: Api, since: str) -> list[set[str]]:
    """Sets of PaasConfigs that said at the same time that they are in use, by a watch from then until now."""
    last = max(int(each["metadata"]["resourceVersion"]) for each in (await admin.list(PAAS_CONFIG)).items)
    active: dict[str, bool] = {}
    found = []
    watch = admin.watch(PAAS_CONFIG, resource_version=since, timeout_s=60)
    async with aclosing(watch) as told:  # type: ignore[type-var]
        async for change, each in told:
            metadata = each["metadata"]
            active[metadata["name"]] = change != "DELETED" and (find_condition(each, "Active") or {}).get("status") == "True"
            if len(both := {name for name, is_active in active.items() if is_active}) > 1:
                found.append(both)
            if int(metadata["resourceVersion"]) >= last:
                break
    return found


async def test_upstream_s_finalizer_does_not_keep_a_configuration(paasing: Paasing) -> None:
    """p-188: it is taken off when the PaasConfig is deleted, and before that it stays."""
    await paasing.edit(PAAS_CONFIG, CONFIG_NAME, "", ("add", "/metadata/finalizers", [UPSTREAM_FINALIZER]))
    await paasing.config(debug=True)
    await says(paasing, "Warnings", "IgnoredField")
    assert finalizers_of(await paasing.get(PAAS_CONFIG, CONFIG_NAME)) == [UPSTREAM_FINALIZER]
    await paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    await paasing.away(PAAS_CONFIG, CONFIG_NAME)


async def test_a_finalizer_of_somebody_else_stays(paasing: Paasing) -> None:
    """The PaasConfig waits for whoever put it there, and is not in use meanwhile."""
    await paasing.edit(PAAS_CONFIG, CONFIG_NAME, "", ("add", "/metadata/finalizers", [UPSTREAM_FINALIZER, "example.org/x"]))
    await paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
    await paasing.until(PAAS_CONFIG, CONFIG_NAME, "", lambda found: finalizers_of(found) == ["example.org/x"])
    await says(paasing, "Active", "NotInUse", "being deleted", status="False")
    await paasing.edit(PAAS_CONFIG, CONFIG_NAME, "", ("remove", "/metadata/finalizers", None))
    await paasing.away(PAAS_CONFIG, CONFIG_NAME)


# -- what is told ----------------------------------------------------------------------------------------------------


async def test_the_configuration_of_the_checks_is_in_use_and_has_nothing_to_tell(paasing: Paasing) -> None:
    """1.4: each condition with observedGeneration, and nothing is written when nothing changes."""
    for type_, status in (("Active", "True"), ("HasErrors", "False"), ("Warnings", "False")):
        await says(paasing, type_, "Reconciling", status=status)


@pytest.mark.check("p-162")
@pytest.mark.check("p-184")
async def test_every_field_without_a_use_is_named(paasing: Paasing) -> None:
    """All fields of the last row of 1.3 at once; taken away again, nothing is told any more."""
    await paasing.config(**UNUSED)
    told = await says(paasing, "Warnings", "IgnoredField", status="True")
    assert all(f"spec.{name}" in told["message"] for name in UNUSED)
    assert await paasing.warned(CONFIG_NAME, "IgnoredField", kind=PAAS_CONFIG)
    await paasing.config()
    await says(paasing, "Warnings", "Reconciling", status="False")


@pytest.mark.check("p-184")
async def test_a_cluster_role_that_is_missing_is_told_until_it_is_there(paasing: Paasing, plain: Knative) -> None:
    """p-112, on the PaasConfig: a mapped one, and one of service accounts; gone by the sweep after they exist."""
    mapped, permitted = f"mapped-{token()}", f"permitted-{token()}"
    capability = {"default_permissions": {"sa": [permitted]}, "quotas": {"defaults": {CPU: "1"}}}
    await paasing.config(rolemappings={"default": ["view", mapped]}, capabilities={"sa": capability})
    told = await says(paasing, "Warnings", "ClusterRoleMissing", mapped, status="True")
    assert permitted in told["message"]
    assert "view" not in told["message"]
    await make_roles(paasing.admin, [mapped, permitted])
    await plain.sweep(FUNCTION)
    await says(paasing, "Warnings", "Reconciling", status="False")
    for name in (mapped, permitted):
        await paasing.admin.delete(CLUSTER_ROLE, name)


@pytest.mark.check("p-184")
async def test_capabilities_without_a_quota_are_told(paasing: Paasing) -> None:
    """p-153, on the PaasConfig: the source's example-capability; not one that is external."""
    empty = {"quotas": {"clusterwide": False, "defaults": {}, "min": {}, "max": {}, "ratio": 0}}
    await paasing.config(capabilities={"example-capability": empty, "outside": {"external": True}})
    told = await says(paasing, "Warnings", "NoQuota", "spec.capabilities[example-capability].quotas", status="True")
    assert "outside" not in told["message"]


@pytest.mark.check("p-184")
async def test_a_clusterwide_quota_on_plain_kubernetes_is_told(paasing: Paasing) -> None:
    """p-149, on the PaasConfig: what becomes of it, and of min and ratio."""
    await paasing.config(capabilities={"tekton": WIDE})
    told = await says(paasing, "Warnings", "ClusterwideQuotaPerNamespace", "spec.capabilities[tekton]", status="True")
    assert "min and ratio are not used" in told["message"]


@pytest.mark.check("p-149")
async def test_quotas_of_capabilities_on_plain_kubernetes(paasing: Paasing) -> None:
    """Not clusterwide: within min and max; clusterwide: its own value or the default, up to max; told on the PaasConfig only."""
    narrow = {"quotas": {"defaults": {CPU: "8"}, "min": {CPU: "2"}, "max": {CPU: "16"}}}
    wide = {"quotas": {"clusterwide": True, "ratio": 0.5, "defaults": {CPU: "2"}, "min": {CPU: "3"}, "max": {CPU: "10"}}}
    await paasing.config(capabilities={"narrow": narrow, "wide": wide})
    amounts = {"": ("8", "2"), "1": ("2", "1"), "500m": ("2", "500m"), "20": ("16", "10")}
    names = {paas_name(): amount for amount in amounts}
    for name, amount in names.items():
        own = {"enabled": True, **({"quota": {CPU: amount}} if amount else {})}
        await paasing.paas(name, capabilities={"narrow": own, "wide": own})
    for name, amount in names.items():
        for capability, expected in zip(("narrow", "wide"), amounts[amount], strict=True):

            def holds(found: Object, expected: str = expected) -> bool:
                return bool(found["spec"]["hard"] == {CPU: expected})

            await paasing.until(RESOURCE_QUOTA, "paas-quota", f"{name}-{capability}", holds, what=f"{capability} {amount}")
        live = await paasing.get(PAAS, name)
        told = find_condition(live, "tenantry.dev/NamespacesWarnings") or {}
        assert "ClusterwideQuotaPerNamespace" not in str(told)
    await says(paasing, "Warnings", "ClusterwideQuotaPerNamespace", "spec.capabilities[wide]", status="True")
    for name in names:
        await paasing.leave(name)


GOT_IN: Mapping[str, Object] = {
    "spec.capabilities[a].quotas.min[limits.cpu]": {
        "capabilities": {"a": {"quotas": {"defaults": {CPU: 3}, "min": {CPU: 4}, "max": {CPU: 3}}}}
    },
    "spec.capabilities[A_b]": {"capabilities": {"A_b": {}}},
    "spec.capabilities[e].default_permissions[A!]": {"capabilities": {"e": {"default_permissions": {"A!": ["view"]}}}},
    "spec.capabilities[f].custom_fields[x]": {
        "capabilities": {"f": {"custom_fields": {"x": {"required": True, "default": "y"}}}}
    },
    "spec.capabilities[g].custom_fields[x].template": {
        "capabilities": {"g": {"custom_fields": {"x": {"template": "{{ .Paas.Spec.Groups }}"}}}}
    },
    "spec.quota_label": {"quota_label": "a b"},
    "spec.protectedLabels": {"protectedLabels": ["a b"]},
    "spec.managed_by_suffix": {"managed_by_suffix": "a b"},
    "spec.templating.groupLabels[tenantry.dev/x]": {"templating": {"groupLabels": {"tenantry.dev/x": "1"}}},
    "spec.templating.clusterQuotaLabels[x]": {"templating": {"clusterQuotaLabels": {"x": "{{ range .Paas.Labels }}"}}},
}
"""What a policy refuses, by the path that is told where it got in (2.10)."""


@pytest.mark.parametrize("path", GOT_IN)
async def test_what_got_in_is_an_error_of_the_one_in_use(paasing: Paasing, path: str) -> None:
    """2.10, as far as a function can see it: no regular expression is run, and so none of them is an error here."""
    async with got_in(paasing.admin, CONFIGURED):
        await eventually(lambda: _applied(paasing, GOT_IN[path]), within=POLICY_S, what=f"{path} gets in")
        await says(paasing, "HasErrors", "InvalidConfiguration", path, status="True")
        await says(paasing, "Active", "Reconciling", status="True")
        await paasing.config()
        await says(paasing, "HasErrors", "Reconciling", status="False")


async def _applied(paasing: Paasing, spec: Object) -> bool:
    try:
        await paasing.config(**spec)
    except RefusedError:
        return False
    return True
