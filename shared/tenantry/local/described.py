"""The manifests that follow from a function's descriptor: its Services, its sources with their rights, and what wakes whom.

`tenantry.local.manifest_files` keeps the files with them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.kinds import guess_plural
from tenantry.local.policies import PART_OF
from tenantry.model.descriptor import DUTY_VARIABLE, Descriptor, Service, Source, Trigger
from tenantry.model.event import APISERVER_TYPE_PREFIX, PING_TYPE, RECONCILE_REQUESTED_TYPE
from tenantry.model.kinds import CLUSTER_ROLE, EVENT, Kind, Object
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.serving.installed import descriptors, service_named

ADAPTER = "gcr.io/knative-releases/knative.dev/eventing/cmd/apiserver_receive_adapter@sha256:15a33e67e795c2547e0734d3397d95afa2a4266a0d76fdd896444f27e4182997"  # noqa: E501
"""The adapter of the Knative Eventing that the manifests are written for."""
_BROKER = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "tenantry", "namespace": SYSTEM_NAMESPACE}
_CONFINED = {
    "runAsNonRoot": True,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}

Files = dict[str, list[Object]]
"""Documents by the path of their file in the repository."""


def described(functions: Iterable[Descriptor]) -> Files:
    """Everything that follows from these descriptors."""
    files: Files = defaultdict(list)
    rights: list[Object] = []
    for function in functions:
        events = f"triggers/{function.name}.yaml"
        for service in function.services:
            folder, apart = f"knative/{service.name}", f"knative/{service.rights_folder}" if service.rights_folder else ""
            files[f"{folder}/serviceaccount.yaml"].append(_account(service.name, _labels(service)))
            files[f"{folder}/service.yaml"].append(_knative_service(service))
            files[f"knative/overlays/deployment/{service.name}.yaml"] += _deployment(service)
            for source in service.sources:
                at = f"knative/{source.folder}" if source.folder else apart
                files[f"{at}/source.yaml" if at else events].append(_source(source, service))
            (files[f"{apart}/source-rights.yaml"] if apart else rights).extend(_source_rights(service))
        files[events].append(_ping(function))
        for service in function.services:
            for trigger, folder in _triggers(service, alone=len(function.services) == 1):
                files[f"knative/{folder}/triggers.yaml" if folder else events].append(trigger)
    files["knative/base/source-rights.yaml"] = rights
    return {path: documents for path, documents in files.items() if documents}


def unshipped() -> list[Descriptor]:
    """The functions that another distribution brings: no folder in ``knative/`` is theirs."""
    knative = deployment_folder("knative")
    return [each for each in descriptors().values() if not (knative / each.name).is_dir()]


def function_documents(name: str) -> list[Object]:
    """A function's Services with identities and rights, also what comes with another system; or who takes dead letters."""
    function = descriptors().get(name)
    if function in unshipped():
        made = [*described([function]).values(), *map(first_rights, function.services)]
        return [document for found in made for document in found]
    services = function.services if function is not None else (service_named(name),)
    folders = [*(each.name for each in services), *(each.rights_folder for each in services if each.rights_folder)]
    return documents(*(deployment_folder("knative") / folder for folder in folders))


def first_rights(service: Service) -> list[Object]:
    """What an identity may do before anything was seen to use its rights."""
    rules = [
        *_rules(service.reads, "get", "list"),
        *_rules(service.writes, "get", "list", "create", "patch", "delete"),
        *_rules([EVENT], "create"),
    ]
    return list(_bound(f"tenantry-{service.name}", service.name, _labels(service), rules))


def image_of(function: str) -> str:
    """The name that manifests have for the image of a function; a kustomization gives its tag."""
    return f"image.invalid/tenantry/{function}"


def _source_account(service: Service) -> str:
    """The identity of a Service's sources that have none of their own."""
    return f"tenantry-source-{service.name}"


def _labels(service: Service) -> dict[str, str]:
    return {**PART_OF, "app.kubernetes.io/name": service.name}


def _document(api_version: str, kind: str, name: str, labels: Mapping[str, str], *, namespaced: bool = True) -> Object:
    where = {"namespace": SYSTEM_NAMESPACE} if namespaced else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **where, "labels": dict(labels)}}


def _account(name: str, labels: Mapping[str, str]) -> Object:
    return _document("v1", "ServiceAccount", name, labels)


# -- Services ----------------------------------------------------------------------------------------------


def _probe(path: str, port: str | int, **more: int) -> Object:
    return {"httpGet": {"path": f"/health/{path}", "port": port}, **more}


