"""What locks want, from what was observed: grace periods, pauses, owners, problems, and what is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lock_enforcement.fields import partial
from lock_enforcement.helm import Mark, Record
from lock_enforcement.locks import annotation_problems, ignore_problems, ignored
from lock_enforcement.releases.plan import plan_lock
from lock_enforcement.releases.report import report_lock
from lock_enforcement.releases.seen import COMPLETE, LOCKED, Lock, LockedObject, LockProblem, kept
from lock_enforcement.sources.plan import SourcesSeen, plan_sources
from lock_enforcement.started import LONGEST_S, beginning_s, is_ready
from tenantry.engine.engine import DEADLINE_S
from tenantry.model.config import Config
from tenantry.model.kinds import API_SERVER_SOURCE, CONFIG_MAP, HELM_RELEASE, STATEFUL_SET, Key, Kind, Object, key_of, object_of
from tenantry.model.names import LOCKED_SOURCE, SYSTEM_NAMESPACE
from tenantry.model.plan import Apply, Delete, PutBack, Refusal, RemoveFinalizers
from tenantry.testing.objects import obj

CONFIG = Config()
RELEASE = Mark("demo", "ns")
DEPLOYED, FAILED = Record(1, "deployed"), Record(2, "failed")
PENDING, GONE = Record(2, "pending-upgrade"), Record(2, "uninstalling")


def helm_release(**spec: Any) -> Object:
    metadata = {"name": "demo", "namespace": "cattle-helm-system", "uid": "1", "resourceVersion": "1", "generation": 3}
    return object_of(HELM_RELEASE, metadata, spec={"release": {"name": "demo", "namespace": "ns"}, **spec})


def config_map(data: str = "1", **metadata: Any) -> Object:
    return obj(CONFIG_MAP, "c", "ns", metadata=metadata, data={"a": data})


def seen(live: Object | None, **fields: Any) -> LockedObject:
    return LockedObject(key_of(config_map()), CONFIG_MAP, config_map(), live, **fields)


def lock(*objects: LockedObject, **fields: Any) -> Lock:
    base = Lock(helm_release(), RELEASE, DEPLOYED, DEPLOYED, objects=objects, count=len(objects))
    return replace(base, **fields)


LIVE = config_map("x", uid="7", resourceVersion="9", managedFields=[])
DRIFTED = seen(LIVE, drift=(("data", "a"),), body=partial(config_map(), [("data", "a")]))


@pytest.mark.parametrize(
    ("newest", "deployed", "age", "revision"),
    [
        (None, None, 0, 0),
        (DEPLOYED, DEPLOYED, 0, 1),
        (FAILED, DEPLOYED, 59, 0),
        (FAILED, DEPLOYED, 60, 1),
        (FAILED, None, 9999, 0),
        (PENDING, DEPLOYED, 3599, 0),
        (PENDING, DEPLOYED, 3600, 1),
        (GONE, DEPLOYED, 999_999, 0),
        (Record(2, "uninstalled"), DEPLOYED, 999_999, 0),
        (Record(2, "superseded"), DEPLOYED, 999_999, 0),
    ],
)
def test_which_revision_is_kept(newest: Record | None, deployed: Record | None, age: float, revision: int) -> None:
    """The newest deployed one, also under a failed or interrupted one after the grace period; never one that is uninstalled."""
    assert kept(lock(newest=newest, deployed=deployed, age_s=age), CONFIG) == revision


def test_drift_is_put_back_under_a_guard() -> None:
    """Claim first; the drifted fields only; Helm inherits them."""
    claim, put_back = plan_lock(lock(DRIFTED), CONFIG).writes()
    assert isinstance(claim, Apply)
    assert isinstance(put_back, PutBack)
    assert put_back.fields == ("data[a]",)
    assert put_back.body["data"] == {"a": "1"}
    assert (put_back.new_manager.manager, put_back.new_manager.operation) == ("helm", "Update")
    assert put_back.event is not None
    assert (put_back.event.reason, "data[a]" in put_back.event.note) == ("Restored", True)


@pytest.mark.parametrize(
    "state",
    [
        lock(DRIFTED, helm_release=helm_release(suspend=True)),
        lock(DRIFTED, older="first"),
        lock(DRIFTED, newest=PENDING),
        lock(replace(DRIFTED, paused=True)),
        lock(replace(DRIFTED, problem=LockProblem("ForeignObject", "x"))),
        lock(replace(DRIFTED, kind=None)),
        lock(replace(DRIFTED, live={**LIVE, "metadata": {**LIVE["metadata"], "deletionTimestamp": "now"}})),
        lock(seen(config_map(managedFields=[]))),
    ],
)
def test_what_is_left_alone(state: Lock) -> None:
    """Paused, another's, Helm at work, foreign, unknown, going away or as it should be: no write to the object."""
    assert [write.key.kind for write in plan_lock(state, CONFIG).writes()] == ["HelmRelease"]


