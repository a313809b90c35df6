"""lock-enforcement: consumers lose their grants by a label, the index, or themselves, drift, are deleted, and have them again."""

from tenantry.testing.workload import delete, namespace, together

from ._flux import OWNER, index_away_and_back, of_index, shared
from ._flux_locks import HOME, OWN, K, access_locks, by_hand, fails, kustomization
from ._paas import story

workload = access_locks()
# What a lock has left when it is gone, conditions among it, only Flux's next run puts right: who ends free was locked before.
GRANTED, DENIED, FOREIGN = namespace(HOME, {"env": "prod"}), namespace(HOME, {"env": "test"}), kustomization()
MADE, LOCKED, COME = [GRANTED, FOREIGN], [GRANTED, FOREIGN, DENIED], [DENIED, FOREIGN]
story(workload, "lose-label", DENIED, before=MADE)
story(workload, "gain-label", GRANTED, before=LOCKED, other=[*COME, GRANTED])
story(workload, "gain-and-lose", GRANTED, DENIED, before=LOCKED, other=LOCKED)
story(workload, "come-denied", FOREIGN, before=[DENIED])
story(workload, "come-local", kustomization(""), before=LOCKED, other=[*COME, kustomization("")])
SUSPENDED = kustomization(name=OWN, suspend=True)
story(workload, "own-suspension", GRANTED, before=[GRANTED, SUSPENDED, DENIED], other=[DENIED, SUSPENDED, GRANTED])
story(workload, "suspend-late", SUSPENDED, DENIED, before=[GRANTED, kustomization(name=OWN)])
story(workload, "resume-locked", kustomization(suspend=False), before=[GRANTED, kustomization(suspend=True), DENIED])
HELD, GONE = kustomization(finalizers=["finalizers.fluxcd.io"]), delete("Kustomization", K, HOME)
story(workload, "delete-locked", GONE, by_hand("metadata", "finalizers", "0"), before=[GRANTED, HELD, DENIED])
story(workload, "delete-home", delete("Namespace", HOME, gone=True), before=LOCKED)
RESUMED, UNHELD = by_hand("spec", "suspend", value=False), by_hand("metadata", "finalizers", value=[])
story(workload, "drift", RESUMED, UNHELD, before=LOCKED, other=LOCKED)
story(workload, "run-ends-late", fails, before=LOCKED, other=LOCKED)
# The index is one for all runs: who changes it has it for himself.
ALONE = {"by_itself": True}
TEAM, SHARED, OTHERS = namespace(HOME, {"team": "n-@"}), shared("team=n-@"), shared("team=other")
USED, REVOKED = [together(TEAM, SHARED), kustomization(OWNER)], [together(TEAM, OTHERS), kustomization(OWNER)]
story(workload, "revoke", OTHERS, shared(), before=USED, **ALONE)
story(workload, "grant", SHARED, before=[*USED, OTHERS], other=[*REVOKED, SHARED], **ALONE)
BETWEEN = together(SHARED, kustomization(OWNER))  # who comes sees an index that says for a moment what it did not before
story(workload, "come-while-granted", BETWEEN, OTHERS, before=[together(TEAM, OTHERS)], other=REVOKED, **ALONE)
INCOMPLETE = together(of_index("complete", False), OTHERS)
story(workload, "index-not-complete", INCOMPLETE, of_index("complete", True), before=USED, **ALONE)
story(workload, "index-away", index_away_and_back, before=USED, other=USED, **ALONE)
story(workload, "index-away-locked", index_away_and_back, before=[*USED, OTHERS], other=REVOKED, **ALONE)
MANY = together(*(kustomization(OWNER, f"m{number}-@") for number in range(5)))
story(workload, "revoke-many", OTHERS, before=[together(TEAM, SHARED), MANY], other=[together(TEAM, OTHERS), MANY], **ALONE)
