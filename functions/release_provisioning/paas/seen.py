"""What is observed for the hand-over, and what follows from it alone: which element each capability of a Paas gives.

Sources of the rules: 2.14 (elements, custom fields) and 2.15 (placeholders) of the specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from release_provisioning import NAME
from tenantry.model.identifiers import digest
from tenantry.model.kinds import Object, annotations_of, finalizers_of
from tenantry.model.names import field_manager
from tenantry.model.paas.config import CapabilityConfig, PaasConfig
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import ELEMENTS, HAND_OVER_FINALIZER, HAND_OVER_PART, WARNINGS
from tenantry.model.paas.placeholders import rendered
from tenantry.model.plan import Refusal

MANAGER = f"{field_manager(NAME)}-paas"
OWNER = "paas"
"""The field of an element that says whose it is."""

Element = Mapping[str, Any]


class GivenElement(NamedTuple):
    """What a capability of a Paas gives: its element, or None as long as a required field is not set.

    ``missing`` are required fields that are not set, ``unknown`` those that are set and not configured.
    """

    paas: Paas
    capability: str
    application_set: str
    element: Element | None
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetSeen:
    """One ApplicationSet, the PaasConfig that counts, and all Paas."""

    namespace: str
    name: str
    live: Object | None
    config: PaasConfig | None
    config_live: Object | None = None
    every: tuple[Paas, ...] = ()


@dataclass(frozen=True, slots=True)
class HandOverSeen:
    """One Paas, and the ApplicationSets of its capabilities by name; None where the kind is not served.

    Of one that is being deleted ``left`` says whether some ApplicationSet still has an element of it.  ``refused`` are
    ApplicationSets that could not be changed, by name.
    """

    paas: Paas | None
    config: PaasConfig | None = None
    sets: Mapping[str, Object | None] | None = field(default_factory=dict)
    left: bool = False
    refused: Mapping[str, Refusal] = field(default_factory=dict)


# -- what declarations give --------------------------------------------------------------------------------


def given_by(paas: Paas, config: PaasConfig | None) -> list[GivenElement]:
    """What a Paas hands over; nothing when it is being deleted, nor without a configuration."""
    if config is None or paas.deleted:
        return []
    known = ((name, config.capabilities.get(name)) for name in paas.enabled)
    return [_given(paas, name, found, config) for name, found in known if found is not None and found.application_set]


def offered_by(paas: Paas, capability: str, config: PaasConfig) -> Element | None:
    """What a Paas gives for a capability to who asks for it: its element, without required fields that are not set."""
    known = config.capabilities.get(capability)
    if known is None or paas.deleted or capability not in paas.enabled:
        return None
    return _fields(paas, capability, known, config)[0]


def _given(paas: Paas, name: str, capability: CapabilityConfig, config: PaasConfig) -> GivenElement:
    element, missing = _fields(paas, name, capability, config)
    unknown = tuple(key for key in paas.capabilities[name].custom_fields if key not in capability.custom_fields)
    return GivenElement(paas, name, capability.application_set, None if missing else element, missing, tuple(sorted(unknown)))


def _fields(paas: Paas, name: str, capability: CapabilityConfig, config: PaasConfig) -> tuple[Element, tuple[str, ...]]:
    """An element with the fields that are set, and the required ones that are not."""
    declared = paas.capabilities[name]
    fields: dict[str, Any] = dict(declared.git)
    missing: list[str] = []
    for key, custom in capability.custom_fields.items():
        value = declared.custom_fields.get(key)
        if value is None and custom.template:
            value = rendered(custom.template, paas)
        elif value is None:
            value = custom.default or None
            missing += [key] if custom.required else []
        if value is not None:
            fields[key] = value
    generic = {key: rendered(text, paas) for key, text in config.generic_fields.items()}
    fields |= {key: value for key, value in generic.items() if value is not None}
    return {**fields, OWNER: paas.name}, tuple(missing)


# -- ApplicationSets ---------------------------------------------------------------------------------------


def is_configured(namespace: str, name: str, config: PaasConfig | None) -> bool:
    """Whether capabilities are handed over to this ApplicationSet."""
    return config is not None and namespace == config.argo_namespace and bool(capabilities_of(name, config))


def capabilities_of(name: str, config: PaasConfig) -> tuple[str, ...]:
    """The capabilities that are handed over to the ApplicationSet of a name."""
    return tuple(each for each, found in sorted(config.capabilities.items()) if found.application_set == name)


def is_marked(application_set: Object | None) -> bool:
    """Whether an ApplicationSet has elements of ours."""
    return ELEMENTS in annotations_of(application_set)


def generators_of(application_set: Object) -> Sequence[Any]:
    """The generators of an ApplicationSet."""
    spec = application_set.get("spec")
    found = spec.get("generators") if isinstance(spec, dict) else None
    return found if isinstance(found, list) else []


def list_generator(application_set: Object) -> int | None:
    """Which of the generators is the first list; None where there is none."""
    generators = enumerate(generators_of(application_set))
    return next((at for at, each in generators if isinstance(each, dict) and isinstance(each.get("list"), dict)), None)


def elements_of(application_set: Object | None) -> Sequence[Any]:
    """The elements of the first list generator."""
    if application_set is None or (at := list_generator(application_set)) is None:
        return []
    found = generators_of(application_set)[at]["list"].get("elements")
    return found if isinstance(found, list) else []


def owner_of(element: Any) -> str:
    """The name of the Paas that an element is of; empty where it names none."""
    found = element.get(OWNER) if isinstance(element, dict) else None
    return found if isinstance(found, str) else ""


def nobodys(seen: SetSeen) -> list[str]:
    """The names in elements of an ApplicationSet of ours that no Paas has."""
    known = {paas.name for paas in seen.every}
    if not (is_marked(seen.live) or is_configured(seen.namespace, seen.name, seen.config)):
        return []
    return sorted({name for each in elements_of(seen.live) if (name := owner_of(each)) and name not in known})


def told_type(namespace: str, name: str) -> str:
    """The condition of the PaasConfig that tells of elements in an ApplicationSet which no Paas has."""
    return f"{HAND_OVER_PART}.{namespace}.{name}.{WARNINGS}"


def told_sets(config: Object | None) -> list[tuple[str, str]]:
    """The ApplicationSets, by namespace and name, that a PaasConfig tells of."""
    before, after = f"{HAND_OVER_PART}.", f".{WARNINGS}"
    types = (str(each.get("type")) for each in ((config or {}).get("status") or {}).get("conditions") or ())
    named = (each.removeprefix(before).removesuffix(after) for each in types if each.startswith(before) and each.endswith(after))
    return [(namespace, name) for namespace, _, name in (each.partition(".") for each in named)]


def wanted_in(seen: SetSeen) -> Iterator[GivenElement]:
    """What all Paas give to this ApplicationSet, by Paas and capability."""
    if is_configured(seen.namespace, seen.name, seen.config):
        for paas in sorted(seen.every, key=lambda each: each.name):
            yield from (given for given in given_by(paas, seen.config) if given.application_set == seen.name)


def declared(seen: SetSeen) -> frozenset[tuple[str, str, str]]:
    """What is declared for an ApplicationSet, as a value that can be compared."""
    return frozenset((given.paas.uid, given.capability, digest(given.element, given.missing)) for given in wanted_in(seen))


def gives_nothing(paas: Paas, config: PaasConfig | None) -> bool:
    """Whether no element of a Paas is to stand: it goes, or hands nothing over.  Without a configuration nobody can tell."""
    return paas.deleted or (config is not None and not given_by(paas, config))


def is_prepared(paas: Paas) -> bool:
    """Whether the finalizer is there that a new element needs before it is written (3.2)."""
    return HAND_OVER_FINALIZER in finalizers_of(paas.live)
