"""Reads a cluster for its map: each kind once, in pages, of each object only what is shown, with the rights of who asks.

What may not be read is kept with its reason, so that whoever shows the rest says it first.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field

from tenantry.api import Api, Listing
from tenantry.api.errors import KindNotServed, NotConverted, RefusedError
from tenantry.cli.config_maps import FILE, newest_installed
from tenantry.cli.progress import ReadProgress
from tenantry.cli.served import ServedKinds, discovered, served_kinds
from tenantry.cli.standing.told import here
from tenantry.model.config import Config
from tenantry.model.descriptor import OwnerMark, Tells
from tenantry.model.kinds import NAMESPACE, Kind, Object
from tenantry.model.map.seen import MapSeen, kept, kinds_of
from tenantry.model.map.system import Told
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.config import CONFIG_VARIABLE, ConfigError, load_config, parse_config
from tenantry.serving.installed import descriptors

PERSON = "tenantry-cli"


@dataclass(frozen=True, slots=True)
class Standing:
    """What was read: the lists, and what runs on one machine (none where nothing does, or the kit is missing)."""

    seen: MapSeen
    kinds: dict[Kind, Kind] = field(default_factory=dict)
    """The kinds that were read, and each in the version in which the cluster serves it."""
    versions: dict[Kind, str] = field(default_factory=dict)
    """The resource version of each list, from which a watch goes on."""
    served: ServedKinds = field(default_factory=dict)
    told: tuple[Told, ...] = ()


def tells() -> tuple[Tells, ...]:
    """The conditions of all functions."""
    return tuple(each for function in descriptors().values() for each in function.tells)


def marks() -> tuple[OwnerMark, ...]:
    """The marks of all functions."""
    return tuple(each for function in descriptors().values() for each in function.marks)


def mark_keys() -> frozenset[str]:
    """The keys of labels and annotations that say whose an object is."""
    return frozenset(each.key for each in marks())


async def read_standing(api: Api, progress: ReadProgress, within: str = "") -> Standing:
    """Everything that is shown, or of one namespace what is in it.

    Raises:
        NotFound: there is no Tenantry in the cluster.
        ApiError: the API server cannot be asked at all.
    """
    served = served_kinds(await discovered(api))
    unread: dict[str, str] = {}
    told = await here(api, unread) if not within else ()
    config = await config_of(api, told, unread, whole=not within)
    wanted, missing = {}, []
    for kind, ours in kinds_of(tells()).items():
        found = served.get((kind.group, kind.plural), kind if not kind.group else None)
        if found is not None:
            wanted[kind] = found
        elif ours:
            missing.append(kind.resource)
    keys = mark_keys()
    chosen = {kind: found for kind, found in wanted.items() if not within or kind.namespaced or kind == NAMESPACE}
    lists = await asyncio.gather(*(_read(api, kind, found, within, keys, unread, progress) for kind, found in chosen.items()))
    found_of = {kind: found for kind, found in zip(chosen, lists, strict=True) if found is not None}
    objects = {kind: found.items for kind, found in found_of.items()}
    versions = {kind: found.resource_version for kind, found in found_of.items()}
    seen = MapSeen(objects, config, unread, tuple(missing), tells(), marks())
    return Standing(seen, chosen, versions, served, told)


async def _read(
    api: Api, kind: Kind, served: Kind, within: str, keys: frozenset[str], unread: dict[str, str], progress: ReadProgress
) -> Listing | None:
    """The objects of a kind; None where they cannot be read, which is noted."""

    def small(obj: Object) -> Object:
        return kept(obj, keys)

    try:
        if within and kind == NAMESPACE:
            found = await api.get(NAMESPACE, within)
            return Listing([small(found)] if found is not None else [], "")
        return await api.list(served, within, keep=progress.counting(small))
    except KindNotServed:
        return Listing([], "")  # its CRD went a moment ago
    except (RefusedError, NotConverted) as error:
        unread[kind.resource] = error.line
        return None


async def config_of(api: Api, told: tuple[Told, ...], unread: dict[str, str], *, whole: bool = True) -> Config:
    """The configuration by which namespaces are what they are: that of ``TENANTRY_CONFIG``, of what runs here, of the cluster.

    Raises:
        ConfigError: the file that ``TENANTRY_CONFIG`` names cannot be used.
    """
    if os.environ.get(CONFIG_VARIABLE):
        return load_config()
    for each in told:
        if places := each.document.get("places"):
            return Config.model_validate(places, by_alias=True, by_name=False)
    if not whole:
        return Config()
    try:
        newest = await newest_installed(api)
    except RefusedError as error:
        unread["the configuration"] = f"{error.line}; the defaults are taken: set {CONFIG_VARIABLE} to its file"
        return Config()
    if newest is None:
        return Config()
    try:
        return parse_config(newest["data"][FILE], f"ConfigMap {SYSTEM_NAMESPACE}/{newest['metadata']['name']}")
    except ConfigError as error:
        unread["the configuration"] = f"{' '.join(str(error).split())}; the defaults are taken: set {CONFIG_VARIABLE} to its file"
        return Config()
