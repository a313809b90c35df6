"""Shapes of Paas, PaasNS and PaasConfig as the CRDs have them, for manifests that no API server looks at.

A test compares them with ``knative/crds``, which the image of a function does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Shape = Mapping[str, Any]

_QUANTITY = r"^[0-9]{1,15}(\.[0-9]{1,9})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$"


def _text(most: int = 0, least: int = 0) -> Shape:
    return {"type": "string", **({"maxLength": most} if most else {}), **({"minLength": least} if least else {})}


def _list(items: Shape, most: int = 0) -> Shape:
    return {"type": "array", "items": items, **({"maxItems": most} if most else {})}


def _map(values: Shape, most: int = 0) -> Shape:
    return {"type": "object", "additionalProperties": values, **({"maxProperties": most} if most else {})}


def _fields(*required: str, **fields: Shape) -> Shape:
    return {"type": "object", "properties": fields, **({"required": list(required)} if required else {})}


def _one_of(*values: str) -> Shape:
    return {"type": "string", "enum": list(values)}


_BOOL: Shape = {"type": "boolean"}
_WHOLE: Shape = {"type": "integer"}
_AMOUNTS = _map({"x-kubernetes-int-or-string": True, "minimum": 0, "pattern": _QUANTITY}, 200)
_SECRETS = _map(_text())
_ROLES = _list(_text(253, 1), 64)
_GIT, _EXPRESSION, _TEXTS = _text(4096), _text(256), _map(_text(4096), 100)
_REFERENCE = _fields(name=_text(), namespace=_text())

PAAS_SHAPE = _fields(
    "quota",
    requestor=_text(least=1),
    quota=_AMOUNTS,
    groups=_map(_fields(query=_text(1024), users=_list(_text(253, 1), 10_000), roles=_list(_text(), 64)), 500),
    namespaces={"x-kubernetes-preserve-unknown-fields": True},
    capabilities=_map(
        _fields(
            enabled=_BOOL,
            quota=_AMOUNTS,
            extra_permissions=_BOOL,
            custom_fields=_map(_text(4096), 200),
            gitUrl=_GIT,
            gitRevision=_GIT,
            gitPath=_GIT,
            sshSecrets=_SECRETS,
            secrets=_SECRETS,
        ),
        100,
    ),
    managedByPaas=_text(),
    sshSecrets=_SECRETS,
    secrets=_SECRETS,
)

PAAS_NS_SHAPE = _fields(paas=_text(253, 1), groups=_list(_text(), 500), sshSecrets=_SECRETS, secrets=_SECRETS)

_CAPABILITY = _fields(
    applicationset=_text(253),
    default_permissions=_map(_ROLES, 100),
    extra_permissions=_map(_ROLES, 100),
    quotas=_fields(
        clusterwide=_BOOL,
        ratio={"type": "number", "minimum": 0, "maximum": 1},
        defaults=_AMOUNTS,
        min=_AMOUNTS,
        max=_AMOUNTS,
    ),
    custom_fields=_map(_fields(required=_BOOL, default=_text(4096), validation=_text(512), template=_text(4096)), 64),
    external=_BOOL,
)

PAAS_CONFIG_SHAPE = _fields(
    rolemappings=_map(_ROLES, 200),
    capabilities=_map(_CAPABILITY, 200),
    argopermissions=_fields("header", resource_name=_text(253), role=_text(253), header=_text(least=1), default_policy=_text()),
    clusterwide_argocd_namespace=_text(63),
    quota_label=_text(317),
    managed_by_label=_text(317),
    managed_by_suffix=_text(63),
    requestor_label=_text(317),
    validations=_fields(
        paas=_fields(**dict.fromkeys(("name", "groupName", "namespaceName", "requestor", "allowedQuotas"), _EXPRESSION)),
        paasNs=_fields(name=_EXPRESSION),
        paasConfig=_fields(capabilityName=_EXPRESSION),
    ),
    maxAllowedSubmittedQuota=_fields(maxQuota=_AMOUNTS),
    feature_flags=_fields(group_user_management=_one_of("allow", "warn", "block")),
    templating=_fields(
        **dict.fromkeys(
            ("namespaceLabels", "groupLabels", "clusterQuotaLabels", "roleBindingLabels", "genericCapabilityFields"), _TEXTS
        )
    ),
    unknownRolePolicy=_one_of("UseDefault", "Ignore", "Reject"),
    unknownCapabilityPolicy=_one_of("NamespaceOnly", "Reject"),
    quotaFallback=_one_of("PerNamespace", "Full"),
    groupFallback=_one_of("None", "Users"),
    permissionScope=_one_of("Cluster", "Namespace"),
    protectedLabels=_list(_text(317, 1), 200),
    decryptKeySecret=_REFERENCE,
    decryptKeyPaths=_list(_text()),
    exclude_appset_name=_text(),
    groupsynclist=_REFERENCE,
    groupsynclist_key=_text(),
    ldap=_fields(host=_text(), port=_WHOLE),
    argoenabled=_BOOL,
    debug=_BOOL,
    components_debug=_map(_BOOL),
)

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": Mapping,
}


def misfits(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """What of a value the API server would refuse for its shape, each with its path; nothing is what its default says."""
    if value is None:
        return
    kind = shape.get("type")
    if kind is not None and (not isinstance(value, _TYPES[kind]) or (kind in ("integer", "number") and isinstance(value, bool))):
        yield f"{path}: {_shown(value)} is no {kind}"
    elif shape.get("x-kubernetes-int-or-string"):
        yield from _amount(shape, value, path)
    elif isinstance(value, str):
        yield from _size(value, shape.get("minLength", 0), shape.get("maxLength"), path, "characters")
        if value not in shape.get("enum", (value,)):
            yield f"{path}: {_shown(value)} is none of {', '.join(shape['enum'])}"
    elif kind == "number" and not shape["minimum"] <= value <= shape["maximum"]:
        yield f"{path}: {value} is not between {shape['minimum']} and {shape['maximum']}"
    elif kind == "array":
        yield from _size(value, 0, shape.get("maxItems"), path, "entries")
        for number, each in enumerate(value):
            yield from misfits(shape["items"], each, f"{path}[{number}]")
    elif kind == "object":
        yield from _inside(shape, value, path)


def _inside(shape: Shape, value: Mapping[str, Any], path: str) -> Iterator[str]:
    yield from _size(value, 0, shape.get("maxProperties"), path, "entries")
    for name in shape.get("required", ()):
        if value.get(name) is None:
            yield f"{path}.{name}: required; write it"
    fields = shape.get("properties", {})
    for name, each in value.items():
        if name in fields:
            yield from misfits(fields[name], each, f"{path}.{name}")
        elif "additionalProperties" in shape:
            yield from misfits(shape["additionalProperties"], each, f"{path}[{name}]")


def _amount(shape: Shape, value: Any, path: str) -> Iterator[str]:
    fits = isinstance(value, str) and re.search(shape["pattern"], value) and "\n" not in value
    if not fits and not (isinstance(value, int) and not isinstance(value, bool) and value >= shape["minimum"]):
        text = "is no quantity: write a number of at most 15 digits, such as 2, 500m or 1Gi"
        yield f"{path}: {_shown(value)} {text}"


def _size(value: Any, least: int, most: int | None, path: str, what: str) -> Iterator[str]:
    if len(value) < least:
        yield f"{path}: empty; write at least {least} {what}"
    elif most is not None and len(value) > most:
        yield f"{path}: {len(value)} {what}, of at most {most}"


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
