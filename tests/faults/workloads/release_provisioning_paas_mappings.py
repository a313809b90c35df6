"""release-provisioning, duty paas: the PaasConfig names another ApplicationSet, or other fields, or none."""

from ._paas import configure, story
from ._paas_elements import CAPABILITY, READY, application_set, hand_over

workload = hand_over()
OTHER = configure(capabilities={"c-@": {**CAPABILITY, "applicationset": "other-@"}})
FIELDS, NONE = configure(capabilities={"c-@": {"applicationset": "as-@"}}), configure(capabilities={"c-@": None})
story(workload, "moved", OTHER, before=[*READY, application_set("other-@")], by_itself=True)
story(workload, "fields-and-gone", FIELDS, NONE, before=READY, by_itself=True)
