"""What the workloads of service accounts' permissions share."""

from __future__ import annotations

from collections.abc import Mapping

from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    EVENT,
    NAMESPACE,
    Object,
    annotations_of,
    finalizers_of,
    is_terminating,
    object_of,
)
from tenantry.model.paas.names import PAAS, PAAS_UID, SHARED, SUBJECTS_FINALIZER
from tenantry.testing.workload import Step, Workload, apply, together
from tenantry.testing.world import Moment

from ._paas import P, Spec, X, configure, enabled, home, of_paas, only_what_is_proven_goes, paas, present, worlds

LABEL, RBAC = "tenantry.dev/paas-permissions", "rbac.authorization.k8s.io"
Subject = tuple[str, str]


def grants(owner: Object, config: Spec) -> set[tuple[str, Subject]]:
    """ClusterRoles and service accounts that a Paas gives them."""
    found = set()
    for name, asked in enabled(owner).items():
        known = (config.get("capabilities") or {}).get(name) or {}
        for part in ("default_permissions", *(["extra_permissions"] if asked.get("extra_permissions") else ())):
            for account, roles in (known.get(part) or {}).items():
                found |= {(f"paas-{role}", (f"{owner['metadata']['name']}-{name}", account)) for role in roles}
    return found


def subjects(binding: Object | None) -> set[Subject]:
    """The service accounts that a binding of ours names."""
    if binding is None or SHARED not in annotations_of(binding):
        return set()
    return {(each["namespace"], each["name"]) for each in binding.get("subjects") or ()}


def gives_what_is_declared(moment: Moment) -> str:
    """No subject that no declaration gives, or gave a moment ago, or whose namespace is not that Paas'."""
    key = moment.change.key
    if not moment.by or key.kind != CLUSTER_ROLE_BINDING.kind:
        return ""
    extra = subjects(moment.change.after) - subjects(moment.change.before)
    for owners, config, _ in worlds(moment) if extra else ():
        for owner in owners.values():
            given = {subject for name, subject in grants(owner, config) if name == key.name}
            extra -= {each for each in given if _is_of(owner, moment.declared(NAMESPACE.kind, each[0]))}
    return f"gave {sorted(extra)}" if extra else ""


def _is_of(owner: Object, spaces: list[Object]) -> bool:
    return any(annotations_of(each).get(PAAS_UID) == owner["metadata"]["uid"] and not is_terminating(each) for each in spaces)


def no_free_name(moment: Moment) -> str:
    """A namespace's name is not free while a binding of ours names an account in it; and nobody is named there before."""
    key, after = moment.change.key, moment.change.after
    if key.kind == NAMESPACE.kind and after is None:
        named = [str(k) for k, each in moment.objects.items() if any(place == key.name for place, _ in subjects(each))]
        return f"the name is free, and a right points into it: {named}" if named else ""
    if moment.by and key.kind == CLUSTER_ROLE_BINDING.kind:
        spaces = {k.name: each for k, each in moment.objects.items() if k.kind == NAMESPACE.kind}
        new = {place for place, _ in subjects(after) - subjects(moment.change.before)}
        free = [place for place in new if place not in spaces or SUBJECTS_FINALIZER not in finalizers_of(spaces[place])]
        return f"a right points into {free}, which nobody holds" if free else ""
    return ""


def keeps_what_is_declared(moment: Moment) -> str:
    """Who goes on being declared stands in the list at every moment, also while his Paas' namesake goes (p-35)."""
    key = moment.change.key
    if not moment.by or key.kind != CLUSTER_ROLE_BINDING.kind:
        return ""
    lost = subjects(moment.change.before) - subjects(moment.change.after)
    for owners, config, _ in worlds(moment) if lost else ():
        given = {subject for owner in owners.values() for name, subject in grants(owner, config) if name == key.name}
        lost &= {each for each in given if _stays(moment, owners, each[0])}
    return f"took {sorted(lost)}" if lost else ""


def _stays(moment: Moment, owners: Mapping[str, Object], name: str) -> bool:
    found = moment.declared(NAMESPACE.kind, name)
    there = name in {key.name for key in moment.objects if key.kind == NAMESPACE.kind}
    return there and bool(found) and all(any(_is_of(owner, [each]) for owner in owners.values()) for each in found)


def holds_what_is_declared(objects: list[Object]) -> str:
    """In the end exactly the declared accounts are bound."""
    owners, config, _ = present(objects)
    spaces = [each for each in objects if each["kind"] == NAMESPACE.kind]
    held = {
        (owner["metadata"]["uid"], each["metadata"]["name"])
        for owner in owners.values()
        for each in spaces
        if _is_of(owner, [each])
    }
    wanted = {
        (name, subject)
        for owner in owners.values()
        for name, subject in grants(owner, config)
        if (owner["metadata"]["uid"], subject[0]) in held
    }
    there = {
        (each["metadata"]["name"], one) for each in objects if each["kind"] == CLUSTER_ROLE_BINDING.kind for one in subjects(each)
    }
    return "" if wanted == there else f"missing {sorted(wanted - there)}, too much {sorted(there - wanted)}"


ON, OFF, MORE = ({"enabled": True}, {"enabled": False}, {"enabled": True, "extra_permissions": True})
FIRST = {"default_permissions": {"sa": ["d-@"]}, "extra_permissions": {"sa": ["x-@"]}}
CONFIGURED = configure(capabilities={"c-@": FIRST, "k-@": {"default_permissions": {"sa": ["d-@"]}}})


def one(c: Spec = ON, k: Spec = OFF) -> Step:
    """The first Paas, with capabilities."""
    return paas(P, capabilities={"c-@": c, "k-@": k})


TWO = paas(X, capabilities={"c-@": ON})
HOMES = together(home("p-@-c-@", P), home("p-@-k-@", P), home("p-@-x-c-@", X))
FOREIGN = apply(
    "ClusterRoleBinding",
    "theirs-@",
    labels={LABEL: "cluster"},
    roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
    subjects=[{"kind": "ServiceAccount", "name": "sa", "namespace": "p-@-c-@"}],
)
READY = [together(CONFIGURED, FOREIGN), together(one(), TWO), HOMES]
BASE = {"capabilities": {"probe": {"default_permissions": {"probe": ["probe"]}}}}
PROBE = object_of(
    CLUSTER_ROLE_BINDING,
    {"name": "paas-probe", "labels": {LABEL: "cluster"}, "annotations": {SHARED: "permissions"}},
    roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": "probe"},
    subjects=[],
)


def permissions_of_paas() -> Workload:
    """A workload of scope-binding for Paas, without scenarios."""
    made = of_paas(
        "scope-binding",
        "scope-binding-paas",
        BASE,
        safe=[gives_what_is_declared, no_free_name, keeps_what_is_declared, only_what_is_proven_goes],
        ends=[holds_what_is_declared],
        destroys=takes_subjects,
        can=[PROBE],
        watched=(NAMESPACE, PAAS, CLUSTER_ROLE_BINDING, EVENT),
    )
    made.handover = [SHARED]
    return made


def takes_subjects(body: Object) -> bool:
    """A binding that is written may have lost somebody."""
    return bool(body.get("kind") == CLUSTER_ROLE_BINDING.kind)
