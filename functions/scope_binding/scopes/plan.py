"""Plans for scopes: pure functions from what was observed to writes of ClusterRoles and bindings.

The order of a change is: ClusterRoles (a run of the template), new bindings, old bindings, old ClusterRoles (another run of the
template), so that nobody loses a right that he keeps (O-7, sb-9).  A binding that is no longer wanted waits for those that take
its place only where such are to come; one in a namespace that left the scope is deleted at once.  Nothing is bound to a
ClusterRole that is not the template's, as it wants it (O-10).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from scope_binding.objects import KINDS, binding_of
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
    is_predecessor,
    role_problem,
    template_problem,
    unbound_namespaces,
    wanted_cluster_role,
)
from scope_binding.scopes.withdrawal import SHIPPED, kept_namespaces
from tenantry.model.config import SelectorChange
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE_BINDING, Key, Object, is_terminating, key_of
from tenantry.model.plan import NOTHING, Apply, Delete, KubernetesEvent, Plan

Write = Apply | Delete


def plan_template(observed: TemplateSeen) -> Plan:
    """The ClusterRoles of a template that an instance names; none of one that no instance names (O-6)."""
    template = alive(observed.template)
    if template is None:
        return _with_event(observed.template, [Delete(CLUSTER_ROLE, role) for role in observed.left], [])
    first: list[Write] = []
    then: list[Write] = [Delete(CLUSTER_ROLE, role) for role in observed.left if role["metadata"]["name"] not in observed.bound]
    for role in roles_of(template):
        live = observed.found.get(role.name)
        if role_problem(role, template, live) or is_terminating(live):
            continue
        if live is not None and (is_predecessor(live, template) or live.get("aggregationRule")):
            first.append(Delete(CLUSTER_ROLE, live))  # the next run makes it anew
        elif observed.referenced:
            wanted = wanted_cluster_role(observed.family, role, template, live)
            first.append(Apply(CLUSTER_ROLE, wanted, live, create_only=True))
        elif live is not None and role.name not in observed.bound:
            then.append(Delete(CLUSTER_ROLE, live))
    return _with_event(template, first, then)


# -- instances ---------------------------------------------------------------------------------------------


def plan_instance(observed: InstanceSeen, limit: SelectorChange = SHIPPED) -> Plan:
    """The bindings of an instance, new ones before old ones; what a changed selector would take beyond the limit stays."""
    instance, template = alive(observed.instance), alive(observed.template)
    lasting = [binding for binding in observed.bindings if not is_terminating(binding)]
    if instance is None or template is None:
        return _with_event(instance, [Delete(KINDS[binding["kind"]], binding) for binding in lasting], [])
    reach = reach_of(instance)
    if reach.problem:
        return NOTHING  # what is bound stays bound until it is clear what is meant
    if observed.part and reach.cluster:
        return NOTHING  # the whole of the instance decides
    live = {key_of(binding): binding for binding in observed.bindings}
    served = servable_roles(template, observed.cluster_roles, cluster=reach.cluster)
    kept = kept_namespaces(observed, limit)
    meant = replace(observed, namespaces=observed.namespaces | kept)
    wanted = _wanted_bindings(meant, instance, template, served)
    wanted = {key: body for key, body in wanted.items() if key.namespace not in kept or key in live}
    first: list[Write] = []
    standing: dict[str, list[bool]] = {}
    for key, body in wanted.items():
        writes, stands = _bind(body, live.get(key))
        first += writes
        standing.setdefault(key.namespace, []).append(stands)
    then: list[Write] = []
    for binding in lasting:
        if key_of(binding) not in wanted and not _is_kept(binding, meant, template, reach, served):
            waits = _waits(binding, observed, reach, standing)
            (then if waits else first).append(Delete(KINDS[binding["kind"]], binding))
    return _with_event(instance, first, then)


def servable_roles(template: Object, live: Mapping[str, Object | None], *, cluster: bool) -> tuple[Role, ...]:
    """The roles that can be bound: their ClusterRole is the template's and as it wants it, their subjects are sound."""
    return tuple(
        role
        for role in roles_of(template)
        if not role.problem and not subject_problem(role, cluster=cluster) and is_as_wanted(role, template, live.get(role.name))
    )


