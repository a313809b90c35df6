"""Helm for HelmCharts, with a real Helm: install, upgrade, uninstall, and what goes wrong (spec helm-project 1.3 to 1.5, 4.7)."""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
import yaml
from aiohttp import web
from helm_people import FUNCTION, GREETING, SYSTEM, HelmPeople, chart_archive, helm_chart, is_alive
from locking import PRIORITY_CLASS, end_hook, pod_hook
from people import People, may, token
from refusing import lacking
from rights import account, cluster_role
from times import HELM_S

from tenantry.local.control_plane import Lines, ensure_helm
from tenantry.local.knative import Knative
from tenantry.local.processes import free_port
from tenantry.model.conditions import find_condition
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    JOB,
    NAMESPACE,
    POD,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Object,
    annotations_of,
    is_terminating,
)
from tenantry.model.names import CHART_LABEL, SYSTEM_NAMESPACE
from tenantry.serving.installed import descriptor_of
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle

SERVICE = descriptor_of(FUNCTION).service_of("helm-jobs").name
CONFIG: dict[str, Any] = {
    "helmProjectOperator": {
        "systemNamespace": SYSTEM,
        "charts": [
            {"helmApiVersion": "dummy.cattle.io/v1alpha1", "releaseName": "dummy"},
            {"helmApiVersion": "narrow.cattle.io/v1alpha1", "releaseName": "narrow", "jobClusterRole": "admin"},
            {"helmApiVersion": "least.cattle.io/v1alpha1", "releaseName": "least", "jobClusterRole": "tenantry-helm-job"},
        ],
    },
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def system(flawlessly: Callable[..., Awaitable[Knative]]) -> Knative:
    """The function and the local runner of its Jobs."""
    return await flawlessly(CONFIG, functions=[FUNCTION], helm=ensure_helm(Lines()))


@pytest.fixture
def helm(people: People, system: Knative) -> HelmPeople:
    """An administrator who works with HelmCharts."""
    del system
    return HelmPeople(People(people.admin, HELM_S))


async def test_chart_is_installed_upgraded_and_uninstalled(helm: HelmPeople, system: Knative) -> None:
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
    await settle(system, helm.admin)
    await system.sweep(FUNCTION)
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


@pytest.mark.check("a-62")
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


async def test_charts_of_others_are_left_alone(helm: HelmPeople, system: Knative) -> None:
    """A HelmChart of another controller, an unmanaged one, and one that asks for nothing get no finalizer, status or Job."""
    theirs, unmanaged, empty = (f"{kind}-{token()}" for kind in ("theirs", "unmanaged", "empty"))
    await helm.ask(theirs, {"helmcharts.cattle.io/managed-by": "helm-controller"})
    await helm.ask(unmanaged, {"helmcharts.helm.cattle.io/unmanaged": "true"})
    await helm.ask(empty, chart=None, chartContent=None)

    await settle(system, helm.admin)
    await system.sweep(FUNCTION)

    for name in (theirs, unmanaged, empty):
        chart = await helm.people.get(HELM_CHART, name, SYSTEM)
        assert "finalizers" not in chart["metadata"]
        assert "status" not in chart
        assert await helm.admin.get(JOB, f"helm-install-{name}", SYSTEM) is None


async def test_chart_that_is_handed_over_does_not_wait_for_us(helm: HelmPeople) -> None:
    """A HelmChart that another controller takes over loses our finalizer and nothing else."""
    name = f"moves-{token()}"
    await helm.ask(name, valuesContent="greeting: stay")
    await helm.says(name, "Complete")

    key = "helmcharts.cattle.io~1managed-by"
    await helm.people.edit(HELM_CHART, name, SYSTEM, ("replace", f"/metadata/annotations/{key}", "helm-controller"))

    await helm.people.until(HELM_CHART, name, SYSTEM, lambda chart: not chart["metadata"].get("finalizers"))
    assert is_alive(await helm.admin.get(CONFIG_MAP, name, name))
    assert is_alive(await helm.job(name))


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


async def test_administrators_charts_have_every_right_while_a_job_runs(helm: HelmPeople) -> None:
    """A HelmChart of an administrator is bound to the role that its switch names, as by the usual controller, and not at rest."""
    name = f"wide-{token()}"
    bindings = await helm.watched(CLUSTER_ROLE_BINDING)
    content = chart_archive(greeting=GREETING, priority=yaml.safe_dump(obj(PRIORITY_CLASS, name, value=7)))
    await helm.ask(name, chartContent=content, valuesContent="greeting: wide")
    await helm.says(name, "Complete")
    await helm.gone(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}", "")

    made, gone = await bindings(f"helm-{SYSTEM}-{name}")
    assert (made["roleRef"]["name"], len(made["subjects"]), gone) == ("cluster-admin", 1, True)
    assert made["subjects"][0]["name"] == f"helm-{name}"
    await helm.people.delete(HELM_CHART, name, SYSTEM)
    await helm.gone(HELM_CHART, name)
    assert await helm.admin.get(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}") is None
    assert await helm.admin.get(PRIORITY_CLASS, name) is None


async def test_role_of_the_job_is_that_of_its_configured_chart(helm: HelmPeople) -> None:
    """The account of a Job has the role that the configuration names for its chart, in the namespace of the release; what it
    lacks is told with the setting that gives more."""
    name = f"narrow-{token()}"
    content = chart_archive(greeting=GREETING, priority=yaml.safe_dump(obj(PRIORITY_CLASS, name, value=7)))
    bindings = await helm.watched(ROLE_BINDING)
    await helm.people.namespace(name)
    annotations = {"tenantry.dev/helm-api-version": "narrow.cattle.io/v1alpha1"}
    await helm.ask(name, annotations, chartContent=content, createNamespace=None, valuesContent="greeting: no", backOffLimit=0)

    failed = await helm.says(name, "JobFailed")

    assert "forbidden" in failed["message"]
    assert f"ClusterRole admin in namespace {name} only" in failed["message"]
    assert "charts[].jobClusterRole" in failed["message"]
    await helm.gone(ROLE_BINDING, f"helm-{SYSTEM}-{name}", name)
    made, gone = await bindings(f"helm-{SYSTEM}-{name}")
    assert (made["roleRef"]["name"], made["metadata"]["namespace"], gone) == ("admin", name, True)
    assert await helm.admin.get(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}") is None


async def test_the_shipped_role_is_enough(helm: HelmPeople) -> None:
    """With the ClusterRole that we ship real Helm installs, upgrades and uninstalls, and every run has a binding of its own."""
    name = f"least-{token()}"
    await helm.people.namespace(name)
    bindings = await helm.watched(ROLE_BINDING)
    annotations = {"tenantry.dev/helm-api-version": "least.cattle.io/v1alpha1"}
    await helm.ask(name, annotations, createNamespace=None, valuesContent="greeting: least")
    await helm.greets(name, "least")
    await helm.says(name, "Complete")
    await helm.gone(ROLE_BINDING, f"helm-{SYSTEM}-{name}", name)
    await helm.change(name, valuesContent="greeting: more")
    await helm.greets(name, "more")
    await helm.says(name, "Complete")
    await helm.people.delete(HELM_CHART, name, SYSTEM)
    await helm.gone(HELM_CHART, name)
    assert await helm.releases(name) == []
    assert await helm.admin.get(ROLE_BINDING, f"helm-{SYSTEM}-{name}", name) is None
    made, gone = await bindings(f"helm-{SYSTEM}-{name}")
    assert (made["roleRef"]["name"], gone) == ("tenantry-helm-job", True)


async def test_the_documented_extension_adds_to_the_shipped_role(helm: HelmPeople) -> None:
    """A ClusterRole with the label of docs/helm-jobs.md is part of what every Job may do in its namespace."""
    page = (Path(__file__).parents[2] / "docs" / "helm-jobs.md").read_text(encoding="utf-8")
    example = next(each for each in re.findall(r"```yaml\n(.+?)```", page, re.DOTALL) if "aggregate-to-helm-job" in each)
    body = yaml.safe_load(example)
    await helm.admin.apply(CLUSTER_ROLE, body)
    wanted = body["rules"][0]["resources"]

    def has_it(role: Object) -> bool:
        return any(each["resources"] == wanted for each in role.get("rules") or ())

    await helm.people.until(CLUSTER_ROLE, "tenantry-helm-job", "", has_it)


async def test_rights_of_before_are_taken_away(helm: HelmPeople, system: Knative) -> None:
    """The ClusterRoleBinding that an older version left for a HelmChart at rest goes at the sweep, and nothing else happens."""
    name = f"before-{token()}"
    await helm.ask(name, valuesContent="greeting: old")
    await helm.says(name, "Complete")
    await helm.gone(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}", "")
    await settle(system, helm.admin)
    job = await helm.job(name)
    await helm.admin.apply(CLUSTER_ROLE_BINDING, left_binding(name), manager=f"tenantry-{FUNCTION}")

    await system.sweep(FUNCTION)

    assert await helm.admin.get(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}") is None
    assert (await helm.job(name))["metadata"]["uid"] == job["metadata"]["uid"]


async def test_rights_that_a_killed_process_left_are_swept(helm: HelmPeople, system: Knative) -> None:
    """Bindings of ours for a HelmChart that is gone, or in a namespace that its release left, go; those of others stay."""
    name, place = f"left-{token()}", f"place-{token()}"
    await helm.people.namespace(place)
    await helm.ask(name, valuesContent="greeting: here")
    await helm.says(name, "Complete")
    for chart in (name, f"gone-{name}"):
        await helm.admin.apply(ROLE_BINDING, left_binding(chart, place), manager=f"tenantry-{FUNCTION}")
    theirs = left_binding(f"theirs-{name}", place)
    await helm.admin.create(ROLE_BINDING, theirs)

    await system.sweep(FUNCTION)

    for chart in (name, f"gone-{name}"):
        assert await helm.admin.get(ROLE_BINDING, f"helm-{SYSTEM}-{chart}", place) is None
    assert await helm.admin.get(ROLE_BINDING, theirs["metadata"]["name"], place) is not None


async def test_a_job_that_may_not_be_deleted_says_so(helm: HelmPeople) -> None:
    """What a HelmChart left may not be deleted for want of a right: its Warning names right and file, and it goes with that."""
    name = f"kept-{token()}"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "helm", "image": "none"}]}}
    spec = {"suspend": True, "template": template}
    job = obj(JOB, f"helm-delete-{name}", SYSTEM, {CHART_LABEL: name}, spec=spec)

    async def revoked() -> bool:
        user = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{SERVICE}"
        return not await may(helm.admin, user, "delete", "jobs", SYSTEM, group="batch")

    async with lacking(helm.admin, f"tenantry-{SERVICE}", "jobs", {"delete"}, SYSTEM):
        await eventually(revoked, what="the right is gone")
        await helm.admin.apply(JOB, job, manager=f"tenantry-{FUNCTION}")
        text = await helm.people.warned(f"helm-delete-{name}", "CleanUpFailed", within=5, kind=JOB, namespace=SYSTEM)
    assert "cannot delete resource" in text
    assert f"knative/{SERVICE}/rights.yaml" in text
    await helm.gone(JOB, f"helm-delete-{name}")


