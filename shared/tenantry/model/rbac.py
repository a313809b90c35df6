"""What RBAC gives, as the API server's authorizer judges it: pure functions of a question, rules and bindings.

Sources of the rules: the RBAC authorizer of Kubernetes (which bindings count, and for whom) and its helpers for rules (verbs,
groups, resources with subresources, names, URLs).  ``escalate``, ``bind`` and ``impersonate`` are verbs like others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenantry.model.kinds import Object
from tenantry.model.selectors import BadSelector, parse_selector

EVERYTHING = "*"
VERBS = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "bind",
    "escalate",
    "impersonate",
    EVERYTHING,
)
"""Those that rules mostly have."""
ACCOUNT_PREFIX = "system:serviceaccount:"
AUTHENTICATED, UNAUTHENTICATED, MASTERS = "system:authenticated", "system:unauthenticated", "system:masters"
ANONYMOUS = "system:anonymous"
ACCOUNTS_GROUP = "system:serviceaccounts"


class BoundSubject(NamedTuple):
    """A subject of a binding."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Question:
    """Whether somebody may do something.

    ``user`` is empty where a group is asked about.  ``group`` is the API group.  Without ``namespace`` all namespaces are meant,
    or something without namespace; with ``url`` a path that is no resource.
    """

    user: str
    groups: tuple[str, ...]
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    url: str = ""

    @property
    def combined(self) -> str:
        """The resource as rules name it: with its subresource."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every ServiceAccount of a namespace."""
    return ACCOUNTS_GROUP, f"{ACCOUNTS_GROUP}:{namespace}", AUTHENTICATED


def account_named(user: str) -> BoundSubject | None:
    """The ServiceAccount that a user name stands for; None for any other name."""
    namespace, _, name = user.removeprefix(ACCOUNT_PREFIX).partition(":")
    if not user.startswith(ACCOUNT_PREFIX) or not namespace or not name or ":" in name:
        return None
    return BoundSubject("ServiceAccount", name, namespace)


def binder(question: Question) -> str:
    """The option with which ``kubectl create rolebinding`` names whoever is asked about."""
    if (account := account_named(question.user)) is not None:
        return f"--serviceaccount={account.namespace}:{account.name}"
    return f"--user={question.user}" if question.user else f"--group={question.groups[0]}"


def lacks(question: Question, rule: Mapping[str, Any]) -> tuple[str, ...]:
    """Which parts of a question a rule does not cover: of verb, group, resource, name, url.  None: it allows it."""
    missing = [] if _has(rule.get("verbs"), question.verb) else ["verb"]
    if question.url:
        if not any(_covers_url(each, question.url) for each in rule.get("nonResourceURLs") or ()):
            missing.append("url")
        return tuple(missing)
    if not _has(rule.get("apiGroups"), question.group):
        missing.append("group")
    if not any(_covers_resource(each, question) for each in rule.get("resources") or ()):
        missing.append("resource")
    names = rule.get("resourceNames") or ()
    if names and question.name not in names:
        missing.append("name")
    return tuple(missing)


def allowing(question: Question, rules: Iterable[Object] | None) -> int | None:
    """The number of the first rule that allows what is asked, from 0; None where none does."""
    return next((number for number, rule in enumerate(rules or ()) if not lacks(question, rule)), None)


def allows(question: Question, role: Object | None) -> bool:
    """Whether a Role or ClusterRole allows what is asked; one that is not there allows nothing."""
    return allowing(question, (role or {}).get("rules")) is not None


def nearest(question: Question, rules: Iterable[Object] | None) -> tuple[Object, tuple[str, ...]] | None:
    """The rule that lacks the least, and what that is, of those about the resource or URL; None where there is none such."""
    judged = [(rule, lacks(question, rule)) for rule in rules or ()]
    close = [(rule, missing) for rule, missing in judged if not {"resource", "url"} & set(missing)]
    return min(close, key=lambda each: len(each[1]), default=None)


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return any(each in (EVERYTHING, wanted) for each in values or ())


def _covers_resource(written: str, question: Question) -> bool:
    if written in (EVERYTHING, question.combined):
        return True
    return bool(question.subresource) and written == f"{EVERYTHING}/{question.subresource}"


def _covers_url(written: str, url: str) -> bool:
    if written in (EVERYTHING, url):
        return True
    return written.endswith(EVERYTHING) and url.startswith(written.rstrip(EVERYTHING))


def subject_of(subject: Mapping[str, object], home: str) -> BoundSubject:
    """A subject as a binding in a namespace (empty: a ClusterRoleBinding) has it: only a ServiceAccount has a namespace."""
    kind, name = str(subject.get("kind") or ""), str(subject.get("name") or "")
    return BoundSubject(kind, name, str(subject.get("namespace") or home) if kind == "ServiceAccount" else "")


def subject_in(binding: Object, question: Question) -> BoundSubject | None:
    """The subject of a binding that whoever is asked about is, or is in; None where it names none such."""
    home = binding["metadata"].get("namespace") or ""
    for each in binding.get("subjects") or ():
        found = subject_of(each, home)
        if found.kind == "User" and question.user and found.name == question.user:
            return found
        if found.kind == "Group" and found.name in question.groups:
            return found
        if found.kind == "ServiceAccount" and found.namespace and account_named(question.user) == found:
            return found
    return None


def aggregates(role: Object, labels: Mapping[str, str]) -> bool:
    """Whether an aggregated ClusterRole takes in what a ClusterRole with these labels has."""
    for each in (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        try:
            if parse_selector(each).matches(labels):
                return True
        except BadSelector:
            continue
    return False
