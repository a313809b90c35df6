"""The wiring of sources: whatever changes what is locked concerns the one owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lock_enforcement.helm import release_in_name
from lock_enforcement.index import Index, Locked, declaration_of
from lock_enforcement.locks import helm_releases_of
from lock_enforcement.sources.observe import observe_sources
from lock_enforcement.sources.plan import SourcesSeen, plan_sources
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit
from tenantry.model.config import Config
from tenantry.model.kinds import CONFIG_MAP, HELM_RELEASE, SECRET, Key
from tenantry.serving import Settings

OWNER = Owner("sources", "locked")
PAUSE_S = 0.5
"""Many releases that come at once are few changes of what is watched."""


class Sources(Unit):
    """The unit ``sources`` of lock-enforcement."""

    name = "sources"
    kinds = frozenset({HELM_RELEASE, SECRET, CONFIG_MAP})

    def __init__(self, config: Config, index: Index) -> None:
        self._config = config
        self._index = index
        self._observed = Locked()
        self._watched = Locked()
        """What the last run that succeeded had watched: a hint."""
        self.handlers = {
            OWNER.type: Handler[SourcesSeen](
                observe=self._observe,
                plan=plan_sources,
                accepts=OWNER.__eq__,
                pause_s=PAUSE_S,
                ended=self._ended,
            )
        }

    async def _observe(self, _: Owner, reader: Reader) -> SourcesSeen:
        seen, locked = await observe_sources(self._index, reader)
        if reader.live:
            self._observed = locked
        return seen

    def _ended(self, _: Owner, succeeded: bool) -> None:
        if succeeded:
            self._watched = self._observed

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The one owner, for what may change what is watched; a HelmRelease whose declaration was seen to it does not."""
        del hint
        system = self._config.helm_project_operator.system_namespace
        if key.kind != HELM_RELEASE.kind:
            is_record = release_in_name(key.name) != ""
            return [[OWNER]] if is_record and helm_releases_of(key, await reader.list_shared(HELM_RELEASE, system)) else []
        if key.namespace != system:
            return []
        live = await reader.get(HELM_RELEASE, key.name, key.namespace)
        return [[OWNER]] if declaration_of(live) != self._watched.declared.get(key.name) else []

    def prefetch(self) -> Sequence[Prefetch]:
        """What the index is made from."""
        return self._index.lists()

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """The one owner."""
        del reader
        return [OWNER]


def made(settings: Settings) -> Sources:
    """The unit of a process; the index is that of the locks, too."""
    return Sources(settings.config, settings.common(Index))
