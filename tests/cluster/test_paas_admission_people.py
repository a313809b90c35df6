"""Who may read and write Paas, PaasNS and PaasConfig: what comes with the roles that every cluster has, and what is shipped."""

from __future__ import annotations

import pytest
from admitting import DRY, V2, Admitting, paas, paas_config, paas_ns
from paasing import paas_name
from people import may, token
from rights import cluster_role, user
from times import CONTROLLER_S

from tenantry.api import Api
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING
from tenantry.model.paas.names import GROUP_OF_KINDS
from tenantry.testing import eventually
from tenantry.testing.objects import obj

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
READING = VERBS[:3]
LEVELS = {"admin": VERBS, "edit": VERBS, "view": READING}
SHIPPED = {
    "tenantry-paas-editor": ("paas", VERBS[:-1]),
    "tenantry-paas-viewer": ("paas", READING),
    "tenantry-paas-config-editor": ("paasconfig", VERBS[:-1]),
    "tenantry-paas-config-viewer": ("paasconfig", READING),
}


@pytest.mark.check("p-172")
@pytest.mark.parametrize("level", LEVELS)
async def test_who_has_a_role_in_a_namespace_has_its_paasns(admitting: Admitting, admin: Api, level: str) -> None:
    """Edit and admin write PaasNS there, view reads them, nobody elsewhere; and none of them has a verb on Paas or PaasConfig."""
    name, other, person = paas_name(), paas_name(), f"{level}-{token()}"
    home, elsewhere = f"{name}-cicd", f"{other}-cicd"
    for namespace, owner in ((home, name), (elsewhere, other)):
        await admitting.namespace(namespace, owner)
    await admin.create(ROLE_BINDING, obj(ROLE_BINDING, person, home, roleRef=cluster_role(level), subjects=[user(person)]))

    async def allowed(resource: str, namespace: str = "") -> set[str]:
        asked = [verb for verb in VERBS if await may(admin, person, verb, resource, namespace, group=GROUP_OF_KINDS)]
        return set(asked)

    await eventually(lambda: allowed("paasns", home), lambda found: found == set(LEVELS[level]), within=CONTROLLER_S)
    for resource, namespace in (("paasns", elsewhere), ("paasns", ""), ("paas", ""), ("paas", home), ("paasconfig", "")):
        assert await allowed(resource, namespace) == set(), (resource, namespace)

    writes = level != "view"
    for namespace, owner, status in ((home, name, 201 if writes else 403), (elsewhere, other, 403)):
        for spec in ({}, {"paas": owner}):
            assert (await admitting.create(paas_ns(namespace, **spec), user=person)).status == status
    inside = await admitting.made(paas_ns(home))
    path = f"/apis/{V2}/namespaces/{home}/paasns/{inside['metadata']['name']}"
    assert (await admitting.ask("GET", path, user=person)).status == 200
    assert (await admitting.merge(inside, {"spec": {"groups": []}}, user=person)).status == (200 if writes else 403)
    assert (await admitting.ask("DELETE", path, user=person, query=DRY)).status == (200 if writes else 403)
    for body in (paas(), paas_config()):
        assert (await admitting.create(body, user=person)).status == 403
    for namespace in (home, elsewhere):
        await admin.delete(NAMESPACE, namespace)


@pytest.mark.parametrize("role", SHIPPED)
async def test_shipped_roles_are_bound_by_administrators(admitting: Admitting, admin: Api, role: str) -> None:
    """Nobody has them; whom one is bound to may do what it says, and no more (3.5)."""
    resource, verbs = SHIPPED[role]
    bound = [each for each in (await admin.list(CLUSTER_ROLE_BINDING)).items if each["roleRef"]["name"] == role]
    assert bound == []
    live = await admin.get(CLUSTER_ROLE, role)
    assert live is not None
    assert not [label for label in live["metadata"]["labels"] if "aggregate-to" in label]
    person = f"a-{token()}"
    await admin.create(
        CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, person, roleRef=cluster_role(role), subjects=[user(person)])
    )

    async def allowed(what: str) -> set[str]:
        return {verb for verb in VERBS if await may(admin, person, verb, what, group=GROUP_OF_KINDS)}

    await eventually(lambda: allowed(resource), lambda found: found == set(verbs), within=CONTROLLER_S)
    for what in {"paas", "paasns", "paasconfig", "paas/status"} - {resource}:
        assert await allowed(what) == set(), what
