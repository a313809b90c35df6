"""What scope-binding wants for scopes: pure functions from what was observed to writes.

The order of a change is: ClusterRoles (a run of the template), new bindings, old bindings, old ClusterRoles
(another run of the template), so that nobody loses a right that he keeps (O-7, sb-9).  A binding that is
no longer wanted waits for those that take its place only where such are to come; one in a namespace that
left the scope goes at once.  Nothing is bound to a ClusterRole that is not the template's, as it wants it
(O-10).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from scope_binding.scopes.declared import Reach, Role, reach_of, roles_of, subject_problem
from scope_binding.scopes.names import (
    GENERATE_NAME,
    INSTANCE_HASH,
    INSTANCE_UID,
    MANAGER,
    TEMPLATE_UID,
    Family,
    as_label,
    binding_name,
    is_of,
    owner_reference,
    short_digest,
)
from scope_binding.scopes.seen import (
    InstanceSeen,
    TemplateSeen,
    alive,
    is_as_wanted,
    is_pending,
    is_predecessor,
    role_problem,
    unbound_namespaces,
    wanted_cluster_role,
)
from tenantry.model.difference import difference
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING, Kind, Object, is_terminating
from tenantry.model.plan import NOTHING, Apply, Delete, Notice, Plan, Write


def plan_template(seen: TemplateSeen) -> Plan:
    """The ClusterRoles of a template that an instance names; none of one that no instance names (O-6)."""
    template = alive(seen.template)
    if template is None:
        return _summed(seen.template, [Delete(CLUSTER_ROLE, role) for role in seen.left], [])
    made: list[Write] = []
    gone: list[Write] = [Delete(CLUSTER_ROLE, role) for role in seen.left if role["metadata"]["name"] not in seen.bound]
    for role in roles_of(template):
        live = seen.found.get(role.name)
        if role_problem(role, template, live) or (live is not None and is_terminating(live)):
            continue
        if live is not None and (is_predecessor(live, template) or live.get("aggregationRule")):
            made.append(Delete(CLUSTER_ROLE, live))  # the next look makes it anew
        elif seen.referenced:
            wanted = wanted_cluster_role(seen.family, role, template, live)
            made.append(Apply(CLUSTER_ROLE, wanted, live, create_only=True))
        elif live is not None and role.name not in seen.bound:
            gone.append(Delete(CLUSTER_ROLE, live))
    return _summed(template, made, gone)


# -- instances ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A binding to be: of which role, where (empty: the whole cluster), and all its fields."""

    role: Role
    namespace: str
    body: Object


def plan_instance(seen: InstanceSeen) -> Plan:
    """The bindings of an instance, new ones before old ones."""
    instance = alive(seen.instance)
    template = alive(seen.template)
    if instance is None or template is None:
        return _summed(instance, [Delete(_kind_of(binding), binding) for binding in _deletable(seen.bindings)], [])
    reach = reach_of(instance)
    if reach.problem:
        return NOTHING  # what is bound stays bound until it is clear what is meant
    if seen.part and reach.cluster:
        return NOTHING  # the whole of the instance decides
    by_name = {_place(binding): binding for binding in seen.bindings}
    served = servable_roles(template, seen.cluster_roles, cluster=reach.cluster)
    wanted = {(each.namespace, each.body["metadata"]["name"]): each for each in _wanted(seen, instance, template, served)}
    made: list[Write] = []
    standing: dict[str, list[bool]] = {}
    for place, each in wanted.items():
        live = by_name.get(place)
        write, stands = _bind(each, live)
        made += write
        standing.setdefault(each.namespace, []).append(stands)
    late: list[Write] = []
    for binding in _deletable(seen.bindings):
        if _place(binding) in wanted or _is_kept(binding, seen, template, reach, served):
            continue
        waits = _waits(binding, seen, reach, standing)
        (late if waits else made).append(Delete(_kind_of(binding), binding))
    return _summed(instance, made, late)


def _deletable(bindings: Iterable[Object]) -> Iterator[Object]:
    return (binding for binding in bindings if not is_terminating(binding))


def servable_roles(template: Object, live: Mapping[str, Object | None], *, cluster: bool) -> tuple[Role, ...]:
    """The roles that can be bound: their ClusterRole is the template's and as it wants it, their subjects are sound."""
    return tuple(
        role
        for role in roles_of(template)
        if not role.problem and not subject_problem(role, cluster=cluster) and is_as_wanted(role, template, live.get(role.name))
    )


def refusable(seen: InstanceSeen) -> list[Object]:
    """The bindings to be asked for beforehand: those of namespaces that refused them, while something wider waits for them."""
    instance, template = alive(seen.instance), alive(seen.template)
    if instance is None or template is None or not any(binding["kind"] == CLUSTER_ROLE_BINDING.kind for binding in seen.bindings):
        return []
    reach = reach_of(instance)
    if reach.cluster or reach.problem:
        return []
    there = {_place(binding) for binding in seen.bindings}
    served = servable_roles(template, seen.cluster_roles, cluster=False)
    wanted = (each.body for each in _wanted(seen, instance, template, served) if each.namespace in unbound_namespaces(instance))
    return [body for body in wanted if _place(body) not in there]


