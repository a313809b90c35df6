"""What release-provisioning tells of one release name, without a cluster."""

from __future__ import annotations

import pytest
from release_objects import FINALIZER, HOME, NAME, SYSTEM, VERSION, asked, config, contender, made, seen, told, verbs

from release_provisioning.projects.dashboards import Dashboards
from release_provisioning.projects.report import FIXES, report_release
from release_provisioning.projects.seen import ObservedRelease
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import Key, Object
from tenantry.model.plan import Apply, Cause, Refusal


@pytest.mark.parametrize("cause", ["quota", "admission", "rights", "invalid"])
def test_refusals_are_told_first(cause: Cause) -> None:
    """Whatever else holds, a refusal is told, on a ProjectHelmChart that is deleted too, and its words stay while it lasts."""
    refusal = Refusal(Key("helm.cattle.io/v1", "HelmChart", SYSTEM, NAME), cause, "no: 1 of 1")
    status = told(report_release(seen(), (refusal,), config()))
    leaving = asked(deletionTimestamp="x", finalizers=[FINALIZER])
    again = {**asked(), "status": status}
    later = Refusal(refusal.key, cause, "no: 2 of 1")

    assert (
        f"HelmChart cattle-helm-system/demo-dummy was refused: to fix it, {FIXES[cause]} (the API server says: no: 1 of 1)"
        in status["statusMessage"]
    )
    assert "remove the finalizer" in told(report_release(seen(contender(leaving)), (refusal,), config()))["statusMessage"]
    assert told(report_release(seen(contender(again)), (later,), config()))["statusMessage"] == status["statusMessage"]


@pytest.mark.parametrize(
    ("chart", "lock", "ready", "words"),
    [
        ({}, {}, "WaitingForHelm", "waiting for Helm"),
        ({"jobName": "j"}, {"state": "Transitioning"}, "WaitingForHelm", "waiting for Job j to deploy demo-dummy; its lock says"),
        ({"conditions": [{"type": "Failed", "status": "True", "message": "boom"}]}, {}, "HelmFailed", "boom"),
        (
            {"conditions": [{"type": "Failed", "status": "False", "reason": "Retrying", "message": "again"}]},
            {},
            "WaitingForHelm",
            "again",
        ),
        ({"conditions": [{"type": "Failed", "status": "False", "reason": "Complete"}]}, {}, "Deployed", "is deployed"),
        ({"observedGeneration": 2}, {"state": "Deployed"}, "WaitingForHelm", "about to run"),
        ({"observedGeneration": 3}, {"state": "Deployed"}, "Deployed", "its lock says Deployed"),
        ({}, {"state": "Failed", "description": "it broke"}, "HelmFailed", "it broke"),
    ],
)
def test_what_helm_and_the_lock_say(chart: Object, lock: Object, ready: str, words: str) -> None:
    """Conditions carry the controller's and the lock's words, and only those of what is asked for now."""
    found = seen(helm_chart=made("HelmChart", status=chart), helm_release=made("HelmRelease", status=lock))
    condition = find_condition({"status": told(report_release(found, (), config()))}, "Ready") or {}

    assert condition["reason"] == ready
    assert words in condition["message"]
    assert condition["observedGeneration"] == 2


def test_who_was_never_served_is_told_nothing() -> None:
    """No status on what is not ours; the end of being ours is told once for a generation."""
    never = contender(chart=False)
    once = asked(finalizers=[FINALIZER])
    status = told(report_release(seen(contender(once, chart=False)), (), config()))

    assert verbs(report_release(seen(never), (), config())) == []
    assert status["status"] == "UnableToCreateHelmRelease"
    again = {**once, "status": status}
    assert verbs(report_release(seen(contender(again, chart=False)), (), config())) == []


CHART, LOCK, HOUSE = made("HelmChart"), made("HelmRelease"), {"metadata": {"name": NAME, "labels": {}}}
OURS: Object = {"metadata": {"name": NAME, "annotations": {"tenantry.dev/adopt": "true"}}}
DEEP: Object = {"a": 1}
for _ in range(110):
    DEEP = {"a": DEEP}


WHERE = (f"release {NAME} in namespace {NAME}: ",)


@pytest.mark.parametrize(
    ("release", "status", "facts"),
    [
        (
            seen(contender(asked(labels={"helm.cattle.io/helm-project-operator-cleanup": "true"}))),
            "AwaitingOperatorRedeployment",
            ("helm.cattle.io/helm-project-operator-cleanup=true", VERSION, HOME, "deployed again", "removes the label"),
        ),
        (seen(namespace=HOUSE), "UnableToCreateHelmRelease", (*WHERE, "was not made for this release")),
        (
            seen(namespace={"metadata": {**OURS["metadata"], "deletionTimestamp": "x"}}),
            "UnableToCreateHelmRelease",
            (*WHERE, f"namespace {NAME} is being deleted", "made again"),
        ),
        (
            ObservedRelease(NAME, (contender(),)),
            "NoTargetProjectNamespaces",
            ("no namespace to deploy this ProjectHelmChart for", "add one"),
        ),
        (
            seen(contender({**asked(), "spec": {"helmApiVersion": VERSION, "values": DEEP}})),
            "UnableToParseValues",
            ("spec.values cannot become the values of a release", "make it flatter"),
        ),
        (
            seen(helm_chart=CHART, helm_release=LOCK),
            "WaitingForDashboardValues",
            ("waiting", "the release to provide status.dashboardValues", f"HelmChart and HelmRelease {NAME} are made"),
        ),
        (
            seen(helm_chart=CHART, helm_release=LOCK, dashboards=Dashboards({"k": 1})),
            "Deployed",
            ("this ProjectHelmChart is deployed", f"HelmChart and HelmRelease {NAME} are made"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_message_says_what_upstreams_says(release: ObservedRelease, status: str, facts: tuple[str, ...]) -> None:
    """Which release it is about and where, what is lacking, what is waited for and what follows: as upstream."""
    given = told(report_release(release, (), config()))

    assert given["status"] == status
    assert [fact for fact in facts if fact not in given["statusMessage"]] == []


def test_who_cannot_have_a_name_is_told_of_which_release() -> None:
    """The release, its namespace and who asked for it too are in one message; of another project nothing is told (a-36)."""
    other = contender(asked(namespace="cattle-project-p-b"), project="p-b")
    writes = [write for write in report_release(seen(contender(), other), (), config()).writes() if isinstance(write, Apply)]
    (told_other,) = [write.wanted for write in writes if write.wanted["metadata"]["namespace"] == "cattle-project-p-b"]
    message = told_other["status"]["statusMessage"]

    assert message.startswith(WHERE[0])
    assert "belongs to another project" in message
    assert HOME not in message
    assert "cattle-project-p-b/demo cannot have it" in message
