"""Where requests and CPU go: by identity, verb and kind, while projects are registered, get charts, are joined, and afterwards.

The API server's own audit log tells who asked for what; each phase is what it got meanwhile.  Writing the log costs time, so the
seconds of a phase are no measure of speed: other sections have those.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import yaml
from pydantic_core import from_json
from tests.bench import convergence, objects, releases, stack
from tests.bench.wire import Wire

from tenantry.local.control_plane import ControlPlane
from tenantry.model.kinds import NAMESPACE, PROJECT_HELM_CHART
from tenantry.model.names import SYSTEM_NAMESPACE

AFTER_S = 10.0
"""Seconds after the work in which what it causes is counted: from when its results are there."""
RESTED_S = 5.0
WITHIN_S = 600.0
MEMBERS = 5
_USER = f"system:serviceaccount:{SYSTEM_NAMESPACE}:"
_POLICY = f"""\
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
    """What came while something was done ``count`` times."""

    name: str
    count: int
    requests: Counter[Asked] = field(default_factory=Counter)
    cpu: dict[str, float] = field(default_factory=dict)


class Log:
    """The audit log of a control plane, read on from where it was read to."""

    def __init__(self, folder: Path) -> None:
        self._policy, self._log = folder / "policy.yaml", folder / "audit.log"
        self._policy.write_text(_POLICY)
        self._read_to = 0

    @property
    def api_server_args(self) -> list[str]:
        """What kube-apiserver must be started with: each event is on disk before its request is answered."""
        return [f"--audit-policy-file={self._policy}", f"--audit-log-path={self._log}", "--audit-log-maxsize=20000"]

    def new(self) -> Counter[Asked]:
        """The requests since this was last called."""
        return Counter(self._events())

    def _events(self) -> Iterator[Asked]:
        with self._log.open("rb") as lines:
            lines.seek(self._read_to)
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self._read_to += len(line)
                event = from_json(line)
                reference = event.get("objectRef") or {"resource": "discovery"}
                resource = "/".join(part for part in (reference["resource"], reference.get("subresource")) if part)
                yield Asked(event["user"]["username"].removeprefix(_USER), event["verb"], resource)


class _Meter:
    def __init__(self, plane: ControlPlane, up: stack.Up, log: Log) -> None:
        self._log = log
        self._processes = {name: psutil.Process(pid) for name, pid in stack.plane_pids(plane).items()}
        self._processes |= {name: up.process_of(name) for name in up.served()} | {"sources and broker": up.process}
        self.phases: list[Phase] = []
        self.begin()

    def begin(self) -> None:
        """What came before belongs to no phase."""
        self._log.new()
        self._cpu = self._now()

    def end(self, name: str, count: int) -> None:
        """A phase ends, and the next begins."""
        now = self._now()
        used = {name: now[name] - self._cpu[name] for name in now}
        self.phases.append(Phase(name, count, self._log.new(), used))
        self._cpu = now

    def _now(self) -> dict[str, float]:
        return {name: stack.cpu_s(process) for name, process in self._processes.items()}


async def measure(plane: ControlPlane, folder: Path, log: Log, projects: int, joins: int) -> list[Phase]:
    """All functions at work, and nobody runs Helm: the functions' own requests are what is looked for."""
    config = folder / "requests.yaml"
    config.write_text(yaml.safe_dump(releases.CONFIGURATION))
    async with stack.Up(plane, folder, config) as up, stack.admin(plane) as wire, stack.admin(plane, 1) as watching:
        wanted = convergence.names(projects, MEMBERS)
        tracker = convergence.tracker_of(wanted)
        await tracker.start(watching)
        await stack.quiet(wire)
        meter = _Meter(plane, up, log)
        stack.say(f"{projects} x {MEMBERS} namespaces")
        await convergence.create(wire, wanted)
        await tracker.wait(WITHIN_S)
        meter.end("registered", projects)
        await _after(meter, "registered", projects, wire)

        async with stack.admin(plane, 1) as more:
            seen = releases.Releases()
            for project in wanted:
                seen.expect(f"demo-{project}-dummy")
            await seen.start(more)
            stack.say(f"{projects} charts")
            await stack.create(wire, [(PROJECT_HELM_CHART, releases.asked(project, f"demo-{project}")) for project in wanted])
            await seen.until(lambda: len(seen.done_at) == projects, WITHIN_S)
            meter.end("charts", projects)
            await _after(meter, "charts", projects, wire)
            stack.say(f"{joins} namespaces that join, one after the other")
            for project in list(wanted)[:joins]:
                name, release = f"join-{project}", f"demo-{project}-dummy"
                await wire.do("POST", NAMESPACE.path(), objects.namespace(name, project))
                await seen.until(lambda name=name, release=release: name in seen.content.get(release, ""))  # type: ignore[misc]
            await stack.quiet(wire)
            meter.end("a namespace joins", joins)
        return meter.phases


async def _after(meter: _Meter, name: str, count: int, wire: Wire) -> None:
    await asyncio.sleep(AFTER_S)
    meter.end(f"{AFTER_S:.0f} s after {name}", count)
    await stack.quiet(wire, RESTED_S)
    meter.end(f"then, until rest, after {name}", count)
