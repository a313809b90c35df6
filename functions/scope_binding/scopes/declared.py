"""What templates and instances declare, read from their specs: roles, subjects, namespaces; and what is wrong in them.

The schema refuses most mistakes when they are made.  What was stored without it, and what a schema cannot
express, is found here and becomes a status condition: nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from scope_binding.scopes.names import cluster_role_name
from tenantry.model.identifiers import is_dns_subdomain
from tenantry.model.kinds import Object
from tenantry.model.selectors import BadSelector, LabelSelector, parse_labels, parse_selector

GENERATE_NAME_FORM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
RESERVED = frozenset({"cluster-admin", "admin", "edit", "view"})
"""ClusterRoles that Kubernetes brings or that people expect to be its own: never a template's."""

_RBAC = "rbac.authorization.k8s.io"
_RULE_FIELDS = ("apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs")


@dataclass(frozen=True, slots=True)
class Role:
    """One role of a template; ``name`` is its ClusterRole's, ``problem`` why it cannot be served, with the fix."""

    generate_name: str
    name: str
    rules: tuple[Object, ...]
    subjects: tuple[Object, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where an instance wants its roles: the whole cluster, or listed and selected namespaces."""

    cluster: bool
    listed: frozenset[str] = frozenset()
    selector: LabelSelector | None = None
    problem: str = ""

    def covers(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels is meant."""
        return name in self.listed or (self.selector is not None and self.selector.matches(labels))


def roles_of(template: Object) -> tuple[Role, ...]:
    """The roles of a template, in its order."""
    spec = template.get("spec") or {}
    shared = ((spec.get("bindingTemplate") or {}).get("subjects")) or []
    uid = template["metadata"]["uid"]
    found: list[Role] = []
    for entry in spec.get("clusterRoles") or []:
        written = str(entry.get("generateName") or "")
        found.append(
            Role(
                written,
                cluster_role_name(written, uid) if written else "",
                tuple(_rule(rule) for rule in entry.get("rules") or []),
                tuple(_subject(subject) for subject in entry.get("subjects") or shared),
                _name_problem(written, [role.generate_name for role in found]),
            )
        )
    return tuple(found)


def _name_problem(name: str, earlier: Iterable[str]) -> str:
    if not GENERATE_NAME_FORM.fullmatch(name):
        return (
            f"generateName {name!r}: must have 1 to 63 letters, digits, dashes, dots and underscores, "
            "beginning with a letter or digit"
        )
    if name in RESERVED:
        return f"generateName {name!r}: this is the name of a ClusterRole of Kubernetes; choose another one"
    if name in earlier:
        return f"generateName {name!r}: two roles have it; give each its own"
    return ""


def _rule(written: Object) -> Object:
    """A policy rule in the form in which the API server stores it."""
    return {name: written[name] for name in _RULE_FIELDS if written.get(name) or name == "verbs"}


def _subject(written: Object) -> Object:
    """A subject in the form in which the API server stores it: its default group filled in, nothing empty."""
    stored = {name: written[name] for name in ("apiGroup", "kind", "name", "namespace") if written.get(name)}
    if stored.get("kind") in ("User", "Group"):
        stored.setdefault("apiGroup", _RBAC)
    return stored


def subject_problem(role: Role, *, cluster: bool) -> str:
    """Why no binding for these subjects would be taken, in the API server's words; empty when one would."""
    for number, subject in enumerate(role.subjects):
        where = f"{role.generate_name}: subjects[{number}]"
        kind, group = subject.get("kind"), subject.get("apiGroup", "")
        if kind not in ("User", "Group", "ServiceAccount"):
            return f'{where}.kind: Unsupported value: "{kind}": supported values: "ServiceAccount", "User", "Group"'
        if not subject.get("name"):
            return f"{where}.name: Required value"
        if kind == "ServiceAccount" and not is_dns_subdomain(subject["name"]):
            return f'{where}.name: Invalid value: "{subject["name"]}": a lowercase RFC 1123 subdomain is needed'
        if group != ("" if kind == "ServiceAccount" else _RBAC):
            return f'{where}.apiGroup: Unsupported value: "{group}"'
        if cluster and kind == "ServiceAccount" and not subject.get("namespace"):
            return f"{where}.namespace: Required value"
    return ""


def template_name_of(instance: Object) -> str:
    """The template that an instance names; empty when it names none."""
    return str((instance.get("spec") or {}).get("scopeTemplateName") or "")


def reach_of(instance: Object) -> Reach:
    """Where an instance wants its roles.

    The whole cluster only when it neither lists a namespace nor has a selector (O-4): a selector that
    matches nothing, an empty text in the list, a list of namespaces that do not exist, give nothing.
    """
    spec = instance.get("spec") or {}
    written, listed = spec.get("namespaceSelector"), spec.get("namespaces") or []
    names = frozenset(name for name in listed if isinstance(name, str) and name)
    problem = ""
    if len(names) != len(set(listed)):
        problem = "namespaces: an entry is empty; write the name of a namespace or remove it"
    for name in ("namespaces", "namespaceSelector"):
        if name in spec and spec[name] is None:
            problem = f"{name}: it is null; write what you mean, or remove the field"
    selector: LabelSelector | None = None
    if written is not None:
        try:
            selector = _selector(written)
        except BadSelector as error:
            problem = f"namespaceSelector: {error}"
    return Reach(not listed and written is None, names, selector, problem)


def changed_selector(instance: Object) -> LabelSelector | None:
    """The selector by which the bindings of an instance stand, where it now has another one.

    It is in the status.  Whoever lists namespaces in place of a selector, or asks for the whole cluster, has named what he wants.
    """
    written, reach = (instance.get("status") or {}).get("namespaceSelector"), reach_of(instance)
    if written is None or reach.selector is None or reach.problem:
        return None
    try:
        earlier = _selector(written)
    except BadSelector:
        return None
    return None if earlier == reach.selector else earlier


def _selector(written: Any) -> LabelSelector:
    """A label selector, or its short form: a map of labels to values."""
    if not isinstance(written, Mapping):
        raise BadSelector("must be a map")
    if any(isinstance(written.get(name), dict | list) for name in ("matchLabels", "matchExpressions")):
        return parse_selector(written)
    return parse_labels(written)