def test_a_missing_object_is_made_with_helms_marks() -> None:
    """It is created with the marks that Helm checks, and told, unless we have just deleted it for that."""
    *_, made = plan_lock(lock(seen(None)), CONFIG).writes()
    assert isinstance(made, PutBack)
    assert made.body["metadata"]["annotations"]["meta.helm.sh/release-name"] == "demo"
    assert made.event is not None
    *_, again = plan_lock(lock(seen(None, again={"object": "x"})), CONFIG).writes()
    assert isinstance(again, PutBack)
    assert again.event is None


def test_what_cannot_be_changed_is_deleted_once() -> None:
    """Drift without an apply that puts it back; a StatefulSet leaves its pods."""
    for kind, propagation in ((CONFIG_MAP, "Background"), (STATEFUL_SET, "Orphan")):
        *_, deleted = plan_lock(lock(replace(DRIFTED, body=None, kind=kind)), CONFIG).writes()
        assert isinstance(deleted, Delete)
        assert deleted.propagation == propagation


def test_what_a_crash_left_is_handed_back() -> None:
    """An entry of ours in managedFields is given away, also while the object is paused."""
    entry = {"manager": "tenantry-lock-enforcement", "operation": "Apply", "fieldsV1": {"f:data": {}}}
    left = seen(config_map(managedFields=[entry]), paused=True)
    *_, write = plan_lock(lock(left), CONFIG).writes()
    assert isinstance(write, PutBack)
    assert write.fields == ()


def test_a_deleted_lock_lets_go() -> None:
    """Only the finalizers go; one that is another's, or a function that is switched off, keeps nothing."""
    dying = helm_release()
    dying["metadata"]["deletionTimestamp"] = "now"
    (write,) = plan_lock(lock(DRIFTED, helm_release=dying), CONFIG).writes()
    assert isinstance(write, RemoveFinalizers)
    assert len(write.finalizers) == 2
    theirs = helm_release()
    theirs["metadata"]["annotations"] = {"helmreleases.cattle.io/managed-by": "them"}
    (write,) = plan_lock(lock(DRIFTED, helm_release=theirs), CONFIG).writes()
    assert isinstance(write, RemoveFinalizers)
    off = Config.model_validate({"helmProjectOperator": {"helmLocker": {"enabled": False}}})
    assert kept(lock(DRIFTED), off) == 0
    assert list(report_lock(lock(DRIFTED), (), off).writes()) == []
    assert list(plan_lock(None, CONFIG).writes()) == []


def told(state: Lock, *refusals: Refusal) -> tuple[Object, str]:
    (write,) = report_lock(state, refusals, CONFIG).writes()
    assert isinstance(write, Apply)
    status: Object = write.wanted["status"]
    return status, write.event.reason if write.event else ""


def reason(status: Object, type_: str) -> str:
    return next((str(found["reason"]) for found in status["conditions"] if found["type"] == type_), "")


