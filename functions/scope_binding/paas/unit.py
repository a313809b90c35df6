"""The wiring of service accounts' permissions: which owners an event leads to, and what a sweep reads.

Owners are ``role/<ClusterRole>`` for the bindings to it, ``paas/<name>`` for the finalizers of a Paas and for what it is told,
and ``namespace/<name>`` for a namespace that may be let go.  A Paas is told when the roles that it is about have been run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain

from scope_binding.paas.descriptor import PERMISSIONS_LABEL
from scope_binding.paas.observe import (
    FEW,
    capable,
    observe_namespace,
    observe_paas,
    observe_role,
    only_named_like_ours,
    shared_bindings,
)
from scope_binding.paas.plan import doubtful, plan_namespace, plan_paas, plan_role
from scope_binding.paas.report import report_namespace, report_paas, report_role
from scope_binding.paas.seen import (
    GrantsSeen,
    NamespaceSeen,
    RoleSeen,
    Subject,
    capability_namespaces,
    enabled_namespaces,
    gives_nothing,
    grants_of,
    impossible_names,
    in_cluster,
    is_local,
    is_prepared,
    is_shared,
    role_named,
    subjects_of,
)
from tenantry.engine.hints import Hints
from tenantry.engine.paas import active_config, read_paas, shared_paas
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit
from tenantry.model.conditions import find_condition
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Key,
    Object,
    can_be_name,
    declared,
    finalizers_of,
    is_terminating,
    labels_of,
)
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.names import (
    ACCOUNTS_FINALIZER,
    ACCOUNTS_PART,
    MANAGED_BY_PAAS,
    NAMESPACES_PART,
    OUR_KINDS,
    PAAS,
    PAAS_CONFIG,
    SUBJECTS_FINALIZER,
    WARNINGS,
    binding_name,
)
from tenantry.model.paas.places import held_by
from tenantry.model.paas.status import as_told
from tenantry.serving import Settings

ROLE, OF_PAAS, HELD = "role", "paas", "namespace"
ROLE_PAUSE_S = 0.25
"""Many Paas come and change at the same time, and each is a change of the same list."""
LET_GO_S = 0.5
"""The time between the two looks before a namespace is let go: ten times what a run takes from reading it to naming it."""
STALE_S = 0.3
"""Until then a policy of ours has the PaasConfig that a run has read; 41 ms were seen."""
_PARTS = (ACCOUNTS_PART, f"{ACCOUNTS_PART}{WARNINGS}", NAMESPACES_PART)


def _state(paas: Object) -> Hashable:
    """What of a Paas decides: its declaration, finalizers, what we tell and what is told of its namespaces."""
    return declared(paas), ACCOUNTS_FINALIZER in finalizers_of(paas), as_told(paas, _PARTS)


class PaasAccounts(Unit):
    """The unit ``paas`` of scope-binding."""

    name = "paas"
    kinds = frozenset({PAAS, PAAS_CONFIG, NAMESPACE, CLUSTER_ROLE_BINDING, ROLE_BINDING})
    ours = OUR_KINDS
    readable = frozenset({PAAS, NAMESPACE, CLUSTER_ROLE_BINDING, ROLE_BINDING})
    states = {PAAS: _state}  # noqa: RUF012 - a constant of the class

    def __init__(self) -> None:
        self._settled = Hints()
        """Paas whose last runs found no role to be due: a hint that spares looks for echoes."""
        self.handlers = {
            ROLE: Handler[RoleSeen](
                observe=lambda owner, reader: observe_role(owner.name, reader),
                plan=plan_role,
                report=report_role,
                accepts=lambda owner: not owner.namespace and can_be_name(owner.name),
                doubtful=doubtful,
                pause_s=ROLE_PAUSE_S,
                gathers=True,
                refused_again_after_s=STALE_S,
                told_next=True,
                rests_on_reads=True,
            ),
            OF_PAAS: Handler[GrantsSeen](
                observe=self._observe_paas,
                plan=plan_paas,
                report=report_paas,
                rests_on_reads=True,
            ),
            HELD: Handler[NamespaceSeen](
                observe=lambda owner, reader: observe_namespace(owner.name, reader),
                plan=plan_namespace,
                report=report_namespace,
                accepts=lambda owner: not owner.namespace and is_dns_label(owner.name),
                second_look_after_s=lambda _: LET_GO_S,
            ),
        }

    async def _observe_paas(self, owner: Owner, reader: Reader) -> GrantsSeen:
        seen = await observe_paas(owner.name, reader)
        if reader.live:
            paas = seen.paas
            settled = paas is not None and not paas.deleted and not await _due(paas, seen.config, reader)
            self._settled.note(owner.name, holds=settled)
        return seen

    # -- the owners of an event ------------------------------------------------------------------------

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The roles, the Paas and the namespaces that a key concerns."""
        del hint
        match key.kind:
            case PAAS.kind:
                return await self._paas_owners(key.name, reader)
            case PAAS_CONFIG.kind:
                return EVERY
            case NAMESPACE.kind:
                return await self._namespace_owners(key.name, reader)
        role = role_named(key.kind, key.name)
        if key.kind == ROLE_BINDING.kind or not role:
            return _stages(_roles([role]))
        return await self._binding_owners(role, await reader.get(CLUSTER_ROLE_BINDING, key.name), reader)

    async def _paas_owners(self, name: str, reader: Reader) -> Stages:
        """The roles in which a Paas has not what it declares, then itself; of one that changed before it what is held no more."""
        if name in self._settled and reader.tells_nothing_new(Owner(OF_PAAS, name)):
            return []
        paas = await read_paas(name, reader)
        if paas is None:  # gone, by force if something of it is left
            labelled = await reader.list(NAMESPACE, labels={MANAGED_BY_PAAS: name})
            held = [Owner(HELD, _name(each)) for each in labelled if SUBJECTS_FINALIZER in finalizers_of(each)]
            return _stages(_roles(await _naming(reader, lambda namespace: namespace.startswith(f"{name}-"))), held)
        finalized = ACCOUNTS_FINALIZER in finalizers_of(paas.live)
        if paas.deleted and not finalized:
            return []
        config = await active_config(reader)
        grants = grants_of(paas, config)
        own = [Owner(OF_PAAS, name)]
        if not finalized:  # it comes first, and is an event of its own
            return [own] if grants or _is_told(paas, config) else []
        told = find_condition(paas.live, ACCOUNTS_PART) or {}
        changed = told.get("observedGeneration") != paas.generation and not paas.deleted
        left = (
            capability_namespaces(paas) - {grant.subject.namespace for grant in grants} if changed and config is not None else ()
        )
        held = [Owner(HELD, each) for each in sorted(left)]
        return _stages(_roles(await _due(paas, config, reader)), held, own)

    async def _namespace_owners(self, name: str, reader: Reader) -> Stages:
        """Where a namespace comes: its Paas, the roles of its capability, and its Paas again.  Where it goes: who names it."""
        namespace = await reader.get_shared(NAMESPACE, name)
        of = labels_of(namespace).get(MANAGED_BY_PAAS, "")
        held = SUBJECTS_FINALIZER in finalizers_of(namespace)
        let_go = [Owner(HELD, name)] if held else []
        if namespace is None or is_terminating(namespace):
            return _stages(_roles(await _naming(reader, lambda each: each == name)), let_go, _of(of) if held else [])
        paas = await shared_paas(of, reader)
        if paas is None or not held_by(paas, namespace) or name not in capability_namespaces(paas):
            return _stages(_roles(await _naming(reader, lambda each: each == name)), let_go) if held else []
        config = await active_config(reader)
        given = [grant for grant in grants_of(paas, config) if grant.subject.namespace == name]
        if not given:
            return _stages(_roles(await _due(paas, config, reader)), let_go) if held else []
        if not in_cluster(config) or is_prepared(paas, namespace):
            return _stages(_roles(await _due(paas, config, reader)), _of(of))
        return [_of(of)]  # the finalizer comes first, and is an event of its own

    async def _binding_owners(self, role: str, binding: Object | None, reader: Reader) -> Stages:
        """The role, then the Paas that are told of a foreign binding, or are to be, or stand in ours untold, or leave."""
        every, config = await capable(reader), await active_config(reader)
        foreign, there = binding is not None and not is_shared(binding), subjects_of(binding)
        told: list[Owner] = []
        for paas in every:
            own = {grant.subject for grant in grants_of(paas, config) if grant.role == role}
            condition = find_condition(paas.live, ACCOUNTS_PART) or {}
            current = condition.get("observedGeneration") == paas.generation
            waits = gives_nothing(paas, config) and ACCOUNTS_FINALIZER in finalizers_of(paas.live)
            if waits or (own and (condition.get("status") == "False" or foreign or (own <= there and not current))):
                told.append(Owner(OF_PAAS, paas.name))
        return _stages(_roles([role]), told)

    # -- sweep -----------------------------------------------------------------------------------------

    def prefetch(self) -> Sequence[Prefetch]:
        """All Paas and namespaces, and the bindings that can be ours, also those that lost our label."""
        return [
            Prefetch(PAAS, optional=True),
            Prefetch(PAAS_CONFIG, optional=True),
            Prefetch(NAMESPACE),
            Prefetch(CLUSTER_ROLE_BINDING, keep=only_named_like_ours),
            Prefetch(ROLE_BINDING, ((PERMISSIONS_LABEL, ""),)),
        ]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """The roles that are declared or bound, every Paas that declares or has something, every namespace that is held."""
        every, config = [paas_of(each) for each in await reader.list_shared(PAAS)], await active_config(reader)
        grants = {paas.name: grants_of(paas, config) for paas in every}
        roles = {grant.role for grant in chain.from_iterable(grants.values())}
        roles |= {role_named(CLUSTER_ROLE_BINDING.kind, _name(each)) for each in await shared_bindings(reader, marked=False)}
        for each in await reader.list_shared(ROLE_BINDING, labels={PERMISSIONS_LABEL: ""}):
            role = role_named(ROLE_BINDING.kind, _name(each))
            roles |= {role} if role and is_local(each, role) else set()
        concerned = (
            paas
            for paas in every
            if grants[paas.name] or ACCOUNTS_FINALIZER in finalizers_of(paas.live) or _is_told(paas, config)
        )
        held = (each for each in await reader.list_shared(NAMESPACE) if SUBJECTS_FINALIZER in finalizers_of(each))
        return [
            *_roles(sorted(roles)),
            *(Owner(OF_PAAS, paas.name) for paas in concerned),
            *(Owner(HELD, _name(each)) for each in held),
        ]


