"""Plans compared with what then really happens: each step of a scenario is foreseen, then done, and the writes compared."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from tenantry.api import Api
from tenantry.engine.overlay.api import OverlayApi
from tenantry.engine.overlay.asking import DryRuns
from tenantry.engine.overlay.store import Written, place_of
from tenantry.model.kinds import EVENT, JOB, Key, Kind, Object, is_terminating
from tenantry.serving.config import load_config
from tenantry.serving.foresight import Foreseen, Foresight, foresight
from tenantry.serving.installed import descriptor_of
from tenantry.testing import eventually
from tenantry.testing.arena import HANDS, Arena
from tenantry.testing.masks import state_of
from tenantry.testing.naming import role_of, tag_of
from tenantry.testing.recording import Exchange
from tenantry.testing.workload import KINDS, Run, Scenario, Step

FILLED_IN = (JOB.kind, "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
"""Kinds of Kubernetes' own in which the API server fills in most fields: a plan does not compute these defaults."""
LATE_S = 10.0
"""So long it is waited for what was foreseen and has not happened yet: what all runs share is announced apart."""
Write = tuple[str, str]
"""Verb and role of an object."""
_BY_PLURAL = {(kind.api_version, kind.plural): kind for kind in KINDS.values()}
_TIMES = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_COUNTS = ("metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp")


class _Hands:
    """The API of hands over an overlay; of what they do to pods the Job controller's part is done, too."""

    def __init__(self, over: OverlayApi, unasked: OverlayApi) -> None:
        self._over = over
        self._unasked = unasked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._over, name)

    async def request(self, method: str, path: str, query: Any = None, body: Any = None) -> Object:
        """The end of a pod, which is that of its Job; else as ever."""
        if method != "PUT":
            return await self._over.request(method, path, query, body)
        name, namespace = body["metadata"]["labels"]["batch.kubernetes.io/job-name"], body["metadata"]["namespace"]
        told = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
        done = body["status"]["phase"] == "Succeeded"
        ended = {"type": "Complete", "status": "True"} if done else {"type": "Failed", "status": "True", **told}
        steps = [{"op": "add", "path": "/status", "value": {"conditions": [ended]}}]
        return await self._unasked.json_patch(JOB, name, namespace, steps, subresource="status")


class Shadow(Run):
    """The hands of a run over an overlay: the same steps, of which nothing is done."""

    def __init__(self, run: Run, future: Foresight) -> None:
        asked = OverlayApi(future.hands.live, future.overlay, ask=DryRuns())  # what is refused to hands is no part of a plan
        super().__init__(run.tag, cast(Api, _Hands(asked, future.hands)), self._rest)
        self.declared = dict(run.declared)
        self._future = future

    async def _rest(self) -> None:
        await self._future.to_rest()

    async def delete(self, kind: str, name: str, namespace: str = "", *, gone: bool = False) -> None:
        """Delete an object; who waits until it is gone waits for what comes of that."""
        served = KINDS[kind]
        self.declared.pop(Key(served.api_version, kind, self.named(namespace), self.named(name)), None)
        await self._api.delete(served, self.named(name), self.named(namespace))
        if gone:
            await self._rest()


GARBAGE = "the garbage collector and the function both delete what an owner left: whoever comes first"

FIRST = "Kubernetes and the function both make the ServiceAccount of a new namespace: whoever comes first"

MORE = "what is made may be made at once or be added to: it depends on what the run that makes it finds done"
MEANWHILE = "what goes with its namespace may be told something before it is gone"
TAKEN_BACK = "what is said for a moment, and taken back, depends on what a run finds done"


