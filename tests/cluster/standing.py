"""A cluster with something of everything, and some of it wrong: what ``tenantry status``, ``tree`` and ``map`` are tried on."""

from __future__ import annotations

from people import People, registration
from scoping import Scoping, role
from times import START_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.flux.names import SOURCE_GRANT, TENANT
from tenantry.model.kinds import (
    NAMESPACE,
    NAMESPACE_SCOPE,
    PROJECT_HELM_CHART,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    Kind,
    Object,
)
from tenantry.model.paas.names import PAAS, PAAS_CONFIG
from tenantry.testing import eventually
from tenantry.testing.objects import obj

RBAC = "rbac.authorization.k8s.io"


def user(name: str) -> Object:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


class World:
    """The owners, by a token of their own: ``good`` is a project that is served, ``bad`` one whose namespace is taken."""

    def __init__(self, admin: Api, running: Knative, mark: str) -> None:
        self.admin = admin
        self.running = running
        self.people = People(admin)
        self.scoping = Scoping(admin)
        self.good, self.bad, self.paas, self.tenant = f"p-{mark}", f"q-{mark}", f"paas-{mark}", f"crew-{mark}"
        self.member, self.second = f"team-{mark}", f"tools-{mark}"
        self.blocked, self.misnamed, self.free = f"stuck-{mark}", f"odd-{mark}", f"free-{mark}"
        self.scope, self.template = f"scope-{mark}", f"template-{mark}"

    async def bind(self, namespace: str, name: str, cluster_role: str, *users: str) -> None:
        """A RoleBinding of users."""
        ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": cluster_role}
        subjects = [user(each) for each in users]
        await self.admin.apply(ROLE_BINDING, obj(ROLE_BINDING, name, namespace, roleRef=ref, subjects=subjects))

    async def make(self) -> None:
        """Everything, until the functions have said what is wrong."""
        admin, people = self.admin, self.people
        await people.namespace(registration(self.bad))
        for name, project in (
            (self.member, self.good),
            (self.second, self.good),
            (self.blocked, self.bad),
            (self.misnamed, "Not_An_Id"),
            (self.free, None),
        ):
            await people.namespace(name, project)
        await self.bind(self.blocked, "many", "edit", "ann", "ben", "cem")
        await self.bind(self.misnamed, "one", "view", "dan")
        await self.there(NAMESPACE, registration(self.good))
        chart = {"helmApiVersion": "dummy.cattle.io/v1alpha1"}
        await admin.create(PROJECT_HELM_CHART, obj(PROJECT_HELM_CHART, "demo", registration(self.good), spec=chart))
        await self.bind(registration(self.good), "alice", "view", "alice")
        await self.scoping.template(self.template, role(f"reader-{self.scope}"))
        await self.scoping.instance(self.scope, self.template, namespaces=[self.member, f"absent-{self.scope}"])
        await admin.create(
            NAMESPACE_SCOPE, obj(NAMESPACE_SCOPE, "operators", self.free, spec={"namespaceMembers": [self.second]})
        )
        await admin.create(TENANT, obj(TENANT, self.tenant, spec={"namespaces": [f"{self.tenant}-apps", "kube-system"]}))
        grant = {
            "sourceRef": {"kind": "GitRepository", "name": "shared"},
            "accessFrom": {"namespaceSelectors": [{"matchLabels": {"stage": "dev"}}]},
        }
        await admin.create(SOURCE_GRANT, obj(SOURCE_GRANT, "shared", self.free, spec=grant))
        await admin.apply(
            PAAS_CONFIG, obj(PAAS_CONFIG, "config", spec={"capabilities": {}, "rolemappings": {"default": ["view"]}})
        )
        groups = {"us": {"query": f"CN={self.paas}-us,OU=x", "roles": ["default"]}}
        spec = {"requestor": "ann", "quota": {}, "namespaces": {"dev": {}}, "groups": groups}
        await admin.create(PAAS, obj(PAAS, self.paas, spec=spec))
        await self.says(NAMESPACE, self.blocked, "tenantry.dev/Registered")
        await self.says(NAMESPACE, self.misnamed, "tenantry.dev/Registered")
        await self.says(SCOPE_INSTANCE, self.scope, "Scoped")
        await self.says(TENANT, self.tenant, "Ready")
        await self.says(PAAS, self.paas, "Ready", bad="")
        await self.running.drain()

    async def there(self, kind: Kind, name: str, namespace: str = "") -> Object:
        """Wait for an object."""

        async def found() -> Object | None:
            return await self.admin.get(kind, name, namespace)

        return await eventually(found, within=START_S, what=f"{kind.kind} {name}")  # type: ignore[return-value]

    async def says(self, kind: Kind, name: str, type_: str, namespace: str = "", *, bad: str = "False") -> Object:
        """Wait for a condition with this status; empty: any."""

        async def told() -> Object:
            return find_condition(await self.admin.get(kind, name, namespace), type_) or {}

        return await eventually(
            told, lambda each: each and (not bad or each["status"] == bad), within=START_S, what=f"{name} {type_}"
        )
