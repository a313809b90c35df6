"""lock-enforcement: consumers lose their grants by a label, the index, or themselves, drift, are deleted, and have them again."""

from tenantry.testing.workload import delete, namespace, together

from ._flux import OWNER, index_away_and_back, of_index, shared
from ._flux_locks import HOME, OWN, access_locks, by_hand, fails, kustomization
from ._paas import story

workload = access_locks()
GRANTED, DENIED = namespace(HOME, {"env": "prod"}), namespace(HOME, {"env": "test"})
MADE = [GRANTED, kustomization()]
LOCKED = [*MADE, DENIED]
story(workload, "lose-label", DENIED, before=MADE)
story(workload, "gain-label", GRANTED, before=LOCKED)
story(workload, "lose-and-gain", DENIED, GRANTED, before=MADE, other=MADE)
story(workload, "come-denied", kustomization(), before=[DENIED])
story(workload, "come-local", kustomization(""), before=LOCKED)
SUSPENDED = kustomization(name=OWN, suspend=True)
story(workload, "own-suspension", DENIED, GRANTED, before=[GRANTED, SUSPENDED], other=[GRANTED, SUSPENDED])
story(workload, "suspend-late", SUSPENDED, DENIED, before=[GRANTED, kustomization(name=OWN)])
story(workload, "resume-locked", kustomization(suspend=False), GRANTED, before=[GRANTED, kustomization(suspend=True), DENIED])
FLUX = "finalizers.fluxcd.io"
HELD, GONE = kustomization(finalizers=[FLUX]), delete("Kustomization", "k", HOME)
story(workload, "delete-locked", GONE, by_hand("metadata", "finalizers", "0"), before=[GRANTED, HELD, DENIED])
story(workload, "delete-home", delete("Namespace", HOME, gone=True), before=LOCKED)
RESUMED, UNHELD = by_hand("spec", "suspend", value=False), by_hand("metadata", "finalizers", value=[])
story(workload, "drift", RESUMED, UNHELD, before=LOCKED, other=LOCKED)
story(workload, "run-ends-late", fails, GRANTED, before=LOCKED, other=MADE)
# The index is one for all runs: who changes it has it for himself.
ALONE = {"by_itself": True}
SHARED = shared("team=n-@")
TEAM = together(namespace(HOME, {"team": "n-@"}), SHARED)
USED = [TEAM, kustomization(OWNER)]
story(workload, "revoke", shared("team=other"), shared(), before=USED, **ALONE)
story(workload, "grant", SHARED, before=[*USED, shared("team=other")], **ALONE)
INCOMPLETE = together(of_index("complete", False), shared("team=other"))
story(workload, "index-not-complete", INCOMPLETE, of_index("complete", True), before=USED, **ALONE)
story(workload, "index-away", index_away_and_back, before=USED, other=USED, **ALONE)
story(workload, "index-away-locked", index_away_and_back, before=[*USED, shared("team=other")], **ALONE)
