"""The unit jobs of release-provisioning: HelmCharts come, change, change hands and go; what runs Helm drifts and is put back.

No node: pods stay pending. Neither held deletions nor still values are waited for: what the one leaves ends with the sweep, the
other would only take time.
"""

from typing import Any

from tenantry.model import kinds
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import annotations_of
from tenantry.model.names import CHART_MANAGED_BY
from tenantry.testing.workload import Step, Workload, apply, delete, edit
from tenantry.testing.world import Moment

SYSTEM, OURS, THEIRS = "cattle-helm-system", "helm-project-operator", "helm-controller"


def chart(values: str = "a: 1", annotations: dict[str, str] | None = None, **spec: Any) -> Step:
    """A HelmChart."""
    asked = {"chart": "tiny", "chartContent": "H4sIAAAA", "valuesContent": values, **spec}
    return apply("HelmChart", "a-@", SYSTEM, spec=asked, annotations={CHART_MANAGED_BY: OURS} | (annotations or {}))


def runs_helm_for_ours_only(moment: Moment) -> str:
    """Nothing is made for a HelmChart that is another's, and nobody is bound but the account of ours."""
    made = moment.change.after
    if not moment.by or made is None or moment.change.before is not None or made["kind"] in ("HelmChart", "Event"):
        return ""
    of = next((each for each in moment.objects.values() if each["kind"] == "HelmChart"), None)
    if of is None or annotations_of(of).get(CHART_MANAGED_BY) != OURS:
        return f"made {made['kind']} for a HelmChart that is not ours"
    bound = {subject["name"] for subject in made.get("subjects") or ()}
    return "bound somebody else" if bound - {f"helm-{of['metadata']['name']}"} else ""


FIRST, SECOND, HANDED = chart(), chart("a: 2"), chart(annotations={CHART_MANAGED_BY: THEIRS})
BINDING = f"helm-{SYSTEM}-a-@"
VANISH = delete("HelmChart", "a-@", SYSTEM)
MORE, TAKEN = apply("HelmChartConfig", "a-@", SYSTEM, spec={"valuesContent": "b: 2"}), apply("Secret", "chart-values-a-@", SYSTEM)
workload = Workload(
    "release-provisioning",
    config={"helmProjectOperator": {"helmController": {"quietSeconds": 0}}},
    tells=lambda obj: (find_condition(obj, "Failed") or {}).get("status") == "True",
    safe=[runs_helm_for_ours_only],
    watched=[
        *(kinds.HELM_CHART, kinds.HELM_CHART_CONFIG, kinds.JOB, kinds.SECRET, kinds.CONFIG_MAP, kinds.SERVICE_ACCOUNT),
        *(kinds.CLUSTER_ROLE_BINDING, kinds.EVENT),
    ],
)
workload.scenario("chart", FIRST)
workload.scenario("chart-values", SECOND, before=[FIRST])
workload.scenario("chart-config", MORE, before=[FIRST])
workload.scenario("chart-gone", VANISH, before=[FIRST], other=[SECOND, VANISH])
workload.scenario("chart-handed-over", HANDED, before=[FIRST], other=[FIRST, HANDED], gives_away=True)  # what ran Helm stays
workload.scenario("chart-bad", chart("- no map"), FIRST)
workload.scenario("chart-taken", FIRST, before=[TAKEN])
workload.scenario("drift-job", delete("Job", "helm-install-a-@", SYSTEM), before=[FIRST])
workload.scenario("drift-binding", edit("ClusterRoleBinding", BINDING, "", "/subjects", []), SECOND, before=[FIRST])
