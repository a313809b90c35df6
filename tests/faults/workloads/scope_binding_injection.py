"""scope-binding: operators that OLM runs read the list of namespaces, and their webhooks see those only."""

from tenantry.local.followed import stand_in
from tenantry.model.kinds import CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, VALIDATING_WEBHOOKS, Object
from tenantry.testing.workload import Step, apply, delete, together

from ._namespace_scopes import BEGIN, OPS, namespace_scopes
from ._olm import LITERAL, OLM_SOURCE, ORIGINAL, leaves_the_rest_alone

CSV, HOOKS, OTHER = "op-@", "hooks-@", {"name": "OTHER", "value": "stays"}
ASKS = {"nss.operator.ibm.com/managed-operators": "my-op", "nss.operator.ibm.com/managed-webhooks": ""}
TEMPLATE = {"metadata": {"labels": {"app": "o"}}, "spec": {"containers": [{"name": "c", "image": "c", "env": [LITERAL, OTHER]}]}}
INSTALL = {"strategy": "deployment", "spec": {"deployments": [{"name": "o", "spec": {"replicas": 1, "template": TEMPLATE}}]}}
RULE = {"apiGroups": ["nowhere.example"], "apiVersions": ["v1"], "resources": ["things"], "operations": ["CREATE"]}
HOOK = {
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"url": "https://127.0.0.1:1/"},
    "rules": [RULE],
}
OWNED = {"olm.owner": CSV, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": OPS}


def version(annotations: Object) -> Step:
    """The ClusterServiceVersion of an operator."""
    labels = {f"operators.coreos.com/my-op.{OPS}": ""}
    return apply("ClusterServiceVersion", CSV, OPS, labels=labels, annotations=annotations, spec={"install": INSTALL})


def injects(*members: str, on: bool = True) -> Step:
    """A NamespaceScope with or without its injector."""
    return apply("NamespaceScope", "s-@", OPS, spec={"namespaceMembers": list(members), "csvInjector": {"enable": on}})


workload = namespace_scopes()
workload.installed = [stand_in(CLUSTER_SERVICE_VERSION), stand_in(OPERATOR_GROUP)]
workload.sources = OLM_SOURCE
workload.watched = (*workload.watched, CLUSTER_SERVICE_VERSION, VALIDATING_WEBHOOKS)
workload.handover = [ORIGINAL]  # nothing else remembers what there was
workload.safe = [*workload.safe, leaves_the_rest_alone]
hooks = apply(
    "ValidatingWebhookConfiguration",
    HOOKS,
    labels=OWNED,
    webhooks=[{"name": f"{one}.example.com", **HOOK} for one in ("one", "two")],
)
OPERATED = together(BEGIN, version(ASKS), hooks)
ON, OFF, FURTHER, GONE = injects("a-@"), injects("a-@", on=False), injects("a-@", "b-@"), delete("NamespaceScope", "s-@", OPS)
ALREADY, ROUND = together(OPERATED, ON), [OPERATED, FURTHER]  # what was edited is still ours, as far as API servers count
workload.scenario("inject", ON, before=[together(OPERATED, OFF)])
workload.scenario("inject-further", FURTHER, before=[ALREADY])
workload.scenario("inject-back", OFF, before=[ALREADY], other=[*ROUND, OFF])
workload.scenario("inject-unasked", version({}), before=[ALREADY], other=[*ROUND, ON, version({})])
workload.scenario("inject-gone", GONE, before=[ALREADY], other=[*ROUND, GONE])
