"""The lint of sources and Triggers: what Knative accepts without a word and then does wrong.

The facts are those of Knative eventing 1.22: a filter with an empty value is skipped and then everything
matches, and inside ``not`` it ends the filter process; a Trigger's delivery replaces the broker's as a whole; a
missing timeout means none; an adapter with a namespace selector restarts when a namespace comes or goes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import manifests
import pytest
from croniter import croniter
from manifests import Document, guessed_plural, seconds

DIALECTS = {"exact", "prefix", "suffix", "all", "any", "not", "cesql"}
CLUSTER_SCOPED = manifests.CLUSTER_SCOPED
MODES = {"Resource": "resource", "Reference": "ref"}


def complaints(filters: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the filters of a Trigger, at any depth."""
    found = []
    for one in filters:
        if len(one) != 1 or not one.keys() <= DIALECTS:
            found.append(f"one dialect per filter, not {sorted(one)}")
            continue
        ((dialect, content),) = one.items()
        if not content:
            found.append(f"{dialect} is empty")
        elif dialect in {"all", "any"}:
            found += complaints(content)
        elif dialect == "not":
            found += complaints([content])
        elif dialect != "cesql":
            found += [f"{dialect} {key} has an empty value" for key, value in content.items() if value == ""]
            found += [f"{dialect} {key} is no attribute" for key in content if not re.fullmatch("[a-z][a-z0-9]*", key)]
            found += [f"{dialect} {key} is no string" for key, value in content.items() if not isinstance(value, str)]
    return found


def passes(filters: list[dict[str, Any]], event: dict[str, str]) -> bool:
    """Whether an event passes the filters; of the dialects those that our Triggers use."""
    return all(passes_one(one, event) for one in filters)


def passes_one(one: dict[str, Any], event: dict[str, str]) -> bool:
    ((dialect, content),) = one.items()
    if dialect == "any":
        return any(passes_one(below, event) for below in content)
    if dialect == "exact":
        return all(event.get(key) == value for key, value in content.items())
    if dialect == "prefix":
        return all(event.get(key, "").startswith(value) for key, value in content.items())
    raise AssertionError(f"teach this test the dialect {dialect}")


def of_kind(found: list[Document], *kinds: str) -> list[Document]:
    return [d for d in found if d.kind in kinds and d.group.endswith("knative.dev")]


def receivers(found: list[Document], event: dict[str, str]) -> list[str]:
    """The subscribers that an event reaches, one entry per Trigger that passes it."""
    triggers = of_kind(found, "Trigger")
    return [t.spec["subscriber"]["ref"]["name"] for t in triggers if passes(t.spec["filters"], event)]


@pytest.mark.parametrize("function", manifests.functions())
def test_each_function_has_its_files(function: str) -> None:
    """What deploys a function and what wakes it are found under its own name."""
    assert (manifests.ROOT / "triggers" / f"{function}.yaml").is_file()
    assert (manifests.ROOT / "knative" / function / "kustomization.yaml").is_file()


def test_no_filter_fails_open(documents: list[Document]) -> None:
    """No filter has an empty value or mixes dialects, at any depth."""
    for trigger in of_kind(documents, "Trigger"):
        assert trigger.spec["filters"], f"{trigger} would match everything"
        assert "filter" not in trigger.spec, f"{trigger}: filters win over filter, so filter misleads"
        assert not complaints(trigger.spec["filters"]), str(trigger)


@pytest.mark.parametrize(
    "bad",
    [
        {"exact": {"namespace": ""}},
        {"exact": {}},
        {"any": [{"exact": {"kind": "Namespace"}}, {"prefix": {"namespace": ""}}]},
        {"not": {"exact": {"namespace": ""}}},
        {"all": [{"not": {"any": [{"suffix": {"name": ""}}]}}]},
        {"all": []},
        {"exact": {"kind": "Namespace"}, "prefix": {"name": "a"}},
        {"exact": {"apiVersion": "v1"}},
        {"equals": {"kind": "Namespace"}},
    ],
)
def test_the_lint_finds_bad_filters(bad: dict[str, Any]) -> None:
    """The lint finds each form of filter that Knative would skip, at any depth."""
    assert len(complaints([bad])) == 1


