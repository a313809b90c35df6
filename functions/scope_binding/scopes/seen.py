"""What is observed of a ScopeTemplate or a ScopeInstance, and what follows from it alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scope_binding.scopes.declared import Role, roles_of
from scope_binding.scopes.names import (
    GENERATE_NAME,
    SCOPED,
    TEMPLATE_HASH,
    TEMPLATE_UID,
    TEMPLATED,
    Family,
    as_label,
    family_of,
    is_of,
    owner_reference,
    short_digest,
    was_of,
)
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CLUSTER_ROLE, Object, is_terminating, labels_of, object_of
from tenantry.model.leftovers import Leftovers


@dataclass(frozen=True, slots=True)
class TemplateSeen:
    """One template as it is.

    ``found`` are the live ClusterRoles with the names that its roles want, ``left`` all others that it or a
    template of its name made, ``bound`` the names among those to which instances still bind.
    """

    family: Family
    template: Object | None
    referenced: bool = False
    found: Mapping[str, Object | None] = field(default_factory=dict)
    left: tuple[Object, ...] = ()
    bound: frozenset[str] = frozenset()
    leftovers: Leftovers = field(default_factory=Leftovers)


@dataclass(frozen=True, slots=True)
class InstanceSeen:
    """One instance as it is, or with ``part`` its bindings in one namespace only.

    ``namespaces`` holds those that the instance means and that can take bindings, ``missing`` and
    ``terminating`` those that it lists and that cannot.  ``cluster_roles`` are live, by name.  ``refusing`` holds
    namespaces that refuse their bindings now, where something wider waits for them.  ``released`` are namespaces with
    bindings that are not meant any more because the selector was changed, and not because of their own labels.
    """

    family: Family
    instance: Object | None
    template: Object | None = None
    cluster_roles: Mapping[str, Object | None] = field(default_factory=dict)
    namespaces: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    terminating: frozenset[str] = frozenset()
    bindings: tuple[Object, ...] = ()
    part: str = ""
    refusing: frozenset[str] = frozenset()
    released: frozenset[str] = frozenset()
    leftovers: Leftovers = field(default_factory=Leftovers)


def alive(obj: Object | None) -> Object | None:
    """The object, unless its deletion was asked for."""
    return None if is_terminating(obj) else obj


def _current(declaration: Object, type_: str) -> Object:
    """The condition of a declaration where it is about the current spec, else an empty one."""
    found = find_condition(declaration, type_) or {}
    return found if found.get("observedGeneration") == declaration["metadata"].get("generation") else {}


def unbound_namespaces(instance: Object) -> frozenset[str]:
    """Namespaces in which, by the current status, the scope does not hold."""
    return frozenset(instance["status"].get("unboundNamespaces") or ()) if _current(instance, SCOPED) else frozenset()


def is_well(instance: Object) -> bool:
    """Whether all of the current spec holds, by the instance's status."""
    return _current(instance, SCOPED).get("status") == "True"


def role_problem(role: Role, template: Object, live: Object | None) -> str:
    """Why a role cannot have its ClusterRole; empty when it can (O-3, O-10)."""
    if role.problem:
        return role.problem
    if live is not None and not is_of(live, template, TEMPLATE_UID) and not is_predecessor(live, template):
        return (
            f'clusterroles.rbac.authorization.k8s.io "{role.name}" already exists and is not of this template: '
            "choose another generateName"
        )
    return ""


def is_predecessor(live: Object, template: Object) -> bool:
    """Whether a ClusterRole is of a deleted template of the same name."""
    kind = family_of(template["apiVersion"]).template
    marked = TEMPLATE_UID in labels_of(live) and not is_of(live, template, TEMPLATE_UID)
    return marked and was_of(live, kind, template["metadata"]["name"])


def wanted_cluster_role(family: Family, role: Role, template: Object, live: Object | None) -> Object:
    """The ClusterRole of a role: all fields of ours."""
    rules: list[Object] | None = list(role.rules)
    if not rules and live is not None and not live.get("rules"):
        rules = live.get("rules")  # the API server stores an empty list in either form
    labels = {
        TEMPLATE_UID: template["metadata"]["uid"],
        TEMPLATE_HASH: short_digest(role.generate_name, role.rules),
        GENERATE_NAME: as_label(role.generate_name),
        family.template_label: as_label(template["metadata"]["name"]),
    }
    metadata = {"name": role.name, "labels": labels, "ownerReferences": [owner_reference(template)]}
    return object_of(CLUSTER_ROLE, metadata, rules=rules)


def is_as_wanted(role: Role, template: Object, live: Object | None) -> bool:
    """Whether a live ClusterRole is this template's and gives exactly the role's rules."""
    if live is None or is_terminating(live) or not is_of(live, template, TEMPLATE_UID):
        return False
    return list(live.get("rules") or []) == list(role.rules) and not live.get("aggregationRule")


def template_problem(seen: InstanceSeen, template: Object) -> str | None:
    """Why the template is not served, as its status says or will say; empty when it is.

    None while the run of the template is not done: it makes what is missing, or reports why not.
    """
    live = seen.cluster_roles
    unserved = [role for role in roles_of(template) if not is_as_wanted(role, template, live.get(role.name))]
    if not unserved:
        return ""
    if own := [text for role in unserved if (text := role_problem(role, template, live.get(role.name)))]:
        return "; ".join(own)
    reported = _current(template, TEMPLATED)
    return str(reported.get("message", "")) or None if reported.get("status") == "False" else None
