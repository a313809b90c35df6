"""What the workloads of OLM's objects share.  OLM itself is not needed: its kinds are served by CRDs that take anything."""

from tenantry.local.deployment import deployment_folder, documents
from tenantry.local.followed import stand_in
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    EVENT,
    OPERATOR_GROUP,
    VALIDATING_WEBHOOKS,
    Object,
    annotations_of,
    labels_of,
)
from tenantry.testing.workload import Step, Workload, apply, namespace, together
from tenantry.testing.world import Moment

from ._scopes import A, B, scopes

LITERAL = {"name": "WATCH_NAMESPACE", "value": "somewhere"}
ORIGINAL = "scope-binding/original"


def leaves_the_rest_alone(moment: Moment) -> str:
    """Of what OLM made nothing changes but the variable, the label for restarts and the selector; the original is kept."""
    before, after = moment.change.before, moment.change.after
    if not moment.by or moment.change.key.kind not in (CLUSTER_SERVICE_VERSION.kind, VALIDATING_WEBHOOKS.kind):
        return ""
    if before is None or after is None:
        return "made or deleted"
    if moment.change.key.kind == VALIDATING_WEBHOOKS.kind:
        hooks = [each.get("webhooks") or [] for each in (before, after)]  # a hand may have taken them away
        rest = [[{**hook, "namespaceSelector": 0} for hook in each] for each in hooks]
        changed = [hook["namespaceSelector"] for hook in hooks[1]] != [{}, {}]
    else:
        pods = [
            each["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"]["containers"]
            for each in (before, after)
        ]
        rest = [[one for one in containers[0]["env"] if one["name"] != LITERAL["name"]] for containers in pods]
        changed = LITERAL not in pods[1][0]["env"]
    kept = ORIGINAL in annotations_of(after)
    return "" if rest[0] == rest[1] and changed == kept else f"changed {rest}, the original kept: {kept}"


OLM_SOURCE = documents(deployment_folder("knative") / "olm" / "source.yaml")
"""What a cluster adds where OLM is there."""

OPS, CSV, OPTED = "ops-@", "op-@", {"scope-binding/olm-compat": "true"}
MODES = [{"type": mode, "supported": True} for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")]


def version(resource: str, name: str = CSV, *, wide: bool = False) -> Step:
    """A ClusterServiceVersion with a permission in its namespaces, or in the cluster."""
    given = [{"serviceAccountName": "sa-@", "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]}]
    install = {"strategy": "deployment", "spec": {"clusterPermissions" if wide else "permissions": given}}
    return apply("ClusterServiceVersion", name, OPS, spec={"install": install, "installModes": MODES})


def group(*targets: str, name: str = "group", opted: bool = True) -> Step:
    """An OperatorGroup with these targets."""
    return apply("OperatorGroup", name, OPS, labels=OPTED if opted else {}, spec={"targetNamespaces": list(targets)})


def pairs_have_versions(objects: list[Object]) -> str:
    """What was generated belongs to a ClusterServiceVersion that is there, and a template has its instance."""
    kinds = ("ScopeTemplate", "ScopeInstance", CLUSTER_SERVICE_VERSION.kind)
    named = {kind: {each["metadata"]["name"] for each in objects if each["kind"] == kind} for kind in kinds}
    versions = named.pop(CLUSTER_SERVICE_VERSION.kind)
    owners = {labels_of(each).get("olm.owner") for each in objects if each["kind"] in named}
    return "" if owners - {None} <= versions and named["ScopeTemplate"] == named["ScopeInstance"] else f"{named} of {versions}"


def operators() -> Workload:
    """A workload of scope-binding with OLM switched on, without scenarios."""
    made = scopes()
    made.services = ["scope-binding", "scope-binding-olm"]
    made.config = {"scopeBinding": {"olm": {"enabled": True}}}
    made.installed = [stand_in(CLUSTER_SERVICE_VERSION), stand_in(OPERATOR_GROUP)]
    made.sources = OLM_SOURCE
    made.watched = (*made.watched, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP)
    made.handover = ["scope-binding/generated"]
    made.ends = [*made.ends, pairs_have_versions]
    told = made.tells
    made.tells = lambda obj: told(obj) or (obj["kind"] == EVENT.kind and obj.get("reason") == "ScopeRefused")
    return made


PLACES, BOTH = together(namespace(OPS), A, B), group("a-@", "b-@")
SERVED = together(PLACES, BOTH, version("secrets"))
