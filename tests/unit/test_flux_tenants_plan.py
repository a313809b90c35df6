"""Plans for Tenants: what follows from what was seen, in which order, and what is told."""

from __future__ import annotations

from typing import Any

import pytest

from namespace_registration.tenants.plan import TenantSeen, plan_tenant, report_tenant
from rbac_aggregation.tenants.plan import TenantRights, doubtful, plan_rights, report_rights
from release_provisioning.tenants.plan import TenantDelivery, plan_delivery, report_delivery
from release_provisioning.tenants.plan import doubtful as doubtful_delivery
from tenantry.model.flux.names import LEAVING, MADE_FOR_TENANT, TENANCY_PROFILE, TENANT, TENANT_LABEL
from tenantry.model.flux.onboarding import GIT_REPOSITORY, KUSTOMIZATION, account_of, binding_of
from tenantry.model.flux.tenant import (
    DELIVERY_FINALIZER,
    DELIVERY_MANAGER,
    NAMESPACES_FINALIZER,
    NAMESPACES_MANAGER,
    RIGHTS_FINALIZER,
    RIGHTS_MANAGER,
    DeclaredTenant,
    TenantDefaults,
    defaults_of,
    marks_of,
    namespace_problem,
    tenant_of,
)
from tenantry.model.kinds import NAMESPACE, ROLE_BINDING, Object, key_of
from tenantry.model.plan import Edit, Plan
from tenantry.testing.objects import obj

FLUX = TenantDefaults()
SOURCE = {"url": "https://example.com/app", "branch": "main"}


