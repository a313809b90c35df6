"""Facts: the pods of Knative's data plane, and of those that call it, with the labels and ports that their publishers give them.

Read in the manifests that Knative releases (eventing 1.22.2 and 1.23.0, serving 1.22.1 and 1.23.0, net-kourier 1.22, Kafka broker
1.22), and in the code that makes pods from our objects: ContainerSource ``pkg/reconciler/containersource/resources/labels.go``,
ApiServerSource ``pkg/reconciler/apiserversource/resources/labels.go``, revisions ``pkg/reconciler/revision/resources/meta.go``
(all labels of the template, and these).  Labels that hold a version are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pod:
    """A pod: namespace, labels, the labels of its namespace besides its name; an address where it is none of the cluster."""

    namespace: str
    labels: dict[str, str]
    namespace_labels: dict[str, str] = field(default_factory=dict)
    address: str = ""


EVENTING, SERVING, SYSTEM, HELM = "knative-eventing", "knative-serving", "tenantry-system", "cattle-helm-system"


def eventing(component: str, **labels: str) -> Pod:
    """A pod of Knative Eventing; in names of labels two underscores stand for a slash, one for a dot."""
    named = {"app.kubernetes.io/component": component, "app.kubernetes.io/name": "knative-eventing"}
    return Pod(EVENTING, named | {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()})


BROKER_INGRESS = eventing("broker-ingress", eventing_knative_dev__brokerRole="ingress")
BROKER_FILTER = eventing("broker-filter", eventing_knative_dev__brokerRole="filter")
DISPATCHER = eventing(
    "imc-dispatcher", messaging_knative_dev__channel="in-memory-channel", messaging_knative_dev__role="dispatcher"
)
PING = eventing(
    "pingsource-mt-adapter", eventing_knative_dev__source="ping-source-controller", sources_knative_dev__role="adapter"
)
KAFKA_RECEIVER = eventing("kafka-broker-receiver", app="kafka-broker-receiver")
KAFKA_DISPATCHER = eventing("kafka-broker-dispatcher", app="kafka-broker-dispatcher", app_kubernetes_io__kind="kafka-dispatcher")
EVENTING_CONTROLLER = eventing("eventing-controller", app="eventing-controller")

ACTIVATOR = Pod(SERVING, {"app": "activator", "role": "activator", "app.kubernetes.io/component": "activator"})
AUTOSCALER = Pod(SERVING, {"app": "autoscaler", "app.kubernetes.io/component": "autoscaler"})
SERVING_CONTROLLER = Pod(SERVING, {"app": "controller", "app.kubernetes.io/component": "controller"})
GATEWAY = Pod("kourier-system", {"app": "3scale-kourier-gateway"})

DNS = Pod("kube-system", {"k8s-app": "kube-dns"})
API_SERVER = Pod("", {}, address="192.0.2.10")
CHARTS = Pod("", {}, address="198.51.100.7")
METADATA = Pod("", {}, address="169.254.169.254")
"""Where a cloud gives a node its credentials."""

STRANGER = Pod("team-a", {"app": "shop"}, {"field.cattle.io/projectId": "p-a"})
IMPOSTOR = Pod(
    "team-a",
    {**BROKER_FILTER.labels, **DISPATCHER.labels, **ACTIVATOR.labels, **PING.labels, "k8s-app": "kube-dns"},
    {"field.cattle.io/projectId": "p-a"},
)
"""A pod of a tenant with all labels of those who may: labels of pods are theirs to choose, names of namespaces are not."""
SENDER = Pod("other-events", {"app": "orders"}, {"tenantry.dev/sends-events": "true"})

# Ports of queue-proxy, of the function behind it, of a broker or dispatcher.
QUEUE_HTTP, QUEUE_HTTP2, QUEUE_HTTPS, QUEUE_FIGURES, FUNCTION = 8012, 8013, 8112, 9090, 8080
EVENT_HTTP, EVENT_HTTPS = 8080, 8443


def function(labels: dict[str, str]) -> Pod:
    """The pod of a revision whose template has these labels."""
    own = {"serving.knative.dev/revision": "r-00001", "serving.knative.dev/revisionUID": "1", "serving.knative.dev/service": "r"}
    return Pod(SYSTEM, {"app": "r-00001", **labels, **own, "serving.knative.dev/configuration": "r"})


def container_source(name: str) -> Pod:
    """The adapter of a ContainerSource whose template has no labels."""
    return Pod(SYSTEM, {"sources.knative.dev/source": "container-source-controller", "sources.knative.dev/containerSource": name})


def api_server_source(name: str) -> Pod:
    return Pod(SYSTEM, {"eventing.knative.dev/source": "apiserver-source-controller", "eventing.knative.dev/sourceName": name})


def helm_job(chart: str) -> Pod:
    return Pod(HELM, {"helmcharts.helm.cattle.io/chart": chart, "batch.kubernetes.io/job-name": f"helm-install-{chart}"})
