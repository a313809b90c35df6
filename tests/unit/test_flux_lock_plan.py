"""The lock of a consumer as a value: what is put on, what is taken off, and what is said, for every state that it can be in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lock_enforcement.access.plan import plan_consumer, unlocked_in_doubt
from lock_enforcement.access.report import LISTED, plan_violations, refusal_name, report_consumer
from lock_enforcement.access.seen import (
    OURS,
    AccessContext,
    ConsumerDecision,
    ConsumerSeen,
    ForbiddenObject,
    Violation,
    ViolationsSeen,
    concerns_us,
    decided,
    forbidden_object,
    kept_consumer,
)
from tenantry.model.flux.access import AccessEntries
from tenantry.model.flux.consumers import CONSUMERS, Consumer, Reference, Stop
from tenantry.model.flux.names import (
    ACCESS_DENIED,
    DEFAULT,
    LOCK_FINALIZER,
    LOCKED,
    REQUESTED_AT,
    SUSPENDED_BY_LOCK,
    TENANCY_PROFILE,
)
from tenantry.model.flux.profile import Profile
from tenantry.model.kinds import Kind, Object
from tenantry.model.plan import Apply, Edit, Refusal
from tenantry.testing.objects import obj

ROWS = {each.resource: each for each in CONSUMERS}
KUSTOMIZATION = Kind("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "kustomizations")
SPEC = {"sourceRef": {"kind": "GitRepository", "name": "app1", "namespace": "dev-team1"}}
NOW = "2026-01-02T03:04:05.678901Z"
DENIED = "spec.sourceRef: GitRepository/dev-team1/app1 is not shared with namespace dev-team2"
MARKS = {LOCKED: ACCESS_DENIED, SUSPENDED_BY_LOCK: "true"}
CLUSTER_ROLE_REFUSED = (
    'ClusterRole/evil dry-run failed (Forbidden): clusterroles.rbac.authorization.k8s.io "evil" is forbidden: User '
    '"system:serviceaccount:a:flux" cannot patch resource "clusterroles" in API group "rbac.authorization.k8s.io" at the '
    "cluster scope"
)
NAMESPACE_REFUSED = (
    'Namespace/evil dry-run failed (Forbidden): namespaces "evil" is forbidden: User "system:serviceaccount:a:flux" '
    'cannot patch resource "namespaces" in API group "" in the namespace "evil"'
)
MULTI = Profile(profile="multi-tenant")


def consumer(spec: Mapping[str, Any] = SPEC, **metadata: Any) -> Object:
    found = {"uid": "u", "resourceVersion": "7", "generation": 3, **metadata}
    return obj(KUSTOMIZATION, "app1", "dev-team2", metadata=found, spec=dict(spec))


def locked(**metadata: Any) -> Object:
    return consumer({**SPEC, "suspend": True}, annotations=MARKS, finalizers=["x", LOCK_FINALIZER], **metadata)


def seen(
    live: Object,
    decision: str = "deny",
    *,
    profile: Profile = MULTI,
    row: Consumer = ROWS["kustomizations"],
    **parts: Any,
) -> ConsumerSeen:
    denied = (DENIED,) if decision == "deny" else ()
    context = AccessContext(profile, AccessEntries(complete=True), {"dev-team2": {}})
    made = ConsumerDecision(decision, denied)  # type: ignore[arg-type]
    return ConsumerSeen(row, KUSTOMIZATION, live, context, made, now=NOW, **parts)


def patched(live: Object, steps: Any) -> Object:
    """The object after a JSON patch of additions and removals."""
    found = json.loads(json.dumps(live))
    for step in steps:
        *path, last = (part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:])
        place = found
        for part in path:
            place = place[part]
        if step["op"] == "add":
            place[last] = step["value"]
        else:
            del place[last]
    return found  # type: ignore[no-any-return]


def planned(found: ConsumerSeen) -> Object | None:
    """The object as the one write of a plan makes it; None: nothing is written."""
    writes = list(plan_consumer(found).writes())
    if not writes:
        return None
    (edit,) = writes
    assert isinstance(edit, Edit)
    return patched(found.live, edit.operations)


def test_one_update_locks() -> None:
    """Both marks, the suspension, our finalizer behind those that are there."""
    found = planned(seen(consumer(finalizers=["x"])))
    assert found == locked()
    assert planned(seen(locked())) is None


def test_what_its_user_has_suspended_is_not_marked_as_ours() -> None:
    """Nor is a mark believed that somebody wrote beside his own suspension."""
    own = consumer({**SPEC, "suspend": True})
    expected = consumer({**SPEC, "suspend": True}, annotations={LOCKED: ACCESS_DENIED}, finalizers=[LOCK_FINALIZER])
    assert planned(seen(own)) == expected
    forged = consumer({**SPEC, "suspend": True}, annotations={SUSPENDED_BY_LOCK: "true"})
    assert planned(seen(forged)) == expected


def test_a_lock_that_lacks_a_part_is_made_whole() -> None:
    """A suspension that somebody ended is ours from then on."""
    for lacks in (
        consumer(SPEC, annotations=MARKS, finalizers=["x", LOCK_FINALIZER]),
        consumer(SPEC, annotations={LOCKED: ACCESS_DENIED}, finalizers=["x", LOCK_FINALIZER]),
        consumer({**SPEC, "suspend": True}, annotations=MARKS, finalizers=["x"]),
    ):
        assert planned(seen(lacks)) == locked()


def test_one_update_unlocks() -> None:
    """No mark stays, the suspension only if it was its user's; a run is asked for."""
    assert planned(seen(locked(), "allow")) == consumer(SPEC, annotations={REQUESTED_AT: NOW}, finalizers=["x"])
    own = consumer({**SPEC, "suspend": True}, annotations={LOCKED: ACCESS_DENIED}, finalizers=[LOCK_FINALIZER])
    freed = planned(seen(own, "allow"))
    assert freed is not None
    assert freed["spec"]["suspend"] is True
    assert planned(seen(consumer(), "allow")) is None


