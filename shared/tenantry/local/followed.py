"""Sources that functions make while everything runs: ApiServerSource objects, played as they come, change and go.

In a cluster Knative's controller does this, and says in the status when the source is ready.  Here a reflector watches the
ApiServerSources of our namespace, and each is run by the twin on one machine under the identity that it names.  A changed one has
listed everything before the old one is stopped, so that no deletion is missed; what both announce is announced twice, which costs
a read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from tenantry.api import Api
from tenantry.api.errors import ApiError
from tenantry.local.backlog import Verb
from tenantry.local.manifests import ManifestError, spec_of
from tenantry.local.reflector import Reflector
from tenantry.local.source import ApiServerSource
from tenantry.local.specs import SourceSpec
from tenantry.model.kinds import API_SERVER_SOURCE, CUSTOM_RESOURCE_DEFINITION, Kind, Object
from tenantry.model.names import SYSTEM_NAMESPACE

Start = Callable[[SourceSpec], Awaitable[ApiServerSource]]
HANDOVER_S = 5.0
"""How long an old source waits for the one after it: a kind that is not served or not allowed never lists."""


def stand_in(kind: Kind) -> Object:
    """The CRD of a kind that takes anything, for a system that is not installed."""
    group, _, version = kind.api_version.partition("/")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    return {
        "apiVersion": CUSTOM_RESOURCE_DEFINITION.api_version,
        "kind": CUSTOM_RESOURCE_DEFINITION.kind,
        "metadata": {"name": f"{kind.plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": names,
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


STAND_IN = stand_in(API_SERVER_SOURCE)
"""The kind ApiServerSource where there is no Knative: its objects are only looked at here, and told that they are ready."""
for _version in STAND_IN["spec"]["versions"]:
    _version["subresources"] = {"status": {}}


class FollowedSources:
    """Plays the ApiServerSources of our namespace.  Runs between ``async with`` and its end.

    ``start`` makes a running source of a spec; ``say`` gets a line for people.
    """

    def __init__(self, api: Api, start: Start, say: Callable[[str], None]) -> None:
        self.sources: dict[str, ApiServerSource] = {}
        self._api = api
        self._start = start
        self._say = say
        self._telling: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[str, Object | None] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._reflector = Reflector(
            api, API_SERVER_SOURCE, SYSTEM_NAMESPACE, keep_objects=True, on_change=self._changed, on_state=lambda *_: None
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._reflector.run()), asyncio.create_task(self._follow())]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        tasks = [*self._tasks, *self._telling.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for source in self.sources.values():
            await source.__aexit__(None, None, None)
        self.sources.clear()

    async def drain(self) -> None:
        """Wait until what was made so far is played and has told what it saw."""
        if not self._reflector.synced.is_set():
            return
        await self._idle.wait()
        for source in list(self.sources.values()):
            await source.drain()

    def _changed(self, verb: Verb, namespace: str, name: str, obj: Object | None) -> None:
        del namespace
        self._wanted[name] = None if verb == "delete" else obj
        self._idle.clear()
        self._wake.set()

    async def _follow(self) -> None:
        while True:
            self._wake.clear()
            wanted, self._wanted = self._wanted, {}
            for name, obj in wanted.items():
                await self._play(name, obj)
            if not self._wanted:
                self._idle.set()
                await self._wake.wait()

    async def _play(self, name: str, obj: Object | None) -> None:
        running = self.sources.get(name)
        spec = None if obj is None else self._spec(name, obj)
        if obj is not None and (spec is None or (running is not None and running.spec == spec)):
            return
        if spec is not None:
            try:
                self.sources[name] = await self._start(spec)
            except Exception as error:
                self._say(f"source {name}: cannot start: {error}")
                return
        else:
            self.sources.pop(name, None)
        if running is not None:
            if spec is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.sources[name].synced(), HANDOVER_S)
            await running.__aexit__(None, None, None)
        if (before := self._telling.pop(name, None)) is not None:
            before.cancel()
        if spec is not None and obj is not None:
            self._telling[name] = asyncio.create_task(self._tell(self.sources[name], obj))
        watched = ", ".join(each.kind for each in spec.resources) if spec is not None else "nothing"
        self._say(f"source {name}: watches {watched}")

    async def _tell(self, source: ApiServerSource, obj: Object) -> None:
        """Say in the status that this generation is watched.  Where Knative says so itself its word counts."""
        await source.watches()
        metadata = obj["metadata"]
        body = {
            "apiVersion": API_SERVER_SOURCE.api_version,
            "kind": API_SERVER_SOURCE.kind,
            "metadata": {part: metadata[part] for part in ("name", "namespace", "uid")},
            "status": {
                "observedGeneration": metadata["generation"],
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        try:
            await self._api.apply(API_SERVER_SOURCE, body, force=False, subresource="status")
        except ApiError as error:
            self._say(f"source {source.spec.name}: its status cannot be written: {error.message}")

    def _spec(self, name: str, obj: Object) -> SourceSpec | None:
        plain: dict[str, Any] = {
            "apiVersion": obj.get("apiVersion", API_SERVER_SOURCE.api_version),
            "kind": obj.get("kind", API_SERVER_SOURCE.kind),
            "metadata": {part: obj["metadata"][part] for part in ("name", "namespace")},
            "spec": obj.get("spec") or {},
        }
        try:
            spec = spec_of(f"ApiServerSource {name}", plain)
        except ManifestError as error:
            self._say(f"source {name}: {error}")
            return None
        return spec if isinstance(spec, SourceSpec) else None
