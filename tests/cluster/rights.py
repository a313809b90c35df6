"""Projects with a release, as the other functions leave them, and the people who are named there: short forms for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from people import CORE_EVENT, LABEL, OPERATED, PROJECT_ID, People, registration, token
from times import PROJECTS_S

from tenantry.api import Api
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, PROJECT_HELM_CHART, ROLE, ROLE_BINDING, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

AGGREGATION = "rbac-aggregation"
RBAC = "rbac.authorization.k8s.io"
ROLE_OF = "helm.cattle.io/project-helm-chart-role"
AGGREGATE_FROM = "helm.cattle.io/project-helm-chart-role-aggregate-from"
CLEANUP = "helm.cattle.io/helm-project-operator-cleanup"
ROLES_BOUND = "tenantry.dev/RolesBound"
DUMMY = "dummy.cattle.io/v1alpha1"


def user(name: str) -> Object:
    """A User as a subject."""
    return {"kind": "User", "name": name, "apiGroup": RBAC}


def group(name: str) -> Object:
    """A Group as a subject."""
    return {"kind": "Group", "name": name, "apiGroup": RBAC}


def account(name: str, namespace: str = "default") -> Object:
    """A ServiceAccount as a subject."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def cluster_role(name: str) -> Object:
    """A reference to a ClusterRole."""
    return {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}


def named(binding: Object | None) -> list[str]:
    """The subjects of a binding as ``Kind name``, in its order."""
    return [f"{subject['kind']} {subject['name']}" for subject in (binding or {}).get("subjects") or ()]


class Project:
    """A registration namespace, a ProjectHelmChart in it, and the release namespace, made by hand as the functions make them."""

    def __init__(self, people: People, run: str = "", *, project: str = "", chart: str = "", place: str = "") -> None:
        self.people = people
        self.admin: Api = people.admin
        self.run = run or token()
        self.id = project or f"p-{self.run}"
        self.home = registration(self.id)
        self.chart = chart or f"demo-{self.run}"
        self.release = f"{self.chart}-dummy"
        self.place = place or self.release

    async def set_up(self, *, version: str = DUMMY, home: bool = True, place: bool = True) -> Project:
        """Make the namespaces and the ProjectHelmChart."""
        if home:
            await self.people.namespace(self.home, self.id, labels={OPERATED: "true", PROJECT_ID: self.id})
        await self.ask(version)
        if place:
            await self.make_place()
        return self

    async def ask(self, version: str = DUMMY) -> Object:
        """Create the ProjectHelmChart."""
        body = obj(PROJECT_HELM_CHART, self.chart, self.home, spec={"helmApiVersion": version})
        return await self.admin.create(PROJECT_HELM_CHART, body)

    async def provisioned(self, status: str) -> None:
        """Set the status of the ProjectHelmChart, as release-provisioning does."""
        body = obj(PROJECT_HELM_CHART, self.chart, self.home, status={"status": status})
        await self.admin.apply(PROJECT_HELM_CHART, body, subresource="status")

    async def make_place(self) -> Object:
        """Create the release namespace with its labels."""
        labels = {OPERATED: "true", PROJECT_ID: self.id, LABEL: "p-system"}
        return await self.people.namespace(self.place, labels=labels)

    async def role(self, name: str = "r-admin", level: str | None = "admin", *, namespace: str = "", of: str = "") -> Object:
        """Create a Role with the labels of the release, as a chart does."""
        labels = {ROLE_OF: of or self.release, **({AGGREGATE_FROM: level} if level is not None else {})}
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
        return await self.admin.create(ROLE, obj(ROLE, name, namespace or self.place, labels=labels, rules=rules))

    async def bind(
        self, name: str, role: str | Object, *subjects: Object, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> Object:
        """Create a RoleBinding, by default in the registration namespace and to a ClusterRole."""
        reference = role if isinstance(role, dict) else cluster_role(role)
        place = namespace or self.home
        body = obj(ROLE_BINDING, name, place, labels=dict(labels or {}), roleRef=reference, subjects=list(subjects))
        return await self.admin.create(ROLE_BINDING, body)

    async def admit(self, name: str) -> None:
        """Make a user an admin of the project, and wait until he, and nobody else, is bound to the chart's Role."""
        await self.bind(name, "admin", user(name))
        await self.bound(f"User {name}")

    async def unbind(self, name: str, namespace: str = "") -> None:
        """Delete a RoleBinding, by default in the registration namespace."""
        await self.admin.delete(ROLE_BINDING, name, namespace or self.home)

    async def binding(self, name: str = "r-admin") -> Object | None:
        """The RoleBinding of that name in the release namespace."""
        return await self.admin.get(ROLE_BINDING, name, self.place)

    async def bound(self, *subjects: str, name: str = "r-admin", within: float = PROJECTS_S) -> Object:
        """Wait until a RoleBinding in the release namespace names exactly these, in this order; none means that it is gone."""

        async def check() -> Object | None:
            found = await self.binding(name)
            if not subjects:
                return {"gone": True} if found is None else None
            return found if named(found) == list(subjects) else None

        try:
            found = await eventually(check, within=within, what=f"RoleBinding {self.place}/{name} names {list(subjects)}")
        except AssertionError as error:
            raise AssertionError(f"{error}\nit is {await self.binding(name)!r}") from None
        assert found is not None
        return found

    async def condition(self) -> Object:
        """Our condition on the ProjectHelmChart, or empty."""
        found = await self.admin.get(PROJECT_HELM_CHART, self.chart, self.home) or {}
        return find_condition(found, ROLES_BOUND) or {}

    async def told(self, reason: str) -> str:
        """Wait until the condition has this reason (empty: until it is gone); its message."""

        async def check() -> list[str]:
            found = await self.condition()
            return [str(found.get("message", ""))] if found.get("reason", "") == reason else []

        return (await eventually(check, within=PROJECTS_S, what=f"{self.home}/{self.chart} tells {reason or 'nothing'}"))[0]

    async def events(self, holds: Callable[[Object], bool] = lambda _: True) -> list[Object]:
        """The Kubernetes Events in the registration and the release namespace for which something holds."""
        lists = [(await self.admin.list(CORE_EVENT, namespace)).items for namespace in (self.home, self.place)]
        return [found for items in lists for found in items if holds(found)]


class Everywhere:
    """ClusterRoleBindings and ClusterRoles of a test, which concern every project: made here, and taken away at its end."""

    def __init__(self, admin: Api) -> None:
        self._admin = admin
        self._made: list[tuple[Any, str]] = []

    async def __aenter__(self) -> Everywhere:
        return self

    async def __aexit__(self, *_: object) -> None:
        for kind, name in self._made:
            await self._admin.delete(kind, name)

    async def bind(self, name: str, role: str, *subjects: Object) -> Object:
        """Create a ClusterRoleBinding."""
        self._made.append((CLUSTER_ROLE_BINDING, name))
        body = obj(CLUSTER_ROLE_BINDING, name, roleRef=cluster_role(role), subjects=list(subjects))
        return await self._admin.create(CLUSTER_ROLE_BINDING, body)

    async def unbind(self, name: str) -> None:
        """Delete a ClusterRoleBinding."""
        await self._admin.delete(CLUSTER_ROLE_BINDING, name)

    async def role(self, name: str) -> Object:
        """Create a ClusterRole."""
        self._made.append((CLUSTER_ROLE, name))
        return await self._admin.create(CLUSTER_ROLE, obj(CLUSTER_ROLE, name, rules=[]))
