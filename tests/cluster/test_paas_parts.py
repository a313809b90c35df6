"""Several functions at one Paas: what it waits for, and what works without a PaasConfig or with two of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio
from configuring import second
from paasing import CONFIG, CONFIG_NAME, Paasing, make_roles, paas_name
from people import FUNCTION, token

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import is_terminating
from tenantry.model.paas.names import PAAS, PAAS_CONFIG

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