def _is_told(paas: Paas, config: PaasConfig | None) -> bool:
    """Whether a Paas to whose accounts nothing is given has to hear why, or has heard something."""
    asks = any(each.extra_permissions for each in paas.enabled.values())
    return asks or bool(impossible_names(paas, config)) or find_condition(paas.live, ACCOUNTS_PART) is not None


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _roles(roles: Iterable[str]) -> list[Owner]:
    return [Owner(ROLE, role) for role in dict.fromkeys(roles) if role]


def _of(paas: str) -> list[Owner]:
    return [Owner(OF_PAAS, paas)] if paas else []


def _stages(*stages: list[Owner]) -> Stages:
    return [each for each in stages if each]


async def _bound(reader: Reader) -> dict[str, frozenset[Subject]]:
    """By role who stands in the cluster's bindings that are ours."""
    found = await shared_bindings(reader, marked=True)
    return {role_named(CLUSTER_ROLE_BINDING.kind, _name(each)): subjects_of(each) for each in found}


async def _bound_to(roles: Iterable[str], reader: Reader) -> dict[str, frozenset[Subject]]:
    """The same for these roles, each by the name of its binding: a list of a kind at rest waits for up to 100 ms."""
    names = {binding_name(role): role for role in roles}
    read = await asyncio.gather(*(reader.get_shared(CLUSTER_ROLE_BINDING, name) for name in names))
    return {role: subjects_of(each) for role, each in zip(names.values(), read, strict=True) if is_shared(each)}


