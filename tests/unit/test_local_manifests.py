"""The documents of triggers/ are loaded strictly, and errors say where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tenantry.local.manifests import Destination, ManifestError, heard, load, resolve
from tenantry.local.specs import Selector, Watched

ROOT = Path(__file__).parents[2]
SINK = {"sink": {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "b"}}}
EVENTING, SOURCES = "eventing.knative.dev/v1", "sources.knative.dev/v1"
BROKER = {"apiVersion": EVENTING, "kind": "Broker", "metadata": {"name": "b"}}


def document(kind: str, spec: dict[str, Any], name: str = "a") -> dict[str, Any]:
    version = EVENTING if kind in ("Trigger", "Broker") else SOURCES
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def trigger(**spec: Any) -> dict[str, Any]:
    return document("Trigger", {"broker": "b", "subscriber": {"uri": "http://f/"}, **spec})


def ping(**spec: Any) -> dict[str, Any]:
    return document("PingSource", {**SINK, **spec})


def source(**spec: Any) -> dict[str, Any]:
    return document("ApiServerSource", {"resources": [{"apiVersion": "v1", "kind": "Namespace"}], **SINK, **spec})


def configuration(*resources: dict[str, Any], **changes: Any) -> str:
    watched = resources or ({"gvr": {"Group": "", "Version": "v1", "Resource": "configmaps"}},)
    return json.dumps({"namespaces": [""], "allNamespaces": True, "mode": "Resource", "resources": watched, **changes})


def container_source(config: str = "", image: str = "r/apiserver_receive_adapter:v1", **variables: str) -> dict[str, Any]:
    given = {"NAME": "a", "NAMESPACE": "s", "SYSTEM_NAMESPACE": "k", "K_SOURCE_CONFIG": config or configuration(), **variables}
    env = [{"name": name, "value": value} for name, value in given.items()]
    pod = {"serviceAccountName": "reader", "containers": [{"name": "adapter", "image": image, "env": env, "ports": []}]}
    return document("ContainerSource", {**SINK, "ceOverrides": {"extensions": {"x": "y"}}, "template": {"spec": pod}})


def written(folder: Path, *documents: Any) -> Path:
    path = folder / "documents.yaml"
    path.write_text(yaml.safe_dump_all([BROKER, *documents]))
    return path


def test_our_own_triggers_load() -> None:
    """The very files that a cluster uses load, with filters, full delivery and the broker that they name."""
    manifests = load(ROOT / "triggers", ROOT / "knative" / "base" / "broker.yaml")

    modes = {source.name: source.mode for source in manifests.sources}
    assert (modes["namespace-registration-cluster"], modes["namespace-registration-owned"]) == ("Resource", "Reference")
    assert [broker.name for broker in manifests.brokers] == ["tenantry"]
    assert {ping.body for ping in manifests.pings} == {b'{"resync":"all"}'}
    for each in manifests.triggers:
        assert each.delivery is not None
        assert each.delivery.timeout
        assert each.delivery.dead_letter_sink is not None
        assert each.filter.text != "everything"


@pytest.mark.parametrize(
    ("bad", "finding"),
    [
        ({"apiVersion": "v1", "kind": "Secret"}, "unknown document Secret (v1); known are ApiServerSource"),
        ({**trigger(), "apiVersion": "eventing.knative.dev/v1beta1"}, "unknown document Trigger"),
        ("text", "expected an object"),
        ({**trigger(), "metadata": {}}, "metadata.name: expected a name"),
        ({**trigger(), "data": {}}, "data: unknown key"),
        (trigger(brokerRef={}), "spec: unknown key 'brokerRef'; known here are broker, delivery, filter"),
        (trigger(name="x"), "spec.name: unknown key"),
        (trigger(broker="other"), "spec.broker: no Broker default/other; known are default/b"),
        (trigger(subscriber={}), "spec.subscriber: give a ref, or an absolute uri"),
        (trigger(subscriber={"uri": "/path"}), "spec.subscriber: give a ref, or an absolute uri"),
        (trigger(subscriber={"ref": {"kind": "S", "name": "x", "port": 1}}), "spec.subscriber.ref: unknown key 'port'"),
        (trigger(delivery={"retries": 3}), "spec.delivery: unknown key 'retries'; known here are backoffDelay"),
        (trigger(delivery={"backoff_delay": "PT1S"}), "spec.delivery: unknown key 'backoff_delay'"),
        (trigger(delivery={"retry": "3"}), "spec.delivery.retry: input should be a valid integer"),
        (trigger(delivery={"retry": -1}), "spec.delivery.retry: "),
        (trigger(delivery={"timeout": "15s"}), "spec.delivery.timeout: '15s' is not an ISO 8601 duration"),
        (trigger(delivery={"timeout": 15}), "spec.delivery.timeout: 15 is not an ISO 8601 duration"),
        (trigger(delivery={"timeout": "PT0S"}), "spec.delivery.timeout: a timeout of zero"),
        (trigger(delivery={"backoffPolicy": "random"}), "spec.delivery.backoffPolicy: "),
        (trigger(filters=[{"not": {"exact": {"a": ""}}}]), "spec.filters[0].not.exact.a: an empty value"),
        (trigger(filters=[]), "spec.filters: expected a list with at least one filter"),
        (trigger(filter={"attributes": {"a": 1}}), "spec.filter.attributes.a: expected a string"),
        (source(resources=[]), "spec.resources: "),
        (source(mode="Both"), "spec.mode: "),
        (source(filters=[{"exact": {"a": "b"}}]), "spec: unknown key 'filters'"),
        (source(resources=[{"apiVersion": "v1", "kind": "Pod", "name": "x"}]), "spec.resources[0]: unknown key 'name'"),
        (
            source(namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
            "spec.namespaceSelector.matchExpressions[0]: In and NotIn need values",
        ),
        (source(ceOverrides={"extensions": {"subject": "x"}}), "spec.ceOverrides.extensions: 'subject' cannot be"),
        (
            container_source(image="example.com/other:1"),
            "containers[0].image: only Knative's apiserver_receive_adapter is played",
        ),
        (container_source("{"), "env.K_SOURCE_CONFIG: not valid JSON"),
        (container_source(configuration(allNamespaces=False)), "K_SOURCE_CONFIG.allNamespaces: only true is played here"),
        (container_source(configuration(mode="Both")), "K_SOURCE_CONFIG.mode: "),
        (container_source(configuration(failFast=True)), "K_SOURCE_CONFIG: unknown key 'failFast'"),
        (container_source(K_CA_CERTS="x"), "env: unknown key 'K_CA_CERTS'"),
        (
            container_source(configuration({"gvr": {"Group": "", "Version": "v1", "Resource": "gateways"}})),
            "resources[0].gvr: no kind is known here that is served as gateways in v1",
        ),
        (
            container_source(configuration({"gvr": {"Group": "", "Version": "v1", "Resource": "pods"}, "selector": "a>b"})),
            "resources[0].selector: 'a>b' is no part of a label selector",
        ),
        (ping(schedule="@every 1m"), "'@every 1m' is not supported"),
        (ping(schedule="* * *"), "has 3 fields"),
        (ping(schedule="99 * * * *"), "'99 * * * *' is not a schedule"),
        (ping(schedule="0 0 31 2 *"), "is not a schedule"),
        (ping(timezone="Mars/Olympus"), "'Mars/Olympus' is not an IANA time zone"),
        (ping(contentType="application/json", data="[]"), "must be a JSON object"),
        (ping(contentType="application/json", data="{"), "must be a JSON object"),
        (ping(data="x", dataBase64="eA=="), "give data or dataBase64, not both"),
        (ping(dataBase64="%"), "dataBase64 is not base64"),
    ],
)
def test_errors_say_file_document_and_path(tmp_path: Path, bad: Any, finding: str) -> None:
    """A document that would be played differently is refused, with file, document, key path and reason."""
    path = written(tmp_path, bad)

    with pytest.raises(ManifestError) as refused:
        load(path)

    assert str(refused.value).startswith(f"{path}, document 2")
    assert finding in str(refused.value)


def test_all_findings_come_at_once(tmp_path: Path) -> None:
    """Several wrong documents give one error with a line for each finding."""
    path = written(tmp_path, trigger(delivery={"retry": "x", "timeout": "y"}), ping(schedule="x"))

    with pytest.raises(ManifestError) as refused:
        load(path, tmp_path / "missing")

    assert len(str(refused.value).splitlines()) == 4


def test_duplicates_are_refused(tmp_path: Path) -> None:
    """Two documents of one kind, namespace and name are refused."""
    with pytest.raises(ManifestError, match="default/a is there already"):
        load(written(tmp_path, trigger(), trigger()))


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    """A file that is no YAML is refused with the place of the error."""
    (tmp_path / "x.yaml").write_text("a: [\n")

    with pytest.raises(ManifestError, match="line 2"):
        load(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """A folder without YAML is more likely a mistake than a wish."""
    with pytest.raises(ManifestError, match="no YAML file"):
        load(tmp_path)


def test_filters_win_over_the_legacy_filter(tmp_path: Path) -> None:
    """With both, ``filters`` counts."""
    both = trigger(filters=[{"exact": {"kind": "A"}}], filter={"attributes": {"kind": "B"}})

    assert load(written(tmp_path, both)).triggers[0].filter.text == "kind is 'A'"


@pytest.mark.parametrize(
    ("destination", "address"),
    [
        ({"uri": "http://x/"}, "http://x/"),
        ({"ref": {"kind": "Service", "name": "f"}}, "http://127.0.0.1:1/"),
        ({"ref": {"kind": "Broker", "name": "f"}}, "http://broker/"),
        ({"ref": {"kind": "Service", "name": "f"}, "uri": "/sub"}, "http://127.0.0.1:1/sub"),
    ],
)
def test_destinations_are_resolved_by_the_caller(destination: Any, address: str) -> None:
    """A ref is looked up by kind and name, then by name; a relative uri is joined to it."""
    addresses = {"f": "http://127.0.0.1:1/", "Broker/f": "http://broker/"}

    assert resolve(Destination.model_validate(destination), addresses) == address


def test_an_unknown_name_lists_the_known_ones() -> None:
    """A ref that nobody gave an address for is refused with the names that have one."""
    with pytest.raises(ManifestError, match="no address for Service/f; known are g"):
        resolve(Destination.model_validate({"ref": {"kind": "Service", "name": "f"}}), {"g": "http://g/"})


@pytest.mark.parametrize(
    ("kind", "plural", "known"),
    [
        ("Namespace", "namespaces", True),
        ("NetworkPolicy", "networkpolicies", False),
        ("Ingress", "ingresses", False),
        ("Endpoints", "endpoints", False),
        ("HelmChart", "helmcharts", False),
        ("Gateway", "gatewaies", False),
    ],
)
def test_plurals_are_guessed_as_knative_does(kind: str, plural: str, known: bool) -> None:
    """Kinds of ours are known; any other plural is Knative's guess, also where it is wrong."""
    served, scope_known = Watched(api_version="v1", kind=kind).served_as

    assert (served.plural, scope_known) == (plural, known)


