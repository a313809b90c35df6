"""Where elements in ApplicationSets come from."""

from __future__ import annotations

from tenantry.model.kinds import Object, annotations_of, key_in
from tenantry.model.origin import Because, Looking, Origin, all_of, edit
from tenantry.model.paas.declared import paas_of
from tenantry.model.paas.looking import config_in_force
from tenantry.model.paas.names import APPLICATION_SET, ELEMENTS, PAAS, PAAS_CONFIG
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({APPLICATION_SET})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The capability that names the ApplicationSet, and the Paas that have it enabled."""
    del subject
    marked = annotations_of(obj).get(ELEMENTS, "")
    if not marked:
        return None
    config, because, ends = await config_in_force(look), [], []
    for capability in marked.split(","):
        if config is not None and capability in config.capabilities:
            because.append(Because(key_in(PAAS_CONFIG, config.name, ""), f"spec.capabilities.{capability}.applicationset"))
        for live in await look.list(PAAS):
            if capability in (paas := paas_of(live)).enabled:
                because.append(Because(key_in(PAAS, paas.name, ""), f"spec.capabilities.{capability}.enabled", "true"))
                ends.append(edit(PAAS, paas.name, f"set spec.capabilities.{capability}.enabled to false"))
    metadata = obj["metadata"]
    owner = f"appset/{metadata['namespace']}/{metadata['name']}"
    return Origin(owner, f"annotation {ELEMENTS}: {marked}", tuple(because), all_of(ends), "keeps elements in it")