def refusable(seen: InstanceSeen) -> list[Object]:
    """The bindings to try beforehand: those of namespaces that refused them, while one in the whole cluster waits for them."""
    instance, template = alive(seen.instance), alive(seen.template)
    if instance is None or template is None or not any(binding["kind"] == CLUSTER_ROLE_BINDING.kind for binding in seen.bindings):
        return []
    reach = reach_of(instance)
    if reach.cluster or reach.problem:
        return []
    there, unbound = set(map(key_of, seen.bindings)), unbound_namespaces(instance)
    served = servable_roles(template, seen.cluster_roles, cluster=False)
    wanted = _wanted_bindings(seen, instance, template, served)
    return [body for key, body in wanted.items() if key.namespace in unbound and key not in there]


def _wanted_bindings(seen: InstanceSeen, instance: Object, template: Object, served: Iterable[Role]) -> dict[Key, Object]:
    namespaces = [""] if reach_of(instance).cluster else sorted(seen.namespaces)
    bodies = (wanted_binding(seen.family, role, place, instance, template) for role in served for place in namespaces)
    return {key_of(body): body for body in bodies}


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
    return binding_of(kind, metadata, (CLUSTER_ROLE, role.name), role.subjects)


def _bind(wanted: Object, live: Object | None) -> tuple[list[Write], bool]:
    """The write that makes a binding as wanted, and whether it stands already, giving the right."""
    kind = KINDS[wanted["kind"]]
    if live is None:
        return [Apply(kind, wanted, None, create_only=True)], False
    if is_terminating(live):
        return [], False
    if live["roleRef"] != wanted["roleRef"]:
        return [Delete(kind, live)], False  # immutable: the next run makes it anew
    return [Apply(kind, wanted, live)], list(live.get("subjects") or []) == wanted["subjects"]


def _is_kept(binding: Object, seen: InstanceSeen, template: Object, reach: Reach, served: Sequence[Role]) -> bool:
    """Whether a binding that is not wanted as it is stays all the same.

    In a namespace that is being deleted nothing is done.  While a role of the template cannot be served, what is bound where the
    instance means it stays (O-5): a mistake in a template takes nobody's rights.  What leads to a ClusterRole that is somebody
    else's is deleted (O-10), and so is what reaches further than declared.
    """
    namespace, role = binding["metadata"].get("namespace", ""), binding["roleRef"].get("name", "")
    if namespace in seen.terminating or namespace in seen.missing:
        return True  # it is deleted with the namespace; or the namespace exists, and was read too early
    roles = roles_of(template)
    if not namespace and not reach.cluster and template_problem(seen, template) is None:
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


def _with_event(regarding: Object | None, first: Sequence[Write], then: Sequence[Write]) -> Plan:
    """Two stages with only what has to be written, and one Event that sums it up, on the first write.

    Without ``regarding`` all writes are deletions, and the Event is about the first object.
    """
    stages = [[write for write in stage if write.change(MANAGER) is not None] for stage in (first, then)]
    due = [*stages[0], *stages[1]]
    if not due:
        return NOTHING
    beginning = stages[0] or stages[1]
    beginning[0] = replace(beginning[0], event=_event(regarding or due[0].live or {}, due))
    return Plan(tuple(map(tuple, stages)))


def _event(regarding: Object, due: Sequence[Write]) -> KubernetesEvent:
    done = Counter("removed" if isinstance(write, Delete) else "made" if write.live is None else "put right" for write in due)
    counts = ", ".join(f"{done[verb]} {verb}" for verb in ("made", "put right", "removed") if done[verb])
    named = ", ".join(str(write.key) for write in due[:5]) + (" and more" if len(due) > 5 else "")
    roles = due[0].kind is CLUSTER_ROLE
    reason, what = ("ClusterRolesChanged", "ClusterRoles") if roles else ("BindingsChanged", "bindings")
    return KubernetesEvent(regarding, reason, f"{what}: {counts}: {named}", "Scope")
