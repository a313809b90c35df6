"""What Flux tenancy costs and how soon it acts: the targets of its specification, on a machine that is otherwise idle.

`make figures` runs this module alone: side by side with others its times are as many times longer.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TypeVar

import pytest
import pytest_asyncio
from admitting import Admitting
from flux_crds import install_flux
from flux_figures import idle_machine, p99, timed, unbound, within
from flux_guarding import GuardedLocks
from flux_locking import KUSTOMIZATION, LOCKS, has_lock, is_locked, source_ref
from flux_policing import APP1, FLUX, TEAM1, TEAM2, TWO, Policing, kustomization
from fluxing import SOURCES, access_from
from people import token
from times import LEFT_TO_MAKE_WHOLE, VOLUME_S

from scope_binding.sources.plan import MANAGER, plan_index
from scope_binding.sources.seen import IndexSeen
from tenantry.api import Api
from tenantry.engine.write import Writer
from tenantry.local.control_plane import ControlPlane
from tenantry.local.knative import Knative
from tenantry.model import limits
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_DENIED, ACCESS_INDEX, DEFAULT, SOURCE_GRANT
from tenantry.model.kinds import Object
from tenantry.testing import eventually
from tenantry.testing.planes import ControlPlanes

Item, Made = TypeVar("Item"), TypeVar("Made")
pytestmark = LEFT_TO_MAKE_WHOLE
TIMES = 1_500
BLOCK = 375
WARM = 100


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One without an audit log: what tests of rights read is no cost of ours."""
    with ControlPlanes() as planes:
        yield planes.take()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def enforced(policing: Policing) -> Policing:
    """Profile multi-tenant, everything else default."""
    await policing.enforce()
    return policing


@pytest.mark.check("f-87")
@pytest.mark.timeout(600)
async def test_admission_costs_little(enforced: Policing) -> None:
    """A local reference and a granted one, with 1,000 grants: beside an exempt namespace, and without any policy."""
    policing = enforced
    await policing.index({APP1: TWO, **{f"GitRepository/dev-team{at // 20}x/app{at}": TWO for at in range(998)}})
    bodies = {"local": kustomization("dev-team1"), "granted": kustomization("dev-team2", APP1)}
    exempt = {"local": kustomization(FLUX), "granted": kustomization(FLUX, APP1)}
    users = {"local": TEAM1, "granted": TEAM2}
    for name, judged_body in bodies.items():
        await policing.admitted(judged_body, user=users[name])
        await idle_machine()
        judged: list[float] = []
        free: list[float] = []
        for number in range(WARM + TIMES):
            for body, into in ((judged_body, judged), (exempt[name], free)):
                spent = await timed(lambda body=body: policing.create(body), 201)  # type: ignore[misc]
                if number >= WARM:
                    into.append(spent)
        within(f"{name}, more than in an exempt namespace, ms", median(judged) - median(free), 0.5, judged)

    with_all: dict[str, list[float]] = {name: [] for name in bodies}
    with_none: dict[str, list[float]] = {name: [] for name in bodies}

    async def block(into: dict[str, list[float]]) -> None:
        await idle_machine()
        for number in range(WARM + BLOCK):
            for name, body in bodies.items():
                spent = await timed(lambda body=body: policing.create(body), 201)  # type: ignore[misc]
                if number >= WARM:
                    into[name].append(spent)

    for _ in range(4):
        await block(with_all)
        async with unbound(policing, lambda: policing.create(kustomization("dev-team3", APP1))):
            await block(with_none)
        await policing.enforce()
    for name in bodies:
        more = median(with_all[name]) - median(with_none[name])
        within(f"{name}, more than without a policy, ms", more, 0.5, with_all[name])


@pytest.mark.check("f-88")
@pytest.mark.parametrize(("number", "most_ms", "most_kib"), [(1_000, 20, 64), (10_000, 200, 640)])
async def test_the_index_is_written_soon_and_stored_small(
    identity: Callable[..., Awaitable[Path]], number: int, most_ms: float, most_kib: int
) -> None:
    """One selector for each grant, as the function writes it, with its managed fields."""
    spent = []
    await idle_machine()
    async with await Api.connect(field_manager=MANAGER, kubeconfig=await identity("scope-binding-sources")) as api:
        for turn in range(30):
            read = {f"GitRepository/dev-team{at // 20:03}/app{at:05}": f"team=t{turn}wo" for at in range(number)}
            entries = AccessEntries(read, {}, {}, ("team",), complete=True)
            live = await api.get(ACCESS_INDEX, DEFAULT)
            plan = plan_index(IndexSeen(live, entries, frozenset({"GitRepository"}), 10_000))
            began = time.perf_counter()
            outcome = await Writer(api, "scope-binding").write(plan)
            spent.append((time.perf_counter() - began) * 1000)
            assert (outcome.writes, outcome.refusals, outcome.transient) == (1, [], None)
        stored = await api.get(ACCESS_INDEX, DEFAULT)
    assert stored is not None
    assert AccessEntries.of(stored) == entries
    size = len(json.dumps(stored, separators=(",", ":")))
    assert size <= most_kib * limits.KIB, size
    within(f"writing an index of {number} grants, ms", median(spent), most_ms, spent)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded(
    admin: Api, admitting: Admitting, flawlessly: Callable[..., Awaitable[Knative]]
) -> tuple[GuardedLocks, Knative]:
    """Both functions with Flux' kinds and the policies of a profile for several tenants."""
    await install_flux(admin)
    running = await flawlessly({}, functions=[SOURCES, LOCKS])
    flux = GuardedLocks(admin, admitting)
    await flux.enforce()
    await running.drain()
    return flux, running


