"""Whose rights are projected: the ServiceAccounts of the scoped pods, and the roles that they have at home (3.3).

Pod templates count like pods, so that an account keeps its rights while its only pod is replaced.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.kept import TOO_LARGE, account_of
from scope_binding.namespace_scopes.seen import ObservedHome, SourceRole
from tenantry.model import limits
from tenantry.model.kinds import CLUSTER_ROLE, ROLE, Object, labels_of


def has_labels(obj: Object, wanted: Mapping[str, str]) -> bool:
    """Whether a pod or a pod template has all these labels."""
    found = labels_of(obj)
    return all(found.get(key) == value for key, value in wanted.items())


def template_of(workload: Object) -> Object:
    """The pod template of a workload."""
    template: Object = (workload.get("spec") or {}).get("template") or {}
    return template


def accounts_of(scope: Scope, seen: ObservedHome) -> tuple[str, ...]:
    """The names of the ServiceAccounts of a NamespaceScope, sorted."""
    pods = [*seen.pods, *(template_of(workload) for workload in seen.workloads)]
    running = {
        (pod.get("spec") or {}).get("serviceAccountName") or "default" for pod in pods if has_labels(pod, scope.restart_labels)
    }
    return tuple(sorted(running | (set(scope.accounts) & seen.accounts))[: limits.ACCOUNTS_OF_HOME])


def following_accounts(seen: ObservedHome) -> list[str]:
    """The accounts whose roles at home count: they are copied, or say what rights made by hand should be."""
    return sorted({account for scope in seen.live if scope.follows_roles for account in accounts_of(scope, seen)})


def bound_roles(accounts: Iterable[str], bindings: Iterable[Object], namespace: str) -> dict[str, set[tuple[str, str]]]:
    """(kind, name) of the roles that bindings in its namespace give each account by name (N-6)."""
    found: dict[str, set[tuple[str, str]]] = {account: set() for account in accounts}
    for binding in bindings:
        for subject in binding.get("subjects") or ():
            home, account = account_of(subject, namespace) or ("", "")
            if home == namespace and account in found:
                found[account].add((binding["roleRef"]["kind"], binding["roleRef"]["name"]))
    return found


def chosen(bound: Mapping[str, set[tuple[str, str]]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The names of the roles of each account that are copied, and of those that are too many."""
    pairs = sorted({(account, name) for account, roles in bound.items() for _, name in roles})
    found: tuple[dict[str, list[str]], dict[str, list[str]]] = {}, {}
    for number, (account, name) in enumerate(pairs):
        found[number >= limits.COPIED_ROLES_OF_HOME].setdefault(account, []).append(name)
    return found


def sources_of(
    names: Iterable[str], bound: Container[tuple[str, str]], roles: Mapping[tuple[str, str], Object]
) -> tuple[SourceRole, ...]:
    """An account's roles of these names: of the Role and the ClusterRole of a name, those that it is bound to."""
    found: list[SourceRole] = []
    for name in names:
        keys = [(kind, name) for kind in (CLUSTER_ROLE.kind, ROLE.kind) if (kind, name) in bound]
        there = [roles[key] for key in keys if key in roles]
        rules = tuple(rule for role in there for rule in role.get("rules") or ())
        excess = next((role[TOO_LARGE] for role in there if TOO_LARGE in role), "")
        found.append(SourceRole(name, rules if there else None, excess))
    return tuple(found)
