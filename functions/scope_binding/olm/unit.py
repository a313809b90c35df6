"""The wiring of OLM: owners are ``csv/<namespace>/<name>``.

An OperatorGroup concerns every ClusterServiceVersion of its namespace, a generated object the one that its labels name.  The unit
``scopes`` makes the rights of generated objects, as of all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scope_binding.olm.observe import observe_csv
from scope_binding.olm.plan import MANAGER, OWNER, OWNER_NAMESPACE, PARTS, CsvSeen, is_copy, plan_csv, report_csv
from scope_binding.reads import listed
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Handler, Owner, Stages, Unit, stage
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SCOPE_INSTANCE, SCOPE_TEMPLATE, Key, labels_of
from tenantry.model.names import SCOPE_GENERATED
from tenantry.serving import Settings

CSV = "csv"


class OlmScopes(Unit):
    """The unit ``olm`` of scope-binding; switched off it only takes back what it made."""

    name = "olm"
    kinds = frozenset({CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SCOPE_TEMPLATE, SCOPE_INSTANCE})

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self.handlers = {
            CSV: Handler[CsvSeen](
                observe=lambda owner, reader: observe_csv(owner.namespace, owner.name, reader, enabled=enabled),
                plan=plan_csv,
                report=report_csv,
                accepts=lambda owner: is_dns_label(owner.namespace),
                # Every change: what an older state of the declarations asks for would give rights, or take them.
                doubtful=lambda _, plan: frozenset(map(str, plan.changes(MANAGER))),
            )
        }

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        """The ClusterServiceVersions that a key concerns."""
        if key.api_version not in (each.api_version for each in self.kinds):
            return []  # the scope kinds of the other group
        if key.kind == CLUSTER_SERVICE_VERSION.kind:
            return [[_owner(key.namespace, key.name)]] if self._enabled else []
        if key.kind == OPERATOR_GROUP.kind:
            found = await listed(CLUSTER_SERVICE_VERSION, reader, key.namespace) if self._enabled else []
            return stage(_owner(key.namespace, csv["metadata"]["name"]) for csv in found if not is_copy(csv))
        kind = SCOPE_TEMPLATE if key.kind == SCOPE_TEMPLATE.kind else SCOPE_INSTANCE
        live = await reader.get(kind, key.name)
        return stage([*_made_for(labels_of(live)), *_made_for(hint), *_named(key.name)])

    def prefetch(self) -> Sequence[Prefetch]:
        """OLM's kinds, where they are served, and the scopes."""
        scopes = [Prefetch(SCOPE_TEMPLATE), Prefetch(SCOPE_INSTANCE)]
        if not self._enabled:
            return scopes
        return [*scopes, Prefetch(CLUSTER_SERVICE_VERSION, optional=True), Prefetch(OPERATOR_GROUP, optional=True)]

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        """Every ClusterServiceVersion, and those for which something was made."""
        found = await listed(CLUSTER_SERVICE_VERSION, reader) if self._enabled else []
        owners = [_owner(csv["metadata"]["namespace"], csv["metadata"]["name"]) for csv in found]
        for kind in (SCOPE_TEMPLATE, SCOPE_INSTANCE):
            for made in await reader.list(kind, labels={SCOPE_GENERATED: "true"}):
                owners += [*_made_for(labels_of(made)), *_named(made["metadata"]["name"])]
        return list(dict.fromkeys(owners))


def _owner(namespace: str, name: str) -> Owner:
    return Owner(CSV, name, namespace)


def _made_for(labels: Mapping[str, str]) -> list[Owner]:
    """The owner that the labels of a generated object name."""
    if labels.get(SCOPE_GENERATED) != "true" or not labels.get(OWNER) or not labels.get(OWNER_NAMESPACE):
        return []
    return [_owner(labels[OWNER_NAMESPACE], labels[OWNER])]


def _named(name: str) -> list[Owner]:
    """The owner that the name of a generated object names: its labels may have been taken off, or too short for it."""
    part, _, rest = name.partition(".")
    namespace, _, csv = rest.partition(".")
    return [_owner(namespace, csv)] if part in PARTS and namespace and csv else []


def made(settings: Settings) -> OlmScopes:
    """The unit of a process."""
    return OlmScopes(enabled=settings.config.scope_binding.olm.enabled)
