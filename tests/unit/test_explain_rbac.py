"""What a rule allows and whom a binding names, as the API server's authorizer judges it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenantry.model.rbac import BoundSubject, Question, account_groups, aggregates, allowing, binder, lacks, nearest, subject_in

PODS = Question("jane", ("devs", "system:authenticated"), "get", "", "pods", namespace="dev")
LOG = replace(PODS, subresource="log")
SCALE = Question("jane", (), "update", "apps", "deployments", "scale", "dev")
URL = Question("jane", (), "get", url="/logs/today")
NOTHING: dict[str, list[str]] = {}


def rule(verbs: str = "get", groups: str = "", resources: str = "pods", names: str = "") -> dict[str, list[str]]:
    found = {"verbs": verbs.split(), "apiGroups": groups.split() or [""], "resources": resources.split()}
    return {**found, "resourceNames": names.split()} if names else found


@pytest.mark.parametrize(
    ("question", "written", "missing"),
    [
        (PODS, rule(), ()),
        (PODS, rule("*"), ()),
        (PODS, rule("list watch"), ("verb",)),
        (PODS, rule(groups="apps"), ("group",)),
        (PODS, rule(groups="*"), ()),
        (PODS, rule(resources="*"), ()),
        (PODS, rule(resources="pods/log"), ("resource",)),
        (LOG, rule(), ("resource",)),
        (LOG, rule(resources="pods/log"), ()),
        (LOG, rule(resources="*/log"), ()),
        (LOG, rule(resources="*"), ()),
        (SCALE, rule("*", "apps", "*/scale"), ()),
        (SCALE, rule("*", "apps", "*/status"), ("resource",)),
        (PODS, rule(names="only"), ("name",)),
        (replace(PODS, name="only"), rule(names="only other"), ()),
        (replace(PODS, name="another"), rule(names="only other"), ("name",)),
        (replace(PODS, name="only"), rule(), ()),
        (replace(PODS, verb="escalate"), rule(), ("verb",)),
        (PODS, NOTHING, ("verb", "group", "resource")),
        (PODS, {"verbs": ["get"], "nonResourceURLs": ["*"]}, ("group", "resource")),
        (URL, {"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}, ()),
        (URL, {"verbs": ["get"], "nonResourceURLs": ["*"]}, ()),
        (URL, {"verbs": ["get"], "nonResourceURLs": ["/logs"]}, ("url",)),
        (URL, {"verbs": ["post"], "nonResourceURLs": ["/logs/today"]}, ("verb",)),
        (URL, rule("*", "*", "*"), ("url",)),
        (replace(PODS, resource="*", group="*", verb="*"), rule("get list"), ("verb", "group", "resource")),
    ],
)
def test_a_rule_allows_what_the_authorizer_lets_it(
    question: Question, written: dict[str, list[str]], missing: tuple[str, ...]
) -> None:
    """Verbs, groups, resources with subresources, names and URLs, each with its wildcards, and what of them is missing."""
    assert lacks(question, written) == missing
    assert allowing(question, [NOTHING, written]) == (None if missing else 1)


def test_the_nearest_rule_is_about_the_resource_and_lacks_the_least() -> None:
    """Of rules about the resource; none where no rule is about it."""
    near = rule("list", names="only")

    assert nearest(PODS, [rule(resources="nodes"), near, rule("list")]) == (rule("list"), ("verb",))
    assert nearest(PODS, [near]) == (near, ("verb", "name"))
    assert nearest(PODS, [rule(resources="nodes")]) is None
    assert nearest(PODS, None) is None


@pytest.mark.parametrize(
    ("subject", "namespace", "found"),
    [
        ({"kind": "User", "name": "jane"}, "", BoundSubject("User", "jane")),
        ({"kind": "User", "name": "devs"}, "", None),
        ({"kind": "Group", "name": "devs"}, "", BoundSubject("Group", "devs")),
        ({"kind": "Group", "name": "jane"}, "", None),
        ({"kind": "ServiceAccount", "name": "jane", "namespace": "dev"}, "", None),
    ],
)
def test_a_binding_names_a_user_or_one_of_his_groups(subject: dict[str, str], namespace: str, found: BoundSubject | None) -> None:
    """By kind and name."""
    assert subject_in({"metadata": {"namespace": namespace}, "subjects": [subject]}, PODS) == found


def test_a_binding_names_an_account_of_its_own_namespace_or_of_another() -> None:
    """Without a namespace that of the binding counts, and in a ClusterRoleBinding none; its user name stands for it, too."""
    asked = replace(PODS, user="system:serviceaccount:dev:op", groups=account_groups("dev"))
    own, other = {"kind": "ServiceAccount", "name": "op"}, {"kind": "ServiceAccount", "name": "op", "namespace": "dev"}
    account = BoundSubject("ServiceAccount", "op", "dev")

    assert subject_in({"metadata": {"namespace": "dev"}, "subjects": [own]}, asked) == account
    assert subject_in({"metadata": {"namespace": "test"}, "subjects": [own]}, asked) is None
    assert subject_in({"metadata": {}, "subjects": [own]}, asked) is None
    assert subject_in({"metadata": {"namespace": "test"}, "subjects": [other]}, asked) == account
    by_name = {"kind": "User", "name": "system:serviceaccount:dev:op"}
    assert subject_in({"metadata": {}, "subjects": [by_name]}, asked) == BoundSubject("User", by_name["name"])
    assert subject_in({"metadata": {}, "subjects": [{"kind": "Group", "name": "system:serviceaccounts:dev"}]}, asked)
    assert subject_in({"metadata": {}}, asked) is None


def test_who_is_bound_by_a_command_is_named_by_his_kind() -> None:
    """A user, an account, or the group that was asked about."""
    assert binder(PODS) == "--user=jane"
    assert binder(replace(PODS, user="system:serviceaccount:dev:op")) == "--serviceaccount=dev:op"
    assert binder(replace(PODS, user="")) == "--group=devs"


def test_an_aggregated_role_takes_in_what_one_of_its_selectors_matches() -> None:
    """Any selector; one that means nothing takes in nothing."""
    selectors = [{"matchLabels": {"a": "1"}}, {"matchExpressions": "wrong"}, {"matchLabels": {"b": "1"}}]
    role = {"aggregationRule": {"clusterRoleSelectors": selectors}}

    assert aggregates(role, {"b": "1"})
    assert not aggregates(role, {"c": "1"})
    assert not aggregates({}, {"a": "1"})
