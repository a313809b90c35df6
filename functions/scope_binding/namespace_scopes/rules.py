"""The algebra of RBAC rules: what two sets of rules both allow, and what one lacks of the other (3.5, N-8).

Wildcards mean what the API server takes them for: ``*`` every group, resource or verb, ``*/scale`` that subresource of
every resource, no ``resourceNames`` every name.  Of verbs only the eight of `tenantry.model.consent` count; the
verb ``*`` stands for these, so it never names ``escalate`` or ``bind``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
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
    groups, verbs = _meet_groups(one.groups, other.groups), one.verbs & other.verbs
    names = one.names & other.names if one.names and other.names else one.names | other.names
    if not groups or not verbs or (one.names and other.names and not names):
        return None
    resources = _meet_resources(one.resources, other.resources)
    return _rule(groups, resources, verbs, names) if resources else None


def within(source: Sequence[Rule], consent: Sequence[Rule]) -> list[Object]:
    """What the source and the consent both allow, as ``PolicyRules``: sorted, each once, none inside another."""
    met = (meet(a, b) for a in source for b in consent)
    return stored(rule for rule in met if rule is not None)


def stored(rules: Iterable[Rule]) -> list[Object]:
    """Rules as ``PolicyRules``: sorted, without those that another covers."""
    distinct = dict.fromkeys(rules)
    by_group: dict[str, list[Rule]] = {}
    by_resource: dict[str, list[Rule]] = {}
    for rule in distinct:
        for group in rule.groups:
            by_group.setdefault(group, []).append(rule)
        for resource in rule.resources:
            by_resource.setdefault(resource, []).append(rule)

    def is_covered(rule: Rule) -> bool:
        group, resource = next(iter(rule.groups)), next(iter(rule.resources))
        of_group = [other for each in {group, "*"} for other in by_group.get(each, ())]
        patterns = {resource, "*", f"*/{resource.partition('/')[2]}"}
        of_resource = [other for each in patterns for other in by_resource.get(each, ())]
        return any(other != rule and other.covers(rule) for other in min(of_group, of_resource, key=len))

    return sorted((rule.as_stored() for rule in distinct if not is_covered(rule)), key=_order)


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


def lacking(source: Sequence[Rule], consent: Sequence[Rule]) -> list[str]:
    """What the source allows and the consent does not: ``get,list secrets`` and so on."""
    missing = []
    for rule in source:
        for group in sorted(rule.groups):
            for resource in sorted(rule.resources):
                asked = Rule(frozenset({group}), frozenset({resource}), frozenset(), rule.names)
                verbs = rule.verbs.difference(*(other.verbs for other in consent if other.covers(asked)))
                if verbs:
                    missing.append(f"{','.join(sorted(verbs))} {resource}{'.' if group else ''}{group}")
    return list(dict.fromkeys(missing))


# -- each answer once --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Rules that were parsed: with the eight verbs, and also with those that grant.  The same rules are one object."""

    plain: tuple[Rule, ...]
    granting: tuple[Rule, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """What is left of a source within a consent, as ``PolicyRules``, and what the consent lacks of it."""

    rules: tuple[Object, ...]
    lacks: tuple[str, ...] = ()


class Answers:
    """The algebra with each answer worked out once: members mostly consent to the same, and accounts share roles."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self.own = cache(_own)
        self.managed = cache(_managed)
        self.total = cache(_total)

    def known(self, rules: Sequence[Object]) -> Known:
        """Rules of a Role, parsed."""
        text = json.dumps(rules, sort_keys=True)
        if text not in self._known:
            self._known[text] = Known(tuple(parse(rules)), tuple(parse(rules, granting=True)))
        return self._known[text]


def _own(source: Known, consent: Known) -> Given:
    """What an account's own Role gives within a consent."""
    return Given(tuple(within(source.plain, consent.plain)), tuple(lacking(source.plain, consent.plain)))


def _managed(consent: Known) -> Given:
    """What the managed Role gives within a consent."""
    return Given(tuple(within(parse(MANAGED_RULES, granting=True), consent.granting)))


def _total(parts: tuple[Given, ...]) -> Given:
    """What several Roles give together."""
    return Given(tuple(summed(part.rules for part in parts)))
