"""The pure part of Paas' rights: whose a name is, what is bound where, in which order it is written, and what is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rbac_aggregation.paas.argo import conflicting_fields, policy_text
from rbac_aggregation.paas.claims import Claim, Claimants, GroupClaimant, KnownNames, claims_of, is_behind, kept_of_paas, other_of
from rbac_aggregation.paas.plan import doubtful, plan_paas, plan_rest
from rbac_aggregation.paas.report import report_paas
from rbac_aggregation.paas.seen import MANAGER, RBAC, Policy, Seen, rights_of
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, ROLE_BINDING, Key, Object, key_in, object_of
from tenantry.model.paas.config import PaasConfig, config_of
from tenantry.model.paas.declared import paas_of
from tenantry.model.paas.names import GROUP, PAAS, PAAS_CONFIG, RIGHTS_FINALIZER, RIGHTS_PART
from tenantry.model.paas.ours import marked
from tenantry.model.paas.places import spec_places
from tenantry.model.plan import Apply, Delete, Plan, Refusal, RemoveFinalizers

MAPPINGS = {"default": ["view"], "view": ["view"], "edit": ["edit"], "admin": ["admin"]}
US, THEM = {"users": ["me"], "roles": ["admin"]}, {"users": ["friend"]}


def config(**spec: Any) -> PaasConfig:
    return config_of(object_of(PAAS_CONFIG, {"name": "c"}, spec={"rolemappings": MAPPINGS, **spec}))


def stored(name: str = "my", created: str = "2026-01-02T00:00:00Z", **spec: Any) -> Object:
    metadata = {"name": name, "uid": f"uid-{name}", "generation": 1, "creationTimestamp": created, "resourceVersion": "1"}
    told = {"type": "tenantry.dev/Namespaces", "status": "True", "observedGeneration": 1}
    return object_of(PAAS, {**metadata, "finalizers": [RIGHTS_FINALIZER]}, spec=spec, status={"conditions": [told]})


WRITTEN = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {}}


def group(name: str, paas: str = "my", users: Sequence[str] = ("me",)) -> Object:
    labels, annotations = marked(paas, f"uid-{paas}")
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels, "annotations": annotations}
    return object_of(GROUP, {**metadata, "managedFields": [WRITTEN]}, users=list(users))


def subjects(*names: str) -> list[Object]:
    return [{"apiGroup": RBAC, "kind": "Group", "name": name} for name in names]


def binding(role: str, *names: str, namespace: str = "my-a", uid: str = "uid-my") -> Object:
    labels, annotations = marked("my", uid)
    metadata = {"name": f"paas-{role}", "namespace": namespace, "uid": role, "resourceVersion": "1", "managedFields": [WRITTEN]}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
    return object_of(
        ROLE_BINDING, {**metadata, "labels": labels, "annotations": annotations}, roleRef=reference, subjects=subjects(*names)
    )


def seen(
    spec: Mapping[str, Any],
    *bindings: Object,
    groups: Mapping[str, Object | None] | None = None,
    configured: PaasConfig | None = None,
    served: bool = True,
    **more: Any,
) -> Seen:
    """A Paas whose namespaces are all there; Groups that are not given are those that it wants."""
    paas = paas_of(stored(**{"namespaces": {"a": {}}, **spec}))
    using = configured or config()
    places = spec_places(paas, using)
    held = {name: object_of(NAMESPACE, {"name": name}) for name in places}
    wanted = {f"my-{key}": group(f"my-{key}", users=each.users) for key, each in paas.groups.items() if not each.query}
    live = wanted if groups is None else groups
    claims = claims_of(paas, using, KnownNames(served, live))
    found = Seen("my", paas, using, places, held, places, groups=live, served=served, claims=claims, bindings=bindings)
    return replace(found, **more)


def key(role: str, namespace: str = "my-a") -> Key:
    return key_in(ROLE_BINDING, f"paas-{role}", namespace)


def needed(plan: Plan) -> list[list[str]]:
    """What would be written, stage by stage; stages within a stage are joined in their order."""
    return [[text for text in stage if text] for stage in _stages(plan) if any(stage)]


def _stages(plan: Plan) -> list[list[str]]:
    found: list[list[str]] = []
    for stage in plan.stages:
        within = [_stages(each) for each in stage if isinstance(each, Plan)]
        alone = [str(write.change(MANAGER) or "") for write in stage if not isinstance(write, Plan)]
        depth = max(map(len, within), default=0)
        rows = [[text for each in within if number < len(each) for text in each[number]] for number in range(max(depth, 1))]
        rows[0] = [*alone, *rows[0]]
        found += rows
    return found


# -- whose a name is -------------------------------------------------------------------------------------------------


def claim(spec: Mapping[str, Any], of: str = "g", names: KnownNames | None = None, configured: PaasConfig | None = None) -> Claim:
    return claims_of(paas_of(stored(groups=spec)), configured or config(), names or KnownNames(served=True))[of]


def reason(found: Claim) -> str:
    return found.problem.reason if found.problem is not None else ""


def test_a_group_is_bound_when_its_object_is_proven() -> None:
    """Before that it is to be made, and no binding names it; without Groups there is nothing to wait for."""
    assert claim({"g": US}) == Claim("g", "my-g", True, wants_object=True)
    assert claim({"g": US}, names=KnownNames(True, {"my-g": group("my-g")})) == Claim("g", "my-g", True, None, True, True)
    assert claim({"g": US}, names=KnownNames(False)) == Claim("g", "my-g", True, bound=True)
    assert claim({"g": {"query": "CN=x"}}) == Claim("g", "x", False, bound=True)


@pytest.mark.parametrize(
    "there", [object_of(GROUP, {"name": "my-g", "labels": marked("my", "")[0]}, users=["root"]), group("my-g", "other")]
)
def test_a_group_of_others_is_neither_made_nor_bound(there: Object) -> None:
    """p-48: a label proves nothing, and neither does the mark of another Paas."""
    found = claim({"g": US}, names=KnownNames(True, {"my-g": there}))
    assert (reason(found), found.bound, found.wants_object) == ("GroupConflict", False, False)


def test_a_query_names_no_group_that_another_paas_made() -> None:
    """p-101; one of the identity provider's it may name."""
    query = {"g": {"query": "CN=x"}}
    assert reason(claim(query, names=KnownNames(True, {"x": group("x", "other")}))) == "GroupConflict"
    assert reason(claim(query, names=KnownNames(True, {"x": object_of(GROUP, {"name": "x"})}))) == ""


