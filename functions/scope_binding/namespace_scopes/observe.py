"""Reads for NamespaceScopes: everything around the NamespaceScopes of one namespace.

Consents, and what we keep in members, are read by lists over all namespaces, one for each label or name, so the number
of requests does not grow with the number of members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import islice
from typing import TypeVar

from scope_binding.consent import consent_name
from scope_binding.namespace_scopes import kept
from scope_binding.namespace_scopes.accounts import accounts_of, bound_roles, chosen, following_accounts, sources_of
from scope_binding.namespace_scopes.grants import RolePlace
from scope_binding.namespace_scopes.lists import observe_config_maps
from scope_binding.namespace_scopes.names import FROM_LABEL, own_role_name
from scope_binding.namespace_scopes.others import growing, is_held, kept_rules, other_bindings
from scope_binding.namespace_scopes.projection import agreed_accounts, projected
from scope_binding.namespace_scopes.register import RegisterCache
from scope_binding.namespace_scopes.rights import foreign
from scope_binding.namespace_scopes.rules import single_rights, size_of
from scope_binding.namespace_scopes.seen import Consents, HomeRoles, ObservedHome
from scope_binding.namespace_scopes.status import unreported
from scope_binding.reads import listed
from tenantry.api import Keep
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name, joined
from tenantry.model import limits
from tenantry.model.config import NamespaceScopeSettings
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_SERVICE_VERSION,
    DAEMON_SET,
    DEPLOYMENT,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    VALIDATING_WEBHOOKS,
    Kind,
    Object,
    is_terminating,
)
from tenantry.model.names import OLM_OWNER_NAMESPACE

Result = TypeVar("Result")

LIST_ABOVE = 8
"""More members than this are looked up in one list of all namespaces."""
LISTS_AT_ONCE = 8
"""Lists over all namespaces that one run reads at a time: others' requests come between them."""
PATIENCE = timedelta(minutes=10)
"""How long a deleted NamespaceScope waits for what cannot be cleaned up (N-13)."""


async def observe(
    name: str,
    settings: NamespaceScopeSettings,
    reader: Reader,
    before: Mapping[RolePlace, tuple[Object, ...]],
    registers: RegisterCache,
) -> ObservedHome:
    """Read all that the plan for a namespace needs.

    ``before`` holds the rules that Roles had before the last run filled them: whether others were bound to them by then is read.
    """
    register, home = await asyncio.gather(registers.read(reader), reader.get(NAMESPACE, name))
    scopes = register.served.get(name, ())
    surplus = tuple(unreported(register.surplus.get(name, ()), name))[: limits.SCOPES_TOLD_AT_ONCE]
    if home is None or is_terminating(home):
        scopes, surplus = tuple(replace(scope, leaving=True) for scope in scopes), ()
    overdue = _overdue((scope.live for scope in scopes), datetime.now(UTC))
    seen = ObservedHome(name, scopes, home=home, clashes=register.clashes(name), overdue=overdue, surplus=surplus)
    seen = await _around(seen, reader)
    if not seen.live:
        return seen
    seen = await _inside(seen, settings, reader)
    seen = await _with_rules(_whole_copies(seen), seen, reader)
    seen = replace(seen, projected=await _worked_out(partial(projected, seen, settings), seen))
    seen = await _taken_places(seen, reader)
    seen = await _with_rules(seen.projected.grants.keys() & seen.roles.keys(), seen, reader)
    return await _bound_by_others(seen, before, reader)


_WORKING = asyncio.Semaphore(1)
"""What takes long is worked out beside the event loop, one home after the other."""
LIGHT = 2000
"""So many entries of rules are compared in some milliseconds."""


async def _worked_out(work: Callable[[], Result], seen: ObservedHome) -> Result:
    """The result of comparing rules: at once when there are few, else while others are served."""
    rules = [role.get("rules") or () for role, _ in seen.consents.values() if role is not None]
    rules += [source.rules or () for each in seen.home_roles.copied.values() for source in each]
    if sum(map(size_of, rules)) <= LIGHT:
        return work()
    async with _WORKING:
        return await asyncio.to_thread(work)


def _overdue(own: Iterable[Object], now: datetime) -> frozenset[str]:
    stamps = {found["metadata"]["name"]: found["metadata"].get("deletionTimestamp") for found in own}
    return frozenset(name for name, stamp in stamps.items() if stamp and now - datetime.fromisoformat(stamp) > PATIENCE)


