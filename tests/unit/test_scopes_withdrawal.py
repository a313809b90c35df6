"""A changed selector takes much only when somebody accepts it (decision 30): who waits, who does not, and what is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scope_objects import ROLES, declared, stored

from scope_binding.scopes.declared import changed_selector, roles_of
from scope_binding.scopes.names import MAIN, SCOPED
from scope_binding.scopes.plan import plan_instance, wanted_binding
from scope_binding.scopes.report import report_instance
from scope_binding.scopes.seen import InstanceSeen, wanted_cluster_role
from scope_binding.scopes.withdrawal import SHIPPED, change_digest, withdrawal_of
from tenantry.model.conditions import find_condition
from tenantry.model.config import SelectorChange
from tenantry.model.kinds import SCOPE_INSTANCE, SCOPE_TEMPLATE, Key, Object
from tenantry.model.names import WITHDRAWAL_ACCEPTED
from tenantry.model.plan import Delete, Plan, Refusal

OLD, NEW = {"env": "prod"}, {"env": "prd"}
TEMPLATE = declared(SCOPE_TEMPLATE, "st", clusterRoles=ROLES)


def instance(before: Object | None = OLD, **spec: Any) -> Object:
    """An instance whose bindings stand by one selector."""
    made = declared(SCOPE_INSTANCE, "si", scopeTemplateName="st", **spec)
    return {**made, "status": {} if before is None else {"namespaceSelector": before}}


def seen(of: Object, leaving: int, staying: int = 0, **more: Any) -> InstanceSeen:
    """Bindings in so many namespaces that only the earlier selector means, and in others that the declared one means."""
    stay, go = ([f"{name}{number:03}" for number in range(many)] for name, many in (("stay", staying), ("go", leaving)))
    (role,) = roles_of(TEMPLATE)
    bindings = tuple(stored(wanted_binding(MAIN, role, place, of, TEMPLATE)) for place in (*stay, *go))
    live: dict[str, Object | None] = {role.name: stored(wanted_cluster_role(MAIN, role, TEMPLATE, None))}
    return InstanceSeen(MAIN, of, TEMPLATE, live, frozenset(stay), bindings=bindings, released=frozenset(go), **more)


def taken(plan: Plan) -> int:
    return sum(isinstance(write, Delete) for write in plan.writes())


@pytest.mark.parametrize(
    ("leaving", "staying", "limit", "waits"),
    [
        (20, 0, SHIPPED, False),
        (21, 0, SHIPPED, True),
        (21, 188, SHIPPED, True),
        (21, 189, SHIPPED, False),
        (200, 1_799, SHIPPED, True),
        (1, 0, SelectorChange(bindings=0, percent=0), True),
        (500, 0, SelectorChange(percent=100), False),
    ],
)
def test_what_is_more_than_both_waits(leaving: int, staying: int, limit: SelectorChange, waits: bool) -> None:
    """More than so many bindings, and more than such a share of all; nothing of it goes then, and all of it otherwise."""
    there = seen(instance(namespaceSelector=NEW), leaving, staying)

    assert taken(plan_instance(there, limit)) == (0 if waits else leaving)
    assert (withdrawal_of(there, limit) is not None) is waits


@pytest.mark.parametrize(
    ("before", "spec", "changed"),
    [
        (OLD, {"namespaceSelector": NEW}, True),
        (OLD, {"namespaceSelector": {"matchLabels": NEW}, "namespaces": ["a"]}, True),
        (OLD, {"namespaceSelector": {"matchLabels": OLD}}, False),
        (None, {"namespaceSelector": NEW}, False),
        (OLD, {"namespaces": ["a"]}, False),
        (OLD, {}, False),
        (OLD, {"namespaceSelector": None}, False),
        (OLD, {"namespaceSelector": {"env": 1}}, False),
        ({"env": 1}, {"namespaceSelector": NEW}, False),
    ],
)
def test_only_another_selector_is_a_change(before: Object | None, spec: Object, changed: bool) -> None:
    """Who lists the namespaces, or asks for the whole cluster, named what he wants; what means nothing is another matter."""
    assert (changed_selector(instance(before, **spec)) is not None) is changed


def test_what_waits_is_told_until_it_is_accepted() -> None:
    """The condition has numbers, names and the annotation; that one, and no other, lets it go; the selector in force stays."""
    there = seen(instance(namespaceSelector=NEW), 30)
    (write,) = report_instance(there, []).writes()
    status = write.wanted["status"]
    said = find_condition(write.wanted, SCOPED) or {}
    digest = change_digest(there.instance or {})

    assert (said["status"], said["reason"]) == ("False", "WithdrawalWaits")
    for text in ("30 of 30 bindings", "30 namespaces: go000, go001", "and 25 more", f"{WITHDRAWAL_ACCEPTED}={digest}"):
        assert text in said["message"]
    assert status["namespaceSelector"] == OLD

    for value, goes in ((digest, 30), ("another", 0)):
        metadata = {**(there.instance or {})["metadata"], "annotations": {WITHDRAWAL_ACCEPTED: value}}
        answered = replace(there, instance={**(there.instance or {}), "metadata": metadata})
        (write,) = report_instance(answered, []).writes()
        assert taken(plan_instance(answered)) == goes
        assert write.wanted["status"]["namespaceSelector"] == (NEW if goes else OLD)
    later = {**(there.instance or {})["metadata"], "generation": 2}
    assert change_digest({**(there.instance or {}), "metadata": later}) != digest


def test_what_is_taken_by_name_does_not_wait() -> None:
    """A subject that is taken out of the template goes where bindings wait, too; a role that is new is not given there."""
    others = [{"kind": "ServiceAccount", "name": "other", "namespace": "ops"}]
    there = seen(instance(namespaceSelector=NEW), 30)
    changed = declared(SCOPE_TEMPLATE, "st", clusterRoles=[{**ROLES[0], "subjects": others}, {**ROLES[0], "generateName": "u"}])
    roles = {role.name: stored(wanted_cluster_role(MAIN, role, changed, None)) for role in roles_of(changed)}
    plan = plan_instance(replace(there, template=changed, cluster_roles=roles))

    assert taken(plan) == 0
    assert len(list(plan.writes())) == 30
    assert all(write.wanted["subjects"] == others for write in plan.writes() if not isinstance(write, Delete))
    gone = plan_instance(replace(there, template=declared(SCOPE_TEMPLATE, "st", clusterRoles=[]), cluster_roles={}))
    assert taken(gone) == 30


def test_a_run_for_one_namespace_leaves_it_to_the_whole() -> None:
    """It cannot know how much goes, so it takes nothing of what a changed selector lets go, and tells nothing."""
    there = seen(instance(namespaceSelector=NEW), 1, part="go000")

    assert taken(plan_instance(there)) == 0
    assert report_instance(there, []).stages == ()
    assert taken(plan_instance(replace(there, released=frozenset()))) == 1
    refused = Refusal(Key("rbac.authorization.k8s.io/v1", "RoleBinding", "go000", "b"), "quota", "no room")
    for part in (there, replace(there, released=frozenset())):
        (write,) = report_instance(part, [refused]).writes()
        assert write.wanted["status"]["namespaceSelector"] == OLD
