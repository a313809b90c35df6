"""A deletion uninstalls, takes away what is ours, and ends whatever comes in its way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from chart_objects import (
    MANAGER,
    OURS,
    SYSTEM,
    THEIRS,
    chart,
    condition,
    config,
    delete_of,
    event,
    install_of,
    named_alike,
    said,
    seen,
    settled,
    stored,
    writes,
)

from release_provisioning.jobs import manifest
from release_provisioning.jobs.plan import plan_chart
from release_provisioning.jobs.report import report_chart
from release_provisioning.jobs.seen import ObservedHelmChart
from tenantry.model.kinds import HELM_CHART, Object
from tenantry.model.names import CHART_LABEL


def test_deletion_ends_the_run_uninstalls_and_lets_go() -> None:
    """First the Job that installs ends, then Helm uninstalls, then what is ours goes, the Jobs after the finalizer."""
    of = chart(leaving=True, status={"jobName": "helm-install-demo"})
    target = {"kind": "Namespace"}
    rest = {"secret": None, "content": None, "target": target}
    leaving = install_of(of, succeeded=1)
    leaving["metadata"] = {**leaving["metadata"], "deletionTimestamp": "now"}

    assert writes(settled(of, **rest | {"install": install_of(of, succeeded=1)})) == ["delete Job helm-install-demo"]
    assert writes(settled(of, **rest | {"install": leaving})) == []
    assert writes(settled(of, **rest | {"install": None})) == ["create Job helm-delete-demo"]
    assert writes(settled(of, **rest | {"install": None, "delete": delete_of(of)})) == []
    done = delete_of(of, conditions=[condition("Complete")])
    assert writes(settled(of, **rest | {"install": None, "delete": done})) == [
        "delete ServiceAccount helm-demo",
        "delete ClusterRoleBinding helm-cattle-helm-system-demo",
        "update HelmChart demo",
        "delete Job helm-delete-demo",
    ]


def last_word(of: ObservedHelmChart) -> tuple[str, str]:
    """The Event that goes with giving up the finalizer."""
    (last,) = [write for write in plan_chart(of, config()).writes() if write.kind is HELM_CHART]
    assert last.event is not None
    return last.event.reason, last.event.note


def test_deletion_never_waits_for_ever() -> None:
    """A failed uninstallation, a namespace that is gone or going, and a chart that was never begun all end, and are told."""
    of = chart(leaving=True, status={"jobName": "helm-install-demo"})
    failed = delete_of(of, conditions=[condition("Failed", reason="DeadlineExceeded", message="too long")])
    pod = {
        "metadata": {"name": "p"},
        "status": {"containerStatuses": [{"state": {"terminated": {"exitCode": 1, "message": "no way"}}}]},
    }
    begun = chart(leaving=True, status={"jobName": "helm-install-demo", "conditions": [condition("Installed", "False")]})
    pending = {"metadata": {"name": "p"}, "status": {"phase": "Pending"}}

    reason, note = last_word(seen(of, delete=failed))
    assert reason == "UninstallFailed"
    assert note.startswith("release cattle-helm-system/demo could not be uninstalled and stays behind: too long.")
    assert "`helm uninstall demo --namespace cattle-helm-system`" in note
    assert "900 s; Helm said: no way" in last_word(seen(of, delete=failed, pods=(pod,)))[1]
    assert last_word(seen(of, ending=True, target={}))[0] == "NotUninstalled"
    assert last_word(seen(of))[1].startswith("namespace cattle-helm-system is gone")
    assert last_word(seen(chart(leaving=True), target={}))[1] == "nothing was installed for this HelmChart"
    never_ran = seen(begun, install=install_of(begun), pods=(pending,), target={})
    assert last_word(never_ran)[1] == "nothing was installed for this HelmChart"


@pytest.mark.parametrize("part", ["secret", "content", "account", "install", "delete", "binding"])
def test_what_is_somebody_elses_holds_up_a_deletion_for_a_while(part: str) -> None:
    """It is told with the way out; after the time of an uninstallation the HelmChart goes, and only what is its own with it."""
    of = chart(leaving=True, status={"jobName": "helm-install-demo"})
    theirs = named_alike(of)[part]
    name = theirs["metadata"]["name"]
    early = settled(of, **{"target": {}, "install": None, part: theirs, "waited_s": 900.0})
    late = replace(early, waited_s=901.0)

    assert writes(early) == ([] if part == "binding" else ["delete ClusterRoleBinding helm-cattle-helm-system-demo"])
    status, reason, message = said(early)["Failed"]
    assert (status, reason) == ("True", "NameTaken")
    assert name in message
    assert "helmcharts.helm.cattle.io/unmanaged" in message
    assert event(early) == "NameTaken"
    reason, note = last_word(late)
    assert reason == "NotUninstalled"
    assert f"{name} is not of this HelmChart" in note
    assert "`helm uninstall demo --namespace cattle-helm-system`" in note
    assert not [write for write in writes(late) if write.startswith("delete") and write.endswith(name)]
    assert "update HelmChart demo" in writes(late)
    assert report_chart(late, (), config()).changes(MANAGER) == []


def test_a_subject_that_was_added_to_the_binding_is_told_how_to_take_off() -> None:
    """The binding of Helm's account stays with whoever was added to it, before and after the HelmChart goes."""
    of = chart(leaving=True, status={"jobName": "helm-install-demo"})
    shared = stored(manifest.binding(of, "cluster-admin"))
    shared["subjects"] = [*shared["subjects"], {"kind": "User", "name": "alice"}]
    early = settled(of, target={}, install=None, binding=shared)

    assert writes(early) == []
    assert "take the other subjects off it" in said(early)["Failed"][2]
    assert "delete ClusterRoleBinding helm-cattle-helm-system-demo" not in writes(replace(early, waited_s=901.0))


