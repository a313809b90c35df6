"""The wiring of lists of sources: a Namespace and its list concern it alone, the index those whose list it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scope_binding.shown.observe import has_list, index_now, lists_there, observe_shown, outdated
from scope_binding.shown.plan import plan_shown
from scope_binding.shown.seen import ASKS_NOT, ShownSeen, asks, kept_home, state_of_home
from tenantry.engine.last_runs import State
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit, stage
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_INDEX, SOURCES_SHOWN
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Kind
from tenantry.serving import Settings

SHOWN_IN = "shown"
PAUSE_S = 0.1
"""A list that is written comes back as an event."""


class ShownSources(Unit):
    """The unit ``shown`` of scope-binding."""

    name = "shown"
    kinds = frozenset({NAMESPACE, CONFIG_MAP, ACCESS_INDEX})
    ours = frozenset({ACCESS_INDEX})
    states: Mapping[Kind, State] = MappingProxyType({NAMESPACE: state_of_home})

    def __init__(self) -> None:
        self._complete = ""
        """The uid of the index that was complete at last."""
        self.handlers = {
            SHOWN_IN: Handler[ShownSeen](
                observe=lambda owner, reader: observe_shown(owner.name, reader),
                plan=plan_shown,
                accepts=lambda owner: not owner.namespace and is_dns_label(owner.name),
                pause_s=PAUSE_S,
            )
        }

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The namespace that it is about, or all whose list has to change."""
        del hint
        match key.kind:
            case NAMESPACE.kind:
                if reader.told == hash(ASKS_NOT) and not await has_list(key.name, reader):
                    return []
                return [[Owner(SHOWN_IN, key.name)]]
            case CONFIG_MAP.kind:
                return [[Owner(SHOWN_IN, key.namespace)]] if key.name == SOURCES_SHOWN else []
        return await self._index_owners(reader)

    async def _index_owners(self, reader: Reader) -> Stages:
        """All whose list has to change.  An index that has become complete concerns those who asked before, too."""
        index = await index_now(reader)
        entries = AccessEntries.of(index or {})
        if index is None or not entries.complete:
            return []
        uid = index["metadata"]["uid"]
        names = await outdated(reader, entries, lacking=uid != self._complete)
        self._complete = uid
        return stage(Owner(SHOWN_IN, each) for each in names)

    def prefetch(self) -> Sequence[Prefetch]:
        """Namespaces.  Lists are read one by one: there can be many large ones."""
        return [Prefetch(NAMESPACE, keep=kept_home)]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Each namespace that asks for a list, or has one."""
        names = [each["metadata"]["name"] for each in await reader.list(NAMESPACE, keep=kept_home) if asks(each)]
        names += [each["metadata"]["namespace"] for each in await lists_there(reader)]
        return [Owner(SHOWN_IN, each) for each in dict.fromkeys(names)]


def made(settings: Settings) -> ShownSources:
    """The unit of a process."""
    del settings
    return ShownSources()
