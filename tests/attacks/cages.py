"""A cluster with every fence in it, the scenes of all thieves, and the thieves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import fence_access
import fence_aggregation
import fence_capabilities
import fence_lock
import fence_registration
import fence_release
import fence_rights
import fence_scope
import fence_sources
import fence_tenants
from flux_crds import install_flux
from paasing import make_world
from thieves import Ask, ask
from times import CONTROLLER_S

from tenantry.api import Api
from tenantry.api.errors import AlreadyExists, ApiError, Forbidden
from tenantry.local.followed import stand_in
from tenantry.local.identity import Identity
from tenantry.local.install import until_served
from tenantry.model.config import Config
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_SERVICE_VERSION, CUSTOM_RESOURCE_DEFINITION, Kind, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

THEFTS = (
    fence_registration.THEFT,
    fence_aggregation.THEFT,
    fence_rights.THEFT,
    *fence_release.THEFTS,
    *fence_scope.THEFTS,
    *fence_capabilities.THEFTS,
    fence_sources.THEFT,
    *fence_tenants.THEFTS,
    fence_access.THEFT,
    fence_lock.THEFT,
)
LOCK_SOURCE = "tenantry-lock-source"
SOURCES = (
    *(f"tenantry-source-{theft.function}" for theft in THEFTS[:-1] if theft.function != "release-provisioning-helm-jobs"),
    LOCK_SOURCE,
)
CONFIG: dict[str, Any] = {"global": {"cattle": {"systemProjectId": "p-system"}}}
"""Releases in namespaces of their own."""
_ALL = ["get", "list", "watch", "create", "patch", "delete"]
LOCKABLE = {
    "": ["configmaps", "secrets"],
    "apps": ["deployments"],
    "rbac.authorization.k8s.io": ["rolebindings", "clusterroles", "clusterrolebindings"],
}
CONSUMERS = {"kustomize.toolkit.fluxcd.io": ["kustomizations"]}


class Cages:
    """Thieves by the name of the ServiceAccount whose token they have."""

    def __init__(self, admin: Api, kubeconfig: Path, folder: Path) -> None:
        self.admin = admin
        self.thieves: dict[str, Api] = {}
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Cages:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def set_up(self, install: Callable[[str, Config], Awaitable[Path]]) -> None:
        """Install every function, make every scene, and steal every token."""
        for theft in THEFTS:
            await install(theft.function, Config.model_validate(CONFIG))
        await self.admin.apply(CUSTOM_RESOURCE_DEFINITION, stand_in(CLUSTER_SERVICE_VERSION))
        await until_served(self.admin, stand_in(CLUSTER_SERVICE_VERSION))
        await make_world(self.admin, "argo")
        await install_flux(self.admin)
        await self._open_kinds()
        for theft in THEFTS:
            for kind, body in theft.scene:
                await self._make(kind, body)
        for name in (*(theft.function for theft in THEFTS), *SOURCES):
            self.thieves[name] = await self.steal(name)

    async def _open_kinds(self) -> None:
        """Administrators let lock-enforcement write kinds and consumers, and by mistake its source too."""
        opened = (
            ("lock-enforcement", "aggregate-to-locks", LOCKABLE),
            ("lock-source", "aggregate-to-lock-source", LOCKABLE),
            ("lock-enforcement-access", "aggregate-to-consumers", CONSUMERS),
        )
        for name, to, groups in opened:
            rules = [{"apiGroups": [group], "resources": plurals, "verbs": _ALL} for group, plurals in groups.items()]
            body = obj(CLUSTER_ROLE, f"fence-kinds-{name}", labels={f"tenantry.dev/{to}": "true"}, rules=rules)
            await self.admin.create(CLUSTER_ROLE, body)

        async def aggregated() -> bool:
            found = [await self.admin.get(CLUSTER_ROLE, f"tenantry-{name}-kinds") for name, _, _ in opened]
            return all(role is not None and role.get("rules") for role in found)

        await eventually(aggregated, within=CONTROLLER_S, what="the kinds that may be locked")

    async def _make(self, kind: Kind, body: Object) -> None:
        async def made() -> bool:
            with suppress(AlreadyExists):
                try:
                    await self.admin.create(kind, body)
                except Forbidden:
                    return False  # a pod before the default account of its namespace
            return True

        name, namespace = body["metadata"]["name"], body["metadata"].get("namespace", "")
        await eventually(made, within=CONTROLLER_S, what=f"{kind.kind} {name}")
        if "status" in body:
            status = {"op": "add", "path": "/status", "value": body["status"]}
            await self.admin.json_patch(kind, name, namespace, [status], subresource="status")

    async def steal(self, account: str) -> Api:
        """A client with the token of a ServiceAccount; nothing in it says that it would be the function's."""
        identity = Identity(self.admin, account, self._folder, self._kubeconfig, lambda _: None)
        path = await identity.open()
        self._stack.push_async_callback(identity.close)
        return await self._stack.enter_async_context(await Api.connect(field_manager="thief", kubeconfig=path))


async def outcome(thief: Api, what: Ask) -> ApiError | None:
    """What the API server said to a request; None when it allowed it."""
    try:
        await ask(thief, what)
    except ApiError as error:
        return error
    return None
