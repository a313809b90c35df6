"""Reads for the hand-over: an ApplicationSet with all that is declared for it, or a Paas with the ApplicationSets that it is in.

An ApplicationSet is read before the declarations: who then writes it in the version that was read knows no older declarations
than who wrote it before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from release_provisioning.paas.report import is_missing
from release_provisioning.paas.seen import (
    GivenElement,
    HandOverSeen,
    SetSeen,
    capabilities_of,
    declared,
    elements_of,
    given_by,
    gives_nothing,
    is_configured,
    is_marked,
    is_prepared,
    owner_of,
)
from tenantry.api.errors import ConflictError, NotFound, RefusedError
from tenantry.engine.paas import read_paas
from tenantry.engine.reader import Reader
from tenantry.engine.reads import by_name, if_served
from tenantry.model.kinds import Object, key_of, object_of
from tenantry.model.paas.config import PaasConfig, active_of, config_of
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.paas.names import APPLICATION_SET, ELEMENTS, PAAS, PAAS_CONFIG
from tenantry.model.plan import Refusal


async def live_config(reader: Reader) -> Object | None:
    """The PaasConfig that counts."""
    return active_of(await if_served(PAAS_CONFIG, reader, reader.list_shared(PAAS_CONFIG)) or ())


async def active_config(reader: Reader) -> PaasConfig | None:
    """The configuration in force."""
    found = await live_config(reader)
    return config_of(found) if found is not None else None


async def every_paas(reader: Reader) -> tuple[Paas, ...]:
    """All of them: an element of none of them is somebody else's."""
    return tuple(map(paas_of, await if_served(PAAS, reader, reader.list_shared(PAAS)) or ()))


async def application_set(namespace: str, name: str, reader: Reader) -> Object | None:
    """An ApplicationSet."""
    return await if_served(APPLICATION_SET, reader, reader.get(APPLICATION_SET, name, namespace))


async def with_elements(config: PaasConfig | None, reader: Reader) -> list[Object]:
    """The ApplicationSets in which there are elements of ours, or may be."""
    found = await if_served(APPLICATION_SET, reader, reader.list_shared(APPLICATION_SET)) or []
    return [
        each
        for each in found
        if is_marked(each) or is_configured(each["metadata"]["namespace"], each["metadata"]["name"], config)
    ]


def has_element(found: Object | None, paas: str) -> bool:
    """Whether an ApplicationSet has an element of a Paas."""
    return any(owner_of(each) == paas for each in elements_of(found))


# -- an ApplicationSet -------------------------------------------------------------------------------------


async def observe_set(namespace: str, name: str, reader: Reader) -> SetSeen:
    """Read an ApplicationSet, and what all Paas give to it."""
    live = await application_set(namespace, name, reader)
    seen = await _declared_for(namespace, name, live, reader)
    reader.depends_on(partial(_declared, namespace, name), declared(seen))
    return seen


async def _declared_for(namespace: str, name: str, live: Object | None, reader: Reader) -> SetSeen:
    every, found = await asyncio.gather(every_paas(reader), live_config(reader))
    return SetSeen(namespace, name, live, config_of(found) if found is not None else None, found, every)


async def _declared(namespace: str, name: str, reader: Reader) -> Hashable:
    return declared(await _declared_for(namespace, name, None, reader))


# -- a Paas ------------------------------------------------------------------------------------------------


async def observe_paas(name: str, reader: Reader) -> HandOverSeen:
    """Read a Paas, the ApplicationSets of its capabilities, and whether its elements stand."""
    paas = await read_paas(name, reader)
    if paas is None:
        return HandOverSeen(None)
    config = await active_config(reader)
    if gives_nothing(paas, config):
        left = is_prepared(paas) and any(has_element(each, paas.name) for each in await with_elements(config, reader))
        return HandOverSeen(paas, config, left=left)
    every = given_by(paas, config)
    if config is None or not every:
        return HandOverSeen(paas, config)
    seen = HandOverSeen(paas, config, await _sets(every, config, reader))
    return replace(seen, refused=await _refused(seen, paas, config, every, reader))


async def _sets(every: Sequence[GivenElement], config: PaasConfig, reader: Reader) -> Mapping[str, Object | None] | None:
    """The ApplicationSets of these capabilities; None where the kind is not served."""
    if not config.argo_namespace:
        served = await reader.served(APPLICATION_SET.api_version, APPLICATION_SET.kind)
        return None if served is None else {}
    names = sorted({given.application_set for given in every})
    return await if_served(APPLICATION_SET, reader, by_name(APPLICATION_SET, names, reader, config.argo_namespace))


async def _refused(
    seen: HandOverSeen, paas: Paas, config: PaasConfig, every: Sequence[GivenElement], reader: Reader
) -> Mapping[str, Refusal]:
    """Why elements that could stand by now do not: the run of an ApplicationSet tells nobody, so it is tried whether we may.

    A snapshot tries nothing.  It takes for refused what is missing: that makes the Paas due where nothing was told yet.
    """
    missing = {given.application_set for given in every if is_prepared(paas) and is_missing(seen, given)}
    bodies = {name: _body(name, config) for name in sorted(missing)}
    if not reader.live:
        return {name: Refusal(key_of(body), "admission", "") for name, body in bodies.items()}
    found = await asyncio.gather(*(_refusal(body, reader) for body in bodies.values()))
    return {name: refusal for name, refusal in zip(bodies, found, strict=True) if refusal is not None}


def _body(name: str, config: PaasConfig) -> Object:
    mark = {ELEMENTS: ",".join(capabilities_of(name, config))}
    return object_of(APPLICATION_SET, {"name": name, "namespace": config.argo_namespace, "annotations": mark})


async def _refusal(body: Object, reader: Reader) -> Refusal | None:
    """Why an ApplicationSet cannot be changed; None where it can."""
    try:
        await reader.try_apply(APPLICATION_SET, body)
    except (ConflictError, NotFound):
        return None
    except RefusedError as error:
        return Refusal(key_of(body), error.cause, error.message)
    return None
