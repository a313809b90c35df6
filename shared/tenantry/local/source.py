"""The adapter of ApiServerSource on one machine: the same document, the same events, without the holes.

One reflector per watched collection feeds one `Backlog`, which sends to the sink.  Type, subject, extensions and payload
are byte for byte what the adapter of Knative 1.22 sends.  What is different, on purpose: objects that exist at start are
announced as ``add``; what changed while the watch was away is announced after it (``delete`` with the last known state);
an event that the sink did not answer waits instead of being dropped, and stands for all later changes of its object.

As there, nothing of a source is watched until every group and version that it names is served: Knative's adapter ends, and is
started again, until then.  A kind that its group does not have (yet), and one that goes away later, costs the others nothing;
here it is watched as soon as it is served, there when the adapter starts the next time.

Where is watched: cluster-scoped kinds always in the whole cluster; namespaced kinds in the source's own namespace without
``namespaceSelector``, in the whole cluster with an empty one, else in each matching namespace, as namespaces come and go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Self
from uuid import uuid4

from tenantry.api import Api
from tenantry.api.errors import ApiError, KindNotServed
from tenantry.local.backlog import Backlog, Change, Verb
from tenantry.local.delivery import timestamp
from tenantry.local.reflector import FIRST_DELAY_S, LONGEST_DELAY_S, OnChange, Reflector
from tenantry.local.sinks import Sink
from tenantry.local.specs import SourceSpec, Watched
from tenantry.model.event import APISERVER_TYPE_PREFIX, Event
from tenantry.model.kinds import NAMESPACE, Key, Kind, Object

_log = logging.getLogger(__name__)


def _discovery(api_version: str) -> str:
    """Where the server says what a group and version has."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


