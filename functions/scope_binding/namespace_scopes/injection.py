"""Injection: operators that OLM runs read the list of namespaces, whatever their ClusterServiceVersion says (3.11, N-15).

Webhooks of these operators are narrowed to the members of the NamespaceScope.  What is replaced is kept in the annotation
``scope-binding/original`` of the ClusterServiceVersion or webhook configuration, and put back when the injector is switched off,
the annotation that asks for it is removed, or the NamespaceScope is deleted.  Every run starts from what was there before, so the
result depends on the declarations alone.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import from_json

from scope_binding.namespace_scopes.declared import Scope, mapping
from scope_binding.namespace_scopes.names import (
    LABEL_LIMIT,
    LIST_KEY,
    MANAGED_OPERATORS,
    MANAGED_WEBHOOKS,
    OLM_OWNER,
    OLM_OWNER_KIND,
    ORIGINAL,
)
from scope_binding.namespace_scopes.seen import ObservedHome
from scope_binding.objects import KINDS
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    DEPLOYMENT,
    Object,
    annotations_of,
    is_terminating,
    labels_of,
)
from tenantry.model.names import NAMESPACE_NAME
from tenantry.model.plan import Edit, KubernetesEvent, Write
from tenantry.model.pointer import pointer

VARIABLE = "WATCH_NAMESPACE"
COPIED = "olm.copiedFrom"
_DEPLOYMENTS = "/spec/install/spec/deployments"


def writes(seen: ObservedHome) -> Iterator[Write]:
    """Edits of ClusterServiceVersions and webhook configurations, forth and back."""
    edits = [_edit(csv, scopes[0] if scopes else None) for csv, scopes in _claims(seen)]
    yield from (edit for edit in (*edits, *_webhook_edits(seen)) if edit.operations)


def _own_csvs(seen: ObservedHome) -> list[Object]:
    """The ClusterServiceVersions that belong here: OLM's copies of others are OLM's."""
    return [csv for csv in seen.csvs if COPIED not in labels_of(csv) and not is_terminating(csv)]


def _managed_packages(scope: Scope, seen: ObservedHome) -> set[str]:
    """The packages that annotations name, as far as a NamespaceScope takes them."""
    named = (annotations_of(csv).get(MANAGED_OPERATORS, "").split(",") for csv in _own_csvs(seen))
    packages = {package.strip() for names in named for package in names} - {""}
    return packages if scope.packages is None else packages & scope.packages


def _is_of(csv: Object, package: str, namespace: str) -> bool:
    return f"operators.coreos.com/{f'{package}.{namespace}'[:LABEL_LIMIT]}" in labels_of(csv)


def _claims(seen: ObservedHome) -> list[tuple[Object, list[Scope]]]:
    """The ClusterServiceVersions by name, each with the NamespaceScopes that want to inject into it; the oldest does."""
    injecting = [(scope, _managed_packages(scope, seen)) for scope in seen.live if scope.injects and scope.served_config_map]
    return [
        (csv, [scope for scope, packages in injecting if any(_is_of(csv, package, seen.name) for package in packages)])
        for csv in sorted(_own_csvs(seen), key=lambda found: str(found["metadata"]["name"]))
    ]


def summary(scope: Scope, seen: ObservedHome) -> Object:
    """The parts of a NamespaceScope's status about injection; none while it does not inject."""
    if not scope.injects:
        return {}
    packages = sorted(_managed_packages(scope, seen))
    present = [package for package in packages if any(_is_of(csv, package, seen.name) for csv in _own_csvs(seen))]
    webhooks = sorted({found["metadata"]["name"] for found in _managed_webhooks(seen)})
    return {
        "managedCSVList": packages,
        "patchedCSVList": present,
        "managedWebhookList": webhooks,
        "patchedWebhookList": webhooks if _webhook_members(seen) else [],
    }


def problems(scope: Scope, seen: ObservedHome) -> Iterator[str]:
    """What keeps a NamespaceScope from injecting, for its status."""
    for csv, scopes in _claims(seen):
        if scope not in scopes:
            continue
        name, winner = csv["metadata"]["name"], scopes[0]
        if (winner.config_map, winner.restart_labels) != (scope.config_map, scope.restart_labels):
            yield f"ClusterServiceVersion {name} is injected by NamespaceScope {winner.name}: limit csvInjector.managedOperators"
        for problem in _malformed(csv):
            yield f"ClusterServiceVersion {name}: {problem}"


def remarks(scope: Scope, seen: ObservedHome) -> Iterator[str]:
    """Deployments that do not show what was injected: OLM has not carried it on, or somebody took it out there.

    A Deployment that is not there yet is OLM's business alone.
    """
    running = {each["metadata"]["name"]: each for each in seen.workloads if each["kind"] == DEPLOYMENT.kind}
    for csv, scopes in _claims(seen):
        if scope not in scopes[:1]:
            continue
        source = f"ClusterServiceVersion {csv['metadata']['name']}"
        for deployment in _deployments(csv):
            live = running.get(str(mapping(deployment).get("name")))
            if live is not None and not _shows(live, deployment, scope):
                what = f"Deployment {live['metadata']['name']} does not read {VARIABLE} from ConfigMap {scope.config_map} yet"
                yield f"{what}: OLM carries it on from {source}; if that takes long, see its status"


