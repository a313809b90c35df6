"""Scopes as pure functions: what is declared, what is wanted, and in which order it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scope_objects import declared, stored

from scope_binding.olm.plan import OPT_IN, Complaint, CsvSeen, event_name, plan_csv, possible_complaints, report_csv
from scope_binding.scopes.declared import reach_of, roles_of, subject_problem
from scope_binding.scopes.names import INSTANCE_UID, MAIN, MANAGER, TEMPLATE_UID, as_label, binding_name, cluster_role_name
from scope_binding.scopes.plan import plan_instance, plan_template, refusable, wanted_binding
from scope_binding.scopes.report import FIXES, report_instance, report_template
from scope_binding.scopes.seen import InstanceSeen, TemplateSeen, wanted_cluster_role
from tenantry.model.difference import difference
from tenantry.model.kinds import SCOPE_INSTANCE, SCOPE_TEMPLATE, Key, Object, labels_of
from tenantry.model.plan import Apply, Cause, Delete, Plan, Refusal

RULE: Object = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
OP: Object = {"kind": "ServiceAccount", "name": "op", "namespace": "ops"}


def template(*names: str, subject: Object = OP) -> Object:
    roles = [{"generateName": name, "rules": [RULE], "subjects": [subject]} for name in names]
    return declared(SCOPE_TEMPLATE, "st", clusterRoles=roles)


def instance(**spec: Any) -> Object:
    return declared(SCOPE_INSTANCE, "si", scopeTemplateName="st", **spec)


def live_roles(of: Object) -> dict[str, Object | None]:
    return {role.name: stored(wanted_cluster_role(MAIN, role, of, None)) for role in roles_of(of)}


def bound(of: Object, where: Object, *places: str) -> tuple[Object, ...]:
    return tuple(stored(wanted_binding(MAIN, role, place, where, of)) for role in roles_of(of) for place in places)


def seen(of: Object, where: Object, *namespaces: str, bindings: tuple[Object, ...] = (), **more: Any) -> InstanceSeen:
    return InstanceSeen(MAIN, where, of, live_roles(of), frozenset(namespaces), bindings=bindings, **more)


def steps(plan: Plan) -> list[list[str]]:
    """Stages as verb and place: ``+a`` made, ``~a`` changed, ``-a`` deleted; the whole cluster is ``*``."""
    signs = []
    for stage in plan.stages:
        found = []
        for write in stage:
            place = write.key.namespace or "*"
            sign = "-" if isinstance(write, Delete) else "+" if isinstance(write, Apply) and write.live is None else "~"
            found.append(sign + place)
        signs.append(sorted(found))
    return [stage for stage in signs if stage]


def test_names_are_computed_and_fit() -> None:
    """A name that ends in punctuation is completed, stably; binding names and labels fit whatever the name is."""
    assert cluster_role_name("test", "u") == "test"
    assert cluster_role_name("foo-", "u").startswith("foo-")
    assert cluster_role_name("foo-", "u") == cluster_role_name("foo-", "u") != cluster_role_name("foo-", "v")
    assert len(binding_name("u", "x" * 63, "n")) == 63
    parts = (("u", "a", "n"), ("v", "a", "n"), ("u", "b", "n"), ("u", "a", ""))
    assert len({binding_name(*each) for each in parts}) == 4
    assert as_label("x" * 253) != as_label("x" * 252 + "y")
    assert len(as_label("x" * 253)) <= 63
    assert as_label("foo-") == "foo"


@pytest.mark.parametrize(
    ("spec", "cluster", "problem"),
    [
        ({}, True, False),
        ({"namespaces": []}, True, False),
        ({"namespaces": ["a"]}, False, False),
        ({"namespaces": [""]}, False, True),
        ({"namespaces": None}, True, True),
        ({"namespaceSelector": {}}, False, False),
        ({"namespaceSelector": None}, True, True),
        ({"namespaceSelector": {"env": "prod"}}, False, False),
        ({"namespaces": [], "namespaceSelector": {}}, False, False),
        ({"namespaces": [], "namespaceSelector": {"env": "prod"}}, False, False),
        ({"namespaces": [], "namespaceSelector": {"matchLabels": {"env": "prod"}}}, False, False),
        ({"namespaces": [], "namespaceSelector": {"env": 1}}, False, True),
        ({"namespaces": [], "namespaceSelector": None}, True, True),
        ({"namespaces": None, "namespaceSelector": {"env": "prod"}}, False, True),
        ({"namespaceSelector": {"env": 1}}, False, True),
        ({"namespaceSelector": {"matchLabels": {"env": "prod"}, "env": "prod"}}, False, True),
    ],
)
def test_only_nothing_means_the_whole_cluster(spec: Object, cluster: bool, problem: bool) -> None:
    """The whole cluster is meant where nothing is said; a mistake means nothing, since nothing is planned for it (O-4)."""
    reach = reach_of(instance(**spec))

    assert (reach.cluster, bool(reach.problem)) == (cluster, problem)
    if problem:
        assert steps(plan_instance(seen(template("t"), instance(**spec)))) == []


@pytest.mark.parametrize("spec", [{}, {"namespaces": []}, {"namespaces": ["gone"]}])
def test_no_namespace_at_all_is_not_the_whole_cluster(spec: Object) -> None:
    """Where a selector matches nothing, nothing is bound, and what was bound in the whole cluster goes."""
    of, si = template("t"), instance(namespaceSelector={"env": "nothing"}, **spec)

    assert steps(plan_instance(seen(of, si))) == []
    assert steps(plan_instance(seen(of, si, bindings=bound(of, instance(), "")))) == [["-*"]]


def test_a_switch_binds_before_it_takes_away() -> None:
    """Old bindings go in a later stage while the new ones do not stand, and at once when they do (sb-9)."""
    of = template("t")
    whole, one = instance(), instance(namespaces=["a"])
    assert steps(plan_instance(seen(of, one, "a", bindings=bound(of, whole, "")))) == [["+a"], ["-*"]]
    assert steps(plan_instance(seen(of, whole, bindings=bound(of, one, "a")))) == [["+*"], ["-a"]]
    both = (*bound(of, whole, ""), *bound(of, one, "a"))
    assert steps(plan_instance(seen(of, one, "a", bindings=both))) == [["-*"]]
    assert steps(plan_instance(seen(of, one, "a", bindings=bound(of, instance(), "a", "b")))) == [["-b"]]
    assert steps(plan_instance(seen(of, one, "a", bindings=bound(of, one, "a")))) == []


def test_a_refusing_namespace_does_not_keep_a_wider_right() -> None:
    """What was told not to take its binding is not waited for."""
    of, where = template("t"), instance(namespaces=["a", "b"])
    bindings = (*bound(of, where, "a"), *bound(of, instance(), ""))
    assert steps(plan_instance(seen(of, where, "a", "b", bindings=bindings))) == [["+b"], ["-*"]]
    refusing = seen(of, where, "a", "b", bindings=bindings, refusing=frozenset({"b"}))
    assert steps(plan_instance(refusing)) == [["+b", "-*"]]


def test_who_refused_is_asked_again_before_something_wider_goes() -> None:
    """Only where the status says so, and something in the whole cluster waits."""
    of, where = template("t"), instance(namespaces=["a", "b"])
    wide = bound(of, instance(), "")
    assert refusable(seen(of, where, "a", "b", bindings=wide)) == []
    told = {"type": "Scoped", "status": "False", "reason": "ScopingFailed", "message": "", "observedGeneration": 1}
    where["status"] = {"conditions": [told], "unboundNamespaces": ["b"]}
    assert [body["metadata"]["namespace"] for body in refusable(seen(of, where, "a", "b", bindings=wide))] == ["b"]
    assert refusable(seen(of, where, "a", "b", bindings=(*wide, *bound(of, where, "b")))) == []
    assert refusable(seen(of, where, "a", "b", bindings=bound(of, where, "a"))) == []


def test_an_old_binding_stays_where_the_new_one_is_refused() -> None:
    """In one namespace the right that was declared before is not taken before the other stands (sb-9)."""
    old, new, where = template("t"), template("u"), instance(namespaces=["a"])
    told = {"type": "Scoped", "status": "False", "reason": "ScopingFailed", "message": "", "observedGeneration": 1}
    where["status"] = {"conditions": [told], "unboundNamespaces": ["a"]}
    assert steps(plan_instance(seen(new, where, "a", bindings=bound(old, where, "a")))) == [["+a"], ["-a"]]


def test_what_may_have_been_read_too_early_takes_nothing_away() -> None:
    """A listed namespace that is not there keeps its bindings; what is wider stays while the template's roles are to come."""
    of, where = template("t"), instance(namespaces=["a", "b"])
    bindings = bound(of, where, "a", "b")
    assert steps(plan_instance(seen(of, where, "a", bindings=bindings, missing=frozenset({"b"})))) == []
    wide = bound(of, instance(), "")
    there = InstanceSeen(MAIN, where, of, {"t": None}, frozenset({"a", "b"}), bindings=wide)
    assert steps(plan_instance(there)) == []


