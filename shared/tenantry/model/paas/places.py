"""The namespaces of a Paas: which are wanted, for whom, and which groups apply in each (2.1, 2.2, 2.5).

Which namespace a PaasNS has is remembered on the namespace itself; what it was asked for with is read from there, so that every
function comes to the same answer without asking another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from tenantry.model.kinds import Object, annotations_of, is_terminating
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, PaasNs
from tenantry.model.paas.names import ASKED_BY, namespace_name
from tenantry.model.paas.ours import is_ours

Origin = Literal["spec", "capability", "paasns"]


class PaasPlace(NamedTuple):
    """A wanted namespace: its full name, who asks for it, and the keys of groups that it is restricted to (None: all)."""

    name: str
    origin: Origin
    groups: tuple[str, ...] | None = None
    capability: str = ""
    asked_by: str = ""
    """``<namespace>/<name>`` of the PaasNS."""


def spec_places(paas: Paas, config: PaasConfig | None) -> dict[str, PaasPlace]:
    """The namespaces that the spec of a Paas asks for, by name; one that is also an enabled capability is treated as that."""
    found = {
        name: PaasPlace(name, "spec", groups)
        for suffix, groups in paas.namespaces.items()
        if (name := namespace_name(paas.name, suffix))
    }
    for capability in paas.enabled:
        name = namespace_name(paas.name, capability)
        if config is not None and config.is_external(capability):
            continue
        found[name] = PaasPlace(name, "capability", capability=capability)
    return found


def held_by(paas: Paas, namespace: Object | None) -> bool:
    """Whether a namespace is the Paas' own and not on its way out: only then is it bound in, and a PaasNS in it looked at."""
    return namespace is not None and not is_terminating(namespace) and is_ours(namespace, paas.name, paas.uid)


def counting(
    spec: Mapping[str, PaasPlace], asked: Sequence[PaasNs], paas: Paas
) -> tuple[dict[str, PaasPlace], dict[str, PaasNs]]:
    """All wanted namespaces by name, and the PaasNS that do not count by their key.

    From the namespaces of the spec on, again and again, the oldest PaasNS that lives in a wanted namespace and asks for a name
    that is not wanted yet adds it.  Those that lead to each other, and to nothing else, do not count.
    """
    wanted = dict(spec)
    waiting = sorted((each for each in asked if not is_terminating(each.live)), key=lambda each: each.age)
    refused: dict[str, PaasNs] = {}
    while (chosen := next((each for each in waiting if each.namespace in wanted), None)) is not None:
        waiting.remove(chosen)
        name = namespace_name(paas.name, chosen.name)
        if name in wanted or chosen.paas not in ("", paas.name):
            refused[chosen.key] = chosen
            continue
        groups = chosen.groups if chosen.groups is not None else wanted[chosen.namespace].groups
        wanted[name] = PaasPlace(name, "paasns", groups, asked_by=chosen.key)
    return wanted, {**refused, **{each.key: each for each in waiting}}


def applying(
    paas: Paas, spec: Mapping[str, PaasPlace], namespace: Object, asked: Mapping[str, PaasNs], held: Mapping[str, Object]
) -> PaasPlace | None:
    """What a namespace of the Paas is wanted for, as it remembers; None where nothing asks for it any more.

    Args:
        spec: of `spec_places`.
        namespace: one that the Paas has.
        asked: PaasNS by key, those that exist.
        held: the namespaces that the Paas has, by name.
    """
    name = here = namespace["metadata"]["name"]
    current: Object | None = namespace
    chain: list[PaasNs] = []
    while here not in spec:
        found = asked.get(annotations_of(current).get(ASKED_BY, ""))
        if current is None or found is None or found in chain or namespace_name(paas.name, found.name) != here:
            return None
        chain.append(found)
        here = found.namespace
        current = held.get(here)
    if not chain:
        return spec[name]
    groups = next((each.groups for each in chain if each.groups is not None), spec[here].groups)
    return PaasPlace(name, "paasns", groups, asked_by=chain[0].key)
