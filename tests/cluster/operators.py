"""Operators and the namespaces that they serve: what tests of NamespaceScopes set up and look at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from people import CORE_EVENT, People, may, token
from times import CONTROLLER_S, SCOPES_S

from scope_binding.consent import FULL_CONSENT, consent_name, consent_objects
from scope_binding.namespace_scopes.names import own_role_name
from tenantry.api import Api
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    NAMESPACE_SCOPE,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Kind,
    Object,
    annotations_of,
    is_terminating,
)
from tenantry.testing import eventually
from tenantry.testing.objects import obj

GET_LIST: Object = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
LIST = "namespace-scope"
HASH = "nss.ibm.com/namespaceList"
PENDING = "scope-binding/restart-pending"
FINALIZER = "finalizer.nss.operator.ibm.com"
OWN_ROLES = {"scope-binding/projection": "own-roles"}
USES_LIST = {
    "name": "WATCH_NAMESPACE",
    "valueFrom": {"configMapKeyRef": {"name": LIST, "key": "namespaces", "optional": True}},
}


def container(*env: Object) -> Object:
    """A container with these variables."""
    return {"name": "c", "image": "example.com/c", "env": list(env)}


def template(
    labels: dict[str, str] | None = None, account: str = "my-op", annotations: dict[str, str] | None = None, **spec: Any
) -> Object:
    """A pod template with the restart label whose container reads the list, unless told otherwise."""
    carried = {"app": "my-op", **({"intent": "projected"} if labels is None else labels)}
    metadata = {"labels": carried, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": {"serviceAccountName": account, "containers": [container(USES_LIST)], **spec}}


def workload(kind: Kind, namespace: str, name: str, made_from: Object) -> Object:
    """A workload with no pods: they could not run here."""
    spec: Object = {"selector": {"matchLabels": {"app": made_from["metadata"]["labels"]["app"]}}, "template": made_from}
    if kind.kind != "DaemonSet":
        spec["replicas"] = 0
    if kind.kind == "StatefulSet":
        spec["serviceName"] = name
    return obj(kind, name, namespace, spec=spec)


class Operators:
    """One from namespace with an operator in it, its members, and the people who administrate both."""

    def __init__(self, admin: Api, home: str = "", prefix: str = "", eventually_s: float = SCOPES_S) -> None:
        self.admin = admin
        self.people = People(admin, eventually_s)
        self.prefix = prefix or f"t{token()[:5]}-"
        self.home = home or f"{self.prefix}ops"

    def member(self, number: int) -> str:
        """The name of a member."""
        return f"{self.prefix}tenant{number}" if self.prefix != "-" else f"tenant{number}"

    async def begin(self, members: int = 2, *, consent: bool = True, operator: bool = True) -> None:
        """The setting of the checks: namespaces, consents, Deployment, ServiceAccount, Role and RoleBinding ``my-op``."""
        names = [self.home, *(self.member(number) for number in range(1, members + 1))]
        await asyncio.gather(*(self.people.namespace(name) for name in names))
        if consent:
            await asyncio.gather(*(self.consent(name) for name in names[1:]))
        if operator:
            await self.account("my-op")
            await self.right("my-op", "my-op", [GET_LIST])
            await self.admin.create(DEPLOYMENT, workload(DEPLOYMENT, self.home, "my-op", template()))

    async def consent(self, member: str, rules: Sequence[Object] = FULL_CONSENT) -> None:
        """Consent of a member, as ``authorize-namespace`` writes it."""
        role, binding = consent_objects(member, self.home, tuple(rules))
        await self.admin.apply(ROLE, role)
        await self.admin.apply(ROLE_BINDING, binding)

    async def withdraw(self, member: str) -> None:
        """The consent of a member is taken back."""
        await self.admin.delete(ROLE, consent_name(self.home), member)
        await self.admin.delete(ROLE_BINDING, consent_name(self.home), member)

    async def account(self, name: str) -> None:
        """A ServiceAccount in the from namespace."""
        await self.admin.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, self.home))

    async def right(
        self, role: str, account: str, rules: Sequence[Object] | None, *, kind: str = "Role", namespaced: bool = True
    ) -> None:
        """A Role in the from namespace, unless it is there, and its binding to an account."""
        if rules is not None:
            await self.admin.apply(ROLE, obj(ROLE, role, self.home, rules=list(rules)))
        subject = {"kind": "ServiceAccount", "name": account, **({"namespace": self.home} if namespaced else {})}
        reference = {"apiGroup": ROLE.group, "kind": kind, "name": role}
        await self.admin.apply(ROLE_BINDING, obj(ROLE_BINDING, role, self.home, roleRef=reference, subjects=[subject]))

    async def pod(self, name: str, made_from: Object) -> Object:
        """A pod that nobody controls."""
        return await self.admin.create(POD, obj(POD, name, self.home, **made_from))

    async def running(self, name: str, made_from: Object | None = None) -> Object:
        """The pod of a Deployment with one replica, which is made first if a template is given; nothing runs in it."""
        if made_from is not None:
            body = workload(DEPLOYMENT, self.home, name, made_from)
            await self.admin.create(DEPLOYMENT, {**body, "spec": {**body["spec"], "replicas": 1}})

        async def check() -> Object:
            pods = [each for each in await self._pods_of(name) if not is_terminating(each)]
            return pods[0] if pods else {}

        return await eventually(check, within=CONTROLLER_S, what=f"a pod of Deployment {name}")

    async def stopped(self, name: str) -> None:
        """Wait until a Deployment that is gone has no pods left."""
        await eventually(
            lambda: self._pods_of(name),
            lambda pods: not pods,
            within=CONTROLLER_S,
            what=f"the pods of Deployment {name} are gone",
        )

    async def _pods_of(self, name: str) -> list[Object]:
        found = (await self.admin.list(POD, self.home)).items
        return [each for each in found if each["metadata"]["name"].startswith(f"{name}-")]

    async def scope(
        self,
        *members: str | int,
        name: str = "common-service",
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> Object:
        """Declare a NamespaceScope; a number stands for that member."""
        names = [self.member(member) if isinstance(member, int) else member for member in members]
        wanted = {"namespaceMembers": names, **spec}
        return await self.admin.apply(NAMESPACE_SCOPE, obj(NAMESPACE_SCOPE, name, self.home, labels, annotations, spec=wanted))

    # -- what came of it -------------------------------------------------------------------------------

    async def listed(self, *members: str | int, config_map: str = LIST) -> Object:
        """Wait until the ConfigMap lists exactly the from namespace and these members, and no restart is pending."""
        value = ",".join(sorted({self.home, *(self.member(each) if isinstance(each, int) else each for each in members)}))

        def holds(found: Object) -> bool:
            return (found.get("data") or {}).get("namespaces") == value and PENDING not in annotations_of(found)

        return await self.people.until(CONFIG_MAP, config_map, self.home, holds, what=f"{config_map} lists {value}")

    async def ready(
        self, status: str = "True", reason: str = "Reconciled", *, name: str = "common-service", text: str = ""
    ) -> Object:
        """Wait for a condition Ready that is of the newest generation; returns the NamespaceScope."""

        def holds(found: Object) -> bool:
            told = find_condition(found, "Ready") or {}
            newest = told.get("observedGeneration") == found["metadata"]["generation"]
            return newest and (told["status"], told["reason"]) == (status, reason) and text in told["message"]

        return await self.people.until(NAMESPACE_SCOPE, name, self.home, holds, what=f"{name} is {status}/{reason} {text}")

    async def given(self, member: int, name: str, holds: Callable[[Object], Any] = bool) -> tuple[Object, Object]:
        """Wait until a Role and a RoleBinding of that name are in a member, the Role as it should be."""
        role = await self.people.until(ROLE, name, self.member(member), holds)
        binding = await self.people.until(ROLE_BINDING, name, self.member(member), bool)
        return role, binding

    async def in_member(self, member: str | int) -> list[str]:
        """What NamespaceScopes of this from namespace have put into a member: ``Kind name``."""
        place = self.member(member) if isinstance(member, int) else member
        labels = f"scope-binding/from-namespace={self.home}"
        found = [
            f"{kind.kind} {each['metadata']['name']}"
            for kind in (ROLE, ROLE_BINDING)
            for each in (await self.admin.list(kind, place, label_selector=labels)).items
        ]
        return sorted(found)

    async def emptied(self, member: str | int) -> None:
        """Wait until nothing of ours is in a member."""
        await eventually(
            lambda: self.in_member(member), lambda found: not found, within=SCOPES_S, what=f"nothing is left in member {member}"
        )

    async def may(self, member: int, verb: str, resource: str, account: str = "my-op", group: str = "") -> bool:
        """Whether the API server lets an account of the from namespace do something in a member."""
        user = f"system:serviceaccount:{self.home}:{account}"
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{self.home}", "system:authenticated"]
        return await may(self.admin, user, verb, resource, self.member(member), groups=groups, group=group)

    async def restarted_for(self, kind: Kind = DEPLOYMENT, name: str = "my-op") -> str | None:
        """The hash on a workload's pod template."""
        found = await self.people.get(kind, name, self.home)
        return annotations_of(found["spec"]["template"]).get(HASH)

    async def events(self, reason: str) -> list[Object]:
        """Kubernetes Events on NamespaceScopes of the from namespace."""
        fields = f"involvedObject.kind=NamespaceScope,reason={reason}"
        return (await self.admin.list(CORE_EVENT, self.home, field_selector=fields)).items


def chosen(projection: str) -> dict[str, str]:
    """The annotation that chooses a projection."""
    return {"scope-binding/projection": projection}


def name_of(own: Operators, projection: str, scope: str = "common-service", role: str = "my-op") -> str:
    """The name of what a projection puts into members."""
    own_role = own_role_name(role, "my-op", own.home)
    return f"namespacescope-managed-role-from-{scope}" if projection == "managed" else own_role
