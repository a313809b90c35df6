"""Reads for Paas that several functions make: a Paas by its name, and the PaasConfig in force."""

from __future__ import annotations

from collections.abc import Mapping

from tenantry.engine.reader import Reader
from tenantry.engine.reads import if_served
from tenantry.engine.unit import Owner
from tenantry.model.kinds import Object
from tenantry.model.paas.config import PaasConfig, active_of, config_of
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.names import MANAGED_BY_PAAS, PAAS, PAAS_CONFIG


async def read_paas(name: str, reader: Reader) -> Paas | None:
    """A Paas; None, too, where its CRD is gone."""
    found = await if_served(PAAS, reader, reader.get(PAAS, name))
    return paas_of(found) if found is not None else None


async def shared_paas(name: str, reader: Reader) -> Paas | None:
    """The same, read together with all that want it now."""
    found = await if_served(PAAS, reader, reader.get_shared(PAAS, name))
    return paas_of(found) if found is not None else None


def labelled_paas(owner_type: str, labels: Mapping[str, str]) -> Owner | None:
    """The owner of this type for the Paas that labels name."""
    name = labels.get(MANAGED_BY_PAAS, "")
    return Owner(owner_type, name) if name else None


async def live_config(reader: Reader) -> Object | None:
    """The PaasConfig that counts, by its name once that is known: a list of a kind at rest waits for up to 100 ms."""
    return await if_served(PAAS_CONFIG, reader, reader.chosen_shared(PAAS_CONFIG, active_of))


async def active_config(reader: Reader) -> PaasConfig | None:
    """The configuration in force."""
    found = await live_config(reader)
    return config_of(found) if found is not None else None
