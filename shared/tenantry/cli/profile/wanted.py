"""What a profile wants of a cluster, or of one that is not there."""

from __future__ import annotations

from typing import Any

from tenantry.api import Api
from tenantry.cli.one_line import WrongUse
from tenantry.model.flux.names import DEFAULT, TENANCY_PROFILE
from tenantry.model.flux.policies.served import Served
from tenantry.model.kinds import Object, object_of

PERSON = "tenantry-cli"


async def served_by(api: Api) -> Served:
    """What an API server serves, as far as policies depend on it."""
    return Served.of(await api.groups())


async def current_profile(api: Api) -> Object | None:
    """The TenancyProfile of a cluster.

    Raises:
        WrongUse: its CRD is not installed.
    """
    if await api.served(TENANCY_PROFILE.api_version, TENANCY_PROFILE.kind, again=True) is None:
        raise WrongUse("the cluster does not serve TenancyProfiles; install the CRDs of Tenantry first (knative/crds)")
    return await api.get(TENANCY_PROFILE, DEFAULT)


def tenancy_profile(security_profile: str, account: str = "", spec: dict[str, Any] | None = None) -> Object:
    """The TenancyProfile, with what else its spec says."""
    named = {"defaultServiceAccount": account} if account else {}
    return object_of(TENANCY_PROFILE, {"name": DEFAULT}, spec={**(spec or {}), "profile": security_profile, **named})
