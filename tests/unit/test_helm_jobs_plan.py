"""The Helm controller's plans, without a cluster: the Job's contract, whose objects are touched, and deletions that end."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import owning
import pytest
from chart_objects import (
    ARCHIVE,
    MANAGED,
    MANAGER,
    OURS,
    SYSTEM,
    THEIRS,
    chart,
    condition,
    config,
    delete_of,
    event,
    further,
    install_of,
    named_alike,
    said,
    seen,
    settled,
    stored,
    writes,
)

from release_provisioning.jobs import manifest, plan, rights
from release_provisioning.jobs.plan import plan_chart
from release_provisioning.jobs.report import report_chart
from release_provisioning.jobs.seen import ObservedHelmChart
from release_provisioning.jobs.unit import Jobs
from tenantry.api import Api
from tenantry.engine.reader import Reader
from tenantry.model.kinds import HELM_CHART, JOB, Key, Kind, Object
from tenantry.model.names import CHART_LABEL
from tenantry.model.plan import Refusal

ALL = [
    "create Secret chart-values-demo",
    "create ConfigMap chart-content-demo",
    "create ServiceAccount helm-demo",
    "create ClusterRoleBinding helm-cattle-helm-system-demo",
    "create Job helm-install-demo",
]


# -- the contract of the Job -------------------------------------------------------------------------------


def environment(job: Object) -> dict[str, str]:
    return {one["name"]: one["value"] for one in job["spec"]["template"]["spec"]["containers"][0]["env"]}


def test_job_keeps_the_contract_of_the_usual_image() -> None:
    """Arguments, environment and files are those that either job image expects."""
    of = chart(
        targetNamespace="there",
        createNamespace=True,
        takeOwnership=True,
        repo="https://charts.example",
        version="1.2.3",
        set={"a": 1, "b": "true", "c": "x,y", "d": "x\\,y", "e": None, "f": True},
        timeout="90s",
        values={"k": 1},
        valuesContent="a: 1",
        repoCA="PEM",
        authPassCredentials=True,
    )
    job = manifest.install_job(of, further(failurePolicy="abort", valuesContent="b: 2", forceConflicts=True), {}, config())
    container = job["spec"]["template"]["spec"]["containers"][0]

    assert container["args"] == [
        "install", "--namespace", "there", "--create-namespace", "--take-ownership", "--version", "1.2.3",
        "--set", "a=1", "--set", "b=true", "--set-string", "c=x\\,y", "--set-string", "d=x\\,y",
        "--set", "e=null", "--set", "f=true",
    ]  # fmt: skip
    found = environment(job)
    assert found.pop("CONFIG_HASH")
    assert found == {
        "NAME": "demo",
        "VERSION": "1.2.3",
        "REPO": "https://charts.example",
        "HELM_DRIVER": "secret",
        "CHART_NAMESPACE": SYSTEM,
        "CHART": "demo/tiny",
        "HELM_VERSION": "",
        "TARGET_NAMESPACE": "there",
        "AUTH_PASS_CREDENTIALS": "true",
        "INSECURE_SKIP_TLS_VERIFY": "false",
        "PLAIN_HTTP": "false",
        "TIMEOUT": "90s",
        "FAILURE_POLICY": "abort",
        "SERVER_SIDE": "auto",
        "FORCE_CONFLICTS": "true",
    }
    assert list(manifest.values_files(of, further(valuesContent="b: 2", values={"z": 0}))) == [
        "values-01_HelmChart.yaml",
        "values-02_HelmChart-values.yaml",
        "values-10_HelmChartConfig.yaml",
        "values-12_HelmChartConfig-values.yaml",
        "ca-file.pem",
    ]


def test_job_mounts_what_the_chart_refers_to() -> None:
    """Credentials, authorities and values of other Secrets are mounted by reference."""
    of = chart(
        authSecret={"name": "auth"},
        dockerRegistrySecret={"name": "registry"},
        repoCAConfigMap={"name": "authorities"},
        valuesSecrets=[
            {"name": "more", "keys": ["a", "b"]},
            {"name": "still", "keys": ["c"], "ignoreUpdates": True},
            {"name": "no"},
        ],
        bootstrap=True,
    )
    pod = manifest.install_job(of, None, {}, config())["spec"]["template"]["spec"]
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}

    assert {"auth": "/auth", "ca-files": "/ca-files", "values": "/config", "content": "/chart"}.items() <= mounts.items()
    assert mounts["dockerconfig"] == "/home/klipper-helm/.docker"
    assert [source["secret"]["name"] for source in volumes["values"]["projected"]["sources"]] == [
        "chart-values-demo",
        "more",
        "still",
    ]
    assert pod["hostNetwork"] is True


@pytest.mark.parametrize(
    "change",
    [
        {"valuesContent": "a: 1"},
        {"chartContent": ARCHIVE},
        {"version": "2"},
        {"backOffLimit": 3},
        {"jobImage": "mine"},
        {"set": {"a": 1}},
    ],
)
def test_whatever_a_run_depends_on_is_in_its_digest(change: dict[str, Any]) -> None:
    """A changed chart, value, image or limit replaces the Job."""
    of = settled(chart())
    other = settled(chart(**change), install=of.install)

    assert "delete Job helm-install-demo" in writes(other)


def test_secrets_with_values_are_in_the_digest_unless_they_are_ignored() -> None:
    """A changed Secret runs Helm again, unless its updates are to be ignored."""

    def digest(value: str, **more: Any) -> str:
        of = chart(valuesSecrets=[{"name": "more", "keys": ["a"], **more}])
        return manifest.hash_of(manifest.install_job(of, None, {"more": {"data": {"a": value}}}, config()))

    assert digest("MQ==") != digest("Mg==")
    assert digest("MQ==", ignoreUpdates=True) == digest("Mg==", ignoreUpdates=True)


# -- what is written ---------------------------------------------------------------------------------------


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


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"chartContent": "no base64!"}, "InvalidChart"),
        ({"chartContent": base64.b64encode(b"a tar").decode()}, "InvalidChart"),
        ({"valuesContent": "a: [1"}, "InvalidValues"),
        ({"valuesContent": "- 1"}, "InvalidValues"),
        ({"helmVersion": "v2"}, "UnsupportedVersion"),
        ({"targetNamespace": "No_Name"}, "InvalidTargetNamespace"),
    ],
)
def test_bad_input_is_told_and_runs_nothing(spec: dict[str, Any], reason: str) -> None:
    """A mistake ends in a condition and a Warning, and makes nothing."""
    of = seen(chart(**spec))

    assert writes(of) == []
    assert said(of)["Failed"][:2] == ("True", reason)
    assert said(of)["JobCreated"][0] == "False"
    assert event(of) == reason


@pytest.mark.parametrize(("name", "reason"), [("x" * 51, "NameTooLong"), ("a.-", "InvalidName")])
def test_names_that_do_not_fit(name: str, reason: str) -> None:
    """A name must fit into those of the Job and the account."""
    assert said(seen(chart(name)))["Failed"][1] == reason


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("b: 1\na: ]", "not valid YAML in its line 2"),
        ("a: !!int ''", "not valid YAML"),
        ("- !!bool x", "not valid YAML"),
        ("a: !!timestamp x", "not valid YAML"),
        ("a: " + "[" * 500 + "]" * 500, "nested deeper than 120 levels"),
        ("a: " + "[" * 20_000, "nested deeper than 120 levels"),
        ("a: &a [*a]", "nested deeper than 120 levels"),
        ("just a text", "not a map"),
    ],
)
def test_values_that_cannot_be_used_are_told_with_the_fix(content: str, why: str) -> None:
    """Whatever stands there is told with the object, the field and the fix, and nothing of it."""
    expected = (
        f"spec.valuesContent of HelmChart {SYSTEM}/demo cannot be used ({why}): put one map of values in plain YAML there, "
        "such as `replicas: 2`"
    )

    assert said(seen(chart(valuesContent=content)))["Failed"] == ("True", "InvalidValues", expected)
    assert said(seen(further=further(valuesContent=content)))["Failed"][2] == expected.replace("HelmChart", "HelmChartConfig")
    assert writes(seen(chart(valuesContent=content))) == []


@pytest.mark.parametrize("content", ["a: =", "a: 2024-02-30", "a: 2026-99-99", "a: 12:30:99", "a:\t1", "a: 1\na: 2", "null"])
def test_values_that_helm_takes_run_helm(content: str) -> None:
    """What only looks like a date or an operator is a text to Helm."""
    assert writes(seen(chart(valuesContent=content))) == ALL


def test_good_values_pass() -> None:
    """Empty values, and those of a HelmChartConfig, are fine; its mistakes are told as its own."""
    assert writes(seen(chart(valuesContent="", chartContent=ARCHIVE), further=further(valuesContent="# nothing"))) == ALL
    assert writes(seen(chart(valuesContent="- 1\n" * 60_000))) == ALL, "Helm tells what is wrong with values of that size"
    assert "HelmChartConfig" in said(seen(further=further(valuesContent="- 1")))["Failed"][2]


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


# -- deletion ----------------------------------------------------------------------------------------------


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


# -- what is told ------------------------------------------------------------------------------------------


def test_status_follows_the_job() -> None:
    """Running, retrying with Helm's words, complete, failed."""
    of = chart()
    pods = tuple(
        {
            "metadata": {"name": f"p{number}"},
            "status": {
                "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "message": text, "finishedAt": str(number)}}}]
            },
        }
        for number, text in enumerate(["first words", "last words"])
    )

    assert said(seen(of))["Failed"] == ("False", "Running", "Helm runs")
    assert said(seen(of, install=install_of(of)))["Failed"] == ("False", "Running", "Helm runs")
    assert said(seen(of, install=install_of(of, active=1)))["Failed"] == ("False", "Running", "Helm runs")
    retrying = seen(of, install=install_of(of, failed=1), pods=pods)
    assert said(retrying)["Failed"] == ("False", "Retrying", "Helm failed and is tried again: last words")
    assert event(retrying) == "JobRetrying"
    failed = seen(of, install=install_of(of, conditions=[condition("Failed", message="limit")]), pods=pods)
    assert said(failed)["Failed"] == ("True", "JobFailed", "last words")
    assert said(seen(of, install=failed.install))["Failed"][2] == "limit"
    complete = seen(of, install=install_of(of, conditions=[condition("Complete")]))
    assert said(complete)["Failed"][:2] == ("False", "Complete")
    assert said(complete)["Installed"][0] == "True"
    assert event(complete) == "JobComplete"


