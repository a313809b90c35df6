"""scope-binding: the index of who may use a source follows its owner's grants, the source, and hands that edit it."""

from tenantry.testing.workload import delete, namespace, together

from ._flux import GRANT, KEY, OWNER, SOURCE, A, B, grant, of_index, profile, shared, source, without_index
from ._flux_index import grants_of_sources
from ._paas import story

workload = grants_of_sources()
HOME = together(namespace(OWNER), source())
BOTH = [HOME, grant(A, B)]
REVOKED = delete("SourceGrant", GRANT, OWNER)
# The index is one for all runs, and its writes are to be disturbed: each run has it for itself.
ALONE = {"by_itself": True}
story(workload, "grant", grant(A, B), before=[HOME], **ALONE)
story(workload, "narrow", grant(A), grant(access=["Write"]), before=BOTH, **ALONE)
story(workload, "widen", grant(A, B), grant({}, access=["Read", "Write"]), before=[HOME, grant(A)], **ALONE)
story(workload, "revoke", REVOKED, before=BOTH, **ALONE)
ANNOTATED = [together(namespace(OWNER), source(A)), grant(A, B)]
story(workload, "two-carriers", source(), REVOKED, before=ANNOTATED, **ALONE)
story(workload, "two-grants", grant(B, name="h-@"), REVOKED, before=BOTH, **ALONE)
story(workload, "no-json", source(text="{"), source(B), before=ANNOTATED, **ALONE)
GONE = delete("GitRepository", SOURCE, OWNER)
story(workload, "source-gone", GONE, source(), before=BOTH, other=BOTH, **ALONE)
story(workload, "home-gone", delete("Namespace", OWNER, gone=True), before=[namespace("a-@"), *BOTH], **ALONE)
SETTABLE, GUARDED = profile(tenantLabelKeys=["team-@"]), profile(tenantLabelKeys=[])
KEYED = [HOME, grant(A, {"team-@": "a"})]
story(workload, "tenants-key", SETTABLE, GUARDED, before=KEYED, other=KEYED, **ALONE)
story(workload, "drift", shared("*"), shared(), before=BOTH, other=BOTH, drifts=True, **ALONE)
story(workload, "drift-elsewhere", shared("*", KEY + "x"), of_index("complete", False), before=BOTH, other=BOTH, **ALONE)
story(workload, "index-gone", without_index, before=BOTH, other=BOTH, **ALONE)
