"""Everything on one machine: identities, functions behind HTTP, sources, broker and schedule, from one folder of YAML.

The way of an event is the one of a cluster: the sources that ``triggers/`` declares watch under the source's own
identity, the broker applies each Trigger's filters and delivery, and each function runs as a process under its own
ServiceAccount.  At start every schedule fires once, because what happened before is announced to nobody in a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from tenantry.api import Api
from tenantry.local.broker import Broker
from tenantry.local.deployment import deployment_folder, event_files
from tenantry.local.described import unshipped
from tenantry.local.followed import FollowedSources
from tenantry.local.identity import Identity
from tenantry.local.install import INSTALL_MANAGER, install
from tenantry.local.jobs import RUNNER_MANAGER, JobRunner
from tenantry.local.lasting import Lasting
from tenantry.local.ledger_box import LedgerBox, ledger_file, trigger_file
from tenantry.local.letter_box import LetterBox
from tenantry.local.manifest_files import rewrite
from tenantry.local.manifests import Manifests, heard, load
from tenantry.local.phases import Phases, Tell
from tenantry.local.presence import Presence
from tenantry.local.processes import FunctionProcess, Spawn, execute
from tenantry.local.schedule import Schedule
from tenantry.local.sinks import Poster, Sink
from tenantry.local.source import ApiServerSource
from tenantry.local.specs import SourceSpec
from tenantry.local.subscription import OnDelivery
from tenantry.local.told import Sweeps, document
from tenantry.model.config import Config
from tenantry.model.kinds import API_SERVER_SOURCE, SERVICE_ACCOUNT
from tenantry.serving.config import CONFIG_VARIABLE, load_config
from tenantry.serving.dead_letters import NAME as DEAD_LETTERS
from tenantry.serving.function import SINK_VARIABLE
from tenantry.serving.installed import descriptors, service_named, services_of
from tenantry.serving.ledger import NAME as LEDGER
from tenantry.serving.signing import KEY_VARIABLE

WATCHES = 1000
"""Connections of the sources: a source that selects namespaces holds one for each kind in each namespace."""

LAST_DELIVERIES_S = 30.0
"""How long deliveries may take when an uninstallation asked us to end."""

LAST_DECISIONS_S = 2.0
"""How long the ledger is waited for when everything ends."""

OnLog = Callable[[str, Mapping[str, str]], None]


def _ignore(line: str) -> None:
    del line


def _nothing(sink: Sink) -> Sink:
    return sink


class Knative(Lasting):
    """Runs between ``async with`` and its end; afterwards nothing is left running.

    When an uninstallation asks for it everything ends earlier, and ``ended`` is set: sources and schedules first, then, when all
    that was accepted is delivered, the functions (`tenantry.local.presence`).

    Args:
        kubeconfig: an administrator's; it installs, and requests the tokens of the functions.
        folder: for tokens and kubeconfigs; made if missing, closed to others.
        config: the configuration as a mapping, or the path of its file; default: ``TENANTRY_CONFIG``.
        functions: their names; default: all that are installed.
        triggers: the folder with sources, schedules and Triggers; default: the one that we deploy.
        say: gets a line for people now and then.
        on_delivery, on_log: see every delivery, and every log line of a function as a mapping.
        watch: False leaves the sources out: events come only through `broker`.
        helm: the Helm program, where there is no node: then the Jobs of release-provisioning are run here.
        ledger: the file of decisions, where the configuration switches them on; default: one for each cluster in
            ``TENANTRY_HOME``.
        without: names of admission policies to be left out, or ``all``.
        spawn: how processes of functions are started.
        tell: gets what each phase of the start came to.  Then `say` does not hear of each object that is installed, nor of what
            nobody serves.
        instances: processes of each Service, behind one address.
        between: given the broker as a sink, what the sources send to in its place: it may lose events, or send some twice.
    """

    def __init__(
        self,
        kubeconfig: Path,
        folder: Path,
        *,
        config: Mapping[str, Any] | Path | None = None,
        functions: Iterable[str] | None = None,
        triggers: Path | None = None,
        say: Callable[[str], None] = _ignore,
        on_delivery: OnDelivery | None = None,
        on_log: OnLog | None = None,
        watch: bool = True,
        helm: Path | None = None,
        ledger: Path | None = None,
        environment: Mapping[str, str] | None = None,
        without: Collection[str] = (),
        spawn: Spawn = execute,
        tell: Tell | None = None,
        instances: int = 1,
        between: Callable[[Sink], Sink] = _nothing,
    ) -> None:
        super().__init__()
        self.functions: dict[str, FunctionProcess] = {}
        """By Service: where duties of a function run apart there is one for each (`tenantry.model.descriptor`)."""
        self.beside: list[FunctionProcess] = []
        """Further processes behind the addresses of those."""
        self.sources: list[ApiServerSource] = []
        self.followed: FollowedSources | None = None
        self.dead_letters = LetterBox(say)
        self.ledger = LedgerBox(say)
        self.on_delivery: list[OnDelivery] = [on_delivery] if on_delivery is not None else []
        self.broker: Broker
        self.broker_url = ""
        self.schedule: Schedule
        self.ended = asyncio.Event()
        self._presence: Presence | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._given_config = config
        self.names = list(functions) if functions is not None else list(descriptors())
        self._triggers = triggers
        self._say = say
        self._on_log = on_log
        self._watch = watch
        self._helm = helm
        self._ledger_file = ledger
        self._environment = dict(environment or {})
        self._without = without
        self._spawn = spawn
        self._phases = Phases(tell, say) if tell is not None else None
        self._instances = instances
        self._between = between

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._leaving is not None and self._asked_to_end():
            await self._leaving
        elif self._leaving is not None:
            self._leaving.cancel()
        await super().__aexit__(kind, error, trace)

    def _asked_to_end(self) -> bool:
        return self._presence is not None and self._presence.asked.is_set()

    async def _leave(self, presence: Presence) -> None:
        await presence.asked.wait()
        self._say("an uninstallation asks: finishing what runs")
        try:
            await self._stack.aclose()
        finally:
            self.ended.set()

    async def _deliver_the_rest(self) -> None:
        """For an uninstallation: what was accepted must not become dead letters of functions that have gone."""
        if self._asked_to_end():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.broker.drain(), LAST_DELIVERIES_S)

    async def _deliver_decisions(self) -> None:
        """When the functions have ended: what they told last is still in the broker."""
        if self.ledger.path is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.broker.drain(), LAST_DECISIONS_S)

    async def drain(self) -> None:
        """Wait until what the sources saw so far has been delivered, or an uninstallation has ended everything."""
        if self._asked_to_end():
            await self.ended.wait()
            return
        for source in self.sources:
            await source.drain()
        if self.followed is not None:
            await self.followed.drain()
        await self.broker.drain()

    async def deliver(self) -> None:
        """Wait until what the sources have told so far is delivered; for a source that may not watch yet nobody waits."""
        followed = self.followed.sources.values() if self.followed is not None else ()
        for source in (*self.sources, *followed):
            await source.backlog.drain()
        await self.broker.drain()

    async def sweep(self, function: str) -> None:
        """Fire a function's schedule now and wait until all of its Services have swept."""
        await self.schedule.fire_now(f"{service_named(function).function}-sweep")
        await self.broker.drain()

    async def _start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        config_path = self._config_path()
        config = self._config = load_config(config_path)
        manifests = self._load(config)
        admin = await self._stack.enter_async_context(
            await Api.connect(field_manager=INSTALL_MANAGER, kubeconfig=self._kubeconfig)
        )
        phases = self._phases
        await install(admin, self.names, config, phases.install if phases else self._say, without=self._without)
        if phases:
            phases.installed()
        self._presence = await self._stack.enter_async_context(Presence(admin))
        poster = await self._stack.enter_async_context(Poster())
        self._stack.push_async_callback(self.dead_letters.close)
        await self.dead_letters.open(await self._identity(DEAD_LETTERS, admin))
        served = self._served(manifests)
        self._sweeps = Sweeps({each.name: each.subscriber.ref.name for each in served if each.subscriber.ref is not None})
        environment = dict(self._environment)
        if config_path is not None:
            environment[CONFIG_VARIABLE] = str(config_path.absolute())
        if config.decisions.enabled:
            self._stack.push_async_callback(self.ledger.close)
            await self.ledger.open(self._ledger_file or await ledger_file(admin), self._folder, config)
            environment[KEY_VARIABLE] = str(self.ledger.key.absolute())
        for service in services_of(self.names):
            self.functions[service.name] = await self._make_function(service.name, admin, environment)
        self.broker = await self._stack.enter_async_context(
            Broker(
                manifests.brokers[0],
                served,
                addresses=self._addresses(manifests),
                poster=poster,
                on_delivery=self._delivered,
                say=self._say,
                tell=self._status,
                project_label=config.project_label,
            )
        )
        self.broker_url = await self.broker.serve()
        ledger = str(self.ledger.path.absolute()) if self.ledger.path else ""
        await self._presence.tell(self.broker_url, str(config_path.absolute()) if config_path else "", ledger)
        self._stack.push_async_callback(self._deliver_decisions)
        await self._start_functions()
        if phases:
            phases.started(len(self.functions), len(self.names))
        self._stack.push_async_callback(self._deliver_the_rest)
        self.schedule = await self._stack.enter_async_context(
            Schedule(self._pings(manifests), lambda _: self.broker.accept, say=self._say)
        )
        if self._helm is not None:
            await self._stack.enter_async_context(self._runner(self._helm, config))
        if self._watch:
            await self._start_sources(manifests, admin)
            if phases:
                phases.watched(len(self.sources))
        for ping in self._pings(manifests):
            await self.schedule.fire_now(ping.name)
        self._leaving = asyncio.create_task(self._leave(self._presence))

    def _config_path(self) -> Path | None:
        given = self._given_config
        if isinstance(given, Path):
            return given
        if given is None:
            named = os.environ.get(CONFIG_VARIABLE)
            return Path(named) if named else None
        path = self._folder / "tenantry.yaml"
        path.write_text(yaml.safe_dump(dict(given), sort_keys=False))
        return path

    def _load(self, config: Config) -> Manifests:
        knative = deployment_folder("knative")
        # A source starts when somebody serves its kinds, those of OLM included: a cluster adds it, and what it wakes, with OLM.
        triggers = [self._triggers] if self._triggers else event_files()
        triggers += [trigger_file()] if config.decisions.enabled else []
        if found := [each for each in unshipped() if each.name in self.names]:
            rewrite(found, self._folder / "described")
            triggers += event_files(self._folder / "described")
        return load(knative / "base" / "broker.yaml", *triggers)

    def _served(self, manifests: Manifests) -> list[Any]:
        known = {*(service.name for service in services_of(self.names)), LEDGER}
        return [
            trigger for trigger in manifests.triggers if trigger.subscriber.ref is None or trigger.subscriber.ref.name in known
        ]

    def _pings(self, manifests: Manifests) -> list[Any]:
        known = set(self.names)
        return [ping for ping in manifests.pings if ping.ce_overrides.extensions.get("resync", "") in known]

    def _addresses(self, manifests: Manifests) -> dict[str, str]:
        found = {f"Service/{name}": function.url for name, function in self.functions.items()}
        found[f"Service/{LEDGER}"] = self.ledger.url
        sinks = [trigger.delivery.dead_letter_sink for trigger in manifests.triggers if trigger.delivery is not None]
        sinks += [broker.delivery.dead_letter_sink for broker in manifests.brokers if broker.delivery is not None]
        for sink in sinks:
            if sink is not None and sink.ref is not None:
                found[f"{sink.ref.kind}/{sink.ref.name}"] = self.dead_letters.url
        return found

    async def _make_function(self, name: str, admin: Api, environment: Mapping[str, str]) -> FunctionProcess:
        kubeconfig = await self._identity(name, admin)

        def on_log(line: Mapping[str, str]) -> None:
            if self._on_log is not None:
                self._on_log(name, line)

        def made(port: int = 0) -> FunctionProcess:
            function = FunctionProcess(
                name,
                kubeconfig,
                say=self._say,
                environment=environment,
                on_log=on_log,
                spawn=self._spawn,
                several=self._instances > 1,
                port=port,
            )
            self._stack.callback(function.close)
            return function

        first = made()
        self.beside += [made(first.port) for _ in range(1, self._instances)]
        return first

    async def _identity(self, service_account: str, admin: Api) -> Path:
        identity = Identity(admin, service_account, self._folder, self._kubeconfig, self._say)
        path = await identity.open()
        self._stack.push_async_callback(identity.close)
        return path

    @contextlib.asynccontextmanager
    async def _runner(self, helm: Path, config: Config) -> AsyncIterator[None]:
        namespace = config.helm_project_operator.system_namespace
        api = await Api.connect(field_manager=RUNNER_MANAGER, kubeconfig=self._kubeconfig)
        async with api, JobRunner(api, namespace, helm, self._folder, self._say):
            yield

    async def _start_functions(self) -> None:
        every = (*self.functions.values(), *self.beside)
        for function in every:
            function.environment[SINK_VARIABLE] = self.broker_url
            self._stack.push_async_callback(function.stop)
        await asyncio.gather(*(function.start() for function in every))

    async def _start_sources(self, manifests: Manifests, admin: Api) -> None:
        apis: dict[str, Api] = {}
        sink = self._between(self.broker.accept)

        async def start(spec: SourceSpec, on_unserved: Callable[[str], None] | None = None) -> ApiServerSource:
            account = spec.service_account_name
            if account not in apis:
                kubeconfig = await self._identity(account, admin)
                apis[account] = await self._stack.enter_async_context(
                    await Api.connect(field_manager="tenantry-source", kubeconfig=kubeconfig, concurrency=WATCHES)
                )
            return await ApiServerSource(apis[account], spec, sink, say=self._say, on_unserved=on_unserved).__aenter__()

        # Asked before anything is watched: a cluster that is full keeps this process busy with what it has for a while.
        follows = await admin.served(API_SERVER_SOURCE.api_version, API_SERVER_SOURCE.kind) is not None
        specs = [each for each in heard(manifests.sources, self._served(manifests)) if await self._has_account(each, admin)]
        for spec in specs:
            source = await start(spec, self._phases.unserved.add if self._phases else None)
            self._stack.push_async_exit(source.__aexit__)
            self.sources.append(source)
        for source in self.sources:
            await source.synced()
        if follows:
            self.followed = await self._stack.enter_async_context(FollowedSources(admin, start, self._say))

    async def _has_account(self, spec: SourceSpec, admin: Api) -> bool:
        """Whether the identity of a source is installed: one that belongs to a function comes with the function."""
        return await admin.get(SERVICE_ACCOUNT, spec.service_account_name, spec.namespace) is not None

    def _status(self) -> dict[str, Any]:
        return document(self.functions, self._sweeps, self.broker, self.sources, self._config)

    def _delivered(self, trigger: str, event: Any, status: int, attempt: int, seconds: float) -> None:
        self._sweeps.delivered(trigger, event, status, attempt, seconds)
        for observer in self.on_delivery:
            observer(trigger, event, status, attempt, seconds)
