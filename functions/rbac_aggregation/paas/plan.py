"""Plans for the rights of a Paas: pure functions from what was observed to writes of Groups and RoleBindings.

The order (2.17) is: the finalizer; then Groups that are made or changed, and in each namespace new and widened bindings before
shrunk and unwanted ones; Groups that are not wanted any more at last, so that no binding has their name.  A Group is bound in the
look after the one that makes it, when it is proven to be ours.  What a refusal holds up is done after the refusals (`plan_rest`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from rbac_aggregation.paas.argo import plan_policy
from rbac_aggregation.paas.claims import Claim
from rbac_aggregation.paas.seen import MANAGER, RBAC, Seen, WantedBinding, is_well, members_of, rights_of, subjects_of
from tenantry.model.difference import owns
from tenantry.model.identifiers import is_label_key, is_label_value
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    ROLE_BINDING,
    Key,
    Object,
    finalizers_of,
    is_terminating,
    key_of,
    labels_of,
    object_of,
)
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import GROUP, PAAS, RIGHTS_FINALIZER, binding_name
from tenantry.model.paas.ours import is_ours, marked
from tenantry.model.paas.placeholders import rendered
from tenantry.model.plan import NOTHING, Apply, Delete, KubernetesEvent, Plan, Refusal, RemoveFinalizers

Write = Apply | Delete
Stage = list[Write]


def plan_paas(seen: Seen) -> Plan:
    """The rights of a Paas; of one that is being deleted, or gone, what is left of them goes."""
    paas = seen.paas
    if paas is None:
        return _told(Plan((*_stages(_orphaned(seen, ROLE_BINDING.kind), _orphaned(seen, GROUP.kind)),)), None)
    if paas.deleted:
        return _told(_leaving(seen, paas), paas.live)
    work: list[Write | Plan] = [Plan(tuple(map(tuple, place))) for place in _in_namespaces(seen, paas).values() if any(place)]
    if not seen.part:
        work = [*_groups(seen, paas), *work, *plan_policy(seen, paas)]
        # Those of a Paas before it; what takes their place is made in the next look.
        work.append(Plan(tuple(_stages(_orphaned(seen, ROLE_BINDING.kind), _orphaned(seen, GROUP.kind)))))
    after = [] if seen.part else unwanted_groups(seen)
    first = [] if seen.part else _finalizer(seen, paas)
    return _told(Plan(tuple(tuple(stage) for stage in (first, work, after) if stage)), paas.live)


def plan_rest(seen: Seen, refusals: Sequence[Refusal]) -> list[Write | Plan]:
    """What has to go although something else was refused: a problem anywhere never stops a withdrawal (p-176).

    In a namespace that refused a binding the shrunk and unwanted ones; of a binding whose new subjects were refused, the old
    subjects; and unwanted Groups that no binding has any more.
    """
    paas = seen.paas
    if paas is None or paas.deleted or not refusals:
        return []
    refused = {each.key for each in refusals}
    rest: list[Write | Plan] = []
    live = {key_of(each): each for each in seen.bindings}
    for first, then in _in_namespaces(seen, paas).values():
        if not any(write.key in refused for write in first):
            continue
        rest += then
        rest += [each for write in first if write.key in refused for each in _without_leavers(write, live.get(write.key))]
    if not seen.part:
        held = _named_in(seen.bindings, seen)
        rest += [write for write in unwanted_groups(seen) if write.key.name not in held and write.key not in refused]
    return rest


def doubtful(seen: Seen, plan: Plan) -> frozenset[Hashable]:
    """What a plan takes away, objects and subjects of bindings that stay; and Groups that it makes for a Paas that has all.

    A Paas that was answered as it was before would have a Group back that went for good reason.  And bindings that were would let
    a Group go before one that names it: which these are has to be seen twice, too (p-174).
    """
    named = {key_of(each): _names(each) for each in seen.bindings}
    found: set[Hashable] = set()
    for write in plan.writes():
        if isinstance(write, Apply) and write.key in named:
            kept = _names(write.wanted)
            found |= {(write.key, *each) for each in named[write.key] - kept}
        elif isinstance(write, Delete) and write.kind == GROUP:
            by = frozenset(key for key, names in named.items() if ("Group", write.key.name) in names)
            found.add(("named by", write.key, by))
    if seen.paas is not None and is_well(seen.paas.live):
        found |= {("made", key) for key in plan.created() if key.gvk == GROUP.gvk}
    return plan.taken_away() | found


# -- Groups ------------------------------------------------------------------------------------------------


def _groups(seen: Seen, paas: Paas) -> Stage:
    """Groups to be made, and those whose users or labels differ; without a PaasConfig none is made."""
    made: Stage = []
    for claim in seen.claims.values():
        live = seen.groups.get(claim.name)
        if claim.wants_object and not is_terminating(live) and (live is not None or seen.config is not None):
            made.append(Apply(GROUP, wanted_group(seen, paas, claim, live), live, create_only=True, manager=MANAGER, adopts=True))
    return made


def wanted_group(seen: Seen, paas: Paas, claim: Claim, live: Object | None) -> Object:
    """A Group: exactly these users, in this order (p-3, p-16)."""
    labels, annotations = marked(paas.name, paas.uid)
    templates = seen.config.group_labels if seen.config is not None else None
    metadata = {"name": claim.name, "labels": {**_labels(templates, paas, live), **labels}, "annotations": annotations}
    users = members_of(seen, claim.key)
    if not users and (live or {}).get("users") is None:
        return object_of(GROUP, metadata)
    return object_of(GROUP, metadata, users=users)


def unwanted_groups(seen: Seen) -> Stage:
    """Groups of the Paas that no claim wants."""
    wanted = {claim.name for claim in seen.claims.values() if claim.wants_object}
    found = (each for each in seen.groups.values() if each is not None and not is_terminating(each))
    if seen.paas is None:
        return []
    name, uid = seen.paas.name, seen.paas.uid
    return [Delete(GROUP, each) for each in found if each["metadata"]["name"] not in wanted and is_ours(each, name, uid)]


# -- RoleBindings ------------------------------------------------------------------------------------------


def _in_namespaces(seen: Seen, paas: Paas) -> dict[str, tuple[Stage, Stage]]:
    """By namespace new and widened bindings, then those that shrink or go: access is never missing (p-175)."""
    rights = rights_of(seen) if seen.config is not None else _kept_rights(seen, seen.bindings)
    live = {key_of(each): each for each in seen.bindings}
    stages: dict[str, tuple[Stage, Stage]] = {key.namespace: ([], []) for key in sorted({*rights, *live})}
    for key, wanted in sorted(rights.items()):
        first, then = stages[key.namespace]
        there = live.get(key)
        if key in seen.foreign or is_terminating(there):
            continue
        if there is not None and there["roleRef"] != _role_ref(wanted.role):
            first.append(Delete(ROLE_BINDING, there))  # it never changes: the next look makes it anew (p-114)
            continue
        body = wanted_binding(seen, paas, key, wanted, there)
        write = Apply(ROLE_BINDING, body, there, create_only=True, manager=MANAGER, adopts=True)
        if write.change(MANAGER) is not None:
            (then if there is not None and _names(body) <= _names(there) else first).append(write)
    for key, each in sorted(live.items()):
        if key not in rights and not is_terminating(each):
            stages[key.namespace][1].append(Delete(ROLE_BINDING, each))
    return stages


def _kept_rights(seen: Seen, bindings: Iterable[Object]) -> dict[Key, WantedBinding]:
    """Without a PaasConfig nothing is added: of what is bound stays who still applies in the namespace (2.10, p-182)."""
    found: dict[Key, WantedBinding] = {}
    for each in bindings:
        key = key_of(each)
        place = seen.places.get(key.namespace)
        role = each["roleRef"]["name"]
        if place is None or seen.paas is None or key.name != binding_name(role):
            continue
        groups = place.groups if place.groups is not None else tuple(seen.paas.groups)
        applying: set[tuple[str, str]] = set()
        for name in groups:
            applying |= set(subjects_of(seen, name))
            users = seen.paas.groups[name].users if name in seen.paas.groups else ()
            applying |= {("User", user) for user in users}
        subjects = tuple(subject for subject in each.get("subjects") or () if (subject["kind"], subject["name"]) in applying)
        if subjects:
            found[key] = WantedBinding(role, subjects)
    return found


def wanted_binding(seen: Seen, paas: Paas, key: Key, wanted: WantedBinding, live: Object | None) -> Object:
    """A RoleBinding: all fields of ours."""
    labels, annotations = marked(paas.name, paas.uid)
    templates = seen.config.binding_labels if seen.config is not None else None
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {**_labels(templates, paas, live), **labels},
        "annotations": annotations,
    }
    return object_of(ROLE_BINDING, metadata, roleRef=_role_ref(wanted.role), subjects=list(wanted.subjects))


def _role_ref(role: str) -> Object:
    return {"apiGroup": RBAC, "kind": CLUSTER_ROLE.kind, "name": role}


def _names(binding: Object) -> frozenset[tuple[str, str]]:
    return frozenset((each.get("kind", ""), each.get("name", "")) for each in binding.get("subjects") or ())


def _without_leavers(write: Write, live: Object | None) -> Stage:
    """Of a refused write: the binding as it is, without those who are to leave it."""
    if not isinstance(write, Apply) or live is None:
        return []
    kept = _names(write.wanted)
    left = [each for each in live.get("subjects") or () if (each.get("kind", ""), each.get("name", "")) in kept]
    if len(left) == len(live.get("subjects") or ()):
        return []
    if not left:
        return [Delete(ROLE_BINDING, live)]
    return [replace(write, wanted={**write.wanted, "subjects": left})]


def _named_in(bindings: Iterable[Object], seen: Seen) -> frozenset[str]:
    """The groups that bindings have and that no declaration gives them any more."""
    rights = rights_of(seen)
    found: set[str] = set()
    for each in bindings:
        wanted = rights.get(key_of(each))
        given = _names({"subjects": list(wanted.subjects)}) if wanted is not None else frozenset()
        found |= {name for kind, name in _names(each) - given if kind == "Group"}
    return frozenset(found)


# -- all ---------------------------------------------------------------------------------------------------


def _labels(templates: Mapping[str, str] | None, paas: Paas, live: Object | None) -> dict[str, str]:
    """What ``templating`` says, as far as it can be labels; without a PaasConfig the labels of ours stay as they are."""
    if templates is None:
        return {key: value for key, value in labels_of(live).items() if live and owns(live, MANAGER, "metadata", "labels", key)}
    found = _rendered(templates, paas)
    return {key: value for key, value in found.items() if is_label_value(value)}


def bad_labels(templates: Mapping[str, str], paas: Paas) -> dict[str, str]:
    """The labels whose value no label can have, for the report."""
    found = _rendered(templates, paas)
    return {key: value for key, value in found.items() if not is_label_value(value)}


def _rendered(templates: Mapping[str, str], paas: Paas) -> dict[str, str]:
    """The values by key; without keys that no label has and texts with unknown placeholders, which are told on the PaasConfig."""
    found = {key: rendered(text, paas) for key, text in templates.items() if is_label_key(key)}
    return {key: value for key, value in found.items() if value is not None}


def _finalizer(seen: Seen, paas: Paas) -> Stage:
    """Ours, before the first write for the Paas (3.2)."""
    writes = paas.groups or seen.bindings or unwanted_groups(seen) or plan_policy(seen, paas)
    if RIGHTS_FINALIZER in finalizers_of(paas.live) or not writes:
        return []
    body = object_of(PAAS, {"name": paas.name, "finalizers": [RIGHTS_FINALIZER]})
    return [Apply(PAAS, body, paas.live, manager=MANAGER)]


def _leaving(seen: Seen, paas: Paas) -> Plan:
    """Bindings, then Groups and the policy of Argo CD; and when reads show that nothing is left, the finalizer (2.11, p-173)."""
    if seen.part:
        return NOTHING  # the whole decides
    groups = [each for each in seen.groups.values() if each is not None and is_ours(each, paas.name, paas.uid)]
    policy = [write for write in plan_policy(seen, paas) if write.change(MANAGER) is not None]
    if not seen.bindings and not groups and not policy and not seen.orphans:
        return Plan(((RemoveFinalizers(PAAS, paas.live, (RIGHTS_FINALIZER,)),),))
    bindings = [*seen.bindings, *(each for each in seen.orphans if each["kind"] == ROLE_BINDING.kind)]
    groups += [each for each in seen.orphans if each["kind"] == GROUP.kind]
    last: list[Write | Plan] = [*(Delete(GROUP, each) for each in groups if not is_terminating(each)), *policy]
    return Plan(tuple(_stages([Delete(ROLE_BINDING, each) for each in bindings if not is_terminating(each)], last)))


def _orphaned(seen: Seen, kind: str) -> Stage:
    found = [each for each in seen.orphans if each["kind"] == kind and not is_terminating(each)]
    return [Delete(ROLE_BINDING if kind == ROLE_BINDING.kind else GROUP, each) for each in found]


def _stages(*stages: Collection[Write | Plan]) -> list[tuple[Write | Plan, ...]]:
    return [tuple(stage) for stage in stages if stage]


def _told(plan: Plan, regarding: Object | None) -> Plan:
    """The plan with one Event that sums it up, on the first write that is needed."""
    due = [write for write in plan.writes() if not isinstance(write, RemoveFinalizers) and write.change(MANAGER) is not None]
    due = [write for write in due if write.key.kind != PAAS.kind]
    if not due or regarding is None:
        return plan
    done = Counter("removed" if isinstance(write, Delete) else "made" if write.live is None else "put right" for write in due)
    counts = ", ".join(f"{done[verb]} {verb}" for verb in ("made", "put right", "removed") if done[verb])
    named = ", ".join(str(write.key) for write in due[:5]) + (" and more" if len(due) > 5 else "")
    event = KubernetesEvent(regarding, "RightsChanged", f"{counts}: {named}", "Bind")
    first = due[0]

    def with_event(within: Plan) -> Plan:
        return Plan(
            tuple(
                tuple(
                    with_event(item) if isinstance(item, Plan) else replace(item, event=event) if item is first else item
                    for item in stage
                )
                for stage in within.stages
            )
        )

    return with_event(plan)
