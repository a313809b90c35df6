"""What decisions as events cost: a run with and without somebody who listens, projects with both, and the ledger of 10,000."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tests.bench import convergence, stack

from tenantry.api import Api
from tenantry.api.turns import Turns
from tenantry.engine import Engine, Handler, Owner, Unit
from tenantry.engine.reader import Reader
from tenantry.engine.snapshot import Prefetch
from tenantry.engine.unit import Stages
from tenantry.local.control_plane import ControlPlane
from tenantry.model.decision import DecisionMade
from tenantry.model.event import Event
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, Key, Kind, Object, object_of
from tenantry.model.limits import MIB
from tenantry.model.plan import Apply, Plan
from tenantry.serving.cloudevents import encode_binary
from tenantry.serving.decisions import Outbox
from tenantry.serving.ledger.asked import FOREVER, asked_for, decisions, owner_at, reading
from tenantry.serving.ledger.gaps import missing
from tenantry.serving.ledger.record import told_in
from tenantry.serving.ledger.store import Ledger
from tenantry.serving.signing import signature

KEY = b"a key of the bench"
HOUR_MS = 3_600_000
BEGAN_MS = 1_700_000_000_000


@dataclass
class Figures:
    """Microseconds of CPU for a run with a write, by who listens; rounds of projects with and without; the ledger."""

    runs_us: dict[str, list[float]] = field(default_factory=dict)
    projects: int = 0
    members: int = 0
    on: list[convergence.Round] = field(default_factory=list)
    off: list[convergence.Round] = field(default_factory=list)
    kept: int = 0
    ledger: dict[str, float] = field(default_factory=dict)


class _Cluster:
    """An API server that answers at once, from a few objects."""

    field_manager = "tenantry-bench"
    turns = Turns(16)

    def __init__(self) -> None:
        self._version = 0

    def has_large(self, kind: Kind) -> bool:
        return False

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object:
        metadata = {"name": name, "namespace": namespace, "uid": "u", "resourceVersion": "1"}
        return {**object_of(kind, metadata), "data": {"k": "old"}}

    async def apply(self, kind: Kind, body: Object, **_: Any) -> Object:
        self._version += 2
        return {**body, "metadata": {**body["metadata"], "resourceVersion": str(self._version)}}


class _Projects(Unit):
    """Reads a namespace and writes two objects, as a small unit does."""

    name = "projects"
    kinds = frozenset({NAMESPACE})

    def __init__(self) -> None:
        self.handlers = {"project": Handler(observe=self._observe, plan=self._plan)}

    async def owners(self, key: Key, hint: Mapping[str, str], reader: Reader) -> Stages:
        return [[Owner("project", key.name)]]

    def prefetch(self) -> Sequence[Prefetch]:
        return []

    async def sweep(self, reader: Reader) -> Sequence[Owner]:
        return []

    @staticmethod
    async def _observe(owner: Owner, reader: Reader) -> list[Object]:
        await reader.get(NAMESPACE, owner.name)
        return [cast(Object, await reader.get(CONFIG_MAP, name, owner.name)) for name in ("a", "b")]

    @staticmethod
    def _plan(live: list[Object]) -> Plan:
        names = (each["metadata"] for each in live)
        wanted = [object_of(CONFIG_MAP, {"name": each["name"], "namespace": each["namespace"]}) for each in names]
        return Plan((tuple(Apply(CONFIG_MAP, {**new, "data": {"k": "v"}}, old) for new, old in zip(wanted, live, strict=True)),))


def _look(number: int) -> Event:
    data = object_of(NAMESPACE, {"name": f"p-{number}"})
    return Event(f"event-{number}", "/s", "dev.knative.apiserver.resource.update", time="2026-11-27T15:00:00Z", data=data)


async def _cpu_us(runs: int, on_decision: Callable[[DecisionMade], None] | None) -> float:
    engine = Engine("bench", cast(Api, _Cluster()), [_Projects()], on_decision=on_decision)
    events = [_look(number) for number in range(runs)]
    gc.collect()
    began = time.process_time()
    for event in events:
        verdict = await engine.handle(event)
        assert (verdict.status, verdict.writes) == (204, 2)
    return (time.process_time() - began) * 1e6 / runs


async def _sending_us(runs: int) -> float:
    """With events that are made, signed and encoded as for the wire; what HTTP takes is in the rounds of projects."""
    sent = 0

    async def send(event: Event) -> None:
        nonlocal sent
        encode_binary(event)
        sent += 1

    outbox = Outbox(send, "bench", "bench")
    outbox.open()
    outbox._key = KEY
    engine = Engine("bench", cast(Api, _Cluster()), [_Projects()], on_decision=outbox.take)
    events = [_look(number) for number in range(runs)]
    gc.collect()
    began = time.process_time()
    for event in events:
        await engine.handle(event)
    await outbox.close()
    used = time.process_time() - began
    assert sent + outbox.dropped == runs + 2
    return used * 1e6 / runs


async def runs(figures: Figures, count: int, rounds: int) -> None:
    """Rounds in turn, so that all see the same neighbours."""
    ways = {"nobody listens": None, "noted": lambda _: None, "sent": ...}
    for number in range(rounds + 1):
        for name, listener in ways.items():
            used = await (_sending_us(count) if listener is ... else _cpu_us(count, cast(Any, listener)))
            if number:  # the first warms up
                figures.runs_us.setdefault(name, []).append(used)


async def projects(plane: ControlPlane, folder: Path, figures: Figures, count: int, members: int, rounds: int) -> None:
    """The same projects with decisions switched on, to a ledger, and off."""
    config = folder / "decisions.yaml"
    config.write_text("decisions: {enabled: true}\n")
    figures.projects, figures.members = count, members
    for number in range(rounds):
        for on in (True, False) if number % 2 else (False, True):
            stack.say(f"{count} x {members} with decisions {'on' if on else 'off'}, {number + 1} of {rounds}")
            async with stack.Up(plane, folder, config if on else None, (stack.FUNCTION,)) as up:
                (figures.on if on else figures.off).append(await convergence.converge(plane, up, count, members))


def _told(number: int) -> Object:
    """As a project's run tells of itself: one cause, six inputs, four writes."""
    project = number % 500
    home = f"cattle-project-p-{project}"

    def about(kind: str, name: str, namespace: str = "", **more: Any) -> Object:
        return {"apiVersion": "v1", "kind": kind, **({"namespace": namespace} if namespace else {}), "name": name, **more}

    inputs = [about("ConfigMap", f"c-{n}", home, resourceVersion=str(100_000 + number * 7 + n)) for n in range(6)]
    changed = ["metadata.labels[helm.cattle.io/projectId]", "data[values.yaml]", "data[questions.yaml]"]
    writes = [
        about("ConfigMap", f"c-{n}", home, verb="update", resourceVersion=str(number * 9 + n), changed=changed) for n in range(3)
    ]
    subject = {"role": "Role/monitored-view", "subjectsAdded": [f"User/person-{number % 2000}"]}
    writes.append(
        about("RoleBinding", "b", home, verb="update", resourceVersion=str(number * 9 + 4), changed=["subjects"], **subject)
    )
    event = f"{number:08x}-4d2a-4aef-9242-0ac258126762"
    return {
        "type": "dev.tenantry.decision", "instance": "namespace-registration-0123456789", "sequence": number + 1,
        "function": "namespace-registration", "service": "namespace-registration", "time": "2026-11-27T15:00:00Z",
        "unit": "projects", "owner": f"project/p-{project}", "part": 1, "parts": 1,
        "causes": [about("Namespace", f"team-{number % 2500}", event=event, time="2026-11-27T15:00:00.886264Z")],
        "inputs": inputs, "writes": writes, "verdict": {"status": 204, "reason": "done", "complete": True},
        "beganMs": BEGAN_MS + number * 1000, "durationMs": 30,
    }  # fmt: skip


