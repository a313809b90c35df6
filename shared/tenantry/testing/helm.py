"""Helm's records without Helm, and what an administrator gives so that releases can be locked.

For what needs many releases, or odd ones: a record is in Helm's own form, byte for byte what `lock_enforcement.helm` has to
read.  Where one release is enough, let the real Helm make it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

from tenantry.model.kinds import API_SERVER_SOURCE, CLUSTER_ROLE, SECRET, Kind, Object
from tenantry.model.names import HELM_RECORD_TYPE, SYSTEM_NAMESPACE


def packed(release: Mapping[str, Any]) -> str:
    """A release as it stands in ``data.release`` of a Secret."""
    return base64.b64encode(base64.b64encode(gzip.compress(json.dumps(release).encode(), mtime=0))).decode()


def unpacked(record: Object) -> dict[str, Any]:
    """The release in a Secret that real Helm, or `record`, made."""
    release: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(record["data"]["release"]))))
    return release


def record(release: str, namespace: str, revision: int, status: str, *objects: Object, **more: Any) -> Object:
    """The Secret with a revision of a release whose manifest is these objects; ``more`` are further fields of the release."""
    manifest = "".join(f"---\n{json.dumps(each)}\n" for each in objects)
    content = {"name": release, "version": revision, "info": {"status": status}, "manifest": manifest, **more}
    labels = {"owner": "helm", "name": release, "status": status, "version": str(revision)}
    metadata = {"name": f"sh.helm.release.v1.{release}.v{revision}", "namespace": namespace, "labels": labels}
    data = {"release": packed(content)}
    return {"apiVersion": SECRET.api_version, "kind": SECRET.kind, "type": HELM_RECORD_TYPE, "metadata": metadata, "data": data}


def lockable(name: str, *kinds: Kind) -> list[Object]:
    """The ClusterRoles by which an administrator lets these kinds be locked: one for the function, one for its source."""
    given = (
        ("tenantry.dev/aggregate-to-locks", name, ["get", "list", "create", "patch", "delete"]),
        ("tenantry.dev/aggregate-to-lock-source", f"{name}-source", ["get", "list", "watch"]),
    )
    return [
        {
            "apiVersion": CLUSTER_ROLE.api_version,
            "kind": CLUSTER_ROLE.kind,
            "metadata": {"name": role, "labels": {label: "true"}},
            "rules": [{"apiGroups": [kind.group], "resources": [kind.plural], "verbs": verbs} for kind in kinds],
        }
        for label, role, verbs in given
    ]


def locked_source(*kinds: Kind) -> Object:
    """A source that announces these kinds, wherever they are, as the one does that lock-enforcement makes for what is locked."""
    return {
        "apiVersion": API_SERVER_SOURCE.api_version,
        "kind": API_SERVER_SOURCE.kind,
        "metadata": {"name": "locked", "namespace": SYSTEM_NAMESPACE},
        "spec": {
            "namespaceSelector": {},
            "resources": [{"apiVersion": kind.api_version, "kind": kind.kind} for kind in kinds],
            "ceOverrides": {"extensions": {"locked": "true"}},
            "sink": {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "tenantry"}},
        },
    }