def test_each_trigger_writes_its_delivery_out(installation: list[Document]) -> None:
    """Every Trigger says how often, how long and how patiently to try, and where a hopeless event ends."""
    for trigger in of_kind(installation, "Trigger"):
        delivery = trigger.spec["delivery"]

        assert set(delivery) == {"retry", "backoffPolicy", "backoffDelay", "timeout", "deadLetterSink"}, str(trigger)
        assert delivery["retry"] in range(1, 6), f"{trigger}: the source's watch waits for retries"
        assert delivery["backoffPolicy"] == "exponential"
        assert seconds(delivery["backoffDelay"]) >= 1
        assert delivery["deadLetterSink"]["ref"] != trigger.spec["subscriber"]["ref"], f"{trigger} is its own dead end"


def test_timeouts_are_nested(installation: list[Document]) -> None:
    """A run is ended before the broker gives up on it, so no event is repeated while its first run goes on."""
    limits = {d.name: d.spec["template"]["spec"]["timeoutSeconds"] for d in of_kind(installation, "Service")}
    limits |= {
        d.name: d.spec["template"]["spec"]["terminationGracePeriodSeconds"] for d in installation if d.kind == "Deployment"
    }
    triggers = of_kind(installation, "Trigger")

    assert triggers
    for trigger in triggers:
        assert limits[trigger.spec["subscriber"]["ref"]["name"]] < seconds(trigger.spec["delivery"]["timeout"]), str(trigger)


def test_sources_of_cluster_scoped_kinds_have_no_selector(documents: list[Document]) -> None:
    """A source of cluster-scoped kinds has no namespace selector and no other kinds: no new namespace restarts it."""
    for source in of_kind(documents, "ApiServerSource"):
        kinds = {resource["kind"] for resource in source.spec["resources"]}

        assert kinds <= CLUSTER_SCOPED or not kinds & CLUSTER_SCOPED, f"{source} mixes both"
        if kinds & CLUSTER_SCOPED:
            assert "namespaceSelector" not in source.spec, str(source)
        assert source.spec["mode"] in MODES


def test_every_change_reaches_its_function(documents: list[Document]) -> None:
    """Every event of a source passes exactly one Trigger of its function, in either mode and whatever happened."""
    for source in of_kind(documents, "ApiServerSource"):
        function = source.body["metadata"]["labels"]["app.kubernetes.io/name"]
        for resource in source.spec["resources"]:
            for mode in MODES.values():
                for change in ("add", "update", "delete"):
                    event = {
                        "type": f"dev.knative.apiserver.{mode}.{change}",
                        "kind": resource["kind"],
                        "apiversion": resource["apiVersion"],
                        "name": "a",
                        "namespace": "",
                        **source.spec.get("ceOverrides", {}).get("extensions", {}),
                    }

                    assert receivers(documents, event).count(function) == 1, f"{source}: {event}"


def test_no_change_reaches_a_function_twice(documents: list[Document]) -> None:
    """Of all the sources that announce a change to an object, a function listens to one; only selections may differ."""
    heard: dict[tuple[str, str, str], list[str]] = {}
    for source in of_kind(documents, "ApiServerSource"):
        extensions = source.spec["ceOverrides"]["extensions"]
        for resource in source.spec["resources"]:
            event = {"type": "dev.knative.apiserver.ref.update", "kind": resource["kind"], "apiversion": resource["apiVersion"]}
            for function in receivers(documents, {**event, **extensions}):
                selection = _selector(resource.get("selector") or {})
                heard.setdefault((function, resource["apiVersion"], resource["kind"]), []).append(selection)

    assert all("" not in selections or len(selections) == 1 for selections in heard.values()), heard
    assert all(len(set(selections)) == len(selections) for selections in heard.values()), heard


