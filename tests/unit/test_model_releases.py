"""Names, targets, values and dashboard values of releases, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from release_provisioning.projects.dashboards import dashboards_of
from release_provisioning.projects.seen import Contender, ObservedRelease, targets_of
from release_provisioning.projects.values import composed_values, values_problem
from tenantry.model.config import Chart, Config
from tenantry.model.kinds import Object
from tenantry.model.releases import (
    ChartKey,
    by_age,
    chart_for,
    claimants,
    release_name,
    release_name_problem,
    release_namespace,
)
from tenantry.model.selectors import BadSelector
from tenantry.model.values import as_yaml, is_deeper, merged

PLAIN = Chart(helmApiVersion="dummy.cattle.io/v1alpha1", releaseName="dummy")
SINGLE = Chart(helmApiVersion="monitoring.cattle.io/v1alpha1", releaseName="monitoring", singleton=True)
LABEL = "field.cattle.io/projectId"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def config(label: str = LABEL, system: str = "p-system", **operator: Any) -> Config:
    cattle = {"projectLabel": label, "clusterId": "c-test", "systemProjectId": system, "url": "u", "systemDefaultRegistry": "r"}
    charts = [chart.model_dump(by_alias=True) for chart in (PLAIN, SINGLE)]
    return Config.model_validate({"global": {"cattle": cattle}, "helmProjectOperator": {"charts": charts, **operator}})


def asked(name: str = "demo", namespace: str = "cattle-project-p-a", created: str = "0", **spec: Any) -> Object:
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": f"2026-01-01T00:00:0{created}Z"}
    return {"apiVersion": "helm.cattle.io/v1alpha1", "kind": "ProjectHelmChart", "metadata": metadata, "spec": spec}


def namespace(name: str, project: str = "p-a", **metadata: Any) -> Object:
    labels = {LABEL: project, "team": name}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels, **metadata}}


def test_names_are_made_and_found_again() -> None:
    """A release is named after its ProjectHelmChart or, for a singleton, after the namespace; the name says where to look."""
    key = ChartKey("cattle-project-p-a", "demo")

    assert release_name(key, PLAIN) == "demo-dummy"
    assert release_name(key, SINGLE) == "cattle-project-p-a-monitoring"
    assert claimants("demo-dummy", config()) == [("", "demo")]
    assert claimants("cattle-project-p-a-monitoring", config()) == [("cattle-project-p-a", "")]
    assert claimants("-dummy", config()) == claimants("other", config()) == []
    assert claimants("demo-dummy", config(label="")) == [("cattle-helm-system", "demo")]
    assert claimants("cattle-project-p-a-monitoring", config(label="")) == []


def test_a_chart_is_chosen_by_its_exact_version() -> None:
    """Only an exactly equal helmApiVersion chooses a chart; null and missing specs choose none."""
    assert chart_for(asked(helmApiVersion="dummy.cattle.io/v1alpha1"), config()) == PLAIN
    assert chart_for(asked(helmApiVersion="dummy.cattle.io/v1"), config()) is None
    assert chart_for({**asked(), "spec": None}, config()) is None


@pytest.mark.parametrize(
    ("name", "dedicated", "words"),
    [
        ("x" * 50, True, ""),
        ("x" * 51, True, "at most 50"),
        ("a.b-dummy", True, "cannot name a namespace"),
        ("a.b-dummy", False, ""),
        ("a..b", False, "cannot name"),
    ],
)
def test_names_that_cannot_be(name: str, dedicated: bool, words: str) -> None:
    """50 characters fit into the name of a Job; where releases have namespaces of their own, a name is a DNS label."""
    problem = release_name_problem(name, config(projectReleaseNamespaces={"enabled": dedicated}))

    assert words in problem if words else problem == ""


def test_the_oldest_comes_first_and_then_the_name() -> None:
    """Age decides, and within a second the namespace and name."""
    old, young = asked("z"), asked("a", created="1")
    same = asked("a", namespace="b")

    assert by_age([young, old, same]) == [same, old, young]


def targets(found: list[Object], settings: Config, project: str = "p-a", **spec: Any) -> list[str]:
    return list(targets_of(Contender(asked(**spec), PLAIN, project), ObservedRelease("r", members=found), settings))


def test_targets_are_the_living_members_and_the_release_itself() -> None:
    """Terminating, foreign and system namespaces are none; without members the release's own does not count either."""
    found = [namespace("b"), namespace("a"), namespace("c", deletionTimestamp="x"), namespace("kube-system"), namespace("d", "q")]

    assert targets(found, config()) == ["a", "b", "r"]
    assert targets(found, config(projectReleaseNamespaces={"enabled": False})) == ["a", "b"]
    assert targets(found, config(), "none") == []
    assert release_namespace(ChartKey("n", "x"), "r", config()) == "r"
    assert release_namespace(ChartKey("n", "x"), "r", config(projectReleaseNamespaces={"enabled": False})) == "n"


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        (None, []),
        ({}, ["a", "b"]),
        ({"matchLabels": {"team": "a"}}, ["a"]),
        ({"matchLabels": {"team": None}}, []),
        ({"matchExpressions": [{"key": "team", "operator": "In", "values": ["b"]}]}, ["b"]),
        ({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]}, ["a"]),
        ({"matchExpressions": [{"key": "none", "operator": "NotIn", "values": ["b"]}]}, ["a", "b"]),
        ({"matchExpressions": [{"key": "team", "operator": "Exists"}]}, ["a", "b"]),
        ({"matchExpressions": [{"key": "team", "operator": "DoesNotExist", "values": None}]}, []),
    ],
)
def test_selectors(selector: Object | None, names: list[str]) -> None:
    """A selector chooses as the API's label selectors do; none chooses nothing, an empty one everything but the system."""
    found = [namespace("b"), namespace("a"), namespace("kube-system"), namespace("gone", deletionTimestamp="x")]

    assert targets(found, config(label=""), projectNamespaceSelector=selector) == names


