"""Whose rights are projected: the ServiceAccounts of the scoped pods, and the Roles that they have at home (3.3).

Pod templates count like pods, so that an account keeps its rights while its only pod is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scope_binding.namespace_scopes.declared import Scope
from scope_binding.namespace_scopes.kept import TOO_LARGE
from scope_binding.namespace_scopes.seen import Seen
from tenantry.model import limits
from tenantry.model.kinds import CLUSTER_ROLE, ROLE, Object, labels_of


@dataclass(frozen=True, slots=True)
class Source:
    """A role that an account has in its own namespace; ``rules`` None: there is no such role.

    ``excess`` is the limit that its rules are over: then there are none here.
    """

    name: str
    rules: tuple[Object, ...] | None
    excess: str = ""


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
    return tuple(sorted(running | (set(scope.accounts) & seen.accounts))[: limits.ACCOUNTS_OF_HOME])


def bound_roles(accounts: Iterable[str], bindings: Iterable[Object], namespace: str) -> dict[str, set[tuple[str, str]]]:
    """(kind, name) of the roles that bindings in its namespace give each account by name (N-6)."""
    found: dict[str, set[tuple[str, str]]] = {account: set() for account in accounts}
    for binding in bindings:
        for subject in binding.get("subjects") or ():
            if (
                subject.get("kind") == "ServiceAccount"
                and subject.get("name") in found
                and (subject.get("namespace") or namespace) == namespace
            ):
                found[subject["name"]].add((binding["roleRef"]["kind"], binding["roleRef"]["name"]))
    return found


def chosen(bound: Mapping[str, set[tuple[str, str]]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The names of the roles of each account that are copied, and of those that are too many."""
    pairs = sorted({(account, name) for account, roles in bound.items() for _, name in roles})
    found: tuple[dict[str, list[str]], dict[str, list[str]]] = {}, {}
    for number, (account, name) in enumerate(pairs):
        found[number >= limits.COPIED_ROLES_OF_HOME].setdefault(account, []).append(name)
    return found


def sources(accounts: Iterable[str], seen: Seen) -> dict[str, tuple[Source, ...]]:
    """The roles of accounts that are copied, by name; a Role and a ClusterRole of one name count as one."""
    bound = bound_roles(accounts, seen.source_bindings, seen.name)
    names, _ = chosen(bound)
    return {account: tuple(_source(name, bound[account], seen) for name in names.get(account, ())) for account in bound}


def _source(name: str, bound: set[tuple[str, str]], seen: Seen) -> Source:
    rules: list[Object] | None = None
    over = ""
    for kind, roles in ((CLUSTER_ROLE.kind, seen.cluster_roles), (ROLE.kind, seen.source_roles)):
        role = roles.get(name) if (kind, name) in bound else None
        if role is not None:
            rules = [*(rules or ()), *(role.get("rules") or ())]
            over = over or role.get(TOO_LARGE, "")
    return Source(name, None if rules is None else tuple(rules), over)
