"""What a PaasConfig says, as a value: two that are equal mean the same.

Sources of the rules: 1.3 (fields and defaults) and 2.10 (which one counts) of the specification; p-53, p-180, p-183.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tenantry.model.kinds import Object, is_terminating
from tenantry.model.paas.declared import Amounts

DEFAULT_ROLE = "default"
"""The functional role of groups without roles."""

Texts = Mapping[str, str]
Accounts = Mapping[str, tuple[str, ...]]
"""ServiceAccount to the ClusterRoles that it has, sorted."""


@dataclass(frozen=True, slots=True)
class CustomField:
    """A field that a Paas may set for a capability; at most one of ``required``, ``default`` and ``template``."""

    required: bool = False
    default: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class CapabilityConfig:
    """A capability as administrators configure it.  ``external``: no namespace and no quota, only the hand-over."""

    application_set: str = ""
    default_permissions: Accounts = field(default_factory=dict)
    extra_permissions: Accounts = field(default_factory=dict)
    clusterwide: bool = False
    ratio: str = "0"
    defaults: Amounts = field(default_factory=dict)
    least: Amounts = field(default_factory=dict)
    most: Amounts = field(default_factory=dict)
    custom_fields: Mapping[str, CustomField] = field(default_factory=dict)
    external: bool = False


@dataclass(frozen=True, slots=True)
class ArgoPermissions:
    """``argopermissions``: which Argo CD, the role of the groups of a Paas in it, and the lines before theirs."""

    resource_name: str = ""
    role: str = ""
    header: str = ""
    default_policy: str = ""


@dataclass(frozen=True, slots=True)
class PaasConfig:
    """The configuration in force."""

    name: str = ""
    role_mappings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    capabilities: Mapping[str, CapabilityConfig] = field(default_factory=dict)
    argo_permissions: ArgoPermissions | None = None
    quota_label: str = "clusterquotagroup"
    managed_by_label: str = "argocd.argoproj.io/managed-by"
    managed_by_suffix: str = "argocd"
    requestor_label: str = "requestor"
    argo_namespace: str = ""
    group_user_management: Literal["allow", "warn", "block"] = "allow"
    namespace_labels: Texts = field(default_factory=dict)
    group_labels: Texts = field(default_factory=dict)
    quota_labels: Texts = field(default_factory=dict)
    binding_labels: Texts = field(default_factory=dict)
    generic_fields: Texts = field(default_factory=dict)
    unknown_role_policy: Literal["UseDefault", "Ignore", "Reject"] = "UseDefault"
    unknown_capability_policy: Literal["NamespaceOnly", "Reject"] = "NamespaceOnly"
    quota_fallback: Literal["PerNamespace", "Full"] = "PerNamespace"
    group_fallback: Literal["None", "Users"] = "None"
    permission_scope: Literal["Cluster", "Namespace"] = "Cluster"
    protected_labels: tuple[str, ...] = ()

    def mapped(self, role: str) -> tuple[str, ...]:
        """The ClusterRoles of a functional role; of one that is not mapped, by ``unknownRolePolicy`` (2.4)."""
        if role in self.role_mappings:
            return self.role_mappings[role]
        return self.role_mappings.get(DEFAULT_ROLE, ()) if self.unknown_role_policy == "UseDefault" else ()

    def is_external(self, capability: str) -> bool:
        """Whether a capability has no namespace."""
        known = self.capabilities.get(capability)
        return known is not None and known.external

    def permissions(self, capability: str, *, extra: bool) -> Accounts:
        """What the service accounts of a capability may do, with the extra permissions or without (2.7)."""
        known = self.capabilities.get(capability)
        if known is None or known.external:
            return {}
        found = {account: set(roles) for account, roles in known.default_permissions.items()}
        for account, roles in known.extra_permissions.items() if extra else ():
            found.setdefault(account, set()).update(roles)
        return {account: tuple(sorted(roles)) for account, roles in sorted(found.items())}


def active_of(configs: Iterable[Object]) -> Object | None:
    """The PaasConfig that counts: the oldest that is not being deleted."""
    alive = [each for each in configs if not is_terminating(each)]
    return min(alive, key=lambda each: (each["metadata"].get("creationTimestamp", ""), each["metadata"]["name"]), default=None)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any, otherwise: str = "") -> str:
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else otherwise


def _texts(value: Any) -> dict[str, str]:
    return {name: _text(each) for name, each in sorted(_map(value).items())}


def _names(value: Any) -> tuple[str, ...]:
    return tuple(sorted({each for each in value if isinstance(each, str) and each})) if isinstance(value, list) else ()


def _accounts(value: Any) -> Accounts:
    return {account: _names(roles) for account, roles in sorted(_map(value).items())}


def _one_of(value: Any, *allowed: Any) -> Any:
    return value if value in allowed else allowed[0]


def _capability(written: Any) -> CapabilityConfig:
    spec = _map(written)
    quotas = _map(spec.get("quotas"))
    custom = {
        name: CustomField(_map(each).get("required") is True, _text(_map(each).get("default")), _text(_map(each).get("template")))
        for name, each in sorted(_map(spec.get("custom_fields")).items())
    }
    return CapabilityConfig(
        application_set=_text(spec.get("applicationset")),
        default_permissions=_accounts(spec.get("default_permissions")),
        extra_permissions=_accounts(spec.get("extra_permissions")),
        clusterwide=quotas.get("clusterwide") is True,
        ratio=_text(quotas.get("ratio"), "0"),
        defaults=_texts(quotas.get("defaults")),
        least=_texts(quotas.get("min")),
        most=_texts(quotas.get("max")),
        custom_fields=custom,
        external=spec.get("external") is True,
    )


def config_of(live: Object) -> PaasConfig:
    """A PaasConfig as it is stored."""
    spec = _map(live.get("spec"))
    argo = spec.get("argopermissions")
    templates = _map(spec.get("templating"))
    return PaasConfig(
        name=live["metadata"]["name"],
        role_mappings={role: _names(roles) for role, roles in sorted(_map(spec.get("rolemappings")).items())},
        capabilities={name: _capability(each) for name, each in sorted(_map(spec.get("capabilities")).items())},
        argo_permissions=ArgoPermissions(
            *(_text(_map(argo).get(part)) for part in ("resource_name", "role", "header", "default_policy"))
        )
        if isinstance(argo, Mapping)
        else None,
        quota_label=_text(spec.get("quota_label")) or "clusterquotagroup",
        managed_by_label=_text(spec.get("managed_by_label"), "argocd.argoproj.io/managed-by"),
        managed_by_suffix=_text(spec.get("managed_by_suffix")) or "argocd",
        requestor_label=_text(spec.get("requestor_label"), "requestor"),
        argo_namespace=_text(spec.get("clusterwide_argocd_namespace")),
        group_user_management=_one_of(_map(spec.get("feature_flags")).get("group_user_management"), "allow", "warn", "block"),
        namespace_labels=_texts(templates.get("namespaceLabels")),
        group_labels=_texts(templates.get("groupLabels")),
        quota_labels=_texts(templates.get("clusterQuotaLabels")),
        binding_labels=_texts(templates.get("roleBindingLabels")),
        generic_fields=_texts(templates.get("genericCapabilityFields")),
        unknown_role_policy=_one_of(spec.get("unknownRolePolicy"), "UseDefault", "Ignore", "Reject"),
        unknown_capability_policy=_one_of(spec.get("unknownCapabilityPolicy"), "NamespaceOnly", "Reject"),
        quota_fallback=_one_of(spec.get("quotaFallback"), "PerNamespace", "Full"),
        group_fallback=_one_of(spec.get("groupFallback"), "None", "Users"),
        permission_scope=_one_of(spec.get("permissionScope"), "Cluster", "Namespace"),
        protected_labels=_names(spec.get("protectedLabels")),
    )
