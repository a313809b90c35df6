"""Rows of scope-binding: two roles bound in many namespaces, narrowed to half of them, a deleted binding that comes back.

Times run from sending the change to the arrival of the watch event that completes it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from tests.bench import stack
from tests.bench.wire import Watched, Wire

from scope_binding.objects import account_subject, binding_of
from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import CLUSTER_ROLE, CONFIG_MAP, NAMESPACE, ROLE_BINDING, SCOPE_INSTANCE, SCOPE_TEMPLATE, Object
from tenantry.testing.objects import obj

ROLES = ("a", "b")
RESOURCES = (*stack.OUR_RESOURCES, "rolebindings", "clusterroles", "clusterrolebindings", "scopeinstances", "scopetemplates")
UID = "operators.coreos.io/scopeInstanceUID"
_SUBJECT = account_subject("ops", "op")


@dataclass
class Figures:
    """Seconds, and milliseconds for each binding that came back; the floor is the same creations by a bare client."""

    namespaces: int
    bound: float
    narrowed: float
    floor: float
    cpu: dict[str, float] = field(default_factory=dict)
    back: list[float] = field(default_factory=list)


class Bindings(Watched):
    """Watches the bindings of scopes: which there are, and when one came or went last."""

    def __init__(self) -> None:
        super().__init__()
        self.there: dict[tuple[str, str], float] = {}

    async def start(self, wire: Wire) -> None:
        """Begin to watch."""
        await wire.watch(f"{ROLE_BINDING.path()}?labelSelector={UID}", self._seen)

    def _seen(self, type_: str, binding: Any) -> None:
        key = (binding["metadata"]["namespace"], binding["metadata"]["name"])
        self._changed()
        if type_ == "DELETED":
            self.there.pop(key, None)
        else:
            self.there.setdefault(key, self.changed_at)


async def _quiet(wire: Wire, for_s: float = 0.6) -> None:
    """Wait until nobody writes any more.

    Reads do not count: soon after the CRDs came, the garbage collector looks at the owner of every binding, twenty a second.
    """
    await stack.quiet(wire, for_s, resources=RESOURCES, of=stack.all_writes)


def template(name: str) -> Object:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    roles = [{"generateName": f"{name}.{each}", "rules": [rule], "subjects": [_SUBJECT]} for each in ROLES]
    return obj(SCOPE_TEMPLATE, name, spec={"clusterRoles": roles})


def instance(name: str, namespaces: Sequence[str]) -> Object:
    return obj(SCOPE_INSTANCE, name, spec={"scopeTemplateName": name, "namespaces": list(namespaces)})


async def owners_are_known(wire: Wire, within: float = 120.0) -> None:
    """Wait until the garbage collector knows ScopeInstances, half a minute after their CRD: it takes away what has no owner.

    Before that it looks at the owner of every new binding again and again, which is no cost of binding.
    """
    owner = {"apiVersion": SCOPE_INSTANCE.api_version, "kind": SCOPE_INSTANCE.kind, "name": "nobody", "uid": token_hex(18)}
    orphan = obj(CONFIG_MAP, "bench-orphan")
    orphan["metadata"]["ownerReferences"] = [owner]
    await wire.do("POST", CONFIG_MAP.path("default"), orphan)
    async with asyncio.timeout(within):
        while (await wire.exchange("GET", CONFIG_MAP.path("default", "bench-orphan")))[0] != 404:  # noqa: ASYNC110 (it does not tell)
            await asyncio.sleep(0.2)


async def measure(plane: ControlPlane, up: stack.Up, count: int, back: int) -> Figures:
    """Bind two roles in ``count`` namespaces, delete ``back`` bindings one by one, narrow to half; then the floor."""
    name = f"bench-{token_hex(3)}"
    places = [f"{name}-{number}" for number in range(count)]
    async with stack.admin(plane) as wire, stack.admin(plane, 1) as watching:
        await asyncio.gather(*(wire.do("POST", NAMESPACE.path(), obj(NAMESPACE, each)) for each in places))
        await wire.apply(SCOPE_TEMPLATE.path(name=name), template(name), "bench")
        watched = Bindings()
        await watched.start(watching)
        await owners_are_known(wire)
        await _quiet(wire)
        cpu = stack.Cpu(plane, up, "scope-binding")
        began = time.perf_counter()
        await wire.apply(SCOPE_INSTANCE.path(name=name), instance(name, places), "bench")
        bound = await watched.until(lambda: len(watched.there) == len(ROLES) * count) - began
        used = cpu.used()
        await _quiet(wire, 2.5)  # longer than the pause after that run
        times = [await _comes_back(wire, watched, list(watched.there)[number]) for number in range(back)]
        await _quiet(wire)
        began = time.perf_counter()
        await wire.apply(SCOPE_INSTANCE.path(name=name), instance(name, places[: count // 2]), "bench")
        narrowed = await watched.until(lambda: len(watched.there) == len(ROLES) * (count // 2)) - began
        await wire.do("DELETE", SCOPE_INSTANCE.path(name=name))
        await watched.until(lambda: not watched.there)
        await _quiet(wire)
        floor = await _floor(wire, name, places)
    return Figures(count, bound, narrowed, floor, used, times)


async def _comes_back(wire: Wire, watched: Bindings, key: tuple[str, str]) -> float:
    before = watched.there[key]
    began = time.perf_counter()
    await wire.do("DELETE", ROLE_BINDING.path(*key))
    came = await watched.until(lambda: watched.there.get(key, before) != before) - began
    await _quiet(wire)  # its echo is handled, and the pause after that run is over
    return came * 1000


async def _floor(wire: Wire, name: str, places: Sequence[str]) -> float:
    """The same two ClusterRoles and the same bindings, created by a bare client with 16 requests in flight.

    Their owner is the template, which stays, so that the garbage collector leaves them alone.
    """
    for each in ROLES:
        await wire.do("POST", CLUSTER_ROLE.path(), obj(CLUSTER_ROLE, f"{name}.floor.{each}", rules=[]))
    owner = {
        "apiVersion": SCOPE_TEMPLATE.api_version,
        "kind": SCOPE_TEMPLATE.kind,
        "name": name,
        "uid": (await wire.json("GET", SCOPE_TEMPLATE.path(name=name)))["metadata"]["uid"],
        "controller": True,
    }
    labels = {f"operators.coreos.io/{key}": token_hex(5) for key in ("generateName", "scopeInstanceAndTemplateHash")}

    def binding(each: str, place: str) -> Object:
        metadata = {"name": f"{name}-{each}-{token_hex(5)}", "namespace": place, "labels": labels, "ownerReferences": [owner]}
        return binding_of(ROLE_BINDING, metadata, (CLUSTER_ROLE, f"{name}.floor.{each}"), [_SUBJECT])

    began = time.perf_counter()
    await stack.create(wire, ((ROLE_BINDING, binding(each, place)) for each in ROLES for place in places))
    return time.perf_counter() - began
