"""Records Kubernetes Events (events.k8s.io/v1).

The name of an Event is derived from the object's uid and resource version and from what is said, so that
a run that is repeated after a crash finds its Event there already, while the same thing happening again
later makes a new one.
"""

from __future__ import annotations

import hashlib
import logging
import os
from datetime import UTC, datetime

from tenantry.api import Api
from tenantry.api.errors import AlreadyExists, ApiError
from tenantry.model import limits
from tenantry.model.descriptor import Service
from tenantry.model.kinds import EVENT, SERVICE_ACCOUNT, Object, object_of
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.model.plan import KubernetesEvent
from tenantry.model.standing import event_namespace

log = logging.getLogger("tenantry")

_INSTANCE = os.environ.get("HOSTNAME") or "local"


def now_micro() -> str:
    """The time now as ``metav1.MicroTime``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def now_seconds() -> str:
    """The time now as ``metav1.Time``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def reference(obj: Object) -> Object:
    """The ``v1.ObjectReference`` of an object."""
    metadata = obj["metadata"]
    optional = {field: metadata[field] for field in ("namespace", "uid", "resourceVersion") if metadata.get(field)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"], **optional}


async def record(api: Api, event: KubernetesEvent) -> None:
    """Record an Event; one that is recorded already is left as it is.

    Events on cluster-scoped objects live in namespace ``default``, as the API demands.
    """
    regarding = reference(event.regarding)
    said = "\n".join(
        (regarding.get("uid", ""), regarding.get("resourceVersion", ""), regarding["kind"], event.reason, event.note)
    )
    digest = hashlib.sha256(f"{api.field_manager}\n{said}".encode()).hexdigest()[:16]
    body = object_of(
        EVENT,
        {"name": f"{regarding['name'][:200]}.{digest}", "namespace": event_namespace(event.regarding)},
        eventTime=now_micro(),
        reportingController=f"tenantry.dev/{api.field_manager.removeprefix('tenantry-')}",
        reportingInstance=_INSTANCE[:128],
        action=event.action,
        reason=event.reason,
        regarding=regarding,
        note=event.note.encode()[: limits.NOTE_BYTES].decode(errors="ignore"),
        type=event.type,
    )
    try:
        await api.create(EVENT, body)
    except AlreadyExists:
        return


async def record_missing_right(api: Api, service: Service, missing: str) -> None:
    """Record a Warning on our own ServiceAccount: a right that is missing for reading has no better place."""
    regarding = object_of(SERVICE_ACCOUNT, {"name": service.name, "namespace": SYSTEM_NAMESPACE})
    note = f"{missing}: apply {service.rights_file} again"
    try:
        await record(api, KubernetesEvent(regarding, "RightMissing", note, "Reconcile", "Warning"))
    except ApiError as error:
        log.warning("could not record the Event RightMissing: %s", error.message)