def test_an_unknown_operator_is_an_error() -> None:
    """An operator that nobody knows is told with its field, even when other parts match nothing."""
    selector = {"matchLabels": {"team": "none"}, "matchExpressions": [{"key": "team", "operator": "Like"}]}

    with pytest.raises(BadSelector, match=r"matchExpressions\[0\].operator: must be one of In, NotIn, Exists, DoesNotExist"):
        targets([namespace("a")], config(label=""), projectNamespaceSelector=selector)


def test_layers_win_in_their_order() -> None:
    """Installation defaults, the owner, the installation, the chart, the project; lists are replaced, maps merged."""
    chart = Chart(helmApiVersion="a.b/v1", releaseName="x", valuesOverride={"b": "chart"})
    values = {"a": "owner", "b": "owner", "l": [1, 2], "m": {"x": 1}, "global": {"cattle": {"projectID": "evil", "url": "owner"}}}
    made = composed_values(
        asked(values=values), chart, "p-a", ["a1"], config(valuesOverride={"a": "op", "b": "op", "l": [3], "m": {"y": None}})
    )

    assert (made["a"], made["b"], made["l"], made["m"]) == ("op", "chart", [3], {"x": 1, "y": None})
    assert made["global"]["cattle"] == {
        "systemDefaultRegistry": "r",
        "url": "owner",
        "clusterId": "c-test",
        "projectID": "p-a",
        "releaseProjectID": "p-system",
        "projectNamespaces": ["a1"],
        "projectNamespaceSelector": {"matchLabels": {"helm.cattle.io/projectId": "p-a"}},
    }


@pytest.mark.parametrize("broken", [{"global": "x"}, {"global": None}, {"global": {"cattle": [1]}}, {}])
def test_forced_values_stand_on_anything(broken: Object) -> None:
    """Whatever the owner puts where a map is needed, what the project is gets there whole, and nothing is merged into it."""
    given_selector = {"global": {"cattle": {"projectNamespaceSelector": {"matchLabels": {"evil": "1"}}}}}
    for values in (broken, given_selector):
        cattle = composed_values(asked(values=values), PLAIN, "p-a", [], config())["global"]["cattle"]

        assert cattle["projectID"] == "p-a"
        assert cattle["projectNamespaceSelector"] == {"matchLabels": {"helm.cattle.io/projectId": "p-a"}}


@pytest.mark.parametrize(
    ("config", "asks_for", "selector"),
    [
        (config(), {}, {"matchLabels": {"helm.cattle.io/projectId": "p-a"}, "matchExpressions": ["x"], "mine": {"a": 1}}),
        (
            config(projectReleaseNamespaces={"enabled": False}),
            {},
            {"matchLabels": {"field.cattle.io/projectId": "p-a"}, "matchExpressions": ["x"], "mine": {"a": 1}},
        ),
        (config(label=""), {"matchLabels": {"team": "x"}}, {"matchLabels": {"team": "x"}, "mine": {"a": 1}}),
        (config(label=""), {}, {"mine": {"a": 1}}),
    ],
    ids=["release namespaces", "label", "single namespace", "everything"],
)
def test_the_selector_keeps_what_stands_beside_it(config: Config, asks_for: Object, selector: Object) -> None:
    """Its parts are the project's alone and whole; with a project label that is matchLabels, and expressions may narrow it."""
    written = {"matchLabels": {"evil": "1"}, "matchExpressions": ["x"], "mine": {"a": 1}}
    values = {"global": {"cattle": {"projectNamespaceSelector": written}}}
    spec = asked(values=values, projectNamespaceSelector=asks_for)

    assert composed_values(spec, PLAIN, "p-a", [], config)["global"]["cattle"]["projectNamespaceSelector"] == selector
    assert written["matchLabels"] == {"evil": "1"}


