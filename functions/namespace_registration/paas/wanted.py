"""What a Paas gets: its namespaces, those that it does not get and why, and its quotas.  Pure.

Sources of the rules: 2.1 (namespaces), 2.2 (PaasNS), 2.6 (quotas), 1.5 (names) of the specification; p-50, p-51, p-91, p-95.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from namespace_registration.paas.seen import PaasSeen, is_adopted, is_left, is_marked, keeper_of, places_of, selector_of
from namespace_registration.quotas import capability_quota, fallback_quota, normal, shares
from tenantry.model.identifiers import is_dns_label
from tenantry.model.kinds import Object, annotations_of, is_terminating, labels_of
from tenantry.model.names import ADOPT, NAMESPACE_NAME_LIMIT
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Amounts, Paas, PaasNs
from tenantry.model.paas.names import ASKED_BY, namespace_name
from tenantry.model.paas.ours import is_ours
from tenantry.model.paas.places import PaasPlace, held_by
from tenantry.model.paas.status import PaasProblem

_TAKEN_NAMES = ("paas", "true")
_SYSTEMS = ("kube", "openshift", "cattle", "tenantry")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What follows from a Paas as it was seen.

    ``places`` are all wanted namespaces; ``had`` those that the Paas has, ``new`` those that it is to have; ``missing`` says why
    it does not get the others.  ``refused`` are the PaasNS that do not count.  ``quota_of`` is the name of the quota that a
    namespace counts to; ``quotas`` are ClusterResourceQuotas of this Paas, ``hard`` what each namespace has where there are
    none.  ``conflicts`` says, by name, why a quota cannot be had.
    """

    places: Mapping[str, PaasPlace] = field(default_factory=dict)
    refused: Mapping[str, PaasNs] = field(default_factory=dict)
    had: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    missing: Mapping[str, PaasProblem] = field(default_factory=dict)
    quota_of: Mapping[str, str] = field(default_factory=dict)
    quotas: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    hard: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    conflicts: Mapping[str, PaasProblem] = field(default_factory=dict)

    @property
    def stands(self) -> frozenset[str]:
        """The namespaces that are there, or will be after the writes."""
        return self.had | self.new


def name_problem(paas: Paas, config: PaasConfig | None) -> PaasProblem | None:
    """Why nothing may be made for a Paas of this name (p-91)."""
    name = paas.name
    clusterwide = sorted(each for each, known in config.capabilities.items() if known.clusterwide) if config is not None else []
    fix = "make a Paas of another name"
    if not is_dns_label(name):
        return PaasProblem("InvalidName", f"Paas {name}: the name has to be lower-case letters, digits and '-' only: {fix}")
    if name in _TAKEN_NAMES or any(name == each or name.startswith(f"{each}-") for each in _SYSTEMS):
        return PaasProblem("InvalidName", f"Paas {name}: namespaces of this name are the system's own: {fix}")
    if name in map(shared_quota, clusterwide):
        return PaasProblem("QuotaConflict", f"Paas {name}: its quota would be that of all Paas with capability {name[5:]}: {fix}")
    return None


def wanted_of(seen: PaasSeen) -> Wanted:
    """What a living Paas is to have; without a configuration nothing new."""
    paas, config = seen.paas, seen.config
    assert paas is not None
    places, refused = places_of(paas, config, seen.asked, seen.namespaces.values())
    quota_of = {name: _quota_of(place, paas, config) for name, place in places.items()} if config is not None else {}
    values = sorted({paas.name, *quota_of.values()}) if config is not None else []
    conflicts = {value: problem for value in values if (problem := _quota_conflict(value, seen, config)) is not None}
    blocked = name_problem(paas, config)
    had, new, missing = set(), set(), dict[str, PaasProblem]()
    for name, place in sorted(places.items()):
        problem = _place_problem(place, seen)
        if problem is None and held_by(paas, seen.namespaces.get(name)):
            had.add(name)
            continue
        if problem is None and config is None:
            problem = _NO_CONFIG
        problem = problem or blocked or conflicts.get(quota_of.get(name, "")) or _unknown(place, config)
        if problem is None:
            new.add(name)
        else:
            missing[name] = problem
    stands = sorted(had | new)
    known, may_limit = config or PaasConfig(), config is not None and (blocked is None or bool(had))
    return Wanted(
        places,
        refused,
        frozenset(had),
        frozenset(new),
        missing,
        quota_of,
        {name: each for name, each in _quotas(paas, known).items() if name not in conflicts} if may_limit else {},
        dict(_hard({name: places[name] for name in stands}, quota_of, paas, known)) if may_limit else {},
        conflicts,
    )