def live(body: Object, **metadata: Any) -> Object:
    """An object as the API server has it, made by the functions."""
    name = body["metadata"]["name"]
    managers = (NAMESPACES_MANAGER, RIGHTS_MANAGER, DELIVERY_MANAGER)
    entries = [{"manager": each, "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {}}}} for each in managers]
    known = {
        "managedFields": entries,
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
    }
    return {**body, "metadata": {**known, **body["metadata"], **metadata}}


def tenant(name: str = "dev", *namespaces: str, finalizers: tuple[str, ...] = (), **spec: Any) -> DeclaredTenant:
    metadata = {"finalizers": list(finalizers), **spec.pop("metadata", {})}
    return tenant_of(live(obj(TENANT, name, spec={"namespaces": list(namespaces) or ["a"], **spec}), **metadata), FLUX)


def deleted(*finalizers: str, **spec: Any) -> DeclaredTenant:
    return tenant(finalizers=finalizers, metadata={"deletionTimestamp": "2026-01-02T00:00:00Z"}, **spec)


def namespace(name: str = "a", **labels: str) -> Object:
    return live(obj(NAMESPACE, name, labels={key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}))


def of_tenant(name: str = "a", owner: str = "dev") -> Object:
    return live(obj(NAMESPACE, name, labels=marks_of(owner)))


def account(place: str = "a") -> Object:
    each = tenant()
    return live(account_of(place, each.names, each.labels))


def binding(place: str = "a", role: str = "cluster-admin") -> Object:
    each = tenant()
    return live(binding_of(place, each.names, role, each.labels))


def written(plan: Plan) -> list[str]:
    """What a plan would really write, in order."""
    return [f"{each.verb} {each.key}" for each in plan.changes("tenantry-x")]


# -- who has a namespace -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "spec", "reason"),
    [
        (None, {}, ""),
        (None, {"skipNamespace": True}, "NamespaceMissing"),
        (of_tenant(), {}, ""),
        (live(obj(NAMESPACE, "a", labels={TENANT_LABEL: "dev"})), {}, ""),
        (namespace(), {}, "NamespaceNotAdopted"),
        (namespace(), {"adoptNamespaces": True}, ""),
        (namespace(), {"skipNamespace": True}, ""),
        (live(obj(NAMESPACE, "a", labels={TENANT_LABEL: "other"})), {"adoptNamespaces": True}, "NamespaceConflict"),
        (live(obj(NAMESPACE, "a", labels={TENANT_LABEL: "other"})), {"skipNamespace": True}, "NamespaceConflict"),
        (of_tenant(owner="gone"), {"adoptNamespaces": True}, "NamespaceConflict"),
        (live(obj(NAMESPACE, "a", labels={**marks_of("dev"), TENANT_LABEL: "other"})), {}, ""),
        (live(of_tenant(), deletionTimestamp="2026-01-02T00:00:00Z"), {}, "NamespaceTerminating"),
    ],
)
def test_a_namespace_is_a_tenants_or_it_is_told_why_not(found: Object | None, spec: dict[str, Any], reason: str) -> None:
    """By its labels, and by what the Tenant says of namespaces that are there."""
    problem = namespace_problem(tenant(**spec), "a", found, [], FLUX)
    assert (problem.reason if problem is not None else "") == reason


def test_the_older_of_two_has_it_unless_the_newer_has_it_already() -> None:
    """Age decides what nobody has; what somebody has stays his."""
    old = tenant("old", metadata={"creationTimestamp": "2025-01-01T00:00:00Z"})
    new = tenant("new")
    assert namespace_problem(new, "a", None, [old, new], FLUX) is not None
    assert namespace_problem(old, "a", None, [old, new], FLUX) is None
    assert namespace_problem(new, "a", of_tenant(owner="new"), [old, new], FLUX) is None
    assert namespace_problem(old, "a", of_tenant(owner="new"), [old, new], FLUX) is not None


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-x", "flux-system", "tenantry-system"])
def test_the_platforms_namespaces_are_nobodys(name: str) -> None:
    """Those of Kubernetes, ours, and those that the profile exempts."""
    assert FLUX.is_platforms(name)
    profile = defaults_of(obj(TENANCY_PROFILE, "default", spec={"exemptNamespaces": ["x"], "defaultServiceAccount": "deployer"}))
    assert profile.is_platforms(name) == (name != "flux-system")
    assert profile.is_platforms("x")
    assert profile.account == "deployer"


# -- namespaces and accounts -------------------------------------------------------------------------------------


def test_a_new_tenant_is_made_in_order() -> None:
    """The finalizer first, then each namespace and its account."""
    seen = TenantSeen("dev", tenant("dev", "a", "b"), namespaces={"a": None, "b": None})
    assert written(plan_tenant(seen)) == [
        "update Tenant dev",
        "create Namespace a",
        "create ServiceAccount a/flux",
        "create Namespace b",
        "create ServiceAccount b/flux",
    ]


def test_nothing_is_written_where_a_namespace_is_somebody_elses() -> None:
    """Only the others are made, and the condition names it."""
    seen = TenantSeen("dev", tenant("dev", "a", "b"), namespaces={"a": of_tenant(owner="x"), "b": None})
    assert written(plan_tenant(seen)) == ["update Tenant dev", "create Namespace b", "create ServiceAccount b/flux"]
    (told,) = report_tenant(seen, ()).writes()
    status = told.wanted["status"]  # type: ignore[union-attr]
    assert status["namespaces"] == ["b"]
    assert status["conditions"][0]["reason"] == "NamespaceConflict"


def test_what_leaves_waits_for_its_rights() -> None:
    """While a RoleBinding is left in a namespace nothing is taken; then the account, and the labels."""
    seen = TenantSeen("dev", tenant("dev", "a"), namespaces={"a": of_tenant(), "b": of_tenant("b")}, accounts=(account("b"),))
    waiting = TenantSeen("dev", seen.tenant, namespaces=seen.namespaces, accounts=seen.accounts, bindings=(binding("b"),))
    gone = ["delete ServiceAccount b/flux", *["update Namespace b"] * 3]
    assert [each for each in written(plan_tenant(waiting)) if " b" in each] == []
    assert [each for each in written(plan_tenant(seen)) if " b" in each] == gone


@pytest.mark.parametrize(
    ("others", "writes"),
    [
        ((), ["Apply"]),
        ((TENANT_LABEL,), ["RemoveLabel toolkit.fluxcd.io/tenant", "Apply"]),
        ((TENANT_LABEL, MADE_FOR_TENANT), ["RemoveLabel toolkit.fluxcd.io/tenant", "Apply", "RemoveLabel tenantry.dev/tenant"]),
    ],
)
def test_labels_of_a_namespace_that_leaves_go_whoever_wrote_them(others: tuple[str, ...], writes: list[str]) -> None:
    """What nobody else wrote goes as we give it up; the label that the namespace is found by goes last."""
    entries = [
        {"manager": manager, "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {f"f:{each}": {} for each in keys}}}}
        for manager, keys in ((NAMESPACES_MANAGER, marks_of("dev")), ("kubectl", others))
    ]
    left = live(obj(NAMESPACE, "b", labels=marks_of("dev")), managedFields=entries)
    changes = plan_tenant(TenantSeen("dev", None, namespaces={"b": left})).changes("tenantry-x")
    said = [f"{type(each.write).__name__} {getattr(each.write, 'label', '')}".strip() for each in changes]
    assert said == writes


@pytest.mark.parametrize("finalizer", [RIGHTS_FINALIZER, DELIVERY_FINALIZER])
def test_a_tenant_that_goes_waits_for_the_others(finalizer: str) -> None:
    """Accounts and namespaces go last, the finalizer after them."""
    places = {"a": of_tenant()}
    seen = TenantSeen("dev", deleted(NAMESPACES_FINALIZER, finalizer), namespaces=places, accounts=(account(),))
    assert written(plan_tenant(seen)) == []
    seen = TenantSeen("dev", deleted(NAMESPACES_FINALIZER), namespaces=places, accounts=(account(),))
    assert written(plan_tenant(seen)) == [
        "delete ServiceAccount a/flux",
        *["update Namespace a"] * 3,
        "update Tenant dev",
    ]
    seen = TenantSeen("dev", deleted(NAMESPACES_FINALIZER, deletionPolicy="Delete"), namespaces=places)
    assert written(plan_tenant(seen)) == ["delete Namespace a", "update Tenant dev"]


def test_an_account_of_another_name_goes_when_no_binding_names_it() -> None:
    """Until then who delivers as it can."""
    other = tenant(serviceAccountName="deployer")
    places = {"a": of_tenant()}
    seen = TenantSeen("dev", other, namespaces=places, accounts=(account(),), bindings=(binding(),))
    assert "delete ServiceAccount a/flux" not in written(plan_tenant(seen))
    seen = TenantSeen("dev", other, namespaces=places, accounts=(account(),))
    assert "delete ServiceAccount a/flux" in written(plan_tenant(seen))


# -- rights ------------------------------------------------------------------------------------------------------


def test_a_binding_stands_beside_the_account() -> None:
    """Not where there is none; the condition waits for it."""
    seen = TenantRights("dev", tenant("dev", "a", "b"), accounts=(account(),))
    assert written(plan_rights(seen)) == ["update Tenant dev", "create RoleBinding a/dev-reconciler"]
    (told,) = report_rights(seen, ()).writes()
    (said,) = told.wanted["status"]["conditions"]  # type: ignore[union-attr]
    assert (said["status"], said["message"]) == ("Unknown", "waits for account flux in b")


def test_a_binding_for_another_role_is_made_anew() -> None:
    """Deleted, then made."""
    old = binding(role="view")
    seen = TenantRights("dev", tenant(), accounts=(account(),), bindings={key_of(old): old})
    assert written(plan_rights(seen))[1:] == ["delete RoleBinding a/dev-reconciler", "create RoleBinding a/dev-reconciler"]


def test_a_binding_that_was_made_anew_is_looked_at_again() -> None:
    """What another process has put in the place of the one that was seen is another one; what gives is not doubtful."""
    looks = []
    for uid in ("one", "one", "another"):
        old = binding(role="view")
        old["metadata"]["uid"] = uid
        seen = TenantRights("dev", tenant(), accounts=(account(),), bindings={key_of(old): old})
        looks.append(doubtful(seen, plan_rights(seen)))
    assert looks[0] == looks[1]
    assert not looks[2] <= looks[1]
    seen = TenantRights("dev", tenant(), accounts=(account(),))
    assert doubtful(seen, plan_rights(seen)) == frozenset()


def test_a_binding_of_others_to_another_role_is_told() -> None:
    """It is not deleted; one to the same role is taken over."""
    foreign = live(obj(ROLE_BINDING, "dev-reconciler", "a", **_parts(binding(role="view"))), managedFields=[])
    seen = TenantRights("dev", tenant(), accounts=(account(),), bindings={key_of(foreign): foreign})
    assert written(plan_rights(seen)) == []
    (told,) = report_rights(seen, ()).writes()
    (said,) = told.wanted["status"]["conditions"]  # type: ignore[union-attr]
    assert (said["status"], said["reason"]) == ("False", "ObjectConflict")
    assert "RoleBinding a/dev-reconciler is there, gives another role" in said["message"]
    same = live(obj(ROLE_BINDING, "dev-reconciler", "a", **_parts(binding())), managedFields=[])
    seen = TenantRights("dev", tenant(), accounts=(account(),), bindings={key_of(same): same})
    assert written(plan_rights(seen)) == ["update Tenant dev", "update RoleBinding a/dev-reconciler"]


def _parts(found: Object) -> dict[str, Any]:
    return {part: found[part] for part in ("roleRef", "subjects")}


def test_a_binding_outlives_what_delivers_with_it() -> None:
    """In a namespace that leaves, and of a Tenant that goes."""
    left = {key_of(each): each for each in (binding("b"),)}
    seen = TenantRights("dev", tenant("dev", "a"), bindings=left, delivering=frozenset({"b"}))
    assert written(plan_rights(seen)) == []
    assert written(plan_rights(TenantRights("dev", tenant("dev", "a"), bindings=left))) == ["delete RoleBinding b/dev-reconciler"]
    going = TenantRights("dev", deleted(RIGHTS_FINALIZER, DELIVERY_FINALIZER), bindings=left)
    assert written(plan_rights(going)) == []
    going = TenantRights("dev", deleted(RIGHTS_FINALIZER), bindings=left)
    assert written(plan_rights(going)) == ["delete RoleBinding b/dev-reconciler", "update Tenant dev"]


def test_a_binding_of_others_is_not_taken() -> None:
    """Nor is what an unknown Tenant has left kept."""
    foreign = live(obj(ROLE_BINDING, "x", "b"))
    assert written(plan_rights(TenantRights("dev", None, bindings={key_of(foreign): foreign}))) == []
    labelled = live(obj(ROLE_BINDING, "x", "b", labels=marks_of("dev")), managedFields=[])
    assert written(plan_rights(TenantRights("dev", None, bindings={key_of(labelled): labelled}))) == []
    left = binding("b")
    assert written(plan_rights(TenantRights("dev", None, bindings={key_of(left): left}))) == [
        "delete RoleBinding b/dev-reconciler"
    ]


# -- deliveries --------------------------------------------------------------------------------------------------


def made(
    place: str = "a", *, owner: str = "dev", kinds: tuple[Any, ...] = (GIT_REPOSITORY, KUSTOMIZATION), leaving: bool = False
) -> dict[Any, Object]:
    marks = {"annotations": {LEAVING: "true"}} if leaving else {}
    found = (live(obj(kind, "dev", place, labels={MADE_FOR_TENANT: owner}, spec={}), **marks) for kind in kinds)
    return {key_of(each): each for each in found}


def test_a_delivery_waits_for_rights() -> None:
    """Then the source and the Kustomization are made, after the finalizer."""
    declared = tenant(source=SOURCE)
    assert written(plan_delivery(TenantDelivery("dev", declared))) == []
    assert written(plan_delivery(TenantDelivery("dev", declared, bound=True))) == [
        "update Tenant dev",
        "create GitRepository a/dev",
        "create Kustomization a/dev",
    ]


def test_the_kustomization_goes_first() -> None:
    """The source, and the finalizer, when it is gone."""
    going = deleted(DELIVERY_FINALIZER, source=SOURCE)
    assert written(plan_delivery(TenantDelivery("dev", going, made=made()))) == ["delete Kustomization a/dev"]
    pruning = {
        key: live(each, deletionTimestamp="2026-01-02T00:00:00Z") if key.kind == "Kustomization" else each
        for key, each in made().items()
    }
    assert written(plan_delivery(TenantDelivery("dev", going, made=pruning))) == []
    first = TenantDelivery("dev", going, made=made(kinds=(GIT_REPOSITORY,)))
    assert written(plan_delivery(first)) == ["update GitRepository a/dev"]
    last = TenantDelivery("dev", going, made=made(kinds=(GIT_REPOSITORY,), leaving=True))
    assert written(plan_delivery(last)) == ["delete GitRepository a/dev", "update Tenant dev"]


def test_what_is_made_or_goes_is_looked_at_twice() -> None:
    """A Tenant that was gone, or was answered as it was before, is seen so by the second look; what is there is not doubtful."""
    seen = TenantDelivery("dev", tenant(source=SOURCE), bound=True)
    assert doubtful_delivery(seen, plan_delivery(seen)) == {("made", key) for key in made()}
    seen = TenantDelivery("dev", tenant(source=SOURCE), made=made(), bound=True)
    assert doubtful_delivery(seen, plan_delivery(seen)) == frozenset()
    going = [TenantDelivery("dev", None, made=made(kinds=(GIT_REPOSITORY,), leaving=True)) for _ in range(2)]
    next(iter(going[1].made.values()))["metadata"]["uid"] = "another"
    before, after = (doubtful_delivery(each, plan_delivery(each)) for each in going)
    assert before
    assert not after <= before


def test_a_source_is_marked_before_it_is_deleted() -> None:
    """Who delivers from it again meanwhile takes the mark off, before the Kustomization: the deletion is of an older state."""
    for leaving, verb in ((False, "update"), (True, "delete")):
        gone = TenantDelivery("dev", None, made=made(kinds=(GIT_REPOSITORY,), leaving=leaving))
        assert written(plan_delivery(gone)) == [f"{verb} GitRepository a/dev"]
    declared = tenant(source=SOURCE, finalizers=(DELIVERY_FINALIZER,))
    source, _ = (write.wanted for write in list(plan_delivery(TenantDelivery("dev", declared, bound=True)).writes())[1:])  # type: ignore[union-attr]
    there = live(source, annotations={LEAVING: "true"})
    back = TenantDelivery("dev", declared, made={key_of(there): there}, bound=True)
    assert [str(change) for change in plan_delivery(back).changes(DELIVERY_MANAGER)][-2:] == [
        "update GitRepository a/dev: ~ /metadata/annotations/tenantry.dev~1leaving",
        "create Kustomization a/dev",
    ]


def test_a_mark_that_somebody_else_set_stays() -> None:
    """On a Kustomization, and on a source that is not made for the Tenant, it means nothing."""
    declared = tenant(source=SOURCE, adoptNamespaces=True, finalizers=(DELIVERY_FINALIZER,))
    for marked in (made(kinds=(KUSTOMIZATION,), leaving=True), made(owner="x", kinds=(GIT_REPOSITORY,), leaving=True)):
        plan = plan_delivery(TenantDelivery("dev", declared, made=marked, bound=True))
        assert not [each for each in plan.writes() if isinstance(each, Edit)]


def test_somebody_elses_source_is_left_alone() -> None:
    """It is told, and with ``adoptNamespaces`` taken over."""
    foreign = made(owner="x", kinds=(GIT_REPOSITORY,))
    seen = TenantDelivery("dev", tenant(source=SOURCE), made=foreign, bound=True)
    assert written(plan_delivery(seen)) == []
    (told,) = report_delivery(seen, ()).writes()
    assert told.wanted["status"]["conditions"][0]["reason"] == "ObjectConflict"  # type: ignore[union-attr]
    seen = TenantDelivery("dev", tenant(source=SOURCE, adoptNamespaces=True), made=foreign, bound=True)
    assert "update GitRepository a/dev" in written(plan_delivery(seen))


def test_without_flux_it_is_told_what_to_do() -> None:
    """And nothing is tried."""
    seen = TenantDelivery("dev", tenant(source=SOURCE), served=False, bound=True)
    assert written(plan_delivery(seen)) == []
    (told,) = report_delivery(seen, ()).writes()
    assert told.wanted["status"]["conditions"][0]["reason"] == "FluxMissing"  # type: ignore[union-attr]


# -- all of it ---------------------------------------------------------------------------------------------------


def condition(type_: str, status: str, reason: str = "R", generation: int = 1) -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": "m", "observedGeneration": generation}


@pytest.mark.parametrize(
    ("parts", "status", "reason"),
    [
        ([], "Unknown", "Waiting"),
        ([condition("RightsBound", "True")], "Unknown", "Waiting"),
        ([condition("RightsBound", "True"), condition("Delivered", "True")], "True", "Reconciled"),
        ([condition("RightsBound", "True"), condition("Delivered", "True", generation=0)], "Unknown", "Waiting"),
        ([condition("RightsBound", "False", "RightMissing"), condition("Delivered", "True")], "False", "RightMissing"),
    ],
)
def test_ready_follows_from_all_parts(parts: list[Object], status: str, reason: str) -> None:
    """Of the current generation."""
    each = tenant(source=SOURCE)
    seen = TenantSeen("dev", tenant_of({**each.live, "status": {"conditions": parts}}, FLUX), namespaces={"a": of_tenant()})
    (told,) = report_tenant(seen, ()).writes()
    (said,) = told.wanted["status"]["conditions"]  # type: ignore[union-attr]
    assert (said["type"], said["status"], said["reason"]) == ("Ready", status, reason)
