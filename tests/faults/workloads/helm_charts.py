"""The unit jobs of release-provisioning: HelmCharts come, change, change hands and go; what runs Helm drifts and is put back.

There is no node here: the pods of the Jobs stay pending, so that only the function writes.
"""

from typing import Any

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    EVENT,
    HELM_CHART,
    HELM_CHART_CONFIG,
    JOB,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
    annotations_of,
)
from tenantry.model.names import CHART_MANAGED_BY, CHART_UNMANAGED
from tenantry.testing.workload import Step, Workload, apply, delete, edit
from tenantry.testing.world import Moment

SYSTEM, OURS, THEIRS = "cattle-helm-system", "helm-project-operator", "helm-controller"


def chart(values: str = "a: 1", annotations: dict[str, str] | None = None, **spec: Any) -> Step:
    """A HelmChart."""
    asked = {"chart": "tiny", "chartContent": "H4sIAAAA", "valuesContent": values, **spec}
    return apply("HelmChart", "a-@", SYSTEM, spec=asked, annotations={CHART_MANAGED_BY: OURS} | (annotations or {}))


def runs_helm_for_ours_only(moment: Moment) -> str:
    """No Job, no account and no binding is made for a HelmChart that is another's, and nobody is bound but its account."""
    made = moment.change.after
    if not moment.by or made is None or moment.change.before is not None:
        return ""
    if made["kind"] not in ("Job", "ServiceAccount", "ClusterRoleBinding", "Secret", "ConfigMap"):
        return ""
    of = next((each for each in moment.objects.values() if each["kind"] == "HelmChart"), None)
    if of is None or annotations_of(of).get(CHART_MANAGED_BY) != OURS or CHART_UNMANAGED in annotations_of(of):
        return f"made {made['kind']} for a HelmChart that is not ours"
    return "bound somebody else" if made.get("subjects", [{"name": f"helm-{of['metadata']['name']}"}])[0]["name"] != (
        f"helm-{of['metadata']['name']}"
    ) else ""  # fmt: skip


def tells(obj: Object) -> bool:
    """Whether a HelmChart says that something is wrong."""
    return (find_condition(obj, "Failed") or {}).get("status") == "True"


FIRST, SECOND, HANDED = chart(), chart("a: 2"), chart(annotations={CHART_MANAGED_BY: THEIRS})
BINDING = f"helm-{SYSTEM}-a-@"
# Not waited for: with a lost event it goes only with the sweep, which comes after the steps.
VANISH = delete("HelmChart", "a-@", SYSTEM)
MORE = apply("HelmChartConfig", "a-@", SYSTEM, spec={"valuesContent": "b: 2"})
TAKEN = apply("Secret", "chart-values-a-@", SYSTEM, type="Opaque")
workload = Workload(
    "release-provisioning",
    tells=tells,
    safe=[runs_helm_for_ours_only],
    watched=(HELM_CHART, HELM_CHART_CONFIG, JOB, SECRET, CONFIG_MAP, SERVICE_ACCOUNT, CLUSTER_ROLE_BINDING, EVENT),
)
workload.scenario("chart", FIRST)
workload.scenario("chart-values", SECOND, before=[FIRST])
workload.scenario("chart-config", MORE, before=[FIRST])
workload.scenario("chart-gone", VANISH, before=[FIRST], other=[SECOND, VANISH])
# What ran Helm stays for the controller that comes after us, so this end has another history than one without us.
workload.scenario("chart-handed-over", HANDED, before=[FIRST], other=[FIRST, HANDED])
workload.scenario("chart-of-others", HANDED)
workload.scenario("chart-bad", chart("- no map"), FIRST)
workload.scenario("chart-taken", FIRST, before=[TAKEN])
workload.scenario("drift-job", delete("Job", "helm-install-a-@", SYSTEM), before=[FIRST])
workload.scenario("drift-account", delete("ServiceAccount", "helm-a-@", SYSTEM), SECOND, before=[FIRST])
workload.scenario("drift-binding", edit("ClusterRoleBinding", BINDING, "", "/subjects", []), SECOND, before=[FIRST])
