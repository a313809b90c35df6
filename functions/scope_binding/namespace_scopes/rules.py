"""The algebra of RBAC rules: what two sets of rules both allow, and what one lacks of the other (3.5, N-8).

Wildcards mean what the API server takes them for: ``*`` every group, resource or verb, ``*/scale`` that subresource of
every resource, no ``resourceNames`` every name.  Of verbs only the eight of `tenantry.model.consent` count; the
verb ``*`` stands for these, so it never names ``escalate`` or ``bind``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tenantry.model.consent import VERBS
from tenantry.model.kinds import Object

GRANTING = ("escalate", "bind")
"""Verbs with which further rights can be handed out: given only where the consent names them."""

MANAGED_RULES: tuple[Object, ...] = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": list(VERBS)},
    {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": list(GRANTING)},
)
"""What the managed Role would have without any bound."""

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule about resources; no ``names`` means every name."""

    groups: Names
    resources: Names
    verbs: Names
    names: Names = frozenset()

    def as_stored(self) -> Object:
        """The rule as a ``PolicyRule``."""
        made = {"apiGroups": sorted(self.groups), "resources": sorted(self.resources), "verbs": sorted(self.verbs)}
        return {**made, "resourceNames": sorted(self.names)} if self.names else made

    def covers(self, other: Rule) -> bool:
        """Whether everything that the other allows is allowed here."""
        return (
            ("*" in self.groups or other.groups <= self.groups)
            and all(any(_resource_covers(ours, resource) for ours in self.resources) for resource in other.resources)
            and other.verbs <= self.verbs
            and (not self.names or (bool(other.names) and other.names <= self.names))
        )


def _rule(groups: Iterable[str], resources: Iterable[str], verbs: Iterable[str], names: Iterable[str]) -> Rule:
    """A rule in its one normal form: nothing in it that a wildcard beside it covers."""
    every = set(resources)
    plain = {one for one in every if not any(other != one and _resource_covers(other, one) for other in every)}
    known = frozenset(groups)
    return Rule(frozenset({"*"}) if "*" in known else known, frozenset(plain), frozenset(verbs), frozenset(names))


def _resource_covers(pattern: str, resource: str) -> bool:
    if pattern in ("*", resource):
        return True
    return pattern.startswith("*/") and resource.partition("/")[2] == pattern[2:]


def _strings(value: Any) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def parse(rules: Iterable[Object], *, granting: bool = False) -> list[Rule]:
    """The rules about resources, with the eight verbs, and with those that grant where asked for."""
    found = []
    for rule in rules:
        verbs = set(_strings(rule.get("verbs")))
        kept = (set(VERBS) if "*" in verbs else verbs & set(VERBS)) | (verbs & set(GRANTING) if granting else set())
        groups, resources = frozenset(_strings(rule.get("apiGroups"))), frozenset(_strings(rule.get("resources")))
        if kept and groups and resources:
            found.append(_rule(groups, resources, kept, _strings(rule.get("resourceNames"))))
    return found


def _meet_groups(one: Names, other: Names) -> Names:
    if "*" in one:
        return other
    return one if "*" in other else one & other


def _meet_resources(one: Names, other: Names) -> Names:
    narrower = {a for a in one for b in other if _resource_covers(b, a)} | {
        b for b in other for a in one if _resource_covers(a, b)
    }
    return frozenset(narrower)


def meet(one: Rule, other: Rule) -> Rule | None:
    """What both rules allow; None when that is nothing."""
    groups, resources = _meet_groups(one.groups, other.groups), _meet_resources(one.resources, other.resources)
    verbs = one.verbs & other.verbs
    names = one.names & other.names if one.names and other.names else one.names | other.names
    if not groups or not resources or not verbs or (one.names and other.names and not names):
        return None
    return _rule(groups, resources, verbs, names)


def within(source: Sequence[Object], consent: Sequence[Object], *, granting: bool = False) -> list[Object]:
    """What the source and the consent both allow, as ``PolicyRules``: sorted, each once, none inside another."""
    met = (meet(a, b) for a in parse(source, granting=granting) for b in parse(consent, granting=granting))
    return stored(rule for rule in met if rule is not None)


def stored(rules: Iterable[Rule]) -> list[Object]:
    """Rules as ``PolicyRules``: sorted, without those that another covers."""
    distinct = dict.fromkeys(rules)
    kept = [rule for rule in distinct if not any(other != rule and other.covers(rule) for other in distinct)]
    return sorted((rule.as_stored() for rule in kept), key=_order)


def summed(rule_lists: Iterable[Sequence[Object]]) -> list[Object]:
    """All rules of several Roles in one list: sorted, without those that another covers (N-14)."""
    return stored(rule for rules in rule_lists for rule in parse(rules, granting=True))


def _order(rule: Object) -> list[list[str]]:
    return [rule["apiGroups"], rule["resources"], rule["verbs"], rule.get("resourceNames", [])]


def single_rights(source: Sequence[Object]) -> list[dict[str, str]]:
    """Every single right in rules, as the attributes of an access review; sorted, wildcards as they are."""
    found = {
        (verb, group, *resource.partition("/")[::2], name)
        for rule in parse(source)
        for group in rule.groups
        for resource in rule.resources
        for verb in rule.verbs
        for name in (rule.names or {""})
    }
    return [dict(zip(("verb", "group", "resource", "subresource", "name"), one, strict=True)) for one in sorted(found)]


def lacking(source: Sequence[Object], consent: Sequence[Object]) -> list[str]:
    """What the source allows, of the eight verbs, and the consent does not: ``get,list secrets`` and so on."""
    allowed, missing = parse(consent), []
    for rule in parse(source):
        for group in sorted(rule.groups):
            for resource in sorted(rule.resources):
                asked = [
                    (verb, Rule(frozenset({group}), frozenset({resource}), frozenset({verb}), rule.names)) for verb in rule.verbs
                ]
                verbs = sorted(verb for verb, one in asked if not any(other.covers(one) for other in allowed))
                if verbs:
                    missing.append(f"{','.join(verbs)} {resource}{'.' if group else ''}{group}")
    return list(dict.fromkeys(missing))
