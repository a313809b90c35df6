"""Where requests and CPU go: by identity, verb and kind, while projects or Paas come, change, and afterwards.

The API server's own audit log says who asked for what; a phase has what was answered before it ended.  Writing the log costs
time, so the seconds of a phase are no measure of speed: other sections have those.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml
from tests.bench import convergence, objects, paas, releases, stack

from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import NAMESPACE, PROJECT_HELM_CHART
from tenantry.model.names import SYSTEM_NAMESPACE
from tenantry.model.paas.names import PAAS, PAAS_CONFIG
from tenantry.testing.audit import AuditLog
from tenantry.testing.objects import obj

AFTER_S = 10.0
"""Seconds after the work in which what it causes is counted: from when its results are there."""
RESTED_S = 5.0
WITHIN_S = 600.0
MEMBERS = 5
_USER = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
POLICY = f"""\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    verbs: [watch]
  - level: Metadata
    userGroups: ["system:serviceaccounts:{SYSTEM_NAMESPACE}"]
  - level: None
"""


@dataclass(frozen=True, slots=True, order=True)
class Asked:
    """One sort of request; ``resource`` with its subresource."""

    identity: str
    verb: str
    resource: str


@dataclass
class Phase:
    """What came until ``ended``, while something was done ``count`` times."""

    name: str
    count: int
    ended: datetime
    cpu: dict[str, float]
    requests: Counter[Asked] = field(default_factory=Counter)
    conflicts: int = 0
    """Requests that were answered 409."""


class _Meter:
    """Phases, one after the other; what came before the first is told apart by ``began``."""

    def __init__(self, plane: ControlPlane, up: stack.Up) -> None:
        self._plane, self._up = plane, up
        self.began, self._cpu = datetime.now(UTC), stack.Cpu(plane, up)
        self.phases: list[Phase] = []

    def end(self, name: str, count: int) -> None:
        """A phase ends, and the next begins."""
        self.phases.append(Phase(name, count, datetime.now(UTC), self._cpu.used()))
        self._cpu = stack.Cpu(self._plane, self._up)

    def counted(self, log: AuditLog) -> list[Phase]:
        """The phases with their requests."""
        ends = [phase.ended for phase in self.phases]
        for event in log.events():
            answered = datetime.fromisoformat(event["stageTimestamp"])
            if self.began < answered <= ends[-1]:
                phase = self.phases[bisect_left(ends, answered)]
                phase.requests[_asked(event)] += 1
                phase.conflicts += event["responseStatus"]["code"] == HTTPStatus.CONFLICT
        return self.phases


def _asked(event: Any) -> Asked:
    reference = event.get("objectRef") or {"resource": "discovery"}
    resource = "/".join(part for part in (reference["resource"], reference.get("subresource")) if part)
    return Asked(event["user"]["username"].removeprefix(_USER), event["verb"], resource)


async def measure(plane: ControlPlane, folder: Path, log: AuditLog, projects: int, joins: int, instances: int = 1) -> list[Phase]:
    """All functions at work, and nobody runs Helm: the functions' own requests are what is looked for."""
    config = folder / "requests.yaml"
    config.write_text(yaml.safe_dump(releases.CONFIGURATION))
    async with (
        stack.Up(plane, folder, config, instances=instances) as up,
        stack.admin(plane) as wire,
        stack.admin(plane, 1) as watching,
        stack.admin(plane, 1) as more,
    ):
        wanted = convergence.names(projects, MEMBERS)
        tracker = convergence.tracker_of(wanted)
        await tracker.start(watching)
        await stack.quiet(wire)
        meter = _Meter(plane, up)

        async def after(name: str) -> None:
            meter.end(name, projects)
            await asyncio.sleep(AFTER_S)
            meter.end(f"{AFTER_S:.0f} s after {name}", projects)
            await stack.quiet(wire, RESTED_S)
            meter.end(f"then, until rest, after {name}", projects)

        stack.say(f"{projects} x {MEMBERS} namespaces")
        await convergence.create(wire, wanted)
        await tracker.wait(WITHIN_S)
        await after("registered")

        seen = releases.Releases()
        for project in wanted:
            seen.expect(f"demo-{project}-dummy")
        await seen.start(more)
        stack.say(f"{projects} charts")
        await stack.create(wire, [(PROJECT_HELM_CHART, releases.asked(project, f"demo-{project}")) for project in wanted])
        await seen.until(lambda: len(seen.done_at) == projects, WITHIN_S)
        await after("charts")

        stack.say(f"{joins} namespaces that join, one after the other")
        for project in list(wanted)[:joins]:
            name, release = f"join-{project}", f"demo-{project}-dummy"
            await wire.do("POST", NAMESPACE.path(), objects.namespace(name, project))
            await seen.until(lambda name=name, release=release: name in seen.content.get(release, ""))  # type: ignore[misc]
        await stack.quiet(wire)
        meter.end("a namespace joins", joins)
    return meter.counted(log)


async def of_paas(plane: ControlPlane, folder: Path, log: AuditLog, count: int, ones: int) -> list[Phase]:
    """The same of Paas: many at once, a mapping that all have, and single ones on a full cluster."""
    names = [f"r{number}" for number in range(count)]
    async with stack.admin(plane) as wire, stack.admin(plane, 1) as watching:
        await paas.prepare(wire)
        async with stack.Up(plane, folder, functions=paas.FUNCTIONS) as up:
            await wire.do("POST", PAAS_CONFIG.path(), paas.config())
            seen = paas.Parts()
            await seen.start(watching)
            await paas.rested(wire)
            meter = _Meter(plane, up)

            async def after(name: str) -> None:
                meter.end(name, count)
                await paas.rested(wire, RESTED_S)
                meter.end(f"then, until rest, after {name}", count)

            stack.say(f"{count} Paas")
            seen.expect(part for name in names for part in paas.parts(name))
            await stack.create(wire, [(PAAS, obj(PAAS, name, spec=paas.spec())) for name in names])
            await seen.wait()
            await after("Paas complete")

            stack.say("a mapping that all namespaces have changes")
            seen.expect(part for name in names for part in paas.mapped_parts(name, "edit", "view"))
            await paas.configure(wire, paas.config("edit"))
            await seen.wait()
            await after("a mapping changed")
            seen.expect(part for name in names for part in paas.mapped_parts(name, "view", "edit"))
            await paas.configure(wire, paas.config())
            await seen.wait()
            await after("changed back")

            stack.say(f"{ones} more, one after the other")
            for name in [f"s{number}" for number in range(ones)]:
                names.append(name)
                seen.expect(paas.parts(name))
                await wire.do("POST", PAAS.path(), obj(PAAS, name, spec=paas.spec()))
                await seen.wait()
                await paas.rested(wire, 0.5)
            meter.end("one more Paas", ones)

            stack.say("all are deleted")
            seen.expect((PAAS.kind, name, None) for name in names)
            await stack.in_flight(lambda name: wire.do("DELETE", PAAS.path("", name)), names)
            await seen.wait()
            meter.end("a Paas deleted", len(names))
    return meter.counted(log)
