"""What whoever has the token of an identity may do that works on Paas: which ClusterRoles it binds, and what it deletes (3.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from accounting import IDENTITY, ROLES
from paasing import CONFIG, Paasing, make_roles, make_world, paas_name
from righting import binding
from times import POLICY_S

from scope_binding.paas.seen import Subject, shared_binding
from tenantry.api import Api
from tenantry.api.errors import AdmissionDenied
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING, Kind, Object, is_terminating
from tenantry.model.paas.names import GROUP, MANAGED_BY_PAAS, PAAS_CONFIG, PAAS_UID
from tenantry.testing import eventually
from tenantry.testing.objects import obj

CAPABILITIES = {"three": {"default_permissions": {"sa": ["r1"]}, "extra_permissions": {"sa": ["r2"]}}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stolen(identity: Callable[..., Awaitable[Path]], admin: Api) -> AsyncIterator[Api]:
    """Whoever has the token of the identity; no function is at work."""
    await make_world(admin, "os")
    await make_roles(admin, ROLES)
    async with await Api.connect(field_manager="thief", kubeconfig=await identity(IDENTITY)) as client:
        yield client


def _binding(role: str, *accounts: str) -> Object:
    return shared_binding(role, [Subject("fence-argocd", each) for each in accounts])


async def _refused(stolen: Api, body: Object, words: str, *, create: bool = True, kind: Kind = CLUSTER_ROLE_BINDING) -> None:
    """Wait until a write is refused with these words: a policy hears of its param after a moment."""

    async def attempt() -> str:
        try:
            if create:
                await stolen.create(kind, body, dry_run=True)
            else:
                await stolen.apply(kind, body, dry_run=True)
        except AdmissionDenied as error:
            return error.message
        return ""

    await eventually(attempt, lambda said: words in said, within=POLICY_S, what=f"refused: {words}")


async def _allowed(stolen: Api, body: Object, kind: Kind = CLUSTER_ROLE_BINDING) -> None:
    async def attempt() -> bool:
        try:
            await stolen.apply(kind, body)
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


@pytest.mark.check("p-168")
async def test_each_identity_is_refused_what_its_fence_leaves_out(
    stolen: Api, identity: Callable[..., Awaitable[Path]], paasing: Paasing, admin: Api
) -> None:
    """A binding outside of the mapping, a Group without mark, another's namespace, and a role that no capability has; like what
    it may do but for that one thing, and refused by its own fence."""
    name = paas_name()
    await paasing.config(capabilities=CAPABILITIES)
    marks: Object = {"labels": {MANAGED_BY_PAAS: name}, "annotations": {PAAS_UID: "uid"}}
    for suffix, metadata in (("ours", marks), ("other", {"labels": marks["labels"]})):
        await admin.create(NAMESPACE, obj(NAMESPACE, f"{name}-{suffix}", metadata=metadata))
    place = f"{name}-ours"
    async with AsyncExitStack() as stack:

        async def of(account: str) -> Api:
            kubeconfig = await identity(account)
            return await stack.enter_async_context(await Api.connect(field_manager="thief", kubeconfig=kubeconfig))

        binds, registers = await of("rbac-aggregation-paas"), await of("namespace-registration")
        await _allowed(binds, binding("paas-view", place, "view", f"{name}-us", metadata=marks), ROLE_BINDING)
        unmapped = binding("paas-cluster-reader", place, "cluster-reader", f"{name}-us", metadata=marks)
        assert "cluster-reader" not in str(CONFIG["rolemappings"])
        await _refused(binds, unmapped, "and cluster-reader is in none", kind=ROLE_BINDING)
        await _allowed(binds, obj(GROUP, f"{name}-us", metadata=marks, users=["me"]), GROUP)
        unmarked = obj(GROUP, f"{name}-them", labels=marks["labels"], users=["me"])
        await _refused(binds, unmarked, "carries the mark of a Paas", kind=GROUP)

        with pytest.raises(AdmissionDenied, match="deletes only namespaces of a Paas"):
            await registers.delete(NAMESPACE, f"{name}-other")
        assert not is_terminating(await admin.get(NAMESPACE, f"{name}-other"))
        await registers.delete(NAMESPACE, place)
        assert is_terminating(await admin.get(NAMESPACE, place))

        await _allowed(stolen, _binding("r1", "sa"))
        await _refused(stolen, _binding("view", "sa"), "and view is none")
