"""rbac-aggregation, duty paas: mappings of the PaasConfig change and go; a role that is withdrawn is gone everywhere."""

from ._paas import configure, story
from ._paas_rights import READY, rights_of_paas

workload = rights_of_paas()
OTHER, GONE = configure(rolemappings={"edit-@": ["admin"]}), configure(rolemappings={"edit-@": None})
story(workload, "mapping-other", OTHER, before=READY, by_itself=True)
story(workload, "mapping-twice", OTHER, GONE, before=READY, by_itself=True)