def _container(service: Service, port: Object, env: list[Object], ready: Object, alive: Object) -> Object:
    duty = [{"name": DUTY_VARIABLE, "value": service.duty}] if service.duty else []
    tokens = [{"name": each.variable, "value": f"{_TOKENS}/{each.secret}/token"} for each in service.routes]
    return {
        "name": "function",
        "image": image_of(service.function),
        "ports": [port],
        "env": [*env, {"name": "TENANTRY_CONFIG", "value": "/etc/tenantry/tenantry.yaml"}, *duty, *tokens],
        "readinessProbe": ready,
        "livenessProbe": alive,
        "resources": {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": f"{service.memory_mib}Mi"}},
        "securityContext": _CONFINED,
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/tenantry", "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - in the container
            *({"name": each.secret, "mountPath": f"{_TOKENS}/{each.secret}", "readOnly": True} for each in service.routes),
        ],
    }


_TOKENS = "/etc/tenantry-tokens"


def _volumes(service: Service) -> list[Object]:
    """The configuration, and the tokens of routes where administrators have made them."""
    return [
        {"name": "config", "configMap": {"name": "tenantry-config"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}},
        *({"name": each.secret, "secret": {"secretName": each.secret, "optional": True}} for each in service.routes),
    ]


_PATIENT = {"periodSeconds": 15, "timeoutSeconds": 5, "failureThreshold": 3}


def _knative_service(service: Service) -> Object:
    labels = _labels(service)
    document = _document("serving.knative.dev/v1", "Service", service.name, labels)
    document["metadata"]["labels"]["networking.knative.dev/visibility"] = "cluster-local"
    scaling = {"min-scale": "0", "max-scale": "2", "scale-to-zero-pod-retention-period": "2m", "target-burst-capacity": "-1"}
    container = _container(
        service,
        {"name": "http1", "containerPort": 8080},
        [],
        _probe("readiness", 8080),
        _probe("liveness", 8080, **_PATIENT),
    )
    document["spec"] = {
        "template": {
            "metadata": {
                "labels": labels,
                "annotations": {f"autoscaling.knative.dev/{name}": value for name, value in scaling.items()},
            },
            "spec": {
                "serviceAccountName": service.name,
                "containerConcurrency": 64,
                "timeoutSeconds": 45,
                "enableServiceLinks": False,
                "containers": [container],
                "volumes": _volumes(service),
            },
        }
    }
    return document


def _deployment(service: Service) -> Iterator[Object]:
    labels = _labels(service)
    core = _document("v1", "Service", service.name, labels)
    core["spec"] = {"type": "ClusterIP", "selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    yield core
    container = _container(
        service,
        {"name": "http", "containerPort": 8080},
        [{"name": "PORT", "value": "8080"}],
        _probe("readiness", "http", periodSeconds=5, timeoutSeconds=2),
        _probe("liveness", "http", **_PATIENT),
    )
    pods = {
        "serviceAccountName": service.name,
        "enableServiceLinks": False,
        "priorityClassName": "tenantry",
        "terminationGracePeriodSeconds": 50,
        "containers": [container],
        "volumes": _volumes(service),
    }
    deployment = _document("apps/v1", "Deployment", service.name, labels)
    deployment["spec"] = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pods},
    }
    yield deployment


# -- events ------------------------------------------------------------------------------------------------


