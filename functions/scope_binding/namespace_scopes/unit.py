"""The wiring of NamespaceScopes: the kinds that wake the unit, the owners that an event concerns, and the lists of a sweep.

The owner of a run is the namespace that NamespaceScopes live in (``namespace/<name>``): they share ConfigMaps, accounts and
members, so one alone cannot be planned.  Most events are of objects that any namespace has.  The list of all NamespaceScopes
decides whether they concern this unit; events that arrive together share one read of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scope_binding.consent import consent_name
from scope_binding.namespace_scopes import kept, observe, plan
from scope_binding.namespace_scopes.config_map import shortened
from scope_binding.namespace_scopes.grants import RolePlace
from scope_binding.namespace_scopes.names import FROM_LABEL, LIST_LABEL, may_be_ours
from scope_binding.namespace_scopes.others import Rules, filled
from scope_binding.namespace_scopes.register import Register, RegisterCache
from scope_binding.namespace_scopes.seen import ObservedHome
from scope_binding.objects import KINDS
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import EVERY, Handler, Owner, Stages, Unit, stage, taken_away
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    CONFIG_MAP,
    MUTATING_WEBHOOKS,
    NAMESPACE,
    NAMESPACE_SCOPE,
    POD,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOKS,
    Key,
    labels_of,
)
from tenantry.model.names import OLM_OWNER_NAMESPACE
from tenantry.serving import Settings

HOME = "namespace"
PAUSE_S = 0.5
"""A run's writes come back as events, two for each right in a member."""
UNKNOWN = 20
"""More homes than this of which a new process knows nothing are looked at in one sweep, and not once for each event."""
CONSENT_PREFIX = consent_name("")


