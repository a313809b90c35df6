"""The lists of a large cluster, without a cluster: what a map of ten thousand namespaces is made from."""

from __future__ import annotations

from tenantry.cli.standing.read import marks, tells
from tenantry.model.config import Config
from tenantry.model.flux.names import SOURCE_GRANT
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, PROJECT_HELM_CHART, ROLE_BINDING, Object
from tenantry.model.map import MapSeen
from tenantry.model.names import OPERATED, PROJECT_ID, REGISTERED_CONDITION
from tenantry.testing.objects import obj

LABEL = "field.cattle.io/projectId"


def _user(name: str) -> Object:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


def _binding(name: str, namespace: str, role: str, *users: str) -> Object:
    ref = {"kind": "ClusterRole", "name": role}
    return obj(ROLE_BINDING, name, namespace, roleRef=ref, subjects=[_user(each) for each in users])


def large(projects: int, members: int, wrong: int = 20) -> MapSeen:
    """So many projects with a registration namespace and so many members each; of ``wrong`` projects one member says so."""
    namespaces, bindings, charts = [], [], []
    for number in range(projects):
        project = f"p-{number:05}"
        home = f"cattle-project-{project}"
        namespaces.append(obj(NAMESPACE, home, labels={OPERATED: "true", PROJECT_ID: project}))
        charts.append(obj(PROJECT_HELM_CHART, "monitoring", home, spec={"helmApiVersion": "apps.example.com/v1"}))
        bindings.append(_binding("owners", home, "admin", f"owner-{number}"))
        for place in range(members):
            name = f"team-{number:05}-{place}"
            namespaces.append(obj(NAMESPACE, name, labels={LABEL: project, PROJECT_ID: project}))
            bindings.append(_binding("developers", name, "edit", f"dev-{number}", f"dev-{number + 1}"))
            bindings.append(_binding("readers", name, "view", f"reader-{number % 100}"))
        if number < wrong:
            condition = {"type": REGISTERED_CONDITION, "status": "False", "reason": "QuotaExceeded", "message": _MESSAGE}
            namespaces[-1]["status"] = {"conditions": [{**condition, "lastTransitionTime": "2026-11-01T08:00:00Z"}]}
    for number, each in enumerate((*namespaces, *bindings, *charts)):
        each["metadata"]["uid"] = f"uid-{number}"
    lists = {
        NAMESPACE: namespaces,
        ROLE_BINDING: bindings,
        PROJECT_HELM_CHART: charts,
        CLUSTER_ROLE_BINDING: [],
        SOURCE_GRANT: [],
    }
    return MapSeen(lists, Config(), tells=tells(), marks=marks())


_MESSAGE = "ConfigMap x/y was refused: to fix it, raise the ResourceQuota (the API server says: exceeded quota)"
