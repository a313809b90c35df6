"""Rows of Flux tenancy: the index, what policies cost, a narrowed grant until its consumers are locked, and revocations.

1,000 grants: 100 sources of one namespace, which 1,000 consumers in 50 namespaces use, and 900 elsewhere.  Times run from sending
the change, or where a row says so from its answer, to the arrival of the watch event that completes it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

from tests.bench import stack
from tests.bench.flux_admission import (
    ALL,
    DRY,
    OWNER,
    REST,
    Figures,
    Sizes,
    admission,
    kustomization,
    prepare,
    selectors,
    source_grant,
    source_key,
    written,
)
from tests.bench.wire import JSON, Watched, Wire

from scope_binding.sources.plan import MANAGER
from tenantry.api import Api
from tenantry.cli.profile.applied import apply_profile
from tenantry.local.control_plane import ControlPlane
from tenantry.local.install import INSTALL_MANAGER
from tenantry.local.policies import until_in_force
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.consumers import CONSUMER_KINDS
from tenantry.model.flux.names import (
    ACCESS_DENIED,
    ACCESS_INDEX,
    DEFAULT,
    LOCKED,
    SHARED_KINDS,
    SOURCE_GRANT,
    TENANCY_PROFILE,
)
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import EVENT, NAMESPACE, Object, annotations_of
from tenantry.testing import eventually
from tenantry.testing.objects import obj

FUNCTIONS = ("scope-binding", "lock-enforcement")
LOCKS = "lock-enforcement-access"
RESOURCES = {
    *(each.plural for each in (*SHARED_KINDS, *CONSUMER_KINDS)),
    *(each.plural for each in (SOURCE_GRANT, ACCESS_INDEX, TENANCY_PROFILE, NAMESPACE, EVENT)),
}
WITHIN_S = 120.0
ASK_AGAIN_S = 0.003
"""Pause between two requests that ask whether a grant counts; what is measured is more by so much, at most."""
PATCH = "application/json-patch+json"


# -- locks -------------------------------------------------------------------------------------------------------------


class Consumers(Watched):
    """Which Kustomizations are stopped by a lock, and which say so."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped: set[tuple[str, str]] = set()
        self.told: set[tuple[str, str]] = set()

    def see(self, change: str, found: Any) -> None:
        """Take a watch event."""
        key = found["metadata"]["namespace"], found["metadata"]["name"]
        marked = change != "DELETED" and LOCKED in annotations_of(found) and found["spec"].get("suspend") is True
        conditions = (found.get("status") or {}).get("conditions") or ()
        says = marked and any(each["reason"] == ACCESS_DENIED for each in conditions)
        for is_in, group in ((marked, self.stopped), (says, self.told)):
            (group.add if is_in else group.discard)(key)
        self._changed()


