"""Row 5: charts that are asked for, namespaces that join, and rest, for release-provisioning."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import yaml
from pydantic_core import from_json
from tests.bench import objects, rest, stack
from tests.bench.tracker import Tracker
from tests.bench.wire import Watched, Wire

from release_provisioning.archives import chart_contents
from release_provisioning.projects.plan import plan_release
from release_provisioning.projects.report import report_release
from release_provisioning.projects.seen import Contender, ObservedRelease
from tenantry.local.control_plane import ControlPlane
from tenantry.model.config import Config
from tenantry.model.kinds import EVENT, HELM_CHART, HELM_RELEASE, NAMESPACE, PROJECT_HELM_CHART, Object
from tenantry.model.plan import Apply
from tenantry.testing.objects import obj

FUNCTION = "release-provisioning"
CONFIGURATION = {
    "global": {"cattle": {"systemProjectId": "p-system"}},
    "helmProjectOperator": {"helmController": {"enabled": False}},  # who runs Helm is another matter
}
CONFIG = Config.model_validate(CONFIGURATION)
SYSTEM = CONFIG.helm_project_operator.system_namespace
VERSION = CONFIG.helm_project_operator.charts[0].helm_api_version
KINDS = {"namespaces", "projecthelmcharts", "helmcharts", "helmreleases", "events"}


@dataclass
class Figures:
    charts: int
    seconds: list[float] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)
    reads: float = 0.0
    writes: float = 0.0
    joins: list[float] = field(default_factory=list)
    rest_s: float = 0.0
    at_rest: float = 0.0
    sweep_s: float = 0.0
    sweep_reads: float = 0.0
    sweep_writes: float = 0.0
    peak_mb: float = 0.0


def asked(project: str, name: str, version: str = VERSION) -> Object:
    return obj(PROJECT_HELM_CHART, name, f"cattle-project-{project}", spec={"helmApiVersion": version})


class Releases(Watched):
    """Watches namespaces, HelmCharts and HelmReleases, and notes when each release is whole."""

    def __init__(self) -> None:
        super().__init__()
        self.done_at: dict[str, float] = {}
        self.content: dict[str, str] = {}
        self._missing: dict[str, set[str]] = {}

    async def start(self, wire: Wire) -> None:
        for kind in (NAMESPACE, HELM_CHART, HELM_RELEASE):
            await wire.watch(kind.path(), self._seen)

    def expect(self, name: str) -> None:
        self._missing[name] = {NAMESPACE.kind, HELM_CHART.kind, HELM_RELEASE.kind}

    def _seen(self, change: str, found: Any) -> None:
        name = found["metadata"]["name"]
        if change == "DELETED" or name not in self._missing:
            return
        part = NAMESPACE.kind
        if "spec" in found and "release" in found["spec"]:
            part = HELM_RELEASE.kind
        elif "valuesContent" in (found.get("spec") or {}):
            part, self.content[name] = HELM_CHART.kind, found["spec"]["valuesContent"]
        self._missing[name].discard(part)
        self._changed()
        if not self._missing[name]:
            self.done_at.setdefault(name, self.changed_at)


async def measure(
    plane: ControlPlane, folder: Path, functions: Sequence[str], charts: int, rounds: int, joins: int, rest_s: float
) -> Figures:
    """Charts for projects that are there, some rounds of it and of the floor in turn; then joins, rest and a sweep.

    Only these functions are at work, or all if none is named.
    """
    figures = Figures(charts)
    config = folder / "releases.yaml"
    config.write_text(yaml.safe_dump(CONFIGURATION))
    for number in range(rounds):
        stack.say(f"{charts} charts, round {number + 1} of {rounds}")
        async with stack.Up(plane, folder, config, functions) as up:
            projects = await _provision(plane, figures, charts)
            if number == rounds - 1:
                await _join(plane, figures, projects, joins)
                process = up.process_of(FUNCTION)
                figures.rest_s, (figures.at_rest, _) = rest_s, await rest.at_rest(plane, rest_s, KINDS)
                figures.sweep_s, _, figures.sweep_reads, figures.sweep_writes = await rest.sweep(plane, process, FUNCTION, KINDS)
                figures.peak_mb = stack.peak_mb(process)
        figures.floors.append(await floor(plane, charts))
    return figures


async def _projects(wire: Wire, watching: Wire, charts: int) -> list[str]:
    projects = [f"p-{token_hex(4)}" for _ in range(charts)]
    tracker = Tracker()
    for project in projects:
        tracker.expect_project(project)
        tracker.expect_member(f"team-{project}")
    await tracker.start(watching)
    for project in projects:
        await wire.do("POST", NAMESPACE.path(), objects.namespace(f"team-{project}", project))
    await tracker.wait(60)
    await stack.quiet(wire)
    return projects


async def _provision(plane: ControlPlane, figures: Figures, charts: int) -> list[str]:
    async with stack.admin(plane) as wire, stack.admin(plane, 1) as watching, stack.admin(plane, 1) as more:
        projects = await _projects(wire, watching, charts)
        seen = Releases()
        for project in projects:
            seen.expect(f"demo-{project}-dummy")
        await seen.start(more)
        before = await stack.request_counts(wire, KINDS)
        began = time.perf_counter()
        await stack.create(wire, [(PROJECT_HELM_CHART, asked(project, f"demo-{project}")) for project in projects])
        await seen.until(lambda: len(seen.done_at) == charts)
        figures.seconds.append(max(seen.done_at.values()) - began)
        await stack.quiet(wire)
        counts = stack.difference(await stack.request_counts(wire, KINDS), before)
        figures.reads, figures.writes = stack.reads(counts) / charts, stack.all_writes(counts) / charts - 1
    return projects


async def floor(plane: ControlPlane, charts: int) -> float:
    """What one run reads and writes for a chart, straight to the API server: no watch, no event, no function."""
    contents = chart_contents(CONFIG)
    async with stack.admin(plane) as wire:
        projects = [f"p-{token_hex(4)}" for _ in range(charts)]
        for project in projects:
            await wire.do("POST", NAMESPACE.path(), objects.namespace(f"cattle-project-{project}", ""))
        await stack.quiet(wire)
        began = time.perf_counter()
        await stack.in_flight(lambda project: _one(wire, project, contents), projects)
        seconds = time.perf_counter() - began
        await stack.quiet(wire)
    return seconds


async def _one(wire: Wire, project: str, contents: dict[str, str]) -> None:
    name, home = f"demo-{project}", f"cattle-project-{project}"
    release = f"{name}-dummy"
    stored = from_json(await wire.do("POST", PROJECT_HELM_CHART.path(home), asked(project, name, "bench.example/v1")))
    await wire.do("GET", f"{PROJECT_HELM_CHART.path(home, name)}")
    await wire.do("GET", f"{PROJECT_HELM_CHART.path()}?fieldSelector=metadata.name%3D{name}")
    for kind in (HELM_CHART, HELM_RELEASE):
        await wire.do("GET", kind.path(SYSTEM, release), but=(404,))
    await wire.do("GET", NAMESPACE.path(name=release), but=(404,))
    await wire.do("GET", NAMESPACE.path(name=home))
    await wire.do("GET", f"{NAMESPACE.path()}?labelSelector=bench.cattle.io%2FprojectId%3D{project}")
    asking = {**stored, "apiVersion": PROJECT_HELM_CHART.api_version, "kind": PROJECT_HELM_CHART.kind}
    member = objects.namespace(f"team-{project}", project)
    seen = ObservedRelease(release, (Contender(asking, CONFIG.helm_project_operator.charts[0], project),), members=(member,))
    for write in (*plan_release(seen, contents, CONFIG).writes(), *report_release(seen, (), CONFIG).writes()):
        assert isinstance(write, Apply)
        body = _timed(write.wanted)
        path = write.kind.path(body["metadata"].get("namespace", ""), body["metadata"]["name"])
        if write.kind is NAMESPACE:
            await wire.do("POST", f"{NAMESPACE.path()}?fieldManager=bench-floor", objects.foreign(body))
            continue
        path += f"/{write.subresource}" if write.subresource else ""
        await wire.apply(path, body)
    event = objects.event(asking, project)
    event["metadata"]["namespace"] = home
    await wire.do("POST", f"{EVENT.path(home)}?fieldManager=bench-floor", event)


def _timed(body: Object) -> Object:
    """Conditions with the time that the engine stamps on them."""
    status = body.get("status")
    if not status:
        return body
    conditions = [{**each, "lastTransitionTime": "2026-01-01T00:00:00Z"} for each in status["conditions"]]
    return {**body, "status": {**status, "conditions": conditions}}


async def _join(plane: ControlPlane, figures: Figures, projects: Sequence[str], joins: int) -> None:
    stack.say(f"{joins} namespaces that join")
    async with stack.admin(plane, 1) as wire, stack.admin(plane, 1) as watching:
        seen = Releases()
        for project in projects:
            seen.expect(f"demo-{project}-dummy")
        await seen.start(watching)
        for index in range(joins):
            project = projects[index % len(projects)]
            name, release = f"join-{index}-{project}", f"demo-{project}-dummy"

            def joined(name: str = name, release: str = release) -> bool:
                return name in seen.content.get(release, "")

            began = time.perf_counter()
            await wire.do("POST", NAMESPACE.path(), objects.namespace(name, project))
            ended = await seen.until(joined)
            figures.joins.append((ended - began) * 1000)
            await stack.quiet(wire, 0.4)
