"""The writes that give, correct and take away rights in members (N-7, N-13).

A RoleBinding comes after its Role.  Each member is a plan of its own, so that one that refuses does not hold up the
others.  What another projection left is taken away only after the new one stands, so that no account is without
rights in between.  Where others are bound to a Role of ours nothing is added, see `others`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import replace

from scope_binding.namespace_scopes.grants import Grant, RolePlace
from scope_binding.namespace_scopes.names import FROM_LABEL, MANAGED_PREFIX, MANAGER, OWNERSHIP_LABEL, RUNTIME_PREFIX, label_value
from scope_binding.namespace_scopes.others import is_held, kept_rules, rules_of, strangers
from scope_binding.namespace_scopes.seen import ObservedHome
from scope_binding.objects import KINDS
from tenantry.model.difference import entries_of
from tenantry.model.kinds import ROLE, ROLE_BINDING, Object, labels_of
from tenantry.model.plan import Apply, Delete, KubernetesEvent, Plan, Write


def stale(seen: ObservedHome) -> Iterator[Object]:
    """Our Roles and RoleBindings that nobody wants any more, except where an administrator manages them (N-17)."""
    wanted = seen.projected
    kept = wanted.untouched | {member for scope in seen.live if scope.manual for member in scope.members}

    def unwanted(found: Mapping[RolePlace, Object], places: Collection[RolePlace]) -> Iterator[Object]:
        for place, obj in sorted(found.items()):
            if place not in places and place[0] not in kept and seen.is_ours(obj):
                yield obj

    yield from unwanted(seen.bindings, {place for place, grant in wanted.grants.items() if grant.accounts})
    yield from unwanted(seen.roles, wanted.grants.keys() | wanted.unsummed)


def foreign(seen: ObservedHome) -> dict[RolePlace, Grant]:
    """Grants whose place is taken by a Role or RoleBinding that is not ours: that is left as it is, and reported."""
    return {place: grant for place, grant in seen.projected.grants.items() if _is_taken(grant, seen)}


def _is_taken(grant: Grant, seen: ObservedHome) -> bool:
    found = [seen.roles.get(grant.place), seen.bindings.get(grant.place) if grant.accounts else None]
    return any(obj is not None and not _may_write(obj, grant, seen) for obj in found)


def _may_write(obj: Object, grant: Grant, seen: ObservedHome) -> bool:
    """Whether an object at the place of a grant is ours, made by hand as ours, or left there by the IBM operator.

    Its label says whose it is; without the label, that we own fields of it does.  A label that somebody changed is recognized
    by the other one, in which the from namespace is named as well.  The IBM operator puts no labels on its runtime Roles.
    """
    labels = labels_of(obj)
    if labels.get(FROM_LABEL) == seen.name or (grant.flavour == "runtime" and not labels):
        return True
    # The ownership label, and that of older releases of the IBM operator: the same parts in the other order.
    ownership = grant.labels[OWNERSHIP_LABEL], label_value(f"{seen.name}-{grant.scope.config_map}")
    written, named = bool(entries_of(obj, MANAGER)), labels.get(OWNERSHIP_LABEL) in ownership
    return (written and named) if FROM_LABEL in labels else (written or named)


def rights_plans(seen: ObservedHome) -> Iterator[Plan]:
    """One plan for each member that has, or should have, something of ours."""
    taken = foreign(seen)
    grants: dict[str, list[Grant]] = {}
    for _, grant in sorted(seen.projected.grants.items()):
        grants.setdefault(grant.member, []).append(grant)
    leftovers: dict[str, list[Object]] = {}
    for obj in stale(seen):
        leftovers.setdefault(obj["metadata"]["namespace"], []).append(obj)
    for member in sorted(grants.keys() | leftovers.keys()):
        yield _member_plan(member, grants.get(member, []), taken, leftovers.get(member, []), seen)


def _member_plan(
    member: str, grants: list[Grant], taken: Container[RolePlace], leftovers: list[Object], seen: ObservedHome
) -> Plan:
    grants = sorted(grants, key=lambda grant: grant.place in taken)
    granting = [(_blocked_plan if grant.place in taken else _grant_plan)(grant, seen) for grant in grants]
    flavours = {grant.flavour for grant in grants if grant.place not in taken}
    replaced: list[Delete] = []
    unwanted: list[Delete] = []
    for obj in leftovers:
        (replaced if _is_replaced(obj, flavours) else unwanted).append(Delete(KINDS[obj["kind"]], obj))
    plan = Plan(((*granting, *unwanted), tuple(replaced)))
    changed = next((write for write in plan.writes() if write.change(MANAGER) is not None), None)
    return Plan() if changed is None else _with_event(plan, changed, _event(member, grants, taken, seen))


def _is_replaced(leftover: Object, wanted: Container[str]) -> bool:
    """Whether a leftover is of a projection, or under a name, in whose place another now stands."""
    name = leftover["metadata"]["name"]
    if name.startswith(RUNTIME_PREFIX):
        return False
    return "managed" in wanted or ("own" in wanted and name.startswith(MANAGED_PREFIX))


def _grant_plan(grant: Grant, seen: ObservedHome) -> Plan:
    if is_held(grant.place, seen):
        return _held_plan(grant, seen)
    role = Apply(ROLE, grant.role(), seen.roles.get(grant.place), create_only=True)
    if not grant.accounts:
        return Plan(((role,),))
    live, wanted = seen.bindings.get(grant.place), grant.binding()
    if live is not None and live.get("roleRef") != wanted["roleRef"]:
        return Plan(((role,), (Delete(ROLE_BINDING, live),)))  # a roleRef cannot change; the next run makes it anew
    binding = Apply(ROLE_BINDING, wanted, live, create_only=True)
    if live is not None and grant.place in seen.growing and strangers(grant, seen):
        return Plan(((_without_strangers(grant, live),), (role,), (binding,)))  # who is not meant goes before more comes
    return Plan(((role,), (binding,)))


def _held_plan(grant: Grant, seen: ObservedHome) -> Plan:
    """What is there only becomes less: rules and subjects that are not wanted go, and nothing comes."""
    writes: list[Write] = []
    if (binding := seen.bindings.get(grant.place)) is not None and grant.accounts:
        same = binding.get("roleRef") == grant.binding()["roleRef"]
        writes.append(_without_strangers(grant, binding) if same else Delete(ROLE_BINDING, binding))
    return Plan(((*writes, *_less(grant, seen.roles.get(grant.place), seen)),))


def _blocked_plan(grant: Grant, seen: ObservedHome) -> Plan:
    """Beside a RoleBinding of somebody else that has our name: our Role only becomes less; his is left alone, like his Role."""
    role = seen.roles.get(grant.place)
    writes = _less(grant, role, seen) if role is not None and _may_write(role, grant, seen) else ()
    return Plan((tuple(writes),))


def _less(grant: Grant, role: Object | None, seen: ObservedHome) -> list[Apply]:
    return [Apply(ROLE, {**grant.role(), "rules": kept_rules(grant, seen)}, role)] if rules_of(role) else []


def _without_strangers(grant: Grant, live: Object) -> Apply:
    there = live.get("subjects") or ()
    fewer = [subject for subject in grant.subjects() if subject in there]
    return Apply(ROLE_BINDING, {**grant.binding(), "subjects": fewer}, live)


def _with_event(plan: Plan, chosen: Write, event: KubernetesEvent | None) -> Plan:

    def carry(item: Write | Plan) -> Write | Plan:
        if isinstance(item, Plan):
            return _with_event(item, chosen, event)
        return replace(item, event=event) if item is chosen and isinstance(item, Apply | Delete) else item

    return Plan(tuple(tuple(carry(item) for item in stage) for stage in plan.stages))


def _event(member: str, grants: list[Grant], taken: Container[RolePlace], seen: ObservedHome) -> KubernetesEvent | None:
    scopes = [grants[0].scope] if grants else [*seen.live, *seen.scopes]
    if not scopes:
        return None
    given = [grant for grant in grants if grant.place not in taken and not is_held(grant.place, seen)]
    accounts = sorted({account for grant in given for account in grant.accounts})
    if accounts:
        note = f"rights in namespace {member} are as declared and consented to, for {', '.join(accounts)}"
        return KubernetesEvent(scopes[0].live, "RightsProjected", note, "Project")
    if any(grant.accounts for grant in grants):
        note = f"nothing is added in namespace {member}: RoleBindings of others name Roles there, or have the name of ours"
        return KubernetesEvent(scopes[0].live, "RightsHeld", note, "Project", "Warning")
    return KubernetesEvent(scopes[0].live, "RightsWithdrawn", f"all rights in namespace {member} were taken away", "Withdraw")
