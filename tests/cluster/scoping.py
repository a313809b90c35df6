"""Short forms of what the tests of scopes do over and over: declare templates and instances, look at what follows."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from people import People
from times import SCOPES_S

from tenantry.api import Api
from tenantry.local.knative import Knative
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE_BINDING,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Kind,
    Object,
    is_terminating,
)
from tenantry.serving.installed import descriptor_of
from tenantry.testing import eventually
from tenantry.testing.objects import obj

SCOPES = "scope-binding"
INSTANCE_UID = "operators.coreos.io/scopeInstanceUID"
INSTANCE_HASH = "operators.coreos.io/scopeInstanceAndTemplateHash"
TEMPLATE_UID = "operators.coreos.io/scopeTemplateUID"
TEMPLATE_HASH = "operators.coreos.io/scopeTemplateHash"
GENERATE_NAME = "operators.coreos.io/generateName"

READ_SECRETS: Object = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}
OP: Object = {"kind": "ServiceAccount", "name": "op", "namespace": "ops"}
EVE: Object = {"kind": "User", "name": "eve"}


def role(generate_name: str, *, rules: Sequence[Object] = (READ_SECRETS,), subjects: Sequence[Object] = (OP,)) -> Object:
    """One entry of ``spec.clusterRoles``; the defaults are those of the acceptance checks."""
    return {"generateName": generate_name, "rules": list(rules), "subjects": list(subjects)}


def condition_of(obj: Object | None, type_: str) -> Object:
    """A condition, or an empty mapping."""
    return find_condition(obj, type_) or {}


class Scoping(People):
    """Acts as a cluster administrator who scopes operators."""

    def __init__(self, admin: Api, eventually_s: float = SCOPES_S) -> None:
        super().__init__(admin, eventually_s)

    async def template(self, name: str, *roles: Object, kind: Kind = SCOPE_TEMPLATE, **spec: Any) -> Object:
        """Declare a template with these roles."""
        return await self.admin.apply(kind, obj(kind, name, spec={"clusterRoles": list(roles), **spec}))

    async def instance(self, name: str, template: str, *, kind: Kind = SCOPE_INSTANCE, **spec: Any) -> Object:
        """Declare an instance of a template; without anything else in the whole cluster."""
        return await self.admin.apply(kind, obj(kind, name, spec={"scopeTemplateName": template, **spec}))

    async def templated(self, name: str, reason: str = "TemplatingSuccessful", *, kind: Kind = SCOPE_TEMPLATE) -> Object:
        """Wait until a template says this about its current spec; returns the condition."""
        return await self.says(kind, name, "Templated", reason)

    async def scoped(self, name: str, reason: str = "ScopingSuccessful", *, kind: Kind = SCOPE_INSTANCE) -> Object:
        """Wait until an instance says this about its current spec; returns the condition."""
        return await self.says(kind, name, "Scoped", reason)

    async def says(self, kind: Kind, name: str, type_: str, reason: str, words: str = "") -> Object:
        """Wait for a condition with this reason, and these words, about the current spec."""

        def holds(found: Object) -> bool:
            told = condition_of(found, type_)
            current = told.get("observedGeneration") == found["metadata"]["generation"]
            return current and told["reason"] == reason and words in told["message"]

        return condition_of(await self.until(kind, name, "", holds, what=f"{type_}: {reason} {words}"), type_)

    async def bindings(self, role_name: str) -> list[Object]:
        """The bindings that stay, to ClusterRoles whose name begins so."""
        found = [binding for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING) for binding in (await self.admin.list(kind)).items]
        return [one for one in found if one["roleRef"]["name"].startswith(role_name) and not is_terminating(one)]

    async def bound(self, role_name: str) -> dict[str, Object]:
        """The same by namespace, where no two may be of one role; a cluster-wide one has none."""
        found: dict[str, Object] = {}
        for binding in await self.bindings(role_name):
            namespace = binding["metadata"].get("namespace", "")
            assert namespace not in found, f"two bindings of {role_name} in {namespace or 'the cluster'}"
            found[namespace] = binding
        return found

    async def bound_in(self, role_name: str, *namespaces: str, within: float = SCOPES_S) -> dict[str, Object]:
        """Wait until the bindings of a role are exactly in these namespaces; an empty name is the whole cluster."""

        async def check() -> dict[str, Object] | bool:
            found = await self.bound(role_name)
            return (found or True) if set(found) == set(namespaces) else False

        found = await eventually(check, within=within, what=f"bindings of {role_name} in {namespaces}")
        return found if isinstance(found, dict) else {}

    async def begin(self, instance: str, template: str, role_name: str, *namespaces: str) -> dict[str, Object]:
        """Declare a template with one role and its instance, in the whole cluster without namespaces; wait for the bindings."""
        await self.template(template, role(role_name))
        await self.instance(instance, template, **({"namespaces": list(namespaces)} if namespaces else {}))
        return await self.bound_in(role_name, *(namespaces or ("",)))

    async def no_role(self, name: str) -> None:
        """Wait until there is no such ClusterRole."""
        await self.away(CLUSTER_ROLE, name)

    @contextmanager
    def asleep(self, knative: Knative) -> Iterator[None]:
        """While the function stands still, in all its Services: what happens then reaches it together, afterwards."""
        pids = [knative.functions[service.name].pid for service in descriptor_of(SCOPES).services]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    async def role_when(self, name: str, holds: Callable[[Object], Any] = lambda _: True) -> Object:
        """Wait for a ClusterRole."""
        return await self.until(CLUSTER_ROLE, name, "", holds)


@asynccontextmanager
async def always(holds: Callable[[], Awaitable[bool]], what: str) -> AsyncIterator[None]:
    """What holds at the beginning holds at each look, every 20 ms, until the end."""
    assert await holds(), f"not at the beginning: {what}"
    looks: list[bool] = []

    async def look() -> None:
        while True:
            looks.append(await holds())
            await asyncio.sleep(0.02)

    looking = asyncio.create_task(look())
    try:
        yield
        if not looking.done():  # one look at the end
            looks.append(await holds())
    finally:
        ended = looking.done()
        looking.cancel()
        (result,) = await asyncio.gather(looking, return_exceptions=True)
    assert not ended, f"nobody looked any more: {result!r}"
    assert len(looks) >= 4, f"too few looks: {looks}"
    assert all(looks), f"not {what}: {looks}"
