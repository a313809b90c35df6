"""Owner references of scopes under OwnerReferencesPermissionEnforcement, which not every API server has on (OpenShift has)."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
from flawless import Calm
from people import token
from scoping import SCOPES, Scoping, role
from times import GARBAGE_S, LEFT_TO_MAKE_WHOLE

from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_INSTANCE_FRAMEWORK,
    SCOPE_TEMPLATE,
    SCOPE_TEMPLATE_FRAMEWORK,
    Kind,
    Object,
)

pytestmark = LEFT_TO_MAKE_WHOLE

FAMILIES = [
    pytest.param((SCOPE_TEMPLATE, SCOPE_INSTANCE), id="operators.coreos.com"),
    pytest.param((SCOPE_TEMPLATE_FRAMEWORK, SCOPE_INSTANCE_FRAMEWORK), id="operators.io.operator-framework"),
]


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane that asks who may block the deletion of an owner."""
    plugins = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
    with ControlPlane(ephemeral=True, api_server_args=[plugins]) as plane:
        yield plane


def owned_by(owner: Object) -> list[Object]:
    """The owner references of what Oria makes for a template or an instance."""
    metadata = owner["metadata"]
    identity = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return [{**identity, "controller": True, "blockOwnerDeletion": True}]


@pytest.mark.parametrize("family", FAMILIES)
async def test_owners_wait_for_what_was_made_for_them(
    scopes: Knative, scoping: Scoping, calm: Calm, family: tuple[Kind, Kind]
) -> None:
    """Roles and bindings block the deletion of their owner, also those of before, which get it at the next look in place."""
    test = f"test-{token()}"
    wide = f"wide-{test}"
    template = await scoping.template(test, role(test), kind=family[0])
    instance = await scoping.instance(test, test, kind=family[1], namespaces=["default"])
    other = await scoping.instance(wide, test, kind=family[1])
    bound = await scoping.bound_in(test, "default", "")
    await scoping.scoped(test, kind=family[1])
    await scoping.scoped(wide, kind=family[1])

    made = [(CLUSTER_ROLE, await scoping.get(CLUSTER_ROLE, test), owned_by(template))]
    made += [(ROLE_BINDING, bound["default"], owned_by(instance)), (CLUSTER_ROLE_BINDING, bound[""], owned_by(other))]
    for _, found, owners in made:
        assert found["metadata"]["ownerReferences"] == owners
    await calm(scopes)

    with scoping.asleep(scopes):
        for kind, found, _ in made:
            place = found["metadata"]["name"], found["metadata"].get("namespace", "")
            await scoping.edit(kind, *place, ("remove", "/metadata/ownerReferences/0/blockOwnerDeletion", None))
    for kind, found, owners in made:
        place = found["metadata"]["name"], found["metadata"].get("namespace", "")
        again = await scoping.until(kind, *place, lambda now, owners=owners: now["metadata"]["ownerReferences"] == owners)
        assert again["metadata"]["uid"] == found["metadata"]["uid"]
    await calm(scopes)

    for name in (test, wide):
        await scoping.admin.delete(family[1], name, propagation="Foreground")
    await scoping.bound_in(test, within=GARBAGE_S)
    for name in (test, wide):  # it is the garbage collector that lets go of who waits for what he owns
        await scoping.away(family[1], name, within=GARBAGE_S)
    await scoping.no_role(test)


async def test_the_right_is_needed_and_its_want_is_told(scopes: Knative, scoping: Scoping) -> None:
    """Without the right on finalizers nothing is bound, as a lacking right, and it is when the right is back."""
    test = f"test-{token()}"
    mine = f"tenantry-{SCOPES}"
    granted = await scoping.get(CLUSTER_ROLE, mine)
    lacking = copy.deepcopy(granted["rules"])
    lacking = [rule for rule in lacking if "scopeinstances/finalizers" not in rule["resources"]]
    assert len(lacking) == len(granted["rules"]) - 1
    await scoping.edit(CLUSTER_ROLE, mine, "", ("replace", "/rules", lacking))
    try:
        await scoping.template(test, role(test))
        await scoping.instance(test, test, namespaces=["default"])
        told = await scoping.says(
            SCOPE_TEMPLATE, test, "Templated", "TemplatingFailed", "apply knative/scope-binding/rights.yaml again"
        )
        assert "blockOwnerDeletion" in told["message"]
        assert await scoping.bound(test) == {}
    finally:
        await scoping.edit(CLUSTER_ROLE, mine, "", ("replace", "/rules", granted["rules"]))
    await scopes.sweep(SCOPES)
    await scoping.bound_in(test, "default")
    await scoping.scoped(test)
