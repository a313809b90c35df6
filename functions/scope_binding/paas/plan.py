"""Plans for the permissions of service accounts: the bindings of a ClusterRole, and the finalizers that keep their order.

Sources of the rules: 2.7 (what is given, and that no name is free while a right points into it), 2.12 (what is ours), 2.17 and
3.2 (what comes first), p-157 (a change of ``permissionScope``).

No write waits for another of the same run: a subject is added when the finalizers that it needs were seen, and one that moves
between the cluster and its namespace leaves when it was seen where it goes.  So what is refused for one stops no other, and never
a withdrawal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from scope_binding.paas.seen import (
    MANAGER,
    GrantsSeen,
    NamespaceSeen,
    RoleSeen,
    Subject,
    gives_nothing,
    granted,
    grants_of,
    in_cluster,
    is_local,
    is_prepared,
    is_shared,
    leads_to,
    local_binding,
    shared_binding,
    subjects_of,
)
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE_BINDING,
    Object,
    finalizers_of,
    is_terminating,
    key_of,
    object_of,
)
from tenantry.model.paas.declared import Paas
from tenantry.model.paas.names import ACCOUNTS_FINALIZER, PAAS, SUBJECTS_FINALIZER
from tenantry.model.paas.places import held_by
from tenantry.model.plan import NOTHING, Apply, Delete, KubernetesEvent, Plan, RemoveFinalizers, Write, plan_of

# -- a ClusterRole -----------------------------------------------------------------------------------------


def plan_role(seen: RoleSeen) -> Plan:
    """The ClusterRoleBinding that all Paas share, and where permissions hold in namespaces the RoleBindings there."""
    wanted = granted(seen)
    return plan_of(*_shared(seen, wanted), *_local(seen, wanted))


def bound_in_cluster(seen: RoleSeen, wanted: Mapping[Subject, Paas]) -> frozenset[Subject]:
    """Who is to stand in the ClusterRoleBinding."""
    there = subjects_of(seen.binding)
    if seen.config is None:
        return there & wanted.keys()
    if in_cluster(seen.config):
        found = ((each, seen.namespaces.get(each.namespace)) for each in wanted)
        return frozenset(each for each, namespace in found if each in there or is_prepared(wanted[each], namespace))
    return frozenset(each for each in there & wanted.keys() if _waits(seen, each, wanted[each]))


def struck(seen: RoleSeen) -> frozenset[Subject]:
    """Who leaves the ClusterRoleBinding."""
    return subjects_of(seen.binding) - bound_in_cluster(seen, granted(seen)) if is_shared(seen.binding) else frozenset()


def doubtful(seen: RoleSeen, plan: Plan) -> frozenset[Hashable]:
    """What a second look has to agree on: besides what the plan deletes also who leaves a list of subjects."""
    return frozenset[Hashable]({*plan.taken_away(), *struck(seen)})


def local_bindings(seen: RoleSeen) -> dict[str, Object]:
    """The RoleBindings with the role's name, by namespace, whosever they are."""
    return {each["metadata"]["namespace"]: each for each in seen.local or ()}


def _waits(seen: RoleSeen, subject: Subject, paas: Paas) -> bool:
    """Whether a subject stays in the cluster's binding until that of its namespace stands; not where that cannot be made."""
    live = local_bindings(seen).get(subject.namespace)
    if live is None:
        return subject.namespace not in seen.refusing
    return is_local(live, seen.role, paas.uid) and subject not in subjects_of(live)


def _shared(seen: RoleSeen, wanted: Mapping[Subject, Paas]) -> Iterator[Write]:
    live = seen.binding
    if is_terminating(live) or (live is not None and not is_shared(live)):
        return  # told on each Paas
    subjects, before = bound_in_cluster(seen, wanted), subjects_of(live)
    body = shared_binding(seen.role, subjects)
    note = f"{len(subjects - before)} ServiceAccounts added, {len(before - subjects)} removed"
    event = KubernetesEvent(live or body, "PermissionsChanged", f"{key_of(body)}: {note}", "Bind")
    if live is not None and (not subjects or not leads_to(live, seen.role)):
        yield Delete(CLUSTER_ROLE_BINDING, live, event)  # one with another roleRef is made anew by the next run
    elif subjects:
        if live is not None:
            # Lists of subjects are replaced whole: what another process wrote since we looked must not be lost.
            body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        yield Apply(CLUSTER_ROLE_BINDING, body, live, create_only=True, event=event, manager=MANAGER, adopts=True)


