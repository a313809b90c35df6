"""The Helm controller writes what a HelmChart of ours lacks, and touches nobody else's."""

from __future__ import annotations

from typing import Any

import pytest
from chart_objects import (
    ALL,
    MANAGED,
    MANAGER,
    OURS,
    SYSTEM,
    THEIRS,
    chart,
    config,
    delete_of,
    install_of,
    named_alike,
    said,
    seen,
    settled,
    stored,
    writes,
)

from release_provisioning.jobs import manifest, rights
from release_provisioning.jobs.plan import plan_chart
from release_provisioning.jobs.report import report_chart
from tenantry.model.kinds import JOB


def test_first_look_makes_everything_and_the_second_nothing() -> None:
    """From nothing to a Job in one run; a settled HelmChart wants nothing."""
    assert writes(seen()) == ALL
    assert writes(settled(chart())) == []


def test_nobodys_chart_is_claimed_on_the_state_that_was_seen() -> None:
    """An un-annotated HelmChart gets our name and finalizer at once."""
    of = chart()
    del of["metadata"]["annotations"], of["metadata"]["finalizers"]

    assert writes(seen(of)) == ["update HelmChart demo", *ALL]
    assert report_chart(seen(of), (), config()).changes(MANAGER) == []


def test_upstreams_finalizer_goes_once_ours_is_there() -> None:
    """A HelmChart of the controller before us is held by us, then let go by it."""
    of = chart()
    of["metadata"]["finalizers"] = [THEIRS]
    assert writes(settled(of)) == ["update HelmChart demo"]
    of["metadata"]["finalizers"] = [THEIRS, OURS]
    assert writes(settled(of)) == ["update HelmChart demo"]


@pytest.mark.parametrize(
    ("annotations", "namespace", "enabled", "spec", "expected"),
    [
        ({"helmcharts.cattle.io/managed-by": "helm-controller"}, SYSTEM, True, {}, ["update HelmChart demo"]),
        (MANAGED | {"helmcharts.helm.cattle.io/unmanaged": ""}, SYSTEM, True, {}, ["update HelmChart demo"]),
        (MANAGED, SYSTEM, False, {}, ["update HelmChart demo"]),
        (MANAGED, "elsewhere", True, {}, []),
    ],
)
def test_what_is_not_ours_only_loses_our_finalizer(
    annotations: dict[str, str], namespace: str, enabled: bool, spec: dict[str, Any], expected: list[str]
) -> None:
    """Another controller's, an unmanaged or a foreign HelmChart gets no Job and no status."""
    of = chart(**spec)
    of["metadata"] |= {"annotations": annotations, "namespace": namespace}

    assert writes(seen(of), enabled=enabled) == expected
    assert report_chart(seen(of), (), config(enabled=enabled)).changes(MANAGER) == []
    of["metadata"]["finalizers"] = []
    assert writes(seen(of), enabled=enabled) == []


def test_chart_that_asks_for_nothing_is_nobodys() -> None:
    """Neither chart nor chartContent: nothing to do."""
    of = chart()
    of["spec"] = None
    of["metadata"]["finalizers"] = []

    assert writes(seen(of)) == []


def test_changed_values_wait_for_the_end_of_the_run_before() -> None:
    """The old Job is deleted with its pods, waited for, and only then followed by the new one."""
    old, of = chart(), chart(valuesContent="a: 1")
    before = settled(of, install=install_of(old))
    (delete,) = [write for write in plan_chart(before, config()).writes() if write.kind is JOB]
    leaving = {**install_of(old), "metadata": {**install_of(old)["metadata"], "deletionTimestamp": "now"}}

    assert delete.propagation == "Foreground"  # type: ignore[union-attr]
    assert writes(settled(of, install=leaving)) == []
    assert writes(settled(of, install=None)) == ["create Job helm-install-demo"]


def test_job_of_a_chart_before_this_one_is_replaced() -> None:
    """A HelmChart that was deleted and made again does not take the Job of the first for its own."""
    of = chart()
    older = install_of({**of, "metadata": {**of["metadata"], "uid": "u0"}})

    assert writes(settled(of, install=older)) == ["delete Job helm-install-demo"]
    assert writes(settled(of, install=None, delete=delete_of(of))) == ["delete Job helm-delete-demo"]
    gone = delete_of(of)
    gone["metadata"]["deletionTimestamp"] = "now"
    assert writes(settled(of, install=None, delete=gone)) == []


@pytest.mark.parametrize("policy", [None, "TerminatingOrFailed"])
def test_a_job_of_before_is_not_run_again_for_its_policy(policy: str | None) -> None:
    """The next pod of a Job waits for the end of the last; a Job made without that stays, and nothing runs again."""
    of = chart()
    job = install_of(of)
    before = {**job, "spec": {**job["spec"], "podReplacementPolicy": policy}}

    assert {found["spec"]["podReplacementPolicy"] for found in (job, delete_of(of))} == {"Failed"}
    assert writes(settled(of, install=before)) == []


def test_role_is_that_of_the_configured_chart() -> None:
    """The binding follows the configuration by deletion and creation; a HelmChart cannot name a role of its own."""
    of = chart()
    of["metadata"]["annotations"] = MANAGED | {"tenantry.dev/helm-api-version": "narrow.cattle.io/v1alpha1"}

    assert rights.job_role(of, config()) == "narrow"
    assert rights.job_role(chart(), config(administratorsClusterRole="other")) == "other"
    assert "delete ClusterRoleBinding helm-cattle-helm-system-demo" in writes(settled(of))


def test_secret_of_another_type_is_made_anew() -> None:
    """The type of a Secret cannot be changed: the one of another controller is replaced."""
    of = chart()
    secret = stored(manifest.secret(of, None)) | {"type": "helmcharts.helm.cattle.io/values"}

    assert writes(settled(of, secret=secret)) == ["delete Secret chart-values-demo"]


@pytest.mark.parametrize("part", ["secret", "content", "account", "install", "delete", "binding"])
def test_what_is_somebody_elses_is_left_alone(part: str) -> None:
    """An object with a name of ours that is not of this HelmChart is neither changed nor deleted."""
    of = chart()
    theirs = named_alike(of)[part]

    assert writes(seen(of, **{part: theirs})) == []
    assert said(seen(of, **{part: theirs}))["Failed"][1] == "NameTaken"
    leaving = seen(chart(leaving=True, status={"jobName": "helm-install-demo"}), **{part: theirs})
    assert not [write for write in writes(leaving) if write.startswith("delete")]


def test_objects_of_the_controller_before_us_are_taken_over() -> None:
    """What wrangler's records or owner references name as of this HelmChart is."""
    of = chart()
    record = {
        "objectset.rio.cattle.io/owner-name": "demo",
        "objectset.rio.cattle.io/owner-gvk": "helm.cattle.io/v1, Kind=HelmChart",
    }
    account = stored({**manifest.account(of), "metadata": {"name": "helm-demo", "namespace": SYSTEM, "annotations": record}})
    binding = stored(manifest.binding(of, "cluster-admin"))
    del binding["metadata"]["labels"]
    owned = stored(manifest.content(of))
    del owned["metadata"]["labels"]

    assert said(seen(of, account=account, binding=binding, content=owned))["Failed"][1] == "Running"
