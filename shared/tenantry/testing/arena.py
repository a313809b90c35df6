"""Where runs take place: one control plane, the function's processes behind the fault proxy, the real sources, the player.

Runs share the arena and are kept apart by their tags: names, faults and lanes of one run concern no other.  Only a sweep
reads and repairs everything, so runs go in rounds: all are disturbed in parallel, then one sweep is for all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import yaml

from tenantry.api import Api
from tenantry.api.errors import RefusedError
from tenantry.local.deployment import deployment_folder, event_files
from tenantry.local.identity import Identity
from tenantry.local.install import INSTALL_MANAGER, install, until_served
from tenantry.local.lasting import Lasting
from tenantry.local.manifests import Manifests, heard, load, spec_of
from tenantry.local.schedule import ping_event
from tenantry.local.sinks import Poster
from tenantry.local.source import ApiServerSource
from tenantry.local.specs import Selector, SourceSpec
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, Object, labels_of
from tenantry.model.names import field_manager
from tenantry.model.selectors import LabelSelector, Requirement
from tenantry.serving.config import CONFIG_VARIABLE, load_config
from tenantry.serving.installed import descriptor_of
from tenantry.testing.awaiting import POLL_S, eventually
from tenantry.testing.naming import DRIFTED, tag_of
from tenantry.testing.perturbations import Aims
from tenantry.testing.planes import ControlPlanes
from tenantry.testing.player import Lane, Player
from tenantry.testing.proxy import FaultProxy
from tenantry.testing.recording import Exchange
from tenantry.testing.replicas import Pool, Replica
from tenantry.testing.workload import KINDS, Run, Workload
from tenantry.testing.world import Change, World, uid_gone, version_of

HANDS = "people"
OWN_NAMESPACE = "tenantry-system"
SWEEP = "sweep"
REPLICAS = 2
"""Processes that all runs share; each has a proxy of its own, so that requests show who sent them."""
ALLOWED_S = 60.0
"""How long the API server may look for the kind of a policy's param that was installed a moment ago."""
SETTLE_S = 90.0
"""How long a run may go on: one event that is refused in all seven tries takes 20 s alone, and forty runs go on at once."""
_tags = itertools.count(1)


class NotSettled(AssertionError):
    """Something still goes on after a long time."""