def test_old_job_says_nothing_about_new_values() -> None:
    """While a Job is replaced its result is not that of the values that are asked for now."""
    failed = install_of(chart(), conditions=[condition("Failed")])

    assert said(seen(chart(valuesContent="a: 1"), install=failed))["Failed"][1] == "Running"


def test_healing_is_told_once() -> None:
    """A problem that is gone is told when it goes, and nothing is told again."""
    bad = chart(status={"jobName": "helm-install-demo", "conditions": [condition("Failed", reason="InvalidValues", message="m")]})
    told = chart(status={"conditions": [condition("Failed", "False", reason="Running", message="Helm runs")]})

    assert event(seen(bad)) == "Healed"
    assert event(seen(told)) == ""
    leaving = chart(leaving=True, status={"jobName": "helm-install-demo"})
    assert said(seen(leaving, delete=delete_of(leaving, active=1)))["JobCreated"][2].startswith("Helm uninstalls")


def test_refusals_are_told_with_their_fix() -> None:
    """What the API server refused is told with the field or right to change, in its first words."""
    job = Key("batch/v1", "Job", SYSTEM, "helm-install-demo")
    role = Key("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "helm-x")
    quota, rights = Refusal(job, "quota", "exceeded 1"), Refusal(role, "rights", "no")

    assert said(seen(), (quota,))["Failed"][1] == "QuotaExceeded"
    assert "`bind`" in said(seen(), (rights,))["Failed"][2]
    status = {"conditions": [condition("Failed", reason="QuotaExceeded", message=said(seen(), (quota,))["Failed"][2])]}
    again = Refusal(job, "quota", "exceeded 2")
    assert "exceeded 1" in said(seen(chart(status=status)), (again,))["Failed"][2]
    assert event(seen(chart(status=status)), (again,)) == ""
    assert "unmanaged" in said(seen(chart(leaving=True)), (quota,))["Failed"][2]


# -- the wiring --------------------------------------------------------------------------------------------


class Shelf(Reader):
    """Reads from a few objects, counts how often each is read, and how many at a time."""

    def __init__(self, *objects: Object) -> None:
        super().__init__(cast(Api, None))
        self.objects = {(found["kind"], found["metadata"]["name"]): found for found in objects}
        self.reads: Counter[str] = Counter()
        self.active = self.most = 0

    async def _fetch(self, kind: Kind, name: str, namespace: str) -> Object | None:
        self.reads[f"{kind.kind} {name}"] += 1
        self.active += 1
        self.most = max(self.most, self.active)
        await asyncio.sleep(0)
        self.active -= 1
        return self.objects.get((kind.kind, name))

    async def list(self, kind: Kind, namespace: str = "", **narrowed: Any) -> list[Object]:
        del namespace, narrowed
        return [found for (of, _), found in self.objects.items() if of == kind.kind]


@pytest.mark.parametrize("changed", [False, True])
async def test_what_takes_long_is_worked_out_once_for_plan_and_report(monkeypatch: pytest.MonkeyPatch, *, changed: bool) -> None:
    """Digest, archive and values may be megabytes: worked out once by a look; the last two count as good once Helm was asked."""
    calls: Counter[str] = Counter()

    def counted(module: Any, name: str) -> None:
        work = getattr(module, name)

        def call(*given: Any) -> Any:
            calls[name] += 1
            return work(*given)

        monkeypatch.setattr(module, name, call)

    of = chart(chartContent=ARCHIVE, valuesContent="a: 1")
    jobs, shelf = Jobs(config(quietSeconds=0)), Shelf(of, install_of(chart() if changed else of))
    for module, name in ((manifest, "install_job"), (plan, "_bad_archive"), (plan, "load_yaml")):
        counted(module, name)
    observed = await owning.observe(jobs, f"chart/{SYSTEM}/demo", shelf)
    owning.handler(jobs, "chart/x/y").plan(observed)
    owning.handler(jobs, "chart/x/y").report(observed, ())

    assert calls == ({"install_job": 1, "_bad_archive": 1, "load_yaml": 1} if changed else {"install_job": 1})


@pytest.mark.parametrize(
    ("owner", "ours"),
    [
        (f"chart/{SYSTEM}/demo", True),
        (f"chart/{SYSTEM}/a.b", True),
        ("chart/other/demo", False),
        (f"chart/{SYSTEM}/No", False),
        ("release/demo", False),
    ],
)
def test_owners_are_charts_of_the_system_namespace(owner: str, ours: bool) -> None:
    """A request may name only HelmCharts of the system namespace."""
    assert owning.accepts(Jobs(config()), owner) is ours


async def test_secrets_with_values_are_read_together() -> None:
    """A HelmChart with many of them waits for one read, not for each."""
    names = [f"more-{number}" for number in range(9)]
    shelf = Shelf(
        chart(valuesSecrets=[{"name": name, "keys": ["a"]} for name in names[1:]]),
        stored({"kind": "Secret", "metadata": {"name": names[1]}}),
    )
    shelf.objects["HelmChartConfig", "demo"] = further(valuesSecrets=[{"name": name, "keys": ["a"]} for name in names[:2]])
    observed = await owning.observe(Jobs(config()), f"chart/{SYSTEM}/demo", shelf)

    assert list(observed.secrets) == names
    assert [name for name, found in observed.secrets.items() if found is not None] == [names[1]]
    assert shelf.most == len(names)
    assert set(shelf.reads.values()) == {1}


async def test_crd_is_read_once_per_sweep() -> None:
    """What a sweep learns of the CRD holds for the runs after it, and for those that it meets on their way."""
    schema = {"openAPIV3Schema": {"properties": {"status": {"properties": {"jobName": {}}}}}}
    crd = {
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "helmcharts.helm.cattle.io"},
        "spec": {"versions": [{"name": "v1", "schema": schema}]},
    }
    jobs, owner = Jobs(config()), f"chart/{SYSTEM}/demo"
    before, during, after = (Shelf(chart(), crd) for _ in range(3))
    assert (await owning.observe(jobs, owner, before)).plain is True
    met, owners = await asyncio.gather(owning.observe(jobs, owner, before), owning.sweep(jobs, during))
    seen_after = await asyncio.gather(*(owning.observe(jobs, owner, after) for _ in range(3)))

    assert owners == [owner]
    assert [found.plain for found in (met, *seen_after)] == [True] * 4
    reads = [shelf.reads["CustomResourceDefinition helmcharts.helm.cattle.io"] for shelf in (before, during, after)]
    assert reads == [1, 1, 0]
    del before.objects["HelmChart", "demo"]
    assert await owning.sweep(jobs, before) == []
