"""Plans for the hand-over: the elements of an ApplicationSet, and the finalizer of a Paas that has some (2.14, 3.2)."""

from __future__ import annotations

from collections.abc import Hashable

from release_provisioning.paas.elements import is_of, operations
from release_provisioning.paas.seen import (
    MANAGER,
    OWNER,
    Element,
    HandOverSeen,
    SetSeen,
    capabilities_of,
    elements_of,
    generators_of,
    given_by,
    gives_nothing,
    is_configured,
    is_marked,
    is_prepared,
    list_generator,
    owner_of,
    wanted_in,
)
from tenantry.model.kinds import Object, annotations_of, is_terminating, object_of
from tenantry.model.paas.names import APPLICATION_SET, ELEMENTS, HAND_OVER_FINALIZER, PAAS
from tenantry.model.plan import NOTHING, Apply, Edit, KubernetesEvent, Plan, RemoveFinalizers, plan_of
from tenantry.model.pointer import pointer

# -- an ApplicationSet -------------------------------------------------------------------------------------


def plan_set(seen: SetSeen) -> Plan:
    """The elements of all Paas in an ApplicationSet that is configured, and no more in one that only has our mark."""
    live = seen.live
    if live is None or is_terminating(live) or not (is_marked(live) or is_configured(seen.namespace, seen.name, seen.config)):
        return NOTHING
    wanted = wanted_elements(seen)
    steps = [*_list_steps(seen, live, wanted), *_mark_steps(seen, live, wanted)]
    note = f"{len(wanted)} elements of Paas are in this ApplicationSet"
    return plan_of(Edit(APPLICATION_SET, live, tuple(steps), KubernetesEvent(live, "HandedOver", note, "HandOver")))


def wanted_elements(seen: SetSeen) -> list[Element]:
    """The elements of ours that are to be in the list, in order.

    One that is there stays while its Paas lacks a required field, and while nobody can say what a capability gives.
    """
    there = [each for each in elements_of(seen.live) if owner_of(each)]
    if seen.config is None:
        kept = {paas.name for paas in seen.every if not paas.deleted and _marked_for(seen.live, paas.enabled)}
        return sorted((each for each in there if owner_of(each) in kept), key=owner_of)
    found: list[Element] = []
    for given in wanted_in(seen):
        own = [each for each in there if owner_of(each) == given.paas.name]
        if given.element is None:
            found += [each for each in own if each not in found]
        elif own or is_prepared(given.paas):
            found.append(given.element)
    return found


def _marked_for(application_set: Object | None, enabled: object) -> bool:
    """Whether the mark of an ApplicationSet names one of these capabilities."""
    marks = annotations_of(application_set).get(ELEMENTS, "").split(",")
    return any(each in marks for each in (enabled if isinstance(enabled, dict) else ()))


def _list_steps(seen: SetSeen, live: Object, wanted: list[Element]) -> list[Object]:
    ours = is_of(frozenset(paas.name for paas in seen.every))
    at = list_generator(live)
    if at is None:
        if not wanted:
            return []
        made = {"list": {"elements": [dict(each) for each in wanted]}}
        if generators_of(live):
            return [{"op": "add", "path": "/spec/generators/-", "value": made}]
        return [{"op": "add", "path": "/spec/generators", "value": [made]}]
    path = ("spec", "generators", str(at), "list", "elements")
    there = isinstance(generators_of(live)[at]["list"].get("elements"), list)
    steps = operations(path, elements_of(live), wanted, ours)
    return [{"op": "add", "path": pointer(*path), "value": []}, *steps] if steps and not there else steps


def _mark_steps(seen: SetSeen, live: Object, wanted: list[Element]) -> list[Object]:
    """The annotation that finds an ApplicationSet with elements of ours when it is not configured any more."""
    path, before = pointer("metadata", "annotations", ELEMENTS), annotations_of(live).get(ELEMENTS)
    if not wanted:
        return [{"op": "remove", "path": path}] if before is not None else []
    if seen.config is None:
        return []
    mark = ",".join(capabilities_of(seen.name, seen.config))
    if before == mark:
        return []
    first = [] if annotations_of(live) else [{"op": "add", "path": "/metadata/annotations", "value": {}}]
    return [*first, {"op": "add", "path": path, "value": mark}]


def doubtful(seen: SetSeen, plan: Plan) -> frozenset[Hashable]:
    """What a second look has to agree on: the Paas whose elements go."""
    names = {paas.name for paas in seen.every}
    there = {owner_of(each) for each in elements_of(seen.live)} & names
    gone = there - {str(each[OWNER]) for each in wanted_elements(seen)} if plan.changes(MANAGER) else set()
    return frozenset[Hashable]({*plan.taken_away(), *gone})


# -- a Paas ------------------------------------------------------------------------------------------------


def plan_paas(seen: HandOverSeen) -> Plan:
    """Our finalizer on a Paas that hands something over, and off one that does not any more when no element is left."""
    paas = seen.paas
    if paas is None:
        return NOTHING
    if gives_nothing(paas, seen.config):
        stays = seen.left or not is_prepared(paas)
        return NOTHING if stays else plan_of(RemoveFinalizers(PAAS, paas.live, (HAND_OVER_FINALIZER,)))
    if seen.sets is None or not any(given.element is not None for given in given_by(paas, seen.config)):
        return NOTHING
    wanted = object_of(PAAS, {"name": paas.name, "finalizers": [HAND_OVER_FINALIZER]})
    return plan_of(Apply(PAAS, wanted, paas.live, manager=MANAGER))
