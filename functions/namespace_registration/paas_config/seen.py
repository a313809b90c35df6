"""What is observed of a PaasConfig and of a quota that all Paas of a capability share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from namespace_registration import NAME
from namespace_registration.quotas import clusterwide_quota
from tenantry.model.kinds import Object, annotations_of
from tenantry.model.names import field_manager
from tenantry.model.paas.config import CapabilityConfig, PaasConfig
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import PAAS_UID, SHARED
from tenantry.model.paas.ours import owner_reference_of

MANAGER = f"{field_manager(NAME)}-paas"
UPSTREAM_FINALIZER = "paasconfig.cpet.belastingdienst.nl/finalizer"
"""Finalizer of opr-paas on a PaasConfig: nobody else takes it off once that is gone."""
SHARED_QUOTA = "quota"
"""Value of the annotation `SHARED` on a quota that all Paas of a capability share."""
QUOTA_PREFIX = "paas-"
"""Of the name of such a quota; the rest is the capability."""


@dataclass(frozen=True, slots=True)
class ConfigSeen:
    """One PaasConfig as it is; None where there is none of the name.

    ``in_use`` is the name of the one that counts, empty without one.  ``missing_roles`` are ClusterRoles that it names and that
    do not exist, sorted.  ``foreign`` are the plurals of kinds of ours that are served by CRDs of another system; ``event`` is
    what stands about that, ``now`` the time for a new one.
    """

    name: str
    live: Object | None
    in_use: str = ""
    quotas_served: bool = False
    missing_roles: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    event: Object | None = None
    now: str = ""


@dataclass(frozen=True, slots=True)
class QuotaSeen:
    """The quota that all Paas of a clusterwide capability share, as it is.

    ``config`` is the configuration that counts and ``config_live`` the object that it is from.  ``paas`` are those that have the
    capability enabled and are not being deleted; ``uids`` are those of all Paas.
    """

    capability: str
    served: bool
    config: PaasConfig | None = None
    config_live: Object | None = None
    live: Object | None = None
    paas: tuple[Paas, ...] = ()
    uids: frozenset[str] = field(default_factory=frozenset)

    @property
    def known(self) -> CapabilityConfig | None:
        """How the capability is configured, where it is clusterwide."""
        found = self.config.capabilities.get(self.capability) if self.config is not None else None
        return found if found is not None and found.clusterwide and not found.external else None

    @property
    def amounts(self) -> Mapping[str, str] | None:
        """What the quota is to have for each resource, empty where there is to be none; None while that cannot be said.

        Without a configuration nobody knows the ratio: the quota stays as it is, until no Paas has the capability any more.
        """
        if self.config is None and self.paas:
            return None
        if self.known is None:
            return {}
        return clusterwide_quota([each.capabilities[self.capability].quota for each in self.paas], self.known)

    @property
    def ours(self) -> bool:
        """Whether the quota that is there is a shared one of ours."""
        return is_shared_quota(self.live, self.uids)


def quota_name(capability: str) -> str:
    """The name of the quota that all Paas of a clusterwide capability share."""
    return f"{QUOTA_PREFIX}{capability}"


def is_shared_quota(quota: Object | None, uids: frozenset[str]) -> bool:
    """Whether a ClusterResourceQuota is a shared one: it is marked so, or opr-paas made it for a Paas that exists (2.12).

    Args:
        quota: as observed.
        uids: of all Paas.
    """
    if quota is None:
        return False
    if annotations_of(quota).get(SHARED) == SHARED_QUOTA:
        return True
    if PAAS_UID in annotations_of(quota):
        return False  # of a single Paas
    reference = owner_reference_of(quota)
    return reference is not None and reference.get("uid") in uids