async def _around(seen: ObservedHome, reader: Reader) -> ObservedHome:
    """What may be left of NamespaceScopes that are deleted, and what the others name."""
    ours = {FROM_LABEL: seen.name}
    roles, bindings, config_maps, namespaces, (csvs, webhooks) = await asyncio.gather(
        reader.list(ROLE, labels=ours, keep=kept.given_role),
        reader.list(ROLE_BINDING, labels=ours, keep=kept.given_binding),
        observe_config_maps(seen, reader),
        _namespaces(seen, reader),
        _injected(seen, reader),
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


def _by_place(objects: Iterable[Object]) -> dict[RolePlace, Object]:
    return {(found["metadata"]["namespace"], found["metadata"]["name"]): found for found in objects}


async def _namespaces(seen: ObservedHome, reader: Reader) -> Mapping[str, Object | None]:
    names = sorted({name for scope in seen.live for name in scope.members if is_dns_label(name)} - {seen.name})
    if len(names) <= LIST_ABOVE:
        return await by_name(NAMESPACE, names, reader)
    every = {each["metadata"]["name"]: each for each in await reader.list(NAMESPACE, keep=kept.header)}
    return {name: every.get(name) for name in names}


async def _injected(seen: ObservedHome, reader: Reader) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """ClusterServiceVersions and webhook configurations, where something is injected or may have been."""
    if seen.live and not any(scope.injects or scope.injected for scope in seen.scopes):
        return (), ()
    owned = {OLM_OWNER_NAMESPACE: seen.name}
    csvs, webhooks = await asyncio.gather(
        listed(CLUSTER_SERVICE_VERSION, reader, seen.name),
        joined(reader.list(kind, labels=owned) for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)),
    )
    return tuple(csvs), tuple(webhooks)


async def _inside(seen: ObservedHome, settings: NamespaceScopeSettings, reader: Reader) -> ObservedHome:
    """What is in the namespace itself, and the consents of the members."""
    accounts = {account for scope in seen.live for account in scope.accounts}
    pods, workloads, existing, consents = await asyncio.gather(
        reader.list(POD, seen.name),
        joined(reader.list(kind, seen.name) for kind in (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)),
        by_name(SERVICE_ACCOUNT, accounts, reader, seen.name),
        _consents(seen, settings, reader),
    )
    seen = replace(
        seen,
        pods=tuple(pods),
        workloads=tuple(workloads),
        accounts=frozenset(name for name, live in existing.items() if live is not None),
        consents=consents,
    )
    if any(scope.follows_roles for scope in seen.live):
        seen = replace(seen, home_roles=await _home_roles(seen, reader))
    return replace(seen, denied=await _denied(seen, reader))


async def _consents(seen: ObservedHome, settings: NamespaceScopeSettings, reader: Reader) -> Consents:
    members = {member for scope in seen.live if not scope.manual for member in seen.served(scope)}
    if not members:
        return {}
    agreed = agreed_accounts(seen.name, settings)

    async def read(fresh: Reader) -> Consents:
        name = consent_name(seen.name)
        roles, bindings = await asyncio.gather(
            _named(ROLE, name, fresh, kept.consents_of(members)),
            _named(ROLE_BINDING, name, fresh, kept.consent_binding(members, agreed)),
        )
        return {member: (roles.get(member), bindings.get(member)) for member in members}

    async def versions(fresh: Reader) -> Hashable:
        return _versions(*await asyncio.gather(read(fresh), fresh.get(NAMESPACE, seen.name)))

    found = await read(reader)
    # A consent that was withdrawn meanwhile gives nothing, nor does one to a namespace that another has replaced meanwhile.
    reader.depends_on(versions, _versions(found, seen.home))
    return found


def _versions(consents: Consents, home: Object | None) -> Hashable:
    versions = frozenset(
        (member, tuple(found and found["metadata"]["resourceVersion"] for found in pair)) for member, pair in consents.items()
    )
    return versions, home and home["metadata"].get("uid")


async def _named(kind: Kind, name: str, reader: Reader, keep: Keep) -> dict[str, Object]:
    """The objects of one name in all namespaces, by namespace."""
    return {found["metadata"]["namespace"]: found for found in await reader.list(kind, name=name, keep=keep)}


async def _home_roles(seen: ObservedHome, reader: Reader) -> HomeRoles:
    """The roles of the accounts that follow them; a Role and a ClusterRole of one name count as one."""
    accounts = following_accounts(seen)
    bindings = await reader.list(ROLE_BINDING, seen.name, keep=kept.bound_to(frozenset(accounts), seen.name))
    bound = bound_roles(accounts, bindings, seen.name)
    names, surplus = chosen(bound)
    wanted = frozenset(name for each in names.values() for name in each)
    of_cluster = {name for each in bound.values() for kind, name in each if kind == CLUSTER_ROLE.kind and name in wanted}
    roles, cluster_roles = await asyncio.gather(
        reader.list(ROLE, seen.name, keep=kept.sources_of(wanted)), by_name(CLUSTER_ROLE, of_cluster, reader)
    )
    found = {(ROLE.kind, role["metadata"]["name"]): role for role in roles}
    found |= {(CLUSTER_ROLE.kind, name): kept.role(role) for name, role in cluster_roles.items() if role is not None}
    return HomeRoles({account: sources_of(each, bound[account], found) for account, each in names.items()}, surplus)


def _whole_copies(seen: ObservedHome) -> list[RolePlace]:
    """The copies in members of roles that are over a limit: they stay as they are."""
    roles = seen.home_roles
    over = {(source.name, account) for account, each in roles.copied.items() for source in each if source.excess}
    over |= {(name, account) for account, surplus in roles.surplus.items() for name in surplus}
    names = {own_role_name(name, account, seen.name) for name, account in over}
    return [place for place in seen.roles if place[1] in names]


