"""Who reaches whom: our NetworkPolicies, judged over the real labels of Knative's pods (`knative_pods`)."""

from __future__ import annotations

import manifests
import pytest
from knative_pods import (
    ACTIVATOR,
    API_SERVER,
    AUTOSCALER,
    BROKER_FILTER,
    BROKER_INGRESS,
    CHARTS,
    DISPATCHER,
    DNS,
    EVENT_HTTP,
    EVENT_HTTPS,
    EVENTING_CONTROLLER,
    FUNCTION,
    GATEWAY,
    HELM,
    IMPOSTOR,
    KAFKA_DISPATCHER,
    KAFKA_RECEIVER,
    METADATA,
    PING,
    QUEUE_FIGURES,
    QUEUE_HTTP,
    QUEUE_HTTP2,
    QUEUE_HTTPS,
    SENDER,
    SERVING_CONTROLLER,
    STRANGER,
    SYSTEM,
    Pod,
    api_server_source,
    container_source,
    function,
    helm_job,
)
from manifests import Body, Document, serving
from networks import connects

NODES = "a pod that really tries needs a node; the broker's ingress is Knative's, and knative/eventing-network is applied beside"
SINK = "dead-letters"


def policies_of(found: list[Document]) -> list[Body]:
    return [each.body for each in found if each.kind == "NetworkPolicy"]


def functions(found: list[Document]) -> list[Pod]:
    """The pods of our Knative Services, with the labels that their templates give them."""
    return [function(each.spec["template"]["metadata"]["labels"]) for each in serving(found)]


def deployed(found: list[Document]) -> list[Pod]:
    return [Pod(SYSTEM, each.spec["template"]["metadata"]["labels"]) for each in found if each.kind == "Deployment"]


def adapters(found: list[Document]) -> list[Pod]:
    makes = {"ContainerSource": container_source, "ApiServerSource": api_server_source}
    return [makes[each.kind](each.name) for each in found if each.kind in makes]


@pytest.fixture(scope="session")
def policies(installed: list[Document]) -> list[Body]:
    return policies_of(installed)


@pytest.fixture(scope="session")
def closed(policies: list[Body]) -> list[Body]:
    """The same with those that close Knative's own event path."""
    return [*policies, *policies_of(manifests.resolve(manifests.ROOT / "knative" / "eventing-network"))]


@pytest.mark.check("a-61")
@pytest.mark.parametrize("namespace", [SYSTEM, HELM])
def test_nothing_goes_in_or_out_that_no_policy_names(installation: list[Document], namespace: str) -> None:
    """In each way to install a pod of our namespaces that nothing names reaches nobody, and nobody reaches it."""
    policies, unknown = policies_of(installation), Pod(namespace, {"app": "unknown"})

    for other in (STRANGER, IMPOSTOR, BROKER_INGRESS, ACTIVATOR, API_SERVER, DNS):
        assert not connects(policies, other, unknown, FUNCTION), other
        assert not connects(policies, unknown, other, 443), other
    assert not connects(policies, unknown, DNS, 53, "UDP")
    assert not connects(policies, unknown, Pod(namespace, {"app": "neighbour"}), FUNCTION)


@pytest.mark.check("a-25", open=NODES, without="network-policies")
@pytest.mark.check("a-61")
def test_only_the_activator_calls_a_function(installed: list[Document], policies: list[Body]) -> None:
    """Events come by the activator, figures go to the autoscaler; others of Knative, and pods with their labels, are refused."""
    found = functions(installed)

    assert len(found) >= len(manifests.functions())
    for pod in found:
        for port in (QUEUE_HTTP, QUEUE_HTTP2, QUEUE_HTTPS):
            assert connects(policies, ACTIVATOR, pod, port)
        assert connects(policies, AUTOSCALER, pod, QUEUE_FIGURES)
        assert not connects(policies, ACTIVATOR, pod, FUNCTION), "past queue-proxy"
        for other in (STRANGER, IMPOSTOR, GATEWAY, SERVING_CONTROLLER, BROKER_FILTER, DISPATCHER, container_source("x")):
            for port in (QUEUE_HTTP, QUEUE_HTTP2, QUEUE_HTTPS, QUEUE_FIGURES, FUNCTION):
                assert not connects(policies, other, pod, port), (other, port)


@pytest.mark.check("a-25", open=NODES)
def test_the_activator_is_always_in_the_path(documents: list[Document]) -> None:
    """No gateway ever calls a function itself, which the policies would refuse."""
    assert serving(documents)
    for each in serving(documents):
        assert each.spec["template"]["metadata"]["annotations"]["autoscaling.knative.dev/target-burst-capacity"] == "-1", str(
            each
        )


@pytest.mark.check("a-61")
def test_functions_and_sources_have_what_they_need(installed: list[Document], policies: list[Body]) -> None:
    """They reach names, the API server and the broker (the sink: not), and nothing else: no pod, no node's credentials."""
    olm = adapters(manifests.resolve(manifests.ROOT / "knative" / "olm"))
    found = [*functions(installed), *adapters(installed), *olm]

    assert len(found) > 2 * len(manifests.functions())
    for pod in found:
        for port, protocol in ((53, "UDP"), (53, "TCP")):
            assert connects(policies, pod, DNS, port, protocol)
        for port in (443, 6443):
            assert connects(policies, pod, API_SERVER, port)
            assert not connects(policies, pod, METADATA, port)
        for broker in (BROKER_INGRESS, KAFKA_RECEIVER):
            sends = pod.labels.get("app.kubernetes.io/name") != SINK
            assert connects(policies, pod, broker, EVENT_HTTP) is sends
            assert connects(policies, pod, broker, EVENT_HTTPS) is sends
        assert not connects(policies, pod, API_SERVER, 80)
        for other in (STRANGER, IMPOSTOR, GATEWAY, BROKER_FILTER, DISPATCHER, EVENTING_CONTROLLER):
            for port in (80, 443, FUNCTION, QUEUE_HTTP):
                assert not connects(policies, pod, other, port), (pod, other, port)
    for pod in adapters(installed):
        for other in (STRANGER, IMPOSTOR, BROKER_FILTER, ACTIVATOR, found[0]):
            assert not connects(policies, other, pod, FUNCTION)