@pytest.mark.check("f-89")
@pytest.mark.timeout(300)
async def test_a_revocation_counts_at_once(guarded: tuple[GuardedLocks, Knative]) -> None:
    """200 changes of a SourceGrant: from the API server's answer to the first request that is refused."""
    flux, running = guarded
    owner, user, labels = await flux.shared()
    spec = {"interval": "1m", "prune": True, "serviceAccountName": "flux", "sourceRef": source_ref(owner)}
    await running.drain()

    async def until(status: int) -> float:
        began = time.perf_counter()
        while (await flux.make(user, spec, dry=True)).status != status:
            assert time.perf_counter() - began < flux.eventually_s
        return (time.perf_counter() - began) * 1000

    await until(201)
    await idle_machine()
    lags = []
    for _ in range(200):
        await flux.edit(SOURCE_GRANT, "g", owner, ("replace", "/spec/accessFrom", access_from({"team": "nobody"})))
        lags.append(await until(403))
        await flux.edit(SOURCE_GRANT, "g", owner, ("replace", "/spec/accessFrom", access_from(labels)))
        await until(201)
    within("from a revocation to the first refused request, p99 ms", p99(lags), 100, lags)


@pytest.mark.check("f-90")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("at_once", [20, 1])
async def test_many_consumers_are_locked_soon(guarded: tuple[GuardedLocks, Knative], at_once: int) -> None:
    """1,000 consumers of 100 sources with one grant each: a selector that all use is taken out of all grants, so many at once.

    Locked is what has all marks of a lock and is stopped; that it says why, in its conditions and an Event, comes after.  What
    1,000 such updates take a bare client is printed beside it.
    """
    flux, running = guarded
    label = {"team": token()}
    owner, homes = await flux.home(), [await flux.home(**label) for _ in range(10)]
    names = [f"app{number:03}" for number in range(100)]
    await each_of(names, lambda name: flux.source(owner, name))
    others = {"team": "nobody"}
    await each_of(
        names, lambda name: flux.grant(owner, label, others, name=name, sourceRef={"kind": "GitRepository", "name": name})
    )
    await running.drain()
    placed = [(home, name) for home in homes for name in names]
    made = await each_of(placed, lambda place: consumer_of(flux, owner, *place))
    await running.drain()
    assert not any(has_lock(each) for each in made)
    await idle_machine()
    began = time.perf_counter()
    places = asyncio.Semaphore(limits.WRITES_AT_ONCE)
    await asyncio.gather(*(marked(flux, each, places) for each in made))
    floor = time.perf_counter() - began
    await running.drain()
    since = (await flux.admin.list(KUSTOMIZATION, limit=1)).resource_version
    await idle_machine()
    narrowed = ("replace", "/spec/accessFrom", access_from(others))
    await each_of(names, lambda name: flux.edit(SOURCE_GRANT, name, owner, narrowed), at_once)
    began = time.perf_counter()
    locked: set[str] = set()
    told: set[str] = set()
    spent: dict[int, float] = {}
    async with asyncio.timeout(VOLUME_S):
        async for _, each in flux.admin.watch(KUSTOMIZATION, resource_version=since):
            for holds, into in ((is_locked, locked), (has_lock, told)):
                if "spec" in each and holds(each):
                    into.add(each["metadata"]["uid"])
                if len(into) == len(made):
                    spent.setdefault(id(into), time.perf_counter() - began)
            if len(told) == len(made):
                break
    for each in made[:: len(made) // 20]:
        assert await eventually(lambda each=each: flux.events(each, ACCESS_DENIED), within=VOLUME_S)  # type: ignore[misc]
    print(f"until 1,000 consumers say so: {spent[id(told)]:.1f} s; 1,000 such updates by a bare client: {floor:.1f} s")
    within(f"until 1,000 consumers are locked, {at_once} grants changed at once, s", spent[id(locked)], 3.0, [spent[id(locked)]])


async def consumer_of(flux: GuardedLocks, owner: str, home: str, source: str) -> Object:
    """A Kustomization of a source."""
    return await flux.kustomization(home, owner, spec={"sourceRef": source_ref(owner, source)})


async def marked(flux: GuardedLocks, consumer: Object, places: asyncio.Semaphore) -> None:
    """An update like that of a lock, which is none."""
    where = consumer["metadata"]["name"], consumer["metadata"]["namespace"]
    marks = {"example.org/locked": ACCESS_DENIED, "example.org/suspended-by-lock": "true"}
    steps: list[Object] = [
        {"op": "add", "path": "/metadata/annotations", "value": marks},
        {"op": "add", "path": "/spec/suspend", "value": False},
        {"op": "add", "path": "/metadata/labels", "value": {"example.org/lock": "floor"}},
    ]
    async with places:
        await flux.admin.json_patch(KUSTOMIZATION, *where, steps)


async def each_of(items: Sequence[Item], do: Callable[[Item], Awaitable[Made]], at_once: int = 20) -> list[Made]:
    """Do something for all of several things, some at once."""
    made: list[Made] = []
    for at in range(0, len(items), at_once):
        made += await asyncio.gather(*map(do, items[at : at + at_once]))
    return made