async def _with_rules(places: Iterable[RolePlace], seen: ObservedHome, reader: Reader) -> ObservedHome:
    """Roles of which only a digest is kept, with their rules: those that are wanted there, or some read live, or none.

    A sweep reads none: a Role that has another digest is due.
    """
    roles = dict(seen.roles)
    digest_of = cache(lambda given: kept.rules_digest(given.rules))  # members mostly get the same
    left = limits.ROLES_READ if reader.live else 0
    for place in sorted(place for place in places if kept.DIGEST in roles[place]):
        role, grant = roles[place], seen.projected.grants.get(place)
        if grant is not None and digest_of(grant.given) == role[kept.DIGEST]:
            roles[place] = kept.without_digest(role, grant.given.rules)
            continue
        member, name = place
        live = await reader.fetch(ROLE, name, member) if left > 0 else None
        left -= 1
        same = live is not None and live["metadata"]["uid"] == role["metadata"]["uid"]
        roles[place] = kept.role(live) if live is not None and same else kept.without_digest(role, ())
    return replace(seen, roles=roles)


async def _denied(seen: ObservedHome, reader: Reader) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """What accounts may not do in members whose rights are made by hand, of what they may do at home (N-17).

    At most `limits.ACCESS_REVIEWS` questions are asked, in a fixed order.
    """
    manual = [scope for scope in seen.live if scope.manual]
    every = (
        (member, account, right)
        for scope in manual
        for member in seen.served(scope)
        for account in accounts_of(scope, seen)
        for source in seen.home_roles.copied.get(account, ())
        for right in single_rights(source.rules or ())
    )
    asked = list(islice(every, limits.ACCESS_REVIEWS))
    answers = await asyncio.gather(
        *(reader.allows(seen.name, account, {**right, "namespace": member}) for member, account, right in asked)
    )
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for (member, account, right), allowed in zip(asked, answers, strict=True):
        if not allowed:
            what = f"{right['verb']} {right['resource']}{'/' if right['subresource'] else ''}{right['subresource']}"
            found[member, account] = (*found.get((member, account), ()), what)
    return found


async def _taken_places(seen: ObservedHome, reader: Reader) -> ObservedHome:
    """What stands without our label where something of ours should be: lost its label, or is somebody else's."""
    gate = asyncio.Semaphore(LISTS_AT_ONCE)

    async def named(kind: Kind, name: str, keep: Keep) -> list[Object]:
        async with gate:
            return await reader.list(kind, name=name, keep=keep)

    async def completed(
        kind: Kind, wanted: Set[RolePlace], labelled: Mapping[RolePlace, Object], keep: Keep
    ) -> dict[RolePlace, Object]:
        names = sorted({name for _, name in wanted - labelled.keys()})
        found = _by_place(await joined(named(kind, name, keep) for name in names))
        return {**{place: found[place] for place in wanted & found.keys()}, **labelled}

    grants = seen.projected.grants
    bound = {place for place, grant in grants.items() if grant.accounts}
    roles, bindings = await asyncio.gather(
        completed(ROLE, grants.keys(), seen.roles, kept.role),
        completed(ROLE_BINDING, bound, seen.bindings, kept.given_binding),
    )
    return replace(seen, roles=roles, bindings=bindings)


async def _bound_by_others(seen: ObservedHome, before: Mapping[RolePlace, tuple[Object, ...]], reader: Reader) -> ObservedHome:
    """Who else is bound to Roles that are to get more, or that just got more (a-38)."""
    taken = foreign(seen)
    grants = {place: grant for place, grant in seen.projected.grants.items() if place not in taken}
    grows = await _worked_out(partial(growing, grants, seen.roles), seen)
    asked = {place: grants[place] for place in grows | (before.keys() & grants.keys())}
    members = sorted({member for member, _ in asked})
    named = kept.naming_roles(frozenset(name for _, name in asked))

    async def read(fresh: Reader) -> dict[RolePlace, tuple[str, ...]]:
        lists = await asyncio.gather(*(fresh.list(ROLE_BINDING, member, keep=named) for member in members))
        bindings = dict(zip(members, lists, strict=True))
        found = {place: other_bindings(bindings[place[0]], grant) for place, grant in asked.items()}
        return {place: names for place, names in found.items() if names}

    async def names(fresh: Reader) -> Hashable:
        return frozenset((await read(fresh)).items())

    others = await read(reader)
    if others:  # their events lead here by the status: one that is deleted before the status is written is found by this
        reader.depends_on(names, frozenset(others.items()))
    lost = {place: rules for place, rules in before.items() if place in others or place in taken}
    seen = replace(seen, growing=grows, others=others, before=lost)
    held = [grant for place, grant in seen.projected.grants.items() if place in taken or is_held(place, seen)]
    return replace(seen, kept=await _worked_out(lambda: {grant.place: kept_rules(grant, seen) for grant in held}, seen))
