"""A cluster with Paas, in tests that only read: its objects, and what the unit sees and plans for one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from served import Served

from namespace_registration.paas.observe import observe_paas
from namespace_registration.paas.plan import plan_paas
from namespace_registration.paas.seen import PaasSeen
from tenantry.model.kinds import NAMESPACE, RESOURCE_QUOTA, Key, Kind, Object, object_of
from tenantry.model.paas.names import (
    ASKED_BY,
    CLUSTER_RESOURCE_QUOTA,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    PAAS_FINALIZER,
    PAAS_NS,
    PAAS_UID,
    QUOTA_NAME,
)
from tenantry.model.plan import Plan

PROJECT_LABEL = "field.cattle.io/projectId"


def _object(kind: Kind, name: str, namespace: str = "", *, uid: str = "", created: str = "2026-01-02", **parts: Any) -> Object:
    metadata: Object = {"name": name, "uid": uid or f"uid-{namespace}-{name}", "resourceVersion": "1", "generation": 1}
    metadata |= {"creationTimestamp": created, **({"namespace": namespace} if namespace else {})}
    metadata |= {
        field: parts.pop(field) for field in ("labels", "annotations", "ownerReferences", "finalizers") if field in parts
    }
    if parts.pop("deleted", False):
        metadata["deletionTimestamp"] = "2026-02-01"
    return object_of(kind, metadata, **parts)


def paas(name: str, *suffixes: str, created: str = "2026-01-02", deleted: bool = False, **spec: Any) -> Object:
    """A Paas with these namespaces; its uid is ``uid-<name>``."""
    spec = {"namespaces": {each: {} for each in suffixes}, "quota": {"pods": "9"}, **spec}
    finalizers = spec.pop("finalizers", [PAAS_FINALIZER])
    return _object(PAAS, name, uid=f"uid-{name}", created=created, deleted=deleted, finalizers=finalizers, spec=spec)


def config(**spec: Any) -> Object:
    """A PaasConfig."""
    return _object(PAAS_CONFIG, "config", spec=spec)


def namespace(name: str, of: str = "", *, asked_by: str = "", **parts: Any) -> Object:
    """A namespace; with ``of`` it has the marks of that Paas."""
    annotations = {PAAS_UID: f"uid-{of}", **({ASKED_BY: asked_by} if asked_by else {})} if of else {}
    labels = {MANAGED_BY_PAAS: of} if of else {}
    marks: dict[str, Any] = {
        "annotations": {**annotations, **parts.pop("annotations", {})},
        "labels": {**labels, **parts.pop("labels", {})},
    }
    return _object(NAMESPACE, name, **marks, **parts)


def asks(home: str, name: str, created: str = "2026-01-03", **spec: Any) -> Object:
    """A PaasNS."""
    return _object(PAAS_NS, name, home, created=created, spec=spec)


def quota(name: str, of: str = "", **parts: Any) -> Object:
    """A ClusterResourceQuota, with the marks of a Paas if it is of one."""
    marks = {"labels": {MANAGED_BY_PAAS: of}, "annotations": {PAAS_UID: f"uid-{of}"}} if of else {}
    return _object(CLUSTER_RESOURCE_QUOTA, name, **{"spec": {}, **marks, **parts})


def share(home: str, of: str, hard: Mapping[str, str], **parts: Any) -> Object:
    """A ResourceQuota of ours."""
    marks: dict[str, Any] = {"labels": {MANAGED_BY_PAAS: of}, "annotations": {PAAS_UID: f"uid-{of}"}}
    return _object(RESOURCE_QUOTA, QUOTA_NAME, home, spec={"hard": dict(hard)}, **marks, **parts)


class Cluster(Served):
    """A few objects; with ``spans`` OpenShift's quotas are served."""

    def __init__(self, *objects: Object, spans: bool = True) -> None:
        super().__init__(*objects)
        self._spans = spans

    async def served(self, api_version: str, kind: str, *, again: bool = False) -> Kind | None:
        """Everything but OpenShift's quotas, where they are not there."""
        del api_version, again
        return PAAS if self._spans or kind != CLUSTER_RESOURCE_QUOTA.kind else None

    async def seen(self, name: str, causes: Iterable[Key] = ()) -> PaasSeen:
        """What the unit observes of a Paas."""
        return await observe_paas(name, self.reader(causes))

    async def plan(self, name: str) -> Plan:
        """What it plans for it."""
        return plan_paas(await self.seen(name), PROJECT_LABEL)

    async def changes(self, name: str) -> list[str]:
        """The same as verbs and keys, in order."""
        return [f"{each.verb} {each.key}" for each in (await self.plan(name)).changes("tenantry-test")]
