"""Where generated ScopeTemplates and ScopeInstances come from."""

from __future__ import annotations

from scope_binding.olm.plan import OPT_IN, OWNER_NAMESPACE, PARTS, is_generated, pair_name
from tenantry.model.kinds import (
    CLUSTER_SERVICE_VERSION,
    OPERATOR_GROUP,
    SCOPE_INSTANCE,
    SCOPE_TEMPLATE,
    Object,
    key_in,
    key_of,
    labels_of,
)
from tenantry.model.names import SCOPE_GENERATED
from tenantry.model.origin import Because, Looking, Origin, kubectl
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({SCOPE_TEMPLATE, SCOPE_INSTANCE})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The ClusterServiceVersion with the permissions, and the OperatorGroup that takes part."""
    del subject
    if not is_generated(obj):
        return None
    home, because, ends = labels_of(obj).get(OWNER_NAMESPACE, ""), [], []
    owner = "csv/?"
    for each in await look.list(CLUSTER_SERVICE_VERSION, home) if home else ():
        name = each["metadata"]["name"]
        part = next((part for part in PARTS if pair_name(part, home, name) == obj["metadata"]["name"]), None)
        if part is not None:
            field = "permissions" if part == "ns" else "clusterPermissions"
            owner = f"csv/{home}/{name}"
            because.append(
                Because(key_in(CLUSTER_SERVICE_VERSION, name, home), f"spec.install.spec.{field}", "as OLM installs it")
            )
            ends.append(kubectl("delete", CLUSTER_SERVICE_VERSION, name, home))
    for each in await look.list(OPERATOR_GROUP, home) if home else ():
        because.append(Because(key_of(each), f"metadata.labels[{OPT_IN}]", labels_of(each).get(OPT_IN, "none")))
        because.append(
            Because(key_of(each), "spec.targetNamespaces", ", ".join((each.get("spec") or {}).get("targetNamespaces") or ()))
        )
        ends.append(kubectl("label", OPERATOR_GROUP, each["metadata"]["name"], home, f"{OPT_IN}-"))
    because.append(Because(None, "scopeBinding.olm.enabled", str(look.config.scope_binding.olm.enabled).lower()))
    return Origin(owner, f"label {SCOPE_GENERATED}: true", tuple(because), tuple(ends))