@dataclass
class Compared:
    """One step: what was foreseen and what happened, and the objects in the end."""

    step: str
    foreseen: set[Write]
    happened: set[Write]
    garbage: set[str] = field(default_factory=set)
    """What an owner left, and is gone in the end, as foreseen."""
    gone: set[str] = field(default_factory=set)
    """What was there before, and is gone in the end, as foreseen."""
    unsure: set[Write] = field(default_factory=set)
    """Writes that were made, of which the record cannot tell whether they changed something: others were under way."""
    unchanged: set[str] = field(default_factory=set)
    """What is in the end as it was before, as foreseen."""
    states: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def _apart(self) -> dict[str, Write]:
        return {f"foreseen only: {' '.join(each)}": each for each in sorted(self.foreseen - self.happened - self.unsure)} | {
            f"happened only: {' '.join(each)}": each for each in sorted(self.happened - self.foreseen)
        }

    @property
    def differences(self) -> list[str]:
        """A line for each that nothing explains."""
        lines = [line for line, write in self._apart().items() if not self._why(write)]
        return [f"{self.step}: {line}" for line in (*lines, *self.states, *self.problems)]

    @property
    def explained(self) -> list[str]:
        """A line for each that is known, with why it is so."""
        return [f"{self.step}: {line}: {why}" for line, write in self._apart().items() if (why := self._why(write))]

    def _why(self, write: Write) -> str:
        verb, role = write
        if verb == "delete" and role in self.garbage:
            return GARBAGE
        if role.startswith("ServiceAccount ") and role.endswith("/default") and verb in ("create", "update"):
            both = self.foreseen | self.happened
            return FIRST if {("create", role), ("update", role)} <= both else ""
        if verb == "update" and {("create", role)} <= self.foreseen & self.happened:
            return MORE
        if verb == "update" and role in self.unchanged:
            return TAKEN_BACK
        if verb == "update" and role in self.gone:
            return MEANWHILE
        about = role.rpartition(" of ")[2]
        names = {f"{each.partition(' ')[0]} {each.rpartition('/')[2].rpartition(' ')[2]}" for each in self.garbage}
        return GARBAGE if role.startswith("Event ") and about in names else ""


async def compare(arena: Arena, scenario: Scenario) -> list[Compared]:
    """Foresee each step of a scenario before it is done."""
    run, _ = await arena.open()
    if scenario.by_itself:
        arena.only = run.tag
    compared = []
    try:
        await arena.sweep()  # what was begun before has come to rest
        for number, step in enumerate([*scenario.before, *scenario.steps], 1):
            compared.append(await _compare(arena, run, step, f"{scenario.name} step {number}", whole=scenario.by_itself))
    finally:
        arena.only = ""
        await arena.close(run.tag)
    return compared


async def _compare(arena: Arena, run: Run, step: Step, name: str, *, whole: bool) -> Compared:
    """Foresee a step, do it, and wait until all that was foreseen has happened, or for some time."""
    mark, before = len(arena.exchanges(run.tag)), dict(arena.world.of(run.tag))
    descriptor = descriptor_of(arena.workload.function)
    services = [each for each in descriptor.services if each.name in (arena.workload.services or [each.name])]
    config = load_config(arena._folder / "tenantry.yaml")
    async with foresight(config, services, kubeconfig=arena.kubeconfig, hands=HANDS) as future:
        await step(Shadow(run, future))
        found = await future.to_rest()
    expected = _laid(future, before, run.tag, {kind.kind for kind in arena.world.kinds})
    foreseen = _foreseen(found, run.tag, whole=whole)
    problems = [f"{each.unit} {role_of(each.about)}: {each.reason}" for each in found.problems]

    async def judged() -> Compared:
        await run.settle()
        world = arena.world.of(run.tag)
        return Compared(
            name,
            foreseen,
            _happened(arena.exchanges(run.tag)[mark:]),
            _garbage(before, expected, world),
            {role_of(str(key)) for key in before.keys() - expected.keys() - world.keys()},
            _happened(arena.exchanges(run.tag)[mark:], changed=False),
            _unchanged(before, expected, run.tag),
            _states(expected, world, run.tag),
            [*problems, *filter(None, [found.restless])],
        )

    await step(run)
    seen: list[Compared] = []

    async def as_foreseen() -> bool:
        seen.append(await judged())
        return not seen[-1].differences

    with contextlib.suppress(AssertionError):
        await eventually(as_foreseen, within=LATE_S, what=name)
    return seen[-1]


def _unchanged(before: Mapping[Key, Object], expected: Mapping[Key, Object], tag: str) -> set[str]:
    one, two = (state_of(_named(each), tag) for each in (before, expected))
    same = set(one) & set(two)
    return {role for role in same if {**one[role], _COUNTS[1]: ""} == {**two[role], _COUNTS[1]: ""}}


