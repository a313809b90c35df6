"""The lists of fences are judged and written by what functions wrote."""

from __future__ import annotations

from typing import Any

from tenantry.local.fences import fence_files
from tenantry.testing.audit import Used
from tenantry.testing.fences import Line, entries, judge, judge_all, rewritten
from tenantry.testing.writes import LISTS, Written, written

FUNCTION = "namespace-registration"
FENCE = """\
spec:
  variables:
    # Labels.
    - name: labels
      expression: |-
        [
          "team",
          "cost",  // since the bill came
        ]
    - name: memberLabels
      expression: |-
        [
        ]
    - name: systemNamespaces
      expression: |-
        [
          "kube-system",
        ]
  validations: []
"""
TEAM, COST = Written(FUNCTION, "labels", "team"), Written(FUNCTION, "labels", "cost")


def event(body: Any, *, verb: str = "patch", resource: str = "namespaces", message: str = "", **more: Any) -> dict[str, Any]:
    code = 422 if message else 200
    return {
        "user": {"username": f"system:serviceaccount:tenantry-system:{FUNCTION}"},
        "userAgent": f"tenantry/1 (tenantry-{FUNCTION})",
        "verb": verb,
        "objectRef": {"resource": resource, "name": "x", **more},
        "requestObject": body,
        "responseStatus": {"code": code, "message": message},
        "annotations": {"authorization.k8s.io/reason": 'RBAC: allowed by X of ClusterRole "tenantry-x"'},
    }


def found(body: Any, **more: Any) -> set[tuple[str, str]]:
    return {(each.list, each.value) for each in written(event(body, **more), FUNCTION)[0]}


def test_entries_have_their_lines() -> None:
    """Every entry of every list is found where it stands, with or without a comment."""
    assert entries(FENCE) == [
        Line("labels", "team", 7),
        Line("labels", "cost", 8),
        Line("systemNamespaces", "kube-system", 17),
    ]


def test_a_fence_that_fits_is_left_alone() -> None:
    """Where every entry was written, nothing is found; a list that refuses is nobody's to use."""
    assert judge(FUNCTION, FENCE, {TEAM, COST}) == []
    assert rewritten(FUNCTION, FENCE, {TEAM, COST}) == FENCE


def test_an_entry_that_no_test_wrote_goes() -> None:
    """It is found with its line, and taken out with its comment."""
    assert [str(each) for each in judge(FUNCTION, FENCE, {TEAM})] == [
        'line 8: no test wrote "cost" of the list labels; change it to: (remove it)'
    ]
    assert rewritten(FUNCTION, FENCE, {TEAM}) == FENCE.replace('          "cost",  // since the bill came\n', "")


def test_an_entry_that_was_refused_comes() -> None:
    """What the fence refused its function is lacking: it is found at the list, and written at its end."""
    lacking = {Written(FUNCTION, "memberLabels", "owner")}
    assert [(each.line, each.change) for each in judge(FUNCTION, FENCE, {TEAM, COST}, lacking)] == [
        (13, 'a further line: "owner",')
    ]
    better = rewritten(FUNCTION, FENCE, {TEAM, COST}, lacking)
    assert '        [\n          "owner",\n        ]\n' in better
    assert judge(FUNCTION, better, {TEAM, COST}, lacking) == []


def test_what_a_configuration_allows_is_not_lacking() -> None:
    """A label that was written under another configuration stands in that installation's fence, not in the file."""
    theirs = Written(FUNCTION, "labels", "billing")
    assert judge(FUNCTION, FENCE, {TEAM, COST, theirs}, {theirs}) == []


def test_what_a_request_writes() -> None:
    """Keys of labels from an apply and from a JSON patch; tests of a patch, refusals by others and status tell nothing."""
    assert found({"metadata": {"labels": {"a/b": "c"}}}) == {("labels", "a/b"), ("memberLabels", "a/b")}
    removal = [{"op": "test", "path": "/metadata/labels/x", "value": "y"}, {"op": "remove", "path": "/metadata/labels/a~1b"}]
    assert found(removal) == {("labels", "a/b"), ("memberLabels", "a/b")}
    assert found([{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]) == {("annotations", "a")}
    assert found({"metadata": {"labels": {"a": "b"}}}, message="not by a fence") == set()
    assert found({"metadata": {"labels": {"a": "b"}}}, subresource="status") == set()
    assert found(None) == set()


def test_finalizers_that_a_patch_takes_off() -> None:
    """A JSON patch that replaces finalizers writes those that come or go."""
    steps = [
        {"op": "test", "path": "/metadata/finalizers", "value": ["a", "b"]},
        {"op": "replace", "path": "/metadata/finalizers", "value": ["b"]},
    ]
    one = event(steps, resource="helmreleases")
    assert written(one, "lock-enforcement")[0] == {Written("lock-enforcement", "finalizers", "a")}


def test_refusals_of_the_fence_count() -> None:
    """They tell what is lacking, also after a way through a file."""
    used = Used()
    refusal = "ValidatingAdmissionPolicy 'tenantry-fence' with binding denied request: no"
    used.add(event({"metadata": {"labels": {"new": "x"}}}, message=refusal, resource="configmaps"))
    assert used.written == set()
    assert Used.of(used.document()).refused == {Written(FUNCTION, "labels", "new")}


def test_every_list_is_known() -> None:
    """Lists that are looked for are in the fences, and each fence is found."""
    there = {(function, line.list) for function, path in fence_files().items() for line in entries(path.read_text())} | {
        ("release-provisioning-helm-jobs", "roles")
    }  # empty by default
    assert set(LISTS) <= there
    everything = {Written(f, e.list, e.value) for f, path in fence_files().items() for e in entries(path.read_text())}
    assert judge_all(everything, set()) == []
    assert judge_all(set(), set())