def ledger(figures: Figures, count: int) -> None:
    """The file of many decisions, and how long questions to it take."""
    with tempfile.TemporaryDirectory(prefix="tenantry-ledger-") as folder:
        path = Path(folder) / "ledger.db"
        made = Ledger(path, max_age_days=3650, max_bytes=1000 * MIB)
        made.open()
        data = [_told(number) for number in range(count)]
        began = time.process_time()
        for each in data:
            signature(KEY, each)
            told_in(each)
        figures.ledger["checked: CPU us each"] = (time.process_time() - began) * 1e6 / count
        told = [(told_in(each), "") for each in data]
        began = time.perf_counter()
        for at in range(0, count, 20):
            made.add(told[at : at + 20])
        figures.ledger["kept, 20 at a time: ms each"] = (time.perf_counter() - began) * 1e3 / count
        made.prune()
        made.close()
        figures.kept = count
        figures.ledger["size: MiB"] = sum(each.stat().st_size for each in path.parent.iterdir()) / MIB
        last = BEGAN_MS + count * 1000
        questions: dict[str, Callable[[Any], object]] = {
            "the newest 50": lambda c: decisions(c, asked_for(""), 0, FOREVER, 50),
            "an owner": lambda c: decisions(c, asked_for("project/p-7"), 0, FOREVER, 50),
            "an object": lambda c: decisions(c, asked_for("ConfigMap/cattle-project-p-7/c-1"), 0, FOREVER, 50),
            "a namespace": lambda c: decisions(c, asked_for("cattle-project-p-7"), 0, FOREVER, 50),
            "a user": lambda c: decisions(c, asked_for("person-7"), 0, FOREVER, 50),
            "an owner at a time": lambda c: owner_at(c, "project/p-7", last - HOUR_MS),
            "what is missing": lambda c: missing(c, 0, FOREVER),
        }
        for name, ask in questions.items():
            times = []
            for _ in range(5):
                began = time.perf_counter()
                with reading(path) as connection:
                    assert ask(connection) is not None
                times.append(time.perf_counter() - began)
            figures.ledger[f"{name}: ms"] = sorted(times)[2] * 1e3
