"""NamespaceScopes of one home, what is there of theirs, and what is planned and told, for tests without a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scope_binding.consent import consent_objects
from scope_binding.namespace_scopes import plan
from scope_binding.namespace_scopes.declared import declared
from scope_binding.namespace_scopes.names import FROM_LABEL, MANAGER, ownership_labels
from scope_binding.namespace_scopes.projection import projected
from scope_binding.namespace_scopes.seen import ObservedHome
from tenantry.model.config import NamespaceScopeSettings
from tenantry.model.kinds import NAMESPACE, NAMESPACE_SCOPE, POD, ROLE, ROLE_BINDING, Object, object_of
from tenantry.model.plan import Plan, Refusal
from tenantry.testing.objects import obj

SETTINGS = NamespaceScopeSettings()
NOW = "2026-01-01T00:00:00Z"


def scope(name: str = "s", *, spec: dict[str, Any] | None = None, **metadata: Any) -> Object:
    """A NamespaceScope in ``ops`` with the member ``t1``."""
    identity = {"name": name, "namespace": "ops", "uid": name, "resourceVersion": "1", "generation": 1, "creationTimestamp": NOW}
    given = {"namespaceMembers": ["t1"]} if spec is None else spec
    return object_of(NAMESPACE_SCOPE, {**identity, **metadata}, spec=given)


def namespace(name: str, **metadata: Any) -> Object:
    """A namespace."""
    return object_of(NAMESPACE, {"name": name, **metadata})


def pod(name: str = "p", created: str = NOW, **annotations: str) -> Object:
    """A pod of ServiceAccount ``op`` that uses the list."""
    containers = [{"name": "c", "envFrom": [{"configMapRef": {"name": "namespace-scope"}}]}]
    return obj(
        POD,
        name,
        "ops",
        labels={"intent": "projected"},
        annotations=annotations,
        metadata={"uid": name, "resourceVersion": "1", "creationTimestamp": created},
        spec={"serviceAccountName": "op", "containers": containers},
    )


def seen(*scopes: Object, **fields: Any) -> ObservedHome:
    """``ops`` with these NamespaceScopes, and a consenting member ``t1``."""
    made = tuple(declared(each, "managed") for each in scopes)
    base = ObservedHome(
        "ops", made, {"t1": namespace("t1")}, {"t1": consent_objects("t1", "ops")}, pods=(pod(),), home=namespace("ops")
    )
    return replace(base, **fields)


def planned(found: ObservedHome) -> Plan:
    """What is planned for what was observed."""
    return plan.plan(replace(found, projected=projected(found, SETTINGS)))


def reported(found: ObservedHome, *refusals: Refusal, settings: NamespaceScopeSettings = SETTINGS) -> Plan:
    """What is told of what was observed and refused."""
    return plan.report(replace(found, projected=projected(found, settings)), refusals)


def changes(found: ObservedHome) -> list[str]:
    """The changes of the plan, each as verb, kind and name."""
    return [str(change).partition(": ")[0] for change in planned(found).changes(MANAGER)]


def ours(kind: str, name: str, member: str = "t1") -> Object:
    """A Role or RoleBinding that we made for ``ops``."""
    entry = {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {f"f:{FROM_LABEL}": {}}}}}
    metadata = {"uid": name, "resourceVersion": "1", "managedFields": [entry]}
    labels = ownership_labels("namespace-scope", "ops")
    return obj(ROLE if kind == ROLE.kind else ROLE_BINDING, name, member, labels=labels, metadata=metadata)