def test_deletion_unlocks_whatever_is_decided() -> None:
    """Without asking for a run: there is none any more."""
    going = locked(deletionTimestamp=NOW)
    for decision in ("deny", "unknown", "allow"):
        assert planned(seen(going, decision)) == consumer(SPEC, annotations={}, finalizers=["x"], deletionTimestamp=NOW)
    assert planned(seen(consumer(deletionTimestamp=NOW))) is None


def test_nothing_is_decided_from_what_cannot_be_read() -> None:
    """Neither locked nor unlocked."""
    assert planned(seen(consumer(), "unknown")) is None
    assert planned(seen(locked(), "unknown")) is None
    assert not list(report_consumer(seen(locked(), "unknown"), ()).writes())


def test_where_nothing_is_locked_locks_go() -> None:
    """Audit, and Report under Deny; under Quarantine admission has put the lock on, and it stays."""
    for profile in (
        Profile(profile="multi-tenant", is_audit=True),
        Profile(profile="multi-tenant", on_revocation="Report"),
    ):
        assert planned(seen(consumer(), profile=profile)) is None
        assert planned(seen(locked(), profile=profile)) == consumer(SPEC, annotations={REQUESTED_AT: NOW}, finalizers=["x"])
    quarantines = Profile(profile="multi-tenant", on_revocation="Report", on_denied="Quarantine")
    assert planned(seen(consumer(), profile=quarantines)) is None
    assert planned(seen(locked(), profile=quarantines)) is None


def test_locks_do_not_go_at_the_first_look_for_want_of_a_profile() -> None:
    """An API server that has just started may not serve it yet; of one that is going the lock goes at once."""
    for live, certain, doubtful in (
        (locked(), False, True),
        (locked(), True, False),
        (consumer(), False, False),
        (locked(deletionTimestamp=NOW), False, False),
    ):
        found = seen(live, "allow", certain=certain)
        assert bool(unlocked_in_doubt(found, plan_consumer(found))) == doubtful


def test_a_row_is_stopped_by_its_own_field() -> None:
    """Also where the way to it is not there; or by its annotation."""
    references = (Reference("spec.sourceRef", "read"),)
    field = Consumer("g.example.com", "things", references, Stop(field="spec.run.paused"))
    found = planned(seen(consumer(), row=field))
    assert found is not None
    assert found["spec"] == {**SPEC, "run": {"paused": True}}
    freed = planned(seen(found, "allow", row=field))
    assert freed is not None
    assert freed["spec"] == {**SPEC, "run": {}}
    annotated = Consumer("g.example.com", "things", references, Stop(annotation="example.com/run", value="no"))
    found = planned(seen(consumer(), row=annotated))
    assert found is not None
    assert found["metadata"]["annotations"] == {**MARKS, "example.com/run": "no"}
    freed = planned(seen(found, "allow", row=annotated))
    assert freed is not None
    assert freed["metadata"]["annotations"] == {REQUESTED_AT: NOW}


def reported(found: ConsumerSeen, refusals: tuple[Refusal, ...] = ()) -> tuple[Object | None, list[Object]]:
    """The conditions after a report, None where they are not written, and the Events."""
    conditions, events = None, []
    for write in report_consumer(found, refusals).writes():
        if isinstance(write, Edit):
            assert write.subresource == "status"
            conditions = patched(found.live, write.operations)["status"]["conditions"]
        else:
            assert isinstance(write, Apply)
            events.append(write.wanted)
    return conditions, events


