"""What the NamespaceScopes of one namespace want: pure functions from what was seen to writes.

The parts are independent, each with a plan of its own: finalizers, ConfigMaps with restarts, rights in each member,
injection (N-3).  Sources of the rules: N-1 to N-18 and the checks sb-47 to sb-89.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scope_binding.namespace_scopes import injection
from scope_binding.namespace_scopes.config_map import abandoned, config_map_plan, sharing
from scope_binding.namespace_scopes.names import FINALIZER
from scope_binding.namespace_scopes.projection import Projection, stale
from scope_binding.namespace_scopes.rights import rights_plans
from scope_binding.namespace_scopes.seen import Seen
from scope_binding.namespace_scopes.status import farewells, finalizer_of, refusals_of_surplus, statuses
from tenantry.model.kinds import NAMESPACE_SCOPE
from tenantry.model.plan import NOTHING, Apply, Notice, Plan, Refusal, RemoveFinalizers, Write


def plan(seen: Seen, made: Projection) -> Plan:
    """Everything that has to be written for a namespace, its NamespaceScopes' status apart."""
    config_maps = [config_map_plan(name, scopes, seen) for name, scopes in sorted(sharing(seen).items())]
    parts: list[Write | Plan] = [
        *_finalizers(seen, made),
        *config_maps,
        *abandoned(seen),
        *rights_plans(seen, made),
        *injection.writes(seen),
    ]
    return Plan((tuple(parts),)) if parts else NOTHING


def report(seen: Seen, made: Projection, refusals: Sequence[Refusal]) -> Plan:
    """The status of each NamespaceScope."""
    writes = (*statuses(seen, made, refusals), *refusals_of_surplus(seen), *farewells(seen, refusals))
    return Plan((writes,)) if writes else NOTHING


def _finalizers(seen: Seen, made: Projection) -> Iterator[Write]:
    """The finalizer while a NamespaceScope lives; off when nothing of ours is left in members, or after ten minutes (N-13)."""
    leftovers = sorted(f"{obj['kind']} {obj['metadata']['namespace']}/{obj['metadata']['name']}" for obj in stale(seen, made))
    for scope in seen.scopes:
        has = FINALIZER in (scope.live["metadata"].get("finalizers") or ())
        if not scope.leaving and not scope.by_helm:
            yield Apply(NAMESPACE_SCOPE, finalizer_of(scope), scope.live)
        elif not scope.leaving and has:
            yield RemoveFinalizers(NAMESPACE_SCOPE, scope.live, (FINALIZER,))
        elif has and scope.live["metadata"].get("deletionTimestamp") and (not leftovers or scope.name in seen.overdue):
            notice = None
            if leftovers:
                note = f"gone without cleaning up, after ten minutes of trying; left behind: {', '.join(leftovers)}"
                notice = Notice(scope.live, "LeftBehind", note, "RemoveFinalizer", "Warning")
            yield RemoveFinalizers(NAMESPACE_SCOPE, scope.live, (FINALIZER,), notice)
