"""Consumers of other systems: a row of the TenancyProfile, and no code (3.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from admitting import Admitting
from flux_crds import DEPENDS_ON, FLAG, TEXT, FluxKind, crd, current, fields, install_flux, reference
from flux_guarding import GuardedLocks
from flux_locking import LOCKS, TERRAFORM, named_elsewhere, source_ref
from fluxing import SOURCES
from people import token
from times import CONTROLLER_S, LEFT_TO_MAKE_WHOLE

from tenantry.api import Api
from tenantry.api.errors import Invalid
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import ACCESS_DENIED, DEFAULT, TENANCY_PROFILE
from tenantry.model.kinds import CLUSTER_ROLE, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

pytestmark = LEFT_TO_MAKE_WHOLE

SPEC = fields(sourceRef=reference(TEXT), dependsOn=DEPENDS_ON, suspend=FLAG)
ROW: Object = {
    "group": TERRAFORM.group,
    "resource": TERRAFORM.plural,
    "references": [
        {"path": "spec.sourceRef", "class": "read"},
        {"path": "spec.dependsOn[]", "class": "local", "kind": TERRAFORM.kind},
    ],
    "stop": {"field": "spec.suspend"},
}
UNSERVED: Object = {**ROW, "group": "nowhere.example.com", "resource": "things"}


@pytest.fixture(scope="module")
def flux(admin: Api, admitting: Admitting) -> GuardedLocks:
    """Owners of sources, tenants, and the platform."""
    return GuardedLocks(admin, admitting)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def system(flawlessly: Callable[..., Awaitable[Knative]], admin: Api) -> Knative:
    """Both functions, with rights on a kind of another system that an administrator gives."""
    await install_flux(admin, [*current(), crd(FluxKind(TERRAFORM.group, "Terraform", "terraforms", "v1alpha2", SPEC))])
    running = await flawlessly({}, functions=[SOURCES, LOCKS])
    rules = [
        {"apiGroups": [TERRAFORM.group], "resources": ["terraforms"], "verbs": ["get", "list", "patch"]},
        {"apiGroups": [TERRAFORM.group], "resources": ["terraforms/status"], "verbs": ["patch"]},
    ]
    labels = {"tenantry.dev/aggregate-to-consumers": "true"}
    await admin.apply(CLUSTER_ROLE, obj(CLUSTER_ROLE, "terraforms-for-tenantry", labels=labels, rules=rules))

    async def aggregated() -> bool:
        found = await admin.get(CLUSTER_ROLE, "tenantry-lock-enforcement-access-kinds")
        return found is not None and bool(found.get("rules"))

    await eventually(aggregated, within=CONTROLLER_S, what="the rights on the further kind")
    await running.drain()
    return running


@pytest.mark.check("f-83")
async def test_a_further_kind_is_denied_granted_locked_and_unlocked(flux: GuardedLocks) -> None:
    """As a Kustomization is; a row that cannot be is refused, one whose kind is not served is told, others go on."""
    for change in ({"class": "admin"}, {"path": "spec"}, {"path": "spec.source ref"}):
        bad = {**ROW, "references": [{**ROW["references"][0], **change}]}
        with pytest.raises(Invalid) as caught:
            await flux.profile(consumers=[bad])
        assert caught.value.status == 422
    await flux.enforce(consumers=[ROW, UNSERVED])

    def told(found: Object) -> Any:
        ready = find_condition(found, "Ready") or {}
        return ready.get("reason") == "ConsumerNotServed" and "things.nowhere.example.com" in ready["message"]

    await flux.until(TENANCY_PROFILE, DEFAULT, "", told)
    labels = {"team": token()}
    owner, user = await flux.home(), await flux.home(**labels)
    tenant = await flux.tenant(user)
    await flux.source(owner)
    for kind, spec in (
        ("Terraform", {"sourceRef": source_ref(owner)}),
        ("Kustomization", named_elsewhere("Kustomization", owner)),
    ):
        await flux.denied(user, spec, kind, tenant)
        await flux.grant(owner, labels, name="g")
        made = await flux.admitted(user, spec, kind, tenant)
        await flux.revoke(owner)
        await flux.locked(made)
        (event,) = await flux.events(made, ACCESS_DENIED)
        assert f"spec.sourceRef: GitRepository/{owner}/app1 is not shared" in event["message"]
        await flux.grant(owner, labels, name="g")
        assert "suspend" not in (await flux.unlocked(made))["spec"]
        await flux.revoke(owner)
        await flux.grants(owner)
    local = {"sourceRef": source_ref()}
    await flux.denied(user, {**local, "dependsOn": [{"name": "x", "namespace": owner}]}, "Terraform", tenant)
    assert (await flux.make(user, {**local, "dependsOn": [{"name": "x"}]}, "Terraform", user=tenant)).status == 201
