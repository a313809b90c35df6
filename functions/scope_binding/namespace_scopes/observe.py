"""Reads for NamespaceScopes: everything around the NamespaceScopes of one namespace.

Consents, and what we keep in members, are read by lists over all namespaces, one for each label or name, so the number
of requests does not grow with the number of members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import TypeVar

from scope_binding.consent import consent_name
from scope_binding.namespace_scopes import kept
from scope_binding.namespace_scopes.accounts import accounts_of, bound_roles, chosen, following_accounts, home_roles
from scope_binding.namespace_scopes.grants import RolePlace
from scope_binding.namespace_scopes.lists import observe_config_maps
from scope_binding.namespace_scopes.names import FROM_LABEL, own_role_name
from scope_binding.namespace_scopes.others import growing, is_held, kept_rules, other_bindings
from scope_binding.namespace_scopes.projection import agreed_accounts, projected
from scope_binding.namespace_scopes.register import RegisterCache
from scope_binding.namespace_scopes.rights import foreign
from scope_binding.namespace_scopes.rules import single_rights, size_of
from scope_binding.namespace_scopes.seen import Consents, ObservedHome
from scope_binding.namespace_scopes.status import unreported
from tenantry.api import Keep
from tenantry.api.errors import KindNotServed
from tenantry.engine.reader import Reader
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
    seen = await _whole_copies(seen, reader)
    seen = replace(seen, projected=await _worked_out(partial(projected, seen, settings), seen))
    seen = await _taken_places(seen, reader)
    seen = await _with_rules(seen, reader)
    return await _bound_by_others(seen, before, reader)


_WORKING = asyncio.Semaphore(1)
"""What takes long is worked out beside the event loop, one home after the other."""
LIGHT = 2000
"""So many entries of rules are compared in some milliseconds."""


async def _worked_out(work: Callable[[], Result], seen: ObservedHome) -> Result:
    """The result of comparing rules: at once when there are few, else while others are served."""
    roles = [*(role for role, _ in seen.consents.values()), *seen.source_roles.values(), *seen.cluster_roles.values()]
    if sum(size_of(role.get("rules") or ()) for role in roles if role is not None) <= LIGHT:
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
        found = await asyncio.gather(*(reader.get(NAMESPACE, name) for name in names))
        return dict(zip(names, found, strict=True))
    every = {each["metadata"]["name"]: each for each in await reader.list(NAMESPACE, keep=kept.header)}
    return {name: every.get(name) for name in names}


async def _injected(seen: ObservedHome, reader: Reader) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """ClusterServiceVersions and webhook configurations, where something is injected or may have been."""
    if seen.live and not any(scope.injects or scope.injected for scope in seen.scopes):
        return (), ()
    labels = {OLM_OWNER_NAMESPACE: seen.name}
    csvs, *webhooks = await asyncio.gather(
        _csvs(seen.name, reader), *(reader.list(kind, labels=labels) for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS))
    )
    return tuple(csvs), tuple(found for each in webhooks for found in each)


async def _csvs(name: str, reader: Reader) -> list[Object]:
    try:
        return await reader.list(CLUSTER_SERVICE_VERSION, name)
    except KindNotServed:
        if await reader.serves(CLUSTER_SERVICE_VERSION):
            raise
        return []


async def _inside(seen: ObservedHome, settings: NamespaceScopeSettings, reader: Reader) -> ObservedHome:
    """What is in the namespace itself, and the consents of the members."""
    lists = (reader.list(kind, seen.name) for kind in (POD, DEPLOYMENT, STATEFUL_SET, DAEMON_SET))
    accounts = sorted({account for scope in seen.live for account in scope.accounts})
    found, existing, consents = await asyncio.gather(
        asyncio.gather(*lists),
        asyncio.gather(*(reader.get(SERVICE_ACCOUNT, account, seen.name) for account in accounts)),
        _consents(seen, settings, reader),
    )
    pods, *workloads = found
    seen = replace(
        seen,
        pods=tuple(pods),
        workloads=tuple(workload for kind in workloads for workload in kind),
        accounts=frozenset(name for name, live in zip(accounts, existing, strict=True) if live is not None),
        consents=consents,
    )
    if any(scope.follows_roles for scope in seen.live):
        seen = await _sources(seen, reader)
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


async def _sources(seen: ObservedHome, reader: Reader) -> ObservedHome:
    accounts = following_accounts(seen)
    bindings = await reader.list(ROLE_BINDING, seen.name, keep=kept.bound_to(frozenset(accounts), seen.name))
    bindings = [binding for binding in bindings if binding.get("subjects")]
    bound = bound_roles(accounts, bindings, seen.name)
    names = {name for each in chosen(bound)[0].values() for name in each}
    wanted = sorted({name for each in bound.values() for kind, name in each if kind == CLUSTER_ROLE.kind and name in names})
    roles, found = await asyncio.gather(
        reader.list(ROLE, seen.name, keep=kept.sources_of(frozenset(names))),
        asyncio.gather(*(reader.get(CLUSTER_ROLE, name) for name in wanted)),
    )
    return replace(
        seen,
        source_bindings=tuple(bindings),
        source_roles={role["metadata"]["name"]: role for role in roles if role["metadata"]["name"] in names},
        cluster_roles={name: role and kept.role(role) for name, role in zip(wanted, found, strict=True)},
    )


async def _whole_copies(seen: ObservedHome, reader: Reader) -> ObservedHome:
    """The copies in members of roles that are over a limit, with their rules: they stay as they are."""
    if not seen.source_bindings:
        return seen
    roles = home_roles(seen)
    over = {(source.name, account) for account, each in roles.copied.items() for source in each if source.excess}
    over |= {(name, account) for account, surplus in roles.surplus.items() for name in surplus}
    names = {own_role_name(name, account, seen.name) for name, account in over}
    return await _read_again([place for place in seen.roles if place[1] in names], seen, reader)


async def _read_again(places: Iterable[RolePlace], seen: ObservedHome, reader: Reader) -> ObservedHome:
    """Roles of which only a digest is kept, with their rules: some, read live, and the others without any.

    A sweep needs none: one that has another digest is due.
    """
    roles = dict(seen.roles)
    for number, place in enumerate(sorted(place for place in places if kept.DIGEST in roles[place])):
        live, (member, name) = None, place
        if number < limits.ROLES_READ and reader.live:
            live = await reader.fetch(ROLE, name, member)
        same = live is not None and live["metadata"]["uid"] == roles[place]["metadata"]["uid"]
        roles[place] = kept.role(live) if live is not None and same else kept.without_digest(roles[place], ())
    return replace(seen, roles=roles)


async def _with_rules(seen: ObservedHome, reader: Reader) -> ObservedHome:
    """Roles of ours with their rules where these are what they should be; the others are read again."""
    digests: dict[int, str] = {}
    roles = dict(seen.roles)
    grants = seen.projected.grants
    for place in grants.keys() & roles.keys():
        live, wanted = roles[place], grants[place].given
        if kept.DIGEST in live:
            if id(wanted) not in digests:
                digests[id(wanted)] = kept.rules_digest(wanted.rules)
            if digests[id(wanted)] == live[kept.DIGEST]:
                roles[place] = kept.without_digest(live, wanted.rules)
    return await _read_again(grants.keys() & roles.keys(), replace(seen, roles=roles), reader)


async def _denied(seen: ObservedHome, reader: Reader) -> Mapping[tuple[str, str], tuple[str, ...]]:
    """What accounts may not do in members whose rights are made by hand, of what they may do at home (N-17).

    At most `limits.ACCESS_REVIEWS` questions are asked, in a fixed order.
    """
    manual = [scope for scope in seen.live if scope.manual]
    roles = home_roles(seen).copied if manual else {}
    every = (
        (member, account, right)
        for scope in manual
        for member in seen.served(scope)
        for account in accounts_of(scope, seen)
        for source in roles.get(account, ())
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
        lists = await asyncio.gather(*(named(kind, name, keep) for name in names))
        found = _by_place(obj for each in lists for obj in each)
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
