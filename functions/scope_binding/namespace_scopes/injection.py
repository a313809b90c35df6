"""Injection: operators that OLM runs read the list of namespaces, whatever their ClusterServiceVersion says (3.11, N-15).

What is replaced is kept in the annotation ``scope-binding/original`` of the ClusterServiceVersion, and put back when the
injector is switched off, the annotation that asks for it is removed, or the NamespaceScope goes.  Every look starts from
what was there before, so the result depends on the declarations alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from scope_binding.namespace_scopes import webhooks
from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.names import LABEL_LIMIT, LIST_KEY, MANAGED_OPERATORS
from scope_binding.namespace_scopes.originals import keeping, record_of
from scope_binding.namespace_scopes.seen import Seen
from tenantry.model.kinds import CLUSTER_SERVICE_VERSION, DEPLOYMENT, Object, annotations_of, is_terminating, labels_of
from tenantry.model.plan import Edit, Notice, Write

VARIABLE = "WATCH_NAMESPACE"
COPIED = "olm.copiedFrom"
_DEPLOYMENTS = "/spec/install/spec/deployments"


def writes(seen: Seen) -> Iterator[Write]:
    """Edits of ClusterServiceVersions and webhook configurations, forth and back."""
    owners = claims(seen)
    for csv in _own_csvs(seen):
        scopes = owners.get(csv["metadata"]["name"], ())
        edit = _edit(csv, scopes[0] if scopes else None)
        if edit is not None:
            yield edit
    yield from webhooks.writes(seen)


def _own_csvs(seen: Seen) -> list[Object]:
    """The ClusterServiceVersions that belong here: OLM's copies of others are OLM's."""
    return [csv for csv in seen.csvs if COPIED not in labels_of(csv) and not is_terminating(csv)]


def managed_packages(scope: Scope, seen: Seen) -> set[str]:
    """The packages that annotations name, as far as a NamespaceScope takes them."""
    named = (annotations_of(csv).get(MANAGED_OPERATORS, "").split(",") for csv in _own_csvs(seen))
    packages = {package.strip() for names in named for package in names} - {""}
    return packages if scope.packages is None else packages & scope.packages


def _is_of(csv: Object, package: str, namespace: str) -> bool:
    return f"operators.coreos.com/{f'{package}.{namespace}'[:LABEL_LIMIT]}" in labels_of(csv)


def claims(seen: Seen) -> dict[str, tuple[Scope, ...]]:
    """By ClusterServiceVersion the NamespaceScopes that want to inject into it; the first, the oldest, does."""
    found: dict[str, tuple[Scope, ...]] = {}
    for scope in seen.live:
        if not scope.injects or not scope.served_config_map:
            continue
        packages = managed_packages(scope, seen)
        for csv in _own_csvs(seen):
            if any(_is_of(csv, package, seen.name) for package in packages):
                name = csv["metadata"]["name"]
                found[name] = (*found.get(name, ()), scope)
    return found


def _claimed(seen: Seen) -> Iterator[tuple[Object, tuple[Scope, ...]]]:
    """The ClusterServiceVersions that are claimed, by name, with who claims them."""
    owners = claims(seen)
    for csv in sorted(_own_csvs(seen), key=lambda found: str(found["metadata"]["name"])):
        if scopes := owners.get(csv["metadata"]["name"]):
            yield csv, scopes


def summary(scope: Scope, seen: Seen) -> Object:
    """The parts of a NamespaceScope's status about injection; none while it does not inject."""
    if not scope.injects:
        return {}
    packages = sorted(managed_packages(scope, seen))
    present = [package for package in packages if any(_is_of(csv, package, seen.name) for csv in _own_csvs(seen))]
    return {"managedCSVList": packages, "patchedCSVList": present, **webhooks.summary(seen)}


def problems(scope: Scope, seen: Seen) -> Iterator[str]:
    """What a NamespaceScope has to be told about its injection."""
    for csv, scopes in _claimed(seen):
        name, winner = csv["metadata"]["name"], scopes[0]
        if scope not in scopes:
            continue
        if (winner.config_map, winner.restart_labels) != (scope.config_map, scope.restart_labels):
            yield f"ClusterServiceVersion {name} is injected by NamespaceScope {winner.name}: limit csvInjector.managedOperators"
        for problem in _malformed(csv):
            yield f"ClusterServiceVersion {name}: {problem}"


def remarks(scope: Scope, seen: Seen) -> Iterator[str]:
    """Deployments that do not show what was injected: OLM has not carried it on, or somebody took it out there.

    A Deployment that is not there yet is OLM's business alone.
    """
    running = {each["metadata"]["name"]: each for each in seen.workloads if each["kind"] == DEPLOYMENT.kind}
    for csv, scopes in _claimed(seen):
        if scopes[0].uid != scope.uid:
            continue
        source = f"ClusterServiceVersion {csv['metadata']['name']}"
        for deployment in _deployments(csv):
            live = running.get(str(_mapping(deployment).get("name")))
            if live is not None and not _shows(live, deployment, scope):
                what = f"Deployment {live['metadata']['name']} does not read {VARIABLE} from ConfigMap {scope.config_map} yet"
                yield f"{what}: OLM carries it on from {source}; if that takes long, see its status"


def _shows(live: Object, deployment: Any, scope: Scope) -> bool:
    """Whether in a Deployment the main containers of its ClusterServiceVersion read the list."""
    reading = {place for place, container, _ in _containers(live) if _reference(scope) in (container.get("env") or [])}
    return all(place in reading for place, _, main in _containers(deployment) if main)