class Arena(Lasting):
    """One control plane with everything around it.  Runs between ``async with`` and its end.

    Args:
        workload: of the function that is tried.
        folder: for files; must exist.
        bug: a seeded mutation that the processes run with.
        settle_s: how long it may take until nothing goes on any more.
        without: names of admission policies to be left out, or ``all``.
        planes: where the control plane comes from and goes back to.  Default: a new one, which ends with the arena.
    """

    def __init__(
        self,
        workload: Workload,
        folder: Path,
        *,
        bug: str = "",
        settle_s: float = SETTLE_S,
        without: Collection[str] = (),
        planes: ControlPlanes | None = None,
    ) -> None:
        super().__init__()
        self.workload = workload
        self.logs: list[tuple[int, str]] = []
        self.hands: Api
        self.kubeconfig: Path
        """Of the administrator, past the proxies."""
        self.world: World
        self.player: Player
        self.proxies: list[FaultProxy] = []
        self.aims: list[Aims] = []
        self.pool: Pool
        self.runs: dict[str, Run] = {}
        self.foreign: list[Exchange] = []
        """Writes of the function to objects of no run."""
        self._folder = folder
        self._bug = bug
        self._settle_s = settle_s
        self._without = without
        self._planes = planes
        self._sources: list[ApiServerSource] = []
        self._manifests: Manifests
        self._sorted: dict[str, list[Exchange]] = {}
        self._positions = [0] * REPLICAS
        self._needs: dict[str, dict[int, int]] = {}
        self._only = ""

    async def _start(self) -> None:
        function, say = self.workload.function, lambda _: None
        services = tuple(self.workload.services or (each.name for each in descriptor_of(function).services))
        planes = self._planes or self._stack.enter_context(ControlPlanes())
        plane = await asyncio.to_thread(planes.take)
        if self._planes:
            self._stack.push_async_callback(asyncio.to_thread, planes.give_back, plane)
        config_path, self.kubeconfig = self._folder / "tenantry.yaml", plane.kubeconfig
        config_path.write_text(yaml.safe_dump(dict(self.workload.config)))
        enter = self._stack.enter_async_context
        installer = await enter(await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=plane.kubeconfig))
        for document in self.workload.installed:
            await installer.apply(KINDS[document["kind"]], document)
            if document["kind"] == CUSTOM_RESOURCE_DEFINITION.kind:
                await until_served(installer, document)
        await install(installer, [function], load_config(config_path), say, without=self._without)
        self.hands = await enter(await Api.connect(field_manager=HANDS, kubeconfig=plane.kubeconfig, concurrency=64))
        watcher = await enter(await Api.connect(field_manager="observer", kubeconfig=plane.kubeconfig))
        broker = deployment_folder("knative") / "base" / "broker.yaml"
        found = load(broker, *event_files())
        self._manifests = Manifests(
            pings=tuple(ping for ping in found.pings if ping.ce_overrides.extensions.get("resync") == function),
            triggers=tuple(each for each in found.triggers if each.subscriber.ref and each.subscriber.ref.name in services),
            brokers=found.brokers,
        )
        named = load(broker, deployment_folder("triggers")).sources
        sources = heard(named, self._manifests.triggers)  # some are another function's
        kubeconfigs = {}
        for account in {*services, *(spec.service_account_name for spec in sources)}:
            identity = Identity(installer, account, self._folder, plane.kubeconfig, say)
            kubeconfigs[account] = await identity.open()
            self._stack.push_async_callback(identity.close)
        await self._begin(kubeconfigs[services[0]])
        proxied: dict[str, list[Path]] = {service: [] for service in services}
        for number in range(REPLICAS):
            folder = self._folder / f"proxy-{number}"
            folder.mkdir(exist_ok=True)
            self.proxies.append(await enter(FaultProxy(kubeconfigs[services[0]], folder)))
            self.aims.append(Aims(number))
            self.proxies[-1].faults.append(self.aims[-1])
            for service in services:
                proxied[service].append(self.proxies[-1].kubeconfig_for(kubeconfigs[service]))

        environment = {CONFIG_VARIABLE: str(config_path.absolute())}
        self.pool = Pool(proxied, bug=self._bug, environment=environment, on_log=self._heard)
        self._stack.push_async_callback(self.pool.close)
        await self.pool.open()
        poster = await enter(Poster())
        self.player = Player(self._manifests, self._folder, poster)
        self._stack.push_async_callback(self.player.close_all)
        for name in ("", SWEEP):
            await self.player.open(name, [self.pool.shared[0].urls])
        self.world = await enter(World(watcher, self.workload.watched, self.workload.shared))
        for spec in sources:
            reading = await Api.connect(field_manager="tenantry-source", kubeconfig=kubeconfigs[spec.service_account_name])
            self._sources.append(await enter(ApiServerSource(await enter(reading), spec, self.player.accept, say=say)))
        for each in self.workload.sources:
            extra = spec_of("a source of the workload", each)
            assert isinstance(extra, SourceSpec)
            self._sources.append(await enter(ApiServerSource(watcher, extra, self.player.accept, say=say)))
        for source in self._sources:
            await source.synced()
        self._announces = [
            (reflector, _matcher(watched.selector))
            for source in self._sources
            for reflector in source._tasks
            if reflector is not None
            for watched in source.spec.resources
            if watched.kind == reflector.kind.kind
        ]
        self.world.listeners.append(self._expect)

    async def _begin(self, kubeconfig: Path) -> None:
        """Make what all runs share, and wait until the function may make what it must."""
        for document in self.workload.begins:
            await self.hands.apply(KINDS[document["kind"]], document)
        async with await Api.connect(field_manager=field_manager(self.workload.function), kubeconfig=kubeconfig) as function:
            for document in self.workload.can:

                async def allowed(document: Object = document) -> bool:
                    with contextlib.suppress(RefusedError):
                        return bool(await function.create(KINDS[document["kind"]], document, dry_run=True))
                    return False

                await eventually(allowed, within=ALLOWED_S, what=f"{self.workload.function} may make a {document['kind']}")

    @property
    def size(self) -> int:
        """How many objects there are."""
        return len(self.world)

    @property
    def only(self) -> str:
        """The tag of the only run that there is, if what belongs to no run is its own; else empty."""
        return self._only

    @only.setter
    def only(self, tag: str) -> None:
        self._sort()  # what was exchanged until now is for the one before
        self._only = self.player.only = tag
        for aims in self.aims:
            aims.only = tag

    # -- runs ------------------------------------------------------------------------------------------

    async def open(self, *replicas: Replica) -> tuple[Run, Lane]:
        """A run under a fresh tag, whose events go to these replicas (default: the first shared one, which sweeps too)."""
        tag = f"r{next(_tags):06d}r"
        self.world.follow(tag)
        self._sorted.setdefault(tag, [])
        lane = await self.player.open(tag, [each.urls for each in replicas or self.pool.shared[:1]])
        run = self.runs[tag] = Run(tag, self.hands, lambda: self.settle(tag))
        return run, lane

    async def close(self, tag: str) -> None:
        """Forget a run; what it made stays in the cluster."""
        await self.player.close(tag)
        self.world.forget(tag)
        self.runs.pop(tag, None)
        self._sorted.pop(tag, None)
        self._needs.pop(tag, None)

    async def settle(self, tag: str, within: float = 0.0) -> None:
        """Wait until all changes of a run so far were announced and handled, and nothing came of that any more.

        Raises:
            NotSettled: with what is still going on.
        """
        loop = asyncio.get_running_loop()
        within = within or self._settle_s
        give_up_at = loop.time() + within
        lane, before = self.player.lanes[tag], None
        while True:
            busy = self._busy(tag, lane)
            now = len(lane.announced), len(self.exchanges(tag)), self.world.count(tag)
            if not busy and now == before:
                return
            before = None if busy else now
            if loop.time() > give_up_at:
                raise NotSettled(f"still after {within:g} s: {busy}")
            await asyncio.sleep(POLL_S / 3)

    async def announced(self, tag: str, within: float = 5.0) -> None:
        """Wait until the changes of a run so far were announced, handled or not."""
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + within
        while self._unannounced(tag) and loop.time() < give_up_at:  # noqa: ASYNC110 (asks several watches)
            await asyncio.sleep(POLL_S / 3)

    def _busy(self, tag: str, lane: Lane) -> str:
        common = self.workload.shared and self.player.rest is not None and not self.player.rest.idle
        return "events are being delivered" if not lane.idle or common else self._unannounced(tag)

    def _unannounced(self, tag: str) -> str:
        newest, gone = dict(self.runs[tag].written), set(self.runs[tag].gone)
        for exchange in self.exchanges(tag):
            if exchange.is_write and exchange.status < 300:
                plural, answer = exchange.resource, exchange.response or {}
                newest[plural] = max(newest.get(plural, 0), version_of(answer))
                gone |= {uid_gone(answer)}
        if gone & {obj["metadata"]["uid"] for obj in self.world.every(tag)}:
            return "a deletion is not seen yet"
        for plural, version in newest.items():
            if self.world.seen(plural) < version:
                return f"a change of {plural} is not seen yet"
        for number, version in self._needs.get(tag, {}).items():
            if int(self._announces[number][0]._resource_version or 0) < version:
                return f"a change of {self._announces[number][0].kind.plural} is not announced yet"
        if any(source.backlog.waiting for source in self._sources):
            return "events wait in a source"
        return ""

    def _expect(self, change: Change) -> None:
        """Note which watches of the sources will tell this change."""
        tag = tag_of(change.key.namespace, change.key.name) or self._only
        for number, (reflector, matches) in enumerate(self._announces):
            kind = (reflector.kind.api_version, reflector.kind.kind)
            if kind == (change.key.api_version, change.key.kind) and (matches(change.before) or matches(change.after)):
                needs = self._needs.setdefault(tag, {})
                needs[number] = max(needs.get(number, 0), change.resource_version)

    # -- sweeps and records ----------------------------------------------------------------------------

    async def sweep(self) -> list[int]:
        """Fire the function's schedule and wait until the sweep is answered; returns the statuses of all tries.

        Where the function has several Services, of that whose last try is the worst.
        """
        lane = self.player.lanes[SWEEP]
        lane.deliveries.clear()
        for ping in self._manifests.pings:
            await lane.send(ping_event(ping))
        tries: dict[str, list[int]] = {}
        for delivery in lane.deliveries:
            tries.setdefault(delivery.trigger, []).append(delivery.status)
        return max(tries.values(), key=lambda each: (each[-1] != 204, len(each)), default=[])

    def exchanges(self, tag: str) -> list[Exchange]:
        """What the function exchanged with the API server about a run, so far."""
        self._sort()
        return self._sorted.get(tag, [])

    def _sort(self) -> None:
        fresh: list[Exchange] = []
        for number, proxy in enumerate(self.proxies):
            recording = proxy.recording
            while self._positions[number] < len(recording):
                fresh.append(recording[self._positions[number]])
                self._positions[number] += 1
        for exchange in sorted(fresh, key=lambda each: each.at):
            self._assign(exchange)

    def _assign(self, exchange: Exchange) -> None:
        tag = exchange_tag(exchange) or self._only
        if tag in self._sorted:
            self._sorted[tag].append(exchange)
        elif DRIFTED in exchange.query.get("labelSelector", ""):
            self._give_out(exchange)
        elif exchange.is_write and exchange.changed and not self._is_common(exchange):
            self.foreign.append(exchange)
        elif not tag:
            exchange.forget()

    def _give_out(self, exchange: Exchange) -> None:
        """Give an answer to a question about what hands wrote to the runs that are in it: the question names none of them."""
        items = (exchange.response or {}).get("items") or ()
        for tag in {tag_of(item["metadata"].get("namespace") or "", item["metadata"]["name"]) for item in items}:
            if tag in self._sorted:
                self._sorted[tag].append(exchange)

    def _is_common(self, exchange: Exchange) -> bool:
        """Whether a write is about what all runs share: also Events beside the function's own ServiceAccount, and its sources."""
        regarding = (exchange.request or {}).get("regarding") if isinstance(exchange.request, dict) else None
        for kind in self.workload.shared:
            if exchange.resource == kind.plural or (regarding or {}).get("kind") == kind.kind:
                return True
        return exchange.namespace == OWN_NAMESPACE and exchange.resource in ("events", *self.workload.common)

    def _heard(self, line: Mapping[str, str]) -> None:
        if "a bug" in line.get("message", "") or "Traceback" in line.get("message", ""):
            self.logs.append((0, f"{line.get('message', '')} {line.get('error', '')[-300:]} {line.get('owner', '')}"))


def exchange_tag(exchange: Exchange) -> str:
    """The run that a request is about."""
    texts = [exchange.namespace or "", exchange.name or "", exchange.query.get("labelSelector", "")]
    body = exchange.request
    if isinstance(body, dict):
        metadata = body.get("metadata") or {}
        texts += [str(metadata.get("name") or ""), str(metadata.get("namespace") or "")]
    return tag_of(*texts)


def _matcher(selector: Selector) -> Callable[[Object | None], bool]:
    wanted = [Requirement(name, "In", frozenset({value})) for name, value in selector.match_labels.items()]
    wanted += [Requirement(each.key, each.operator, frozenset(each.values)) for each in selector.match_expressions]
    parsed = LabelSelector(tuple(wanted))

    def matches(obj: Object | None) -> bool:
        return obj is not None and parsed.matches(labels_of(obj))

    return matches
