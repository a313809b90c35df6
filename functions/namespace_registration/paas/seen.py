"""What is observed of a Paas, and which namespaces follow from it alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import Object, annotations_of, finalizers_of, is_terminating
from tenantry.model.names import ADOPT
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas, PaasNs
from tenantry.model.paas.names import ASKED_BY, PAAS_UID, namespace_name
from tenantry.model.paas.ours import is_ours, uid_of
from tenantry.model.paas.places import PaasPlace, counting, spec_places

UPSTREAM_FINALIZER = "paasns.cpet.belastingdienst.nl/finalizer"
"""Finalizer of opr-paas on a PaasNS; we put none there."""


@dataclass(frozen=True, slots=True)
class OtherPaas:
    """Another Paas that could want the same names; ``namespaces`` are those that it asks for, where that was looked up."""

    paas: Paas
    namespaces: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PaasSeen:
    """One Paas as it is; without ``paas`` what one of this name has left.

    ``namespaces`` are those with its label and those that it wants, by name; ``asked`` the PaasNS that live in those of them that
    it has.  ``quotas`` are ClusterResourceQuotas by name; None where the kind is not served.  ``shares`` are ResourceQuotas of
    ours by namespace.  ``others`` are the Paas, by name, whose names begin one of these.  ``counted`` are, by quota, other Paas
    whose namespaces have its label, where that was looked up.  ``selected`` are the labels by which quotas of other Paas still
    select, since the configuration has just given quotas another one.  ``events`` are those about namespaces that are left,
    ``now`` is the time for a new one.
    """

    name: str
    paas: Paas | None = None
    config: PaasConfig | None = None
    namespaces: Mapping[str, Object] = field(default_factory=dict)
    asked: tuple[PaasNs, ...] = ()
    quotas: Mapping[str, Object] | None = None
    shares: Mapping[str, Object] = field(default_factory=dict)
    others: Mapping[str, OtherPaas] = field(default_factory=dict)
    counted: Mapping[str, tuple[Paas, ...]] = field(default_factory=dict)
    selected: frozenset[tuple[str, str]] = frozenset()
    events: Mapping[str, Object | None] = field(default_factory=dict)
    now: str = ""

    @property
    def uids(self) -> frozenset[str]:
        """Of the Paas that exist and were looked up."""
        mine = [self.paas.uid] if self.paas is not None else []
        return frozenset([*mine, *(each.paas.uid for each in self.others.values())])


@dataclass(frozen=True, slots=True)
class OutsideSeen:
    """A PaasNS in a namespace that no Paas has; ``paas_ns`` is None where there is nothing to say about it.

    ``held`` is one, wherever it lives, that cannot go because of the finalizer of opr-paas.
    """

    paas_ns: PaasNs | None = None
    held: Object | None = None


def is_held(paas_ns: Object | None) -> bool:
    """Whether a PaasNS is to go, and nobody takes the finalizer of opr-paas off (p-188)."""
    return is_terminating(paas_ns) and UPSTREAM_FINALIZER in finalizers_of(paas_ns)


def prefixes(name: str) -> list[str]:
    """The names of Paas that could have a namespace of this name."""
    parts = name.split("-")
    found = ("-".join(parts[:count]) for count in range(1, len(parts)))
    return [each for each in found if is_dns_label(each)]


def is_left(obj: Object, seen: PaasSeen) -> bool:
    """Whether an object has our mark for a Paas that exists no more (2.12)."""
    marked = annotations_of(obj).get(PAAS_UID, "")
    return bool(marked) and marked not in seen.uids


def left_namespaces(seen: PaasSeen) -> list[Object]:
    """Namespaces of a Paas that exists no more: they stay, and are told."""
    found = (each for _, each in sorted(seen.namespaces.items()))
    return [each for each in found if not is_terminating(each) and is_left(each, seen)]


def is_marked(obj: Object, paas: Paas) -> bool:
    """Whether an object has our annotation for this Paas: only such a namespace is ever deleted."""
    return annotations_of(obj).get(PAAS_UID) == paas.uid


def is_adopted(namespace: Object, seen: PaasSeen) -> bool:
    """Whether an administrator hands a namespace to this Paas that no existing Paas has."""
    return annotations_of(namespace).get(ADOPT) == seen.name and uid_of(namespace) not in seen.uids


def keeper_of(obj: Object, seen: PaasSeen) -> str:
    """The name of the other Paas that an object is proven to be of, as far as it was looked up."""
    return next((name for name, each in seen.others.items() if is_ours(obj, name, each.paas.uid)), "")


def selector_of(quota: Object) -> Mapping[str, str]:
    """The labels by which a ClusterResourceQuota selects namespaces."""
    labels = ((quota.get("spec") or {}).get("selector") or {}).get("labels") or {}
    return labels.get("matchLabels") or {}


def places_of(
    paas: Paas, config: PaasConfig | None, asked: Sequence[PaasNs], namespaces: Iterable[Object]
) -> tuple[dict[str, PaasPlace], dict[str, PaasNs]]:
    """All wanted namespaces by name, and the PaasNS that do not count by key (2.1, 2.2).

    Those that namespaces remember come before all others: who has a namespace keeps it, also when an older PaasNS joins.
    """
    memory = {
        annotations_of(each).get(ASKED_BY): each["metadata"]["name"] for each in namespaces if is_ours(each, paas.name, paas.uid)
    }
    remembered = [each for each in asked if memory.get(each.key) == namespace_name(paas.name, each.name)]
    wanted, refused = counting(spec_places(paas, config), remembered, paas)
    wanted, later = counting(wanted, [each for each in asked if each not in remembered], paas)
    return wanted, {**refused, **later}