def test_a_run_that_does_not_end_holds_up_a_deletion_for_a_while() -> None:
    """A Job that stays on its way out, or neither succeeds nor fails, is given up; one that still has time is not."""
    of = chart(leaving=True, status={"jobName": "helm-install-demo"})
    ending = install_of(of, succeeded=1)
    ending["metadata"] = {**ending["metadata"], "deletionTimestamp": "now"}
    held = settled(of, target={}, install=ending)
    suspended = settled(of, target={}, install=None, delete=delete_of(of), waited_s=1800.0)

    assert writes(replace(held, waited_s=900.0)) == []
    assert said(replace(held, waited_s=300.0))["Failed"][:2] == ("False", "Running")
    assert said(replace(held, waited_s=301.0))["Failed"][:2] == ("True", "JobNotEnding")
    assert "Job cattle-helm-system/helm-install-demo does not end" in last_word(replace(held, waited_s=901.0))[1]
    assert writes(suspended) == []
    assert said(suspended)["Failed"][:2] == ("False", "Running")
    assert last_word(replace(suspended, waited_s=1801.0))[0] == "NotUninstalled"


def test_an_uninstallation_that_runs_is_not_held_up() -> None:
    """What comes in the way once Helm uninstalls changes nothing: the Job says how it ends."""
    of = chart(leaving=True, status={"jobName": "helm-install-demo"})
    running = settled(of, target={}, install=None, delete=delete_of(of), binding=named_alike(of)["binding"], waited_s=901.0)

    assert writes(running) == []
    assert said(running)["Failed"][:2] == ("False", "Running")


@pytest.mark.parametrize(
    ("status", "pod"),
    [
        ({"succeeded": 1}, {}),
        ({"ready": 1}, {}),
        ({"conditions": [condition("Failed")]}, {}),
        ({}, {"phase": "Running"}),
        ({}, {"phase": "Pending", "containerStatuses": [{"state": {"running": {}}}]}),
    ],
)
def test_what_may_have_run_is_uninstalled(status: Object, pod: Object) -> None:
    """Only what certainly never began goes without an uninstallation."""
    of = chart(leaving=True, status={"jobName": "helm-install-demo", "conditions": [condition("Installed", "False")]})
    pods = ({"metadata": {"name": "p"}, "status": pod},) if pod else ()

    assert writes(seen(of, install=install_of(of, **status), pods=pods, target={})) == ["delete Job helm-install-demo"]
    vanished = writes(seen(of, target={}))
    assert vanished[-1] == "create Job helm-delete-demo"


def test_without_our_finalizer_a_deletion_is_not_ours() -> None:
    """A HelmChart on its way out that never had our finalizer waits for somebody else."""
    of = chart(leaving=True)
    of["metadata"]["finalizers"] = ["other"]

    assert writes(seen(of)) == []
    assert report_chart(seen(of), (), config()).changes(MANAGER) == []


def test_both_finalizers_go_together() -> None:
    """Upstream's finalizer does not outlive ours, and those of others stay."""
    of = chart(leaving=True)
    of["metadata"]["finalizers"] = [THEIRS, "other", OURS]
    (last,) = plan_chart(seen(of), config()).writes()

    assert set(last.finalizers) == {THEIRS, OURS}  # type: ignore[union-attr]


def test_what_a_chart_left_behind_is_taken_away() -> None:
    """An account that is still bound for a HelmChart that is gone goes, if it bears our label."""
    of = chart()
    binding, account = stored(manifest.binding(of, "cluster-admin")), stored(manifest.account(of))
    gone = ObservedHelmChart(SYSTEM, "demo", None, binding=binding, account=account)
    foreign = {**binding, "metadata": {"name": binding["metadata"]["name"]}}

    assert writes(gone) == ["delete ServiceAccount helm-demo", "delete ClusterRoleBinding helm-cattle-helm-system-demo"]
    assert writes(ObservedHelmChart(SYSTEM, "demo", None, binding=foreign, account=account)) == []
    assert writes(ObservedHelmChart(SYSTEM, "demo", None)) == []
    assert report_chart(gone, (), config()).changes(MANAGER) == []


def test_an_account_that_nobody_binds_is_left_behind_too_if_we_made_it() -> None:
    """What a sweep finds without a binding goes only by our field ownership: its name and its label prove nothing."""
    account = stored(manifest.account(chart()))
    entry = {"manager": MANAGER, "fieldsV1": {"f:metadata": {"f:labels": {f"f:{CHART_LABEL}": {}}}}}
    ours = {**account, "metadata": {**account["metadata"], "managedFields": [entry]}}

    assert writes(ObservedHelmChart(SYSTEM, "demo", None, account=ours)) == ["delete ServiceAccount helm-demo"]
    assert writes(ObservedHelmChart(SYSTEM, "demo", None, account=account)) == []
