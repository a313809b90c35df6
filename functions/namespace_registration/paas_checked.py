"""What the policies would say of manifests of Paas, without a cluster: refusals and warnings, with the path of each (section 7).

Not judged here are regular expressions (``validations`` of the PaasConfig and of custom fields): they are RE2, and run in the API
server only.  What depends on other objects of a cluster is judged as far as they are among the manifests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from namespace_registration.paas.labels import is_protected, is_tools
from namespace_registration.paas.wanted import name_problem
from namespace_registration.paas_config.mistakes import mistakes_in
from namespace_registration.paas_config.report import IGNORED
from namespace_registration.paas_shapes import PAAS_CONFIG_SHAPE, PAAS_NS_SHAPE, PAAS_SHAPE, Shape, misfits
from namespace_registration.quotas import number, requests_above_limits
from tenantry.model.identifiers import is_dns_label, is_label_value
from tenantry.model.kinds import Object
from tenantry.model.names import NAMESPACE_NAME_LIMIT
from tenantry.model.paas.config import PaasConfig, config_of
from tenantry.model.paas.declared import Amounts, Capability, Group, Paas, PaasNs, paas_ns_of, paas_of
from tenantry.model.paas.groups import group_name, text_problem, unknown_roles
from tenantry.model.paas.names import PAAS, PAAS_CONFIG, PAAS_NS, namespace_name

_GIT_FIELDS = ("git_url", "git_revision", "git_path")
_SHAPES: Mapping[str, Shape] = {
    PAAS.kind: PAAS_SHAPE,
    PAAS_NS.kind: PAAS_NS_SHAPE,
    PAAS_CONFIG.kind: PAAS_CONFIG_SHAPE,
}
_NAMESPACES = 500


class PaasRemark(NamedTuple):
    """What is said of a document; one that is not ``refused`` is a warning."""

    document: str
    refused: bool
    text: str


def findings(documents: Iterable[Any], project_label: str) -> list[PaasRemark]:
    """What is said of these manifests, in their order; kinds of others are passed over."""
    found = [_readable(each) for each in documents if isinstance(each, Mapping)]
    configs = [each for each in found if each.get("kind") == PAAS_CONFIG.kind]
    config = config_of(configs[0]) if configs else None
    most = _largest(configs[0]) if configs else {}
    every = [paas_of(each) for each in found if each.get("kind") == PAAS.kind]
    said: list[PaasRemark] = []
    for each in found:
        kind, where = each.get("kind"), f"{each.get('kind')} {each['metadata']['name']}"
        if bad := list(_misfits(each)):  # as in the API server, nothing else is judged then
            said += _said(where, bad)
        elif kind == PAAS.kind:
            said += _said(where, _of_paas(each, config, most, project_label))
        elif kind == PAAS_NS.kind:
            said += _said(where, _of_paas_ns(each, _owner_of(each["metadata"]["namespace"], every)))
        elif kind == PAAS_CONFIG.kind:
            said += _said(where, _of_config(each, configs))
    return said


def _said(where: str, texts: Iterable[tuple[bool, str]]) -> Iterator[PaasRemark]:
    return (PaasRemark(where, refused, text) for refused, text in texts)


def _readable(document: Mapping[str, Any]) -> Object:
    """A manifest with what an API server fills in: a uid, and whether a capability is enabled, by the version of it."""
    written = document.get("metadata")
    metadata = {"uid": "-", **(written if isinstance(written, Mapping) else {})}
    metadata["name"] = str(metadata.get("name") or "")
    if document.get("kind") == PAAS_NS.kind:
        metadata.setdefault("namespace", "default")
    spec = document.get("spec")
    if document.get("kind") == PAAS.kind and isinstance(spec, Mapping) and isinstance(spec.get("capabilities"), Mapping):
        usual = str(document.get("apiVersion")).endswith("/v1alpha2")
        said = {name: _with(each, "enabled", usual) for name, each in spec["capabilities"].items()}
        spec = {**spec, "capabilities": said}
    return {**document, "metadata": metadata, "spec": spec}


def _with(written: Any, field: str, usual: bool) -> Any:
    return {field: usual, **(written or {})} if written is None or isinstance(written, Mapping) else written


def _misfits(live: Object) -> Iterator[tuple[bool, str]]:
    """What the schema refuses."""
    shape = _SHAPES.get(str(live.get("kind")))
    if shape is None:
        return
    if live.get("kind") == PAAS.kind and live["spec"] is None:
        yield True, "spec: required; write it, with spec.quota"
    yield from ((True, text) for text in misfits(shape, live["spec"], "spec"))


def _largest(config: Object) -> Amounts:
    """``maxAllowedSubmittedQuota``, which no function judges by."""
    if any(_misfits(config)):
        return {}
    written = ((config["spec"] or {}).get("maxAllowedSubmittedQuota") or {}).get("maxQuota") or {}
    return {resource: str(amount) for resource, amount in written.items() if amount is not None}


# -- Paas ------------------------------------------------------------------------------------------------------------


def _of_paas(live: Object, config: PaasConfig | None, most: Amounts, project_label: str) -> Iterator[tuple[bool, str]]:
    paas, spec = paas_of(live), live.get("spec") or {}
    if (problem := name_problem(paas, config)) is not None:
        yield True, f"metadata.name: {problem.text}"
    if str(live.get("apiVersion")).endswith("/v1alpha1") and not paas.requestor:
        yield True, "spec.requestor: write who asks for this Paas; in v1alpha1 it is required"
    for field, value in (("requestor", paas.requestor), ("managedByPaas", paas.managed_by)):
        if not is_label_value(value):
            yield True, f"spec.{field}: {value} becomes the value of a label: use at most 63 letters, digits, '-', '_' and '.'"
    yield from _namespaces(paas, spec.get("namespaces"))
    for key, group in paas.groups.items():
        yield from _group(f"spec.groups[{key}]", key, group, paas, config)
    for resource in requests_above_limits(paas.quota):
        yield False, f"spec.quota[{resource}]: more requests than limits; no pod can use them"
    for resource, amount in most.items():
        if resource in paas.quota and number(paas.quota[resource]) > number(amount):
            yield (
                True,
                f"spec.quota[{resource}]: {paas.quota[resource]} is more than {amount}, the most that the PaasConfig allows",
            )
    for name, capability in paas.capabilities.items():
        yield from _capability(f"spec.capabilities[{name}]", name, capability, paas, config)
    if config is not None:
        yield from _manager(paas, config)
        yield from _protected(paas, config, project_label)
    yield from ((False, f"{path}: ignored, no Secret is made of it; take it out") for path in paas.secrets)
    if paas.namespaces and not paas.quota:
        yield False, "spec.quota: empty, so nothing bounds what these namespaces use; write a quota"


def _manager(paas: Paas, config: PaasConfig) -> Iterator[tuple[bool, str]]:
    """The label that names the Argo CD of the namespaces."""
    value = f"{paas.managed_by or paas.name}-{config.managed_by_suffix}"
    if config.managed_by_label and is_label_value(paas.managed_by) and not is_label_value(value):
        path = "spec.managedByPaas" if paas.managed_by else "metadata.name"
        text = f"would be the value of a label of the namespaces, and has {len(value)} characters, of at most 63"
        yield True, f"{path}: {value} {text}"


def _namespaces(paas: Paas, written: Any) -> Iterator[tuple[bool, str]]:
    shape = "write a list of names, or names with groups (a list of keys of spec.groups) and secrets (a map of texts)"
    if isinstance(written, Mapping):
        yield from ((True, f"spec.namespaces[{name}]: {shape}") for name, each in written.items() if not _is_entry(each))
    elif isinstance(written, list):
        if not all(isinstance(each, str) for each in written):
            yield True, f"spec.namespaces ({len(written)} entries): {shape}"
    elif written is not None:
        yield True, f"spec.namespaces: {written} is neither: {shape}"
    if isinstance(written, Mapping | list) and len(written) > _NAMESPACES:
        yield True, f"spec.namespaces ({len(written)} entries): at most {_NAMESPACES}"
    for name, keys in paas.namespaces.items():
        yield from _suffix(f"spec.namespaces[{name}]", name, paas)
        if strays := [key for key in keys or () if key not in paas.groups]:
            yield (
                True,
                f"spec.namespaces[{name}].groups: {', '.join(strays)}: no such group in spec.groups; add it, or take it out",
            )


def _is_entry(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, Mapping) or not set(value) <= {"groups", "secrets"}:
        return False
    groups, secrets = value.get("groups"), value.get("secrets")
    return (groups is None or (isinstance(groups, list) and all(isinstance(each, str) for each in groups))) and (
        secrets is None or (isinstance(secrets, Mapping) and all(isinstance(each, str) for each in secrets.values()))
    )


def _suffix(path: str, name: str, paas: Paas) -> Iterator[tuple[bool, str]]:
    full = f"{paas.name}-{name}"
    if len(full) > NAMESPACE_NAME_LIMIT or not is_dns_label(name):
        text = (
            f"{path}: {full} ({len(full)} characters) would be the name of a namespace: use lower case letters, digits and dashes"
        )
        yield True, f"{text}, no dash at the ends, at most {NAMESPACE_NAME_LIMIT} in all"


def _group(path: str, key: str, group: Group, paas: Paas, config: PaasConfig | None) -> Iterator[tuple[bool, str]]:
    if problem := group_name(paas.name, key, group).problem:
        where = f"{path}.query" if group.query else f"spec.groups[{json.dumps(key, ensure_ascii=False)}]"
        yield True, f"{where}: {problem}"
    for user in group.users:
        if problem := text_problem(user, "the name"):
            yield True, f"{path}.users: {problem}"
    if group.query and group.users:
        yield False, f"{path}.users: ignored, since the group has a query; take one of them out"
    if config is None:
        return
    if unknown := unknown_roles(group, config):
        rejected = config.unknown_role_policy == "Reject"
        then = "" if rejected else f"; it {'gives nothing' if config.unknown_role_policy == 'Ignore' else 'counts as default'}"
        yield rejected, f"{path}.roles: {', '.join(unknown)}: no such role in rolemappings of the PaasConfig{then}"
    if group.users and not group.query and config.group_user_management != "allow":
        blocked = config.group_user_management == "block"
        yield blocked, f"{path}.users: users are managed elsewhere (feature_flags.group_user_management); write a query"


def _capability(
    path: str, name: str, capability: Capability, paas: Paas, config: PaasConfig | None
) -> Iterator[tuple[bool, str]]:
    yield from _suffix(path, name, paas)
    if above := list(requests_above_limits(capability.quota)):
        yield False, f"{path}.quota: {', '.join(above)}: more requests than limits; no pod can use them"
    if config is None:
        return
    known = config.capabilities.get(name)
    fields = known.custom_fields if known is not None else {}
    for field in capability.custom_fields:
        if field not in fields:
            yield True, f"{path}.custom_fields[{field}]: no such custom field in the PaasConfig; take it out"
    if not capability.enabled:
        return
    if known is None:
        rejected = config.unknown_capability_policy == "Reject"
        then = "" if rejected else "; there is a namespace for it, and nothing else"
        yield rejected, f"{path}: no such capability in the PaasConfig{then}"
        return
    for field, custom in fields.items():
        given = capability.custom_fields.get(field) or (capability.git.get(field) if field in _GIT_FIELDS else "")
        if custom.required and not given:
            yield True, f"{path}.custom_fields[{field}]: required by the PaasConfig; write a value"
    if capability.extra_permissions and not known.extra_permissions:
        yield False, f"{path}.extra_permissions: gives nothing, since the PaasConfig has no extra_permissions for it"


def _protected(paas: Paas, config: PaasConfig, project_label: str) -> Iterator[tuple[bool, str]]:
    for key in sorted(paas.labels):
        if not is_tools(key) and is_protected(key, config, project_label):
            yield False, f"metadata.labels[{key}]: not copied to the namespaces, since others read it as authority"


# -- PaasNS and PaasConfig -------------------------------------------------------------------------------------------


def _owner_of(namespace: str, every: Iterable[Paas]) -> Paas | None:
    """The Paas among the manifests that a namespace is one of: one that asks for it, else the one with the longest name."""

    def nearness(paas: Paas) -> tuple[bool, int]:
        own = (*paas.namespaces, *paas.enabled)
        return namespace in (namespace_name(paas.name, each) for each in own), len(paas.name)

    return max((each for each in every if namespace.startswith(f"{each.name}-")), key=nearness, default=None)


def _of_paas_ns(live: Object, owner: Paas | None) -> Iterator[tuple[bool, str]]:
    asked: PaasNs = paas_ns_of(live)
    if not asked.paas and str(live.get("apiVersion")).endswith("/v1alpha1"):
        yield True, "spec.paas: write the Paas of the namespace; in v1alpha1 it is required"
    if owner is not None and asked.paas not in ("", owner.name):
        yield True, f"spec.paas: {asked.paas} is not the Paas of the namespace {asked.namespace}; write {owner.name}"
    elif "-" not in asked.namespace or (asked.paas and not asked.namespace.startswith(f"{asked.paas}-")):
        yield True, f"metadata.namespace: {asked.namespace} is not part of a Paas; make the PaasNS in a namespace of the Paas"
    paas = owner.name if owner is not None else asked.paas
    full = namespace_name(paas, asked.name) if paas else asked.name
    if not is_dns_label(asked.name) or len(full) > NAMESPACE_NAME_LIMIT:
        text = f"metadata.name: {full} ({len(full)} characters) would be the name of the namespace"
        yield (
            True,
            f"{text}: use lower case letters, digits and dashes, no dash at the ends, at most {NAMESPACE_NAME_LIMIT} in all",
        )
    if owner is not None and (strays := [key for key in asked.groups or () if key not in owner.groups]):
        yield True, f"spec.groups: {', '.join(strays)}: no such group in the Paas {owner.name}"
    yield from ((False, f"{path}: ignored, no Secret is made of it; take it out") for path in asked.secrets)


def _of_config(live: Object, configs: list[Object]) -> Iterator[tuple[bool, str]]:
    spec, config = live.get("spec") or {}, config_of(live)
    if live is not configs[0]:
        yield True, f"metadata.name: would be a second PaasConfig, without effect beside {configs[0]['metadata']['name']}"
    yield from ((True, each.text) for each in mistakes_in(config))
    for name, known in config.capabilities.items():
        if not known.external and not known.defaults:
            yield False, f"spec.capabilities[{name}].quotas: without defaults its namespaces have no quota"
    yield from ((False, f"spec.{field}: not used here, and may be removed") for field in IGNORED if spec.get(field) is not None)
