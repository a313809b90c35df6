"""Subjects and resources as kubectl's users write them, lines of the configuration, and fields by their managers."""

from __future__ import annotations

import pytest

from tenantry.api.served import ServedResource
from tenantry.cli.explain.configured import Configured, line_of
from tenantry.cli.explain.objects import function_of, paths_in
from tenantry.cli.explain.printed import object_lines
from tenantry.cli.explain.resources import NamedResource, find, place_of, resource_named
from tenantry.cli.explain.subjects import asked_about
from tenantry.cli.one_line import WrongUse
from tenantry.model.kinds import DEPLOYMENT, NAMESPACE, POD, ROLE_BINDING, Kind
from tenantry.model.origin import all_of, edit

NODE = Kind("v1", "Node", "nodes", namespaced=False)
OTHERS = Kind("example.com/v2", "Deployment", "deployments")
ALL = frozenset({"get", "list", "create", "delete"})
SERVED = [
    ServedResource(POD, frozenset({"pods", "pod", "po"}), frozenset({"log", "exec"}), ALL),
    ServedResource(NODE, frozenset({"nodes", "node", "no"}), frozenset(), ALL),
    ServedResource(NAMESPACE, frozenset({"namespaces", "namespace", "ns"}), frozenset({"status"}), ALL),
    ServedResource(DEPLOYMENT, frozenset({"deployments", "deployment", "deploy"}), frozenset({"scale"}), ALL),
    ServedResource(OTHERS, frozenset({"deployments", "deployment"}), frozenset(), ALL),
]


@pytest.mark.parametrize(
    ("written", "user", "groups", "text"),
    [
        ("jane", "jane", ("system:authenticated",), "User jane"),
        ("user:group:odd", "group:odd", ("system:authenticated",), "User group:odd"),
        ("group:devs", "", ("devs", "system:authenticated"), "Group devs"),
        ("group:system:authenticated", "", ("system:authenticated",), "Group system:authenticated"),
        ("system:anonymous", "system:anonymous", ("system:unauthenticated",), "User system:anonymous"),
        (
            "sa:ns/op",
            "system:serviceaccount:ns:op",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
            "ServiceAccount ns/op",
        ),
        (
            "group:system:serviceaccounts:ns",
            "",
            ("system:serviceaccounts:ns", "system:serviceaccounts", "system:authenticated"),
            "Group system:serviceaccounts:ns",
        ),
    ],
)
def test_a_subject_has_the_groups_that_the_api_server_gives_him(
    written: str, user: str, groups: tuple[str, ...], text: str
) -> None:
    """Users, groups and accounts, in all their forms."""
    assert asked_about(written) == (user, groups, text)


def test_further_groups_are_added() -> None:
    """Those of an identity provider are known only to whoever asks."""
    assert asked_about("jane", ["devs"]).groups == ("devs", "system:authenticated")
    assert asked_about("system:serviceaccount:ns:op") == asked_about("sa:ns/op")


@pytest.mark.parametrize(
    "written", ["", "user:", "group:", "sa:op", "sa:/op", "sa:ns/", "sa:NS/op", "system:serviceaccount:ns", "sa:a/b/c"]
)
def test_a_subject_that_nobody_is_says_how_to_write_one(written: str) -> None:
    """Empty names, and accounts without namespace."""
    with pytest.raises(WrongUse, match=r"write|use one of|written"):
        asked_about(written)


def test_a_group_that_is_empty_is_told() -> None:
    """Not taken for a group without name."""
    with pytest.raises(WrongUse, match="--group"):
        asked_about("jane", [""])


@pytest.mark.parametrize(
    ("written", "group", "resource", "subresource", "name"),
    [
        ("pods", "", "pods", "", ""),
        ("po", "", "pods", "", ""),
        ("Pod", "", "pods", "", ""),
        ("pods/log", "", "pods", "log", ""),
        ("pods/web", "", "pods", "", "web"),
        ("pods/web/log", "", "pods", "log", "web"),
        ("deploy", "apps", "deployments", "", ""),
        ("deployments.apps", "apps", "deployments", "", ""),
        ("deployments.v1.apps/scale", "apps", "deployments", "scale", ""),
        ("deployments.example.com", "example.com", "deployments", "", ""),
        ("users", "", "users", "", ""),
        ("userextras/scopes", "authentication.k8s.io", "userextras", "scopes", ""),
        ("widgets.example.org", "example.org", "widgets", "", ""),
        ("*", "*", "*", "", ""),
        ("*.apps", "apps", "*", "", ""),
        ("*/scale", "*", "*", "scale", ""),
    ],
)
def test_a_resource_is_read_as_kubectl_reads_it(written: str, group: str, resource: str, subresource: str, name: str) -> None:
    """Plurals, short names, kinds, groups, versions, subresources, names, and what only rules know."""
    found = resource_named(written, "get", SERVED)

    assert (found.group, found.resource, found.subresource, found.name) == (group, resource, subresource, name)


