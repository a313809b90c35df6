"""What rbac-aggregation reads of a release."""

from __future__ import annotations

import pytest
from served import Served

from rbac_aggregation.projects.claims import ReleaseKey
from rbac_aggregation.projects.observe import observe_release
from rbac_aggregation.projects.seen import MANAGER
from tenantry.model.config import Config
from tenantry.model.kinds import PROJECT_HELM_CHART, ROLE, ROLE_BINDING, Object
from tenantry.model.names import ROLE_OF
from tenantry.testing.objects import obj

CONFIG = Config.model_validate({"global": {"cattle": {"systemProjectId": "p-system"}}})
DUMMY = ReleaseKey("demo-dummy", "demo-dummy")
LABELLED = obj(ROLE, "r", "demo-dummy", labels={ROLE_OF: "demo-dummy"})
FOREIGN = obj(ROLE_BINDING, "b", "demo-dummy", roleRef={})
ENTRY = {"manager": MANAGER, "fieldsV1": {"f:roleRef": {}}}
OURS = obj(ROLE_BINDING, "b", "demo-dummy", metadata={"managedFields": [ENTRY]}, roleRef={})
SPEC = {"helmApiVersion": "dummy.cattle.io/v1alpha1"}
CHART = obj(PROJECT_HELM_CHART, "demo", "cattle-project-p-a", metadata={"uid": "u"}, spec=SPEC)


@pytest.mark.parametrize(
    ("found", "read"),
    [
        ([], []),
        ([FOREIGN], []),
        ([OURS], ["cattle-project-p-a", "demo-dummy"]),
        ([LABELLED], ["cattle-project-p-a", "demo-dummy"]),
    ],
)
async def test_a_release_without_roles_costs_three_lists(found: list[Object], read: list[str]) -> None:
    """Where there is nothing to bind and nothing of ours to take away, nobody asks whose the namespace is."""
    server = Served(CHART, *found)
    seen = await observe_release(DUMMY, CONFIG, server.reader())
    assert sorted(key.name for key in server.asked) == read
    assert (seen.roles, seen.charts) == (tuple(each for each in found if each is LABELLED), (CHART,))
