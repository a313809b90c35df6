"""In which order the unit jobs reads what it concludes from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import owning
import pytest
from served import Served

from release_provisioning.jobs import manifest
from release_provisioning.jobs.observe import observe_chart
from release_provisioning.jobs.seen import ObservedHelmChart
from release_provisioning.jobs.unit import Jobs
from release_provisioning.kept import LeftOut
from tenantry.engine.snapshot import Snapshot
from tenantry.model import limits
from tenantry.model.config import Config
from tenantry.model.kinds import (
    CLUSTER_ROLE_BINDING,
    HELM_CHART,
    JOB,
    ROLE_BINDING,
    SECRET,
    SERVICE_ACCOUNT,
    Key,
    Kind,
    Object,
    key_of,
)
from tenantry.model.names import CHART_LABEL, HELM_CHART_FINALIZER
from tenantry.testing.objects import obj

SYSTEM = "cattle-helm-system"
NAMES = manifest.Names(SYSTEM, "demo")
CONFIG = Config.model_validate({"helmProjectOperator": {"helmController": {"enabled": True}}})
CHART: Object = obj(
    HELM_CHART,
    "demo",
    SYSTEM,
    annotations={"helmcharts.cattle.io/managed-by": CONFIG.helm_project_operator.controller_name},
    metadata={"uid": "u", "finalizers": [HELM_CHART_FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"},
    spec={"chart": "tiny"},
    status={"jobName": NAMES.install},
)
CAUSE = Key(JOB.api_version, JOB.kind, SYSTEM, NAMES.install)


class Vanishing(Served):
    """A HelmChart that vanishes as soon as it was read."""

    def found(self, key: Key) -> Object | None:
        return self.objects.pop(key, None) if key.kind == HELM_CHART.kind else super().found(key)


def made(kind: Kind, name: str) -> Object:
    home = SYSTEM if kind.namespaced else ""
    return obj(kind, name, home, labels={CHART_LABEL: "demo"}, metadata={"uid": "j"})


async def test_a_chart_that_another_replica_let_go_is_gone() -> None:
    """Its Job is away because the chart is: nothing is uninstalled a second time."""
    assert (await observe_chart(SYSTEM, "demo", CONFIG, Vanishing(CHART).reader([CAUSE]))).chart is None
    assert (await observe_chart(SYSTEM, "demo", CONFIG, Served(CHART).reader([CAUSE]))).chart == CHART


async def test_the_job_of_a_chart_that_is_gone_is_seen() -> None:
    """A run that ended after the finalizer went, and before the Jobs did, is made good by the next one."""
    binding = made(CLUSTER_ROLE_BINDING, NAMES.binding)
    install = made(JOB, NAMES.install)
    seen = await observe_chart(SYSTEM, "demo", CONFIG, Served(binding, install).reader([CAUSE]))

    assert seen.install == install


class Typing(Served):
    """One HelmChart whose values somebody changes: so many times, once after each look that has read everything."""

    def __init__(self, changes: int) -> None:
        super().__init__(chart_with(0), job_for(chart_with(0)))
        self.changes, self.waits = changes, 0
        self.change()

    def change(self) -> None:
        if self.waits < self.changes:
            self.objects[key_of(CHART)] = chart_with(self.waits + 1)

    async def sleep(self, seconds: float) -> None:
        assert seconds == 2
        self.waits += 1
        self.change()


def chart_with(number: int) -> Object:
    metadata = {field: value for field, value in CHART["metadata"].items() if field != "deletionTimestamp"}
    return {**CHART, "metadata": metadata, "spec": {"chart": "tiny", "valuesContent": f"number: {number}"}}


def job_for(chart: Object) -> Object:
    return manifest.install_job(chart, None, {}, CONFIG)


@pytest.mark.check("hpo-88")
@pytest.mark.parametrize(("changes", "waits", "number"), [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3), (9, 4, 5)])
async def test_helm_runs_when_the_values_are_still(
    changes: int, waits: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that would run Helm again waits until two looks want the same, but not for ever; what stays is not waited for."""
    api = Typing(changes)
    monkeypatch.setattr("tenantry.engine.decision.asyncio.sleep", api.sleep)
    decided = await owning.decided(Jobs(CONFIG), f"chart/{SYSTEM}/demo", api.reader([CAUSE]))

    assert (api.waits, decided.observed.chart) == (waits, chart_with(number))


async def test_a_first_installation_waits_for_nothing() -> None:
    """Nobody waits for what is installed first."""
    api = Typing(9)
    del api.objects[CAUSE]
    decided = await owning.decided(Jobs(CONFIG), f"chart/{SYSTEM}/demo", api.reader([CAUSE]))
    assert (api.waits, decided.observed.chart) == (0, chart_with(1))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (SERVICE_ACCOUNT, NAMES.account),
        (CLUSTER_ROLE_BINDING, NAMES.binding),
        (JOB, NAMES.delete),
    ],
)
async def test_a_sweep_finds_what_a_chart_left(kind: Kind, name: str) -> None:
    """By the label, where the name is the one that we give."""
    assert await owning.sweep(Jobs(CONFIG), Served(made(kind, name)).reader()) == [f"chart/{SYSTEM}/demo"]
    assert await owning.sweep(Jobs(CONFIG), Served(made(kind, "another")).reader()) == []