def test_a_lock_says_so_once() -> None:
    """Both conditions of the generation beside those of others, and one Warning; written before, they are not written again."""
    other = {"type": "Healthy", "status": "True", "reason": "X", "message": ""}
    ready = {"type": "Ready", "status": "False", "reason": "HealthCheckFailed", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    live = {**locked(), "status": {"conditions": [ready, other]}}
    conditions, events = reported(seen(live))
    assert conditions is not None
    assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
        ("Healthy", "True", "X"),
        ("Ready", "False", ACCESS_DENIED),
        ("Stalled", "True", ACCESS_DENIED),
    ]
    assert {each["observedGeneration"] for each in conditions[1:]} == {3}
    assert [each["lastTransitionTime"] for each in conditions[1:]] == ["2026-01-01T00:00:00Z", "2026-01-02T03:04:05Z"]
    assert all(each["message"].startswith(f"{OURS}{DENIED}") for each in conditions[1:])
    (event,) = events
    assert (event["reason"], event["type"]) == (ACCESS_DENIED, "Warning")
    assert event["note"].startswith(DENIED)

    told = frozenset({event["metadata"]["name"]})
    said = {**locked(), "status": {"conditions": conditions}}
    assert reported(seen(said, told=told)) == (None, [])
    later = {**locked(generation=4), "status": {"conditions": conditions}}
    conditions, events = reported(seen(later, told=told))
    assert conditions is not None
    assert len(events) == 1


def test_what_is_not_locked_yet_says_nothing() -> None:
    """First the update, then the conditions, then the Warning (2.2)."""
    assert reported(seen(consumer())) == (None, [])


def test_conditions_of_ours_go_and_those_of_flux_stay() -> None:
    """Flux says AccessDenied by itself, under a flag of its own."""
    ours = {"type": "Ready", "status": "False", "reason": ACCESS_DENIED, "message": f"{OURS}x"}
    flux = {"type": "Ready", "status": "False", "reason": ACCESS_DENIED, "message": "cross-namespace references are blocked"}
    assert reported(seen({**consumer(), "status": {"conditions": [ours]}}, "allow")) == ([], [])
    assert reported(seen({**consumer(), "status": {"conditions": [flux]}}, "allow")) == (None, [])


def test_conditions_go_with_the_lock_of_what_is_deleted() -> None:
    """Whatever is decided, after the lock; and nothing else is told of it."""
    ours = {"type": "Ready", "status": "False", "reason": ACCESS_DENIED, "message": f"{OURS}x"}
    for decision in ("deny", "unknown", "allow"):
        freed = {**consumer(deletionTimestamp=NOW), "status": {"conditions": [ours]}}
        assert reported(seen(freed, decision)) == ([], [])
        assert reported(seen({**locked(deletionTimestamp=NOW), "status": {"conditions": [ours]}}, decision)) == (None, [])


def test_what_has_no_status_is_told_by_a_warning() -> None:
    """An Alert; and a namespace that is going takes none."""
    alert = {"row": ROWS["alerts"], "has_status": False}
    conditions, events = reported(seen(locked(), **alert))
    assert conditions is None
    assert len(events) == 1
    assert reported(seen(locked(), open=False, **alert)) == (None, [])


def test_a_refusal_is_told() -> None:
    """With the words of who refused."""
    _, events = reported(seen(consumer()), (Refusal(plan_key(), "admission", "denied by policy x"),))
    (event,) = events
    assert event["reason"] == "AccessLockRefused"
    assert "denied by policy x" in event["note"]
    told = frozenset({refusal_name(seen(consumer()))})
    assert reported(seen(consumer(), told=told), (Refusal(plan_key(), "admission", "denied by policy x"),)) == (None, [])


def plan_key() -> Any:
    """The key of the consumer."""
    (write,) = plan_consumer(seen(consumer())).writes()
    return write.key


@pytest.mark.parametrize("complete", [True, False])
def test_nothing_is_denied_on_the_word_of_an_index_that_is_not_complete(complete: bool) -> None:
    """What can never be granted is denied without it."""
    context = AccessContext(MULTI, AccessEntries(complete=complete), {"dev-team2": {"team": "two"}})
    found = decided(consumer(), ROWS["kustomizations"], context)
    assert found.decision == ("deny" if complete else "unknown")
    assert found.denied == ((DENIED,) if complete else ())
    local = consumer({"sourceRef": {"kind": "GitRepository", "name": "a"}, "dependsOn": [{"name": "b", "namespace": "other"}]})
    assert decided(local, ROWS["kustomizations"], context).decision == "deny"