def test_remarks_say_what_is_taken_for_what() -> None:
    """A subresource that could be a name, a resource that is not served, and a verb that it has not."""
    assert "--name log" in resource_named("pods/log", "get", SERVED).notes[0]
    assert "serves no widgets.example.org" in resource_named("widgets.example.org", "get", SERVED).notes[0]
    assert "'watch'" in resource_named("pods", "watch", SERVED).notes[0]
    assert not resource_named("pods", "impersonate", SERVED).notes
    assert resource_named("pods", "get", SERVED, name="log").name == "log"


@pytest.mark.parametrize(
    ("written", "words"),
    [("podz", "did you mean pod"), ("", "no resource"), ("pods//log", "no resource"), ("a/b/c/d", "no resource")],
)
def test_a_resource_that_is_none_is_told(written: str, words: str) -> None:
    """With what is near."""
    with pytest.raises(WrongUse, match=words):
        resource_named(written, "get", SERVED)


def test_two_names_are_too_many() -> None:
    """One in the resource, another as an option."""
    with pytest.raises(WrongUse, match="two names"):
        resource_named("pods/web", "get", SERVED, name="other")


def test_the_namespace_is_that_which_the_authorizer_sees() -> None:
    """Of what has none no namespace, with a remark where one was named; a namespace is in itself."""
    pods, nodes = resource_named("pods", "get", SERVED), resource_named("nodes", "get", SERVED)

    assert place_of(pods, "dev") == ("dev", ())
    assert place_of(nodes, "dev") == ("", ())
    assert "whole cluster" in place_of(nodes, "dev", chosen=True)[1][0]
    assert place_of(resource_named("ns/dev", "get", SERVED), "other") == ("dev", ())
    assert place_of(NamedResource("", "widgets"), "dev") == ("dev", ())


def test_a_kind_is_found_by_every_name() -> None:
    """The first of a name counts, which is that of the server's first group."""
    assert [found.kind for each in ("deploy", "deployments", "Deployment") if (found := find(each, SERVED))] == [DEPLOYMENT] * 3
    assert find("deployment.v2.example.com", SERVED) == SERVED[-1]
    assert find("deployment.v3.example.com", SERVED) is None


TEXT = """\
global:
  cattle:
    projectLabel: team
helmProjectOperator:
  charts:
    - helmApiVersion: a.example.com/v1
      releaseName: a
    - helmApiVersion: b.example.com/v1
      jobClusterRole: admin
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("global.cattle.projectLabel", 3),
        ("helmProjectOperator.charts[1].jobClusterRole", 9),
        ("helmProjectOperator.charts", 5),
        ("helmProjectOperator.charts[7].jobClusterRole", 0),
        ("global.cattle.clusterId", 0),
    ],
)
def test_a_setting_is_found_by_its_line(path: str, line: int) -> None:
    """As an editor counts; one that is not written is a default."""
    assert line_of(TEXT, path) == line
    assert Configured(source="tenantry.yaml", text=TEXT).place(path) == (f"tenantry.yaml:{line}" if line else "default")
    assert Configured().place(path) == "default"


def test_fields_are_named_by_their_paths() -> None:
    """Entries of lists by their key, sets by their value, labels in brackets."""
    fields = {
        "f:metadata": {"f:labels": {".": {}, "f:team": {}, "f:a.b/c": {}}, "f:finalizers": {'v:"x/y"': {}}},
        "f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}}}},
        "f:roleRef": {},
    }

    assert [*paths_in({"fieldsV1": fields})] == [
        "metadata.labels.team",
        "metadata.labels[a.b/c]",
        'metadata.finalizers["x/y"]',
        "status.conditions[type=Ready].status",
        "roleRef",
    ]


def test_a_field_manager_leads_to_the_narrowest_service() -> None:
    """Services have managers of their own; what only begins like us is somebody else's."""
    assert function_of("tenantry-rbac-aggregation") == "rbac-aggregation"
    assert function_of("tenantry-rbac-aggregation-paas") == "rbac-aggregation-paas"
    assert function_of("tenantry-namespace-registration-paas") == "namespace-registration"
    assert function_of("tenantry-cli") == ""


def test_many_fields_are_cut_in_text() -> None:
    """Deep ones are named from above, and what is left out is counted."""
    fields = [f"spec.template.spec.part{number}.more" for number in range(3)] + [f"data.key{number}" for number in range(20)]
    entry = {"manager": "m", "of": "f", "fields": fields}
    lines = [*object_lines({"madeBy": [], "fields": [entry], "finalizers": [], "others": []})]

    assert lines[2:4] == ["  spec.template.spec", "  data.key0"]
    assert lines[-1] == "  and 9 more: -o yaml has all"


def test_ways_that_are_needed_together_are_one_line() -> None:
    """Commands one after the other, each once, and what is to be done in an editor behind them."""
    leave = [edit(ROLE_BINDING, "b", f"take {who} out of subjects", "n") for who in ("amy", "bob")]
    bindings = "kubectl edit -n n rolebindings.rbac.authorization.k8s.io b"

    assert all_of([]) == ()
    assert all_of(["kubectl delete cm c"]) == ("kubectl delete cm c",)
    assert all_of(leave) == (f"{bindings}  # take amy out of subjects; take bob out of subjects",)
    assert all_of(["kubectl delete cm c", *leave[:1]]) == (f"kubectl delete cm c && {bindings}  # take amy out of subjects",)
