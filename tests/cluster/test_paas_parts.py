"""Several functions at one Paas: what it waits for, and what works without a PaasConfig or with two of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from admitting import MERGE, Admitting
from configuring import second
from paasing import CONFIG, CONFIG_NAME, Paasing, example, make_roles, paas_name, together
from people import FUNCTION, may, token
from righting import example_bindings
from rights import account, cluster_role
from times import CONTROLLER_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import RESOURCE_QUOTA, ROLE_BINDING, Object, is_terminating
from tenantry.model.paas.names import MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, PAAS_UID, QUOTA_NAME
from tenantry.testing import eventually
from tenantry.testing.objects import obj

APP = {"applicationset": "apps", "quotas": {"defaults": {"limits.cpu": "1"}}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(admin: Api, flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """All functions of Paas on plain Kubernetes, but for release-provisioning."""
    started = await flawlessly({}, functions=[FUNCTION, "rbac-aggregation", "scope-binding"])
    await make_roles(admin)
    await Paasing(admin).config(capabilities={**CONFIG["capabilities"], "app": APP})
    return started


@pytest.fixture
def paasing(running: Knative, admin: Api) -> Paasing:
    """The administrator and the authors."""
    del running
    return Paasing(admin)


@pytest.mark.check("p-163")
async def test_a_paas_waits_only_for_the_parts_that_it_needs(paasing: Paasing) -> None:
    """Without release-provisioning: ready where no capability has an ApplicationSet, else it says what it waits for."""
    plain, handed = paas_name(), paas_name()
    await paasing.paas(plain, capabilities={"argocd": {"enabled": True}})
    await paasing.paas(handed, capabilities={"app": {"enabled": True}})
    await paasing.ready(plain)
    told = await paasing.says(handed, "Ready", "Reconciling", "HandOver", status="Unknown")
    assert "ServiceAccounts" not in told["message"]
    await paasing.leave(plain)
    await paasing.leave(handed)


@pytest.mark.check("p-59")
async def test_the_example_where_no_groups_and_no_quotas_of_many_namespaces_are(paasing: Paasing) -> None:
    """Names are bound all the same, and each namespace has its share; that nobody makes the users members is told."""
    name = paas_name()
    await paasing.paas(name, **example())
    shares = {"argocd": "8", "cicd": "13334m", "prod": "13333m", "test": "13333m"}
    await together(
        *(paasing.bound(f"{name}-{each}", example_bindings(name)) for each in shares),
        *(_limited(paasing, f"{name}-{each}", amount) for each, amount in shares.items()),
    )
    await paasing.ready(name)
    told = await paasing.says(name, "Warnings", "QueryAndUsers", "'others'", status="True")
    assert "them, us" in told["message"]
    alone = example()
    del alone["groups"]["others"]["users"]
    await paasing.paas(name, **alone)
    await paasing.says(name, "Warnings", "GroupAPIMissing", "them, us", status="True")
    await paasing.ready(name)
    await paasing.leave(name)


async def _limited(paasing: Paasing, namespace: str, amount: str) -> Object:
    """Wait until a namespace has a quota of exactly this."""

    def holds(found: Object) -> bool:
        return bool(found["spec"].get("hard") == {"limits.cpu": amount})

    return await paasing.until(RESOURCE_QUOTA, QUOTA_NAME, namespace, holds, what=f"{namespace} has {amount}")


@pytest.mark.check("p-151")
async def test_a_tenant_gets_no_quota_of_his_own_choice(paasing: Paasing, admitting: Admitting) -> None:
    """Who has everything in a namespace may change and delete paas-quota, and it is back; our marks on it he cannot take off."""
    name = paas_name()
    home, path = f"{name}-one", RESOURCE_QUOTA.path(f"{name}-one", QUOTA_NAME)
    await paasing.paas(name, namespaces={"one": {}, "two": {}}, quota={"limits.cpu": "4"})
    await _limited(paasing, home, "2")
    subject = account("tenant", home)
    tenant = f"system:serviceaccount:{home}:tenant"
    mine = obj(ROLE_BINDING, "tenant", home, roleRef=cluster_role("cluster-admin"), subjects=[subject])
    await paasing.admin.create(ROLE_BINDING, mine)
    await eventually(lambda: may(paasing.admin, tenant, "delete", "resourcequotas", home), within=CONTROLLER_S)

    for change in ({"spec": {"hard": {"limits.cpu": "400"}}}, {"spec": {"hard": None}}, {"spec": {"hard": {"pods": "1"}}}):
        answer = await admitting.ask("PATCH", path, change, user=tenant, content=MERGE)
        assert answer.status == 200, answer
        await _limited(paasing, home, "2")
    for field, key in (("labels", MANAGED_BY_PAAS), ("annotations", PAAS_UID)):
        change = {"metadata": {field: {key: None}}}
        assert (await admitting.ask("PATCH", path, change, user=tenant, content=MERGE)).status >= 400
    before = await _limited(paasing, home, "2")
    answer = await admitting.ask("DELETE", path, user=tenant)
    assert answer.status == 200, answer
    after = await _limited(paasing, home, "2")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    await paasing.ready(name)
    await paasing.leave(name)


@pytest.mark.check("p-74")
async def test_without_a_configuration_a_deleted_paas_goes_and_with_two_one_counts(paasing: Paasing) -> None:
    """A Paas that is deleted without a PaasConfig does not stay; with two of them one is Active, and Paas are worked on."""
    first, later = paas_name(), paas_name()
    await paasing.paas(first, namespaces={"a": {}}, groups={"us": {"users": ["me"]}}, capabilities={"argocd": {"enabled": True}})
    await paasing.ready(first)
    name = f"zz-{token()}"
    await second(paasing, name)
    try:
        await paasing.says(name, "Active", "NotInUse", CONFIG_NAME, kind=PAAS_CONFIG, status="False")
        found = (await paasing.admin.list(PAAS_CONFIG)).items
        active = [each["metadata"]["name"] for each in found if (find_condition(each, "Active") or {}).get("status") == "True"]
        assert active == [CONFIG_NAME]
        await paasing.paas(later, namespaces={"b": {}}, groups={"us": {"users": ["me"]}})
        await paasing.ready(later)
        await paasing.admin.delete(PAAS_CONFIG, name)
        await paasing.admin.delete(PAAS_CONFIG, CONFIG_NAME)
        for each in (name, CONFIG_NAME):
            await paasing.away(PAAS_CONFIG, each)
        await paasing.leave(first)
        await paasing.leave(later)
        assert not [each for each in (await paasing.admin.list(PAAS)).items if is_terminating(each)]
    finally:
        await paasing.config(capabilities={**CONFIG["capabilities"], "app": APP})
