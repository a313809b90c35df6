"""The unit jobs of release-provisioning: the Jobs of Helm end, and the rights of their account come and go with them."""

from dataclasses import replace

from tenantry.model.names import CHART_LABEL, CHART_MANAGED_BY
from tenantry.testing.workload import apply, together

from ._helm_jobs import OURS, SYSTEM, ended
from .helm_charts import BINDING, FIRST, HOME, SECOND, VANISH, chart
from .helm_charts import workload as charts

THIRD, ONCE = chart("a: 3"), chart(backOffLimit=0)
WIDE = apply("HelmChart", "a-@", SYSTEM, spec={"chart": "tiny", "chartContent": "H4sIAAAA"}, annotations={CHART_MANAGED_BY: OURS})
DONE, LOST, AWAY = ended("helm-install-a-@"), ended("helm-install-a-@", "Failed"), ended("helm-delete-a-@")
ACCOUNT = {"kind": "ServiceAccount", "name": "helm-a-@", "namespace": SYSTEM}
EVERYTHING = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
BEFORE = apply("ClusterRoleBinding", BINDING, roleRef=EVERYTHING, subjects=[ACCOUNT], labels={CHART_LABEL: "a-@"})
READY = [HOME, FIRST, DONE]

# Where a Job has ended hands change nothing: a Job that they delete has Helm run again, and no Helm runs here to end that one.
workload = replace(charts, scenarios={})
workload.scenario("wide", WIDE)
workload.scenario("wide-done", DONE, before=[WIDE], other=[WIDE, DONE], gives_away=True)
workload.scenario("done", DONE, before=[HOME, FIRST], other=READY, gives_away=True)
workload.scenario("lost", LOST, before=[HOME, ONCE], other=[HOME, ONCE, LOST], gives_away=True)
workload.scenario("again", SECOND, before=READY, other=[HOME, THIRD, DONE, SECOND])
workload.scenario("uninstalled", AWAY, before=[*READY, VANISH], other=[*READY, VANISH, AWAY], gives_away=True)
workload.scenario("of-before", together(BEFORE, SECOND), before=READY, other=[HOME, THIRD, DONE, BEFORE, SECOND])