@pytest.mark.parametrize(
    ("enabled", "chart", "kind", "owners"),
    [
        # Nobody else would find the binding of a HelmChart that is gone, moved on, or is another controller's.
        (True, None, ROLE_BINDING, ["rights/place/demo"]),
        (True, {"targetNamespace": "elsewhere"}, ROLE_BINDING, [f"chart/{SYSTEM}/demo", "rights/place/demo"]),
        (False, {"targetNamespace": "place"}, ROLE_BINDING, [f"chart/{SYSTEM}/demo", "rights/place/demo"]),
        (False, {}, CLUSTER_ROLE_BINDING, [f"chart/{SYSTEM}/demo", "rights/-/demo"]),
        (False, None, CLUSTER_ROLE_BINDING, ["rights/-/demo"]),
        # The run for the HelmChart does.
        (True, {"targetNamespace": "place"}, ROLE_BINDING, [f"chart/{SYSTEM}/demo"]),
        (True, {}, CLUSTER_ROLE_BINDING, [f"chart/{SYSTEM}/demo"]),
    ],
)
async def test_a_sweep_finds_every_binding(enabled: bool, chart: Object | None, kind: Kind, owners: list[str]) -> None:
    """Each is looked at by one run: that for its HelmChart, or one of its own."""
    config = Config.model_validate({"helmProjectOperator": {"helmController": {"enabled": enabled}}})
    binding = made(kind, NAMES.binding)
    if kind.namespaced:
        binding["metadata"]["namespace"] = "place"
    there = [binding] if chart is None else [binding, {**chart_with(0), "spec": {"chart": "tiny", **chart}}]
    jobs = Jobs(config)

    assert await owning.sweep(jobs, Served(*there).reader()) == owners
    assert all(owning.accepts(jobs, owner) for owner in owners)


async def test_rights_are_read_before_the_jobs_that_need_them() -> None:
    """A binding of a newer Job is never seen beside the end of an older one, whose binding would be taken away."""
    chart = chart_with(0)
    objects = Served(chart, job_for(chart))
    await observe_chart(SYSTEM, "demo", CONFIG, objects.reader([CAUSE]))

    asked = [key.kind for key in objects.asked]
    assert max(asked.index(kind.kind) for kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING)) < asked.index("Job")


async def test_a_sweep_asks_for_no_binding_of_a_chart_at_rest() -> None:
    """It has the list of those with our label: there is nothing to ask for each HelmChart."""
    jobs, objects = Jobs(CONFIG), Served(chart_with(0), job_for(chart_with(0)))
    snapshot = await Snapshot.take(objects.api, jobs.prefetch())
    await observe_chart(SYSTEM, "demo", CONFIG, snapshot)

    assert not {"RoleBinding", "ClusterRoleBinding", "Namespace"} & {key.kind for key in objects.asked}


@pytest.mark.parametrize(
    ("stamps", "minutes"),
    [
        ({}, 40),
        ({"install": {"deletionTimestamp": 30}}, 30),
        ({"delete": {"creationTimestamp": 20}}, 20),
        ({"delete": {"creationTimestamp": 20, "deletionTimestamp": 10}}, 10),
        ({"install": {"creationTimestamp": 10}}, 40),
    ],
)
async def test_a_deletion_waits_since_its_newest_step(stamps: dict[str, dict[str, int]], minutes: int) -> None:
    """A function that was away gives a Job that it ends or makes late its whole time all the same."""

    def ago(since: int) -> str:
        return (datetime.now(UTC) - timedelta(minutes=since)).strftime("%Y-%m-%dT%H:%M:%SZ")

    chart = {**CHART, "metadata": {**CHART["metadata"], "deletionTimestamp": ago(40)}}
    jobs = [made(JOB, f"helm-{part}-demo") for part in stamps]
    for job, found in zip(jobs, stamps.values(), strict=True):
        job["metadata"] |= {field: ago(since) for field, since in found.items()}
    seen = await observe_chart(SYSTEM, "demo", CONFIG, Served(chart, *jobs).reader([CAUSE]))

    assert seen.waited_s == pytest.approx(minutes * 60, abs=30)


async def test_a_sweep_over_large_helm_charts_keeps_few_and_finds_them_as_they_are() -> None:
    """What a sweep left out is read when its owner is looked at, and is not due for it; what differs is."""
    text = "x: " + "y" * (limits.SWEEP_VALUES_BYTES // 2 - 3)
    names = ("a", "b", "c", "d")
    charts = [large_chart(name, text) for name in names]
    secrets = [{**manifest.secret(chart, None), "kind": SECRET.kind} for chart in charts]
    other = {**secrets[0], "data": {**secrets[0]["data"], "values-01_HelmChart.yaml": "eA=="}}
    api = Served(*charts, *secrets[1:], other)
    jobs = Jobs(CONFIG)
    snapshot = await Snapshot.take(api.api, jobs.prefetch())
    assert list(await owning.sweep(jobs, snapshot)) == [f"chart/{SYSTEM}/{name}" for name in names]
    kept = await snapshot.list(HELM_CHART, SYSTEM)
    assert [isinstance(each, LeftOut) for each in kept] == [False, False, True, True]
    for name, is_as_wanted in zip(names, (False, True, True, True), strict=True):
        seen = await owning.observe(jobs, f"chart/{SYSTEM}/{name}", snapshot)
        assert isinstance(seen, ObservedHelmChart)
        assert seen.chart is not None
        assert seen.chart["spec"]["valuesContent"] == text
        assert seen.secret is not None
        wanted = manifest.secret(seen.chart, None)["data"]
        assert all(seen.secret["data"][key] == value for key, value in wanted.items()) == is_as_wanted


def large_chart(name: str, text: str) -> Object:
    marks = {"helmcharts.cattle.io/managed-by": CONFIG.helm_project_operator.controller_name}
    spec = {"chart": "tiny", "targetNamespace": "place", "valuesContent": text}
    return obj(HELM_CHART, name, SYSTEM, labels={CHART_LABEL: "demo"}, annotations=marks, metadata={"uid": "j"}, spec=spec)