async def _naming(reader: Reader, meant: Callable[[str], bool]) -> list[str]:
    """The roles to which somebody in such a namespace is bound."""
    bound = await _bound(reader)
    return [role for role, subjects in bound.items() if any(meant(each.namespace) for each in subjects)]


async def _due(paas: Paas, config: PaasConfig | None, reader: Reader) -> Collection[str]:
    """The roles in which a Paas has not what it declares.

    Names only say for which roles a run is worth while: a namespace of a capability that has left the declaration is looked for
    as long as the Paas was not told of the change.  For who waits for his namespace a run of the role does nothing; the event of
    the namespace tells when it is there.
    """
    grants = grants_of(paas, config)
    roles = dict.fromkeys(grant.role for grant in grants)
    told = find_condition(paas.live, ACCOUNTS_PART) or {}
    current = told.get("observedGeneration") == paas.generation
    if not in_cluster(config):
        local = await reader.list_shared(ROLE_BINDING, labels={PERMISSIONS_LABEL: "", MANAGED_BY_PAAS: paas.name})
        inside = [role_named(ROLE_BINDING.kind, _name(each)) for each in local]
        return [*(() if current and told["status"] == "True" else roles), *(role for role in inside if role not in roles)]
    bound = await _bound_to(roles, reader) if not told and reader.live and len(roles) <= FEW else await _bound(reader)
    missing = {grant.subject.namespace for grant in grants if grant.subject not in bound.get(grant.role, ())}
    namespaces = await by_name(NAMESPACE, missing, reader) if len(missing) <= FEW else {}
    waiting = {name for name, each in namespaces.items() if not (held_by(paas, each) and is_prepared(paas, each))}
    found = []
    for role in dict.fromkeys([*roles, *bound]):
        stands = bound.get(role, frozenset())
        there = {each for each in stands if each.namespace in capability_namespaces(paas)}
        wanted = {grant.subject for grant in grants if grant.role == role}
        if config is None:
            wanted = {each for each in there if each.namespace in enabled_namespaces(paas)}
        left = not current and any(each.namespace.startswith(f"{paas.name}-") for each in stands - wanted)
        if there - wanted or left or any(each.namespace not in waiting for each in wanted - there):
            found.append(role)
    return found


def made(_: Settings) -> PaasAccounts:
    """The unit of a process."""
    return PaasAccounts()
