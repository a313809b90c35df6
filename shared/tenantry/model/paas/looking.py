"""Reads that the explanations of several functions have in common: the Paas of an object, and the PaasConfig in force."""

from __future__ import annotations

from tenantry.model.kinds import Object, labels_of
from tenantry.model.origin import Looking
from tenantry.model.paas.config import PaasConfig, active_of, config_of
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.names import MANAGED_BY_PAAS, PAAS, PAAS_CONFIG
from tenantry.model.paas.ours import is_ours, owner_reference_of, uid_of


async def paas_behind(obj: Object, look: Looking) -> Paas | None:
    """The Paas that an object is proven to be made for; None where there is none, or none any more."""
    uid = uid_of(obj)
    if not uid:
        return None
    named = labels_of(obj).get(MANAGED_BY_PAAS) or str((owner_reference_of(obj) or {}).get("name") or "")
    live = await look.get(PAAS, named) if named else None
    found = [live] if live is not None and live["metadata"]["uid"] == uid else await look.list(PAAS)
    return next((paas_of(each) for each in found if is_ours(obj, each["metadata"]["name"], each["metadata"]["uid"])), None)


async def config_in_force(look: Looking) -> PaasConfig | None:
    """The PaasConfig that counts."""
    live = active_of(await look.list(PAAS_CONFIG))
    return config_of(live) if live is not None else None
