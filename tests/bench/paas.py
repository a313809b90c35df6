"""Rows of Paas: many at once beside a bare client, a mapping that changes, one more on a full cluster, and their deletion.

A Paas has three namespaces, one of them a capability's, two groups, twelve RoleBindings, two quotas, and one service account in
a binding of the cluster.  Times run from sending the change to the arrival of the watch event that completes it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from tests.bench import stack
from tests.bench.wire import Watched, Wire

from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    ROLE_BINDING,
    Kind,
    Object,
)
from tenantry.model.paas.names import CLUSTER_RESOURCE_QUOTA, GROUP, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG
from tenantry.testing.memory import limit_mib, peak_mib
from tenantry.testing.objects import obj

FUNCTIONS = ("namespace-registration", "rbac-aggregation", "scope-binding", "release-provisioning")
SUFFIXES = ("a", "b", "argocd")
RESOURCES = ("namespaces", "rolebindings", "groups", "clusterresourcequotas", "clusterrolebindings", "paas")
WITHIN_S = 600.0
_RBAC = "rbac.authorization.k8s.io"
_MAPPINGS = {"default": ["view"], "admin": ["admin", "bench-routing", "bench-monitoring"]}
_ACCOUNTS = {"argo-sa": ["bench-monitoring"]}
_OURS = f"labelSelector={MANAGED_BY_PAAS.replace('/', '%2F')}"


@dataclass
class Figures:
    """Seconds; milliseconds for each of what is done one by one; writes to what Paas have."""

    paas: int
    created: float = 0.0
    ready: float = 0.0
    floor: float = 0.0
    mapped: float = 0.0
    mapped_floor: float = 0.0
    deleted: float = 0.0
    idle_writes: float = 0.0
    new_ms: list[float] = field(default_factory=list)
    user_ms: list[float] = field(default_factory=list)
    back_ms: list[float] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By Service MiB: the most that it had, and its limit."""


Part = tuple[object, ...]


class Parts(Watched):
    """Watches what Paas have; `wait` ends when all that is expected has been seen since `expect`."""

    def __init__(self) -> None:
        super().__init__()
        self._missing: set[Part] = set()

    async def start(self, wire: Wire) -> None:
        """Begin to watch."""
        await wire.watch(PAAS.path(), self._paas)
        await wire.watch(CLUSTER_ROLE_BINDING.path(), self._shared)
        await wire.watch(f"{NAMESPACE.path()}?{_OURS}", self._simple(NAMESPACE))
        await wire.watch(f"{CLUSTER_RESOURCE_QUOTA.path()}?{_OURS}", self._simple(CLUSTER_RESOURCE_QUOTA))
        await wire.watch(f"{GROUP.path()}?{_OURS}", self._group)
        await wire.watch(f"{ROLE_BINDING.path()}?{_OURS}", self._binding)

    def expect(self, parts: Iterable[Part]) -> None:
        """What is to be seen from now on."""
        self._missing = set(parts)

    async def wait(self) -> float:
        """The moment of the last of them."""
        try:
            return await self.until(lambda: not self._missing, WITHIN_S)
        except TimeoutError:
            raise RuntimeError(f"not seen within {WITHIN_S:g} s: {sorted(map(str, self._missing))[:10]}") from None

    def _seen(self, *part: object) -> None:
        if part in self._missing:
            self._missing.discard(part)
            if not self._missing:
                self._changed()

    def _simple(self, kind: Kind) -> Callable[[str, Any], None]:
        return lambda change, found: self._seen(kind.kind, found["metadata"]["name"], change != "DELETED")

    def _group(self, change: str, found: Any) -> None:
        self._seen(GROUP.kind, found["metadata"]["name"], None if change == "DELETED" else tuple(found.get("users") or ()))

    def _binding(self, change: str, found: Any) -> None:
        names = None if change == "DELETED" else tuple(each["name"] for each in found.get("subjects") or ())
        self._seen(ROLE_BINDING.kind, found["metadata"]["namespace"], found["metadata"]["name"], names)

    def _shared(self, change: str, found: Any) -> None:
        if change != "DELETED":
            for each in found.get("subjects") or ():
                self._seen(CLUSTER_ROLE_BINDING.kind, each.get("namespace"))

    def _paas(self, change: str, found: Any) -> None:
        name = found["metadata"]["name"]
        if change == "DELETED":
            self._seen(PAAS.kind, name, None)
            return
        for each in (found.get("status") or {}).get("conditions") or ():
            if each["type"] == "Ready" and each.get("observedGeneration") == found["metadata"]["generation"]:
                self._seen(PAAS.kind, name, each["status"])


