"""Administrators who declare Tenants, and what is made for them."""

from __future__ import annotations

import asyncio
from typing import Any

from people import People

from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import MADE_FOR_TENANT, TENANT
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, SERVICE_ACCOUNT, Object
from tenantry.testing.objects import obj

FUNCTIONS = ("namespace-registration", "rbac-aggregation", "release-provisioning")
MADE = (NAMESPACE, SERVICE_ACCOUNT, ROLE_BINDING, GIT_REPOSITORY, KUSTOMIZATION)
FLUX_FINALIZER = "finalizers.fluxcd.io"
"""Of kustomize-controller: it takes it off when what was applied is pruned."""
SOURCE = {"url": "https://example.com/app", "branch": "main", "secretRef": {"name": "auth"}}


class Tenants(People):
    """Administrators who declare Tenants."""

    async def declare(self, name: str, *namespaces: str, **spec: Any) -> Object:
        """A Tenant."""
        return await self.admin.apply(TENANT, obj(TENANT, name, spec={"namespaces": list(namespaces), **spec}))

    async def says(self, name: str, reason: str, words: str = "", status: str = "") -> Object:
        """Wait for Ready with this reason and these words about the current generation."""

        def holds(found: Object) -> bool:
            told = find_condition(found, "Ready") or {}
            current = told.get("observedGeneration") == found["metadata"]["generation"]
            return bool(current and told["reason"] == reason and words in told["message"] and status in ("", told["status"]))

        return await self.until(TENANT, name, "", holds, what=f"Ready: {reason} {words} on {name}")

    async def ready(self, name: str) -> Object:
        """Wait until all parts are done."""
        return await self.says(name, "Reconciled", status="True")

    async def labelled(self, name: str) -> list[str]:
        """What has the label of a Tenant."""
        lists = await asyncio.gather(*(self.admin.list(kind, label_selector=f"{MADE_FOR_TENANT}={name}") for kind in MADE))
        places = (
            (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"])
            for found in lists
            for each in found.items
        )
        return sorted("/".join(part for part in place if part) for place in places)
