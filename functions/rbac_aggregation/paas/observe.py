"""Reads for the rights of a Paas, or for what of them lies in one namespace.

The Paas is read first: what namespace-registration has said on it is then no newer than the namespaces that are read.  Lists are
by label, and what they find is proven (2.12); what lacks the label is looked for where a binding is wanted and not found, and by
a sweep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace

from rbac_aggregation.paas.argo import argo_namespace, has_argo, policy_name
from rbac_aggregation.paas.claims import (
    Claimants,
    GroupClaimant,
    KnownNames,
    claims_of,
    is_behind,
    kept_of_paas,
    names_in,
    to_be_settled,
)
from rbac_aggregation.paas.kept import kept_subjects
from rbac_aggregation.paas.seen import Policy, Seen, bound_roles, is_for_accounts, is_left, ours_among, rights_of, version_of
from tenantry.engine.paas import live_config
from tenantry.engine.reader import Fingerprint, Reader
from tenantry.engine.reads import by_name, if_served, joined
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    NAMESPACE,
    ROLE_BINDING,
    Object,
    annotations_of,
    finalizers_of,
    key_of,
    labels_of,
)
from tenantry.model.paas.config import PaasConfig, config_of
from tenantry.model.paas.declared import Paas, PaasNs, paas_ns_of, paas_of
from tenantry.model.paas.groups import names_of
from tenantry.model.paas.names import (
    ARGO_CD,
    ARGO_POLICY,
    ASKED_BY,
    GROUP,
    MANAGED_BY_PAAS,
    NAMESPACES_PART,
    PAAS,
    PAAS_NS,
    PAAS_UID,
    RIGHTS_FINALIZER,
    RIGHTS_PART,
    WARNINGS,
)
from tenantry.model.paas.ours import is_ours, uid_of
from tenantry.model.paas.places import applying, held_by, spec_places

_MISSING = "ClusterRole "
_CLAIMANTS = Claimants()


async def read_paas(name: str, reader: Reader, *, verify: Fingerprint | None = None) -> Object | None:
    """A Paas by name; None, too, where its CRD is gone."""
    return await if_served(PAAS, reader, reader.get(PAAS, name, verify=verify))


async def every_paas(reader: Reader) -> list[Object]:
    """All Paas, with what of each decides about names."""
    return await if_served(PAAS, reader, reader.list_shared(PAAS, keep=kept_of_paas)) or []


async def observe_paas(name: str, part: str, reader: Reader, look_in: Collection[str] = ()) -> Seen:
    """Read a Paas and everything that is made for it; with ``part`` what concerns that namespace.

    ``look_in`` are namespaces in which a sweep saw something odd (`Seen.odd`).
    """
    live = await read_paas(name, reader, verify=version_of)
    if live is None:
        seen = Seen(name, None, orphans=await _orphans(name, "", reader), part=part)
        for each in seen.orphans:
            reader.knows_only_part(GROUP, each["metadata"]["name"])  # another Paas may call a group so
        return seen
    paas = paas_of(live)
    if is_new(paas, reader):
        config = await _config(reader)
        bindings: list[Object] = []
        held, (served, groups) = await asyncio.gather(_named(paas, config, reader), _groups(paas, part, reader))
        reader.knows_only_part(PAAS, name)  # what its lists would have shown is looked at for the event of the finalizer
    else:
        config, held, bindings, (served, groups) = await asyncio.gather(
            _config(reader), _held(paas, part, reader), _bindings(name, part, reader), _groups(paas, part, reader)
        )
    asked = await _asked(held, look_in, reader)
    spec = spec_places(paas, config)
    places = {
        each: place
        for each, namespace in held.items()
        if not paas.deleted and part in ("", each) and (place := applying(paas, spec, namespace, asked, held)) is not None
    }
    seen = Seen(
        name,
        paas,
        config,
        wanted=spec,
        held=held,
        places=places,
        asked=asked,
        groups=groups,
        served=served,
        bindings=ours_among(bindings, paas),
        part=part,
    )
    seen = replace(seen, claims=claims_of(paas, config, await _names(seen, paas, reader)))
    seen = await _with_unlabelled(seen, paas, look_in, reader)
    _of_others_too(seen, bindings, reader)
    missing, policy, orphans = await asyncio.gather(
        _missing(seen, paas, reader), _policy(seen, paas, reader), _strangers(seen, bindings, reader)
    )
    return replace(seen, missing=missing, policy=policy, orphans=orphans)


def _of_others_too(seen: Seen, listed: Iterable[Object], reader: Reader) -> None:
    """What was read and is not of this Paas alone: its events are looked at, whatever this run knows of it."""
    own = {key_of(each) for each in seen.bindings if each["metadata"]["namespace"] in seen.held}
    for each in listed:
        if key_of(each) not in own:
            reader.knows_only_part(ROLE_BINDING, each["metadata"]["name"], each["metadata"]["namespace"])
    for key in [each for each in reader.noted or () if each.kind == NAMESPACE.kind and each.name not in seen.held]:
        reader.knows_only_part(NAMESPACE, key.name)
    uid = seen.paas.uid if seen.paas is not None else ""
    for name, live in seen.groups.items():
        if live is None or uid_of(live) != uid:
            reader.knows_only_part(GROUP, name)


def is_new(paas: Paas, reader: Reader) -> bool:
    """Whether nobody has made or told anything of a Paas yet; a sweep looks all the same, and so does who was refused a name."""
    told = any(find_condition(paas.live, part) is not None for part in (NAMESPACES_PART, RIGHTS_PART))
    first = reader.live and bool(reader.causes) and not reader.attempt
    return first and not told and not paas.deleted and RIGHTS_FINALIZER not in finalizers_of(paas.live)


# -- what is declared --------------------------------------------------------------------------------------


async def _config(reader: Reader) -> PaasConfig | None:
    def version(live: Object | None) -> Hashable:
        return live is not None and (live["metadata"]["uid"], live["metadata"].get("generation"))

    async def again(fresh: Reader) -> Hashable:
        return version(await live_config(fresh))

    live = await live_config(reader)
    reader.depends_on(again, version(live))
    return config_of(live) if live is not None else None


async def _held(paas: Paas, part: str, reader: Reader) -> dict[str, Object]:
    """The namespaces that are its own; of a part that one, and those through which a PaasNS leads to it."""
    if part:
        return await _chain(paas, part, reader)
    found = await reader.list(NAMESPACE, labels={MANAGED_BY_PAAS: paas.name})
    held = {each["metadata"]["name"]: each for each in found if held_by(paas, each)}

    async def again(fresh: Reader) -> Hashable:
        now = await fresh.list(NAMESPACE, labels={MANAGED_BY_PAAS: paas.name})
        return frozenset(each["metadata"]["uid"] for each in now if held_by(paas, each))

    reader.depends_on(again, frozenset(each["metadata"]["uid"] for each in held.values()))
    return held


async def _named(paas: Paas, config: PaasConfig | None, reader: Reader) -> dict[str, Object]:
    """The namespaces of its spec that are its own, each by its name: a list of a kind at rest waits for up to 100 ms."""
    found = await by_name(NAMESPACE, spec_places(paas, config), reader, verify=lambda live: held_by(paas, live))
    return {name: each for name, each in found.items() if each is not None and held_by(paas, each)}


async def _chain(paas: Paas, name: str, reader: Reader) -> dict[str, Object]:
    held: dict[str, Object] = {}
    while name and name not in held:
        found = await reader.get(NAMESPACE, name, verify=lambda live: held_by(paas, live))
        if found is None or not held_by(paas, found):
            break
        held[name] = found
        name = annotations_of(found).get(ASKED_BY, "").partition("/")[0]
    return held


async def _asked(held: Mapping[str, Object], look_in: Collection[str], reader: Reader) -> dict[str, PaasNs]:
    """The PaasNS that namespaces were made for, and those that woke the run; in a sweep all that live there."""
    keys = {annotations_of(each).get(ASKED_BY, "") for each in held.values()}
    keys |= {f"{key.namespace}/{key.name}" for key in reader.causes if key.kind == PAAS_NS.kind and key.namespace in held}
    named = [tuple(each.split("/")) for each in sorted(keys) if each.count("/") == 1]
    reads = (reader.get(PAAS_NS, name, namespace, verify=version_of) for namespace, name in named)
    found = await asyncio.gather(*(if_served(PAAS_NS, reader, each) for each in reads))
    for each in sorted(set(look_in if reader.live else held) & set(held)):
        found += await if_served(PAAS_NS, reader, reader.list(PAAS_NS, each)) or []
    asked = (paas_ns_of(each) for each in found if each is not None)
    return {each.key: each for each in asked}


# -- what is made ------------------------------------------------------------------------------------------


async def _bindings(name: str, part: str, reader: Reader) -> list[Object]:
    return await reader.list(ROLE_BINDING, part, labels={MANAGED_BY_PAAS: name})


async def _with_unlabelled(seen: Seen, paas: Paas, look_in: Collection[str], reader: Reader) -> Seen:
    """The same with bindings that lack the label, and with the keys of others' that have a name of ours.

    They are looked for where a sweep saw some, and after a binding could not be made; by a sweep everywhere.
    """
    there = {key_of(each) for each in seen.bindings}
    wanted = rights_of(seen)
    places = set(look_in) & set(seen.held) if reader.live else set(seen.held)
    if reader.raced:
        places |= {key.namespace for key in wanted if key not in there}
    listed = await joined(reader.list(ROLE_BINDING, each) for each in sorted(places))
    more = [each for each in ours_among(listed, paas) if key_of(each) not in there]
    foreign = {key_of(each) for each in listed if not is_ours(each, paas.name, paas.uid)} & set(wanted)
    left = (each.namespace for each in seen.asked.values() if is_left(seen, each))
    odd = frozenset({*(each["metadata"]["namespace"] for each in more), *(key.namespace for key in foreign), *left})
    return replace(seen, bindings=(*seen.bindings, *more), foreign=frozenset(foreign), odd=odd)


async def _groups(paas: Paas, part: str, reader: Reader) -> tuple[bool, dict[str, Object | None]]:
    """Whether Groups are served, and those of the Paas, by name: its own, and those that its groups are called."""
    if await reader.served(GROUP.api_version, GROUP.kind) is None:
        return False, {}
    named = [each for each in names_of(paas).values() if not each.problem]
    ours = (
        []
        if part or is_new(paas, reader)
        else await if_served(GROUP, reader, reader.list(GROUP, labels={MANAGED_BY_PAAS: paas.name}))
    )
    if ours is None:
        return False, {}
    found: dict[str, Object | None] = {each["metadata"]["name"]: each for each in ours}
    generated = {each.name for each in named if each.generated} - set(found)
    queries = {each.name for each in named if not each.generated} - set(found) - generated

    def whose(live: Object | None) -> Hashable:
        return uid_of(live) if live is not None else ""

    both = asyncio.gather(by_name(GROUP, sorted(generated), reader), by_name(GROUP, sorted(queries), reader, verify=whose))
    others = await if_served(GROUP, reader, both)
    if others is None:
        return False, {}
    for each in others:
        found |= each
    return True, found


async def _names(seen: Seen, paas: Paas, reader: Reader) -> KnownNames:
    """What decides about names; others are asked only about those that nobody has."""
    names = KnownNames(seen.served, seen.groups)
    open_names = frozenset() if paas.deleted else to_be_settled(paas, seen.config, names)
    if not open_names:
        return names

    async def decided(fresh: Reader) -> Hashable:
        return await _others(paas, open_names, fresh)

    async def missing(fresh: Reader) -> Hashable:
        found = await by_name(GROUP, sorted(open_names), fresh)
        return frozenset(name for name, live in found.items() if live is None)

    others, reserved = await asyncio.gather(_others(paas, open_names, reader), _reserved(seen.served, open_names, reader))
    if seen.served:
        reader.depends_on(missing, open_names)  # what is made now is bound in the next look, when it is proven to be ours
    else:
        reader.depends_on(decided, others)
    return replace(names, others=others, reserved=reserved)


async def _others(paas: Paas, names: Collection[str], reader: Reader) -> tuple[GroupClaimant, ...]:
    """The other Paas that one of these names concerns."""
    every = [each for each in await every_paas(reader) if each["metadata"]["name"] != paas.name]
    behind = [each["metadata"]["name"] for each in every if is_behind(each)]
    read = await asyncio.gather(*(reader.list(ROLE_BINDING, labels={MANAGED_BY_PAAS: name}) for name in behind))
    bound = dict(zip(behind, read, strict=True))
    found = (_CLAIMANTS.of(each, bound.get(each["metadata"]["name"], ())) for each in every)
    wanted = frozenset(names)
    concerned = (
        replace(each, generates=each.generates & wanted, queries=each.queries & wanted, holds=each.holds & wanted)
        for each in found
    )
    return tuple(each for each in concerned if each.generates or each.queries or each.holds)


async def _reserved(served: bool, names: Collection[str], reader: Reader) -> frozenset[str]:
    """Those of these names that a binding gives rights in the whole cluster."""
    if not served:
        return frozenset()
    bindings = await reader.list_shared(CLUSTER_ROLE_BINDING, keep=kept_subjects)
    return frozenset(name for each in bindings for name in names_in(each)) & frozenset(names)


# -- what is told ------------------------------------------------------------------------------------------


async def _missing(seen: Seen, paas: Paas, reader: Reader) -> frozenset[str]:
    """ClusterRoles that do not exist, of those that are newly bound or were missing; a sweep looks for all (p-112)."""
    roles = bound_roles(seen)
    if seen.part:
        return frozenset()
    if reader.causes:
        there = {key_of(each) for each in seen.bindings}
        told = (find_condition(paas.live, f"{RIGHTS_PART}{WARNINGS}") or {}).get("message") or ""
        new = {wanted.role for key, wanted in rights_of(seen).items() if key not in there}
        roles = frozenset(role for role in roles if role in new or f"{_MISSING}{role} " in told)
    found = await asyncio.gather(*(reader.get_shared(CLUSTER_ROLE, role) for role in sorted(roles)))
    return frozenset(role for role, live in zip(sorted(roles), found, strict=True) if live is None)


async def _policy(seen: Seen, paas: Paas, reader: Reader) -> Policy | None:
    """The object with the policy of Argo CD; without a policy to write only a sweep, and a deletion, looks for one."""
    namespace = argo_namespace(paas)
    configured = seen.config is not None and seen.config.argo_permissions is not None
    if seen.part or namespace not in seen.held or not (configured or paas.deleted or not reader.causes):
        return None
    if not has_argo(paas) and not paas.deleted:
        return None
    operated = await reader.served(ARGO_CD.api_version, ARGO_CD.kind) is not None
    policy = Policy(namespace, operated, None)
    kind, name = (ARGO_CD, policy_name(replace(seen, policy=policy))) if operated else (CONFIG_MAP, ARGO_POLICY)
    return policy._replace(live=await reader.get(kind, name, namespace)) if name else None


# -- what others left --------------------------------------------------------------------------------------


async def _strangers(seen: Seen, bindings: Iterable[Object], reader: Reader) -> tuple[Object, ...]:
    """What is labelled for this Paas and marked for another one that exists no more; mostly nothing, and no read."""
    if seen.part or seen.paas is None:
        return ()
    groups = (each for each in seen.groups.values() if each is not None)
    return await _gone((*bindings, *groups), seen.name, seen.paas.uid, reader)


async def _orphans(name: str, uid: str, reader: Reader) -> tuple[Object, ...]:
    """What was made for a Paas that exists no more."""
    found = list(await reader.list(ROLE_BINDING, labels={MANAGED_BY_PAAS: name}))
    if await reader.served(GROUP.api_version, GROUP.kind) is not None:
        found += await if_served(GROUP, reader, reader.list(GROUP, labels={MANAGED_BY_PAAS: name})) or []
    return await _gone(found, name, uid, reader)


async def _gone(found: Iterable[Object], name: str, uid: str, reader: Reader) -> tuple[Object, ...]:
    """Those that are marked for a Paas that exists no more; the mark is ours, not a reference that others write."""
    left = [each for each in found if labels_of(each).get(MANAGED_BY_PAAS) == name and not is_for_accounts(each)]
    left = [each for each in left if annotations_of(each).get(PAAS_UID, uid) != uid]
    if not left:
        return ()
    alive = {each["metadata"]["uid"] for each in await every_paas(reader)}
    return tuple(each for each in left if annotations_of(each)[PAAS_UID] not in alive)
