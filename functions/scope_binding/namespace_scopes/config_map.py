"""The ConfigMap with the list of namespaces, and the one restart that follows each change of the list (3.8, N-11, N-12).

The value is the union over all NamespaceScopes that share the ConfigMap.  With a new value the annotation
``scope-binding/restart-pending`` is written in the same apply; the next run restarts the workloads and then takes it off,
so a crash in between is made good.  The hash of the value that workloads were restarted for is kept, so that a repair of the
value restarts nothing.

Workloads are restarted by an annotation on their pod template, pods that OLM runs by deletion.  It concerns only pods that have
the restart labels of a NamespaceScope that shares the ConfigMap, and that really use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scope_binding.namespace_scopes import kept
from scope_binding.namespace_scopes.accounts import has_labels, template_of
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.names import (
    HASH,
    LIST_KEY,
    LIST_LABEL,
    MANAGER,
    NO_RESTART,
    OLM_GROUP,
    PENDING,
    TEMPLATE_HASH,
    value_hash,
)
from scope_binding.namespace_scopes.seen import ObservedHome
from tenantry.model.difference import entries_of, owns
from tenantry.model.kinds import (
    CONFIG_MAP,
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE_SCOPE,
    POD,
    STATEFUL_SET,
    Object,
    annotations_of,
    is_terminating,
    labels_of,
    object_of,
)
from tenantry.model.plan import Apply, Delete, Edit, KubernetesEvent, Plan, Write
from tenantry.model.pointer import pointer

_NOT_PENDING = {"op": "remove", "path": pointer("metadata", "annotations", PENDING)}
"""For a mark that a backup brought back: nobody owns it, so an apply cannot give it up."""
WORKLOADS = {kind.kind: kind for kind in (DEPLOYMENT, STATEFUL_SET, DAEMON_SET)}


def sharing(seen: ObservedHome) -> dict[str, tuple[Scope, ...]]:
    """The NamespaceScopes by the ConfigMap that they share, the oldest first."""
    found: dict[str, tuple[Scope, ...]] = {}
    for scope in seen.live:
        if scope.served_config_map:
            found[scope.config_map] = (*found.get(scope.config_map, ()), scope)
    return found


def list_of(scopes: Sequence[Scope], seen: ObservedHome) -> str:
    """The value of a ConfigMap: sorted, each namespace once, joined by commas."""
    return ",".join(sorted({name for scope in scopes for name in seen.validated(scope)}))


def shortened(seen: ObservedHome) -> Iterator[tuple[str, str]]:
    """The ConfigMaps whose lists lose namespaces, each with the namespace."""
    for name, scopes in sharing(seen).items():
        value = list_of(scopes, seen)
        before = set((_value_of(kept.with_value(seen.config_maps.get(name), value)) or "").split(",")) - {""}
        yield from ((name, lost) for lost in before - set(value.split(",")))


def config_map_plan(name: str, scopes: tuple[Scope, ...], seen: ObservedHome) -> Plan:
    """The ConfigMap as it should be; while a restart is pending, the restarts first."""
    value = list_of(scopes, seen)
    live = kept.with_value(seen.config_maps.get(name), value)
    wanted_hash = value_hash(value)
    if live is None or _known_hash(live) != wanted_hash:
        return Plan(((_apply(name, scopes, value, live, pending=True),),))
    done = _apply(name, scopes, value, live, pending=False)
    if PENDING not in annotations_of(live):
        return Plan(((done,),))
    last: Write = done if owns(live, MANAGER, "metadata", "annotations", PENDING) else Edit(CONFIG_MAP, live, (_NOT_PENDING,))
    # When we wrote the value that the workloads are to read, by the API server's clock.
    changed_at = max((str(entry.get("time") or "") for entry in entries_of(live, MANAGER)), default="")
    return Plan((tuple(_restarts(name, scopes, wanted_hash, changed_at, seen)), (last,)))


def _value_of(live: Object | None) -> str | None:
    return ((live or {}).get("data") or {}).get(LIST_KEY)


def _known_hash(live: Object) -> str:
    """The hash of the value that the workloads know; of a ConfigMap that we did not write, of the value in it."""
    if known := annotations_of(live).get(HASH):
        return known
    value = _value_of(live)
    return value_hash(",".join(sorted(set(value.split(","))))) if value is not None else ""


def _apply(name: str, scopes: tuple[Scope, ...], value: str, live: Object | None, *, pending: bool) -> Apply:
    digest = value_hash(value)
    owners = [
        {"apiVersion": NAMESPACE_SCOPE.api_version, "kind": NAMESPACE_SCOPE.kind, "name": scope.name, "uid": scope.uid}
        for scope in sorted(scopes, key=lambda scope: scope.uid)
    ]
    metadata = {
        "name": name,
        "namespace": scopes[0].namespace,
        "labels": {LIST_LABEL: "true"},
        "annotations": {HASH: digest, **({PENDING: digest} if pending else {})},
        "ownerReferences": owners,
    }
    wanted = object_of(CONFIG_MAP, metadata, data={LIST_KEY: value})
    event = KubernetesEvent(scopes[0].live, "NamespacesChanged", f"ConfigMap {name} lists {value}", "WriteConfigMap")
    return Apply(CONFIG_MAP, wanted, live, create_only=True, event=event if _value_of(live) != value else None)


def unnamed(seen: ObservedHome) -> int:
    """How many ConfigMaps carry the label of lists and are none: no NamespaceScope names them, and we did not write them."""
    return sum(kept.FOREIGN in live for live in seen.config_maps.values())


def abandoned(seen: ObservedHome) -> Iterator[Write]:
    """ConfigMaps that we wrote and nobody shares any more: deleted, or given up where others have something in them.

    What came back from a backup has lost its field owners: there our annotation says that we wrote it.
    """
    wanted = sharing(seen)
    for name, live in sorted(seen.config_maps.items()):
        if name in wanted or is_terminating(live) or not kept.is_written(live):
            continue
        others = [owner for owner in live["metadata"].get("ownerReferences") or () if owner.get("kind") != NAMESPACE_SCOPE.kind]
        ours_alone = LIST_LABEL in labels_of(live) and not others and not live["metadata"].get("finalizers")
        if ours_alone and set(live.get("data") or ()) == {LIST_KEY} and not live.get("binaryData"):
            yield Delete(CONFIG_MAP, live)
        else:
            yield Apply(CONFIG_MAP, object_of(CONFIG_MAP, {"name": name, "namespace": seen.name}), live)


# -- restarts ------------------------------------------------------------------------------------------------------------


def _config_maps_of(pod: Object) -> Iterator[str | None]:
    """The ConfigMaps that a pod, or a pod template, takes something from: by volume, ``env`` or ``envFrom``."""
    spec = pod.get("spec") or {}
    for volume in spec.get("volumes") or ():
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            yield (source.get("configMap") or {}).get("name")
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for source in container.get("envFrom") or ():
            yield (source.get("configMapRef") or {}).get("name")
        for variable in container.get("env") or ():
            yield ((variable.get("valueFrom") or {}).get("configMapKeyRef") or {}).get("name")


def _restarts(config_map: str, scopes: Sequence[Scope], digest: str, changed_at: str, seen: ObservedHome) -> Iterator[Write]:
    """The writes that make everything read the list anew; what was restarted for this value already is left alone."""

    def concerned(pod: Object) -> bool:
        chosen = any(has_labels(pod, scope.restart_labels) for scope in scopes)
        return chosen and annotations_of(pod).get(NO_RESTART) != "true" and config_map in _config_maps_of(pod)

    for workload in seen.workloads:
        template = template_of(workload)
        if concerned(template) and OLM_GROUP not in annotations_of(template) and not is_terminating(workload):
            kind = WORKLOADS[workload["kind"]]
            metadata = {part: workload["metadata"][part] for part in ("name", "namespace")}
            wanted = object_of(kind, metadata, spec={"template": {"metadata": {"annotations": {TEMPLATE_HASH: digest}}}})
            yield Apply(kind, wanted, workload, event=_restarted(workload, config_map, scopes[0]))
    for pod in seen.pods:
        known_already = str(pod["metadata"].get("creationTimestamp") or "") > changed_at
        if concerned(pod) and OLM_GROUP in annotations_of(pod) and not is_terminating(pod) and not known_already:
            yield Delete(POD, pod, _restarted(pod, config_map, scopes[0]))


def _restarted(restarted: Object, config_map: str, scope: Scope) -> KubernetesEvent:
    what = f"{restarted['kind']} {restarted['metadata']['name']}"
    return KubernetesEvent(scope.live, "Restarted", f"{what} was restarted: ConfigMap {config_map} has another list", "Restart")
