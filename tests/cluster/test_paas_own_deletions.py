"""What a function has deleted itself, and found gone since, comes back as an event: that needs no run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest_asyncio
from flawless import Calm
from paasing import Paasing, paas_name
from people import post
from righting import replaced, righting

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.event import Event
from tenantry.model.kinds import ROLE_BINDING, Object
from tenantry.serving.cloudevents import encode_binary
from tenantry.testing.proxy import FaultProxy

FUNCTION, SERVICE = "rbac-aggregation", "rbac-aggregation-paas"
GROUPS = {"us": {"users": ["me"], "roles": ["admin", "view"]}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(proxy: FaultProxy, flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Namespaces and rights, with OpenShift's kinds."""
    return await righting(flawlessly, admin, "os", through=proxy)


async def asked_for_the_end_of(binding: Object, system: Knative, proxy: FaultProxy) -> set[tuple[str, str]]:
    """Verbs and resources of the requests that the function makes when it hears that a RoleBinding was deleted."""
    event = Event(id="1", source="/test", type="dev.knative.apiserver.resource.delete", data=binding)
    since = proxy.recording.mark()
    assert (await post(system.functions[SERVICE].url, *encode_binary(event)))[0] == 204
    return {(each.verb, each.resource) for each in proxy.recording.between(since, function=f"tenantry-{FUNCTION}")}


async def test_an_own_deletion_that_comes_back_has_no_run(
    system: Knative, proxy: FaultProxy, paasing: Paasing, calm: Calm
) -> None:
    """A role is withdrawn, and its binding deleted.  The end of another binding that was called so is looked at."""
    name = paas_name()
    await paasing.paas(name, groups=GROUPS, namespaces={"a": {}})
    place, view = f"{name}-a", {"paas-view": [f"{name}-us"]}
    withdrawn = "paas-admin"
    await paasing.bound(place, {**view, withdrawn: [f"{name}-us"], **roles_beside(name)})
    await calm(system)
    binding = await paasing.get(ROLE_BINDING, withdrawn, place)
    await replaced(paasing, name, requestor="team", groups={"us": {"users": ["me"], "roles": ["view"]}}, namespaces={"a": {}})
    await paasing.bound(place, view)
    await calm(system)

    assert await asked_for_the_end_of(binding, system, proxy) <= {("get", "namespaces"), ("get", "paas")}
    other = {**binding, "metadata": {**binding["metadata"], "uid": "00000000-0000-4000-8000-000000000000"}}
    assert ("list", "rolebindings") in await asked_for_the_end_of(other, system, proxy)
    await paasing.bound(place, view)


def roles_beside(name: str) -> dict[str, list[str]]:
    """What the mapping ``admin`` gives besides."""
    return {each: [f"{name}-us"] for each in ("paas-alert-routing-edit", "paas-monitoring-edit")}
