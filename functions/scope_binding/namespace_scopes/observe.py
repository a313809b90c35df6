"""Reads for NamespaceScopes: everything around the NamespaceScopes of one namespace.

Consents, and what we keep in members, are read by lists over all namespaces, one for each label or name, so the number
of requests does not grow with the number of members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from scope_binding.namespace_scopes.accounts import accounts_of, bound_roles, sources_of
from scope_binding.namespace_scopes.config_map import abandoned, sharing, shortened
from scope_binding.namespace_scopes.declared import Scope, declared, is_namespace_name
from scope_binding.namespace_scopes.names import FROM_LABEL, LIST_LABEL, OLM_OWNER_NAMESPACE, PENDING
from scope_binding.namespace_scopes.others import growing, naming
from scope_binding.namespace_scopes.projection import Observed, Projection, projected, stale
from scope_binding.namespace_scopes.rights import foreign
from scope_binding.namespace_scopes.rules import single_rights
from scope_binding.namespace_scopes.seen import Place, Seen
from tenantry.api.errors import KindNotServed
from tenantry.engine.reader import Reader
from tenantry.model.config import NamespaceScopeSettings
from tenantry.model.consent import consent_name
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_SERVICE_VERSION,
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    NAMESPACE_SCOPE,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    VALIDATING_WEBHOOKS,
    Kind,
    Object,
    annotations_of,
    is_terminating,
)

LIST_ABOVE = 8
"""More members than this are looked up in one list of all namespaces."""
REVIEWS = 100
"""How many access reviews one run makes at most, for NamespaceScopes whose rights are made by hand."""
LOOKS = 3
"""So often it is looked again, at most, before something is taken away."""
PATIENCE = timedelta(minutes=10)
"""How long a deleted NamespaceScope waits for what cannot be cleaned up (N-13)."""


async def observe(
    name: str, settings: NamespaceScopeSettings, reader: Reader, before: Mapping[Place, tuple[Object, ...]] | None = None
) -> Observed:
    """Read all that the plan for a namespace needs; before something is taken away, until two looks agree on it.

    ``before`` holds the rules that Roles had before the last run filled them: whether somebody got into them is looked up.
    """
    begun = before or {}
    found = await _observe(name, settings, reader, begun)
    taken = _taken(found)
    for _ in range(LOOKS):
        if not taken:
            break
        reader.forget()
        agreed, found = taken, await _observe(name, settings, reader, begun)
        taken = _taken(found)
        if taken <= agreed:
            break
    return found


def _taken(found: Observed) -> frozenset[tuple[str, ...]]:
    """Rights, lists and members of lists that go: what seems to be missing may only not have been seen."""
    seen = found.seen
    rights = [(obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in stale(seen, found.made)]
    return frozenset([*rights, *((CONFIG_MAP.kind, write.key.name) for write in abandoned(seen)), *shortened(seen)])


async def _observe(
    name: str, settings: NamespaceScopeSettings, reader: Reader, before: Mapping[Place, tuple[Object, ...]]
) -> Observed:
    every, home = await asyncio.gather(reader.list_shared(NAMESPACE_SCOPE), reader.get(NAMESPACE, name))
    home_leaves = home is None or is_terminating(home)
    own = [found for found in every if found["metadata"]["namespace"] == name]
    scopes = tuple(declared(found, settings.projection, home_leaves=home_leaves) for found in own)
    seen = Seen(name, scopes, home=home, clashes=_clashes(every, name), overdue=_overdue(own, datetime.now(UTC)))
    seen = await _around(seen, reader)
    if not seen.live:
        return Observed(seen, Projection())
    seen = await _inside(seen, reader)
    made = projected(seen, settings)
    seen = await _taken_places(seen, made, reader)
    return Observed(await _bound_by_others(seen, made, before, reader), made)


def _clashes(every: Iterable[Object], name: str) -> frozenset[Place]:
    """(scope name, member) of the NamespaceScopes of other namespaces."""
    found: set[Place] = set()
    for other in every:
        members = (other.get("spec") or {}).get("namespaceMembers")
        if other["metadata"]["namespace"] != name and isinstance(members, list):
            found |= {(other["metadata"]["name"], member) for member in members if isinstance(member, str)}
    return frozenset(found)


def _overdue(own: Iterable[Object], now: datetime) -> frozenset[str]:
    stamps = {found["metadata"]["name"]: found["metadata"].get("deletionTimestamp") for found in own}
    return frozenset(name for name, stamp in stamps.items() if stamp and now - datetime.fromisoformat(stamp) > PATIENCE)


async def _around(seen: Seen, reader: Reader) -> Seen:
    """What may be left of NamespaceScopes that are gone, and what the living ones name."""
    ours = {FROM_LABEL: seen.name}
    injected = not seen.live or any(scope.injects or scope.injected for scope in seen.scopes)
    roles, bindings, config_maps, namespaces, csvs, webhooks = await asyncio.gather(
        reader.list(ROLE, labels=ours),
        reader.list(ROLE_BINDING, labels=ours),
        _config_maps(seen, reader),
        _namespaces(seen, reader),
        _csvs(seen.name, reader) if injected else _none(),
        _webhooks(seen.name, reader) if injected else _none(),
    )
    return replace(
        seen,
        roles=_by_place(roles),
        bindings=_by_place(bindings),
        config_maps=config_maps,
        namespaces=namespaces,
        csvs=csvs,
        webhooks=webhooks,
    )


async def _none() -> tuple[Object, ...]:
    return ()


def _by_place(objects: Iterable[Object]) -> dict[Place, Object]:
    return {(found["metadata"]["namespace"], found["metadata"]["name"]): found for found in objects}


async def _config_maps(seen: Seen, reader: Reader) -> Mapping[str, Object]:
    """Those with our label, and those that the NamespaceScopes name, read one by one."""
    labelled = await reader.list(CONFIG_MAP, seen.name, labels={LIST_LABEL: "true"})
    found = {each["metadata"]["name"]: each for each in labelled}
    for name in sharing(seen):
        if name not in found:
            live = await reader.get(CONFIG_MAP, name, seen.name)
            if live is not None:
                found[name] = live
        reader.depends_on(_pending_of(name, seen.name), _pending(found.get(name)))
    return found


def _pending_of(name: str, namespace: str) -> Callable[[Reader], Awaitable[Hashable]]:
    async def pending(fresh: Reader) -> Hashable:
        return _pending(await fresh.get(CONFIG_MAP, name, namespace))

    return pending


def _pending(config_map: Object | None) -> Hashable:
    """A restart that our own write has begun has to be carried out in the same run."""
    return annotations_of(config_map).get(PENDING)


async def _namespaces(seen: Seen, reader: Reader) -> Mapping[str, Object | None]:
    names = sorted({name for scope in seen.live for name in scope.members if is_namespace_name(name)} - {seen.name})
    if len(names) <= LIST_ABOVE:
        found = await asyncio.gather(*(reader.get(NAMESPACE, name) for name in names))
        return dict(zip(names, found, strict=True))
    wanted = set(names)
    every = {each["metadata"]["name"]: each for each in await reader.list(NAMESPACE)}
    return {name: every.get(name) for name in wanted}


async def _csvs(name: str, reader: Reader) -> tuple[Object, ...]:
    try:
        return tuple(await reader.list(CLUSTER_SERVICE_VERSION, name))
    except KindNotServed:
        if await reader.serves(CLUSTER_SERVICE_VERSION):
            raise
        return ()


async def _webhooks(name: str, reader: Reader) -> tuple[Object, ...]:
    labels = {OLM_OWNER_NAMESPACE: name}
    lists = await asyncio.gather(*(reader.list(kind, labels=labels) for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)))
    return tuple(found for each in lists for found in each)


async def _inside(seen: Seen, reader: Reader) -> Seen:
    """What is in the namespace itself, and the consents of the members."""
    lists = (reader.list(kind, seen.name) for kind in (POD, DEPLOYMENT, STATEFUL_SET, DAEMON_SET))
    accounts = sorted({account for scope in seen.live for account in scope.accounts})
    found, existing, consents = await asyncio.gather(
        asyncio.gather(*lists),
        asyncio.gather(*(reader.get(SERVICE_ACCOUNT, account, seen.name) for account in accounts)),
        _consents(seen, reader),
    )
    pods, *workloads = found
    seen = replace(
        seen,
        pods=tuple(pods),
        workloads=tuple(workload for kind in workloads for workload in kind),
        accounts=frozenset(name for name, live in zip(accounts, existing, strict=True) if live is not None),
        consents=consents,
    )
    reading = [scope for scope in seen.live if scope.projection == "own-roles" or scope.manual]
    seen = await _sources(seen, reading, reader) if reading else seen
    return replace(seen, denied=await _denied(seen, reader))


async def _consents(seen: Seen, reader: Reader) -> Mapping[str, tuple[Object | None, Object | None]]:
    members = {member for scope in seen.live if not scope.manual for member in seen.validated(scope)} - {seen.name}
    if not members:
        return {}

    async def read(fresh: Reader) -> dict[str, tuple[Object | None, Object | None]]:
        roles, bindings = await asyncio.gather(*(_named(kind, consent_name(seen.name), fresh) for kind in (ROLE, ROLE_BINDING)))
        return {member: (roles.get(member), bindings.get(member)) for member in members}

    async def versions(fresh: Reader) -> Hashable:
        now, home = await asyncio.gather(read(fresh), fresh.get(NAMESPACE, seen.name))
        return _versions(now), _uid(home)

    found = await read(reader)
    # A consent that was withdrawn meanwhile gives nothing, nor does one to a namespace that another has replaced meanwhile.
    reader.depends_on(versions, (_versions(found), _uid(seen.home)))
    return found


def _uid(obj: Object | None) -> str:
    return str(obj["metadata"].get("uid")) if obj is not None else ""


def _versions(consents: Mapping[str, tuple[Object | None, Object | None]]) -> Hashable:
    return frozenset(
        (member, tuple(found and found["metadata"]["resourceVersion"] for found in pair)) for member, pair in consents.items()
    )


async def _named(kind: Kind, name: str, reader: Reader) -> dict[str, Object]:
    """The objects of one name in all namespaces, by namespace."""
    return {found["metadata"]["namespace"]: found for found in await reader.list(kind, name=name)}


async def _sources(seen: Seen, scopes: Sequence[Scope], reader: Reader) -> Seen:
    """The roles that the accounts have at home."""
    bindings, roles = await asyncio.gather(reader.list(ROLE_BINDING, seen.name), reader.list(ROLE, seen.name))
    accounts = {account for scope in scopes for account in accounts_of(scope, seen)}
    named = {reference for account in accounts for reference in bound_roles(account, tuple(bindings), seen.name)}
    wanted = sorted(name for kind, name in named if kind == CLUSTER_ROLE.kind)
    found = await asyncio.gather(*(reader.get(CLUSTER_ROLE, name) for name in wanted))
    return replace(
        seen,
        source_bindings=tuple(bindings),
        source_roles={role["metadata"]["name"]: role for role in roles},
        cluster_roles=dict(zip(wanted, found, strict=True)),
    )


async def _denied(seen: Seen, reader: Reader) -> Mapping[Place, tuple[str, ...]]:
    """What accounts may not do in members whose rights are made by hand, of what they may do at home (N-17).

    At most `REVIEWS` questions are asked, in a fixed order.
    """
    asked = [
        (member, account, right)
        for scope in seen.live
        if scope.manual
        for member in seen.validated(scope)
        if member != seen.name
        for account in accounts_of(scope, seen)
        for source in sources_of(account, seen)
        for right in single_rights(source.rules or ())
    ][:REVIEWS]
    answers = await asyncio.gather(
        *(reader.allows(seen.name, account, {**right, "namespace": member}) for member, account, right in asked)
    )
    found: dict[Place, tuple[str, ...]] = {}
    for (member, account, right), allowed in zip(asked, answers, strict=True):
        if not allowed:
            what = f"{right['verb']} {right['resource']}{'/' if right['subresource'] else ''}{right['subresource']}"
            found[member, account] = (*found.get((member, account), ()), what)
    return found


async def _taken_places(seen: Seen, made: Projection, reader: Reader) -> Seen:
    """What stands without our label where something of ours should be: lost its label, or is somebody else's."""
    grants = made.grants
    roles = sorted({name for member, name in grants if (member, name) not in seen.roles})
    bound = {place for place, grant in grants.items() if grant.accounts}
    bindings = sorted({name for member, name in bound if (member, name) not in seen.bindings})
    found_roles, found_bindings = await asyncio.gather(
        asyncio.gather(*(_named(ROLE, name, reader) for name in roles)),
        asyncio.gather(*(_named(ROLE_BINDING, name, reader) for name in bindings)),
    )
    return replace(
        seen,
        roles={**_wanted_only(zip(roles, found_roles, strict=True), grants.keys()), **seen.roles},
        bindings={**_wanted_only(zip(bindings, found_bindings, strict=True), bound), **seen.bindings},
    )


