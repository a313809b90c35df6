"""The plugin generator of ApplicationSets: Argo CD asks for the elements of a capability, which are in no list then (2.14)."""

from __future__ import annotations

from typing import Any

from release_provisioning.paas.observe import active_config, every_paas
from release_provisioning.paas.seen import offered_by
from tenantry.engine.reader import Reader
from tenantry.engine.request import MalformedRequest
from tenantry.model.kinds import Object


async def answer(question: Any, reader: Reader) -> Object:
    """The elements of all Paas that have the capability, sorted by Paas, as they are declared now.

    Raises:
        MalformedRequest: the question names no capability that is configured.
    """
    capability, config = _capability(question), await active_config(reader)
    if config is None or capability not in config.capabilities:
        raise MalformedRequest("no such capability")
    every = sorted(await every_paas(reader), key=lambda paas: paas.name)
    elements = [element for paas in every if (element := offered_by(paas, capability, config)) is not None]
    return {"output": {"parameters": elements}}


def _capability(question: Any) -> str:
    found = question
    for part in ("input", "parameters", "capability"):
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
