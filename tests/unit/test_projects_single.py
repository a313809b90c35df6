"""Single-namespace mode keeps the charts' ConfigMaps in the system namespace."""

from __future__ import annotations

import pytest
from project_objects import CHARTS, changes, namespace, refusal, told, unwell, wanted

from namespace_registration.projects.plan import SystemNamespace, plan_system, report_system
from tenantry.model.kinds import CONFIG_MAP, Object
from tenantry.model.names import OPERATED
from tenantry.model.plan import NOTHING, Apply, Refusal

SYSTEM = namespace("cattle-helm-system")


def test_single_namespace_mode() -> None:
    """The charts' ConfigMaps are kept in the system namespace, and the namespace itself is not labelled."""
    plan = plan_system(SystemNamespace(SYSTEM), CHARTS)
    assert changes(plan) == [f"create ConfigMap cattle-helm-system/{chart.config_map_name}" for chart in CHARTS]
    assert wanted(plan, CONFIG_MAP)["metadata"]["labels"] == {OPERATED: "true"}
    maps: dict[str, Object | None] = {write.key.name: write.wanted for write in plan.writes() if isinstance(write, Apply)}
    assert changes(plan_system(SystemNamespace(SYSTEM, maps), CHARTS)) == []


@pytest.mark.parametrize("found", [None, namespace("cattle-helm-system", deletionTimestamp="now")])
def test_a_system_namespace_that_is_not_there(found: Object | None) -> None:
    """Nothing is done and nothing told while the system namespace is missing or on its way out."""
    seen = SystemNamespace(found)
    assert plan_system(seen, CHARTS) == report_system(seen, [refusal("quota")]) == NOTHING


def test_refusals_in_single_namespace_mode() -> None:
    """A refusal is told on the system namespace, the same one whatever the order, and healed."""
    many: list[Refusal] = [refusal("quota", name="b"), refusal("admission", name="a")]
    seen = SystemNamespace(SYSTEM)
    assert told(report_system(seen, many)) == told(report_system(seen, many[::-1]))
    assert told(report_system(seen, many))[0][:2] == ("cattle-helm-system", "AdmissionDenied")
    assert report_system(seen, []) == NOTHING
    assert changes(report_system(SystemNamespace(unwell(SYSTEM)), [])) == ["status Namespace cattle-helm-system: - status"]
