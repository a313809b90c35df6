"""What is tried on a function: scenarios that change the declared state, and what must always hold meanwhile.

A function joins the matrix with one file that makes a `Workload`.  A scenario is a sequence of steps, async functions of a
`Run` that apply, edit and delete objects as people do, with ``@`` in names and values standing for the run.  Before each step
everything that came of the one before is handled.  The steps of ``before`` prepare and are left alone; the others are
disturbed.  What was applied last, and not deleted, is what the run declares.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from tenantry.api import Api
from tenantry.model import kinds
from tenantry.model.flux import names as flux_kinds
from tenantry.model.flux import onboarding
from tenantry.model.kinds import (
    CONFIG_MAP,
    EVENT,
    NAMESPACE,
    NETWORK_POLICY,
    SERVICE_ACCOUNT,
    Key,
    Kind,
    Object,
    is_terminating,
    key_of,
)
from tenantry.model.paas import names as paas_kinds
from tenantry.testing.awaiting import POLL_S
from tenantry.testing.naming import PLACE
from tenantry.testing.world import Moment, version_of

HELD_S, GONE_S = 10.0, 60.0
PACKAGE = "tenantry_workloads"
"""What the files of a folder of workloads are loaded as."""

Step = Callable[["Run"], Awaitable[Any]]
Predicate = Callable[[Moment], str]
"""What is wrong with a moment of the history, in a few words; empty when nothing is."""
Ending = Callable[[list[Object]], str]
"""What is wrong with the objects of a run when it has come to its end, in a few words; empty when nothing is."""

_MODULES = (kinds, paas_kinds, flux_kinds, onboarding)
KINDS: Mapping[str, Kind] = {
    found.kind: found for module in _MODULES for found in vars(module).values() if isinstance(found, Kind)
}


def apply(kind: str, name: str, namespace: str = "", **fields: Any) -> Step:
    """A step that declares an object."""
    return lambda run: run.apply(kind, name, namespace, **fields)


def declare(*manifests: Object) -> Step:
    """A step that declares whole objects."""
    return lambda run: run.declare(manifests)


def namespace(name: str, labels: Mapping[str, str] | None = None, **fields: Any) -> Step:
    """A step that declares a namespace with exactly these labels."""
    return lambda run: run.apply("Namespace", name, labels=dict(labels or {}), **fields)


def bind(name: str, namespace: str, cluster_role: str, *users: str) -> Step:
    """A step that declares a RoleBinding of some users to a ClusterRole."""
    group = "rbac.authorization.k8s.io"
    subjects = [{"apiGroup": group, "kind": "User", "name": user} for user in users]
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": cluster_role}
    return apply("RoleBinding", name, namespace, roleRef=reference, subjects=subjects)


def edit(kind: str, name: str, namespace: str, path: str, *value: Any) -> Step:
    """A step that sets a field of a live object by hand, or removes it when no value is given (JSON pointer)."""
    operation = {"op": "add", "path": path, "value": value[0]} if value else {"op": "remove", "path": path}
    return lambda run: run.edit(kind, name, namespace, operation)


def delete(kind: str, name: str, namespace: str = "", *, gone: bool = False) -> Step:
    """A step that deletes an object; with ``gone`` it ends when the object is away."""
    return lambda run: run.delete(kind, name, namespace, gone=gone)


def together(*steps: Step) -> Step:
    """A step that does several, one after the other, without waiting for what comes of them."""

    async def step(run: Run) -> None:
        for each in steps:
            await each(run)

    return step


@dataclass(frozen=True, slots=True)
class Scenario:
    """Steps with a name; ``other`` is another path to the same declared end (default: its manifests at once).

    With ``gives_away`` what was made is the function's no longer in the end, so nobody makes good what hands do to it.
    With ``drifts`` a step changes by hand what other objects follow: where that cannot be put back at once they do, and each
    may be made and deleted once more.  With ``by_itself`` a step changes what all runs share: while it is performed there is no
    other run, and events and requests about what belongs to none are its own.
    """

    name: str
    steps: Sequence[Step]
    before: Sequence[Step] = ()
    other: Sequence[Step] = ()
    gives_away: bool = False
    drifts: bool = False
    by_itself: bool = False


async def play(steps: Sequence[Step], run: Run) -> None:
    """Do steps one after the other, each when the one before is handled."""
    for step in steps:
        await step(run)
        await run.settle()


def never(obj: Object) -> bool:
    """No object."""
    del obj
    return False


@dataclass(slots=True)
class Workload:
    """Everything the matrix has to know about a function.

    Args:
        function: its name.
        config: the configuration that it runs with, as a mapping.
        tells: whether an object tells people that something is wrong with it.
        leftover: whether a namespace may outlive, with what is in it, what it was made for: not part of what is declared.
        destroys: whether a body that is written, or a step of a JSON patch, takes something away, besides deletions; what makes
            a leftover does.
        safe: predicates over every moment of the history.
        ends: predicates over the end state: what the promises say of it, whatever undisturbed runs came to.
        watched: the kinds that make up the state.
    """

    function: str
    config: Mapping[str, Any] = field(default_factory=dict)
    tells: Callable[[Object], bool] = never
    leftover: Callable[[Object], bool] = never
    destroys: Callable[[Object], bool] = never
    safe: Sequence[Predicate] = ()
    ends: Sequence[Ending] = ()
    sources: Sequence[Mapping[str, Any]] = ()
    """ApiServerSources, as documents, that play from the start: those of other functions, or that the function itself makes."""
    common: Sequence[str] = ()
    """Plurals of what the function keeps in its own namespace for all runs together."""
    installed: Sequence[Object] = ()
    """What an administrator has made before, in this order: ClusterRoles, CRDs of other systems."""
    begins: Sequence[Object] = ()
    """What an administrator makes when the function is installed: what all runs share."""
    can: Sequence[Object] = ()
    """What the function must be allowed to make before anything begins: the API server is slow to find what policies ask."""
    shared: Sequence[Kind] = ()
    """Kinds whose objects all runs share: their changes are in each run's history, and who writes them writes nothing foreign."""
    rehearses: bool = False
    """Whether the function tries what it may write (dry runs): who refuses the write refuses that too."""
    services: Sequence[str] = ()
    """The Services that it is about, where duties of the function run apart; default: all."""
    name: str = ""
    """What the workload is called on the command line: that of its file, since a function may have several."""
    manager: str = ""
    """The field manager of what the function makes, where it is not that of its name."""
    handover: Sequence[str] = ()
    """The labels or annotations that say whose an object is: who changes one gives the object away, which is no drift."""
    replaced: Sequence[str] = ()
    """Kinds whose objects the function makes for one state and never changes: hands only delete them."""
    said_once: Sequence[str] = ()
    """Kinds of what the function says once and does not keep, such as Events that expire: no hand touches them."""
    by_ownership: bool = False
    """Whether an object is the function's by field ownership alone: what hands make anew in its place is theirs, and stays."""
    read_by_others: str = ""
    """How the targets begin that runs of others request too: a plan that disturbs one is performed without any other."""
    largest: int = 3000
    """Objects of runs in one control plane; beyond that a fresh one is taken, because sweeps and common lists read them all."""
    watched: Sequence[Kind] = (NAMESPACE, CONFIG_MAP, SERVICE_ACCOUNT, NETWORK_POLICY, EVENT)
    scenarios: dict[str, Scenario] = field(default_factory=dict)

    def scenario(
        self,
        name: str,
        *steps: Step,
        before: Sequence[Step] = (),
        other: Sequence[Step] = (),
        gives_away: bool = False,
        drifts: bool = False,
        by_itself: bool = False,
    ) -> None:
        """Add a scenario."""
        assert name not in self.scenarios, name
        self.scenarios[name] = Scenario(name, steps, before, other, gives_away, drifts, by_itself)


