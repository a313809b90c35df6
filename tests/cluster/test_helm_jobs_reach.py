"""Helm's Jobs have the rights of their chart and only while they run; what belongs to somebody else stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from helm_people import FUNCTION, GREETING, SYSTEM, HelmPeople, chart_archive, helm_chart, is_alive
from locking import PRIORITY_CLASS
from people import may, token
from refusing import lacking
from rights import account, cluster_role

from tenantry.local.knative import Knative
from tenantry.model.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    HELM_CHART,
    JOB,
    NAMESPACE,
    ROLE_BINDING,
    SECRET,
    Object,
)
from tenantry.model.names import CHART_LABEL, SYSTEM_NAMESPACE
from tenantry.serving.installed import descriptor_of
from tenantry.testing import eventually
from tenantry.testing.objects import obj
from tenantry.testing.settling import settle

SERVICE = descriptor_of(FUNCTION).service_of("helm-jobs").name


@pytest.fixture
def helm(helm_people: HelmPeople) -> HelmPeople:
    """An administrator who works with HelmCharts."""
    return helm_people


async def test_charts_of_others_are_left_alone(helm: HelmPeople, helm_jobs: Knative) -> None:
    """A HelmChart of another controller, an unmanaged one, and one that asks for nothing get no finalizer, status or Job."""
    theirs, unmanaged, empty = (f"{kind}-{token()}" for kind in ("theirs", "unmanaged", "empty"))
    await helm.ask(theirs, {"helmcharts.cattle.io/managed-by": "helm-controller"})
    await helm.ask(unmanaged, {"helmcharts.helm.cattle.io/unmanaged": "true"})
    await helm.ask(empty, chart=None, chartContent=None)

    await settle(helm_jobs, helm.admin)
    await helm_jobs.sweep(FUNCTION)

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


async def test_rights_of_before_are_taken_away(helm: HelmPeople, helm_jobs: Knative) -> None:
    """The ClusterRoleBinding that an older version left for a HelmChart at rest goes at the sweep, and nothing else happens."""
    name = f"before-{token()}"
    await helm.ask(name, valuesContent="greeting: old")
    await helm.says(name, "Complete")
    await helm.gone(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}", "")
    await settle(helm_jobs, helm.admin)
    job = await helm.job(name)
    await helm.admin.apply(CLUSTER_ROLE_BINDING, left_binding(name), manager=f"tenantry-{FUNCTION}")

    await helm_jobs.sweep(FUNCTION)

    assert await helm.admin.get(CLUSTER_ROLE_BINDING, f"helm-{SYSTEM}-{name}") is None
    assert (await helm.job(name))["metadata"]["uid"] == job["metadata"]["uid"]


async def test_rights_that_a_killed_process_left_are_swept(helm: HelmPeople, helm_jobs: Knative) -> None:
    """Bindings of ours for a HelmChart that is gone, or in a namespace that its release left, go; those of others stay."""
    name, place = f"left-{token()}", f"place-{token()}"
    await helm.people.namespace(place)
    await helm.ask(name, valuesContent="greeting: here")
    await helm.says(name, "Complete")
    for chart in (name, f"gone-{name}"):
        await helm.admin.apply(ROLE_BINDING, left_binding(chart, place), manager=f"tenantry-{FUNCTION}")
    theirs = left_binding(f"theirs-{name}", place)
    await helm.admin.create(ROLE_BINDING, theirs)

    await helm_jobs.sweep(FUNCTION)

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


async def test_without_its_namespace_a_narrow_chart_waits(helm: HelmPeople, helm_jobs: Knative) -> None:
    """Nobody can be given rights in a namespace that is not there: that is told, and the release comes with the namespace."""
    name = f"homeless-{token()}"
    annotations = {"tenantry.dev/helm-api-version": "least.cattle.io/v1alpha1"}
    await helm.ask(name, annotations, createNamespace=None, valuesContent="greeting: late")
    assert f"namespace {name} only" in (await helm.says(name, "NamespaceMissing"))["message"]
    assert await helm.admin.get(JOB, f"helm-install-{name}", SYSTEM) is None

    await helm.people.namespace(name)
    await helm_jobs.sweep(FUNCTION)
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