_NO_CONFIG = PaasProblem(
    "NoPaasConfig", "there is no PaasConfig: an administrator of the cluster has to make one; then all is made"
)


def no_config() -> PaasProblem:
    """What a Paas without a configuration waits for (p-58)."""
    return _NO_CONFIG


# -- namespaces --------------------------------------------------------------------------------------------


def is_going(place: PaasPlace, namespace: Object, paas: Paas) -> bool:
    """Whether a namespace of ours was asked for by a PaasNS that does not count any more: who asks now gets a new one (p-106)."""
    if not is_marked(namespace, paas) or place.origin != "paasns":
        return False
    return annotations_of(namespace).get(ASKED_BY) != place.asked_by


def _place_problem(place: PaasPlace, seen: PaasSeen) -> PaasProblem | None:
    """Why a namespace is not the Paas' own and cannot become it; None where it is, or may be made."""
    paas, name = seen.paas, place.name
    assert paas is not None
    if not is_dns_label(name):
        return PaasProblem("InvalidName", _illegal_name(name))
    live = seen.namespaces.get(name)
    if live is None:
        older = [each.paas for _, each in sorted(seen.others.items()) if name in each.namespaces and each.paas.age < paas.age]
        if older:
            text = f"namespace {name} is Paas {older[0].name}'s, which is older: choose another name"
            return PaasProblem("NamespaceConflict", text)
        return None
    if is_terminating(live):
        return PaasProblem("NamespaceConflict", f"namespace {name} is being deleted: it is made anew when it is gone")
    if is_ours(live, paas.name, paas.uid):
        if is_going(place, live, paas):
            text = f"namespace {name} was made for another PaasNS: it is deleted, and made anew when it is gone"
            return PaasProblem("NamespaceConflict", text)
        return None
    if is_adopted(live, seen):
        return None
    if keeper := keeper_of(live, seen):
        return PaasProblem("NamespaceConflict", f"namespace {name} is Paas {keeper}'s: choose another name")
    whose = "is of a Paas that exists no more" if is_left(live, seen) else "exists and is of no Paas"
    hand_over = f"an administrator hands it over with the annotation {ADOPT}={paas.name}"
    text = f"namespace {name} {whose}: choose another name, or {hand_over}"
    return PaasProblem("NamespaceConflict", text)


def _illegal_name(name: str) -> str:
    if len(name) > NAMESPACE_NAME_LIMIT:
        return f"namespace {name[:100]} would have {len(name)} characters: use at most {NAMESPACE_NAME_LIMIT}"
    return f"namespace {name} cannot be made: use lower-case letters, digits and '-' only, and a letter or digit at the end"


def _unknown(place: PaasPlace, config: PaasConfig | None) -> PaasProblem | None:
    """A capability that nobody configured is not made where that is to be refused; what is there stays (2.1)."""
    if place.origin != "capability" or config is None or place.capability in config.capabilities:
        return None
    return unknown_capability(place.capability) if config.unknown_capability_policy == "Reject" else None


def unknown_capability(name: str) -> PaasProblem:
    """What is said about it, as an error or as a warning."""
    text = f"capability {name} is not configured: correct its name, or an administrator has to configure it"
    return PaasProblem("UnknownCapability", text)


# -- quotas ------------------------------------------------------------------------------------------------


def _quota_of(place: PaasPlace, paas: Paas, config: PaasConfig) -> str:
    """The name of the quota that a namespace counts to, which is the value of its label."""
    known = config.capabilities.get(place.capability) if place.origin == "capability" else None
    if known is None:
        return paas.name
    return shared_quota(place.capability) if known.clusterwide else namespace_name(paas.name, place.capability)


def shared_quota(capability: str) -> str:
    """The name of the quota of a clusterwide capability."""
    return f"paas-{capability}"


def quota_names(paas: Paas, config: PaasConfig | None) -> frozenset[str]:
    """The quotas that a Paas may want for itself; without a configuration those that it could have had."""
    own = [paas.name] if paas.quota else []
    if config is None:
        return frozenset([*own, *(namespace_name(paas.name, name) for name in paas.enabled)])
    return frozenset(_quotas(paas, config))


