"""What a TenancyProfile asks for, and what of it a server can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from tenantry.model.flux.consumers import CONSUMERS, Consumer, judged
from tenantry.model.names import SYSTEM_NAMESPACE

SINGLE_TENANT = "single-tenant"
MULTI_TENANT = "multi-tenant"
PROFILES = (SINGLE_TENANT, MULTI_TENANT)

AccountMode = Literal["Default", "Require", "Off"]
OnDenied = Literal["Deny", "Quarantine"]


@dataclass(frozen=True, slots=True)
class Profile:
    """The spec of a TenancyProfile with its defaults (section 1.5)."""

    profile: str = SINGLE_TENANT
    enforces_source_acl: bool = True
    is_audit: bool = False
    on_denied: OnDenied = "Deny"
    on_revocation: Literal["Suspend", "Report"] = "Suspend"
    default_service_account: str = "flux"
    service_account_mode: AccountMode = "Default"
    pins_to_tenant: bool = False
    denies_kube_config: bool = False
    exempt_namespaces: tuple[str, ...] = ("flux-system", "kube-system")
    allows_intra_tenant: bool = False
    checks_depends_on: bool = True
    tenant_label_keys: tuple[str, ...] = ()
    consumers: tuple[Consumer, ...] = ()

    @classmethod
    def of(cls, found: Mapping[str, Any] | None) -> Self:
        """That of an object; without one nothing is enforced."""
        spec = (found or {}).get("spec") or {}
        default = cls()
        exempt = spec.get("exemptNamespaces")
        return cls(
            profile=spec.get("profile") or default.profile,
            enforces_source_acl=spec.get("enforceSourceACL", True),
            is_audit=spec.get("mode") == "Audit",
            on_denied=spec.get("onDenied") or default.on_denied,
            on_revocation=spec.get("onRevocation") or default.on_revocation,
            default_service_account=spec.get("defaultServiceAccount") or default.default_service_account,
            service_account_mode=spec.get("serviceAccountMode") or default.service_account_mode,
            pins_to_tenant=spec.get("pinToTenant", False),
            denies_kube_config=spec.get("kubeConfig") == "Deny",
            exempt_namespaces=default.exempt_namespaces if exempt is None else tuple(exempt),
            allows_intra_tenant=spec.get("allowIntraTenant", False),
            checks_depends_on=spec.get("checkDependsOn", True),
            tenant_label_keys=tuple(spec.get("tenantLabelKeys") or ()),
            consumers=tuple(Consumer.of(each) for each in spec.get("consumers") or ()),
        )

    @property
    def is_multi_tenant(self) -> bool:
        """Whether anything is enforced."""
        return self.profile == MULTI_TENANT

    @property
    def exempt(self) -> tuple[str, ...]:
        """The namespaces whose consumers are not judged, in order: those of the list, and always our own."""
        return tuple(sorted({*self.exempt_namespaces, SYSTEM_NAMESPACE}))

    @property
    def all_consumers(self) -> tuple[Consumer, ...]:
        """The rows of the table and those of the profile."""
        return (*CONSUMERS, *self.consumers)

    @property
    def judged(self) -> list[Consumer]:
        """The consumers with those of their references that are judged."""
        return judged(self.all_consumers, sources=self.enforces_source_acl, depends_on=self.checks_depends_on)

    def account_mode(self, *, mutates: bool) -> AccountMode:
        """The mode in force: without mutations what would be filled is required (section 2.3)."""
        return "Require" if self.service_account_mode == "Default" and not mutates else self.service_account_mode

    def denial(self, *, mutates: bool) -> OnDenied:
        """What happens to a new denied reference: without mutations it is refused (section 2.2)."""
        return self.on_denied if mutates else "Deny"
