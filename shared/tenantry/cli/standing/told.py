"""What `tenantry up` on this machine tells of itself, where the kit is installed; else that nobody can ask it."""

from __future__ import annotations

from tenantry.api import Api
from tenantry.api.errors import RefusedError
from tenantry.cli import THE_KIT, has_kit
from tenantry.model.kinds import LEASE
from tenantry.model.map.system import Told
from tenantry.model.names import ONE_MACHINE, SYSTEM_NAMESPACE


async def here(api: Api, unread: dict[str, str]) -> tuple[Told, ...]:
    """Each `tenantry up` that serves the cluster; none in a cluster that runs the functions itself."""
    try:
        if not has_kit():
            return await _nobody_to_ask(api)
        from tenantry.local.told import told_of

        return tuple(await told_of(api))
    except RefusedError as error:
        unread["leases of `tenantry up`"] = error.line
        return ()


async def _nobody_to_ask(api: Api) -> tuple[Told, ...]:
    selector = ",".join(f"{key}={value}" for key, value in ONE_MACHINE.items())
    leases = (await api.list(LEASE, SYSTEM_NAMESPACE, label_selector=selector)).items
    holders = (str((each.get("spec") or {}).get("holderIdentity", "")) for each in leases)
    return tuple(Told(each, {}, f"to ask the `tenantry up` of {each} needs {THE_KIT}") for each in holders)
