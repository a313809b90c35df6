"""Reads for lists of sources."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from scope_binding.shown.seen import Granted, ShownSeen, asks, kept_home
from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT, SHOWN_MARK, SOURCES_SHOWN
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Object


async def observe_shown(namespace: str, reader: Reader) -> ShownSeen:
    """Read a Namespace, its list, and what is granted where it asks for one."""
    home, live = await asyncio.gather(reader.get(NAMESPACE, namespace), reader.get(CONFIG_MAP, SOURCES_SHOWN, namespace))
    index = await index_now(reader) if asks(home) else None
    return ShownSeen(home, AccessEntries.of(index) if index is not None else None, live)


async def has_list(namespace: str, reader: Reader) -> bool:
    """Whether a Namespace has a list: while few have one, they are asked for together."""
    there = await reader.named_shared(CONFIG_MAP, SOURCES_SHOWN)
    if there is None:
        return await reader.get(CONFIG_MAP, SOURCES_SHOWN, namespace) is not None
    return any(each["metadata"]["namespace"] == namespace for each in there)


async def index_now(reader: Reader) -> Object | None:
    """The index, or None where there is none."""
    return await if_served(ACCESS_INDEX, reader, reader.get_shared(ACCESS_INDEX, DEFAULT))


async def lists_there(reader: Reader) -> list[Object]:
    """The ConfigMaps with lists.  Read by their name: the function has no right to read any other."""
    return await reader.list(CONFIG_MAP, labels={SHOWN_MARK: ""}, name=SOURCES_SHOWN, keep=_kept_list)


def _kept_list(config_map: Object) -> Object:
    """Of a list where it is, and a number for what it has."""
    metadata = {part: config_map["metadata"][part] for part in ("name", "namespace", "labels")}
    data = config_map.get("data") or {}
    return {"apiVersion": "v1", "kind": CONFIG_MAP.kind, "metadata": metadata, "hash": hash_of(data)}


def hash_of(data: dict[str, str]) -> int:
    """A number that two equal lists share in one process."""
    return hash((data.get("read", ""), data.get("write", "")))


async def outdated(reader: Reader, entries: AccessEntries, *, lacking: bool) -> Sequence[str]:
    """The namespaces whose list is not what the index grants them; with ``lacking`` also those that ask and have none."""
    there = {each["metadata"]["namespace"]: each["hash"] for each in await lists_there(reader)}
    if not there and not lacking:
        return ()
    homes = {each["metadata"]["name"]: each for each in await reader.list(NAMESPACE, keep=kept_home)}
    granted = Granted(entries)

    def is_outdated(name: str, home: Object) -> bool:
        if name not in there:
            return lacking and asks(home)
        return not asks(home) or hash_of(granted.to(home)) != there[name]

    return [name for name, home in homes.items() if is_outdated(name, home)]
