"""Restarting what reads the list of namespaces: workloads by an annotation on their pod template, OLM's pods by deletion.

Only pods that have the restart labels of a NamespaceScope that shares the ConfigMap, and that really use it (3.8, N-12).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scope_binding.namespace_scopes.accounts import has_labels, template_of
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.names import NO_RESTART, OLM_GROUP, TEMPLATE_HASH
from scope_binding.namespace_scopes.seen import Seen
from tenantry.model.kinds import DAEMON_SET, DEPLOYMENT, POD, STATEFUL_SET, Object, annotations_of, is_terminating
from tenantry.model.plan import Apply, Delete, Notice, Write

KINDS = {kind.kind: kind for kind in (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)}


def uses(pod: Object, config_map: str) -> bool:
    """Whether a pod, or a pod template, takes something from the ConfigMap: by volume, ``env`` or ``envFrom``."""
    spec = pod.get("spec") or {}
    for volume in spec.get("volumes") or ():
        projected = (volume.get("projected") or {}).get("sources") or ()
        if any((source.get("configMap") or {}).get("name") == config_map for source in (volume, *projected)):
            return True
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for source in container.get("envFrom") or ():
            if (source.get("configMapRef") or {}).get("name") == config_map:
                return True
        for variable in container.get("env") or ():
            reference = (variable.get("valueFrom") or {}).get("configMapKeyRef") or {}
            if reference.get("name") == config_map:
                return True
    return False


def restarts(config_map: str, scopes: Sequence[Scope], digest: str, changed_at: str, seen: Seen) -> Iterator[Write]:
    """The writes that make everything read the list anew; what was restarted for this value already is left alone."""

    def concerned(pod: Object) -> bool:
        chosen = any(has_labels(pod, scope.restart_labels) for scope in scopes)
        return chosen and annotations_of(pod).get(NO_RESTART) != "true" and uses(pod, config_map)

    for workload in seen.workloads:
        template = template_of(workload)
        if concerned(template) and OLM_GROUP not in annotations_of(template) and not is_terminating(workload):
            metadata = {part: workload["metadata"][part] for part in ("name", "namespace")}
            wanted: Object = {
                "apiVersion": workload["apiVersion"],
                "kind": workload["kind"],
                "metadata": metadata,
                "spec": {"template": {"metadata": {"annotations": {TEMPLATE_HASH: digest}}}},
            }
            yield Apply(KINDS[workload["kind"]], wanted, workload, notice=_notice(workload, config_map, scopes[0]))
    for pod in seen.pods:
        known_already = str(pod["metadata"].get("creationTimestamp") or "") > changed_at
        if concerned(pod) and OLM_GROUP in annotations_of(pod) and not is_terminating(pod) and not known_already:
            yield Delete(POD, pod, _notice(pod, config_map, scopes[0]))


def _notice(restarted: Object, config_map: str, scope: Scope) -> Notice:
    what = f"{restarted['kind']} {restarted['metadata']['name']}"
    return Notice(scope.live, "Restarted", f"{what} was restarted: ConfigMap {config_map} has another list", "Restart")