# -- what people write -----------------------------------------------------------------------------------------------


def spec() -> Object:
    """What each Paas asks for."""
    return {
        "requestor": "bench",
        "groups": {"us": {"users": ["me"], "roles": ["admin"]}, "them": {"users": ["you"]}},
        "namespaces": {"a": {}, "b": {}},
        "capabilities": {"argocd": {"enabled": True}},
        "quota": {"limits.cpu": "40"},
    }


def config(default: str = "view", **more: Any) -> Object:
    """The PaasConfig, in which groups without roles have one ClusterRole."""
    capability = {"default_permissions": _ACCOUNTS, "quotas": {"defaults": {"limits.cpu": "8"}}}
    mappings = {**_MAPPINGS, "default": [default]}
    return obj(PAAS_CONFIG, "bench", spec={"rolemappings": mappings, "capabilities": {"argocd": capability}, **more})


def bindings(name: str, default: str = "view") -> dict[str, tuple[str, ...]]:
    """The RoleBindings in each namespace of a Paas."""
    return {f"paas-{default}": (f"{name}-them",), **{f"paas-{role}": (f"{name}-us",) for role in _MAPPINGS["admin"]}}


def parts(name: str) -> list[Part]:
    """All that stands for a Paas, but for what it says itself."""
    found: list[Part] = [(GROUP.kind, f"{name}-us", ("me",)), (GROUP.kind, f"{name}-them", ("you",))]
    found += [(CLUSTER_RESOURCE_QUOTA.kind, each, True) for each in (name, f"{name}-argocd")]
    found.append((CLUSTER_ROLE_BINDING.kind, f"{name}-argocd"))
    for suffix in SUFFIXES:
        found.append((NAMESPACE.kind, f"{name}-{suffix}", True))
        found += [(ROLE_BINDING.kind, f"{name}-{suffix}", *each) for each in bindings(name).items()]
    return found


def mapped_parts(name: str, default: str, before: str) -> list[Part]:
    """What is another in its namespaces when groups without roles have another ClusterRole."""
    places = [f"{name}-{suffix}" for suffix in SUFFIXES]
    made: list[Part] = [(ROLE_BINDING.kind, place, f"paas-{default}", (f"{name}-them",)) for place in places]
    return [*made, *((ROLE_BINDING.kind, place, f"paas-{before}", None) for place in places)]