def _wanted(seen: InstanceSeen, instance: Object, template: Object, served: Iterable[Role]) -> Iterator[_Wanted]:
    places = [""] if reach_of(instance).cluster else sorted(seen.namespaces)
    for role in served:
        for namespace in places:
            yield _Wanted(role, namespace, wanted_binding(seen.family, role, namespace, instance, template))


def wanted_binding(family: Family, role: Role, namespace: str, instance: Object, template: Object) -> Object:
    """The binding of a role in a namespace, or in the whole cluster: all fields of ours."""
    kind = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
    uid = instance["metadata"]["uid"]
    metadata: Object = {
        "name": binding_name(uid, role.generate_name, namespace),
        "labels": {
            INSTANCE_UID: uid,
            INSTANCE_HASH: short_digest(role.name, role.subjects),
            GENERATE_NAME: as_label(role.generate_name),
            family.instance_label: as_label(instance["metadata"]["name"]),
            family.template_label: as_label(template["metadata"]["name"]),
        },
        "ownerReferences": [owner_reference(instance)],
    }
    if namespace:
        metadata["namespace"] = namespace
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": role.name},
        "subjects": list(role.subjects),
    }


def _bind(wanted: _Wanted, live: Object | None) -> tuple[list[Write], bool]:
    """The write that makes a binding as wanted, and whether it stands already, giving the right."""
    kind = _kind_of(wanted.body)
    if live is None:
        return [Apply(kind, wanted.body, None, create_only=True)], False
    if is_terminating(live):
        return [], False
    if live["roleRef"] != wanted.body["roleRef"]:
        return [Delete(kind, live)], False  # immutable: the next look makes it anew
    return [Apply(kind, wanted.body, live)], list(live.get("subjects") or []) == wanted.body["subjects"]


def _is_kept(binding: Object, seen: InstanceSeen, template: Object, reach: Reach, served: Sequence[Role]) -> bool:
    """Whether a binding that is not wanted as it is stays all the same.

    In a namespace that goes away nothing is done.  While a role of the template cannot be served, what is
    bound where the instance means it stays (O-5): a mistake in a template takes nobody's rights.  What leads
    to a ClusterRole that is somebody else's goes (O-10), and so does what reaches further than declared.
    """
    namespace, role = binding["metadata"].get("namespace", ""), binding["roleRef"].get("name", "")
    if namespace in seen.terminating or namespace in seen.missing:
        return True  # the namespace takes it along; or it is there, and was read too early
    roles = roles_of(template)
    if not namespace and not reach.cluster and is_pending(seen, template):
        return True  # what takes its place can be made as soon as the run of the template is done
    if len(served) == len(roles) or role in {each.name for each in served}:
        return False
    live = seen.cluster_roles.get(role)
    if live is not None and not is_of(live, template, TEMPLATE_UID):
        return False
    return reach.cluster or namespace in seen.namespaces


def _waits(binding: Object, seen: InstanceSeen, reach: Reach, standing: Mapping[str, Sequence[bool]]) -> bool:
    """Whether what takes a binding's place does not stand yet.

    For something in the whole cluster a namespace that refuses its bindings is not waited for: that would leave rights
    where nobody declares them.  In a namespace the old one stays until the new one stands.
    """
    namespace = binding["metadata"].get("namespace", "")
    if reach.cluster:
        return not all(standing.get("", [False]))
    if namespace:
        return namespace in seen.namespaces and not all(standing.get(namespace, []))
    return not all(all(stands) for place, stands in standing.items() if place not in seen.refusing)


def _place(binding: Object) -> tuple[str, str]:
    return binding["metadata"].get("namespace", ""), binding["metadata"]["name"]


def _kind_of(binding: Object) -> Kind:
    return ROLE_BINDING if binding["kind"] == ROLE_BINDING.kind else CLUSTER_ROLE_BINDING


def _summed(regarding: Object | None, first: Sequence[Write], then: Sequence[Write]) -> Plan:
    """Two stages with only what has to be written, and one Event that sums it up, on the first write."""
    stages = [[write for write in stage if _is_due(write)] for stage in (first, then)]
    due = [write for stage in stages for write in stage]
    if not due:
        return NOTHING
    notice = _notice(regarding, due)
    for stage in stages:
        if stage:
            stage[0] = _with_notice(stage[0], notice)
            break
    return Plan(tuple(tuple(stage) for stage in stages))


def _is_due(write: Write) -> bool:
    return not isinstance(write, Apply) or difference(write.wanted, write.live, manager=MANAGER) is not None


def _with_notice(write: Write, notice: Notice) -> Write:
    return replace(write, notice=notice) if isinstance(write, Apply | Delete) else write


def _notice(regarding: Object | None, due: Sequence[Write]) -> Notice:
    made = [write for write in due if isinstance(write, Apply) and write.live is None]
    corrected = [write for write in due if isinstance(write, Apply) and write.live is not None]
    removed = [write for write in due if isinstance(write, Delete)]
    parts = [f"{len(found)} {verb}" for found, verb in ((made, "made"), (corrected, "put right"), (removed, "removed")) if found]
    named = ", ".join(str(write.key) for write in due[:5]) + (" and more" if len(due) > 5 else "")
    what = "ClusterRoles" if due[0].kind is CLUSTER_ROLE else "bindings"
    target = regarding or (due[0].live if isinstance(due[0], Delete) else None) or {}
    return Notice(target, f"{what[0].upper()}{what[1:]}Changed", f"{what}: {', '.join(parts)}: {named}", "Scope")