@given(JSON, JSON)
def test_merging_never_mixes(base: Any, over: Any) -> None:
    """Merging a value with itself or with nothing changes nothing, and everything of the later layer is in the result."""
    assert merged(base, base) == base
    whole = merged({"k": base}, {"k": over})
    if not (isinstance(base, dict) and isinstance(over, dict)):
        assert whole == {"k": over}
    else:
        assert set(whole["k"]) == set(base) | set(over)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_the_text_of_values_reads_as_the_values(values: Object) -> None:
    """Reading the text gives the values again, and the order in which they were written does not matter."""
    turned = dict(reversed(list(values.items())))

    assert yaml.safe_load(as_yaml(values)) == values
    assert as_yaml(turned) == as_yaml(values)


@pytest.mark.parametrize("text", ["1e3", "y", "0o7", "on", "null", "~", "1_000", "0x1F", "2024-01-01", "=", "<<", "", ".inf"])
def test_strings_that_another_parser_reads_as_something_else_are_quoted(text: str) -> None:
    """What a Go parser could take for a number, a boolean or a date is quoted."""
    assert as_yaml({"k": text}) == f'k: "{text}"\n'


def test_depth() -> None:
    """A hundred levels are values, more are told."""
    deep: Object = {}
    for _ in range(101):
        deep = {"a": [deep]}

    assert not is_deeper({"a": [{"b": 1}]}, 2)
    assert is_deeper({"a": [{"b": 1}]}, 1)
    assert values_problem(asked(values={"a": 1})) == values_problem(asked()) == ""
    assert "more than 100 levels" in values_problem(asked(values=deep))


def dashboard(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_dashboards_are_merged_by_name_and_key() -> None:
    """ConfigMaps by name, keys by name; lists at the top are joined, the last scalar wins, what is no JSON is left out."""
    first = dashboard("a", **{"1.json": '{"l": [1], "k": 1, "m": {"l": [1]}}', "x.txt": "{}", "bad.json": "{"})
    second = dashboard("b", **{"1.json": '{"l": [2], "k": 2, "m": {"l": [2]}}', "list.json": "[1]"})

    found = dashboards_of([second, first])

    assert found.values == {"l": [1, 2], "k": 2, "m": {"l": [2]}}
    assert [each.partition(" ")[0] for each in found.left_out] == ["a/bad.json", "a/x.txt", "b/list.json"]
    assert dashboards_of([{"metadata": {"name": "empty"}}]).values == {}


def test_dashboards_that_do_not_fit_are_left_out() -> None:
    """Too large and too deep values are left out, and the rest is shown."""
    large, deep = '{"x": "' + "y" * 300_000 + '"}', '{"a":' * 120 + "1" + "}" * 120
    found = dashboards_of([dashboard("a", **{"1.json": '{"k": 1}', "2.json": large, "3.json": deep})])

    assert found.values == {"k": 1}
    assert found.left_out[0].startswith("a/2.json is too large: ")
    assert len(found.left_out) == 2


def test_of_very_many_dashboards_the_first_are_shown() -> None:
    """So much work is for one release, and no more; what is left out is told before anything else."""
    many = {f"{number:05}.json": f'{{"k{number}": 1}}' for number in range(30_000)}
    found = dashboards_of([dashboard("b", **{"z.json": '{"z": 1}'}), dashboard("a", **many)])

    assert list(found.values) == [f"k{number}" for number in range(1000)]
    assert found.left_out == ("the keys after the first 1,000: put them together",)


@pytest.mark.parametrize("number", ["1e999", "-1e400", str(2**63), str(-(2**63) - 1), "1.2345678901234567e18", "1e30"])
def test_a_number_that_would_not_come_back_is_left_out(number: str) -> None:
    """The API server keeps 64 bits: what it would round is told, and what stands beside it is shown."""
    wild = f'{{"a": [{{"b": {number}}}]}}'
    found = dashboards_of([dashboard("a", **{"1.json": wild, "2.json": f'{{"a": {2**63 - 1}, "b": 0.1, "c": true}}'})])

    assert found.values == {"a": 2**63 - 1, "b": 0.1, "c": True}
    assert found.left_out == ("a/1.json has a number that Kubernetes would not keep: write it as a text",)
