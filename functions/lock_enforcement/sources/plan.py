"""What is watched: the kinds of locked objects, in the namespaces of locked objects, and nothing else.

Two sources, because Knative watches a cluster-scoped kind in the whole cluster only from a source without
``namespaceSelector``.  Only kind and name travel (Reference mode), so that no event ever holds the data of a Secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lock_enforcement import NAME
from lock_enforcement.helm import RECORD_LABELS, STORAGES
from lock_enforcement.sources.descriptor import ACCOUNT, LOCKED
from tenantry.model.kinds import API_SERVER_SOURCE, HELM_RELEASE, Kind, Object, is_terminating, object_of
from tenantry.model.names import LOCKED_CLUSTER_SOURCE, LOCKED_SOURCE, NAMESPACE_NAME, SYSTEM_NAMESPACE
from tenantry.model.plan import NOTHING, Apply, Delete, Plan, Write, plan_of

_LABELS = {"app.kubernetes.io/part-of": "tenantry", "app.kubernetes.io/name": NAME}


@dataclass(frozen=True, slots=True)
class SourcesSeen:
    """The kinds and namespaces of locked objects, and the sources as they are.

    ``served`` is False where the cluster has no ApiServerSources; then nothing is watched but by the sweep.
    """

    kinds: frozenset[Kind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    served: bool = True
    namespaced: Object | None = None
    cluster_wide: Object | None = None


def plan_sources(seen: SourcesSeen) -> Plan:
    """Both sources, or none where nothing needs them."""
    if not seen.served:
        return NOTHING
    ours = (HELM_RELEASE.group, HELM_RELEASE.kind)  # watched already; another group's are not
    kinds = [kind for kind in seen.kinds if (kind.group, kind.kind) != ours]
    inside = [kind for kind in kinds if kind.namespaced]
    selector = {
        "namespaceSelector": {
            "matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": sorted(seen.namespaces)}],
        }
    }
    return plan_of(
        *_source(LOCKED_SOURCE, inside, selector, seen.namespaced),
        *_source(LOCKED_CLUSTER_SOURCE, [kind for kind in kinds if not kind.namespaced], {}, seen.cluster_wide),
    )


def _resource(kind: Kind) -> Object:
    """A kind to watch; Helm's records are watched already, whatever is locked."""
    watched: Object = {"apiVersion": kind.api_version, "kind": kind.kind}
    if kind in STORAGES:
        others = [{"key": name, "operator": "NotIn", "values": [value]} for name, value in RECORD_LABELS.items()]
        watched["selector"] = {"matchExpressions": others}
    return watched


def _source(name: str, kinds: Sequence[Kind], selector: Object, live: Object | None) -> Iterable[Write]:
    if not kinds:
        if live is not None and not is_terminating(live):
            yield Delete(API_SERVER_SOURCE, live)
        return
    broker = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "tenantry", "namespace": SYSTEM_NAMESPACE}
    spec = {
        "serviceAccountName": ACCOUNT,
        "mode": "Reference",
        **selector,
        "resources": [_resource(kind) for kind in sorted(kinds, key=lambda each: (each.api_version, each.kind))],
        "ceOverrides": {"extensions": dict([LOCKED])},
        "sink": {"ref": broker},
    }
    metadata = {"name": name, "namespace": SYSTEM_NAMESPACE, "labels": _LABELS}
    yield Apply(API_SERVER_SOURCE, object_of(API_SERVER_SOURCE, metadata, spec=spec), live)