def test_many_denials_are_counted() -> None:
    """Ten are named."""
    context = AccessContext(MULTI, AccessEntries(complete=True), {"dev-team2": {}})
    sources = [{"kind": "Bucket", "name": f"b{number}", "namespace": "other"} for number in range(13)]
    found = decided(consumer({"sources": sources}), ROWS["artifactgenerators"], context)
    assert found.told.count("is not shared") == 10
    assert found.told.endswith("; and 3 more")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            CLUSTER_ROLE_REFUSED,
            ForbiddenObject("rbac.authorization.k8s.io", "clusterroles", "evil"),
        ),
        (
            NAMESPACE_REFUSED,
            ForbiddenObject("", "namespaces", "evil"),
        ),
        ("health check failed after 1m", None),
        ('"' * 100_000, None),
    ],
)
def test_the_object_of_a_refusal_is_found_in_its_text(text: str, expected: ForbiddenObject | None) -> None:
    """Of Kustomizations and HelmReleases whose condition Ready says so."""
    live = {**consumer(), "status": {"conditions": [{"type": "Ready", "status": "False", "message": text}]}}
    assert forbidden_object(live, ROWS["kustomizations"]) == expected
    assert forbidden_object(live, ROWS["imagepolicies"]) is None


CONDITIONS = st.lists(
    st.builds(
        lambda type_, reason, message: {"type": type_, "status": "False", "reason": reason, "message": message},
        st.sampled_from(["Ready", "Stalled", "Healthy"]),
        st.sampled_from([ACCESS_DENIED, "X"]),
        st.sampled_from([f"{OURS}x", "y"]),
    ),
    max_size=3,
)


@given(
    st.sampled_from(CONSUMERS),
    st.dictionaries(st.sampled_from([LOCKED, SUSPENDED_BY_LOCK, "other"]), st.sampled_from(["true", ACCESS_DENIED])),
    st.lists(st.sampled_from([LOCK_FINALIZER, "x"]), unique=True),
    st.sampled_from([None, True, False]),
    st.sampled_from(["", "dev-team1", "dev-team2"]),
    st.sampled_from(["deny", "allow", "unknown"]),
    CONDITIONS,
)
def test_what_is_kept_decides_as_the_whole(
    row: Consumer,
    annotations: dict[str, str],
    finalizers: list[str],
    suspend: bool | None,
    namespace: str,
    decision: str,
    conditions: list[Object],
) -> None:
    """A sweep finds by it whether a run is needed; kept twice it is the same."""
    where = {"kind": "Bucket", "name": "b", **({"namespace": namespace} if namespace else {})}
    spec: Object = {"url": "x" * 100, **({} if suspend is None else {"suspend": suspend})}
    for each in row.references:
        path = each.path.removesuffix("[]").split(".")[1:]
        place = spec
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = [where] if each.path.endswith("[]") else where
    live = consumer(spec, annotations=annotations, finalizers=finalizers, labels={"a": "b"}, managedFields=[{}])
    live["status"] = {"conditions": conditions, "inventory": ["x"] * 100}
    kept = kept_consumer(live, row)
    assert kept_consumer(kept, row) == kept
    assert concerns_us(live, row) == ("uid" in kept["metadata"])
    if concerns_us(live, row):
        assert concerns_us(kept, row)
        whole, part = seen(live, decision, row=row), seen(kept, decision, row=row)
        assert bool(list(plan_consumer(whole).writes())) == bool(list(plan_consumer(part).writes()))
        assert bool(list(report_consumer(whole, ()).writes())) == bool(list(report_consumer(part, ()).writes()))


def test_violations_are_listed_up_to_a_number() -> None:
    """With how many there are; under a single tenant there is no list."""
    violations = tuple(Violation("Bucket", "n", f"b{number:03}", "v1", "x" * 5000) for number in range(LISTED + 1))
    profile = obj(TENANCY_PROFILE, DEFAULT, metadata={"uid": "u"}, spec={"profile": "multi-tenant"})
    (write,) = plan_violations(ViolationsSeen(profile, violations)).writes()
    assert isinstance(write, Apply)
    status = write.wanted["status"]
    assert (status["violationCount"], len(status["violations"])) == (LISTED + 1, LISTED)
    assert len(status["violations"][0]["message"]) == 4096
    single = {**profile, "spec": {"profile": "single-tenant"}}
    assert not list(plan_violations(ViolationsSeen(single)).writes())
    assert not list(plan_violations(ViolationsSeen(None)).writes())
