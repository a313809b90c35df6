"""namespace-registration: the PaasConfig changes what capabilities have: other quotas, shared ones, or none."""

from ._paas import configure, story
from ._paas_namespaces import CPU, READY, WIDE, namespaces_of_paas

workload = namespaces_of_paas()
MORE = configure(capabilities={"c-@": {"quotas": {"defaults": {CPU: "9"}}}})
SHARED, NONE = configure(capabilities={"c-@": WIDE}), configure(capabilities={"c-@": None})
story(workload, "quotas", MORE, SHARED, before=READY, by_itself=True)
story(workload, "capability-gone", NONE, before=READY, by_itself=True)
