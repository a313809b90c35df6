"""Plans for Paas: pure functions from what was observed to writes of namespaces and quotas.

The order (2.17, 2.6): the finalizer comes before the first write; a quota before namespaces that count to it; what shrinks before
what grows.  Nothing that goes waits for something that is made.  A Paas that is deleted keeps namespaces and quotas until the
finalizers of the other functions are gone (2.11).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from namespace_registration.paas.descriptor import MANAGER
from namespace_registration.paas.labels import namespace_labels, template_labels
from namespace_registration.paas.seen import UPSTREAM_FINALIZER, OutsideSeen, PaasSeen, is_left, is_marked
from namespace_registration.paas.shares import plan_shares
from namespace_registration.paas.wanted import Wanted, is_going, label_problem, quota_names, wanted_of
from tenantry.model import limits
from tenantry.model.kinds import (
    NAMESPACE,
    RESOURCE_QUOTA,
    Object,
    finalizers_of,
    is_terminating,
    labels_of,
    object_of,
)
from tenantry.model.names import NAMESPACE_NAME
from tenantry.model.paas.config import PaasConfig
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import (
    ASKED_BY,
    CLUSTER_RESOURCE_QUOTA,
    OTHERS_FINALIZERS,
    PAAS,
    PAAS_FINALIZER,
    PAAS_NS,
)
from tenantry.model.paas.ours import is_ours, marked, owner_reference_of
from tenantry.model.paas.places import held_by
from tenantry.model.plan import NOTHING, Apply, Delete, Edit, KubernetesEvent, Plan, RemoveFinalizers, Write, plan_of


def plan_paas(seen: PaasSeen, project_label: str) -> Plan:
    """Namespaces and quotas as a Paas declares them; of one that is gone or going they are taken away."""
    if seen.paas is None:
        return _plan_left(seen)
    if seen.paas.deleted:
        return _plan_deletion(seen, seen.paas)
    wanted = wanted_of(seen)
    plans = [_withdrawals(seen, seen.paas, wanted)]
    if seen.config is not None:
        plans += _made(seen, seen.paas, seen.config, wanted, project_label)
    plans = [each for each in plans if each.stages]
    if not plans:
        return NOTHING
    first = [_finalizer(seen.paas)] if seen.config is not None else []
    return _told(Plan((tuple(first), tuple(plans))), seen.paas)


def _finalizer(paas: Paas) -> Apply:
    wanted = object_of(PAAS, {"name": paas.name, "finalizers": [PAAS_FINALIZER]})
    return Apply(PAAS, wanted, paas.live, manager=MANAGER)


def _told(plan: Plan, paas: Paas) -> Plan:
    """The plan with one Event about all that it changes, on the first write that is really needed and has none of its own."""
    changes = [change for change in plan.changes(MANAGER) if change.key.kind != PAAS.kind]
    first = next((change.write for change in changes if change.write.event is None), None)
    if first is None:
        return plan
    texts = sorted(f"{change.verb} {change.key}" for change in changes)
    event = KubernetesEvent(paas.live, "Reconciled", limits.few(texts), "Reconcile")

    def within(plan: Plan) -> Plan:
        stages = tuple(tuple(told(item) for item in stage) for stage in plan.stages)
        return Plan(stages)

    def told(item: Write | Plan) -> Write | Plan:
        if isinstance(item, Plan):
            return within(item)
        return replace(item, event=event) if item is first else item

    return within(plan)


# -- what goes ---------------------------------------------------------------------------------------------


def _withdrawals(seen: PaasSeen, paas: Paas, wanted: Wanted) -> Plan:
    """Namespaces that are not wanted any more, then the quotas; and quotas of a Paas that exists no more.

    A ClusterResourceQuota stays while a namespace has its label that is to get another one, unless it has a shared one's name.
    """
    namespaces = [Delete(NAMESPACE, each) for each in _unwanted(seen, paas, wanted)]
    going = {each.live["metadata"]["name"] for each in namespaces}
    kept = quota_names(paas, seen.config) - wanted.conflicts.keys()
    in_use = _labels_in_use(seen, paas, wanted, going) if seen.config is not None else frozenset[str]()
    quotas: list[Write] = []
    for name, live in sorted((seen.quotas or {}).items()):
        if is_ours(live, paas.name, paas.uid):
            goes = name not in kept and (name not in in_use or name in wanted.conflicts)
        else:
            goes = is_left(live, seen)
        if goes and not is_terminating(live):
            quotas.append(Delete(CLUSTER_RESOURCE_QUOTA, live))
    quotas += [Delete(RESOURCE_QUOTA, live) for live in _unwanted_shares(seen, paas, wanted)]
    return Plan((tuple(namespaces), tuple(quotas))) if namespaces or quotas else NOTHING


def _unwanted(seen: PaasSeen, paas: Paas, wanted: Wanted) -> Iterator[Object]:
    for name, live in sorted(seen.namespaces.items()):
        if not is_marked(live, paas) or is_terminating(live):
            continue
        place = wanted.places.get(name)
        if place is None or is_going(place, live, paas):
            yield live


def _labels_in_use(seen: PaasSeen, paas: Paas, wanted: Wanted, going: set[str]) -> frozenset[str]:
    """The quotas that namespaces of the Paas still count to, and are to count to no more."""
    assert seen.config is not None
    staying = {name: each for name, each in seen.namespaces.items() if name not in going and held_by(paas, each)}
    labels = {name: labels_of(each).get(seen.config.quota_label, "") for name, each in staying.items()}
    return frozenset(label for name, label in labels.items() if label != wanted.quota_of.get(name))


def _unwanted_shares(seen: PaasSeen, paas: Paas, wanted: Wanted) -> Iterator[Object]:
    """ResourceQuotas of ours in namespaces that leave, or that nothing limits any more; and all once other quotas are there."""
    for namespace, live in sorted(seen.shares.items()):
        if is_terminating(live):
            continue
        if not is_ours(live, paas.name, paas.uid):
            if is_left(live, seen):
                yield live
        elif namespace not in wanted.stands or (seen.config is not None and _is_superseded(namespace, seen, paas, wanted)):
            yield live


def _is_superseded(namespace: str, seen: PaasSeen, paas: Paas, wanted: Wanted) -> bool:
    """Whether a namespace needs its ResourceQuota no more: nothing limits it, or a ClusterResourceQuota that is there does."""
    assert seen.config is not None
    if seen.quotas is None:
        return namespace not in wanted.hard
    quota = wanted.quota_of[namespace]
    if labels_of(seen.namespaces.get(namespace)).get(seen.config.quota_label) != quota:
        return False
    return quota not in wanted.quotas or is_ours(seen.quotas.get(quota), paas.name, paas.uid)


def _plan_deletion(seen: PaasSeen, paas: Paas) -> Plan:
    """Quotas and namespaces of a Paas that is being deleted, then our finalizer; it is not waited until they are empty."""
    finalizers = finalizers_of(paas.live)
    if PAAS_FINALIZER not in finalizers or any(each in OTHERS_FINALIZERS for each in finalizers):
        return NOTHING
    writes: list[Write] = [Delete(CLUSTER_RESOURCE_QUOTA, live) for live in _of(seen.quotas or {}, paas)]
    writes += [Delete(RESOURCE_QUOTA, live) for live in _of(seen.shares, paas)]
    namespaces = [live for _, live in sorted(seen.namespaces.items()) if is_marked(live, paas) and not is_terminating(live)]
    last = RemoveFinalizers(PAAS, paas.live, (PAAS_FINALIZER,))
    return Plan((tuple(Delete(NAMESPACE, live) for live in namespaces), tuple(writes), (last,)))


def _of(found: Mapping[str, Object], paas: Paas) -> list[Object]:
    return [live for _, live in sorted(found.items()) if is_ours(live, paas.name, paas.uid) and not is_terminating(live)]


def _plan_left(seen: PaasSeen) -> Plan:
    """Quotas of a Paas that exists no more; its namespaces stay (2.12, p-192)."""
    quotas = [live for _, live in sorted((seen.quotas or {}).items()) if is_left(live, seen) and not is_terminating(live)]
    shares = [live for _, live in sorted(seen.shares.items()) if is_left(live, seen) and not is_terminating(live)]
    writes = [*(Delete(CLUSTER_RESOURCE_QUOTA, live) for live in quotas), *(Delete(RESOURCE_QUOTA, live) for live in shares)]
    return plan_of(*writes)


def plan_outside(seen: OutsideSeen) -> Plan:
    """Nothing but the removal of the finalizer of opr-paas from a PaasNS that is being deleted."""
    if seen.held is None:
        return NOTHING
    note = f"the finalizer {UPSTREAM_FINALIZER} of opr-paas was taken off, so that this PaasNS can go"
    event = KubernetesEvent(seen.held, "FinalizerTakenOff", note, "Release")
    return plan_of(RemoveFinalizers(PAAS_NS, seen.held, (UPSTREAM_FINALIZER,), event))


# -- what is made ------------------------------------------------------------------------------------------


def _made(seen: PaasSeen, paas: Paas, config: PaasConfig, wanted: Wanted, project_label: str) -> list[Plan]:
    """Namespaces with their labels, and quotas: a new namespace comes after what limits it, where that can be before it."""
    known = {name: plan_of(*_labelled(name, seen, paas, config, wanted, project_label)) for name in sorted(wanted.stands)}
    waits = frozenset(name for name in wanted.new if name not in seen.namespaces)
    plans = [each for name, each in known.items() if name not in waits]
    if seen.quotas is None:
        return [*plans, *plan_shares(seen, paas, config, wanted, {name: known[name] for name in sorted(waits)})]
    for name, hard in sorted(wanted.quotas.items()):
        live = seen.quotas.get(name)
        followers = [known[each] for each in sorted(waits) if wanted.quota_of[each] == name]
        if live is None and not followers and name != paas.name and name not in wanted.stands:
            continue
        if live is not None and (is_terminating(live) or is_left(live, seen)):
            continue  # it is made anew when it is gone, and then what counts to it
        if label_problem(name, seen) is not None:
            plans += followers
            continue  # it would count namespaces of another Paas: it follows when they have their new label
        plans.append(Plan(((_quota(name, hard, paas, config, live),), tuple(followers))))
    return [*plans, *(known[name] for name in sorted(waits) if wanted.quota_of[name] not in wanted.quotas)]


def _quota(name: str, hard: Mapping[str, str], paas: Paas, config: PaasConfig, live: Object | None) -> Apply:
    labels, annotations = marked(paas.name, paas.uid)
    labels = {**template_labels(config.quota_labels, paas, config).written, **labels}
    spec = {"quota": {"hard": dict(hard)}, "selector": {"labels": {"matchLabels": {config.quota_label: name}}}}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    wanted = object_of(CLUSTER_RESOURCE_QUOTA, metadata, spec=spec)
    return Apply(CLUSTER_RESOURCE_QUOTA, wanted, live, create_only=True, manager=MANAGER)


def _labelled(name: str, seen: PaasSeen, paas: Paas, config: PaasConfig, wanted: Wanted, project_label: str) -> Sequence[Write]:
    """A namespace with its labels and marks; once they are there, upstream's owner reference is taken off (2.12)."""
    live, quota = seen.namespaces.get(name), wanted.quota_of[name]
    if quota in wanted.conflicts:
        return ()  # what is there stays as it is
    _, annotations = marked(paas.name, paas.uid)
    if asked_by := wanted.places[name].asked_by:
        annotations[ASKED_BY] = asked_by
    written = namespace_labels(paas, quota, config, project_label).written.items() - seen.selected
    kept = {key: labels_of(live)[key] for key, _ in seen.selected if key in labels_of(live)}
    labels = {**dict(sorted(written)), **kept, NAMESPACE_NAME: name}
    body = object_of(NAMESPACE, {"name": name, "labels": labels, "annotations": annotations})
    healed = None
    if live is not None and is_left(live, seen):  # a Warning says so
        healed = KubernetesEvent(live, "Healed", f"this namespace is of Paas {paas.name} now", "Adopt")
    made = Apply(NAMESPACE, body, live, create_only=True, event=healed, manager=MANAGER)
    if live is not None and is_marked(live, paas) and (reference := owner_reference_of(live)) is not None:
        return made, _without_reference(live, reference)
    return (made,)


def _without_reference(live: Object, reference: Mapping[str, object]) -> Edit:
    place = live["metadata"]["ownerReferences"].index(reference)
    path = f"/metadata/ownerReferences/{place}"
    steps = ({"op": "test", "path": path, "value": dict(reference)}, {"op": "remove", "path": path})
    return Edit(NAMESPACE, live, steps)
