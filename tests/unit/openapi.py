"""Parts of the OpenAPI documents of Kubernetes 1.36, as its API server publishes them."""

from __future__ import annotations

from typing import Any

from tenantry.api.schema import reduced
from tenantry.model.comparison import Schema

TEXT = {"type": "string"}
LABELS = {"type": "object", "additionalProperties": {"type": "string", "default": ""}}
ATOMIC = {"x-kubernetes-list-type": "atomic"}
_IO = "io.k8s.api"


def ref(name: str) -> dict[str, Any]:
    return {"allOf": [{"$ref": f"#/components/schemas/{name}"}], "default": {}}


def merged(name: str, *keys: str) -> dict[str, Any]:
    return {
        "type": "array",
        "items": ref(name),
        "x-kubernetes-list-map-keys": list(keys),
        "x-kubernetes-list-type": "map",
    }


def whole(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, **ATOMIC}


def kind(group: str, version: str, name: str, **properties: Any) -> dict[str, Any]:
    metadata = ref("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    made = {"type": "object", "properties": {"metadata": metadata, **properties}}
    return {**made, "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": name}]}


QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
AMOUNTS = {"type": "object", "additionalProperties": {"$ref": f"#/components/schemas/{QUANTITY}"}}
SELECTOR = "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"
PROTOCOL = {"type": "string", "default": "TCP"}
DATA = {"type": "object", "additionalProperties": {"type": "string", "format": "byte"}}
PEER = {"podSelector": {"$ref": f"#/components/schemas/{SELECTOR}"}, "namespaceSelector": ref(SELECTOR)}
RULE = {"type": "object", "properties": {"to": whole({"properties": PEER}), "ports": whole({"properties": {"port": TEXT}})}}
DOCUMENT: dict[str, Any] = {
    "components": {
        "schemas": {
            QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
            SELECTOR: {"type": "object", "properties": {"matchLabels": LABELS}, "x-kubernetes-map-type": "atomic"},
            "Port": {"properties": {"containerPort": {"type": "integer", "default": 0}, "protocol": PROTOCOL}},
            "ServicePort": {"properties": {"port": {"type": "integer", "default": 0}, "protocol": PROTOCOL}},
            "Resources": {"properties": {"limits": AMOUNTS}},
            "Variable": {"properties": {"name": {"type": "string", "default": ""}, "value": TEXT}},
            "Volume": {"properties": {"name": {"type": "string", "default": ""}}},
            "Container": {
                "properties": {
                    "args": whole({"type": "string", "default": ""}),
                    "env": merged("Variable", "name"),
                    "ports": merged("Port", "containerPort", "protocol"),
                    "resources": ref("Resources"),
                }
            },
            "PodSpec": {"properties": {"containers": merged("Container", "name"), "volumes": merged("Volume", "name")}},
            "Template": {"properties": {"metadata": {"properties": {"labels": LABELS}}, "spec": ref("PodSpec")}},
            "DeploymentSpec": {"properties": {"selector": ref(SELECTOR), "template": ref("Template")}},
            f"{_IO}.apps.v1.Deployment": kind("apps", "v1", "Deployment", spec=ref("DeploymentSpec")),
            f"{_IO}.core.v1.Pod": kind("", "v1", "Pod", spec=ref("PodSpec")),
            f"{_IO}.core.v1.Service": kind(
                "", "v1", "Service",
                spec={"properties": {
                    "ports": merged("ServicePort", "port", "protocol"),
                    "selector": {**LABELS, "x-kubernetes-map-type": "atomic"},
                }},
            ),
            f"{_IO}.core.v1.ServiceAccount": kind("", "v1", "ServiceAccount", imagePullSecrets=whole(ref("Volume"))),
            f"{_IO}.core.v1.ConfigMap": kind("", "v1", "ConfigMap", data=LABELS, binaryData=DATA),
            f"{_IO}.core.v1.Secret": kind("", "v1", "Secret", data=DATA, stringData=LABELS),
            f"{_IO}.rbac.v1.Role": kind(
                "rbac.authorization.k8s.io", "v1", "Role", rules=whole({"properties": {"verbs": whole(TEXT)}})
            ),
            f"{_IO}.networking.v1.NetworkPolicy": kind(
                "networking.k8s.io", "v1", "NetworkPolicy", spec={"properties": {"egress": whole(RULE), "ingress": whole(RULE)}}
            ),
            "example.x.v1.Thing": kind(
                "x.example", "v1", "Thing",
                spec={
                    "type": "object",
                    "properties": {
                        "l": whole({"type": "object"}),
                        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                        "map": merged("Port", "containerPort", "protocol"),
                        "below": {"$ref": "#/components/schemas/example.x.v1.Thing"},
                        "whole": {"type": "object", "x-kubernetes-map-type": "atomic"},
                    },
                },
            ),
        }
    }
}  # fmt: skip
SCHEMAS: dict[tuple[str, str], Schema] = {(version, name): schema for version, name, schema in reduced(DOCUMENT)}
