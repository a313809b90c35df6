"""release-provisioning, duty paas: capabilities are handed over to ApplicationSets, changed and taken back."""

from tenantry.testing.workload import delete, edit, together

from ._paas import P, X, paas, story
from ._paas_elements import BOTH, CONFIGURED, OFF, PLACE, READY, SET, application_set, hand_over, one

workload = hand_over()
story(workload, "hand-over", BOTH, before=[together(CONFIGURED, application_set())])
story(workload, "set-late", application_set(), before=[CONFIGURED, BOTH])
story(workload, "field", one(custom_fields={"team": "a"}), one(custom_fields={"team": "b"}), before=READY)
story(workload, "off", paas(P, capabilities={"c-@": OFF}), one(), before=READY)
story(workload, "delete", delete("Paas", P, gone=True), before=READY)
GONE, LESS = delete("Paas", X, gone=True), paas(P, capabilities={"c-@": OFF})
story(workload, "delete-other", GONE, LESS, before=READY, other=[*READY, LESS, GONE])
drift = edit("ApplicationSet", SET, PLACE, "/spec/generators/1/list/elements/1")
story(workload, "drift", drift, before=READY, other=READY, drifts=True)
