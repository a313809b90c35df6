"""Paas in tests: the worlds of the acceptance checks, the configuration and the example, and what follows from a Paas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from people import People, token
from times import PAAS_S, SERVED_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE_BINDING,
    Kind,
    Object,
    is_terminating,
    labels_of,
)
from tenantry.model.paas.names import (
    APPLICATION_SET,
    ARGO_CD,
    CLUSTER_RESOURCE_QUOTA,
    GROUP,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    PAAS_NS,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

WORLDS: Mapping[str, tuple[Kind, ...]] = {
    "plain": (),
    "os": (GROUP, CLUSTER_RESOURCE_QUOTA),
    "argo": (GROUP, CLUSTER_RESOURCE_QUOTA, APPLICATION_SET, ARGO_CD),
}
"""The kinds of other systems that a world has."""

CONFIG_NAME = "opr-paas-config"
ROLES = ("alert-routing-edit", "monitoring-edit", "cluster-reader")
CONFIG: dict[str, Any] = {
    "rolemappings": {
        "default": ["view"],
        "view": ["view"],
        "edit": ["edit", "alert-routing-edit", "monitoring-edit"],
        "admin": ["admin", "alert-routing-edit", "monitoring-edit"],
    },
    "capabilities": {
        "argocd": {
            "default_permissions": {"argo-sa": ["monitoring-edit"]},
            "extra_permissions": {"argo-sa": ["cluster-reader"]},
            "quotas": {"defaults": {"limits.cpu": "8"}},
        }
    },
}
"""The PaasConfig of the acceptance checks."""


def example() -> dict[str, Any]:
    """The spec of ``my-paas`` of the source document, in the shape of v1alpha2."""
    return {
        "requestor": "my-team",
        "groups": {
            "us": {"users": ["me", "you"], "roles": ["admin", "edit", "view"]},
            "them": {"users": ["friend"], "roles": ["view"]},
            "others": {"query": "CN=others,..", "users": ["friend"]},
        },
        "capabilities": {"argocd": {"enabled": True}},
        "namespaces": {"cicd": {}, "test": {}, "prod": {}},
        "quota": {"limits.cpu": "40"},
    }


def crd_of(kind: Kind) -> Object:
    """A CRD that stands for a kind of another system: any fields."""
    group, _, version = kind.api_version.rpartition("/")
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": free}}
    if kind == CLUSTER_RESOURCE_QUOTA:
        served["subresources"] = {"status": {}}
    spec = {
        "group": group,
        "names": {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "versions": [served],
    }
    return obj(CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{group}", spec=spec)


async def make_world(admin: Api, world: str) -> None:
    """Install the kinds of a world, and wait until they are served."""
    for kind in WORLDS[world]:
        await admin.apply(CUSTOM_RESOURCE_DEFINITION, crd_of(kind))
    for kind in WORLDS[world]:

        async def served(kind: Kind = kind) -> bool:
            return await admin.served(kind.api_version, kind.kind, again=True) is not None

        await eventually(served, within=SERVED_S, what=f"{kind.kind} served")


async def make_roles(admin: Api, roles: Sequence[str] = ROLES) -> None:
    """The ClusterRoles that the configuration names and Kubernetes does not have."""
    for name in roles:
        if await admin.get(CLUSTER_ROLE, name) is None:
            await admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=[]))


async def at_work(
    start: Callable[..., Awaitable[Knative]], admin: Api, world: str, functions: Sequence[str], **options: Any
) -> Knative:
    """Functions that have a part in Paas, in a world, under the configuration of the checks."""
    await make_world(admin, world)
    await make_roles(admin)
    running = await start({}, functions=functions, **options)
    await Paasing(admin).config()
    return running


def paas_name() -> str:
    """A name that no other test uses, and that begins no other's."""
    return f"p{token()}"