async def test_without_its_namespace_a_narrow_chart_waits(helm: HelmPeople, system: Knative) -> None:
    """Nobody can be given rights in a namespace that is not there: that is told, and the release comes with the namespace."""
    name = f"homeless-{token()}"
    annotations = {"tenantry.dev/helm-api-version": "least.cattle.io/v1alpha1"}
    await helm.ask(name, annotations, createNamespace=None, valuesContent="greeting: late")
    assert f"namespace {name} only" in (await helm.says(name, "NamespaceMissing"))["message"]
    assert await helm.admin.get(JOB, f"helm-install-{name}", SYSTEM) is None

    await helm.people.namespace(name)
    await system.sweep(FUNCTION)
    await helm.greets(name, "late")
    await helm.says(name, "Complete")

    await helm.admin.delete(NAMESPACE, name)
    await helm.people.delete(HELM_CHART, name, SYSTEM)
    await helm.gone(HELM_CHART, name)
    assert await helm.admin.get(JOB, f"helm-delete-{name}", SYSTEM) is None


def left_binding(name: str, namespace: str = "") -> Object:
    """A binding for Helm's account as release-provisioning makes it."""
    kind = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
    subjects = [account(f"helm-{name}", SYSTEM)]
    labels = {CHART_LABEL: name}
    return obj(kind, f"helm-{SYSTEM}-{name}", namespace, labels, roleRef=cluster_role("cluster-admin"), subjects=subjects)