def test_nothing_is_bound_to_a_role_that_is_not_the_templates() -> None:
    """Foreign, drifted or missing: no binding is made; to a foreign one none is left (O-10)."""
    of, where = template("t"), instance(namespaces=["a"])
    ours = live_roles(of)["t"]
    assert ours is not None
    foreign = {**ours, "metadata": {"name": "t", "uid": "f", "resourceVersion": "1"}}
    for live in (None, foreign, {**ours, "rules": []}, {**ours, "aggregationRule": {}}):
        there = InstanceSeen(MAIN, where, of, {"t": live}, frozenset({"a"}))
        assert (live is not None and live.get("aggregationRule") == {}) or steps(plan_instance(there)) == []
    there = InstanceSeen(MAIN, where, of, {"t": foreign}, frozenset({"a"}), bindings=bound(of, where, "a"))
    assert steps(plan_instance(there)) == [["-a"]]
    there = InstanceSeen(MAIN, where, of, {"t": None}, frozenset({"a"}), bindings=bound(of, where, "a"))
    assert steps(plan_instance(there)) == []


def test_roles_of_a_template_go_last() -> None:
    """A role that the template does not want any more stays while somebody is bound to it (O-7)."""
    of = template("new")
    old = live_roles(template("old"))["old"]
    assert old is not None
    there = TemplateSeen(MAIN, of, True, {"new": None}, (old,), frozenset({"old"}))
    assert [str(write.key) for write in plan_template(there).writes()] == ["ClusterRole new"]
    there = TemplateSeen(MAIN, of, True, live_roles(of), (old,))
    assert [str(write.key) for write in plan_template(there).writes()] == ["ClusterRole old"]
    there = TemplateSeen(MAIN, of, False, live_roles(of))
    assert [type(write) for write in plan_template(there).writes()] == [Delete]


