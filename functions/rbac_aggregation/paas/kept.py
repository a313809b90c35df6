"""What lists keep of objects that they read for the rights of Paas."""

from __future__ import annotations

from rbac_aggregation.paas.claims import names_in
from tenantry.model.kinds import Object, labels_of
from tenantry.model.paas.names import BINDING_PREFIX, MANAGED_BY_PAAS
from tenantry.model.paas.ours import owner_reference_of, uid_of


def kept_binding(live: Object) -> Object:
    """What a sweep keeps of a RoleBinding: all of one that may be a Paas', else its name."""
    name, metadata = live["metadata"]["name"], live["metadata"]
    if name.startswith(BINDING_PREFIX) or MANAGED_BY_PAAS in labels_of(live) or owner_reference_of(live) is not None:
        return live
    short = {part: metadata[part] for part in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": short}


def kept_group(live: Object) -> Object:
    """What a sweep keeps of a Group: all of one that is a Paas', else no users."""
    return live if uid_of(live) else {part: live[part] for part in ("apiVersion", "kind", "metadata")}


def kept_name(live: Object) -> Object:
    """A ClusterRole without its rules."""
    short = {part: live["metadata"][part] for part in ("name", "uid", "resourceVersion")}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": short}


def kept_subjects(live: Object) -> Object:
    """A ClusterRoleBinding with the groups that it names."""
    groups = [{"kind": "Group", "name": name} for name in names_in(live)]
    return {**kept_name(live), "subjects": groups}