def test_a_generated_name_gives_way() -> None:
    """To a query of its own Paas, of any other, to an older Paas, to what is bound still, and to what the cluster binds."""

    def other(created: str = "2026-01-01", **names: frozenset[str]) -> KnownNames:
        made = GroupClaimant("o", (created, "o"), names.get("generates", frozenset()), names.get("queries", frozenset()))
        return KnownNames(True, others=(replace(made, holds=names.get("holds", frozenset())),))

    taken = frozenset({"my-g"})
    assert reason(claim({"g": US, "q": {"query": "CN=my-g"}})) == "GroupConflict"
    for names in (other(queries=taken), other(generates=taken), other(holds=taken), KnownNames(True, reserved=taken)):
        assert reason(claim({"g": US}, names=names)) == "GroupConflict"
    assert reason(claim({"g": US}, names=other("2026-02-01", generates=taken))) == ""
    assert reason(claim({"g": US}, names=replace(other(queries=taken), groups={"my-g": group("my-g")}))) == ""


def test_users_are_blocked_and_groups_without_any_are_not() -> None:
    """p-120."""
    block = config(feature_flags={"group_user_management": "block"})
    found = {"g": US, "e": {}, "q": {"query": "x", "users": ["me"]}}
    assert [reason(claim(found, of, configured=block)) for of in found] == ["GroupUsersBlocked", "", ""]


