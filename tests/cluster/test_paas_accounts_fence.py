"""Which ClusterRoles scope-binding may bind for Paas, by its own identity: those of the PaasConfig (our part of p-168, p-169)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from accounting import IDENTITY, ROLES
from paasing import Paasing, make_roles
from times import POLICY_S

from scope_binding.paas.seen import Subject, shared_binding
from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, Object
from tenantry.model.paas.names import PAAS_CONFIG
from tenantry.testing import eventually

CAPABILITIES = {"three": {"default_permissions": {"sa": ["r1"]}, "extra_permissions": {"sa": ["r2"]}}}


@pytest.fixture(scope="module")
def paasing(admin: Api) -> Paasing:
    """The administrator of the PaasConfig."""
    return Paasing(admin)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stolen(identity: Callable[..., Awaitable[Path]], admin: Api) -> AsyncIterator[Api]:
    """Whoever has the token of the identity; no function is at work."""
    await make_roles(admin, ROLES)
    async with await Api.connect(field_manager="thief", kubeconfig=await identity(IDENTITY)) as client:
        yield client


def _binding(role: str, *accounts: str) -> Object:
    return shared_binding(role, [Subject("fence-argocd", each) for each in accounts])


async def _refused(stolen: Api, body: Object, words: str, *, create: bool = True) -> None:
    """Wait until a write is refused with these words: a policy hears of its param after a moment."""

    async def attempt() -> str:
        try:
            if create:
                await stolen.create(CLUSTER_ROLE_BINDING, body, dry_run=True)
            else:
                await stolen.apply(CLUSTER_ROLE_BINDING, body, dry_run=True)
        except AdmissionDenied as error:
            return error.message
        return ""

    await eventually(attempt, lambda said: words in said, within=POLICY_S, what=f"refused: {words}")


async def _allowed(stolen: Api, body: Object) -> None:
    async def attempt() -> bool:
        try:
            await stolen.apply(CLUSTER_ROLE_BINDING, body)
        except AdmissionDenied:
            return False
        return True

    await eventually(attempt, within=POLICY_S, what=f"{body['metadata']['name']} is allowed")


async def test_roles_are_those_of_capabilities(stolen: Api, paasing: Paasing, admin: Api) -> None:
    """Without a PaasConfig none; one that leaves it can only be taken from people, whatever the PaasConfig says then."""
    await _refused(stolen, _binding("r1", "sa"), "no params found")
    await paasing.config(capabilities=CAPABILITIES)
    await _allowed(stolen, _binding("r1", "sa", "more"))
    await _allowed(stolen, _binding("r2", "sa"))
    for role in ("r3", "view", "cluster-admin"):
        await _refused(stolen, _binding(role, "sa"), f"and {role} is none")

    await paasing.config(capabilities={"three": {"default_permissions": {"sa": ["r2"]}}})
    await _refused(stolen, _binding("r1", "sa", "more", "most"), "and r1 is none", create=False)
    await stolen.apply(CLUSTER_ROLE_BINDING, _binding("r1", "sa"))
    (config,) = (await admin.list(PAAS_CONFIG)).items
    await admin.delete(PAAS_CONFIG, config["metadata"]["name"])
    await _refused(stolen, _binding("r3", "sa"), "no params found")
    await stolen.apply(CLUSTER_ROLE_BINDING, {**_binding("r1"), "subjects": []})
    await stolen.delete(CLUSTER_ROLE_BINDING, "paas-r1")
    await stolen.delete(CLUSTER_ROLE_BINDING, "paas-r2")