@pytest.mark.parametrize("function", manifests.functions())
def test_every_function_sweeps_and_takes_requests(documents: list[Document], function: str) -> None:
    """Each function gets its own schedule event and its own requests, and no other function's."""
    for kind in (
        {"type": "dev.knative.sources.ping", "resync": function},
        {"type": "dev.tenantry.reconcile.requested", "function": function},
    ):
        assert receivers(documents, kind) == [function]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "com.example.created", "kind": "Namespace", "apiversion": "v1"},
        {"type": "dev.knative.apiserver.resource.add", "kind": "Secret", "apiversion": "v1"},
        {"type": "dev.knative.apiserver.resource.add", "kind": "Namespace", "apiversion": "example.com/v1"},
        {"type": "dev.knative.apiserver.resource.add", "kind": "Namespace", "apiversion": "v1"},
        {"type": "dev.knative.apiserver.resource.add", "kind": "Namespace", "apiversion": "v1", "watch": "somebody-else"},
        {"type": "dev.knative.sources.ping"},
        {"type": "dev.knative.sources.ping", "resync": "somebody-else"},
        {"type": "dev.tenantry.reconcile.requested"},
    ],
)
def test_foreign_events_reach_nobody(documents: list[Document], event: dict[str, str]) -> None:
    """Events of other producers on the same broker wake no function."""
    assert receivers(documents, event) == []


def test_schedules(documents: list[Document]) -> None:
    """A sweep is a JSON object, comes every 5 to 15 minutes, and no two sweeps come in one minute."""
    minutes: list[int] = []
    for source in of_kind(documents, "PingSource"):
        fields, _ = croniter.expand(source.spec["schedule"])
        own = sorted(int(minute) for minute in fields[0])
        gaps = [(b - a) % 60 or 60 for a, b in zip(own, own[1:] + own[:1], strict=True)]

        assert json.loads(source.spec["data"]) == {"resync": "all"}
        assert source.spec["contentType"] == "application/json"
        assert fields[1:] == [["*"]] * 4
        assert all(5 <= gap <= 15 for gap in gaps), f"{source}: {gaps}"
        minutes += own

    assert minutes
    assert len(minutes) == len(set(minutes))


def test_all_of_one_file_belongs_to_one_function(documents: list[Document]) -> None:
    """Names and labels in a function's trigger file are the function's own."""
    for document in documents:
        if document.path.parts[0] == "triggers":
            assert document.body["metadata"]["labels"]["app.kubernetes.io/name"] == document.path.stem
            assert document.name.startswith(f"{document.path.stem}-")


def _selector(selector: dict[str, Any]) -> str:
    """A label selector as the API server's query parameter has it."""
    signs = {"Exists": "{key}", "DoesNotExist": "!{key}"}
    parts = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    parts += [signs[each["operator"]].format(key=each["key"]) for each in selector.get("matchExpressions", ())]
    return ",".join(parts)


def test_container_source_watches_what_it_replaces(documents: list[Document]) -> None:
    """The constant configuration of the ContainerSource watches what the ApiServerSource of the same name watches."""
    sources = {d.name: d for d in of_kind(documents, "ApiServerSource")}
    replacements = of_kind(documents, "ContainerSource")

    assert {each.name for each in replacements} == {name for name, each in sources.items() if "namespaceSelector" in each.spec}
    for replacement in replacements:
        original = sources[replacement.name].spec
        env = {e["name"]: e["value"] for e in replacement.spec["template"]["spec"]["containers"][0]["env"]}
        config = json.loads(env["K_SOURCE_CONFIG"])
        wanted = []
        for resource in original["resources"]:
            group, _, version = resource["apiVersion"].rpartition("/")
            gvr = {"Group": group, "Version": version, "Resource": guessed_plural(resource["kind"])}
            text = _selector(resource.get("selector") or {})
            wanted.append({"gvr": gvr, "selector": text} if text else {"gvr": gvr})

        assert config["resources"] == wanted
        assert config["mode"] == original["mode"]
        assert config["allNamespaces"] is True
        assert int(env["K_SINK_TIMEOUT"]) > 0
        assert replacement.spec["sink"] == original["sink"]
        assert replacement.spec["ceOverrides"] == original["ceOverrides"]
        assert replacement.spec["template"]["spec"]["serviceAccountName"] == original["serviceAccountName"]
