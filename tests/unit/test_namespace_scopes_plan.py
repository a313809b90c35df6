"""Plans of NamespaceScopes, where a cluster would need long waits or rare moments."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import owning
import pytest
from namespace_scope_objects import NOW, SETTINGS, changes, namespace, ours, planned, pod, reported, scope, seen

from scope_binding.consent import consent_objects
from scope_binding.namespace_scopes.declared import declared
from scope_binding.namespace_scopes.names import (
    FINALIZER,
    FROM_LABEL,
    HASH,
    MANAGER,
    OWNERSHIP_LABEL,
    PENDING,
    managed_role_name,
    ownership_labels,
    runtime_role_name,
    value_hash,
)
from scope_binding.namespace_scopes.observe import PATIENCE, _overdue
from scope_binding.namespace_scopes.projection import projected
from scope_binding.namespace_scopes.seen import HomeRoles, ObservedHome, SourceRole
from scope_binding.namespace_scopes.unit import NamespaceScopes
from tenantry.model.config import Config
from tenantry.model.kinds import CONFIG_MAP, Object
from tenantry.model.plan import Apply, Delete, Edit, Plan
from tenantry.testing.objects import obj


def test_first_plan_gives_everything_at_once() -> None:
    """Finalizer, list and rights do not wait for each other; the list says that a restart is due."""
    found = seen(scope())
    name = managed_role_name("s", "ops", shared=False)

    assert sorted(changes(found)) == [
        "create ConfigMap ops/namespace-scope",
        f"create Role t1/{name}",
        "create Role t1/nss-runtime-managed-role-from-ops",
        f"create RoleBinding t1/{name}",
        "update NamespaceScope ops/s",
    ]


def config_map(value: str, **annotations: str) -> Object:
    """The list as we wrote it at some time."""
    fields = {"f:metadata": {"f:annotations": {f"f:{name}": {} for name in annotations}}}
    entry = {"manager": MANAGER, "operation": "Apply", "time": "2026-01-01T00:00:10Z", "fieldsV1": fields}
    metadata = {
        "uid": "cm",
        "resourceVersion": "1",
        "managedFields": [entry],
        "ownerReferences": [{"apiVersion": "operator.ibm.com/v1", "kind": "NamespaceScope", "name": "s", "uid": "s"}],
    }
    labels = {"managedby-namespace-scope": "true"}
    return obj(CONFIG_MAP, "namespace-scope", "ops", labels, annotations, metadata=metadata, data={"namespaces": value})


def listed(value: str, pods: tuple[Object, ...] = (), **annotations: str) -> list[str]:
    """The changes around an existing list."""
    marks = {name.replace("_", "-"): text for name, text in annotations.items()}
    marks = {f"scope-binding/{name}": text for name, text in marks.items()}
    found = seen(scope(), config_maps={"namespace-scope": config_map(value, **marks)}, pods=(pod(), *pods), consents={})
    return [change for change in changes(found) if "NamespaceScope" not in change]


def test_restart_is_for_a_change_of_the_value_only() -> None:
    """A repair of the value, another order and a list that says the same restart nothing."""
    digest = value_hash("ops,t1")
    assert f"{HASH} {PENDING}" == "scope-binding/namespaces-hash scope-binding/restart-pending"
    assert listed("ops,t1", namespaces_hash=digest) == []
    assert listed("ops", namespaces_hash=digest) == ["update ConfigMap ops/namespace-scope"]
    old, new = pod("old", **{"olm.operatorGroup": "g"}), pod("new", "2026-01-01T00:00:11Z", **{"olm.operatorGroup": "g"})
    assert listed("t1,ops", (old, new)) == ["update ConfigMap ops/namespace-scope"]
    pending = listed("ops,t1", (old, new), namespaces_hash=digest, restart_pending=digest)
    assert pending == ["delete Pod ops/old", "update ConfigMap ops/namespace-scope"]


def test_finalizer_waits_for_the_cleaning_up_and_not_for_ever() -> None:
    """It goes when nothing of ours is left, or when ten minutes of trying are over, with a Warning that lists the rest."""
    gone = scope(deletionTimestamp=NOW, finalizers=[FINALIZER])
    left = {("t1", "x"): ours("Role", "x")}
    assert changes(seen(gone)) == ["update NamespaceScope ops/s"]
    assert changes(seen(gone, roles=left)) == ["delete Role t1/x"]
    overdue = seen(gone, roles=left, overdue=frozenset({"s"}))
    assert sorted(changes(overdue)) == ["delete Role t1/x", "update NamespaceScope ops/s"]
    events = [write.event for write in planned(overdue).writes() if write.event is not None]
    assert ("LeftBehind", True) in [(event.reason, "Role t1/x" in event.note) for event in events]


def test_overdue_is_ten_minutes() -> None:
    """A deleted NamespaceScope is overdue ten minutes after its deletion was asked for."""
    asked = datetime(2026, 1, 1, tzinfo=UTC)
    found = [scope(deletionTimestamp=NOW, finalizers=[FINALIZER]), scope("lives")]
    assert _overdue(found, asked + PATIENCE) == frozenset()
    assert _overdue(found, asked + PATIENCE + timedelta(seconds=1)) == {"s"}


def test_nothing_is_made_in_a_namespace_that_goes() -> None:
    """While the from namespace is deleted nothing is created or restarted; what is in members goes."""
    leaving = replace(declared(scope(finalizers=[FINALIZER]), "managed"), leaving=True)
    found = replace(seen(), scopes=(leaving,), roles={("t1", "x"): ours("Role", "x")})
    assert changes(found) == ["delete Role t1/x"]


def test_stale_rights_of_an_account_do_not_wait_for_other_rights() -> None:
    """What is no longer wanted goes at once, unless another projection takes its place: then after that stands."""
    own = seen(scope(spec={"namespaceMembers": ["t1"]}), bindings={("t1", "gone-0"): ours("RoleBinding", "gone-0")})
    deletions = [
        (number, write.key.name)
        for part in planned(own).stages[0]
        if isinstance(part, Plan)
        for number, stage in enumerate(part.stages)
        for write in stage
        if isinstance(write, Delete)
    ]
    assert deletions == [(1, "gone-0")]


def test_rights_are_worked_out_once_for_members_that_consent_to_the_same() -> None:
    """Hundreds of members cost one answer for each role and for the sum of roles, a member that consents to less its own."""
    members = [f"m{number}" for number in range(100)]
    get = {"apiGroups": [""], "resources": ["*"], "verbs": ["get"]}
    sources = tuple(SourceRole(name, ({**get, "verbs": ["get", "list"]},)) for name in ("r", "other"))
    consents = {name: consent_objects(name, "ops") for name in members}
    found = replace(
        seen(),
        scopes=(declared(scope(spec={"namespaceMembers": members}), "own-roles"),),
        namespaces={name: namespace(name) for name in members},
        consents={**consents, "m7": consent_objects("m7", "ops", (get,))},
        home_roles=HomeRoles({"op": sources}),
    )
    made = projected(found, SETTINGS)
    assert len(made.grants) == 3 * len(members)
    assert len({id(grant.given) for grant in made.grants.values()}) == 2 * 2
    assert {member for (member, _), grant in made.grants.items() if grant.role()["rules"] == [get]} == {"m7"}


def test_only_namespaces_are_owners() -> None:
    """A request by event can name only well-formed owners."""
    unit = NamespaceScopes(Config())
    owners = ("namespace/ops", "namespace/", "namespace/A b", "role/ops")
    assert [owner for owner in owners if owning.accepts(unit, owner)] == ["namespace/ops"]


def restored(obj: Object) -> Object:
    """An object as it comes back from a backup: nobody owns its fields."""
    return {**obj, "metadata": {**obj["metadata"], "managedFields": []}}


def test_what_a_backup_brought_back_goes_as_well() -> None:
    """Rights and list go though nobody owns their fields, if label and name, or our annotation, say that they were ours."""
    name = managed_role_name("gone", "ops", shared=False)
    left = {("t1", each): restored(ours("Role", each)) for each in (name, "theirs")}
    assert changes(ObservedHome("ops", roles=left)) == [f"delete Role t1/{name}"]
    lists = {"namespace-scope": restored(config_map("ops", **{HASH: "h"})), "other": restored(config_map("ops"))}
    assert changes(ObservedHome("ops", config_maps=lists)) == ["delete ConfigMap ops/namespace-scope"]


def test_a_mark_that_a_backup_brought_back_is_taken_off() -> None:
    """A pending restart that nobody owns is carried out, and its mark taken off all the same."""
    digest = value_hash("ops,t1")
    pending = restored(config_map("ops,t1", **{HASH: digest, PENDING: digest}))
    found = seen(scope(), config_maps={"namespace-scope": pending}, consents={})
    (edit,) = [write for write in planned(found).writes() if isinstance(write, Edit)]
    assert [step["path"] for step in edit.operations] == ["/metadata/annotations/scope-binding~1restart-pending"]


def test_a_right_whose_label_was_changed_is_put_right() -> None:
    """One label that names another home is put back; a right of another home, which both labels name, is left alone."""
    name = managed_role_name("s", "ops", shared=False)
    mine, theirs = ours("Role", name), ours("Role", name)
    mine["metadata"]["labels"] = {**mine["metadata"]["labels"], FROM_LABEL: "drifted"}
    theirs["metadata"]["labels"] = ownership_labels("namespace-scope", "others")
    assert f"update Role t1/{name}" in changes(seen(scope(), roles={("t1", name): mine}))
    assert f"update Role t1/{name}" not in changes(seen(scope(), roles={("t1", name): theirs}))


@pytest.mark.parametrize(
    ("labels", "taken"),
    [
        ({}, True),
        ({OWNERSHIP_LABEL: "namespace-scope-ops"}, True),
        ({OWNERSHIP_LABEL: "ops-namespace-scope"}, True),
        ({OWNERSHIP_LABEL: "ops-another"}, False),
        ({OWNERSHIP_LABEL: "ops-namespace-scope", FROM_LABEL: "others"}, False),
        ({"team": "x"}, False),
    ],
)
def test_which_runtime_roles_are_taken_over(labels: dict[str, str], taken: bool) -> None:
    """Those that the IBM operator left, without a label or with its own; others of the name are left alone, and told."""
    name = runtime_role_name("ops")
    left = {**ours("Role", name), "rules": []}
    left["metadata"] = {**left["metadata"], "labels": labels, "managedFields": []}
    found = seen(scope(), roles={("t1", name): left})
    assert (f"update Role t1/{name}" in changes(found)) == taken
    (status,) = [write for write in reported(found).writes() if isinstance(write, Apply)]
    assert (f"not ours and left as they are: Role or RoleBinding t1/{name}" in str(status.wanted["status"])) != taken


@pytest.mark.parametrize(("labels", "taken"), [({}, False), ({OWNERSHIP_LABEL: "ops-namespace-scope"}, True)])
def test_a_right_without_any_label_is_not_taken_over(labels: dict[str, str], taken: bool) -> None:
    """What is bound needs a label of the IBM operator, in either order of its parts: a name alone may be a chance."""
    name = managed_role_name("s", "ops", shared=False)
    left = ours("Role", name)
    left["metadata"] = {**left["metadata"], "labels": labels, "managedFields": []}
    assert (f"update Role t1/{name}" in changes(seen(scope(), roles={("t1", name): left}))) == taken