def _garbage(before: Mapping[Key, Object], expected: Mapping[Key, Object], found: Mapping[Key, Object]) -> set[str]:
    left = {key for key, obj in before.items() if obj["metadata"].get("ownerReferences")}
    return {role_of(str(key)) for key in left - expected.keys() - found.keys()}


def _foreseen(found: Foreseen, tag: str, *, whole: bool) -> set[Write]:
    writes = [each for each in found.written if each.actor.unit and _is_of(each, tag, whole=whole)]
    return {(_verb(each), _role(each.kind, each.key, each.after or each.before)) for each in writes}


def _is_of(written: Written, tag: str, *, whole: bool) -> bool:
    return whole or tag_of(written.key.namespace, written.key.name) == tag


def _verb(written: Written) -> str:
    return "update" if written.verb == "status" else written.verb


def _happened(exchanges: Iterable[Exchange], *, changed: bool = True) -> set[Write]:
    """The writes that changed something, or, as far as the record can tell, did not."""
    found = set()
    for each in exchanges:
        if not each.is_write or each.changed != changed or not 200 <= each.status < 300:
            continue
        kind = _BY_PLURAL.get((each.api_version, each.resource))
        body = each.stored if isinstance(each.stored, dict) else {}
        verb = "create" if each.verb == "create" or each.status == 201 else "delete" if each.verb == "delete" else "update"
        if kind is None:
            found.add((verb, role_of(f"{each.resource} {each.namespace}/{each.name}")))
            continue
        key = Key(kind.api_version, kind.kind, each.namespace if kind.namespaced else "", each.name)
        found.add((verb, _role(kind, key, body)))
    return found


def _role(kind: Kind, key: Key, obj: Object | None) -> str:
    if kind.kind == EVENT.kind and obj and obj.get("regarding"):
        return role_of(f"Event {obj.get('reason')} of {obj['regarding']['kind']} {obj['regarding'].get('name')}")
    return role_of(str(key))


def _laid(future: Foresight, before: Mapping[Key, Object], tag: str, kinds: set[str]) -> dict[Key, Object]:
    """The objects of a run as they would be: those that there were, and what is laid on."""
    found = {key: obj for key, obj in before.items() if place_of(_kind(key), key.name, key.namespace) not in future.overlay.laid}
    for kind, obj in future.overlay.laid.values():
        if obj is not None and kind.kind in kinds:
            metadata = obj["metadata"]
            key = Key(kind.api_version, kind.kind, metadata.get("namespace") or "", metadata["name"])
            if tag_of(key.namespace, key.name) == tag and not is_terminating(obj):
                found[key] = {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
    over = future.overlay
    return {key: obj for key, obj in found.items() if not over.is_gone(key.namespace) and not over.is_leaving(key.namespace)}


def _kind(key: Key) -> Kind:
    return Kind(key.api_version, key.kind, "", bool(key.namespace))


def _states(expected: Mapping[Key, Object], found: Mapping[Key, Object], tag: str) -> list[str]:
    """Where the objects in the end are not as foreseen."""
    one, two = (state_of(_named(each), tag) for each in (expected, found))
    lines = [f"state: {role} is missing" for role in sorted(set(one) - set(two))]
    lines += [f"state: {role} was not foreseen" for role in sorted(set(two) - set(one))]
    for role in sorted(set(one) & set(two)):
        if role.startswith(FILLED_IN):
            continue
        for path in sorted(set(one[role]) | set(two[role])):
            if path not in _COUNTS and _plain(one[role].get(path)) != _plain(two[role].get(path)):
                lines.append(f"state: {role} {path}: foreseen {one[role].get(path)!r}, found {two[role].get(path)!r}")
    return lines


def _plain(value: Any) -> Any:
    """A value without hashes of uids in it."""
    return role_of(value) if isinstance(value, str) else value


def _named(objects: Mapping[Key, Object]) -> dict[Key, Object]:
    """Objects in which uids are names, and times are none."""
    uids = {obj["metadata"]["uid"]: f"uid of {key.kind} {key.name}" for key, obj in objects.items()}
    text = json.dumps(
        [[list(map(str, (key.api_version, key.kind, key.namespace, key.name))), obj] for key, obj in objects.items()]
    )
    for uid, name in uids.items():
        text = text.replace(uid, name)
    text = _TIMES.sub("(time)", text)
    return {Key(*key): obj for key, obj in json.loads(text)}