class NamespaceScopes(Unit):
    """The unit ``namespace-scopes`` of scope-binding."""

    name = "namespace-scopes"
    kinds = frozenset(
        {
            NAMESPACE_SCOPE,
            NAMESPACE,
            CONFIG_MAP,
            ROLE,
            ROLE_BINDING,
            POD,
            SERVICE_ACCOUNT,
            CLUSTER_SERVICE_VERSION,
            VALIDATING_WEBHOOKS,
            MUTATING_WEBHOOKS,
        }
    )

    def __init__(self, config: Config) -> None:
        self._settings = config.scope_binding.namespace_scope
        self._registers = RegisterCache(self._settings.projection)
        self._clashes: dict[str, frozenset[tuple[str, str]]] = {}
        """By home, the clashes that its last run knew, or the last sweep that found it at rest."""
        self._filled: dict[str, dict[RolePlace, Rules]] = {}
        """By home, the rules that Roles had before its last run filled them: see `others`."""
        self.handlers = {
            HOME: Handler[ObservedHome](
                observe=self._observe,
                plan=plan.plan,
                report=plan.report,
                accepts=lambda owner: not owner.namespace and is_dns_label(owner.name),
                pause_s=PAUSE_S,
                # Also members that a list loses: one read that does not find them is not enough.
                doubtful=lambda found, made: taken_away(found, made) | frozenset(shortened(found)),
                ended=self._ended,
                at_rest=lambda owner, found: self._know(owner.name, found),
            )
        }

    async def _observe(self, owner: Owner, reader: Reader) -> ObservedHome:
        home = owner.name
        remembered = self._filled.get(home, {})
        found = await observe.observe(home, self._settings, reader, remembered, self._registers)
        if reader.live:  # a snapshot may be older than what the last run filled
            self._know(home, found)
            self._filled.pop(home, None)
            if about := filled(found, remembered):
                self._filled[home] = about
        return found

    def _know(self, home: str, found: ObservedHome) -> None:
        if len(self._clashes) >= limits.REMEMBERED:
            self._clashes.clear()
        self._clashes[home] = found.clashes

    def _ended(self, owner: Owner, succeeded: bool) -> None:
        """Forget the clashes of a run that failed.  What it filled is observed again by the next run in any case."""
        if not succeeded:
            self._clashes.pop(owner.name, None)

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The namespaces whose NamespaceScopes a key concerns."""
        if key.kind in (VALIDATING_WEBHOOKS.kind, MUTATING_WEBHOOKS.kind):
            live = await reader.get(KINDS[key.kind], key.name)
            return _homes([labels_of(live).get(OLM_OWNER_NAMESPACE, ""), hint.get(OLM_OWNER_NAMESPACE, "")])
        register = await self._registers.read(reader)
        homes = register.served
        if key.kind == NAMESPACE_SCOPE.kind:
            # NamespaceScopes of one name in several namespaces share the name of their Roles, see names.managed_role_name.
            # A home whose last run knew the same clashes is not run again, so that no event waits for all homes.
            others = [home for home in register.with_name(key.name) if register.clashes(home) != self._clashes.get(home)]
            if sum(home not in self._clashes for home in others) > UNKNOWN:
                return EVERY
            return _homes([key.namespace, *others])
        if key.kind in (ROLE.kind, ROLE_BINDING.kind):
            # Homes that may want it come first: they repair a changed label before the home in the label deletes a leftover.
            wanting, labelled = _by_right(key, register), hint.get(FROM_LABEL, "")
            return [*_homes(wanting), *_homes([labelled] if labelled not in wanting else [])]
        if key.kind == NAMESPACE.kind:
            return _homes([*([key.name] if key.name in homes else []), *register.with_member(key.name)])
        concerned = key.namespace in homes or (key.kind == CONFIG_MAP.kind and LIST_LABEL in hint)
        if key.kind == SERVICE_ACCOUNT.kind:
            concerned = any(key.name in scope.accounts for scope in homes.get(key.namespace, ()))
        return _homes([key.namespace] if concerned else [])

    def prefetch(self) -> Sequence[Prefetch]:
        """All NamespaceScopes and namespaces, and what carries our labels."""
        ours = ((FROM_LABEL, ""),)
        webhooks = ((OLM_OWNER_NAMESPACE, ""),)
        return [
            Prefetch(NAMESPACE_SCOPE, keep=self._registers.keep),
            Prefetch(NAMESPACE, keep=kept.header),
            Prefetch(ROLE, ours, keep=kept.given_role),
            Prefetch(ROLE_BINDING, ours, keep=kept.given_binding),
            Prefetch(CONFIG_MAP, ((LIST_LABEL, "true"),), keep=kept.config_map),
            Prefetch(VALIDATING_WEBHOOKS, webhooks),
            Prefetch(MUTATING_WEBHOOKS, webhooks),
        ]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every namespace with NamespaceScopes, and those of which something of ours is left."""
        homes = {scope["metadata"]["namespace"] for scope in await reader.list(NAMESPACE_SCOPE)}
        for kind in (ROLE, ROLE_BINDING):
            homes |= {labels_of(found)[FROM_LABEL] for found in await reader.list(kind, labels={FROM_LABEL: ""})}
        homes |= {found["metadata"]["namespace"] for found in await reader.list(CONFIG_MAP, labels={LIST_LABEL: "true"})}
        return [Owner(HOME, home) for home in sorted(homes) if is_dns_label(home)]


def _by_right(key: Key, register: Register) -> list[str]:
    """The homes that a Role or RoleBinding may concern: as a consent by its name, as ours in a member, or as a right at home."""
    homes = register.served
    if key.name.startswith(CONSENT_PREFIX) and key.name.removeprefix(CONSENT_PREFIX) in homes:
        return [key.name.removeprefix(CONSENT_PREFIX)]
    found = []
    for home in sorted({*register.with_member(key.namespace), key.namespace} & homes.keys()):
        scopes = homes[home]
        copied = home == key.namespace and any(scope.projection == "own-roles" or scope.manual for scope in scopes)
        member = any(
            key.namespace in scope.members and (scope.manual or may_be_ours(key.name) or scope.waits_in(key.namespace))
            for scope in scopes
        )
        found += [home] if copied or member else []
    return found


def _homes(names: Sequence[str]) -> list[list[Owner]]:
    return stage(Owner(HOME, name) for name in names if is_dns_label(name))


def made(settings: Settings) -> NamespaceScopes:
    """The unit of a process."""
    return NamespaceScopes(settings.config)
