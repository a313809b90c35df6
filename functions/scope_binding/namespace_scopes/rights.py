"""The writes that give, correct and take away rights in members (N-7, N-13).

A RoleBinding comes after its Role.  Each member is a plan of its own, so that one that refuses does not hold up the
others.  What another projection left is taken away only after the new one stands, so that no account is without
rights in between.  Where others are bound to a Role of ours nothing is added, see `others`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from scope_binding.namespace_scopes.names import FROM_LABEL, MANAGED_PREFIX, MANAGER, OWNERSHIP_LABEL, RUNTIME_PREFIX, label_value
from scope_binding.namespace_scopes.others import is_held, kept, rules_of, strangers
from scope_binding.namespace_scopes.projection import Grant, Projection, stale
from scope_binding.namespace_scopes.seen import Place, Seen
from tenantry.model.difference import entries_of
from tenantry.model.kinds import ROLE, ROLE_BINDING, Object, labels_of
from tenantry.model.plan import Apply, Delete, Notice, Plan, Write


def foreign(seen: Seen, made: Projection) -> dict[Place, Grant]:
    """Grants whose place is taken by a Role or RoleBinding that is not ours: that is left as it is, and told."""
    return {place: grant for place, grant in made.grants.items() if _is_taken(grant, seen)}


def _is_taken(grant: Grant, seen: Seen) -> bool:
    found = [seen.roles.get(grant.place), seen.bindings.get(grant.place) if grant.accounts else None]
    return any(obj is not None and not _may_write(obj, grant, seen) for obj in found)


def _may_write(obj: Object, grant: Grant, seen: Seen) -> bool:
    """Whether an object at the place of a grant is ours, made by hand as ours, or left there by the IBM operator.

    Its label says whose it is; without the label, that we own fields of it does.  A label that somebody changed is told
    by the other one, in which the from namespace is named as well.  The IBM operator puts no labels on its runtime Roles.
    """
    labels = labels_of(obj)
    if labels.get(FROM_LABEL) == seen.name or (grant.flavour == "runtime" and not labels):
        return True
    written, named = bool(entries_of(obj, MANAGER)), labels.get(OWNERSHIP_LABEL) in _ownership(grant)
    return (written and named) if FROM_LABEL in labels else (written or named)


def _ownership(grant: Grant) -> tuple[str, str]:
    """The ownership label, and that of older releases of the IBM operator: the same parts in the other order."""
    return grant.labels[OWNERSHIP_LABEL], label_value(f"{grant.from_namespace}-{grant.scope.config_map}")


def rights_plans(seen: Seen, made: Projection) -> Iterator[Plan]:
    """One plan for each member that has, or should have, something of ours."""
    taken = foreign(seen, made)
    grants: dict[str, list[Grant]] = {}
    for _, grant in sorted(made.grants.items()):
        grants.setdefault(grant.member, []).append(grant)
    leftovers: dict[str, list[Object]] = {}
    for obj in stale(seen, made):
        leftovers.setdefault(obj["metadata"]["namespace"], []).append(obj)
    for member in sorted(grants.keys() | leftovers.keys()):
        blocked = [grant for grant in grants.get(member, []) if grant.place in taken]
        free = [grant for grant in grants.get(member, []) if grant.place not in taken]
        yield _member_plan(member, free, blocked, leftovers.get(member, []), seen)


def _member_plan(member: str, grants: list[Grant], blocked: list[Grant], leftovers: list[Object], seen: Seen) -> Plan:
    flavours = {grant.flavour for grant in grants}
    replaced = [obj for obj in leftovers if _is_replaced(obj, flavours)]
    gone = [obj for obj in leftovers if obj not in replaced]
    granting = [*(_grant_plan(grant, seen) for grant in grants), *(_blocked_plan(grant, seen) for grant in blocked)]
    writes = [*(write for plan in granting for write in plan.writes()), *_deletions(leftovers)]
    changed = next((write for write in writes if write.change(MANAGER) is not None), None)
    if changed is None:
        return Plan()
    told = _told(member, [*grants, *blocked], {grant.place for grant in blocked}, seen)
    first: tuple[Write | Plan, ...] = (
        *(_with_notice(plan, changed, told) for plan in granting),
        *_deletions(gone, changed, told),
    )
    return Plan((first, tuple(_deletions(replaced, changed, told))))


def _is_replaced(leftover: Object, wanted: Container[str]) -> bool:
    """Whether a leftover is of a projection, or under a name, in whose place another now stands."""
    name = leftover["metadata"]["name"]
    if name.startswith(RUNTIME_PREFIX):
        return False
    return "managed" in wanted or ("own" in wanted and name.startswith(MANAGED_PREFIX))


def _grant_plan(grant: Grant, seen: Seen) -> Plan:
    if is_held(grant.place, seen):
        return _held_plan(grant, seen)
    role = Apply(ROLE, grant.role(), seen.roles.get(grant.place), create_only=True)
    if not grant.accounts:
        return Plan(((role,),))
    live, wanted = seen.bindings.get(grant.place), grant.binding()
    if live is not None and live.get("roleRef") != wanted["roleRef"]:
        return Plan(((role,), (Delete(ROLE_BINDING, live),)))  # a roleRef cannot change; the next look makes it anew
    binding = Apply(ROLE_BINDING, wanted, live, create_only=True)
    if live is not None and grant.place in seen.growing and strangers(grant, seen):
        return Plan(((_without_strangers(grant, live),), (role,), (binding,)))  # who is not meant goes before more comes
    return Plan(((role,), (binding,)))


def _held_plan(grant: Grant, seen: Seen) -> Plan:
    """What is there only becomes less: rules and subjects that are not wanted go, and nothing comes."""
    role, binding = seen.roles.get(grant.place), seen.bindings.get(grant.place) if grant.accounts else None
    writes: list[Write] = []
    if binding is not None and binding.get("roleRef") != grant.binding()["roleRef"]:
        writes.append(Delete(ROLE_BINDING, binding))
    elif binding is not None:
        writes.append(_without_strangers(grant, binding))
    writes += _less(grant, role, seen)
    return Plan((tuple(writes),)) if writes else Plan()


def _blocked_plan(grant: Grant, seen: Seen) -> Plan:
    """Beside a RoleBinding of somebody else that has our name: our Role only becomes less; his is left alone, like his Role."""
    role = seen.roles.get(grant.place)
    writes = _less(grant, role, seen) if role is not None and _may_write(role, grant, seen) else ()
    return Plan((tuple(writes),)) if writes else Plan()


def _less(grant: Grant, role: Object | None, seen: Seen) -> list[Apply]:
    return [Apply(ROLE, {**grant.role(), "rules": kept(grant, seen)}, role)] if rules_of(role) else []


def _without_strangers(grant: Grant, live: Object) -> Apply:
    there = live.get("subjects") or ()
    fewer = [subject for subject in grant.subjects() if subject in there]
    return Apply(ROLE_BINDING, {**grant.binding(), "subjects": fewer}, live)


def _deletions(leftovers: list[Object], told_with: Write | None = None, notice: Notice | None = None) -> Iterator[Delete]:
    for obj in leftovers:
        kind = ROLE if obj["kind"] == ROLE.kind else ROLE_BINDING
        told = isinstance(told_with, Delete) and told_with.live is obj
        yield Delete(kind, obj, notice if told else None)


def _with_notice(plan: Plan, told_with: Write, notice: Notice | None) -> Plan:
    """The plan with the notice on one of its writes, if that is in it."""

    def carry(write: Write | Plan) -> Write | Plan:
        return replace(write, notice=notice) if write is told_with and isinstance(write, Apply | Delete) else write

    return Plan(tuple(tuple(carry(write) for write in stage) for stage in plan.stages))


def _told(member: str, grants: list[Grant], blocked: Container[Place], seen: Seen) -> Notice | None:
    """One Event for what changes in a member."""
    scopes = [grants[0].scope] if grants else [*seen.live, *seen.scopes]
    if not scopes:
        return None
    given = [grant for grant in grants if grant.place not in blocked and not is_held(grant.place, seen)]
    accounts = sorted({account for grant in given for account in grant.accounts})
    if not accounts and any(grant.accounts for grant in grants):
        note = f"nothing is added in namespace {member}: RoleBindings of others name Roles there, or have the name of ours"
        return Notice(scopes[0].live, "RightsHeld", note, "Project", "Warning")
    if accounts:
        note = f"rights in namespace {member} are as declared and consented to, for {', '.join(accounts)}"
        return Notice(scopes[0].live, "RightsProjected", note, "Project")
    return Notice(scopes[0].live, "RightsWithdrawn", f"all rights in namespace {member} were taken away", "Withdraw")
