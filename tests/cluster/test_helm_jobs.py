"""Helm for HelmCharts, with a real Helm: install, upgrade, uninstall, and what goes wrong (spec helm-project 1.3 to 1.5, 4.7)."""

from __future__ import annotations

import base64
import contextlib
from contextlib import aclosing

import psutil
import pytest
import yaml
from aiohttp import web
from helm_people import FUNCTION, GREETING, SYSTEM, HelmPeople, chart_archive, is_alive
from locking import end_hook, pod_hook
from people import token
from times import LEFT_TO_MAKE_WHOLE

from tenantry.local.knative import Knative
from tenantry.local.processes import free_port
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    JOB,
    POD,
    ROLE,
    SECRET,
    SERVICE_ACCOUNT,
    annotations_of,
    is_terminating,
)
from tenantry.testing.settling import settle


@pytest.fixture
def helm(helm_people: HelmPeople) -> HelmPeople:
    """An administrator who works with HelmCharts."""
    return helm_people


async def test_chart_is_installed_upgraded_and_uninstalled(helm: HelmPeople, helm_jobs: Knative) -> None:
    """A HelmChart becomes a release; changed values and a HelmChartConfig upgrade it; its deletion uninstalls it."""
    name = f"story-{token()}"
    await helm.ask(name, valuesContent="greeting: hello")

    await helm.greets(name, "hello")
    await helm.says(name, "Complete")
    chart = await helm.people.get(HELM_CHART, name, SYSTEM)
    assert annotations_of(chart)["helmcharts.cattle.io/managed-by"] == "helm-project-operator"
    assert chart["metadata"]["finalizers"] == ["tenantry.dev/helm-chart"]
    assert chart["status"]["jobName"] == f"helm-install-{name}"
    assert find_condition(chart, "JobCreated")["status"] == "True"  # type: ignore[index]
    first = await helm.job(name)
    digest = annotations_of(first["spec"]["template"])["helmcharts.helm.cattle.io/configHash"]
    assert digest.startswith("SHA256=")
    await helm.gone(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}", "")

    await helm.change(name, valuesContent="greeting: servus")
    await helm.greets(name, "servus")
    await helm.says(name, "Complete")
    assert (await helm.job(name))["metadata"]["uid"] != first["metadata"]["uid"]
    assert await helm.releases(name) == [(1, "superseded"), (2, "deployed")]

    await helm.configure(name, valuesContent="greeting: from the administrator")
    await helm.greets(name, "from the administrator")
    await helm.says(name, "Complete")

    before = await helm.job(name)
    await settle(helm_jobs, helm.admin)
    await helm_jobs.sweep(FUNCTION)
    assert (await helm.job(name))["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]

    await helm.people.delete(HELM_CHART, name, SYSTEM)
    await helm.gone(HELM_CHART, name)
    assert await helm.admin.get(CONFIG_MAP, name, name) is None
    assert await helm.admin.get(ROLE, name, name) is None
    assert await helm.releases(name) == []
    assert await helm.admin.get(SERVICE_ACCOUNT, f"helm-{name}", SYSTEM) is None
    assert await helm.admin.get(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}") is None
    await helm.gone(SECRET, f"chart-values-{name}")
    await helm.gone(CONFIG_MAP, f"chart-content-{name}")
    await helm.gone(JOB, f"helm-install-{name}")
    await helm.gone(JOB, f"helm-delete-{name}")
    assert {"Claimed", "ApplyJob", "ReplaceJob", "JobComplete", "RemoveJob", "Removed"} <= await helm.reasons(name)


async def test_failing_chart_says_why_and_heals(helm: HelmPeople) -> None:
    """Helm's own words reach the HelmChart's status and an Event; put right, the release comes and the words go."""
    name = f"fails-{token()}"
    await helm.ask(name, valuesContent="other: 1", backOffLimit=0)

    failed = await helm.says(name, "JobFailed")
    assert failed["status"] == "True"
    assert "greeting is needed" in failed["message"]
    assert "greeting is needed" in await helm.told(name, "JobFailed")

    await helm.change(name, valuesContent="greeting: at last")
    await helm.greets(name, "at last")
    healed = await helm.says(name, "Complete")
    assert healed["status"] == "False"


async def test_bad_input_is_told_before_helm_is_run(helm: HelmPeople) -> None:
    """What cannot work is told by field and fix, without a Job; Helm tells what only it can see."""
    kinds = ("broken", "torn", "listed", "tagged", "deep", "dated", "old")
    broken, torn, listed, tagged, deep, dated, old = (f"{kind}-{token()}" for kind in kinds)
    long = f"long-{token()}-{'x' * 40}"
    whole = chart_archive()
    await helm.ask(broken, chartContent="not base64!")
    await helm.ask(torn, chartContent=whole[: len(whole) // 2 // 4 * 4], backOffLimit=0)
    await helm.ask(listed, valuesContent="- a\n- list")
    await helm.ask(tagged, valuesContent="greeting: !!int ''")
    await helm.ask(deep, valuesContent="greeting: " + "[" * 500 + "]" * 500)
    await helm.ask(dated, valuesContent="greeting: 2024-02-30\nother: =")
    await helm.ask(old, helmVersion="v2")
    await helm.ask(long, targetNamespace="default")

    assert "spec.chartContent is not base64" in (await helm.says(broken, "InvalidChart"))["message"]
    assert "spec.valuesContent" in (await helm.says(listed, "InvalidValues"))["message"]
    assert "not valid YAML" in (await helm.says(tagged, "InvalidValues"))["message"]
    assert "nested deeper" in (await helm.says(deep, "InvalidValues"))["message"]
    await helm.greets(dated, "2024-02-30")
    assert "only v3" in (await helm.says(old, "UnsupportedVersion"))["message"]
    assert "at most 50" in (await helm.says(long, "NameTooLong"))["message"]
    assert "unexpected EOF" in (await helm.says(torn, "JobFailed"))["message"]
    for name in (broken, listed, tagged, deep, old, long):
        assert await helm.admin.get(JOB, f"helm-install-{name}", SYSTEM) is None
        await helm.people.delete(HELM_CHART, name, SYSTEM)
        await helm.gone(HELM_CHART, name)


async def test_interrupted_upgrade_is_taken_up_again(helm: HelmPeople) -> None:
    """The record of a run that was killed does not block the next: a pending upgrade is tried again."""
    name = f"cut-{token()}"
    await helm.ask(name, valuesContent="greeting: one")
    await helm.says(name, "Complete")
    await helm.remember(name, 2, "pending-upgrade")

    await helm.change(name, valuesContent="greeting: two")

    await helm.greets(name, "two")
    await helm.says(name, "Complete")
    assert await helm.releases(name) == [(1, "superseded"), (2, "failed"), (3, "deployed")]


@LEFT_TO_MAKE_WHOLE
async def test_helm_that_is_killed_in_an_upgrade_is_followed_by_the_next(helm: HelmPeople) -> None:
    """A Helm that is killed leaves a pending upgrade; the next attempt of the Job does it again, with the policy abort, too."""
    name = f"killed-{token()}"
    content = chart_archive(greeting=GREETING, hook=yaml.safe_dump(pod_hook("pre-upgrade")))
    await helm.ask(name, chartContent=content, valuesContent="greeting: one", failurePolicy="abort")
    await helm.says(name, "Complete")

    await helm.change(name, valuesContent="greeting: two")
    hook = await helm.people.until(POD, "hook-pre-upgrade", name, bool)
    assert await helm.releases(name) == [(1, "deployed"), (2, "pending-upgrade")]
    upgrade_of(name).kill()
    assert "-9" in (await helm.says(name, "Retrying"))["message"]

    await helm.people.until(POD, "hook-pre-upgrade", name, lambda pod: pod["metadata"]["uid"] != hook["metadata"]["uid"])
    assert await helm.releases(name) == [(1, "deployed"), (2, "failed"), (3, "pending-upgrade")]
    await end_hook(helm.admin, "pre-upgrade", name, "Succeeded")
    await helm.greets(name, "two")
    await helm.says(name, "Complete")
    assert await helm.releases(name) == [(1, "superseded"), (2, "failed"), (3, "deployed")]


@pytest.mark.check("a-62", without="one-helm-at-a-time")
@LEFT_TO_MAKE_WHOLE
async def test_the_next_helm_comes_when_the_last_one_has_ended(helm: HelmPeople) -> None:
    """A pod that is evicted while Helm works, as at a node drain, is followed by the next only after Helm has ended in it."""
    name = f"drained-{token()}"
    content = chart_archive(greeting=GREETING, hook=yaml.safe_dump(pod_hook("pre-upgrade")))
    await helm.ask(name, chartContent=content, valuesContent="greeting: one", backOffLimit=1)
    await helm.says(name, "Complete")
    await helm.change(name, valuesContent="greeting: two")
    hook = await helm.people.until(POD, "hook-pre-upgrade", name, bool)
    first = await helm.job(name)
    assert first["spec"]["podReplacementPolicy"] == "Failed"
    pods = await helm.admin.list(POD, SYSTEM, label_selector=f"batch.kubernetes.io/job-name={first['metadata']['name']}")
    (working,) = (pod["metadata"]["name"] for pod in pods.items)

    await helm.admin.delete(POD, working, SYSTEM)
    leaving = await helm.people.until(POD, working, SYSTEM, is_terminating)
    assert leaving["status"]["phase"] == "Running", "Helm finishes first, for as long as it may"
    counted = first["metadata"]["name"], SYSTEM, lambda job: job["status"].get("terminating") or job["status"].get("failed")
    await helm.people.until(JOB, *counted)  # the Job knows that the pod is on its way out
    upgrade_of(name).kill()
    again = "hook-pre-upgrade", name, lambda pod: pod["metadata"]["uid"] != hook["metadata"]["uid"]
    await helm.people.until(POD, *again, within=60)
    steps = await _steps(helm, pods.resource_version, first["metadata"]["name"])
    assert [step for step, _ in steps] == ["ended", "made"]
    assert steps[0][1] == working

    assert (await helm.job(name))["metadata"]["uid"] == first["metadata"]["uid"]
    await end_hook(helm.admin, "pre-upgrade", name, "Succeeded")
    await helm.says(name, "Complete")
    await helm.admin.delete(HELM_CHART, name, SYSTEM)
    delete = await helm.people.until(JOB, f"helm-delete-{name}", SYSTEM, bool)
    assert delete["spec"]["podReplacementPolicy"] == "Failed"
    await helm.gone(HELM_CHART, name)


async def _steps(helm: HelmPeople, since: str, job: str) -> list[tuple[str, str]]:
    """Which pods of a Job were made, ended, or went before they had ended, in this order, as a watch tells it afterwards."""
    found: list[tuple[str, str]] = []
    selector = f"batch.kubernetes.io/job-name={job}"
    watch = helm.admin.watch(POD, SYSTEM, resource_version=since, label_selector=selector, timeout_s=60)
    async with aclosing(watch) as told:  # type: ignore[type-var]
        async for change, pod in told:
            if change == "BOOKMARK":
                continue
            ended = (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
            what = "made" if change == "ADDED" else "ended" if ended else "given up" if change == "DELETED" else ""
            step = (what, pod["metadata"]["name"])
            if what and step not in found:
                found.append(step)
            if len(found) == 2:
                break
    return found


def upgrade_of(name: str) -> psutil.Process:
    """The Helm that upgrades a release for the local runner of Jobs."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            command = process.cmdline()
            if command[1:3] == ["upgrade", name]:
                return process
    raise AssertionError(f"no Helm upgrades {name}")


@pytest.mark.one_variant("policy", "left")
@pytest.mark.parametrize(("policy", "left"), [("reinstall", [(1, "deployed")]), ("retry", [(1, "superseded"), (2, "deployed")])])
async def test_failure_policy_decides_about_an_interrupted_install(
    helm: HelmPeople, policy: str, left: list[tuple[int, str]]
) -> None:
    """abort leaves a half-made release as it is and says so; reinstall makes it anew, retry upgrades it."""
    name = f"half-{token()}"
    await helm.ask(name, valuesContent="greeting: one", failurePolicy="abort", backOffLimit=0)
    await helm.says(name, "Complete")
    await helm.remember(name, 1, "pending-install")

    await helm.change(name, valuesContent="greeting: two")

    failed = await helm.says(name, "JobFailed")
    assert "the failure policy is abort" in failed["message"]
    assert await helm.releases(name) == [(1, "failed")]

    await helm.change(name, failurePolicy=policy)
    await helm.greets(name, "two")
    await helm.says(name, "Complete")
    assert await helm.releases(name) == left


@LEFT_TO_MAKE_WHOLE
async def test_chart_comes_from_a_repository(helm: HelmPeople) -> None:
    """A chart by repository, name and version, with credentials; values as an object, from a Secret and one by one."""
    name = f"repo-{token()}"
    asked: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        asked.append(f"{request.path} {request.headers.get('Authorization', '')}")
        if request.path.endswith(".tgz"):
            return web.Response(body=base64.b64decode(chart_archive()))
        entry = {"apiVersion": "v2", "name": "tiny", "version": "1.0.0", "urls": ["tiny-1.0.0.tgz"]}
        return web.json_response({"apiVersion": "v1", "entries": {"tiny": [entry]}})

    application = web.Application()
    application.router.add_get("/{path:.*}", serve)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port := free_port())
    await site.start()
    try:
        await helm.secret(f"auth-{name}", username="me", password="open sesame")
        await helm.secret(f"more-{name}", further="greeting: from the Secret")
        await helm.ask(
            name,
            repo=f"http://127.0.0.1:{port}",
            version="1.0.0",
            chartContent=None,
            authSecret={"name": f"auth-{name}"},
            values={"greeting": "from the object"},
            valuesSecrets=[{"name": f"more-{name}", "keys": ["further"]}],
        )
        await helm.greets(name, "from the Secret")
        await helm.says(name, "Complete")
        await helm.change(name, set={"greeting": "one, by one"})
        await helm.greets(name, "one, by one")
    finally:
        await runner.cleanup()
    basic = base64.b64encode(b"me:open sesame").decode()
    assert f"/tiny-1.0.0.tgz Basic {basic}" in asked


async def test_uninstallation_that_cannot_succeed_is_told_and_ends(helm: HelmPeople) -> None:
    """A HelmChart never hangs: when its time is over the uninstallation is given up, with a Warning that says what to do."""
    name = f"stuck-{token()}"
    await helm.ask(name, valuesContent="greeting: here to stay")
    await helm.says(name, "Complete")
    record = f"sh.helm.release.v1.{name}.v1"
    await helm.people.edit(SECRET, record, name, ("replace", "/data/release", "bm90IGEgcmVsZWFzZQ=="))

    await helm.people.delete(HELM_CHART, name, SYSTEM)
    job = await helm.people.until(JOB, f"helm-delete-{name}", SYSTEM, lambda found: (found.get("status") or {}).get("failed"))
    retrying = await helm.says(name, "Retrying", current=False)
    assert f'no revision for release "{name}"' in retrying["message"]
    assert job["spec"]["activeDeadlineSeconds"] == 900
    await helm.people.edit(JOB, f"helm-delete-{name}", SYSTEM, ("replace", "/spec/activeDeadlineSeconds", 1))

    await helm.gone(HELM_CHART, name)
    assert f"helm uninstall {name} --namespace {name}" in await helm.told(name, "UninstallFailed")
    await helm.gone(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}", "")
    assert is_alive(await helm.admin.get(CONFIG_MAP, name, name))