async def floor(wire: Wire, users: Sequence[str], sizes: Sizes) -> float:
    """Seconds in which a bare client does to as many objects what a lock is: two updates and an Event, 16 objects at a time."""
    places = [(users[at % len(users)], f"floor-{at:04}") for at in range(sizes.consumers)]
    await stack.create(wire, [(KUSTOMIZATION, kustomization(*place, "", "app")) for place in places])
    marks = {"example.org/locked": ACCESS_DENIED, "example.org/suspended-by-lock": "true"}
    said = {"status": "True", "reason": ACCESS_DENIED, "message": "m" * 150, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    conditions = [{"type": each, **said} for each in ("Ready", "Stalled")]

    async def one(place: tuple[str, str]) -> None:
        namespace, name = place
        path = KUSTOMIZATION.path(namespace, name)
        steps: list[Object] = [
            {"op": "add", "path": "/metadata/annotations", "value": marks},
            {"op": "add", "path": "/spec/suspend", "value": True},
            {"op": "add", "path": "/metadata/finalizers", "value": ["example.org/lock"]},
        ]
        await wire.do("PATCH", path, steps, PATCH)
        status = [{"op": "add", "path": "/status", "value": {"conditions": conditions}}]
        await wire.do("PATCH", f"{path}/status", status, PATCH)
        await wire.do("POST", EVENT.path(namespace), _event(namespace, name))

    began = time.perf_counter()
    await stack.in_flight(one, places)
    seconds = time.perf_counter() - began

    async def gone(place: tuple[str, str]) -> None:
        path = KUSTOMIZATION.path(*place)
        await wire.do("PATCH", path, [{"op": "remove", "path": "/metadata/finalizers"}], PATCH)
        await wire.do("DELETE", path)

    await stack.in_flight(gone, places)
    return seconds


def _event(namespace: str, name: str) -> Object:
    regarding = {"apiVersion": KUSTOMIZATION.api_version, "kind": KUSTOMIZATION.kind, "namespace": namespace, "name": name}
    return obj(
        EVENT,
        f"{name}-{token_hex(4)}",
        namespace,
        regarding=regarding,
        reason=ACCESS_DENIED,
        action="Lock",
        type="Warning",
        note="n" * 150,
        eventTime="2026-01-01T00:00:00.000000Z",
        reportingController="bench",
        reportingInstance="bench",
    )


async def _furnish(wire: Wire, users: Sequence[str], sizes: Sizes) -> None:
    """Sources with their grants; consumers follow when they may."""
    said = json.dumps({"namespaceSelectors": [{"matchLabels": REST}]})
    elsewhere = [f"bench-team-{at:03}" for at in range((sizes.grants - sizes.used + 19) // 20)]
    await stack.create(wire, [(NAMESPACE, obj(NAMESPACE, name)) for name in elsewhere])
    used = [obj(GIT_REPOSITORY, f"app{at:05}", OWNER, labels={"shared": "yes"}, spec={"url": "u"}) for at in range(sizes.used)]
    others = [
        obj(GIT_REPOSITORY, f"app{at:05}", elsewhere[at // 20], annotations={"tenantry.dev/access-from": said}, spec={"url": "u"})
        for at in range(sizes.grants - sizes.used)
    ]
    await stack.create(wire, [(GIT_REPOSITORY, each) for each in (*used, *others)])
    selected = {"sourceSelector": {"kind": GIT_REPOSITORY.kind, "matchLabels": {"shared": "yes"}}}
    await wire.do("POST", SOURCE_GRANT.path(OWNER), source_grant("all", OWNER, selected, ALL, REST))
    one = {"sourceRef": {"kind": GIT_REPOSITORY.kind, "name": "app00000"}}
    await wire.do("POST", SOURCE_GRANT.path(elsewhere[0]), source_grant("one", elsewhere[0], one, ALL))


async def _index_has(wire: Wire, grants: int) -> None:
    """Wait until scope-binding has written the grants that are declared in the place of those that were written by hand."""

    async def granted() -> frozenset[str]:
        return AccessEntries.of(await wire.json("GET", ACCESS_INDEX.path("", DEFAULT))).granted

    declared = {source_key(OWNER, "app00000"), source_key("bench-team-000", "app00000")}
    await eventually(
        granted, lambda found: len(found) == grants and found >= declared, within=WITHIN_S, what=f"the index has {grants} grants"
    )


async def _rested(wire: Wire, for_s: float = 1.0) -> None:
    await stack.quiet(wire, for_s, WITHIN_S, resources=RESOURCES, of=stack.all_writes)


async def _writes(wire: Wire) -> float:
    """Write requests to everything that Flux tenancy is about, by anybody, status included."""
    verbs = ("POST", "PUT", "PATCH", "APPLY", "DELETE")
    found = await stack.samples(wire)
    return sum(value for labels, value in found if labels["resource"] in RESOURCES and labels["verb"] in verbs)


async def _narrowed(wire: Wire, seen: Consumers, paths: Iterable[str], count: int) -> tuple[float, float, float]:
    """Seconds until all consumers are stopped, until all say so, and, of the grants given back, until all are free."""
    todo = list(paths)
    await _rested(wire)
    began = time.perf_counter()
    await stack.in_flight(lambda path: wire.do("PATCH", path, selectors(REST), PATCH), todo)
    stopped = await seen.until(lambda: len(seen.stopped) == count, WITHIN_S) - began
    told = await seen.until(lambda: len(seen.told) == count, WITHIN_S) - began
    await _rested(wire)
    began = time.perf_counter()
    await stack.in_flight(lambda path: wire.do("PATCH", path, selectors(ALL, REST), PATCH), todo)
    freed = await seen.until(lambda: not seen.stopped, WITHIN_S) - began
    return stopped, told, freed


async def _locks(plane: ControlPlane, up: stack.Up, wire: Wire, users: Sequence[str], figures: Figures) -> None:
    sizes, seen = figures.sizes, Consumers()
    async with stack.admin(plane, 1) as watching:
        await watching.watch(KUSTOMIZATION.path(), seen.see)
        made = [
            (KUSTOMIZATION, kustomization(users[at % len(users)], f"k{at:04}", OWNER, f"app{at % sizes.used:05}"))
            for at in range(sizes.consumers)
        ]
        await stack.create(wire, made)
        await _rested(wire, 3.0)
        stack.say(f"at rest for {sizes.rest_s:.0f} s")
        before = await _writes(wire)
        await asyncio.sleep(sizes.rest_s)  # nothing tells that nothing will be written
        figures.rest_writes = await _writes(wire) - before
        for number in range(sizes.rounds):
            stack.say(f"one grant is narrowed, {sizes.consumers} consumers, round {number + 1} of {sizes.rounds}")
            cpu = stack.Cpu(plane, up, LOCKS)
            stopped, told, freed = await _narrowed(wire, seen, [SOURCE_GRANT.path(OWNER, "all")], sizes.consumers)
            figures.cpu = cpu.used()
            figures.stopped_s.append(stopped)
            figures.told_s.append(told)
            figures.freed_s.append(freed)
        await _rested(wire)
        names = [f"app{at:05}" for at in range(sizes.used)]
        for name in names:
            one = {"sourceRef": {"kind": GIT_REPOSITORY.kind, "name": name}}
            await wire.do("POST", SOURCE_GRANT.path(OWNER), source_grant(name, OWNER, one, ALL, REST))
        await wire.do("DELETE", SOURCE_GRANT.path(OWNER, "all"))
        for number in range(sizes.rounds):
            stack.say(f"{sizes.used} grants are narrowed, round {number + 1} of {sizes.rounds}")
            paths = [SOURCE_GRANT.path(OWNER, name) for name in names]
            stopped, told, _ = await _narrowed(wire, seen, paths, sizes.consumers)
            figures.each_stopped_s.append(stopped)
            figures.each_told_s.append(told)


# -- revocations -------------------------------------------------------------------------------------------------------


async def _revocations(plane: ControlPlane, wire: Wire, user: str, figures: Figures) -> None:
    """One grant is taken back and given again; from the answer to that to the first request that is decided so."""
    place = "bench-team-000"
    grant, body = SOURCE_GRANT.path(place, "one"), kustomization(user, "asked", place, "app00000")
    asked = f"{KUSTOMIZATION.path(user)}?{DRY}"

    async with stack.admin(plane, 1) as asking:
        for number in range(figures.sizes.revocations):
            if number % 50 == 0:
                stack.say(f"revocation {number + 1} of {figures.sizes.revocations}")
            for labels, status, into in (((REST,), 403, figures.revoked_ms), ((ALL, REST), 201, figures.granted_ms)):
                await _rested(wire, 0.5)  # all consumers of the change before are judged by then
                await _answered(asking, asked, body, 201 if status == 403 else 403)
                await wire.do("PATCH", grant, selectors(*labels), PATCH)
                began = time.perf_counter()
                await _answered(asking, asked, body, status)
                into.append((time.perf_counter() - began) * 1000)


async def _answered(wire: Wire, path: str, body: Object, status: int) -> None:
    """Ask again and again until this is the answer, with pauses: without, the asking takes one of two cores."""
    give_up_at = time.perf_counter() + WITHIN_S
    while (await wire.exchange("POST", path, body, JSON))[0] != status:
        if time.perf_counter() > give_up_at:
            raise RuntimeError(f"POST {path}: not {status} within {WITHIN_S:g} s")
        await asyncio.sleep(ASK_AGAIN_S)


# -- measuring ---------------------------------------------------------------------------------------------------------


async def measure(plane: ControlPlane, folder: Path, sizes: Sizes) -> Figures:
    """Index and admission while no function is at work, then locks and revocations with both that are concerned."""
    figures = Figures(sizes)
    async with stack.Up(plane, folder, functions=FUNCTIONS):
        pass  # its first start installs everything
    async with (
        stack.admin(plane) as wire,
        await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=plane.kubeconfig) as api,
        await Api.connect(field_manager=MANAGER, kubeconfig=plane.kubeconfig) as writing,
    ):
        users = await prepare(wire, api, sizes)
        profile = await api.apply(TENANCY_PROFILE, obj(TENANCY_PROFILE, DEFAULT, spec={"profile": "multi-tenant"}))
        await apply_profile(api, Profile.of(profile), prune=True)
        await until_in_force(api)
        for grants in (sizes.many, sizes.grants):
            stack.say(f"the index at {grants} grants")
            figures.index.append(await written(writing, grants, sizes.used, sizes.index_writes))
        await admission(plane, api, users[0], figures)
        stack.say("the floor of locks")
        figures.floor_s = await floor(wire, users, sizes)
        await _furnish(wire, users, sizes)
        async with stack.Up(plane, folder, functions=FUNCTIONS) as up:
            await _index_has(wire, sizes.grants)
            first = kustomization(users[0], "asked", OWNER, "app00000")
            await _answered(wire, f"{KUSTOMIZATION.path(users[0])}?{DRY}", first, 201)
            await _locks(plane, up, wire, users, figures)
            await _revocations(plane, wire, users[0], figures)
    return figures
