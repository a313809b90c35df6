"""Members of NamespaceScopes that consent to be served by a home namespace, and who attacks them.

The attackers are who makes that home anew after it was deleted, and who may write Roles and RoleBindings in a member but has less
than the member consents to.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from attackers import HOME
from one_function import ready, serving
from operators import Operators
from people import look, post
from rights import group

from tenantry.api import Api
from tenantry.api.errors import Forbidden
from tenantry.local.knative import Knative
from tenantry.model.kinds import NAMESPACE_SCOPE, ROLE_BINDING, Kind, Object
from tenantry.testing import eventually
from tenantry.testing.proxy import FaultProxy

FUNCTION = "scope-binding"
COMMAND = (sys.executable, "-m", "tenantry.cli", "serve", FUNCTION)
GROUP = group(f"system:serviceaccounts:{HOME}")
"""All attackers."""
MANAGED = "namespacescope-managed-role-from-common-service"
"""The Role of a NamespaceScope ``common-service`` in a member."""


async def told(own: Operators, reason: str, *parts: str, event: str = "") -> Object:
    """The condition and a Warning on the NamespaceScope say so and name all of these."""
    scope = await own.ready("False", reason, text=parts[0])
    message = next(each for each in scope["status"]["conditions"] if each["type"] == "Ready")["message"]
    uid = scope["metadata"]["uid"]

    assert all(part in message for part in parts), message

    async def warned() -> bool:
        found = [each for each in await own.events(event or reason) if each["involvedObject"].get("uid") == uid]
        return any(each["type"] == "Warning" and all(part in each["message"] for part in parts) for each in found)

    await eventually(warned, what=f"a Warning {event or reason} with {parts}")
    return scope


@asynccontextmanager
async def alone(
    identity: Callable[..., Awaitable[Path]], folder: Path
) -> AsyncIterator[tuple[Callable[[Operators], Awaitable[None]], FaultProxy]]:
    """The function behind a proxy and without sources: it looks at a NamespaceScope when it is told to."""
    kubeconfig = await identity(f"{FUNCTION}-namespace-scopes")
    async with (
        FaultProxy(kubeconfig, folder) as proxy,
        serving(proxy.kubeconfig_for(kubeconfig), {}, folder, command=COMMAND) as (process, url),
    ):
        await ready(process, url)

        async def looks(own: Operators) -> None:
            status, text = await post(url, *look(NAMESPACE_SCOPE, "common-service", own.home))
            assert status == 204, text

        yield looks, proxy


async def looked(scopes: Knative) -> None:
    """What came is handled, and a sweep has looked at everything."""
    await scopes.drain()
    await scopes.sweep(FUNCTION)
    await scopes.drain()


async def in_force(attacker: Api, namespace: str, *kinds: Kind) -> None:
    """Wait until the attacker has what he was given in a namespace: he may list these kinds."""

    async def has_it() -> bool:
        try:
            for kind in kinds or (ROLE_BINDING,):
                await attacker.list(kind, namespace)
        except Forbidden:
            return False
        return True

    await eventually(has_it, what="the attacker's rights")