def _shows(live: Object, deployment: Any, scope: Scope) -> bool:
    """Whether in a Deployment the main containers of its ClusterServiceVersion read the list."""
    reading = {place for place, container, _ in _containers(live) if _reference(scope) in (container.get("env") or [])}
    return all(place in reading for place, _, main in _containers(deployment) if main)


def _edit(csv: Object, scope: Scope | None) -> Edit:
    """The edit that injects for a NamespaceScope, or takes an injection back; without operations where nothing changes."""
    record = _record_of(csv)
    live = _deployments(csv)
    wanted = _restored(live, record) if record else copy.deepcopy(live)
    kept: dict[str, Any] = {}
    if scope is not None:
        for deployment in wanted:
            _inject(deployment, scope, kept)
    operations: list[Mapping[str, Any]] = []
    if wanted != live:
        operations.append({"op": "replace", "path": _DEPLOYMENTS, "value": wanted})
    operations += _keeping(csv, kept)
    if scope is None:
        return Edit(CLUSTER_SERVICE_VERSION, csv, tuple(operations))
    note = f"ClusterServiceVersion {csv['metadata']['name']} reads {VARIABLE} from ConfigMap {scope.config_map}"
    return Edit(CLUSTER_SERVICE_VERSION, csv, tuple(operations), KubernetesEvent(scope.live, "Injected", note, "Inject"))


def _record_of(obj: Object) -> dict[str, Any]:
    """What was replaced in an object, by its annotation; nothing where that cannot be read."""
    try:
        return mapping(from_json(annotations_of(obj).get(ORIGINAL, "{}"), allow_inf_nan=False))
    except ValueError:
        return {}