def test_the_stored_form_is_not_a_difference() -> None:
    """Empty lists and the default group of users are written as the API server stores them (B-18)."""
    rule = {**RULE, "resourceNames": [], "nonResourceURLs": None}
    of = declared(
        SCOPE_TEMPLATE, "st", clusterRoles=[{"generateName": "t", "rules": [rule], "subjects": [{"kind": "User", "name": "u"}]}]
    )
    (role,) = roles_of(of)
    assert role.rules == (RULE,)
    assert role.subjects == ({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"},)
    (empty,) = roles_of(declared(SCOPE_TEMPLATE, "st", clusterRoles=[{"generateName": "t", "rules": []}]))
    live = stored({**wanted_cluster_role(MAIN, empty, of, None), "rules": None})
    assert difference(wanted_cluster_role(MAIN, empty, of, live), live, manager="tenantry-scope-binding") is None


@pytest.mark.parametrize(
    ("subject", "cluster", "words"),
    [
        (OP, True, ""),
        ({"kind": "ServiceAccount", "name": "op"}, False, ""),
        ({"kind": "ServiceAccount", "name": "op"}, True, "namespace: Required value"),
        ({"kind": "ServiceAccount", "name": "Op"}, False, "Invalid value"),
        ({"kind": "Robot", "name": "r"}, False, "Unsupported value"),
        ({"kind": "User"}, False, "name: Required value"),
        ({"kind": "User", "name": "u", "apiGroup": "example.com"}, False, "apiGroup: Unsupported value"),
    ],
)
def test_impossible_subjects_are_found_without_asking(subject: Object, cluster: bool, words: str) -> None:
    """What the API server would refuse for every namespace is said once."""
    (role,) = roles_of(template("t", subject=subject))
    problem = subject_problem(role, cluster=cluster)
    assert bool(problem) == bool(words)
    assert words in problem


def test_the_report_names_every_place() -> None:
    """Missing, terminating and refusing namespaces, sorted; a part of an instance only adds what was not told."""
    of, where = template("t"), instance(namespaces=["a", "b", "c", "d"])
    there = seen(of, where, "a", missing=frozenset({"c"}), terminating=frozenset({"b"}))
    (key,) = {write.key for write in plan_instance(there).writes()}
    (write,) = report_instance(there, [Refusal(key, "quota", "no room")]).writes()
    assert isinstance(write, Apply)
    (told,) = write.wanted["status"]["conditions"]
    refused = f"a: RoleBinding a/{key.name} was refused: to fix it, {FIXES['quota']} (the API server says: no room)"
    assert told["message"] == f'{refused}; b: the namespace is being terminated; c: namespaces "c" not found'
    assert write.wanted["status"]["unboundNamespaces"] == ["a", "b", "c"]
    part = seen(of, where, "a", part="a")
    assert report_instance(part, []).stages == ()


def stored_status(plan: Plan, live: Object) -> list[str]:
    """What a report writes and announces; it is stored."""
    (write,) = plan.writes()
    assert isinstance(write, Apply)
    said = [str(change) for change in plan.changes(MANAGER)]
    live["status"] = write.wanted["status"]
    return said + ([write.event.reason] if write.event is not None else [])


@pytest.mark.parametrize("padding", ["", "some ", "many " * 30, "more " * 100])
def test_the_same_refusal_in_other_words_is_not_written(padding: str) -> None:
    """Words that differ each time, also where the message is cut, are no news; another place or cause is."""
    of, where = template("t", "u", "v"), instance(namespaces=["a", "b"])
    role_keys = [write.key for write in plan_template(_unmade(of)).writes()]
    binding_keys = [write.key for write in plan_instance(seen(of, where, "a", "b")).writes()]

    def of_template(words: str, cause: Cause = "admission") -> list[str]:
        refusals = [Refusal(key, cause, f"denied; request {padding}{words}; ask") for key in role_keys]
        return stored_status(report_template(_unmade(of), refusals), of)

    def of_instance(words: str, *keys: Key) -> list[str]:
        refusals = [Refusal(key, "admission", f"denied; request {padding}{words}; ask") for key in keys]
        return stored_status(report_instance(seen(of, where, "a", "b"), refusals), where)

    assert len(of_template("1")) == 2
    assert of_template("another") == of_template("1;2") == []
    assert of_template("1", "quota") != []
    assert len(of_instance("1", *binding_keys)) == 2
    assert of_instance("another", *reversed(binding_keys)) == of_instance("1;2", *binding_keys) == []
    assert of_instance("1", binding_keys[0]) != []
    assert of_instance("1") != []


def _unmade(of: Object) -> TemplateSeen:
    return TemplateSeen(MAIN, of, referenced=True)


def test_the_same_refusal_of_a_generated_scope_is_one_event() -> None:
    """A ClusterServiceVersion has no condition: its Event is found again whatever the words, and left as it is."""
    spec = {"install": {"strategy": "deployment", "spec": {"permissions": [{"serviceAccountName": "op", "rules": [RULE]}]}}}
    spec["installModes"] = [{"type": "AllNamespaces", "supported": True}]
    csv = {"apiVersion": "v1", "kind": "C", "metadata": {"name": "c", "namespace": "ops", "uid": "u"}, "spec": spec}
    group = {"metadata": {"name": "g", "labels": {OPT_IN: "true"}}}
    there = CsvSeen("ops", "c", csv, (group,))
    (name, _) = (event_name(csv, each) for each in possible_complaints(there))
    key = next(write.key for write in plan_csv(there).writes())

    def events(words: str, **live: Object | None) -> list[Object]:
        found = replace(there, events={name: None, **live})
        report = report_csv(found, [Refusal(key, "admission", words)])
        return [write.wanted for write in report.writes() if isinstance(write, Apply)]

    (event,) = events("request 1")
    assert (event["metadata"]["name"], event["note"]) == (name, "ScopeTemplate ns.ops.c: request 1")
    assert events("request 2", **{name: stored(event)}) == []
    assert possible_complaints(replace(there, csv={**csv, "spec": {**spec, "install": {}}})) == [
        Complaint("InvalidStrategy", "install.strategy is None; only deployment is known")
    ]


def test_labels_say_whose_it_is() -> None:
    """Roles and bindings carry the marks of both, by uid and by name."""
    of, where = template("t"), instance()
    role = live_roles(of)["t"]
    (binding,) = bound(of, where, "a")
    assert labels_of(role)[TEMPLATE_UID] == "uid-of-st"
    assert labels_of(binding)[INSTANCE_UID] == "uid-of-si"
    assert labels_of(binding)["tenantry.dev/scope-instance"] == "si"
    assert labels_of(role)["tenantry.dev/scope-template"] == labels_of(binding)["tenantry.dev/scope-template"] == "st"