class _MadeOver(NamedTuple):
    """What hands have made over an object that was going, which it goes with."""

    kind: Kind
    body: Object
    manager: str
    uid: str


class Run:
    """One run of a scenario under a tag of its own: the hands that change the declared state."""

    def __init__(self, tag: str, api: Api, settle: Callable[[], Awaitable[None]]) -> None:
        self.tag = tag
        self.declared: dict[Key, Object] = {}
        self.written: dict[str, int] = {}
        """By plural, the newest resource version that these hands made."""
        self.gone: set[str] = set()
        """The uids of what these hands deleted."""
        self.settle = settle
        self._over: list[_MadeOver] = []
        self._api = api

    def named(self, value: Any) -> Any:
        """A value with the run's tag in the place of every ``@``."""
        match value:
            case str():
                return value.replace(PLACE, self.tag)
            case dict():
                return {self.named(name): self.named(below) for name, below in value.items()}
            case list() | tuple():
                return [self.named(below) for below in value]
            case _:
                return value

    async def apply(self, kind: str, name: str, namespace: str = "", manager: str = "", **fields: Any) -> Object:
        """Declare an object: its labels, annotations and other fields, completely (server-side apply).

        With ``manager`` as another function makes it: these hands do that one's work.
        """
        served = KINDS[kind]
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        metadata |= {part: fields.pop(part) for part in ("labels", "annotations", "finalizers") if part in fields}
        body: Object = self.named({"apiVersion": served.api_version, "kind": kind, "metadata": metadata, **fields})
        self.declared[key_of(body)] = body
        stored = self._note(served, await self._api.apply(served, body, manager=manager))
        if is_terminating(stored):
            self._over.append(_MadeOver(served, body, manager, stored["metadata"]["uid"]))
        return stored

    async def make_again(self) -> bool:
        """Make again what went with what it was made over, which was going: whoever makes such a thing sees that, and does so."""
        made = False
        for each in self._over:
            key, began = key_of(each.body), time.monotonic()
            while (live := await self._api.get(each.kind, key.name, key.namespace)) and live["metadata"]["uid"] == each.uid:
                if time.monotonic() - began > HELD_S:
                    break  # held for good: that is found
                await asyncio.sleep(POLL_S)
            if live is None and self.declared.get(key) is each.body:
                self._note(each.kind, await self._api.apply(each.kind, each.body, manager=each.manager))
                made = True
        self._over.clear()
        return made

    async def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """A live object."""
        return await self._api.get(KINDS[kind], self.named(name), self.named(namespace))

    async def create(self, body: Object) -> Object:
        """Make an object by hand; it is no declaration."""
        kind = KINDS[body["kind"]]
        return self._note(kind, await self._api.create(kind, body))

    async def edit(self, kind: str, name: str, namespace: str, *operations: Mapping[str, Any], subresource: str = "") -> Object:
        """Change a live object by hand (JSON patch); it is no declaration, so whoever owns the field puts it back."""
        served = KINDS[kind]
        patch = [dict(self.named(operation)) for operation in operations]
        stored = await self._api.json_patch(served, self.named(name), self.named(namespace), patch, subresource=subresource)
        return self._note(served, stored)

    async def delete(self, kind: str, name: str, namespace: str = "", *, gone: bool = False) -> None:
        """Delete an object, and its declaration if there was one; with ``gone`` wait until it is away.

        Not for ever: when the event is lost that would take a finalizer off it, or off what is in it, only the sweep at the
        end does it.  Of forty namespaces that go at once the last takes its time.
        """
        served = KINDS[kind]
        key = Key(served.api_version, kind, self.named(namespace), self.named(name))
        self.declared.pop(key, None)
        before = await self._api.get(served, key.name, key.namespace)
        await self._api.delete(served, key.name, key.namespace)
        began = time.monotonic()
        while True:
            live = await self._api.get(served, key.name, key.namespace)
            if live is None or before is None or live["metadata"]["uid"] != before["metadata"]["uid"]:
                if before is not None:
                    self.gone.add(before["metadata"]["uid"])
                return
            self._note(served, live)
            patience_s = (HELD_S if _waits_for_a_finalizer(live) else GONE_S) if gone else 0.0
            if is_terminating(live) and time.monotonic() - began > patience_s:
                return
            await asyncio.sleep(POLL_S)

    def roles(self, value: Any) -> Any:
        """A value with ``@`` in the place of the run's tag."""
        return json.loads(json.dumps(value).replace(self.tag, PLACE))

    async def declare(self, manifests: Sequence[Object]) -> None:
        """Declare objects one after the other, without waiting in between."""
        for manifest in manifests:
            body: Object = self.named(manifest)
            kind = KINDS[body["kind"]]
            self.declared[key_of(body)] = body
            self._note(kind, await self._api.apply(kind, body))

    def _note(self, kind: Kind, stored: Object) -> Object:
        self.written[kind.plural] = max(self.written.get(kind.plural, 0), version_of(stored))
        return stored