def _quotas(paas: Paas, config: PaasConfig) -> dict[str, Mapping[str, str]]:
    """The quotas of this Paas alone: its own, and those of its capabilities that are not clusterwide (p-10, p-152)."""
    found: dict[str, Mapping[str, str]] = {paas.name: normal(paas.quota)} if paas.quota else {}
    for name, capability in paas.enabled.items():
        known = config.capabilities.get(name)
        if known is None or known.clusterwide or known.external:
            continue
        if hard := capability_quota(capability.quota, known):
            found[namespace_name(paas.name, name)] = hard
    return found


def values_of(paas: Paas, config: PaasConfig | None) -> frozenset[str]:
    """The values that a Paas gives to the label of quotas, but for those that it shares: its quotas have these names."""
    return frozenset(_values_of(paas, config)) if config is not None else quota_names(paas, None)


def _values_of(paas: Paas, config: PaasConfig) -> Iterator[str]:
    yield paas.name
    for name in paas.enabled:
        known = config.capabilities.get(name)
        if known is not None and not known.clusterwide and not known.external:
            yield namespace_name(paas.name, name)


def _quota_conflict(value: str, seen: PaasSeen, config: PaasConfig | None) -> PaasProblem | None:
    """Why a quota cannot be had: it is shared by all, or another Paas has it, or an older one wants it (p-95)."""
    paas = seen.paas
    if paas is None or config is None or value not in values_of(paas, config):
        return None
    capability = value.removeprefix("paas-")
    if capability != value and (known := config.capabilities.get(capability)) is not None and known.clusterwide:
        text = f"quota {value} is that of all Paas with capability {capability}: choose another name"
        return PaasProblem("QuotaConflict", text)
    live = (seen.quotas or {}).get(value)
    if live is not None and not is_ours(live, paas.name, paas.uid) and not is_left(live, seen):
        keeper = keeper_of(live, seen)
        whose = f"is Paas {keeper}'s" if keeper else "exists and is of no Paas"
        text = f"ClusterResourceQuota {value} {whose}: choose another name, or have it deleted"
        return PaasProblem("QuotaConflict", text)
    if live is not None or any(labels_of(each).get(config.quota_label) == value for each in _held(seen)):
        return None
    first = {each.name for each in seen.counted.get(value, ())}
    for name, each in sorted(seen.others.items()):
        if each.paas.deleted or value not in values_of(each.paas, config):
            continue
        if name in first or each.paas.age < paas.age:
            how = "whose namespaces have its label" if name in first else "which is older"
            return PaasProblem("QuotaConflict", f"quota {value} is Paas {name}'s, {how}: choose another name")
    return None


def label_problem(name: str, seen: PaasSeen) -> PaasProblem | None:
    """Why a quota of ours does not get the label of the configuration yet: it would count namespaces of another Paas (p-185).

    They have it by chance, as a label of their own, and it goes with the next run of their Paas.
    """
    live, keepers = (seen.quotas or {}).get(name), seen.counted.get(name, ())
    if seen.config is None or live is None or not keepers or seen.config.quota_label in selector_of(live):
        return None
    named = ", ".join(sorted(each.name for each in keepers))
    text = (
        f"quota {name} waits while namespaces of Paas {named} have {seen.config.quota_label}={name}: see what those Paas report"
    )
    return PaasProblem("QuotaConflict", text)


def waits(seen: PaasSeen) -> bool:
    """Whether a label of quotas that is new waits for the runs of other Paas: one by which their quotas select, or that their
    namespaces have."""
    return bool(seen.selected) or any(label_problem(name, seen) for name in seen.counted)


def _held(seen: PaasSeen) -> Iterator[Object]:
    assert seen.paas is not None
    return (each for each in seen.namespaces.values() if held_by(seen.paas, each))


def _hard(
    places: Mapping[str, PaasPlace], quota_of: Mapping[str, str], paas: Paas, config: PaasConfig
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What each namespace has where no quota spans namespaces (p-59, p-145 to p-149); none where nothing limits it."""
    counted = sorted(name for name in places if quota_of[name] == paas.name)
    divided = shares(paas.quota, counted) if config.quota_fallback == "PerNamespace" else {}
    for name, place in places.items():
        hard: Amounts = {}
        if quota_of[name] == paas.name:
            hard = divided.get(name, {}) if config.quota_fallback == "PerNamespace" else normal(paas.quota)
        elif (known := config.capabilities.get(place.capability)) is not None:
            own = paas.capabilities[place.capability].quota
            hard = fallback_quota(own, known) if known.clusterwide else capability_quota(own, known)
        if hard:
            yield name, hard