@pytest.mark.parametrize(
    ("state", "shown", "why", "event"),
    [
        (lock(), "Deployed", "Enforced", "Locked"),
        (lock(newest=PENDING), "Transitioning", "HelmAtWork", "Transitioning"),
        (lock(newest=GONE), "Transitioning", "HelmAtWork", "Transitioning"),
        (lock(newest=PENDING, deployed=None), "Transitioning", "HelmAtWork", "Transitioning"),
        (lock(newest=FAILED), "Failed", "GracePeriod", "Unlocked"),
        (lock(newest=FAILED, deployed=None), "Failed", "NotDeployed", "Unlocked"),
        (lock(newest=FAILED, age_s=99), "Failed", "Enforced", "Locked"),
        (lock(newest=None, deployed=None), "SecretNotFound", "ReleaseNotFound", "Unlocked"),
        (lock(newest=None, deployed=None, unreadable=("revision 1: bad",)), "Unknown", "RecordsUnreadable", "RecordsUnreadable"),
        (lock(release=None, newest=None, deployed=None), "SecretNotFound", "NamesNoRelease", "NamesNoRelease"),
        (lock(older="first"), "Deployed", "Conflict", "Conflict"),
        (lock(helm_release=helm_release(suspend=True)), "Deployed", "Paused", "Paused"),
        (lock(newest=Record(2, "superseded")), "Error", "NotDeployed", "Unlocked"),
    ],
)
def test_state_and_reason(state: Lock, shown: str, why: str, event: str) -> None:
    """Each state has its condition and its Event."""
    status, noted = told(state)
    assert (status["state"], reason(status, LOCKED), noted) == (shown, why, event)


def test_problems_are_told_once() -> None:
    """What is not kept is in the condition; the server's words may change without a new Event; healing is told."""
    key = Key("v1", "ConfigMap", "ns", "c")
    status, noted = told(lock(seen(None), bad_documents=("document 2: bad",)), Refusal(key, "rights", "cannot; request 1"))
    assert (reason(status, COMPLETE), noted) == ("BadDocument", "BadDocument")
    message = status["conditions"][1]["message"]
    assert "document 2: bad" in message
    assert "(the API server says: cannot, request 1)" in message
    before = {**helm_release(), "status": status}
    again, noted = told(
        lock(seen(None), helm_release=before, bad_documents=("document 2: bad",)), Refusal(key, "rights", "cannot; request 2")
    )
    assert (again["conditions"][1]["message"], noted) == (message, "")
    _, noted = told(lock(helm_release=before))
    assert noted == "Healed"


def test_a_refused_claim_is_told() -> None:
    """Also when nothing is locked, and when a deleted HelmRelease cannot go; once, though the server's words change."""
    key = Key("helm.cattle.io/v1alpha1", "HelmRelease", "cattle-helm-system", "demo")
    status, noted = told(lock(newest=None, deployed=None), Refusal(key, "rights", "cannot"))
    assert (reason(status, LOCKED), reason(status, COMPLETE), noted) == ("ReleaseNotFound", "RightMissing", "RightMissing")
    assert "knative/lock-enforcement/rights.yaml" in status["conditions"][1]["message"]
    dying = helm_release()
    dying["metadata"]["deletionTimestamp"] = "now"
    dying["status"] = {"state": "Deployed", "version": 1}
    status, noted = told(lock(helm_release=dying), Refusal(key, "rights", "cannot; request 1"))
    assert (status["state"], reason(status, LOCKED), noted) == ("Deployed", "RightMissing", "RightMissing")
    again = lock(helm_release={**dying, "status": status})
    assert list(report_lock(again, (Refusal(key, "rights", "cannot; request 2"),), CONFIG).writes()) == []
    assert list(report_lock(again, (), CONFIG).writes()) == []


def test_last_drift_is_kept_and_has_no_value() -> None:
    """What was put right stays in the status; what was refused is not in it."""
    status, _ = told(lock(DRIFTED))
    assert status["lastDrift"] == {"object": "ConfigMap ns/c", "action": "Restored", "fields": ["data[a]"], "managers": []}
    later, _ = told(lock(helm_release={**helm_release(), "status": status}))
    assert later["lastDrift"] == status["lastDrift"]
    refused, _ = told(lock(DRIFTED), Refusal(DRIFTED.key, "quota", "no"))
    assert "lastDrift" not in refused


