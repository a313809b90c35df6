"""The unit jobs of release-provisioning: HelmCharts come, change, change hands and go; what runs Helm drifts and is put back.

No node: pods stay pending. Neither held deletions nor still values are waited for: what the one leaves
ends with the sweep, the other would only take time.
"""

from typing import Any

from tenantry.model import kinds
from tenantry.model.names import CHART_MANAGED_BY, HELM_API_VERSION
from tenantry.testing.workload import Step, Workload, apply, delete, edit, namespace

from ._helm_jobs import OURS, SYSTEM, helm_has_rights_while_it_runs, rights_are_those_of_a_job, runs_helm_for_ours_only, tells

THEIRS, PLACE, PROJECTS = "helm-controller", "r-@", {HELM_API_VERSION: "dummy.cattle.io/v1alpha1"}


def chart(values: str = "a: 1", annotations: dict[str, str] | None = None, **spec: Any) -> Step:
    """The HelmChart of a project."""
    asked = {"chart": "tiny", "chartContent": "H4sIAAAA", "valuesContent": values, "targetNamespace": PLACE, **spec}
    return apply("HelmChart", "a-@", SYSTEM, spec=asked, annotations={CHART_MANAGED_BY: OURS} | PROJECTS | (annotations or {}))


FIRST, SECOND, HANDED = chart(), chart("a: 2"), chart(annotations={CHART_MANAGED_BY: THEIRS})
HOME, BINDING = namespace(PLACE), f"helm-{SYSTEM}-a-@"
VANISH = delete("HelmChart", "a-@", SYSTEM)
MORE, TAKEN = apply("HelmChartConfig", "a-@", SYSTEM, spec={"valuesContent": "b: 2"}), apply("Secret", "chart-values-a-@", SYSTEM)
workload = Workload(
    "release-provisioning",
    config={"helmProjectOperator": {"helmController": {"quietSeconds": 0}}},
    tells=tells,
    safe=[runs_helm_for_ours_only, helm_has_rights_while_it_runs],
    ends=[rights_are_those_of_a_job],
    replaced=[kinds.JOB.kind],
    watched=[
        *(kinds.HELM_CHART, kinds.HELM_CHART_CONFIG, kinds.JOB, kinds.SECRET, kinds.CONFIG_MAP, kinds.SERVICE_ACCOUNT),
        *(kinds.NAMESPACE, kinds.ROLE_BINDING, kinds.CLUSTER_ROLE_BINDING, kinds.EVENT),
    ],
)
workload.scenario("chart", FIRST, before=[HOME])
workload.scenario("chart-values", SECOND, before=[HOME, FIRST])
workload.scenario("chart-config", MORE, before=[HOME, FIRST])
workload.scenario("chart-gone", VANISH, before=[HOME, FIRST], other=[HOME, SECOND, VANISH])
handed = [HOME, FIRST, HANDED]
workload.scenario("chart-handed-over", HANDED, before=handed[:2], other=handed, gives_away=True)  # what ran Helm stays
workload.scenario("chart-bad", chart("- no map"), FIRST, before=[HOME])
workload.scenario("chart-taken", FIRST, before=[HOME, TAKEN])
workload.scenario("drift-job", delete("Job", "helm-install-a-@", SYSTEM), before=[HOME, FIRST])
workload.scenario("drift-binding", edit("RoleBinding", BINDING, PLACE, "/subjects", []), SECOND, before=[HOME, FIRST])