async def prepare(wire: Wire) -> None:
    """The kinds of OpenShift, as CRDs that take any fields, and the ClusterRoles that are mapped."""
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for kind in (GROUP, CLUSTER_RESOURCE_QUOTA):
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": free}}
        names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
        body = {"group": kind.group, "names": names, "scope": "Cluster", "versions": [version]}
        crd = obj(CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{kind.group}", spec=body)
        await wire.do("POST", CUSTOM_RESOURCE_DEFINITION.path(), crd)
        while (await wire.exchange("GET", kind.path()))[0] != 200:  # noqa: ASYNC110 (it does not tell)
            await asyncio.sleep(0.1)
    for role in ("bench-routing", "bench-monitoring"):
        await wire.do("POST", CLUSTER_ROLE.path(), obj(CLUSTER_ROLE, role, rules=[]))


# -- the floor -------------------------------------------------------------------------------------------------------


def _binding(name: str, namespace: str, role: str, subjects: Iterable[str]) -> Object:
    named = [{"apiGroup": _RBAC, "kind": "Group", "name": each} for each in subjects]
    labels, annotations = _marks("floor")
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
    return obj(ROLE_BINDING, name, namespace, labels, roleRef=reference, subjects=named, annotations=annotations)


def _marks(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """As long as those of ours, and of no meaning to any function."""
    return {"cpet.example.org/managed-by-paas": name}, {"example.org/paas-uid": "00000000-0000-0000-0000-000000000000"}


def floor_objects(name: str) -> list[list[tuple[Kind, Object]]]:
    """What stands for a Paas, in the order in which it can be made: quotas and Groups, namespaces, bindings."""
    labels, annotations = _marks(name)
    more: dict[str, Any] = {"labels": labels, "annotations": annotations}
    quotas = [
        (each, {"quota": {"hard": {"limits.cpu": "8"}}, "selector": {"labels": {"matchLabels": {"floorgroup": each}}}})
        for each in (name, f"{name}-argocd")
    ]
    first = [(CLUSTER_RESOURCE_QUOTA, obj(CLUSTER_RESOURCE_QUOTA, each, spec=quota, **more)) for each, quota in quotas]
    first += [(GROUP, obj(GROUP, f"{name}-{key}", users=["me"], **more)) for key in ("us", "them")]
    places = [f"{name}-{suffix}" for suffix in SUFFIXES]
    own = {**labels, "floorgroup": name, "requestor": "bench", "example.org/managed-by": f"{name}-argocd"}
    second = [(NAMESPACE, obj(NAMESPACE, place, labels=own, annotations=annotations)) for place in places]
    third = [
        (ROLE_BINDING, _binding(binding, place, binding.removeprefix("paas-"), subjects))
        for place in places
        for binding, subjects in bindings(name).items()
    ]
    return [first, second, third]


async def floor(wire: Wire, count: int) -> float:
    """Seconds in which a bare client makes the same objects, each Paas in order, 16 at a time."""
    names = [f"floor-{token_hex(3)}-{number}" for number in range(count)]

    async def one(name: str) -> None:
        for stage in floor_objects(name):
            for kind, body in stage:
                await wire.do("POST", kind.path(body["metadata"].get("namespace", "")), body)

    began = time.perf_counter()
    await stack.in_flight(one, names)
    return time.perf_counter() - began


async def _mapping_floor(wire: Wire, count: int) -> float:
    """Seconds in which it makes a binding in each of three namespaces of so many, and deletes another one there."""
    places = [f"map-{token_hex(3)}-{number}" for number in range(3 * count)]
    await stack.create(wire, [(NAMESPACE, obj(NAMESPACE, place)) for place in places])
    await stack.create(wire, [(ROLE_BINDING, _binding("paas-view", place, "view", ["x"])) for place in places])

    async def one(place: str) -> None:
        await wire.do("POST", ROLE_BINDING.path(place), _binding("paas-edit", place, "edit", ["x"]))
        await wire.do("DELETE", ROLE_BINDING.path(place, "paas-view"))

    began = time.perf_counter()
    await stack.in_flight(one, places)
    return time.perf_counter() - began


# -- measuring -------------------------------------------------------------------------------------------------------


async def _writes(wire: Wire) -> float:
    """Write requests to what Paas have, by anybody, status included."""
    verbs = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
    return sum(
        value for labels, value in await stack.samples(wire) if labels["resource"] in RESOURCES and labels["verb"] in verbs
    )


async def rested(wire: Wire, for_s: float = 1.0) -> None:
    """Wait until nobody has written what Paas have for a while."""
    await stack.quiet(wire, for_s, WITHIN_S, resources=RESOURCES, of=stack.all_writes)


async def measure(plane: ControlPlane, folder: Path, count: int, ones: int) -> Figures:
    """``count`` Paas at once, then ``ones`` changes of each sort one by one; the floor between two runs of the functions."""
    figures = Figures(count)
    names = [f"b{token_hex(3)}{number}" for number in range(count)]
    async with stack.admin(plane) as wire:
        await prepare(wire)
        async with stack.Up(plane, folder, functions=FUNCTIONS) as up:
            await wire.do("POST", PAAS_CONFIG.path(), config())
            async with stack.admin(plane, 1) as watching:
                seen = Parts()
                await seen.start(watching)
                await rested(wire)
                await _created(plane, up, wire, seen, names, figures)
                stack.say("a mapping that all namespaces have changes")
                await _mapped(wire, seen, names, figures)
                stack.say("one by one")
                await _one_by_one(wire, seen, names, ones, figures)
                figures.peaks = {name: (peak_mib(up.process_of(name).pid), limit_mib(name)) for name in up.served()}
        stack.say("the floor")
        figures.floor = await floor(wire, count)
        figures.mapped_floor = await _mapping_floor(wire, count)
        async with stack.Up(plane, folder, functions=FUNCTIONS), stack.admin(plane, 1) as watching:
            seen = Parts()
            await seen.start(watching)
            await rested(wire)
            stack.say("all are deleted")
            seen.expect((PAAS.kind, name, None) for name in names)
            began = time.perf_counter()
            await stack.in_flight(lambda name: wire.do("DELETE", PAAS.path("", name)), names)
            figures.deleted = await seen.wait() - began
    return figures


async def _created(plane: ControlPlane, up: stack.Up, wire: Wire, seen: Parts, names: list[str], figures: Figures) -> None:
    ready = Parts()
    async with stack.admin(plane, 1) as watching:
        await watching.watch(PAAS.path(), ready._paas)
        ready.expect((PAAS.kind, name, "True") for name in names)
        seen.expect(part for name in names for part in parts(name))
        cpu = stack.Cpu(plane, up)
        began = time.perf_counter()
        await stack.create(wire, [(PAAS, obj(PAAS, name, spec=spec())) for name in names])
        figures.created = await seen.wait() - began
        figures.ready = await ready.wait() - began
        figures.cpu = cpu.used()
    await rested(wire)


async def _mapped(wire: Wire, seen: Parts, names: list[str], figures: Figures) -> None:
    for default, before in (("edit", "view"), ("view", "edit")):
        seen.expect(part for name in names for part in mapped_parts(name, default, before))
        began = time.perf_counter()
        await configure(wire, config(default))
        took = await seen.wait() - began
        figures.mapped = took if default == "edit" else figures.mapped
        await rested(wire)
    before_writes = await _writes(wire)
    mappings = {role: [*reversed(roles)] for role, roles in reversed(config()["spec"]["rolemappings"].items())}
    await configure(wire, config(rolemappings=mappings, debug=True))
    await asyncio.sleep(1)  # nothing tells that nothing will be written
    await rested(wire, 2.0)
    figures.idle_writes = await _writes(wire) - before_writes


async def configure(wire: Wire, body: Object) -> None:
    """Give the PaasConfig another spec."""
    steps = [{"op": "replace", "path": "/spec", "value": body["spec"]}]
    await wire.do("PATCH", PAAS_CONFIG.path("", "bench"), steps, "application/json-patch+json")


async def _one_by_one(wire: Wire, seen: Parts, names: list[str], ones: int, figures: Figures) -> None:
    async def one(into: list[float], expected: list[Part], change: Callable[[], Awaitable[object]]) -> None:
        await rested(wire, 0.3)
        seen.expect(expected)
        began = time.perf_counter()
        await change()
        into.append((await seen.wait() - began) * 1000)

    def patch(kind: Kind, name: str, path: str, value: object, namespace: str = "") -> Callable[[], Awaitable[object]]:
        steps = [{"op": "replace", "path": path, "value": value}]
        return lambda: wire.do("PATCH", kind.path(namespace, name), steps, "application/json-patch+json")

    for number in range(ones):
        name = f"n{token_hex(3)}{number}"
        names.append(name)
        body = obj(PAAS, name, spec=spec())
        await one(figures.new_ms, parts(name), lambda body=body: wire.do("POST", PAAS.path(), body))  # type: ignore[misc]
    for number in range(ones):
        name = names[number % figures.paas]
        more: list[Part] = [(GROUP.kind, f"{name}-us", ("me", "more"))]
        await one(figures.user_ms, more, patch(PAAS, name, "/spec/groups/us/users", ["me", "more"]))
    for number in range(ones):
        name = names[-1 - number % figures.paas]
        back: list[Part] = [(ROLE_BINDING.kind, f"{name}-a", "paas-view", (f"{name}-them",))]
        await one(figures.back_ms, back, patch(ROLE_BINDING, "paas-view", "/subjects", [], f"{name}-a"))