class ApiServerSource:
    """Watches what a `SourceSpec` says and sends each change to a sink.

    Runs between ``async with`` and its end; ``say`` gets one line for people whenever something is lost or found again.
    ``on_unserved`` is told each group and version that nobody serves when the source starts; without it that is said, too.
    """

    def __init__(
        self,
        api: Api,
        spec: SourceSpec,
        sink: Sink,
        *,
        concurrency: int = 64,
        say: Callable[[str], None] = _log.info,
        on_unserved: Callable[[str], None] | None = None,
    ) -> None:
        self.spec = spec
        self.backlog = Backlog(sink, self._event, concurrency=concurrency, say=self._say)
        self._api = api
        self._tell = say
        self._on_unserved = on_unserved
        self._type = APISERVER_TYPE_PREFIX + ("resource." if spec.mode == "Resource" else "ref.")
        self._overrides = dict(spec.ce_overrides.extensions)
        self._tasks: dict[Reflector | None, asyncio.Task[None]] = {}
        self._starting: asyncio.Task[None] | None = None
        self._held = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()
        self._lost: dict[object, tuple[str, bool]] = {}

    async def __aenter__(self) -> Self:
        self._starting = asyncio.create_task(self._start_all())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        tasks = [*([self._starting] if self._starting else []), *self._tasks.values(), *self._closing]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.backlog.close()

    @property
    def lost(self) -> bool:
        """Whether a watch is away now."""
        return bool(self._lost)

    @property
    def relists(self) -> int:
        """How often a collection was listed, the first times included."""
        return sum(reflector.relists for reflector in self._tasks if reflector is not None)

    async def synced(self) -> None:
        """Wait until everything that existed at start is told to the backlog; `drain` waits for the sink too.

        Of a source that does not start, because nobody serves what it names, nothing is waited for; nor for objects that
        cannot be read because nobody converts them.
        """
        assert self._starting is not None
        held = asyncio.create_task(self._held.wait())
        await asyncio.wait((self._starting, held), return_when=asyncio.FIRST_COMPLETED)
        held.cancel()
        if not self._held.is_set():
            await self._watches()

    async def watches(self) -> None:
        """Wait until all of it is watched."""
        assert self._starting is not None
        await asyncio.shield(self._starting)
        await self._watches()

    async def _watches(self) -> None:
        while waiting := [each for each in self._tasks if each is not None and not each.synced.is_set()]:
            await waiting[0].synced.wait()

    async def drain(self) -> None:
        """Wait until the sink has all that was told so far."""
        await self.synced()
        await self.backlog.drain()

    async def _start_all(self) -> None:
        versions = dict.fromkeys(watched.api_version for watched in self.spec.resources)
        await asyncio.gather(*(self._until_served(version) for version in versions))
        self._held.clear()
        await asyncio.gather(*(self._start(watched) for watched in self.spec.resources))

    async def _until_served(self, api_version: str) -> None:
        """Wait until a group and version is served, whatever it has."""
        delay = FIRST_DELAY_S
        while True:
            try:
                await self._api.request("GET", _discovery(api_version))
            except KindNotServed:
                self._held.set()
                if self._on_unserved is not None:
                    self._on_unserved(api_version)
                    self._lost[api_version] = "", False  # said as soon as it is served
                else:
                    self._state(api_version, f"nothing is watched until the server serves {api_version}", False)
            except ApiError as error:
                self._state(api_version, error.message, True)
            else:
                self._state(api_version, "", False)
                return
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY_S)

    async def _start(self, watched: Watched) -> None:
        kind, scope_known = watched.served_as
        if not scope_known:
            kind = await self._discover(kind)
        selector = self.spec.namespace_selector
        if not kind.namespaced or (selector is not None and not str(selector)):
            self._reflect(kind, "", watched)
        elif selector is None:
            self._reflect(kind, self.spec.namespace, watched)
        else:
            on_change = self._follow_namespaces(kind, watched)
            reflector = Reflector(self._api, NAMESPACE, label_selector=str(selector), on_change=on_change, on_state=self._state)
            self._tasks[reflector] = asyncio.create_task(reflector.run())

    def _reflect(self, kind: Kind, namespace: str, watched: Watched) -> Reflector:
        reflector = Reflector(
            self._api,
            kind,
            namespace,
            label_selector=str(watched.selector),
            keep_objects=self.spec.mode == "Resource",
            wanted=self._is_owned if self.spec.owner else None,
            on_change=self._teller(kind),
            on_state=self._state,
        )
        self._tasks[reflector] = asyncio.create_task(reflector.run())
        return reflector

    def _teller(self, kind: Kind) -> OnChange:
        prefix, middle = f"/apis/{kind.api_version}/namespaces/", f"/{kind.plural}/"
        put = self.backlog.put

        def on_change(verb: Verb, namespace: str, name: str, obj: Object | None) -> None:
            key = Key(kind.api_version, kind.kind, namespace, name)
            put(Change(verb, key, f"{prefix}{namespace}{middle}{name}", obj))

        return on_change

    def _follow_namespaces(self, kind: Kind, watched: Watched) -> OnChange:
        reflectors: dict[str, Reflector] = {}

        def on_change(verb: Verb, _: str, name: str, __: Object | None) -> None:
            if verb == "delete":
                if (reflector := reflectors.pop(name, None)) is not None:
                    closing = asyncio.create_task(self._close(reflector))
                    self._closing.add(closing)
                    closing.add_done_callback(self._closing.discard)
            elif name not in reflectors:
                reflectors[name] = self._reflect(kind, name, watched)

        return on_change

    async def _close(self, reflector: Reflector) -> None:
        """Stop watching a namespace, after one last look: what went away with it is still told."""
        task = self._tasks[reflector]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        try:
            await reflector.relist()
        except ApiError as error:
            self._say(f"the last look at {reflector.kind.plural} in {reflector.namespace} failed: {error.message}")
        reflector.synced.set()
        del self._tasks[reflector]
        self._state(reflector, "", False)

    async def _discover(self, guess: Kind) -> Kind:
        """The kind with its scope, as soon as the server serves it under the name that Knative guesses."""
        delay = FIRST_DELAY_S
        while True:
            reason, unreachable = f"the server does not serve {guess} yet", False
            try:
                served = (await self._api.request("GET", _discovery(guess.api_version))).get("resources") or []
                for resource in served:
                    if resource["name"] == guess.plural and resource["kind"] == guess.kind:
                        self._state(guess, "", False)
                        return Kind(guess.api_version, guess.kind, guess.plural, bool(resource["namespaced"]))
                names = [str(each["name"]) for each in served if each["kind"] == guess.kind and "/" not in each["name"]]
                if names:
                    reason = f"{guess} is served as {names[0]}, but Knative looks for {guess.plural}: name it so"
            except KindNotServed:
                pass
            except ApiError as error:
                reason, unreachable = error.message, True
            self._state(guess, reason, unreachable)
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY_S)

    def _is_owned(self, obj: Object) -> bool:
        """Whether the object's controller is of the kind that ``owner`` names."""
        owner = self.spec.owner
        assert owner is not None
        return any(
            reference.get("controller") and (reference["apiVersion"], reference["kind"]) == (owner.api_version, owner.kind)
            for reference in obj["metadata"].get("ownerReferences") or ()
        )

    def _event(self, change: Change) -> Event:
        key = change.key
        payload: object = change.obj
        if payload is None:
            payload = {"kind": key.kind, "name": key.name, "apiVersion": key.api_version}
            if key.namespace:
                payload["namespace"] = key.namespace
        extensions = {
            **self._overrides,
            "kind": key.kind,
            "apiversion": key.api_version,
            "name": key.name,
            "namespace": key.namespace,  # present and empty when cluster-scoped
        }
        return Event(
            id=str(uuid4()),
            source=self._api.server,
            type=self._type + change.verb,
            subject=change.subject,
            time=timestamp(),
            datacontenttype="application/json",
            extensions=extensions,
            data=payload,
        )

    def _state(self, who: object, reason: str, unreachable: bool) -> None:
        """Say what changed: a server that is away is said once, not once per watch."""
        was_away = any(away for _, away in self._lost.values())
        before = self._lost.pop(who, None)
        if reason:
            self._lost[who] = reason, unreachable
            if unreachable and not was_away:
                self._say(f"lost the API server, trying again: {reason}")
            elif not unreachable and (reason, False) != before:
                self._say(f"{reason}; trying again")
        elif was_away and not any(away for _, away in self._lost.values()):
            self._say("the API server answers again")
        elif before is not None and not before[1]:
            self._say(f"watching {who.kind if isinstance(who, Reflector) else who}")

    def _say(self, line: str) -> None:
        self._tell(f"source {self.spec.name}: {line}")