async def test_the_finalizer_of_the_usual_controller_is_taken_off(helm: HelmPeople) -> None:
    """A HelmChart that another controller has had keeps our finalizer alone, and goes when it is deleted."""
    name = f"theirs-{token()}"
    chart = helm_chart(name, valuesContent="greeting: hello")
    finalizers = ["wrangler.cattle.io/on-helm-chart-remove"]
    await helm.admin.create(HELM_CHART, {**chart, "metadata": {**chart["metadata"], "finalizers": finalizers}})
    await helm.says(name, "Complete")
    assert (await helm.people.get(HELM_CHART, name, SYSTEM))["metadata"]["finalizers"] == ["tenantry.dev/helm-chart"]

    await helm.people.delete(HELM_CHART, name, SYSTEM)
    await helm.gone(HELM_CHART, name)
    assert await helm.releases(name) == []


async def test_what_is_not_of_the_chart_is_not_taken_over(helm: HelmPeople) -> None:
    """An object that bears a name that a HelmChart needs stays as it is, and the HelmChart says which."""
    name = f"taken-{token()}"
    theirs = await helm.admin.create(SECRET, obj(SECRET, f"chart-values-{name}", SYSTEM))

    await helm.ask(name, valuesContent="greeting: mine")

    taken = await helm.says(name, "NameTaken")
    assert f"Secret {SYSTEM}/chart-values-{name}" in taken["message"]
    after = await helm.people.get(SECRET, f"chart-values-{name}", SYSTEM)
    assert after["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]

    await helm.people.delete(SECRET, f"chart-values-{name}", SYSTEM)
    await system_looks_again(helm, name)
    await helm.greets(name, "mine")


async def test_what_holds_up_a_deletion_is_told_and_stays(helm: HelmPeople) -> None:
    """A HelmChart whose binding somebody was added to says so when it is deleted, and is uninstalled when they are taken off."""
    name = f"shared-{token()}"
    binding = f"helm-{SYSTEM}-{name}"
    await helm.ask(name, valuesContent="greeting: mine")
    await helm.says(name, "Complete")
    await helm.gone(CLUSTER_ROLE_BINDING, binding, "")
    alice = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    body = left_binding(name)
    theirs = await helm.admin.create(CLUSTER_ROLE_BINDING, {**body, "subjects": [*body["subjects"], alice]})

    await helm.people.delete(HELM_CHART, name, SYSTEM)

    taken = await helm.says(name, "NameTaken", current=False)
    assert taken["status"] == "True"
    assert f"ClusterRoleBinding {binding}" in taken["message"]
    await helm.told(name, "NameTaken", saying="take the other subjects off it")
    after = await helm.people.get(CLUSTER_ROLE_BINDING, binding)
    assert after["metadata"]["resourceVersion"] == theirs["metadata"]["resourceVersion"]
    assert await helm.admin.get(JOB, f"helm-delete-{name}", SYSTEM) is None

    await helm.people.edit(CLUSTER_ROLE_BINDING, binding, "", ("remove", "/subjects/1", None))
    await system_looks_again(helm, name)
    await helm.gone(HELM_CHART, name)
    assert await helm.releases(name) == []


async def system_looks_again(helm: HelmPeople, name: str) -> None:
    """Touch a HelmChart, as the next sweep would look at it."""
    await helm.people.edit(HELM_CHART, name, SYSTEM, ("add", "/metadata/labels", {"looked": "again"}))
