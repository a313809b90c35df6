"""Permissions of Paas' service accounts in tests: who is bound to a ClusterRole, now and at every moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from paasing import CONFIG, Paasing, make_roles, make_world
from watching import history

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTIONS = ("namespace-registration", "rbac-aggregation", "scope-binding")
IDENTITY = "scope-binding-paas"
PART = "tenantry.dev/ServiceAccounts"
ROLES = ("r-extra", "r-foreign", "r1", "r2", "r3")
CAPABILITIES: Mapping[str, Any] = {
    **CONFIG["capabilities"],
    "extra": {"extra_permissions": {"extra-sa": ["r-extra"]}},
    "foreign": {"default_permissions": {"sa": ["r-foreign"]}},
    "noperm": {},
    "three": {"default_permissions": {"argo-sa": ["r1", "r2"]}, "extra_permissions": {"argo-sa": ["r3"]}},
}
"""Those of the checks, and one for each of what is not to meet in one ClusterRoleBinding."""


class Accounting(Paasing):
    """Looks at the bindings of service accounts."""

    async def config(self, **changes: Any) -> Object:
        """Declare the PaasConfig of these tests, with other values in some fields."""
        return await super().config(**{"capabilities": CAPABILITIES, **changes})

    async def subjects(self, role: str) -> list[str]:
        """Who stands in the ClusterRoleBinding of a role."""
        return names(await self.admin.get(CLUSTER_ROLE_BINDING, f"paas-{role}"))

    async def bound_to(self, role: str, paas: str, *accounts: str) -> None:
        """Wait until exactly these accounts, as ``<capability>/<name>``, of a Paas stand there."""
        wanted = sorted(f"{paas}-{each}" for each in accounts)

        def own(found: list[str]) -> list[str]:
            return [each for each in found if each.startswith(f"{paas}-")]

        what = f"of {paas} in paas-{role}: {wanted}"
        await eventually(lambda: self.subjects(role), lambda found: own(found) == wanted, within=self.eventually_s, what=what)

    async def unbound(self, role: str) -> None:
        """Wait until a role has no ClusterRoleBinding."""
        await self.away(CLUSTER_ROLE_BINDING, f"paas-{role}")

    async def version(self, kind: Any = CLUSTER_ROLE_BINDING) -> str:
        """From here on `history` tells."""
        return (await self.admin.list(kind)).resource_version

    async def always_bound(self, role: str, subject: str, since: str) -> None:
        """At no moment since then was somebody missing in the ClusterRoleBinding of a role."""
        told = [each for each in await history(self.admin, CLUSTER_ROLE_BINDING, since) if is_of(each[1], role)]
        assert told, "nothing was written, so this shows nothing"
        shown = [(change, names(found)) for change, found in told]
        assert all(change == "MODIFIED" and subject in listed for change, listed in shown), shown


def names(binding: Object | None) -> list[str]:
    """The ServiceAccounts of a binding, as ``<namespace>/<name>``, in its order."""
    return [f"{each.get('namespace', '')}/{each['name']}" for each in (binding or {}).get("subjects") or ()]


def is_of(found: Object, role: str) -> bool:
    """Whether it is the ClusterRoleBinding of a role."""
    return bool(found["metadata"]["name"] == f"paas-{role}")


async def never_free(paasing: Accounting, namespace: str, role: str, since: Mapping[str, str]) -> list[str]:
    """While nobody had a namespace's name no binding named it; returns what became of the namespace."""
    bindings = [each for each in await history(paasing.admin, CLUSTER_ROLE_BINDING, since["bindings"]) if is_of(each[1], role)]
    spaces = [each for each in await history(paasing.admin, NAMESPACE, since["namespaces"]) if _name(each[1]) == namespace]
    told = sorted([*spaces, *bindings], key=lambda each: int(each[1]["metadata"]["resourceVersion"]))
    free, named = False, True
    for change, found in told:
        if found["kind"] == NAMESPACE.kind:
            free = change == "DELETED"
        else:
            named = change != "DELETED" and any(each.startswith(f"{namespace}/") for each in names(found))
        assert not (free and named), [(step, _name(each), names(each)) for step, each in told]
    return [change for change, _ in spaces]


def _name(found: Object) -> str:
    return str(found["metadata"]["name"])


async def accounting(start: Callable[..., Awaitable[Knative]], admin: Api, world: str = "os", **options: Any) -> Knative:
    """Namespaces, rights and permissions of service accounts at work, under the configuration of these tests."""
    await make_world(admin, world)
    await make_roles(admin)
    await make_roles(admin, ROLES)
    running = await start({}, functions=FUNCTIONS, **options)
    await Accounting(admin).config()
    return running


def argo(**changes: Any) -> dict[str, Any]:
    """A spec with the capability argocd."""
    return {"requestor": "team", "capabilities": {"argocd": {"enabled": True, **changes}}}


def foreign_binding(role: str, **metadata: Any) -> Object:
    """A ClusterRoleBinding with the name of one of ours."""
    subjects = [{"kind": "ServiceAccount", "name": "theirs", "namespace": "default"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return obj(CLUSTER_ROLE_BINDING, f"paas-{role}", roleRef=reference, subjects=subjects, **metadata)
