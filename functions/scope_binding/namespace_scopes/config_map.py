"""The ConfigMap with the list of namespaces, and the one restart that follows each change of the list (3.8, N-11, N-12).

The value is the union over all NamespaceScopes that share the ConfigMap.  With a new value the annotation
``scope-binding/restart-pending`` is written in the same apply; the next look restarts the workloads and then takes it off,
so a crash in between is made good.  What the workloads were restarted for is remembered by its hash, so that a
repair of the value restarts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scope_binding.namespace_scopes import kept
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.names import HASH, LIST_KEY, LIST_LABEL, MANAGER, PENDING, value_hash
from scope_binding.namespace_scopes.restarts import restarts
from scope_binding.namespace_scopes.seen import Seen
from tenantry.model.difference import entries_of, owns
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE_SCOPE, Object, annotations_of, is_terminating, labels_of
from tenantry.model.plan import Apply, Delete, Edit, Notice, Plan, Write
from tenantry.model.pointer import pointer

_NOT_PENDING = {"op": "remove", "path": pointer("metadata", "annotations", PENDING)}
"""For a mark that a backup brought back: nobody owns it, so an apply cannot give it up."""


def sharing(seen: Seen) -> dict[str, tuple[Scope, ...]]:
    """The NamespaceScopes by the ConfigMap that they share, the oldest first."""
    found: dict[str, tuple[Scope, ...]] = {}
    for scope in seen.live:
        if scope.served_config_map:
            found[scope.config_map] = (*found.get(scope.config_map, ()), scope)
    return found


def list_of(scopes: Sequence[Scope], seen: Seen) -> str:
    """The value of a ConfigMap: sorted, each namespace once, joined by commas."""
    return ",".join(sorted({name for scope in scopes for name in seen.validated(scope)}))


def shortened(seen: Seen) -> Iterator[tuple[str, str]]:
    """The ConfigMaps whose lists lose namespaces, each with the namespace."""
    for name, scopes in sharing(seen).items():
        value = list_of(scopes, seen)
        before = set((_value_of(kept.with_value(seen.config_maps.get(name), value)) or "").split(",")) - {""}
        yield from ((name, lost) for lost in before - set(value.split(",")))


def config_map_plan(name: str, scopes: tuple[Scope, ...], seen: Seen) -> Plan:
    """The ConfigMap as it should be; while a restart is pending, the restarts first."""
    value = list_of(scopes, seen)
    live = kept.with_value(seen.config_maps.get(name), value)
    wanted_hash = value_hash(value)
    known = _known_hash(live)
    notice = _notice(name, value, live, scopes[0])
    if live is None or known != wanted_hash:
        return Plan(((_apply(name, scopes, seen, value, live, pending=True, notice=notice),),))
    done = _apply(name, scopes, seen, value, live, pending=False, notice=notice)
    if PENDING not in annotations_of(live):
        return Plan(((done,),))
    last: Write = done if owns(live, MANAGER, "metadata", "annotations", PENDING) else Edit(CONFIG_MAP, live, (_NOT_PENDING,))
    return Plan((tuple(restarts(name, scopes, wanted_hash, _changed_at(live), seen)), (last,)))


def _value_of(live: Object | None) -> str | None:
    """The list that a ConfigMap has now."""
    return ((live or {}).get("data") or {}).get(LIST_KEY)


def _known_hash(live: Object | None) -> str:
    """The hash of the value that the workloads know; of a ConfigMap that we did not write, of the value in it."""
    if live is None:
        return ""
    known = annotations_of(live).get(HASH)
    if known:
        return known
    value = _value_of(live)
    return value_hash(",".join(sorted(set(value.split(","))))) if value is not None else ""


def _changed_at(live: Object) -> str:
    """When we wrote the value that is to be made known, by the API server's clock."""
    return max((str(entry.get("time") or "") for entry in entries_of(live, MANAGER)), default="")


def _apply(
    name: str, scopes: tuple[Scope, ...], seen: Seen, value: str, live: Object | None, *, pending: bool, notice: Notice | None
) -> Apply:
    digest = value_hash(value)
    owners = [
        {"apiVersion": NAMESPACE_SCOPE.api_version, "kind": NAMESPACE_SCOPE.kind, "name": scope.name, "uid": scope.uid}
        for scope in sorted(scopes, key=lambda scope: scope.uid)
    ]
    wanted: Object = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {
            "name": name,
            "namespace": seen.name,
            "labels": {LIST_LABEL: "true"},
            "annotations": {HASH: digest, **({PENDING: digest} if pending else {})},
            "ownerReferences": owners,
        },
        "data": {LIST_KEY: value},
    }
    return Apply(CONFIG_MAP, wanted, live, create_only=True, notice=notice)


def _notice(name: str, value: str, live: Object | None, scope: Scope) -> Notice | None:
    if _value_of(live) == value:
        return None
    return Notice(scope.live, "NamespacesChanged", f"ConfigMap {name} lists {value}", "WriteConfigMap")


def unnamed(seen: Seen) -> int:
    """How many ConfigMaps carry the label of lists and are none: no NamespaceScope names them, and we did not write them."""
    return sum(kept.FOREIGN in live for live in seen.config_maps.values())


def abandoned(seen: Seen) -> Iterator[Write]:
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
            identity = {"name": name, "namespace": seen.name}
            yield Apply(CONFIG_MAP, {"apiVersion": "v1", "kind": CONFIG_MAP.kind, "metadata": identity}, live)
