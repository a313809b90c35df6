"""Roles of ours that somebody else's RoleBinding names too: they get no more rights from us (a-38).

Whoever may write RoleBindings may bind an empty Role: Kubernetes asks him for the rights that are in it at that time, and
never again.  So a Role that others are bound to is not filled.  What it has it keeps, as far as it is wanted: who bound it then
had all of that himself, or may bind whatever he likes.

Somebody may bind a Role between the reads of a run and its writes.  So the run after a filling reads the RoleBindings again,
and takes out what went in too early.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from scope_binding.namespace_scopes.grants import Grant, RolePlace
from scope_binding.namespace_scopes.rules import TooMuch, lacking, parse, within
from scope_binding.namespace_scopes.seen import ObservedHome
from tenantry.model.kinds import ROLE, Object

Rules = tuple[Object, ...]


def growing(grants: Mapping[RolePlace, Grant], roles: Mapping[RolePlace, Object]) -> frozenset[RolePlace]:
    """The places whose Role would get more than it has, or is not there yet."""
    known: dict[tuple[int, str], bool] = {}  # members mostly want the same in place of the same

    def grows(grant: Grant) -> bool:
        live = roles.get(grant.place)
        if live is None or live.get("rules") == list(grant.given.rules):
            return live is None
        asked = id(grant.given), json.dumps(live.get("rules"), sort_keys=True)
        if asked not in known:
            wanted, there = (parse(rules, granting=True) for rules in (grant.given.rules, rules_of(live)))
            try:
                known[asked] = bool(lacking(wanted, there))
            except TooMuch:
                known[asked] = True  # unknown: so it is read who else is bound to it
        return known[asked]

    return frozenset(place for place, grant in grants.items() if grows(grant))


def rules_of(role: Object | None) -> Rules:
    """The rules of a Role; none without one."""
    return tuple((role or {}).get("rules") or ())


def other_bindings(bindings: Iterable[Object], grant: Grant) -> tuple[str, ...]:
    """Which RoleBindings of a member, by name, name a grant's Role and are not the grant's own."""
    return tuple(
        sorted(
            binding["metadata"]["name"]
            for binding in bindings
            if (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (ROLE.kind, grant.name)
            and not (grant.accounts and binding["metadata"]["name"] == grant.name)
        )
    )


def strangers(grant: Grant, seen: ObservedHome) -> list[Object]:
    """Who is in the RoleBinding of a grant and should not be."""
    live = seen.bindings.get(grant.place) or {}
    return [subject for subject in live.get("subjects") or () if subject not in grant.subjects()]


def filled(seen: ObservedHome, remembered: Mapping[RolePlace, Rules]) -> dict[RolePlace, Rules]:
    """What Roles that a run fills had before it; and what those had that somebody got into, until he is out of them.

    Who is in our own binding is taken out of it, and may have bound the Role once more meanwhile: so it stays remembered.
    """
    grants = seen.projected.grants
    still = {
        place: rules
        for place, rules in remembered.items()
        if place in seen.before or (place in grants and strangers(grants[place], seen))
    }
    return {place: rules_of(seen.roles.get(place)) for place in seen.growing - seen.others.keys()} | still


def is_held(place: RolePlace, seen: ObservedHome) -> bool:
    """Whether what is there may only become less."""
    return place in seen.others or place in seen.before


def kept_rules(grant: Grant, seen: ObservedHome) -> list[Object]:
    """What a held Role keeps: what it has as far as it is wanted, and no more than before somebody got into it.

    Nothing, where that would take too much work to find out.
    """
    if grant.place in seen.kept:
        return seen.kept[grant.place]
    try:
        left = list(rules_of(seen.roles.get(grant.place)))
        for bound in (grant.given.rules, seen.before.get(grant.place)):
            if bound is not None:
                left = within(parse(left, granting=True), parse(bound, granting=True))
        return left
    except TooMuch:
        return []