def _keeping(obj: Object, kept: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """JSON patch operations after which the annotation holds this; nothing to keep removes it."""
    value = json.dumps(kept, sort_keys=True, separators=(",", ":")) if kept else ""
    present = annotations_of(obj)
    if present.get(ORIGINAL, "") == value:
        return []
    path = pointer("metadata", "annotations", ORIGINAL)
    if not value:
        return [{"op": "remove", "path": path}]
    first: list[Mapping[str, Any]] = [] if present else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    return [*first, {"op": "add", "path": path, "value": value}]


def _inside(value: Any, *path: str) -> dict[str, Any]:
    """The map at a path; empty where there is none."""
    for step in path:
        value = mapping(value).get(step)
    return mapping(value)


def _deployments(csv: Object) -> list[Any]:
    install = _inside(csv, "spec", "install")
    found = _inside(install, "spec").get("deployments")
    return found if install.get("strategy") == "deployment" and isinstance(found, list) else []


def _containers(deployment: Any) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """(place, container, whether it is a main one) of a deployment in a ClusterServiceVersion, as far as that can be read."""
    for part in ("containers", "initContainers"):
        listed = _inside(deployment, "spec", "template", "spec").get(part)
        for container in listed if isinstance(listed, list) else ():
            if isinstance(container, dict) and isinstance(container.get("env") or [], list):
                yield f"{part}/{container.get('name')}", container, part == "containers"


def _malformed(csv: Object) -> Iterator[str]:
    for deployment in _deployments(csv):
        name = mapping(deployment).get("name")
        listed = _inside(deployment, "spec", "template", "spec").get("containers")
        if not isinstance(listed, list):
            yield f"deployment {name} has no containers"
            continue
        for container in listed:
            if not isinstance(container, dict) or not isinstance(container.get("env") or [], list):
                yield f"deployment {name}: env of container {mapping(container).get('name')} is not a list"


def _reference(scope: Scope) -> Object:
    reference = {"name": scope.config_map, "key": LIST_KEY, "optional": True}
    return {"name": VARIABLE, "valueFrom": {"configMapKeyRef": reference}}


def _is_ours(entry: Any) -> bool:
    """Whether an env entry reads a list of namespaces from a ConfigMap, as we write it."""
    reference = _inside(entry, "valueFrom", "configMapKeyRef")
    return mapping(entry).get("name") == VARIABLE and (reference.get("key"), reference.get("optional")) == (LIST_KEY, True)


def _inject(deployment: Any, scope: Scope, kept: dict[str, Any]) -> None:
    """Write into one deployment, in place, and keep what was there."""
    template = _inside(deployment, "spec", "template")
    if not template:
        return
    record: dict[str, Any] = {"labels": {}, "env": {}}
    metadata = mapping(template.get("metadata"))
    labels = dict(mapping(metadata.get("labels")))
    for key, value in sorted(scope.restart_labels.items()):
        if labels.get(key) != value:
            record["labels"][key] = [labels.get(key), value]
            labels[key] = value
    if record["labels"]:
        record["depth"] = ("metadata" in template) + ("labels" in metadata)
        template["metadata"] = {**metadata, "labels": labels}
    wanted = _reference(scope)
    for place, container, main in _containers(deployment):
        env = container.get("env") or []
        before = [entry for entry in env if mapping(entry).get("name") == VARIABLE]
        if before == [wanted] or (not main and not before):
            continue
        record["env"][place] = before
        container["env"] = _with_entries(env, [wanted])
    if record["labels"] or record["env"]:
        kept[str(mapping(deployment).get("name"))] = record


def _with_entries(env: list[Any], entries: list[Any]) -> list[Any]:
    """An env list with these entries in the place of all that have the variable's name."""
    positions = [number for number, entry in enumerate(env) if mapping(entry).get("name") == VARIABLE]
    others = [entry for entry in env if mapping(entry).get("name") != VARIABLE]
    where = positions[0] if positions else len(others)
    return [*others[:where], *entries, *others[where:]]


def _restored(live: list[Any], record: Mapping[str, Any]) -> list[Any]:
    """Deployments as they were before; what somebody changed since stays as it is now."""
    deployments = copy.deepcopy(live)
    for deployment in deployments:
        kept = mapping(record.get(str(mapping(deployment).get("name"))))
        template = _inside(deployment, "spec", "template")
        labels = _inside(template, "metadata", "labels")
        for key, pair in mapping(kept.get("labels")).items():
            before, written = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
            if key in labels and labels[key] == written:
                if isinstance(before, str):
                    labels[key] = before
                else:
                    del labels[key]
        if kept.get("depth") in (0, 1) and not labels:  # there was nothing to put labels into
            mapping(template.get("metadata")).pop("labels", None)
            if kept["depth"] == 0 and not template.get("metadata"):
                template.pop("metadata", None)
        for place, container, _ in _containers(deployment):
            before = mapping(kept.get("env")).get(place)
            env = container.get("env") or []
            if isinstance(before, list) and any(_is_ours(entry) for entry in env):
                container["env"] = _with_entries(env, before)
    return deployments


# -- webhooks ------------------------------------------------------------------------------------------------------------


def _webhook_members(seen: ObservedHome) -> tuple[str, ...] | None:
    """The namespaces that webhooks are narrowed to: the oldest injecting NamespaceScope's; None while nobody injects.

    Empty when none of the declared members can be served: then webhooks stay as they are.
    """
    scope = next((scope for scope in seen.live if scope.injects), None)
    if scope is None:
        return None
    served = any(name == seen.name or seen.is_member(name) for name in scope.members)
    return seen.validated(scope) if served else ()


def _managed_webhooks(seen: ObservedHome) -> list[Object]:
    """The webhook configurations of the ClusterServiceVersions that ask for it."""
    asking = {csv["metadata"]["name"] for csv in seen.csvs if MANAGED_WEBHOOKS in annotations_of(csv)}
    return [
        found
        for found in seen.webhooks
        if labels_of(found).get(OLM_OWNER) in asking and labels_of(found).get(OLM_OWNER_KIND) == CLUSTER_SERVICE_VERSION.kind
    ]


def _webhook_edits(seen: ObservedHome) -> Iterator[Edit]:
    narrow = _webhook_members(seen)
    asked = _managed_webhooks(seen)
    for found in seen.webhooks:
        chosen = narrow if found in asked else None
        if chosen != ():
            yield _webhook_edit(found, chosen)


def _webhook_edit(found: Object, narrow: tuple[str, ...] | None) -> Edit:
    record = _record_of(found)
    kept: dict[str, Any] = {}
    operations: list[Mapping[str, Any]] = []
    for number, webhook in enumerate(found.get("webhooks") or ()):
        live, name = webhook.get("namespaceSelector") or {}, webhook["name"]
        wanted = record.get(name, live)
        if narrow is not None:
            kept[name] = wanted
            wanted = live if _is_narrowed(live, narrow) else _selector(narrow)
        if wanted != live:
            operations.append({"op": "add", "path": f"/webhooks/{number}/namespaceSelector", "value": wanted})
    operations += _keeping(found, kept)
    return Edit(KINDS[found["kind"]], found, tuple(operations))


def _selector(namespaces: tuple[str, ...]) -> Object:
    return {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": list(namespaces)}]}


def _is_narrowed(selector: Object, namespaces: tuple[str, ...]) -> bool:
    """Whether a selector means exactly these namespaces, in any order."""
    expressions = selector.get("matchExpressions") or []
    if selector.get("matchLabels") or len(expressions) != 1:
        return False
    one = expressions[0]
    return (one.get("key"), one.get("operator"), set(one.get("values") or ())) == (NAMESPACE_NAME, "In", set(namespaces))