def _local(seen: RoleSeen, wanted: Mapping[Subject, Paas]) -> Iterator[Write]:
    if seen.local is None:
        return
    given: dict[str, tuple[Paas, set[Subject]]] = {}
    for subject, paas in wanted.items():
        given.setdefault(subject.namespace, (paas, set()))[1].add(subject)
    there = local_bindings(seen)
    for namespace, live in there.items():
        if not is_local(live, seen.role):
            continue
        stays = namespace in given and is_local(live, seen.role, given[namespace][0].uid) and leads_to(live, seen.role)
        if stays and seen.config is not None and in_cluster(seen.config):
            stays = not (is_shared(seen.binding) and given[namespace][1] <= subjects_of(seen.binding))
        if not stays:
            yield Delete(ROLE_BINDING, live)
    if seen.config is None or in_cluster(seen.config):
        return
    for namespace, (paas, subjects) in given.items():
        found = there.get(namespace)
        if found is None or (is_local(found, seen.role, paas.uid) and leads_to(found, seen.role)):
            body = local_binding(seen.role, namespace, subjects, paas, seen.config)
            event = KubernetesEvent(found or body, "PermissionsChanged", f"{len(subjects)} ServiceAccounts are bound", "Bind")
            yield Apply(ROLE_BINDING, body, found, create_only=True, event=event, manager=MANAGER, adopts=True)


# -- a Paas ------------------------------------------------------------------------------------------------


def plan_paas(seen: GrantsSeen) -> Plan:
    """Our finalizer on a Paas whose service accounts get something, then the one on their namespaces; off when nothing stands."""
    paas = seen.paas
    if paas is None:
        return NOTHING
    if gives_nothing(paas, seen.config):
        if seen.left or seen.named or ACCOUNTS_FINALIZER not in finalizers_of(paas.live):
            return plan_of(*(Delete(ROLE_BINDING, each) for each in seen.left))
        return plan_of(RemoveFinalizers(PAAS, paas.live, (ACCOUNTS_FINALIZER,)))
    grants = grants_of(paas, seen.config)
    if not grants:  # without a configuration nothing changes
        return NOTHING
    first = Apply(PAAS, object_of(PAAS, {"name": paas.name, "finalizers": [ACCOUNTS_FINALIZER]}), paas.live, manager=MANAGER)
    then = [_held(seen.namespaces[name]) for name in sorted({grant.subject.namespace for grant in grants}) if _takes(seen, name)]
    return Plan(((first,), tuple(then)))


def _takes(seen: GrantsSeen, name: str) -> bool:
    """Whether a namespace gets the finalizer: its own name must not be free while the cluster's binding names it."""
    return seen.paas is not None and in_cluster(seen.config) and held_by(seen.paas, seen.namespaces.get(name))


def _held(namespace: Object | None) -> Apply:
    assert namespace is not None
    name = namespace["metadata"]["name"]
    wanted = object_of(NAMESPACE, {"name": name, "finalizers": [SUBJECTS_FINALIZER]})
    return Apply(NAMESPACE, wanted, namespace, manager=MANAGER)


# -- a namespace -------------------------------------------------------------------------------------------


def is_let_go(seen: NamespaceSeen) -> bool:
    """Whether the finalizer goes off a namespace: no binding of ours names it, and it goes, or has no permissions."""
    namespace = seen.namespace
    if namespace is None or seen.named or SUBJECTS_FINALIZER not in finalizers_of(namespace):
        return False
    return is_terminating(namespace) or not seen.wanted


def plan_namespace(seen: NamespaceSeen) -> Plan:
    """The finalizer goes off a namespace that is let go."""
    if seen.namespace is None or not is_let_go(seen):
        return NOTHING
    return plan_of(RemoveFinalizers(NAMESPACE, seen.namespace, (SUBJECTS_FINALIZER,)))