class Paasing(People):
    """Acts as the administrator of a PaasConfig and as the authors of Paas, and waits for what follows."""

    def __init__(self, admin: Api, eventually_s: float = PAAS_S) -> None:
        super().__init__(admin, eventually_s)

    async def config(self, **changes: Any) -> Object:
        """Declare the PaasConfig of the checks, with other values in some fields."""
        return await self.admin.apply(PAAS_CONFIG, obj(PAAS_CONFIG, CONFIG_NAME, spec={**CONFIG, **changes}))

    async def paas(self, name: str, *, labels: Mapping[str, str] | None = None, **spec: Any) -> Object:
        """Declare a Paas."""
        spec.setdefault("quota", {})
        return await self.admin.apply(PAAS, obj(PAAS, name, labels=dict(labels or {}), spec=spec))

    async def paas_ns(self, namespace: str, name: str, **spec: Any) -> Object:
        """Declare a PaasNS."""
        return await self.admin.apply(PAAS_NS, obj(PAAS_NS, name, namespace, spec=spec))

    async def namespaces(self, paas: str) -> dict[str, Object]:
        """The namespaces with the label of a Paas, but for those that are on their way out."""
        found = (await self.admin.list(NAMESPACE, label_selector=f"{MANAGED_BY_PAAS}={paas}")).items
        return {each["metadata"]["name"]: each for each in found if not is_terminating(each)}

    async def has_namespaces(self, paas: str, *suffixes: str) -> dict[str, Object]:
        """Wait until a Paas has exactly these namespaces."""
        wanted = {f"{paas}-{suffix}" for suffix in suffixes}

        async def check() -> dict[str, Object]:
            found = await self.namespaces(paas)
            return found if set(found) == wanted else {}

        if not wanted:
            await eventually(lambda: self.namespaces(paas), lambda found: not found, within=self.eventually_s)
            return {}
        return await eventually(check, within=self.eventually_s, what=f"namespaces {sorted(wanted)}")

    async def bindings(self, namespace: str) -> dict[str, list[str]]:
        """Subjects of the RoleBindings of ours in a namespace, by the binding's name."""
        found = (await self.admin.list(ROLE_BINDING, namespace, label_selector=MANAGED_BY_PAAS)).items
        return {each["metadata"]["name"]: [subject["name"] for subject in each.get("subjects") or ()] for each in found}

    async def bound(self, namespace: str, wanted: Mapping[str, Sequence[str]]) -> None:
        """Wait until the RoleBindings of ours in a namespace are exactly these."""
        expected = {name: list(subjects) for name, subjects in wanted.items()}
        await eventually(
            lambda: self.bindings(namespace),
            lambda found: found == expected,
            within=self.eventually_s,
            what=f"bindings in {namespace} are {expected}",
        )

    async def users(self, group: str) -> list[str] | None:
        """The users of a Group object; None where there is none."""
        found = await self.admin.get(GROUP, group)
        return None if found is None else list(found.get("users") or ())

    async def says(
        self, name: str, type_: str, reason: str, words: str = "", *, status: str = "", kind: Kind = PAAS, namespace: str = ""
    ) -> Object:
        """Wait for a condition with this reason, and these words, about the current generation; returns it."""

        def holds(found: Object) -> bool:
            told = find_condition(found, type_) or {}
            current = told.get("observedGeneration") == found["metadata"]["generation"]
            return bool(current and told["reason"] == reason and words in told["message"] and status in ("", told["status"]))

        found = await self.until(kind, name, namespace, holds, what=f"{type_}: {reason} {words} on {name}")
        return find_condition(found, type_) or {}

    async def ready(self, name: str) -> Object:
        """Wait until a Paas is Ready for its current generation."""
        return await self.says(name, "Ready", "Reconciling", status="True")

    async def leave(self, name: str) -> None:
        """Delete a Paas and wait until it is gone."""
        await self.admin.delete(PAAS, name)
        await self.away(PAAS, name)


def managed(found: Object | None, paas: str) -> bool:
    """Whether an object has the label of a Paas."""
    return labels_of(found).get(MANAGED_BY_PAAS) == paas


async def together(*waits: Any) -> None:
    """Wait for several things at the same time."""
    await asyncio.gather(*waits)