@pytest.mark.check("a-61")
def test_helm_reaches_the_api_and_charts_by_https_and_nobody_reaches_it(policies: list[Body]) -> None:
    """A Helm Job has names, the API server and HTTPS; not the broker, not a tenant's pod, not a node's credentials."""
    job = helm_job("shop")

    assert connects(policies, job, DNS, 53, "UDP")
    assert connects(policies, job, API_SERVER, 6443)
    assert connects(policies, job, CHARTS, 443)
    assert not connects(policies, job, METADATA, 443)
    assert not connects(policies, job, CHARTS, 80)
    for other in (STRANGER, IMPOSTOR, BROKER_INGRESS, DISPATCHER, container_source("x")):
        assert not connects(policies, job, other, EVENT_HTTP)
        assert not connects(policies, other, job, EVENT_HTTP)


@pytest.mark.check("a-61")
def test_without_serving_the_broker_calls_functions(kustomize: list[str]) -> None:
    """In the overlay with Deployments the broker's filter and dispatchers call them, and nobody else does."""
    found = manifests.render(manifests.ROOT / "knative" / "overlays" / "deployment", kustomize)
    policies = policies_of(found)

    assert len(deployed(found)) >= len(manifests.functions())
    for pod in deployed(found):
        for caller in (BROKER_FILTER, DISPATCHER, KAFKA_DISPATCHER):
            assert connects(policies, caller, pod, FUNCTION), caller
        for other in (STRANGER, IMPOSTOR, GATEWAY, BROKER_INGRESS, EVENTING_CONTROLLER, ACTIVATOR, helm_job("shop")):
            assert not connects(policies, other, pod, FUNCTION), other
        assert connects(policies, pod, API_SERVER, 6443)


@pytest.mark.check("a-25", open=NODES)
def test_the_event_path_is_closed_to_everybody_else(installed: list[Document], closed: list[Body]) -> None:
    """With knative/eventing-network an event goes from source to function, and nobody outside of the path gets a word in."""
    source, ports = adapters(installed)[0], (EVENT_HTTP, EVENT_HTTPS)
    path = [
        (source, BROKER_INGRESS),
        (functions(installed)[0], BROKER_INGRESS),
        (PING, BROKER_INGRESS),
        (SENDER, BROKER_INGRESS),
        (BROKER_INGRESS, DISPATCHER),
        (DISPATCHER, BROKER_FILTER),
        (DISPATCHER, BROKER_INGRESS),
        (BROKER_FILTER, BROKER_INGRESS),
        (source, KAFKA_RECEIVER),
        (PING, KAFKA_RECEIVER),
        (SENDER, KAFKA_RECEIVER),
        (KAFKA_DISPATCHER, KAFKA_RECEIVER),
    ]

    for one, next_one in path:
        assert all(connects(closed, one, next_one, port) for port in ports), (one, next_one)
    for outside in (STRANGER, IMPOSTOR, helm_job("shop"), Pod("default", {})):
        for part in (BROKER_INGRESS, DISPATCHER, BROKER_FILTER, KAFKA_RECEIVER):
            assert not any(connects(closed, outside, part, port) for port in ports), (outside, part)


def test_policies_touch_no_namespace_but_ours_by_default(installation: list[Document]) -> None:
    """Knative's own namespace gets policies only by whoever applies knative/eventing-network."""
    assert {each["metadata"]["namespace"] for each in policies_of(installation)} == {SYSTEM, HELM}


OURS = ["deny-all", "functions-in", "functions-out", "functions-to-broker", "sources-out", "api-sources-out", "helm-out"]


def test_all_policies_are_judged(policies: list[Body]) -> None:
    """The list below has every policy of the default installation."""
    assert {each["metadata"]["name"] for each in policies} == {f"tenantry-{name}" for name in OURS}


@pytest.mark.parametrize("left_out", OURS)
def test_each_policy_decides_about_something(policies: list[Body], installed: list[Document], left_out: str) -> None:
    """Without any one of them some connection would come about, or fail, that does not now: the tests above would see it."""
    without = [each for each in policies if each["metadata"]["name"] != f"tenantry-{left_out}"]
    sources = [container_source("a"), api_server_source("b")]
    pods = [functions(installed)[0], *sources, helm_job("shop"), Pod(SYSTEM, {}), Pod(HELM, {})]
    others = [ACTIVATOR, AUTOSCALER, STRANGER, DNS, API_SERVER, BROKER_INGRESS]
    pairs = [pair for mine in pods for other in others for pair in ((mine, other), (other, mine))]
    tried = [(*pair, port) for pair in pairs for port in (443, QUEUE_HTTP, EVENT_HTTP)]

    assert len(without) < len(policies)
    assert any(connects(policies, *each) != connects(without, *each) for each in tried)