def test_selectors_become_query_parameters() -> None:
    """A label selector is written as the API server reads it."""
    selector = Selector.model_validate(
        {
            "matchLabels": {"a": "b"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["d", "e"]},
                {"key": "f", "operator": "NotIn", "values": ["g"]},
                {"key": "h", "operator": "Exists"},
                {"key": "i", "operator": "DoesNotExist"},
            ],
        }
    )

    assert str(selector) == "a=b,c in (d,e),f notin (g),h,!i"
    assert str(Selector()) == ""


def test_a_source_plays_only_what_somebody_hears() -> None:
    """With one function's Triggers, sources of other functions are left out, and kinds that nobody listens to."""
    manifests = load(ROOT / "triggers", ROOT / "knative" / "base" / "broker.yaml")
    triggers = [each for each in manifests.triggers if each.name.startswith("release-provisioning-")]

    found = {spec.name: [watched.kind for watched in spec.resources] for spec in heard(manifests.sources, triggers)}

    assert found["namespace-registration-cluster"] == ["Namespace"]
    assert found["namespace-registration-owned"] == ["ServiceAccount", "NetworkPolicy"]
    assert "HelmChart" in found["release-provisioning-owned"]
    assert found["release-provisioning-paas"] == ["Paas", "PaasConfig"]
    assert found["release-provisioning-tenants"] == ["Tenant", "TenancyProfile", "RoleBinding"]
    assert len(found) == 5


def test_a_container_source_is_the_source_that_it_stands_for(tmp_path: Path) -> None:
    """Kinds from plurals, selectors from their text, the pod's account, and every namespace."""
    jobs = {"gvr": {"Group": "batch", "Version": "v1", "Resource": "jobs"}, "selector": "a=b,c in (d, e),f notin (g),h,!i"}
    (spec,) = load(written(tmp_path, container_source(configuration(jobs), KUBE_API_QPS="20"))).sources

    assert [(each.api_version, each.kind, str(each.selector)) for each in spec.resources] == [
        ("batch/v1", "Job", "a=b,c in (d,e),f notin (g),h,!i")
    ]
    assert (spec.name, spec.mode, spec.service_account_name, spec.owner) == ("a", "Resource", "reader", None)
    assert spec.namespace_selector == Selector()
    assert spec.ce_overrides.extensions == {"x": "y"}


def test_one_name_for_two_shapes_of_a_source_is_refused(tmp_path: Path) -> None:
    """A ContainerSource beside the ApiServerSource that it replaces would tell everything twice."""
    with pytest.raises(ManifestError, match="default/a is there already"):
        load(written(tmp_path, source(), container_source()))