def _waits_for_a_finalizer(obj: Object) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    inside = any((each["type"], each["status"]) == ("NamespaceFinalizersRemaining", "True") for each in conditions)
    return inside or bool(obj["metadata"].get("finalizers"))


class NoWorkload(LookupError):
    """There is no workload file for the function; the message says where it should be."""


def workload_names(folder: Path) -> list[str]:
    """The workloads of a folder, as they are called on the command line; files with a leading underscore are shared by some."""
    return sorted(path.stem.replace("_", "-") for path in folder.glob("[!_]*.py"))


def load_workload(function: str, folder: Path) -> Workload:
    """The workload of a function from ``<folder>/<function>.py``, which has it as ``workload``.

    What several workloads share stands in a file beside them and is imported relatively (``from ._scopes import READY``).

    Raises:
        NoWorkload: there is no such file.
    """
    path = folder / f"{function.replace('-', '_')}.py"
    if not path.is_file():
        raise NoWorkload(f"no workload for {function}: write {path} (see docs/faults.md)")
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]  # of another folder, or with scenarios that somebody added
    package = sys.modules[PACKAGE] = ModuleType(PACKAGE)
    package.__path__ = [str(folder.absolute())]
    found = importlib.import_module(f"{PACKAGE}.{path.stem}").workload
    assert isinstance(found, Workload)
    found.name = function
    return found
