"""The algebra of rules behind every right that a NamespaceScope gives: never more than both sides (3.5, N-8)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scope_binding.consent import FULL_CONSENT
from scope_binding.namespace_scopes.rules import (
    MANAGED_RULES,
    Answers,
    Effort,
    Given,
    TooMuch,
    excess,
    lacking,
    parse,
    stored,
    within,
)
from tenantry.model import limits
from tenantry.model.kinds import Object

EIGHT = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
ALL = list(FULL_CONSENT)


def rule(groups: str, resources: str, verbs: str, names: str = "") -> Object:
    made = {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}
    return {**made, "resourceNames": names.split(",")} if names else made


@pytest.mark.parametrize(
    ("source", "consent", "projected"),
    [
        ([rule("", "secrets", "get,impersonate", "x")], ALL, [rule("", "secrets", "get", "x")]),
        ([rule("*", "configmaps", "get")], ALL, [rule("*", "configmaps", "get")]),
        ([rule("apps", "*,deployments", "*")], ALL, [rule("apps", "*", ",".join(EIGHT))]),
        ([rule("security.openshift.io", "securitycontextconstraints", "use")], ALL, []),
        ([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}], ALL, []),
        ([], ALL, []),
        ([rule("", "configmaps,secrets", "get")], [rule("", "configmaps", "*")], [rule("", "configmaps", "get")]),
        ([rule("*", "*", "*")], [rule("", "pods/*,*/scale", "get")], [rule("", "*/scale,pods/*", "get")]),
        (
            [rule("apps", "*/scale", "get")],
            [rule("apps", "deployments/scale", "get")],
            [rule("apps", "deployments/scale", "get")],
        ),
        ([rule("apps", "*/scale", "get")], [rule("apps", "deployments", "get")], []),
        ([rule("", "secrets", "get", "a,b")], [rule("", "secrets", "get", "b,c")], [rule("", "secrets", "get", "b")]),
        ([rule("", "secrets", "get", "a")], [rule("", "secrets", "get", "b")], []),
        ([rule("", "secrets", "get")], [rule("", "secrets", "get", "b")], [rule("", "secrets", "get", "b")]),
        ([rule("", "pods", "get"), rule("", "pods", "get,list")], ALL, [rule("", "pods", "get,list")]),
        ([rule("", "pods", "escalate,bind,get")], ALL, [rule("", "pods", "get")]),
        ([rule("*,apps", "*,pods", "get")], [rule("*", "*,nodes", "get")], [rule("*", "*", "get")]),
    ],
)
def test_projected_is_what_both_allow(source: list[Object], consent: list[Object], projected: list[Object]) -> None:
    """The projected rules are the intersection of source and consent, with the eight verbs."""
    assert projected == within(parse(source), parse(consent))


@pytest.mark.parametrize(
    ("consent", "verbs"),
    [
        (rule("*", "*", "*"), EIGHT),
        (rule("rbac.authorization.k8s.io", "roles", "escalate,bind"), ["bind", "escalate"]),
        (rule("rbac.authorization.k8s.io", "roles", "bind,get"), ["bind", "get"]),
        (rule("rbac.authorization.k8s.io", "clusterroles", "escalate,bind"), []),
        (rule("", "serviceaccounts", "impersonate"), []),
    ],
)
def test_managed_rules_grant_only_what_is_named(consent: Object, verbs: list[str]) -> None:
    """The verb ``*`` of a consent stands for the eight; escalate and bind have to be named, and count on roles only."""
    found = within(parse(MANAGED_RULES, granting=True), parse([consent], granting=True))

    assert verbs == sorted({verb for each in found for verb in each["verbs"]})


def test_lacking_is_exact() -> None:
    """What a consent lacks is told by verb and resource."""
    source = [rule("", "configmaps,secrets", "get,list"), rule("apps", "deployments", "patch,use")]
    consent = [rule("", "configmaps", "*"), rule("", "secrets", "get")]

    assert lacking(parse(source), parse(consent)) == ["list secrets", "patch deployments.apps"]
    assert lacking(parse(source), parse(ALL)) == []


def test_sum_has_each_rule_once() -> None:
    """The summary of several Roles has no rule that another covers."""
    parts = tuple(Given((rule("", "pods", verbs),)) for verbs in ("get", "get,list"))
    assert Answers().total(parts).rules == (rule("", "pods", "get,list"),)


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([rule("", "pods", "get")] * (limits.ROLE_RULES + 1), "at most 256 rules"),
        (
            [rule(",".join(f"g{n}" for n in range(100)), ",".join(f"r{n}" for n in range(100)), ",".join(EIGHT * 10))],
            "100000 rights",
        ),
        ([rule("", "pods", "get", ",".join(f"n{n}" for n in range(limits.ROLE_ENTRIES)))], "at most 4096"),
        ([rule("*", "*", "*")] * limits.ROLE_RULES, ""),
    ],
)
def test_a_role_over_a_limit_says_which(rules: list[Object], words: str) -> None:
    """A Role over a limit is known before anything is made of it, by a text with the limit and the fix."""
    found = excess(rules)
    assert words in found
    assert bool(found) == bool(words)
    assert not found or "split" in found


def test_work_and_results_end_at_their_limits() -> None:
    """Comparing ends when the work is used up, or the result has more rules than are written; what lacks is told in part."""
    many = [rule(f"g{n}", "pods,nodes", "get") for n in range(limits.ROLE_RULES)]
    with pytest.raises(TooMuch):
        within(parse(many), parse(many), Effort(1000))
    crossed = (
        [rule("", f"*/s{n}", "get") for n in range(30)],
        [rule("", f"r{n}/s{m}", "get") for n in range(20) for m in range(30)],
    )
    with pytest.raises(TooMuch):
        within(*(parse(each) for each in crossed))
    assert lacking(parse(many), []) == [*(f"get {each}.g{n}" for n in range(5) for each in ("nodes", "pods")), "and more"]


def test_a_pattern_without_subresource_means_nothing() -> None:
    """``*/`` is no resource that Kubernetes knows: it allows nothing, so it is consent to nothing."""
    assert within(parse([rule("", "pods", "get")]), parse([rule("", "*/", "get")])) == []


GROUPS, RESOURCES, NAMES = ["", "apps", "*"], ["pods", "pods/log", "*", "*/log"], ["x", "y"]
rules = st.builds(
    lambda groups, resources, verbs, names: {
        "apiGroups": groups,
        "resources": resources,
        "verbs": verbs,
        **({"resourceNames": names} if names else {}),
    },
    *(st.lists(st.sampled_from(values), unique=True) for values in (GROUPS, RESOURCES, ["get", "list", "use", "*"], NAMES)),
)
Atom = tuple[str, str, str, str]
ATOMS = list(itertools.product(["", "apps", "batch"], ["pods", "pods/log", "jobs", "jobs/log"], ["get", "list", "watch"], "xyz"))
"""Group, resource, verb and name of single requests: some that the rules name, and some that only a wildcard reaches."""


def allows(found: list[Object], atom: Atom) -> bool:
    """Whether Kubernetes would allow a request by these rules: its documentation in our words, and nothing of ours."""
    group, resource, verb, name = atom
    below = "*/" + resource.partition("/")[2] if "/" in resource else resource
    return any(
        (group in each["apiGroups"] or "*" in each["apiGroups"])
        and not {resource, below, "*"}.isdisjoint(each["resources"])
        and (verb in each["verbs"] or "*" in each["verbs"])
        and name in (each.get("resourceNames") or name)
        for each in found
    )


@settings(deadline=None)
@given(st.lists(rules, max_size=4), st.lists(rules, max_size=4))
def test_intersection_means_intersection(source: list[Object], consent: list[Object]) -> None:
    """Of every single right: it is projected exactly when the source and the consent both have it."""
    projected = within(parse(source), parse(consent))
    for atom in ATOMS:
        assert allows(projected, atom) == (allows(source, atom) and allows(consent, atom))


@settings(deadline=None)
@given(st.lists(rules, max_size=5))
def test_normal_form_changes_no_right(source: list[Object]) -> None:
    """Leaving out covered rules takes no right away and adds none, and leaves none that another covers."""
    kept = stored(parse(source))
    for atom in ATOMS:
        assert allows(kept, atom) == allows(source, atom)
    given_by = [{atom for atom in ATOMS if allows([each], atom)} for each in kept]
    assert not [each for each, other in itertools.permutations(given_by, 2) if each <= other]
