"""Whose rights are projected: the ServiceAccounts of the scoped pods, and the Roles that they have at home (3.3).

Pod templates count like pods, so that an account keeps its rights while its only pod is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.seen import Seen
from tenantry.model.kinds import CLUSTER_ROLE, ROLE, Object, labels_of


@dataclass(frozen=True, slots=True)
class Source:
    """A role that an account has in its own namespace; ``rules`` None: there is no such role."""

    name: str
    rules: tuple[Object, ...] | None


def has_labels(obj: Object, wanted: Mapping[str, str]) -> bool:
    """Whether a pod or a pod template has all these labels."""
    found = labels_of(obj)
    return all(found.get(key) == value for key, value in wanted.items())


def template_of(workload: Object) -> Object:
    """The pod template of a workload."""
    template: Object = (workload.get("spec") or {}).get("template") or {}
    return template


def accounts_of(scope: Scope, seen: Seen) -> tuple[str, ...]:
    """The names of the ServiceAccounts of a NamespaceScope, sorted."""
    pods = [*seen.pods, *(template_of(workload) for workload in seen.workloads)]
    running = {
        (pod.get("spec") or {}).get("serviceAccountName") or "default" for pod in pods if has_labels(pod, scope.restart_labels)
    }
    return tuple(sorted(running | (set(scope.accounts) & seen.accounts)))


def bound_roles(account: str, bindings: tuple[Object, ...], namespace: str) -> set[tuple[str, str]]:
    """(kind, name) of the roles that bindings in its namespace give an account by name (N-6)."""
    return {
        (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for binding in bindings
        for subject in binding.get("subjects") or ()
        if subject.get("kind") == "ServiceAccount"
        and subject.get("name") == account
        and (subject.get("namespace") or namespace) == namespace
    }


def sources_of(account: str, seen: Seen) -> tuple[Source, ...]:
    """The roles of an account, by name; a Role and a ClusterRole of one name count as one."""
    found: dict[str, list[Object] | None] = {}
    for kind, name in sorted(bound_roles(account, seen.source_bindings, seen.name)):
        role = {ROLE.kind: seen.source_roles, CLUSTER_ROLE.kind: seen.cluster_roles}.get(kind, {}).get(name)
        rules = None if role is None else list(role.get("rules") or ())
        before = found.get(name)
        found[name] = rules if before is None else before + (rules or [])
    return tuple(Source(name, None if rules is None else tuple(rules)) for name, rules in sorted(found.items()))
