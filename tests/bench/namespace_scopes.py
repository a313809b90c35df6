"""Rows of NamespaceScopes: rights of ten accounts with two roles each in fifty members, first convergence and at rest.

Time runs from sending the NamespaceScope to the arrival of the watch event of the last RoleBinding.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from secrets import token_hex

from tests.bench import stack
from tests.bench.scopes import Bindings
from tests.bench.wire import Wire

from scope_binding.consent import consent_objects
from scope_binding.objects import account_subject, binding_of
from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import NAMESPACE, NAMESPACE_SCOPE, ROLE, ROLE_BINDING, SERVICE_ACCOUNT, Object
from tenantry.testing.objects import obj

RESOURCES = (*stack.OUR_RESOURCES, "namespacescopes", "roles", "rolebindings", "pods", "deployments")
FROM = "scope-binding/from-namespace"
ROLES_OF_EACH = 2
RULES = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]


@dataclass
class Figures:
    """Seconds until all rights stand, and until they are all gone; the floor is the same objects by a bare client."""

    projection: str
    members: int
    bindings: int
    given: float
    withdrawn: float
    floor: float
    cpu: dict[str, float]
    reads_at_rest: float
    writes_at_rest: float
    rest_s: float


class Projected(Bindings):
    """Watches the RoleBindings that NamespaceScopes of one namespace made."""

    def __init__(self, home: str) -> None:
        super().__init__()
        self._home = home

    async def start(self, wire: Wire) -> None:
        """Begin to watch."""
        await wire.watch(f"{ROLE_BINDING.path()}?labelSelector={FROM}={self._home}", self._seen)


def right(name: str, namespace: str, home: str, account: str) -> tuple[Object, Object]:
    """A Role, and its binding to an account of home."""
    subjects = [account_subject(home, account)]
    binding = binding_of(ROLE_BINDING, {"name": name, "namespace": namespace}, (ROLE, name), subjects)
    return obj(ROLE, name, namespace, rules=RULES), binding


async def measure(
    plane: ControlPlane, up: stack.Up, projection: str, members: int = 50, accounts: int = 10, rest_s: float = 5.0
) -> Figures:
    """Give the rights of all accounts in all members, rest, take all back; then the floor."""
    home = f"bench-{token_hex(3)}"
    places = [f"{home}-{number}" for number in range(members)]
    names = [f"op-{number}" for number in range(accounts)]
    async with stack.admin(plane) as wire, stack.admin(plane, 1) as watching:
        await stack.create(wire, [(NAMESPACE, obj(NAMESPACE, each)) for each in (home, *places)])
        rights = [right(f"{name}-{each}", home, home, name) for name in names for each in range(ROLES_OF_EACH)]
        consents = [consent_objects(place, home) for place in places]
        await stack.create(wire, [(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, home)) for name in names])
        await stack.create(
            wire, [(kind, each) for pair in (*rights, *consents) for kind, each in zip((ROLE, ROLE_BINDING), pair, strict=True)]
        )
        watched = Projected(home)
        await watched.start(watching)
        await stack.quiet(wire, resources=RESOURCES)
        scope = obj(NAMESPACE_SCOPE, "bench", home, spec={"namespaceMembers": places, "serviceAccountMembers": names})
        scope["metadata"]["annotations"] = {"scope-binding/projection": projection}
        wanted = members * (accounts * ROLES_OF_EACH if projection == "own-roles" else 1)
        cpu = stack.Cpu(plane, up, "scope-binding-namespace-scopes")
        began = time.perf_counter()
        await wire.apply(NAMESPACE_SCOPE.path(home, "bench"), scope, "bench")
        given = await watched.until(lambda: len(watched.there) == wanted) - began
        used = cpu.used()
        await stack.quiet(wire, 2.5, resources=RESOURCES)  # longer than the pause after that run
        before = await stack.request_counts(wire, RESOURCES)
        await asyncio.sleep(rest_s)
        resting = stack.difference(await stack.request_counts(wire, RESOURCES), before)
        began = time.perf_counter()
        await wire.do("DELETE", NAMESPACE_SCOPE.path(home, "bench"))
        withdrawn = await watched.until(lambda: not watched.there) - began
        await stack.quiet(wire, resources=RESOURCES)
        each = [(f"floor-{number}", place) for place in places for number in range(wanted // members)]
        roles, bindings = zip(*(right(name, place, home, names[0]) for name, place in each), strict=True)
        began = time.perf_counter()
        await stack.create(wire, [(ROLE, role) for role in roles])
        await stack.create(wire, [(ROLE_BINDING, binding) for binding in bindings])
        floor = time.perf_counter() - began
    return Figures(
        projection, members, wanted, given, withdrawn, floor, used, stack.reads(resting), stack.all_writes(resting), rest_s
    )
