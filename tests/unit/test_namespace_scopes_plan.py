"""Plans of NamespaceScopes, where a cluster would need long waits or rare moments."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import owning
import pytest

from scope_binding.consent import consent_objects
from scope_binding.namespace_scopes import plan
from scope_binding.namespace_scopes.declared import declared
from scope_binding.namespace_scopes.names import (
    FINALIZER,
    FROM_LABEL,
    HASH,
    MANAGER,
    OWNERSHIP_LABEL,
    PENDING,
    label_value,
    managed_role_name,
    own_role_name,
    ownership_labels,
    runtime_role_name,
    value_hash,
)
from scope_binding.namespace_scopes.observe import PATIENCE, _overdue
from scope_binding.namespace_scopes.projection import projected
from scope_binding.namespace_scopes.seen import HomeRoles, ObservedHome, Source
from scope_binding.namespace_scopes.unit import NamespaceScopes
from tenantry.model.config import Config, NamespaceScopeSettings
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    CONFIG_MAP,
    DEPLOYMENT,
    NAMESPACE,
    NAMESPACE_SCOPE,
    POD,
    ROLE,
    ROLE_BINDING,
    Key,
    Kind,
    Object,
    object_of,
)
from tenantry.model.plan import Apply, Cause, Delete, Edit, Plan, Refusal
from tenantry.testing.objects import obj

SETTINGS = NamespaceScopeSettings()
NOW = "2026-01-01T00:00:00Z"


def scope(name: str = "s", *, spec: dict[str, Any] | None = None, **metadata: Any) -> Object:
    """A NamespaceScope in ``ops`` with the member ``t1``."""
    identity = {"name": name, "namespace": "ops", "uid": name, "resourceVersion": "1", "generation": 1, "creationTimestamp": NOW}
    given = {"namespaceMembers": ["t1"]} if spec is None else spec
    return object_of(NAMESPACE_SCOPE, {**identity, **metadata}, spec=given)


def namespace(name: str, **metadata: Any) -> Object:
    return object_of(NAMESPACE, {"name": name, **metadata})


def pod(name: str = "p", created: str = NOW, **annotations: str) -> Object:
    """A pod of ServiceAccount ``op`` that uses the list."""
    containers = [{"name": "c", "envFrom": [{"configMapRef": {"name": "namespace-scope"}}]}]
    return obj(
        POD,
        name,
        "ops",
        labels={"intent": "projected"},
        annotations=annotations,
        metadata={"uid": name, "resourceVersion": "1", "creationTimestamp": created},
        spec={"serviceAccountName": "op", "containers": containers},
    )


def seen(*scopes: Object, **fields: Any) -> ObservedHome:
    """``ops`` with these NamespaceScopes, and a consenting member ``t1``."""
    made = tuple(declared(each, "managed") for each in scopes)
    base = ObservedHome(
        "ops", made, {"t1": namespace("t1")}, {"t1": consent_objects("t1", "ops")}, pods=(pod(),), home=namespace("ops")
    )
    return replace(base, **fields)


def planned(found: ObservedHome) -> Plan:
    return plan.plan(replace(found, projected=projected(found, SETTINGS)))


def reported(found: ObservedHome, *refusals: Refusal, settings: NamespaceScopeSettings = SETTINGS) -> Plan:
    return plan.report(replace(found, projected=projected(found, settings)), refusals)


def changes(found: ObservedHome) -> list[str]:
    return [str(change).partition(": ")[0] for change in planned(found).changes(MANAGER)]


def ours(kind: str, name: str, member: str = "t1") -> Object:
    """A Role or RoleBinding that we made for ``ops``."""
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {f"f:{FROM_LABEL}": {}}}}}
    metadata = {"uid": name, "resourceVersion": "1", "managedFields": [entry]}
    labels = ownership_labels("namespace-scope", "ops")
    return obj(ROLE if kind == ROLE.kind else ROLE_BINDING, name, member, labels=labels, metadata=metadata)


@pytest.mark.parametrize(
    ("role", "name"),
    [("my-op", "my-op-e756cda126bb30"), ("my-op.v1.2.0-my-op-7f9c", "my-op-6b505447291839"), ("leader", "leader-d9bb891cabf984")],
)
def test_names_of_copies_are_those_of_the_operator(role: str, name: str) -> None:
    """The names that the IBM operator gives, so that its objects are taken over."""
    assert name == own_role_name(role, "my-op", "ops")


def test_hashes_are_those_of_the_operator() -> None:
    """The hashes that the IBM operator writes on pod templates."""
    assert (value_hash("ops,tenant1"), value_hash("ops,tenant1,tenant2")) == ("6c47594befb397", "224f96eafebffc")


def test_label_values_are_valid_where_they_are_cut() -> None:
    """A value that would end in punctuation after the cut ends before it."""
    assert label_value("a" * 62 + "-b") == "a" * 62


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
    sources = tuple(Source(name, ({**get, "verbs": ["get", "list"]},)) for name in ("r", "other"))
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


def test_configuration_chooses_the_projection() -> None:
    """Without an annotation the configured projection is in force; further accounts may stand in a consent."""
    settings = NamespaceScopeSettings.model_validate({"projection": "own-roles", "consentAccounts": ["x/y"]})
    assert declared(scope(), settings.projection).projection == "own-roles"
    annotated = scope(annotations={"scope-binding/projection": "managed"})
    assert declared(annotated, settings.projection).projection == "managed"
    role, binding = consent_objects("t1", "ops", subject=("x", "y"))
    found = seen(scope(), consents={"t1": (role, binding)})
    assert "NotAuthorized" in str(reported(found))
    assert "NotAuthorized" not in str(reported(found, settings=settings))


def test_only_namespaces_are_owners() -> None:
    """A request by event can name only well-formed owners."""
    unit = NamespaceScopes(Config())
    owners = ("namespace/ops", "namespace/", "namespace/A b", "role/ops")
    assert [owner for owner in owners if owning.accepts(unit, owner)] == ["namespace/ops"]


def refusal(kind: Kind, name: str, words: str, cause: Cause = "admission") -> Refusal:
    message = f'admission webhook "w" denied the request. {words}'
    return Refusal(Key(kind.api_version, kind.kind, "ops", name), cause, message)


@pytest.mark.parametrize("leaving", [False, True])
def test_the_same_refusal_in_other_words_is_not_written(leaving: bool) -> None:
    """Words that differ each time, also where the message is cut, are no news; another object, cause or spec is."""
    live = scope(deletionTimestamp=NOW, finalizers=[FINALIZER]) if leaving else scope()

    def told(*refusals: Refusal) -> list[str]:
        """What is written and announced; it is stored."""
        found = seen(live, roles={("t1", "x"): ours("Role", "x")})
        status = [write for write in reported(found, *refusals).writes() if isinstance(write, Apply)]
        said = [str(change) for change in reported(found, *refusals).changes(MANAGER)]
        said += [write.event.reason for write in status if write.event is not None]
        live["status"] = status[0].wanted["status"] if status else {}
        return said

    def both(words: str) -> tuple[Refusal, Refusal]:
        csv = refusal(CLUSTER_SERVICE_VERSION, "my-op.v1.0.0", f"{words * 9}. And so on")
        return csv, refusal(CONFIG_MAP, "namespace-scope", f"request {words}. Ask the administrator. {words}")

    for padding in ("", "long " * 30, "longer " * 100):
        assert len(told(*both(f"{padding}1"))) == 2
        assert told(*both(f"{padding}another")) == told(*both(f"{padding} 3.1")) == []
        live["metadata"]["generation"] += 1
    live["metadata"]["generation"] -= 1
    assert told(refusal(CONFIG_MAP, "namespace-scope", "1", "quota")) != []
    assert told(refusal(CONFIG_MAP, "namespace-scope", "2", "quota")) == []
    assert told(refusal(NAMESPACE_SCOPE, "s", "2", "quota")) != []
    assert leaving or told() != []


READS_LIST = {
    "name": "WATCH_NAMESPACE",
    "valueFrom": {"configMapKeyRef": {"name": "namespace-scope", "key": "namespaces", "optional": True}},
}


@pytest.mark.parametrize(
    ("env", "name", "remarked"),
    [
        (None, "op", True),
        ([{"name": "WATCH_NAMESPACE", "value": "x"}], "op", True),
        ([READS_LIST], "op", False),
        ([{"name": "A"}, READS_LIST], "op", False),
        (None, "another", False),
    ],
    ids=["nothing", "literal", "list", "among-others", "no-deployment"],
)
def test_a_deployment_that_does_not_show_the_injection_is_a_remark(env: list[Any] | None, name: str, remarked: bool) -> None:
    """The condition stays true and names the Deployment and its ClusterServiceVersion; one that is not there is not named."""
    labels = {"operators.coreos.com/op.ops": ""}
    annotations = {"nss.operator.ibm.com/managed-operators": "op"}
    declared_one = {"name": "op", "spec": {"template": {"spec": {"containers": [{"name": "c", "env": [READS_LIST]}]}}}}
    csv = {
        "metadata": {"name": "op.v1", "namespace": "ops", "labels": labels, "annotations": annotations},
        "spec": {"install": {"strategy": "deployment", "spec": {"deployments": [declared_one]}}},
    }
    spec = {"containers": [{"name": "c", "env": env}, {"name": "sidecar"}]}
    live = obj(DEPLOYMENT, name, "ops", spec={"template": {"metadata": {}, "spec": spec}})
    found = seen(scope(spec={"namespaceMembers": ["t1"], "csvInjector": {}}), csvs=(csv,), workloads=(live,))
    (status,) = (write for write in reported(found).writes() if isinstance(write, Apply))
    (told,) = status.wanted["status"]["conditions"]
    text = "Deployment op does not read WATCH_NAMESPACE from ConfigMap namespace-scope yet"
    assert (told["status"], text in told["message"], "op.v1" in told["message"]) == ("True", remarked, remarked)


def test_refused_rights_are_told_without_their_words() -> None:
    """A refused Role is in the status by name."""
    refused = Refusal(Key(ROLE.api_version, ROLE.kind, "t1", "x"), "admission", "request 1")
    (status,) = (write for write in reported(seen(scope()), refused).writes() if isinstance(write, Apply))
    assert status.wanted["status"]["unprojectedRoles"] == ["t1/x: failed to create from namespace ops"]
    assert "request 1" not in str(status.wanted)


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


def test_what_may_not_be_taken_away_is_told() -> None:
    """A refused deletion is told by the NamespaceScope, also where the namespace is no member any more."""
    for member in ("t1", "left"):
        refusal = Refusal(Key(ROLE.api_version, "Role", member, "gone-0"), "rights", "forbidden")
        found = seen(scope(), roles={(member, "gone-0"): ours("Role", "gone-0", member)})
        (status,) = [write for write in reported(found, refusal).writes() if isinstance(write, Apply)]
        (told,) = status.wanted["status"]["conditions"]
        assert told["status"] == "False"
        assert "gone-0" in told["message"]


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
