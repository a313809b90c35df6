"""Permissions of Paas' service accounts as pure functions: who is bound, what waits for what, what is told (2.7, p-157)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from scope_binding.paas.plan import doubtful, plan_namespace, plan_paas, plan_role
from scope_binding.paas.report import report_paas
from scope_binding.paas.seen import (
    MANAGER,
    GrantsSeen,
    NamespaceSeen,
    RoleSeen,
    Subject,
    local_binding,
    role_named,
    shared_binding,
    subjects_of,
)
from tenantry.model.difference import Difference
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, Object, annotations_of, object_of
from tenantry.model.paas import names
from tenantry.model.paas.config import PaasConfig, config_of
from tenantry.model.paas.declared import Paas, paas_of
from tenantry.model.plan import Apply, Delete, Plan, Refusal, RemoveFinalizers

ROLE = "monitoring-edit"
SA = "argo-sa"
HELD = [names.SUBJECTS_FINALIZER]
OURS = (names.ACCOUNTS_FINALIZER,)


def config(scope: str = "Cluster", **capabilities: Any) -> PaasConfig:
    given = capabilities or {"argocd": {"default_permissions": {SA: [ROLE]}, "extra_permissions": {SA: ["cluster-reader"]}}}
    return config_of({"metadata": {"name": "c"}, "spec": {"capabilities": given, "permissionScope": scope}})


def paas(name: str = "my", *, deleted: bool = False, finalizers: Sequence[str] = OURS, **declared: Any) -> Paas:
    """A Paas with argocd unless other capabilities are given."""
    metadata: dict[str, Any] = {"name": name, "uid": f"u-{name}", "generation": 1, "finalizers": list(finalizers)}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    given = {each.replace("_", "-"): found for each, found in declared.items()} or {"argocd": {"enabled": True}}
    return paas_of(object_of(names.PAAS, metadata, spec={"capabilities": given}))


def namespace(of: Paas, suffix: str = "argocd", *, finalizers: Sequence[str] = HELD, **metadata: Any) -> Object:
    """A namespace that a Paas has."""
    marks = {"annotations": {names.PAAS_UID: of.uid}, "labels": {names.MANAGED_BY_PAAS: of.name}}
    return object_of(NAMESPACE, {"name": f"{of.name}-{suffix}", "uid": "n", "finalizers": list(finalizers), **marks, **metadata})


def stored(body: Object, version: str = "7") -> Object:
    written = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {}}
    return {**body, "metadata": {**body["metadata"], "uid": "b", "resourceVersion": version, "managedFields": [written]}}


def bound(*subjects: tuple[str, str], role: str = ROLE) -> Object:
    """The shared binding as it is stored."""
    return stored(shared_binding(role, [Subject(*each) for each in subjects]))


def seen(*every: Paas, binding: Object | None = None, places: Sequence[Object] = (), **more: Any) -> RoleSeen:
    more.setdefault("config", config())
    return RoleSeen(ROLE, binding, every=every, namespaces={each["metadata"]["name"]: each for each in places}, **more)


def wanted(plan: Plan) -> list[str]:
    """The subjects of the one binding that a plan applies."""
    (write,) = [each for each in plan.writes() if isinstance(each, Apply)]
    return [f"{each['namespace']}/{each['name']}" for each in write.wanted["subjects"]]


# -- the shared binding ----------------------------------------------------------------------------------------------


def test_all_paas_stand_in_one_binding_in_order() -> None:
    """By namespace and name, with the mark that proves it."""
    one, two = paas("b"), paas("a-b")
    plan = plan_role(seen(one, two, places=[namespace(one), namespace(two)]))
    assert wanted(plan) == ["a-b-argocd/argo-sa", "b-argocd/argo-sa"]
    (write,) = plan.writes()
    assert write.key.name == f"paas-{ROLE}"
    assert isinstance(write, Apply)
    assert annotations_of(write.wanted) == {names.SHARED: "permissions"}
    assert write.create_only


@pytest.mark.parametrize(
    "place",
    [
        None,
        {"annotations": {names.PAAS_UID: "another"}},
        {"annotations": {}},
        {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        {"finalizers": []},
    ],
)
def test_a_namespace_that_is_not_the_paas_own_or_not_held_gives_no_subject(place: dict[str, Any] | None) -> None:
    """Nor one that is not there, or on its way out."""
    mine = paas()
    assert not list(plan_role(seen(mine, places=[] if place is None else [namespace(mine, **place)])).writes())


def test_the_finalizer_of_the_paas_comes_before_a_subject() -> None:
    mine = paas(finalizers=())
    assert not list(plan_role(seen(mine, places=[namespace(mine)])).writes())


def test_who_stands_stays_when_somebody_takes_a_finalizer_off() -> None:
    """The finalizer comes back, and access is not missing meanwhile."""
    mine = paas(finalizers=())
    live = bound(("my-argocd", SA))
    plan = plan_role(seen(mine, binding=live, places=[namespace(mine, finalizers=())]))
    assert plan.changes(MANAGER) == []


def test_what_somebody_put_in_the_place_of_ours_is_written_once() -> None:
    """It has our marks and is equal, and nothing of it is ours: it could not be given up."""
    mine = paas()
    live = bound(("my-argocd", SA))
    live["metadata"]["managedFields"][0]["manager"] = "kubectl-create"
    (change,) = plan_role(seen(mine, binding=live, places=[namespace(mine)])).changes(MANAGER)
    assert change.why == Difference(changed=("metadata.managedFields",))


def test_a_change_is_of_the_version_that_was_read() -> None:
    """Lists are replaced whole: what another process wrote meanwhile is not lost."""
    mine = paas()
    (write,) = plan_role(seen(mine, binding=bound(("x-argocd", SA)), places=[namespace(mine)])).writes()
    assert isinstance(write, Apply)
    assert write.wanted["metadata"]["resourceVersion"] == "7"


def test_who_goes_is_looked_at_twice() -> None:
    """A list of subjects that gets shorter takes something away."""
    mine, gone = paas(), paas("x", deleted=True)
    state = seen(mine, gone, binding=bound(("my-argocd", SA), ("x-argocd", SA)), places=[namespace(mine), namespace(gone)])
    assert doubtful(state, plan_role(state)) == {Subject("x-argocd", SA)}
    assert wanted(plan_role(state)) == ["my-argocd/argo-sa"]


def test_without_subjects_it_is_deleted() -> None:
    live = bound(("my-argocd", SA))
    (write,) = plan_role(seen(binding=live)).writes()
    assert isinstance(write, Delete)


def test_people_that_somebody_added_go() -> None:
    """Only what declarations give stands there."""
    mine, live = paas(), bound(("my-argocd", SA))
    live["subjects"].append({"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"})
    plan = plan_role(seen(mine, binding=live, places=[namespace(mine)]))
    assert [str(change) for change in plan.changes(MANAGER)] == [f"update ClusterRoleBinding paas-{ROLE}: ~ subjects"]


def test_another_role_is_made_anew() -> None:
    """A roleRef cannot be changed."""
    mine, live = paas(), bound(("my-argocd", SA))
    live["roleRef"] = {**live["roleRef"], "name": "cluster-admin"}
    assert [type(each) for each in plan_role(seen(mine, binding=live, places=[namespace(mine)])).writes()] == [Delete]


@pytest.mark.parametrize(
    ("labels", "annotations", "subjects", "ours"),
    [
        ({}, {names.SHARED: "permissions"}, [], True),
        ({}, {names.SHARED: "quota"}, [], False),
        ({}, {}, [], False),
        ({"app.kubernetes.io/created-by": "opr-paas", "app.kubernetes.io/part-of": "opr-paas"}, {}, [], True),
        ({"app.kubernetes.io/created-by": "opr-paas"}, {}, [], False),
        (
            {"app.kubernetes.io/created-by": "opr-paas", "app.kubernetes.io/part-of": "opr-paas"},
            {},
            [{"kind": "User", "name": "eve"}],
            False,
        ),
    ],
)
def test_what_is_not_ours_is_left_alone(
    labels: dict[str, str], annotations: dict[str, str], subjects: list[Object], *, ours: bool
) -> None:
    """Ours is what has the annotation, or is as upstream leaves it; a label or a name proves nothing."""
    mine, live = paas(), bound(("my-argocd", SA))
    live["metadata"] |= {"labels": labels, "annotations": annotations}
    live["subjects"] += subjects
    state = seen(mine, binding=live, places=[namespace(mine)])
    assert bool(list(plan_role(state).writes())) == ours
    assert not doubtful(state, Plan()) or ours


def test_without_a_configuration_nothing_is_added_and_declarations_still_take_away() -> None:
    """What is bound stays for capabilities that are enabled (2.10)."""
    one, off, new = paas("one"), paas("off", argocd={"enabled": False}), paas("new")
    live = bound(("off-argocd", SA), ("one-argocd", "another"))
    places = [namespace(one), namespace(off), namespace(new)]
    assert wanted(plan_role(seen(one, off, new, binding=live, places=places, config=None))) == ["one-argocd/another"]


def test_names_that_no_object_can_have_stop_no_other() -> None:
    """They are left out, and told."""
    mine = paas()
    bad = config(argocd={"default_permissions": {"Not A Name": [ROLE], SA: [ROLE, "a/b"]}})
    assert wanted(plan_role(seen(mine, places=[namespace(mine)], config=bad))) == ["my-argocd/argo-sa"]
    state = GrantsSeen(mine, bad, {"my-argocd": namespace(mine)}, {(ROLE, ""): bound(("my-argocd", SA))})
    assert reasons(report_paas(state, ())) == {names.ACCOUNTS_PART: "InvalidName"}
    for account, role in (("Not A Name", ROLE), (SA, "a/b")):  # also where nothing is left to be given
        state = GrantsSeen(paas(finalizers=()), config(argocd={"default_permissions": {account: [role]}}))
        assert reasons(report_paas(state, ())) == {names.ACCOUNTS_PART: "InvalidName"}


# -- in namespaces ---------------------------------------------------------------------------------------------------


def test_permissions_move_into_namespaces_and_back_without_a_gap() -> None:
    """The old binding goes when the new one was seen."""
    mine, live = paas(), bound(("my-argocd", SA))
    inside, places = config("Namespace"), [namespace(mine)]
    first = plan_role(seen(mine, binding=live, places=places, config=inside, local=()))
    assert [str(each.key) for each in first.writes()] == [
        f"ClusterRoleBinding paas-{ROLE}",
        f"RoleBinding my-argocd/paas-sa-{ROLE}",
    ]
    assert [change.verb for change in first.changes(MANAGER)] == ["create"]
    local = stored(local_binding(ROLE, "my-argocd", [Subject("my-argocd", SA)], mine, inside))
    then = plan_role(seen(mine, binding=live, places=places, config=inside, local=(local,)))
    assert [type(each) for each in then.writes()] == [Delete, Apply]

    back = plan_role(seen(mine, places=places, local=(local,)))
    assert [change.verb for change in back.changes(MANAGER)] == ["create"]
    last = plan_role(seen(mine, binding=live, places=places, local=(local,)))
    assert [(change.verb, change.key.kind) for change in last.changes(MANAGER)] == [("delete", "RoleBinding")]


def test_a_namespace_that_refuses_its_binding_keeps_no_right_in_the_cluster() -> None:
    """That would be wider than what is declared."""
    mine = paas()
    state = seen(mine, binding=bound(("my-argocd", SA)), places=[namespace(mine)], config=config("Namespace"), local=())
    plan = plan_role(replace(state, refusing=frozenset({"my-argocd"})))
    assert [type(each) for each in plan.writes()] == [Delete, Apply]


def test_a_role_binding_of_another_kind_of_ours_is_left_alone() -> None:
    """paas-sa-x is also the name of a binding to the ClusterRole sa-x."""
    mine, inside = paas(), config("Namespace")
    other = stored(local_binding(ROLE, "my-argocd", [], mine, inside))
    other["metadata"]["labels"] = {names.MANAGED_BY_PAAS: "my"}
    other["roleRef"] = {**other["roleRef"], "name": f"sa-{ROLE}"}
    assert not list(plan_role(seen(mine, places=[namespace(mine)], config=inside, local=(other,))).writes())
    state = GrantsSeen(mine, inside, {"my-argocd": namespace(mine)}, {(ROLE, "my-argocd"): other})
    assert reasons(report_paas(state, ())) == {names.ACCOUNTS_PART: "BindingConflict"}


# -- finalizers ------------------------------------------------------------------------------------------------------


def test_finalizers_come_first_the_one_of_the_paas_before_those_of_namespaces() -> None:
    mine = paas(finalizers=())
    plan = plan_paas(GrantsSeen(mine, config(), {"my-argocd": namespace(mine, finalizers=())}))
    assert [[each.key.kind for each in stage if isinstance(each, Apply)] for stage in plan.stages] == [["Paas"], ["Namespace"]]


def test_a_paas_is_let_go_when_nothing_stands_for_it() -> None:
    gone = paas(deleted=True)
    assert not list(plan_paas(GrantsSeen(gone, named=frozenset({Subject("my-argocd", SA)}))).writes())
    assert [type(each) for each in plan_paas(GrantsSeen(gone)).writes()] == [RemoveFinalizers]


def test_a_paas_that_gives_nothing_any_more_is_let_go_and_its_part_given_up() -> None:
    """Not while somebody stands in a binding: the end does not depend on what it gave before."""
    told = [{"type": names.ACCOUNTS_PART, "status": "True", "reason": "Reconciling", "message": "", "observedGeneration": 1}]
    idle = paas(argocd={"enabled": False})
    idle.live["status"] = {"conditions": told}
    ours = {"manager": MANAGER, "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}}
    idle.live["metadata"]["managedFields"] = [ours]
    waits = GrantsSeen(idle, config(), named=frozenset({Subject("my-argocd", SA)}))
    assert not list(plan_paas(waits).writes())
    assert reasons(report_paas(waits, ())) == {names.ACCOUNTS_PART: "Reconciling"}
    free = GrantsSeen(idle, config())
    (write,) = plan_paas(free).writes()
    assert isinstance(write, RemoveFinalizers)
    (given_up,) = report_paas(free, ()).writes()
    assert isinstance(given_up, Apply)
    assert not given_up.wanted.get("status", {}).get("conditions")
    assert not list(plan_paas(GrantsSeen(idle, None)).writes())


@pytest.mark.parametrize(
    ("terminating", "wanted_", "named", "goes"),
    [(True, True, False, True), (True, False, True, False), (False, True, False, False), (False, False, False, True)],
)
def test_a_namespace_is_let_go_when_no_binding_names_it(*, terminating: bool, wanted_: bool, named: bool, goes: bool) -> None:
    """On its way out, or without permissions."""
    more = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if terminating else {}
    plan = plan_namespace(NamespaceSeen(namespace(paas(), **more), wanted_, named))
    assert bool(plan.changes(MANAGER)) == goes


# -- what is told ----------------------------------------------------------------------------------------------------


def reasons(plan: Plan) -> dict[str, str]:
    """Of the conditions that a plan writes."""
    return {
        each["type"]: each["reason"]
        for write in plan.writes()
        if isinstance(write, Apply)
        for each in (write.wanted.get("status") or {}).get("conditions") or ()
    }


def test_a_grant_that_is_on_its_way_is_not_told() -> None:
    """Neither while its namespace is made nor while the run of its role is to come."""
    mine = paas()
    assert reasons(report_paas(GrantsSeen(mine, config()), ())) == {}
    assert reasons(report_paas(GrantsSeen(mine, config(), {"my-argocd": namespace(mine)}), ())) == {}
    state = GrantsSeen(mine, config(), {"my-argocd": namespace(mine)}, {(ROLE, ""): bound(("my-argocd", SA))})
    assert reasons(report_paas(state, ())) == {names.ACCOUNTS_PART: "Reconciling"}


def test_what_cannot_be_given_is_told_with_its_fix() -> None:
    mine = paas()
    places = {"my-argocd": namespace(mine)}
    foreign = bound(("x", "y"))
    foreign["metadata"]["annotations"] = {}
    (write,) = report_paas(GrantsSeen(mine, config(), places, {(ROLE, ""): foreign}), ()).writes()
    assert isinstance(write, Apply)
    (told,) = write.wanted["status"]["conditions"]
    assert (told["status"], told["reason"]) == ("False", "ClusterRoleBindingConflict")
    assert f"ClusterRoleBinding paas-{ROLE}" in told["message"]
    assert "have an administrator" in told["message"]
    assert write.event is not None
    assert (write.event.type, write.event.reason) == ("Warning", "ClusterRoleBindingConflict")

    refusal = Refusal(shared_key(), "rights", "clusterroles is forbidden")
    assert reasons(report_paas(GrantsSeen(mine, config(), places, {}, refused={ROLE: refusal}), ())) == {
        names.ACCOUNTS_PART: "RightMissing"
    }


def test_a_paas_that_is_being_deleted_tells_only_what_holds_it() -> None:
    refusal = Refusal(shared_key(), "rights", "paas is forbidden")
    gone = GrantsSeen(paas(deleted=True), config())
    assert reasons(report_paas(gone, [refusal])) == {names.ACCOUNTS_PART: "RightMissing"}
    assert reasons(report_paas(gone, ())) == {}


def shared_key() -> Any:
    (write,) = plan_role(seen(paas(), places=[namespace(paas())])).writes()
    assert write.key.kind == CLUSTER_ROLE_BINDING.kind
    return write.key


def test_extra_permissions_that_are_not_configured_are_a_warning() -> None:
    """Nothing is bound, and the part is complete."""
    mine = paas(finalizers=(), other={"enabled": True, "extra_permissions": True})
    plan = report_paas(GrantsSeen(mine, config(other={})), ())
    assert reasons(plan) == {
        names.ACCOUNTS_PART: "Reconciling",
        f"{names.ACCOUNTS_PART}Warnings": "ExtraPermissionsNotConfigured",
    }


def test_a_paas_that_never_had_permissions_is_told_nothing() -> None:
    assert reasons(report_paas(GrantsSeen(paas(finalizers=(), argocd={"enabled": False}), config()), ())) == {}


def test_roles_are_known_by_the_names_of_bindings() -> None:
    assert role_named("ClusterRoleBinding", "paas-system:node") == "system:node"
    assert role_named("RoleBinding", "paas-sa-view") == "view"
    assert role_named("RoleBinding", "paas-view") == role_named("ClusterRoleBinding", "view") == ""
    assert subjects_of(None) == frozenset()
