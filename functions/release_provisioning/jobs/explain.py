"""Where what runs Helm comes from: Job, account, files, and the rights of the account while the Job runs."""

from __future__ import annotations

from release_provisioning.jobs.manifest import Names, binding_kind
from release_provisioning.jobs.rights import job_setting
from release_provisioning.jobs.seen import OWNER_NAME
from tenantry.model.difference import entries_of, owns
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    JOB,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
    annotations_of,
    key_in,
    labels_of,
)
from tenantry.model.names import CHART_LABEL
from tenantry.model.origin import Because, Looking, Origin, kubectl
from tenantry.model.projects import RELEASE_MANAGER
from tenantry.model.rbac import BoundSubject

KINDS = frozenset({ROLE_BINDING, CLUSTER_ROLE_BINDING, JOB, SERVICE_ACCOUNT, SECRET, CONFIG_MAP})
_BINDINGS = frozenset({ROLE_BINDING.kind, CLUSTER_ROLE_BINDING.kind})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The HelmChart, and for a binding the setting that names its ClusterRole."""
    del subject
    name, binding = labels_of(obj).get(CHART_LABEL, ""), obj["kind"] in _BINDINGS
    ours = owns(obj, RELEASE_MANAGER, "metadata", "labels", CHART_LABEL) and OWNER_NAME not in annotations_of(obj)
    if not name or not ours or not entries_of(obj, RELEASE_MANAGER):
        return None
    subjects = obj.get("subjects") or ()
    home = str(subjects[0].get("namespace") or "") if binding and subjects else obj["metadata"].get("namespace", "")
    chart = await look.get(HELM_CHART, name, home)
    because, ends = [Because(key_in(HELM_CHART, name, home), "spec", "what Helm is run for")], []
    if binding:
        names = Names(home, name)
        ends.append(f"it goes by itself when Job {home}/{names.install} has ended")
        if chart is not None:
            line, role = job_setting(chart, look.config)
            because.append(Because(None, line, f"{role}, by {binding_kind(role).kind}"))
    ends.append(kubectl("delete", HELM_CHART, name, home))
    proof = f"label {CHART_LABEL}, which is a field of field manager {RELEASE_MANAGER}"
    return Origin(f"chart/{home}/{name}", proof, tuple(because), tuple(ends))
