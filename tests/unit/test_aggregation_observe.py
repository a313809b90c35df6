"""What rbac-aggregation reads of a release."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rbac_aggregation.projects.claims import ReleaseKey
from rbac_aggregation.projects.observe import observe_release
from rbac_aggregation.projects.plan import MANAGER
from tenantry.api import Api, Listing
from tenantry.engine.reader import Reader
from tenantry.model.config import Config
from tenantry.model.kinds import PROJECT_HELM_CHART, ROLE, ROLE_BINDING, Kind, Object
from tenantry.model.names import ROLE_OF

CONFIG = Config.model_validate({"global": {"cattle": {"systemProjectId": "p-system"}}})
DUMMY = ReleaseKey("demo-dummy", "demo-dummy")
ROLES: Object = {"metadata": {"name": "r", "namespace": "demo-dummy", "labels": {ROLE_OF: "demo-dummy"}}}
FOREIGN: Object = {"metadata": {"name": "b", "namespace": "demo-dummy"}, "roleRef": {}}
OURS: Object = {
    "metadata": {**FOREIGN["metadata"], "managedFields": [{"manager": MANAGER, "fieldsV1": {"f:roleRef": {}}}]},
    "roleRef": {},
}
CHART: Object = {
    "metadata": {"name": "demo", "namespace": "cattle-project-p-a", "uid": "u"},
    "spec": {"helmApiVersion": "dummy.cattle.io/v1alpha1"},
}


class Cluster:
    """A ProjectHelmChart, and in the namespace of its release what is given; notes which objects are read by name."""

    def __init__(self, found: dict[Kind, list[Object]]) -> None:
        self.found = {PROJECT_HELM_CHART: [CHART], **found}
        self.read: list[str] = []

    async def list(self, kind: Kind, namespace: str = "", **_: Any) -> Listing:
        return Listing(self.found.get(kind, []), "1")

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        self.read.append(name)
        return None


@pytest.mark.parametrize(
    ("found", "read"),
    [
        ({}, []),
        ({ROLE_BINDING: [FOREIGN]}, []),
        ({ROLE_BINDING: [OURS]}, ["cattle-project-p-a", "demo-dummy"]),
        ({ROLE: [ROLES]}, ["cattle-project-p-a", "demo-dummy"]),
    ],
)
async def test_a_release_without_roles_costs_three_lists(found: dict[Kind, list[Object]], read: list[str]) -> None:
    """Where there is nothing to bind and nothing of ours to take away, nobody asks whose the namespace is."""
    cluster = Cluster(found)
    seen = await observe_release(DUMMY, CONFIG, Reader(cast(Api, cluster)))
    assert sorted(cluster.read) == read
    assert (seen.roles, seen.charts) == (tuple(found.get(ROLE, [])), (CHART,))
