"""What the NamespaceScopes of one namespace want: pure functions from what was observed to writes.

The parts are independent, each with a plan of its own: finalizers, ConfigMaps with restarts, rights in each member,
injection (N-3).  Sources of the rules: N-1 to N-18 and the checks sb-47 to sb-89.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scope_binding.namespace_scopes import injection
from scope_binding.namespace_scopes.config_map import abandoned, config_map_plan, sharing
from scope_binding.namespace_scopes.names import FINALIZER
from scope_binding.namespace_scopes.rights import rights_plans, stale
from scope_binding.namespace_scopes.seen import ObservedHome
from scope_binding.namespace_scopes.status import failed_cleanups, refusals_of_surplus, statuses
from tenantry.model.kinds import NAMESPACE_SCOPE, is_terminating, object_of
from tenantry.model.plan import Apply, KubernetesEvent, Plan, Refusal, RemoveFinalizers, Write


def plan(seen: ObservedHome) -> Plan:
    """Everything that has to be written for a namespace, its NamespaceScopes' status apart."""
    parts: list[Write | Plan] = [
        *_finalizers(seen),
        *(config_map_plan(name, scopes, seen) for name, scopes in sorted(sharing(seen).items())),
        *abandoned(seen),
        *rights_plans(seen),
        *injection.writes(seen),
    ]
    return Plan((tuple(parts),))


def report(seen: ObservedHome, refusals: Sequence[Refusal]) -> Plan:
    """The status of each NamespaceScope."""
    return Plan(((*statuses(seen, refusals), *refusals_of_surplus(seen), *failed_cleanups(seen, refusals)),))


def _finalizers(seen: ObservedHome) -> Iterator[Write]:
    """The finalizer while a NamespaceScope lives; off when nothing of ours is left in members, or after ten minutes (N-13)."""
    leftovers = sorted(f"{obj['kind']} {obj['metadata']['namespace']}/{obj['metadata']['name']}" for obj in stale(seen))
    for scope in seen.scopes:
        has = FINALIZER in (scope.live["metadata"].get("finalizers") or ())
        if not scope.leaving and not scope.by_helm:
            metadata = {"name": scope.name, "namespace": scope.namespace, "finalizers": [FINALIZER]}
            yield Apply(NAMESPACE_SCOPE, object_of(NAMESPACE_SCOPE, metadata), scope.live)
        elif not scope.leaving and has:
            yield RemoveFinalizers(NAMESPACE_SCOPE, scope.live, (FINALIZER,))
        elif has and is_terminating(scope.live) and (not leftovers or scope.name in seen.overdue):
            note = f"gone without cleaning up, after ten minutes of trying; left behind: {', '.join(leftovers)}"
            event = KubernetesEvent(scope.live, "LeftBehind", note, "RemoveFinalizer", "Warning") if leftovers else None
            yield RemoveFinalizers(NAMESPACE_SCOPE, scope.live, (FINALIZER,), event)
