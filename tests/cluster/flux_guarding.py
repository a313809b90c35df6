"""Consumers of Flux where admission policies judge what is written: tenants, the platform, and controllers."""

from __future__ import annotations

from typing import Any

from admitting import DRY, JSON, MERGE, Admitting, Answer
from flux_locking import KUSTOMIZATION, FluxLocks, kind_of, named_elsewhere
from people import token
from times import POLICY_S

from tenantry.api import Api
from tenantry.cli.profile.applied import apply_profile
from tenantry.local.policies import until_in_force
from tenantry.model.flux.names import ACCESS_INDEX, LOCKED, TENANCY_PROFILE
from tenantry.model.flux.policies import GENERATED
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING, SERVICE_ACCOUNT, Object, annotations_of
from tenantry.testing import eventually
from tenantry.testing.objects import obj

EXPORTED = {each.kind: each for each in (ACCESS_INDEX, CLUSTER_ROLE, CLUSTER_ROLE_BINDING, TENANCY_PROFILE, *GENERATED)}
"""The kinds of what `tenantry profile export` prints for a cluster."""
CONTROLLER = "system:serviceaccount:flux-system:kustomize-controller"


class GuardedLocks(FluxLocks):
    """Tenants, the platform and Flux' controllers, where policies judge what they write."""

    def __init__(self, admin: Api, admitting: Admitting) -> None:
        super().__init__(admin)
        self.admitting = admitting

    async def enforce(self, **spec: Any) -> None:
        """Declare a profile, apply its policies, and wait until they count, the mutations, too."""
        profile = Profile.of(await self.profile(**spec))
        await apply_profile(self.admin, profile, prune=True)
        await until_in_force(self.admin)
        place = await self.home()
        judges = profile.is_multi_tenant and not profile.is_audit
        quarantines = judges and profile.denial(mutates=True) == "Quarantine"
        status = 201 if quarantines or not judges else 403

        async def as_wanted() -> bool:
            answer = await self.make(place, named_elsewhere("Kustomization", "nowhere"), dry=True)
            if answer.status != status or (LOCKED in annotations_of(answer.body)) != quarantines:
                return False
            if judges:
                return True
            without_account = await self.make(place, named_elsewhere("HelmRelease", "nowhere"), "HelmRelease", dry=True)
            return "serviceAccountName" not in without_account.body["spec"]

        await eventually(as_wanted, within=POLICY_S, what="policies and mutations in force")

    async def tenant(self, namespace: str) -> str:
        """The account of a namespace that may do everything in it, as a user."""
        await self.admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, "flux", namespace))
        subject = {"kind": "ServiceAccount", "name": "flux", "namespace": namespace}
        role = {"apiGroup": ROLE_BINDING.group, "kind": "ClusterRole", "name": "cluster-admin"}
        await self.admin.apply(ROLE_BINDING, obj(ROLE_BINDING, "flux", namespace, subjects=[subject], roleRef=role))
        user = f"system:serviceaccount:{namespace}:flux"
        probe = KUSTOMIZATION.path(namespace)
        await eventually(lambda: self._may(user, probe), within=POLICY_S, what=f"{user} may read")
        return user

    async def controller(self) -> str:
        """kustomize-controller, a cluster administrator as Flux installs it."""
        subject = {"apiGroup": ROLE_BINDING.group, "kind": "User", "name": CONTROLLER}
        role = {"apiGroup": ROLE_BINDING.group, "kind": "ClusterRole", "name": "cluster-admin"}
        body = obj(CLUSTER_ROLE_BINDING, "kustomize-controller", subjects=[subject], roleRef=role)
        await self.admin.apply(CLUSTER_ROLE_BINDING, body)
        await eventually(lambda: self._may(CONTROLLER, KUSTOMIZATION.path()), within=POLICY_S, what="the controller may read")
        return CONTROLLER

    async def _may(self, user: str, path: str) -> bool:
        return (await self.admitting.ask("GET", path, user=user)).status == 200

    async def make(
        self, namespace: str, spec: Object, kind: str = "Kustomization", *, user: str = "", dry: bool = False, **metadata: Any
    ) -> Answer:
        """A new consumer."""
        body = obj(kind_of(kind), f"c-{token()}", namespace, metadata=metadata, spec=spec)
        path = kind_of(kind).path(namespace)
        return await self.admitting.ask("POST", path, body, user=user, content=JSON, query=DRY if dry else {})

    async def merge(self, consumer: Object, change: Object, *, user: str = "", dry: bool = True) -> Answer:
        """A change of a consumer."""
        metadata = consumer["metadata"]
        path = kind_of(consumer["kind"]).path(metadata["namespace"], metadata["name"])
        return await self.admitting.ask("PATCH", path, change, user=user, content=MERGE, query=DRY if dry else {})

    async def denied(self, namespace: str, spec: Object, kind: str, user: str) -> None:
        """Wait until a new consumer is refused."""

        async def refused() -> bool:
            return (await self.make(namespace, spec, kind, user=user, dry=True)).status == 403

        await eventually(refused, within=POLICY_S, what="denied")

    async def admitted(self, namespace: str, spec: Object, kind: str, user: str) -> Object:
        """Wait until a new consumer is admitted; returns it."""

        async def stored() -> Object:
            answer = await self.make(namespace, spec, kind, user=user)
            return answer.body if answer.status == 201 else {}

        return await eventually(stored, within=self.eventually_s, what="admitted")