def _wanted_only(found: Iterable[tuple[str, Mapping[str, Object]]], wanted: Iterable[Place]) -> dict[Place, Object]:
    places = set(wanted)
    return {(member, name): obj for name, objects in found for member, obj in objects.items() if (member, name) in places}


async def _bound_by_others(seen: Seen, made: Projection, before: Mapping[Place, tuple[Object, ...]], reader: Reader) -> Seen:
    """Who else is bound to Roles that are to get more, or that just got more (a-38)."""
    taken = foreign(seen, made)
    grants = {place: grant for place, grant in made.grants.items() if place not in taken}
    grows = growing(grants, seen.roles)
    looked = {place: grants[place] for place in grows | (before.keys() & grants.keys())}
    members = sorted({member for member, _ in looked})

    async def read(fresh: Reader) -> dict[Place, tuple[str, ...]]:
        lists = await asyncio.gather(*(fresh.list(ROLE_BINDING, member) for member in members))
        bindings = dict(zip(members, lists, strict=True))
        found = {place: naming(bindings[place[0]], grant) for place, grant in looked.items()}
        return {place: names for place, names in found.items() if names}

    async def names(fresh: Reader) -> Hashable:
        return frozenset((await read(fresh)).items())

    others = await read(reader)
    if others:  # events of these are led here by what is told, so an end before that is told is looked for
        reader.depends_on(names, frozenset(others.items()))
    lost = {place: rules for place, rules in before.items() if place in others or place in taken}
    return replace(seen, growing=grows, others=others, before=lost)