def test_another_paas_holds_a_name_until_its_rights_are_newer() -> None:
    """What is kept of it says so: by the finalizer and the observed generation."""
    live = stored(groups={"x": {"query": "CN=q", "users": ["a"] * 9}, "y": {}})
    kept = kept_of_paas(live)
    assert kept["spec"] == {"groups": {"x": {"query": "CN=q"}, "y": {}}}
    assert (other_of(kept).generates, other_of(kept).queries) == ({"my-y"}, {"q"})
    assert not is_behind(kept)  # it never had another generation
    kept["metadata"]["generation"] = 2
    assert is_behind(kept)
    assert other_of(kept, [binding("view", "old")]).holds == {"old"}
    kept["status"]["conditions"] = [{"type": RIGHTS_PART, "observedGeneration": 2}]
    assert not is_behind(kept)
    kept["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    assert is_behind(kept)
    assert not other_of(kept).queries
    kept["metadata"]["finalizers"] = []
    assert not is_behind(kept)


def test_what_another_paas_declares_is_worked_out_once_for_each_version() -> None:
    """And each time where it has bindings."""
    claimants, live = Claimants(), kept_of_paas(stored(groups={"y": {}}))
    known = claimants.of(live)
    assert claimants.of(live) is known
    assert claimants.of(live, [binding("view", "old")]).holds == {"old"}
    assert claimants.of(live) is known
    live["metadata"]["resourceVersion"] = "2"
    live["spec"] = {"groups": {}}
    assert claimants.of(live).generates == frozenset()


# -- what is bound ---------------------------------------------------------------------------------------------------


def test_subjects_are_sorted_and_each_stands_once() -> None:
    """p-71: two groups of one name are one subject."""
    groups = {"z": THEM, "a": THEM, "p": {"query": "CN=others"}, "q": {"query": "others"}}
    found = rights_of(seen({"groups": groups}))
    assert list(found) == [key("view")]
    assert [each["name"] for each in found[key("view")].subjects] == ["my-a", "my-z", "others"]


def test_users_take_the_place_of_groups_where_none_are_served() -> None:
    """p-104: but for those whose name begins with system:, and for queries."""
    groups = {"g": {"users": ["you", "me", "system:admin"]}, "q": {"query": "CN=q"}, "e": {}}
    found = rights_of(seen({"groups": groups}, served=False, configured=config(groupFallback="Users")))
    names = [(each["kind"], each["name"]) for each in found[key("view")].subjects]
    assert names == [("Group", "my-e"), ("Group", "q"), ("User", "me"), ("User", "you")]
    assert [each["kind"] for each in rights_of(seen({"groups": groups}, served=False))[key("view")].subjects] == ["Group"] * 3


def test_a_namespace_has_the_groups_that_it_is_restricted_to() -> None:
    """p-86: a key that the Paas lacks counts for nothing, and never for all."""
    spec = {"groups": {"us": US, "them": THEM}, "namespaces": {"a": {"groups": ["them", "nobody"]}, "b": {"groups": ["nobody"]}}}
    assert list(rights_of(seen(spec))) == [key("view")]


# -- the order of writes ---------------------------------------------------------------------------------------------


def test_groups_are_made_before_anything_names_them() -> None:
    """2.17: the finalizer, then the Group; its bindings come with the next look."""
    first = seen({"groups": {"us": US}}, groups={})
    assert first.paas is not None
    live = {**first.paas.live, "metadata": {**first.paas.live["metadata"], "finalizers": []}}
    assert needed(plan_paas(replace(first, paas=paas_of(live)))) == [
        ["update Paas my: ~ metadata.finalizers[tenantry.dev/rbac-aggregation]"],
        ["create Group my-us"],
    ]
    assert report_paas(first, ()).changes(MANAGER) == []
    assert needed(plan_paas(seen({"groups": {"us": US}}))) == [["create RoleBinding my-a/paas-admin"]]


def test_new_bindings_come_before_those_that_go() -> None:
    """p-175: in each namespace for itself."""
    spec = {"groups": {"us": {"users": ["me"], "roles": ["edit"]}}, "namespaces": {"a": {}, "b": {}}}
    found = seen(spec, binding("view", "my-us"), binding("view", "my-us", namespace="my-b"))
    assert needed(plan_paas(found)) == [
        ["create RoleBinding my-a/paas-edit", "create RoleBinding my-b/paas-edit"],
        ["delete RoleBinding my-a/paas-view", "delete RoleBinding my-b/paas-view"],
    ]


def test_a_group_goes_after_its_bindings() -> None:
    """p-174; what a binding loses is looked at twice."""
    found = seen(
        {"groups": {"us": {"users": ["me"]}}},
        binding("view", "my-them", "my-us"),
        groups={"my-us": group("my-us"), "my-them": group("my-them")},
    )
    plan = plan_paas(found)
    assert needed(plan) == [["update RoleBinding my-a/paas-view: ~ subjects"], ["delete Group my-them"]]
    assert doubtful(found, plan) == {
        (key("view"), "Group", "my-them"),
        ("Delete", key_in(GROUP, "my-them", "")),
        ("named by", key_in(GROUP, "my-them", ""), frozenset({key("view")})),
    }


def test_which_bindings_name_a_group_is_looked_at_twice() -> None:
    """p-174: a list of before, in which one of them is not there yet, lets no Group go before it."""
    spec, groups = {"groups": {"us": {"users": ["me"]}}}, {"my-us": group("my-us"), "my-them": group("my-them")}
    both = [binding("view", "my-them", "my-us", namespace=each) for each in ("my-a", "my-b")]
    looks = (seen(spec, *found, groups=groups) for found in (both, both[:1]))
    now, stale = (doubtful(look, plan_paas(look)) for look in looks)
    assert ("Delete", key_in(GROUP, "my-them", "")) in now & stale
    assert not stale <= now


def test_a_group_that_went_is_made_again_when_two_looks_agree() -> None:
    """Of a Paas that says that all is there; the Groups of a new one are made at once."""
    spec = {"groups": {"us": {"users": ["me"]}}}
    new = seen(spec, groups={})
    assert doubtful(new, plan_paas(new)) == frozenset()
    live = stored(namespaces={"a": {}}, **spec)
    live["status"]["conditions"].append({"type": RIGHTS_PART, "status": "True", "observedGeneration": 1})
    settled = replace(new, paas=paas_of(live))
    assert doubtful(settled, plan_paas(settled)) == {("made", key_in(GROUP, "my-us", ""))}


def test_what_has_to_go_goes_although_something_was_refused() -> None:
    """p-176: in the namespace that refused, and a Group that nothing names; one that is named still waits."""
    spec = {"groups": {"us": {"users": ["me"], "roles": ["edit"]}}, "namespaces": {"a": {}, "b": {}}}
    groups = {name: group(name) for name in ("my-us", "my-old", "my-free")}
    found = seen(spec, binding("view", "my-old", "my-us"), groups=groups)
    refused = [Refusal(key("edit"), "quota", "exceeded quota")]
    assert needed(Plan((tuple(plan_rest(found, refused)),))) == [["delete RoleBinding my-a/paas-view", "delete Group my-free"]]
    assert plan_rest(found, ()) == []


def test_who_leaves_a_binding_leaves_it_although_others_may_not_come() -> None:
    """A binding that gets and loses subjects is one write; where that is refused it only loses them."""
    found = seen({"groups": {"us": {}, "new": {}}}, binding("view", "my-old", "my-us"))
    (write,) = plan_rest(found, [Refusal(key("view"), "admission", "no")])
    assert isinstance(write, Apply)
    assert write.wanted["subjects"] == subjects("my-us")
    (gone,) = plan_rest(seen({"groups": {"new": {}}}, binding("view", "my-old")), [Refusal(key("view"), "admission", "no")])
    assert isinstance(gone, Delete)


def test_without_a_configuration_rights_are_only_taken_away() -> None:
    """p-182: who still applies stays, whatever role that was; nothing is added, and no Group made."""
    found = seen({"groups": {"us": US, "new": US}}, binding("edit", "my-old", "my-us"), groups={"my-us": group("my-us")})
    found = replace(found, config=None)
    assert needed(plan_paas(found)) == [["update RoleBinding my-a/paas-edit: ~ subjects"]]
    condition = find_condition(next(report_paas(found, ()).writes()).wanted, RIGHTS_PART)  # type: ignore[union-attr]
    assert condition is not None
    assert condition["reason"] == "NoPaasConfig"


def test_another_role_or_another_paas_of_the_name_is_replaced() -> None:
    """p-114: a role reference cannot change."""
    other = binding("view", "my-us")
    other["roleRef"] = {**other["roleRef"], "name": "edit"}
    assert needed(plan_paas(seen({"groups": {"us": {}}}, other))) == [["delete RoleBinding my-a/paas-view"]]
    left = binding("view", "my-us", uid="gone")
    found = seen({"groups": {"us": {}}}, orphans=(left, group("my-x", "gone")), foreign=frozenset({key("view")}))
    assert needed(plan_paas(found)) == [["delete RoleBinding my-a/paas-view"], ["delete Group my-x"]]


def test_a_deleted_paas_loses_bindings_then_groups_then_the_finalizer() -> None:
    """p-173: the finalizer only when nothing is left to be seen."""
    found = seen({"groups": {"us": {}}}, binding("view", "my-us"))
    assert found.paas is not None
    found = replace(found, paas=replace(found.paas, deleted=True), places={})
    assert needed(plan_paas(found)) == [["delete RoleBinding my-a/paas-view"], ["delete Group my-us"]]
    (last,) = plan_paas(replace(found, bindings=(), groups={})).writes()
    assert isinstance(last, RemoveFinalizers)
    assert last.finalizers == (RIGHTS_FINALIZER,)


def test_what_stands_as_declared_is_not_written() -> None:
    """Nor is it when it is looked at again."""
    found = seen({"groups": {"us": {"users": ["me"]}, "q": {"query": "CN=q"}}}, binding("view", "my-us", "q"))
    assert needed(plan_paas(found)) == []


def test_what_somebody_put_in_the_place_of_ours_is_written_once() -> None:
    """It has our marks and is equal, and nothing of it is ours: it could not be given up."""
    found = seen({"groups": {"us": {"users": ["me"]}, "q": {"query": "CN=q"}}}, binding("view", "my-us", "q"))
    (live,) = found.bindings
    live["metadata"]["managedFields"] = [{**WRITTEN, "manager": "kubectl-create"}]
    assert needed(plan_paas(found)) == [["update RoleBinding my-a/paas-view: ~ metadata.managedFields"]]


# -- what is told ----------------------------------------------------------------------------------------------------


def told(found: Seen, *refusals: Refusal) -> list[tuple[str, str]]:
    """Status and reason of the conditions on the Paas."""
    writes = [each for each in report_paas(found, refusals).writes() if isinstance(each, Apply) and each.kind is PAAS]
    return [(each["status"], each["reason"]) for write in writes for each in write.wanted["status"]["conditions"]]


@pytest.mark.parametrize(
    ("spec", "more", "conditions"),
    [
        ({"groups": {"us": {}}}, {}, [("True", "Reconciling")]),
        ({"groups": {"x": {"query": "CN="}}}, {}, [("False", "InvalidGroup")]),
        ({"groups": {"x": {"roles": ["nope"]}}}, {}, [("True", "Reconciling"), ("True", "UnknownRole")]),
        ({"groups": {"x": {"roles": ["nope"]}}}, {"configured": config(unknownRolePolicy="Ignore")}, [("False", "UnknownRole")]),
        ({"groups": {"x": {"query": "CN=x", "users": ["me"]}}}, {}, [("True", "Reconciling"), ("True", "QueryAndUsers")]),
        ({"groups": {"us": US}}, {"served": False}, [("True", "Reconciling"), ("True", "GroupAPIMissing")]),
        ({"groups": {"us": {}}}, {"missing": frozenset({"view"})}, [("True", "Reconciling"), ("True", "ClusterRoleMissing")]),
        ({"groups": {"us": {}}}, {"foreign": frozenset({key("view")})}, [("False", "BindingConflict")]),
        ({"groups": {"us": {"users": ["a\n"]}}}, {}, [("False", "InvalidGroup")]),
        ({"groups": {}, "namespaces": {"a": {"groups": ["us"]}}}, {}, [("False", "UnknownGroup")]),
    ],
)
def test_problems_have_a_reason(spec: Any, more: Any, conditions: list[tuple[str, str]]) -> None:
    """1.4: what is not there is an error, what was ignored or replaced a warning."""
    assert told(seen(spec, **more)) == conditions


def test_nothing_is_told_before_the_namespaces_are_spoken_of() -> None:
    """Else a part would say that all is done while the namespaces are still to come."""
    found = seen({"groups": {"us": {}}}, held={}, places={})
    assert found.paas is not None
    assert told(found) == [("True", "Reconciling")]
    live = {**found.paas.live, "status": {}}
    assert told(replace(found, paas=paas_of(live))) == []


# -- the policy of Argo CD -------------------------------------------------------------------------------------------


def test_a_policy_has_the_header_and_the_groups() -> None:
    """p-14, p-144: without names that would add columns or lines, and without what is of others."""
    permissions = {"resource_name": "argo", "role": "admin", "header": "g, x, role:admin\n"}
    groups = {"us": {}, "them": {}, "q": {"query": r"CN=Doe\, John"}}
    spec = {"groups": groups, "capabilities": {"argocd": {"enabled": True}}}
    found = seen(spec, configured=config(argopermissions=permissions), policy=Policy("my-argocd", False, None))
    assert found.paas is not None
    assert found.config is not None
    assert found.config.argo_permissions is not None
    text = "g, x, role:admin\ng, my-them, role:admin\ng, my-us, role:admin"
    assert policy_text(found, found.config.argo_permissions) == text
    assert "create ConfigMap my-argocd/argocd-rbac-cm" in needed(plan_paas(found))[0]
    live = object_of(CONFIG_MAP, {"name": "argocd-rbac-cm", "namespace": "my-argocd"}, data={"policy.csv": "x"})
    other = replace(found, policy=Policy("my-argocd", False, live))
    assert conflicting_fields(other, found.paas) == ["policy.csv"]
    assert not [text for stage in needed(plan_paas(other)) for text in stage if "ConfigMap" in text]