def _edit(csv: Object, scope: Scope | None) -> Edit | None:
    """The edit that injects for a NamespaceScope, or takes an injection back."""
    record = record_of(csv)
    live = _deployments(csv)
    wanted = _restored(live, record) if record else copy.deepcopy(live)
    kept: dict[str, Any] = {}
    if scope is not None:
        for deployment in wanted:
            _inject(deployment, scope, kept)
    operations: list[Mapping[str, Any]] = []
    if wanted != live:
        operations.append({"op": "replace", "path": _DEPLOYMENTS, "value": wanted})
    operations += keeping(csv, kept)
    if not operations:
        return None
    if scope is None:
        return Edit(CLUSTER_SERVICE_VERSION, csv, tuple(operations))
    note = f"ClusterServiceVersion {csv['metadata']['name']} reads {VARIABLE} from ConfigMap {scope.config_map}"
    return Edit(CLUSTER_SERVICE_VERSION, csv, tuple(operations), Notice(scope.live, "Injected", note, "Inject"))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _deployments(csv: Object) -> list[Any]:
    install = _mapping(_mapping(csv.get("spec")).get("install"))
    found = _mapping(install.get("spec")).get("deployments")
    return found if install.get("strategy") == "deployment" and isinstance(found, list) else []


def _containers(deployment: Any) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """(place, container, whether it is a main one) of a deployment in a ClusterServiceVersion, as far as that can be read."""
    template = _mapping(_mapping(_mapping(deployment).get("spec")).get("template"))
    for part in ("containers", "initContainers"):
        listed = _mapping(template.get("spec")).get(part)
        for container in listed if isinstance(listed, list) else ():
            if isinstance(container, dict) and isinstance(container.get("env") or [], list):
                yield f"{part}/{container.get('name')}", container, part == "containers"


def _malformed(csv: Object) -> Iterator[str]:
    """What in a ClusterServiceVersion cannot be injected into."""
    for deployment in _deployments(csv):
        name = _mapping(deployment).get("name")
        template = _mapping(_mapping(_mapping(deployment).get("spec")).get("template"))
        listed = _mapping(template.get("spec")).get("containers")
        if not isinstance(listed, list):
            yield f"deployment {name} has no containers"
            continue
        for container in listed:
            if not isinstance(container, dict) or not isinstance(container.get("env") or [], list):
                yield f"deployment {name}: env of container {_mapping(container).get('name')} is not a list"


def _reference(scope: Scope) -> Object:
    """The env entry that reads the list of a NamespaceScope."""
    reference = {"name": scope.config_map, "key": LIST_KEY, "optional": True}
    return {"name": VARIABLE, "valueFrom": {"configMapKeyRef": reference}}


def _is_ours(entry: Any) -> bool:
    """Whether an env entry reads a list of namespaces from a ConfigMap, as we write it."""
    reference = _mapping(_mapping(_mapping(entry).get("valueFrom")).get("configMapKeyRef"))
    return _mapping(entry).get("name") == VARIABLE and (reference.get("key"), reference.get("optional")) == (LIST_KEY, True)


def _inject(deployment: Any, scope: Scope, kept: dict[str, Any]) -> None:
    """Write into one deployment, in place, and keep what was there."""
    template = _mapping(_mapping(_mapping(deployment).get("spec")).get("template"))
    if not template:
        return
    record: dict[str, Any] = {"labels": {}, "env": {}}
    metadata = _mapping(template.get("metadata"))
    labels = dict(_mapping(metadata.get("labels")))
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
        before = [entry for entry in env if _mapping(entry).get("name") == VARIABLE]
        if before == [wanted] or (not main and not before):
            continue
        record["env"][place] = before
        container["env"] = _with_entries(env, [wanted])
    if record["labels"] or record["env"]:
        kept[str(_mapping(deployment).get("name"))] = record


def _with_entries(env: list[Any], entries: list[Any]) -> list[Any]:
    """An env list with these entries in the place of all that have the variable's name."""
    positions = [number for number, entry in enumerate(env) if _mapping(entry).get("name") == VARIABLE]
    others = [entry for entry in env if _mapping(entry).get("name") != VARIABLE]
    where = positions[0] if positions else len(others)
    return [*others[:where], *entries, *others[where:]]


def _restored(live: list[Any], record: Mapping[str, Any]) -> list[Any]:
    """Deployments as they were before; what somebody changed since stays as it is now."""
    deployments = copy.deepcopy(live)
    for deployment in deployments:
        kept = _mapping(record.get(str(_mapping(deployment).get("name"))))
        template = _mapping(_mapping(_mapping(deployment).get("spec")).get("template"))
        labels = _mapping(_mapping(template.get("metadata")).get("labels"))
        for key, pair in _mapping(kept.get("labels")).items():
            before, written = pair if isinstance(pair, list) and len(pair) == 2 else (None, None)
            if key in labels and labels[key] == written:
                if isinstance(before, str):
                    labels[key] = before
                else:
                    del labels[key]
        if kept.get("depth") in (0, 1) and not labels:  # there was nothing to put labels into
            _mapping(template.get("metadata")).pop("labels", None)
            if kept["depth"] == 0 and not template.get("metadata"):
                template.pop("metadata", None)
        for place, container, _ in _containers(deployment):
            before = _mapping(kept.get("env")).get(place)
            env = container.get("env") or []
            if isinstance(before, list) and any(_is_ours(entry) for entry in env):
                container["env"] = _with_entries(env, before)
    return deployments