def _source(source: Source, service: Service) -> Object:
    """An ApiServerSource; of namespaced kinds in all namespaces the adapter itself, which then nothing replaces.

    The adapter itself, too, for a kind whose plural Knative would guess wrongly: it can be told.
    """
    extension, value = source.mark or ("watch", service.function)
    overrides = {"ceOverrides": {"extensions": {extension: value}}, "sink": {"ref": _BROKER}}
    mode, account = "Resource" if source.whole else "Reference", source.account or _source_account(service)
    told = any(watch.kind.namespaced or guess_plural(watch.kind.kind) != watch.kind.plural for watch in source.watches)
    if source.own_namespace or not told:
        document = _document("sources.knative.dev/v1", "ApiServerSource", source.name, _labels(service))
        resources = [
            {"apiVersion": watch.kind.api_version, "kind": watch.kind.kind, **_selector(watch.selector)}
            for watch in source.watches
        ]
        document["spec"] = {"serviceAccountName": account, "mode": mode, "resources": resources, **overrides}
        return document
    document = _document("sources.knative.dev/v1", "ContainerSource", source.name, _labels(service))
    env = {
        "NAME": source.name,
        "NAMESPACE": SYSTEM_NAMESPACE,
        "SYSTEM_NAMESPACE": "knative-eventing",
        "K_SINK_TIMEOUT": "15",
        "KUBE_API_QPS": "20",
        "KUBE_API_BURST": "40",
        "K_SOURCE_CONFIG": _adapter_config(source, mode),
    }
    container = {
        "name": "receive-adapter",
        "image": ADAPTER,
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "ports": [{"name": "probes", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/readiness", "port": "probes"}},
        "livenessProbe": {"httpGet": {"path": "/health", "port": "probes"}},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": _CONFINED,
    }
    pods = {
        "serviceAccountName": account,
        "enableServiceLinks": False,
        "priorityClassName": "tenantry",
        "containers": [container],
    }
    document["spec"] = {**overrides, "template": {"spec": pods}}
    return document


def _selector(text: str) -> Object:
    """``selector`` of an ApiServerSource: a label that is there; nothing here needs more."""
    return {"selector": {"matchExpressions": [{"key": text, "operator": "Exists"}]}} if text else {}


def _adapter_config(source: Source, mode: str) -> str:
    """The adapter's own configuration, a resource a line."""
    lines = []
    for watch in source.watches:
        group, _, version = watch.kind.api_version.rpartition("/")
        entry: Object = {"gvr": {"Group": group, "Version": version, "Resource": watch.kind.plural}}
        lines.append(json.dumps({**entry, **({"selector": watch.selector} if watch.selector else {})}))
    head = json.dumps({"namespaces": [""], "allNamespaces": True, "mode": mode})[1:-1].replace(', "', ',\n  "')
    return "{\n  " + head + ',\n  "resources": [\n    ' + ",\n    ".join(lines) + "\n  ]\n}\n"


def _ping(function: Descriptor) -> Object:
    document = _document("sources.knative.dev/v1", "PingSource", f"{function.name}-sweep", _labels(function.services[0]))
    document["spec"] = {
        "schedule": function.sweep,
        "contentType": "application/json",
        "data": '{"resync":"all"}',
        "ceOverrides": {"extensions": {"resync": function.name}},
        "sink": {"ref": _BROKER},
    }
    return document


def _triggers(service: Service, *, alone: bool) -> Iterator[tuple[Object, str]]:
    """The Triggers of a Service, each with the folder in ``knative/`` that it is in if it comes with another system."""
    usual = service.rights_folder
    for each in service.triggers:
        filters = [{"prefix": {"type": APISERVER_TYPE_PREFIX}}, _wanted(each)]
        yield _trigger(each.name, service, filters), each.folder or usual
    yield _trigger(f"{service.name}-sweep", service, [{"exact": {"type": PING_TYPE, "resync": service.function}}]), usual
    asked: list[Object] = [
        {"exact": {"type": RECONCILE_REQUESTED_TYPE, "function": service.function, **unit}}
        for unit in ([{}] if alone else [{"unit": name} for name in service.units])
    ]
    yield _trigger(f"{service.name}-requested", service, [_any_of(asked)]), usual


def _wanted(trigger: Trigger) -> Object:
    if trigger.mark is not None:
        return {"exact": dict([trigger.mark])}
    found: list[Object] = [
        {"exact": {"kind": each.kind.kind, "apiversion": each.kind.api_version, "watch": each.function}}
        for each in trigger.events
    ]
    return _any_of(found)


def _any_of(filters: list[Object]) -> Object:
    return filters[0] if len(filters) == 1 else {"any": filters}


def _trigger(name: str, service: Service, filters: list[Object]) -> Object:
    def called(name: str) -> Object:
        return {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": name, "namespace": SYSTEM_NAMESPACE}

    document = _document("eventing.knative.dev/v1", "Trigger", name, _labels(service))
    document["spec"] = {
        "broker": "tenantry",
        "filters": filters,
        "subscriber": {"ref": called(service.name)},
        "delivery": {
            "retry": 6,
            "backoffPolicy": "exponential",
            "backoffDelay": "PT1S",
            "timeout": "PT60S",
            "deadLetterSink": {"ref": called("dead-letters"), "uri": f"/{service.function}"},
        },
    }
    return document


def _source_rights(service: Service) -> Iterator[Object]:
    """The identity of a Service's sources, which reads the kinds that they name; none where it has rights of its own."""
    watched = [watch.kind for source in service.sources if not source.account for watch in source.watches]
    if not watched:
        return
    name = _source_account(service)
    yield _account(name, PART_OF)
    yield from _bound(name, name, PART_OF, _rules(watched, "get", "list", "watch"))


def _bound(name: str, account: str, labels: Mapping[str, str], rules: list[Object]) -> Iterator[Object]:
    """A ClusterRole with its binding to a ServiceAccount of ours."""
    role = _document(CLUSTER_ROLE.api_version, CLUSTER_ROLE.kind, name, labels, namespaced=False)
    yield {**role, "rules": rules}
    binding = _document(CLUSTER_ROLE.api_version, "ClusterRoleBinding", name, labels, namespaced=False)
    reference = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": name}
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}]
    yield {**binding, "roleRef": reference, "subjects": subjects}


def _rules(kinds: Iterable[Kind], *verbs: str) -> list[Object]:
    by_group: dict[str, list[str]] = defaultdict(list)
    for kind in dict.fromkeys(kinds):
        by_group[kind.group].append(kind.plural)
    return [
        {"apiGroups": [group], "resources": list(dict.fromkeys(plurals)), "verbs": list(verbs)}
        for group, plurals in by_group.items()
    ]
