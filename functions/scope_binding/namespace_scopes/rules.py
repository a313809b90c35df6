"""The algebra of RBAC rules: what two sets of rules both allow, and what one lacks of the other (3.5, N-8).

Wildcards mean what the API server takes them for: ``*`` every group, resource or verb, ``*/scale`` that subresource of
every resource, no ``resourceNames`` every name.  Of verbs only the eight of `scope_binding.consent` count; the
verb ``*`` stands for these, so it never names ``escalate`` or ``bind``.

Anybody may write Roles at home or in a member, so what they cost is bounded (a-17): a Role by its size, before anything is made
of it, and all that is worked out for one consent by a count of what is compared.  Rules are compared as they are and never
spread out into single rights.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from scope_binding.consent import VERBS
from scope_binding.namespace_scopes.declared import strings
from tenantry.model import limits
from tenantry.model.kinds import Object

GRANTING = ("escalate", "bind")
"""Verbs with which further rights can be handed out: given only where the consent names them."""

MANAGED_RULES: tuple[Object, ...] = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": list(VERBS)},
    {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": list(GRANTING)},
)
"""What the managed Role would have without any bound."""

Names = frozenset[str]
_PARTS = ("apiGroups", "resources", "verbs", "resourceNames")


class TooMuch(Exception):
    """Working something out would cost more than its limit; the text says which, and what to do."""


class Effort:
    """How much may still be compared; a unit is one entry of a rule, about 0.1 microseconds."""

    def __init__(self, units: int = limits.RULES_COMPARED) -> None:
        self._left = units

    def spend(self, units: int) -> None:
        """Take so much off what is left.

        Raises:
            TooMuch: there is not so much left.
        """
        self._left -= units
        if self._left < 0:
            raise TooMuch(
                f"comparing both sides takes more than {limits.RULES_COMPARED} steps: split the Role, or consent to wider rules"
            )


def size_of(rules: Iterable[Object]) -> int:
    """How many groups, resources, verbs and names there are in rules."""
    return sum(len(rule.get(part) or ()) for rule in rules for part in _PARTS)


def excess(rules: Sequence[Object]) -> str:
    """Which limit the rules of a Role are over, in words with the fix; empty when they are within all of them."""
    if len(rules) > limits.ROLE_RULES:
        return f"{len(rules)} rules, at most {limits.ROLE_RULES} rules are read: split the Role, or join its rules"
    rights = 0
    for rule in rules:
        groups, resources, verbs, names = (len(rule.get(part) or ()) for part in _PARTS)
        rights += groups * resources * verbs * max(1, names)
    if rights > limits.ROLE_RIGHTS:
        return f"{rights} rights, at most {limits.ROLE_RIGHTS} rights are read: split the Role, or use *"
    if (entries := size_of(rules)) > limits.ROLE_ENTRIES:
        return f"{entries} groups, resources, verbs and names, at most {limits.ROLE_ENTRIES} are read: split the Role, or use *"
    return ""


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

    @property
    def size(self) -> int:
        """How many entries a comparison with it looks at."""
        return len(self.groups) + len(self.resources) + len(self.names)

    def covers(self, other: Rule) -> bool:
        """Whether everything that the other allows is allowed here."""
        return (
            ("*" in self.groups or other.groups <= self.groups)
            and all(_is_covered(resource, self.resources) for resource in other.resources)
            and other.verbs <= self.verbs
            and (not self.names or (bool(other.names) and other.names <= self.names))
        )


def _rule(groups: Iterable[str], resources: Iterable[str], verbs: Iterable[str], names: Iterable[str]) -> Rule:
    """A rule in its one normal form: nothing in it that a wildcard beside it covers."""
    every, known = frozenset(resources), frozenset(groups)
    if "*" in every:
        every = frozenset({"*"})
    plain = frozenset(one for one in every if _pattern(one) in ("", one) or _pattern(one) not in every)
    return Rule(frozenset({"*"}) if "*" in known else known, plain, frozenset(verbs), frozenset(names))


def _pattern(resource: str) -> str:
    """The wildcard for a subresource of every resource, of which this is one; empty for a resource itself."""
    below = resource.partition("/")[2]
    return f"*/{below}" if below else ""


def _is_covered(resource: str, patterns: Names) -> bool:
    """Whether a resource, or what a wildcard stands for, is among what these stand for."""
    return "*" in patterns or resource in patterns or _pattern(resource) in patterns


def parse(rules: Iterable[Object], *, granting: bool = False) -> list[Rule]:
    """The rules about resources, with the eight verbs, and with those that grant where asked for."""
    found = []
    for rule in rules:
        groups, resources, written, names = (strings(rule.get(part)) for part in _PARTS)
        verbs = set(VERBS).intersection(VERBS if "*" in written else written)
        if granting:
            verbs |= set(GRANTING).intersection(written)
        if verbs and groups and resources:
            found.append(_rule(groups, resources, verbs, names))
    return found


def meet(one: Rule, other: Rule, work: Effort) -> Rule | None:
    """What both rules allow; None when that is nothing."""
    work.spend(1)
    verbs = one.verbs & other.verbs
    if not verbs:
        return None
    work.spend(one.size + other.size)
    groups = other.groups if "*" in one.groups else one.groups if "*" in other.groups else one.groups & other.groups
    names = one.names & other.names if one.names and other.names else one.names | other.names
    if not groups or (one.names and other.names and not names):
        return None
    resources = frozenset(each for each in one.resources if _is_covered(each, other.resources))
    resources |= frozenset(each for each in other.resources if _is_covered(each, one.resources))
    return _rule(groups, resources, verbs, names) if resources else None


def within(source: Sequence[Rule], consent: Sequence[Rule], work: Effort | None = None) -> list[Object]:
    """What the source and the consent both allow, as ``PolicyRules``: sorted, each once, none inside another.

    Raises:
        TooMuch: that takes more work than there is, or gives more rules than are written.
    """
    work = work or Effort()
    met: dict[Rule, None] = {}
    for a, b in itertools.product(source, consent):
        if (both := meet(a, b, work)) is not None:
            met[both] = None
            _check(met)
    return stored(met, work)


def _check(rules: dict[Rule, None]) -> None:
    if len(rules) > limits.PROJECTED_RULES:
        raise TooMuch(
            f"both sides together make more than {limits.PROJECTED_RULES} rules: split the Role, or consent to wider rules"
        )


def stored(rules: Iterable[Rule], work: Effort | None = None) -> list[Object]:
    """Rules as ``PolicyRules``: sorted, without those that another covers.

    Raises:
        TooMuch: that takes more work than there is, or gives more rules than are written.
    """
    work = work or Effort()
    distinct = dict.fromkeys(rules)
    _check(distinct)
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
        patterns = {resource, "*", _pattern(resource)}
        of_resource = [other for each in patterns for other in by_resource.get(each, ())]
        fewer = min(of_group, of_resource, key=len)
        work.spend(len(fewer) * (len(rule.resources) + 1))
        return any(other != rule and other.covers(rule) for other in fewer)

    return sorted(
        (rule.as_stored() for rule in distinct if not is_covered(rule)), key=lambda rule: [rule.get(part, []) for part in _PARTS]
    )


def single_rights(source: Sequence[Object]) -> Iterator[dict[str, str]]:
    """Every single right in rules, as the attributes of an access review, wildcards as they are; in a fixed order, one by one."""
    for rule in parse(source):
        for verb, group, resource, name in itertools.product(
            sorted(rule.verbs), sorted(rule.groups), sorted(rule.resources), sorted(rule.names or {""})
        ):
            whole, _, below = resource.partition("/")
            yield {"verb": verb, "group": group, "resource": whole, "subresource": below, "name": name}


def lacking(source: Sequence[Rule], consent: Sequence[Rule], work: Effort | None = None) -> list[str]:
    """What the source allows and the consent does not: ``get,list secrets`` and so on; of much the first parts.

    Groups and resources for which the same rules of the consent count are looked at together.

    Raises:
        TooMuch: that takes more work than there is.
    """
    work = work or Effort()
    missing: dict[str, None] = {}
    for rule in source:
        for group, resource, verbs in _lacking(rule, consent, work):
            if len(missing) == limits.PROBLEMS_SHOWN:
                return [*missing, "and more"]
            missing[f"{','.join(sorted(verbs))} {resource}{'.' if group else ''}{group}"] = None
    return list(missing)


def _lacking(rule: Rule, consent: Sequence[Rule], work: Effort) -> Iterator[tuple[str, str, Names]]:
    """(group, resource, verbs) of a rule that a consent lacks, in order."""
    work.spend(len(consent) * rule.size)
    named = [each for each in consent if not each.names or (rule.names and rule.names <= each.names)]
    by_group = {
        group: frozenset(number for number, each in enumerate(named) if "*" in each.groups or group in each.groups)
        for group in sorted(rule.groups)
    }
    by_resource = {
        resource: frozenset(number for number, each in enumerate(named) if _is_covered(resource, each.resources))
        for resource in sorted(rule.resources)
    }
    kinds = list(itertools.product(set(by_group.values()), set(by_resource.values())))
    work.spend(len(kinds))
    left = {
        (groups, resources): rule.verbs.difference(*(named[number].verbs for number in groups & resources))
        for groups, resources in kinds
    }
    if not any(left.values()):
        return
    for group, groups in by_group.items():
        for resource, resources in by_resource.items():
            if verbs := left[groups, resources]:
                yield group, resource, verbs


# -- each answer once --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ParsedRules:
    """The rules of a Role, parsed: with the eight verbs, and also with those that grant.  The same rules are one object.

    ``work`` is what may be compared for them as a consent.
    """

    plain: tuple[Rule, ...]
    granting: tuple[Rule, ...]
    work: Effort = field(default_factory=Effort)


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """What is left of a source within a consent, as ``PolicyRules``, and what the consent lacks of it.

    ``excess`` says why nothing was worked out.
    """

    rules: tuple[Object, ...]
    lacks: tuple[str, ...] = ()
    excess: str = ""


class Answers:
    """The algebra with each answer worked out once: members mostly consent to the same, and accounts share roles."""

    def __init__(self) -> None:
        self._parsed: dict[str, ParsedRules] = {}
        self._given: dict[Hashable, Given] = {}

    def parsed(self, rules: Sequence[Object]) -> ParsedRules:
        """Rules of a Role, parsed."""
        text = json.dumps(rules, sort_keys=True)
        if text not in self._parsed:
            self._parsed[text] = ParsedRules(tuple(parse(rules)), tuple(parse(rules, granting=True)))
        return self._parsed[text]

    def own(self, source: ParsedRules, consent: ParsedRules) -> Given:
        """What an account's own Role gives within a consent."""

        def work_out() -> Given:
            lacks = lacking(source.plain, consent.plain, consent.work)
            return Given(tuple(within(source.plain, consent.plain, consent.work)), tuple(lacks))

        return self._once(("own", source, consent), work_out)

    def managed(self, consent: ParsedRules) -> Given:
        """What the managed Role gives within a consent."""
        enough = Effort(4 * limits.RULES_COMPARED)  # no copy may use it up: what shrinks here must shrink there
        wanted = parse(MANAGED_RULES, granting=True)
        return self._once(("managed", consent), lambda: Given(tuple(within(wanted, consent.granting, enough))))

    def cut(self, live: ParsedRules, consent: ParsedRules) -> Given:
        """What a Role that we wrote keeps within a consent."""
        return self._once(("cut", live, consent), lambda: Given(tuple(within(live.plain, consent.plain))))

    def total(self, parts: tuple[Given, ...]) -> Given:
        """What several Roles give together: all their rules, without those that another covers (N-14)."""
        rules = (rule for part in parts for rule in parse(part.rules, granting=True))
        return self._once(("total", parts), lambda: Given(tuple(stored(rules))))

    def _once(self, question: Hashable, work_out: Callable[[], Given]) -> Given:
        if question not in self._given:
            try:
                self._given[question] = work_out()
            except TooMuch as error:
                self._given[question] = Given((), excess=str(error))
        return self._given[question]