def test_ignore_rules() -> None:
    """Rules apply to the objects that they name; annotations to their own object; bad ones are told."""
    rules = [{"kind": "ConfigMap", "paths": ["/data/a"]}, {"kind": "Secret", "paths": ["/data/b", "bad"]}, {"paths": ["/x"]}]
    release = helm_release(ignore=rules)
    live = config_map(annotations={"tenantry.dev/lock-ignore": "/data/z, worse"})
    assert ignored(release, config_map(), live) == ["/data/a", "/x", "/data/z", "worse"]
    assert "spec.ignore[1]" in ignore_problems(release)[0]
    assert "worse" in annotation_problems(live)[0]


def test_sources_follow_what_is_locked() -> None:
    """Namespaced kinds in the locked namespaces, cluster-scoped kinds apart, references only; gone when nothing is locked."""
    cluster = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)
    both = list(plan_sources(SourcesSeen(frozenset({CONFIG_MAP, cluster}), frozenset({"b", "a"}))).writes())
    specs = {write.key.name: write.wanted["spec"] for write in both if isinstance(write, Apply)}
    first = specs["lock-enforcement-locked"]
    assert first["namespaceSelector"]["matchExpressions"][0]["values"] == ["a", "b"]
    records = {"matchExpressions": [{"key": "owner", "operator": "NotIn", "values": ["helm"]}]}  # they are watched anyway
    assert (first["mode"], first["resources"]) == ("Reference", [{"apiVersion": "v1", "kind": "ConfigMap", "selector": records}])
    assert specs["lock-enforcement-locked-cluster"]["resources"][0]["kind"] == "PriorityClass"
    flux = Kind("helm.toolkit.fluxcd.io/v2", "HelmRelease", "helmreleases")  # another group's, which nobody watches yet
    (only,) = plan_sources(SourcesSeen(frozenset({flux, HELM_RELEASE}), frozenset({"a"}))).writes()
    assert isinstance(only, Apply)
    assert [each["apiVersion"] for each in only.wanted["spec"]["resources"]] == ["helm.toolkit.fluxcd.io/v2"]

    live = object_of(API_SERVER_SOURCE, {"name": "x", "namespace": "y"})
    (gone,) = plan_sources(SourcesSeen(namespaced=live)).writes()
    assert isinstance(gone, Delete)
    assert list(plan_sources(SourcesSeen(served=False)).writes()) == []


def made_source(generation: int = 2, observed: int = 2, ready: str = "True", kinds: int = 1, namespaces: int = 0) -> Object:
    status = {"observedGeneration": observed, "conditions": [{"type": "Ready", "status": ready}]}
    given = {"namespaces": [f"n{number}" for number in range(namespaces)]} if namespaces else {}
    metadata = {"name": LOCKED_SOURCE, "namespace": SYSTEM_NAMESPACE, "uid": "u", "generation": generation}
    return {"metadata": metadata, "spec": {"resources": [{}] * kinds}, "status": {**status, **given}}


@pytest.mark.parametrize(
    ("source", "ready"),
    [
        (None, False),
        ({"metadata": {"generation": 1}, "spec": {}}, False),
        (made_source(), True),
        (made_source(observed=1), False),
        (made_source(ready="Unknown"), False),
        ({**made_source(), "status": {"observedGeneration": 2}}, False),
    ],
)
def test_a_source_is_ready_as_it_is_declared_now(source: Object | None, ready: bool) -> None:
    """Only what Knative says of the newest generation counts."""
    assert is_ready(source) is ready


@pytest.mark.parametrize(
    ("kinds", "namespaces", "seconds"), [(3, 0, 0.0), (1, 1, 1.0), (2, 5, 1.0), (1, 48, 8.6), (4, 10, 7.0), (4, 100, 30.0)]
)
def test_an_adapter_begins_its_watches_one_after_the_other(kinds: int, namespaces: int, seconds: float) -> None:
    """Ten at once and then five a second, as far as one event may wait; who plays without an adapter watches at once."""
    assert beginning_s(made_source(kinds=kinds, namespaces=namespaces)) == pytest.approx(seconds)


def test_the_wait_for_an_adapter_fits_into_one_event() -> None:
    """Waiting and looking end before the engine's deadline."""
    assert LONGEST_S + 10 <= DEADLINE_S
