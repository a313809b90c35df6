"""Where namespaces and quotas of a Paas come from."""

from __future__ import annotations

from tenantry.model.kinds import NAMESPACE, RESOURCE_QUOTA, Object, annotations_of, key_in, key_of
from tenantry.model.origin import Because, Looking, Origin, edit, kubectl
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.looking import config_in_force, paas_behind
from tenantry.model.paas.names import ASKED_BY, CLUSTER_RESOURCE_QUOTA, PAAS, PAAS_NS, PAAS_UID
from tenantry.model.paas.ours import uid_of
from tenantry.model.paas.places import spec_places
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({NAMESPACE, RESOURCE_QUOTA, CLUSTER_RESOURCE_QUOTA})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The entry, capability or PaasNS that asks for a namespace, or the quota of the Paas."""
    del subject
    if not uid_of(obj):
        return None
    paas, proof, key = await paas_behind(obj, look), f"annotation {PAAS_UID}: {uid_of(obj)}", key_of(obj)
    if paas is None:
        return Origin("paas/?", proof, (), ("it goes with the next sweep: its Paas is not there any more",))
    owner = f"paas/{paas.name}"
    if key.kind != NAMESPACE.kind:
        quota = Because(key_of(paas.live), "spec.quota", "or the quota of a capability")
        return Origin(owner, proof, (quota,), (kubectl("delete", PAAS, paas.name),))
    if asked := annotations_of(obj).get(ASKED_BY, ""):
        home, _, name = asked.partition("/")
        return Origin(
            owner,
            proof,
            (Because(key_in(PAAS_NS, name, home), "metadata.name", name),),
            (kubectl("delete", PAAS_NS, name, home),),
        )
    line = await _line(key.name, paas, look)
    return Origin(owner, proof, (Because(key_of(paas.live), line, key.name),), (edit(PAAS, paas.name, f"take {line} out"),))


async def _line(name: str, paas: Paas, look: Looking) -> str:
    place = spec_places(paas, await config_in_force(look)).get(name)
    if place is not None and place.capability:
        return f"spec.capabilities.{place.capability}"
    return f"spec.namespaces.{name.removeprefix(f'{paas.name}-')}"
