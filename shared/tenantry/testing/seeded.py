"""Seeded bugs: the kit proves that it finds what it is made to find.

``python -m tenantry.testing.seeded NAME -- serve ...`` plants one bug in the process and then goes on as `tenantry serve`.
Each bug is one that controllers really have.  Nothing in production code knows of this module.
"""

from __future__ import annotations

import asyncio
import importlib
import runpy
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from tenantry.api import Api
from tenantry.api.errors import ConflictError
from tenantry.model.kinds import labels_of
from tenantry.model.paas.names import MANAGED_BY_PAAS
from tenantry.serving.installed import descriptors
from tenantry.testing.workload import never

Plant = Callable[[], None]
BUGS: dict[str, Plant] = {}
ONLY: dict[str, frozenset[str]] = {}
"""Bugs that only some functions, or some workloads of one, can have, and which."""
STALE_S = 30.0
BURST_S = 1.0


def bug(*functions: str) -> Callable[[Plant], Plant]:
    """Register a bug under its Python name; with ``functions``, or workloads, only those can have it."""

    def register(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        BUGS[name] = plant
        if functions:
            ONLY[name] = frozenset(functions)
        return plant

    return register


def bugs_of(function: str, workload: str = "") -> list[str]:
    """The bugs that a function can have, and that one of its workloads can show."""
    return [name for name in BUGS if {function, workload} & ONLY.get(name, {function})]


def plant(name: str) -> None:
    """Plant a bug in this process.

    Raises:
        LookupError: there is none of that name; the message lists them.
    """
    if name not in BUGS:
        raise LookupError(f"no seeded bug {name!r}; there are: {', '.join(BUGS)}")
    BUGS[name]()


def in_all(attribute: str, replacement: Any) -> None:
    """Replace a name in every module of ours that has it, however it was imported.

    Raises:
        LookupError: no module has it.
    """
    ours = [
        module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in ("tenantry", *_packages()) and not name.startswith("tenantry.testing")
    ]
    having = [module for module in ours if attribute in vars(module)]
    if not having:
        raise LookupError(f"no module has {attribute}")
    for module in having:
        setattr(module, attribute, replacement)


def import_all() -> None:
    """Import everything that a function runs, so that nothing of it is imported unchanged later."""
    for name in ("tenantry.serving.server", "tenantry.engine.engine", *(f"{package}.function" for package in _packages())):
        importlib.import_module(name)


def _packages() -> list[str]:
    return [name.replace("-", "_") for name in descriptors()]


@bug()
def drop_the_trailing_run() -> None:
    """Who arrives during a run is told that all is done, although the run may have read before."""
    from tenantry.engine import flight
    from tenantry.engine.verdict import NOTHING_TO_DO

    run = flight.SingleFlight.run

    async def dropping(self: Any, owner: str, *rest: Any, **options: Any) -> Any:
        return NOTHING_TO_DO if owner in self._lanes else await run(self, owner, *rest, **options)

    flight.SingleFlight.run = dropping  # type: ignore[method-assign]


@bug("namespace-registration", "release-provisioning", "rbac-aggregation", "lock-enforcement")
def take_any_state_for_known() -> None:
    """What the last run for an owner has read counts as known in whatever state it is now."""
    from tenantry.engine import last_runs

    def knew(self: Any, owner: str, now: Any) -> bool:
        return bool(self.may_know(owner, now))

    last_runs.LastRuns.knew = knew  # type: ignore[method-assign]


@bug("namespace-registration")
def answer_a_burst_from_the_last_read() -> None:
    """Who asks for what was just read, or is being read, gets that answer, although the read began before he asked."""
    from tenantry.engine import together

    read = together.Together.read
    answers: dict[Any, tuple[float, Any]] = {}

    async def early(self: Any, sort: Any, name: str, one: Any, many: Any) -> Any:
        begun, task = answers.get((sort, name), (0.0, None))
        if task is None or time.monotonic() - begun > BURST_S:
            task = asyncio.ensure_future(read(self, sort, name, one, many))
            answers[sort, name] = time.monotonic(), task
        return await asyncio.shield(task)

    together.Together.read = early  # type: ignore[method-assign]


@bug()
def stale_list_before_orphaning() -> None:
    """Members are taken from a list that is up to half a minute old, as from an informer that lags."""
    from tenantry.engine import reader

    listed = reader.Reader.list
    cache: dict[Any, Any] = {}

    async def stale(self: Any, kind: Any, namespace: str = "", *, labels: Any = None) -> Any:
        key = (kind, namespace, tuple(sorted((labels or {}).items())))
        if key not in cache or time.monotonic() - cache[key][0] > STALE_S:
            cache[key] = time.monotonic(), await listed(self, kind, namespace, labels=labels)
        return cache[key][1]

    reader.Reader.list = stale  # type: ignore[method-assign,assignment]


@bug()
def compare_whole_objects() -> None:
    """Fields that the server or others added count as differences."""
    from tenantry.model import difference as module

    def whole(wanted: Any, live: Any, *, manager: str, subresource: str = "") -> Any:
        del manager, subresource
        if live is None:
            return module.Difference(created=True)
        return module.Difference(changed=("metadata",)) if wanted != live else None

    import_all()
    in_all("difference", whole)


@bug()
def forget_the_preconditions() -> None:
    """Updates and deletions hit whatever has the name now."""
    apply, delete = Api.apply, Api.delete

    async def careless_apply(self: Any, kind: Any, body: Any, **options: Any) -> Any:
        metadata = {name: value for name, value in body["metadata"].items() if name != "uid"}
        return await apply(self, kind, {**body, "metadata": metadata}, **options)

    async def careless_delete(self: Any, kind: Any, name: str, namespace: str = "", **_: Any) -> bool:
        return await delete(self, kind, name, namespace)

    Api.apply, Api.delete = careless_apply, careless_delete  # type: ignore[method-assign]


@bug("release-provisioning", "lock-enforcement", "scope-binding")
def lose_a_finalizer() -> None:
    """An object goes before what was made for it is taken away, because nothing holds it."""
    apply = Api.apply

    async def unheld(self: Any, kind: Any, body: Any, **options: Any) -> Any:
        metadata = {name: value for name, value in body["metadata"].items() if name != "finalizers"}
        return await apply(self, kind, {**body, "metadata": metadata}, **options)

    Api.apply = unheld  # type: ignore[method-assign]


@bug()
def acknowledge_early() -> None:
    """The event is answered before the work is done."""
    from tenantry.engine import Engine
    from tenantry.engine.verdict import DONE

    handle, tasks = Engine.handle, set()

    async def early(self: Any, event: Any) -> Any:
        task = asyncio.create_task(handle(self, event))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return DONE

    Engine.handle = early  # type: ignore[method-assign]


@bug("namespace-registration")
def forget_the_old_project_early() -> None:
    """The memory of the project that was left is overwritten before that project is put right."""
    unit = importlib.import_module("namespace_registration.projects.unit")
    owners = unit.Projects._namespace_owners

    def reversed_stages(self: Any, *rest: Any, **options: Any) -> Any:
        return list(reversed(owners(self, *rest, **options)))

    unit.Projects._namespace_owners = reversed_stages


@bug()
def write_on_every_run() -> None:
    """The time of the last look is kept on the object."""
    from tenantry.model.plan import Apply

    change = Apply.change

    def stamped(self: Apply, manager: str) -> Any:
        if self.live is not None and "annotations" in self.wanted["metadata"]:
            self.wanted["metadata"]["annotations"]["tenantry.dev/seen"] = str(time.time())
        return change(self, manager)

    Apply.change = stamped  # type: ignore[method-assign]


@bug("namespace-registration")
def adopt_foreign_namespaces() -> None:
    """A name alone makes a namespace ours."""
    projects = importlib.import_module("tenantry.model.projects")

    def by_name(namespace: Any, config: Any) -> bool:
        del config
        return bool(projects.project_of_registration_name(namespace["metadata"]["name"]))

    import_all()
    in_all("is_registration", by_name)


@bug()
def ignore_terminating() -> None:
    """Objects on their way out are taken for living ones."""
    import_all()
    in_all("is_terminating", never)


@bug()
def swallow_errors() -> None:
    """A request that failed counts as done."""
    from tenantry.engine.verdict import DONE

    def done(error: Any, writes: int = 0) -> Any:
        del error, writes
        return DONE

    import_all()
    in_all("verdict_for", done)


@bug()
def replace_instead_of_update() -> None:
    """What differs is deleted and made anew."""
    from tenantry.engine.write import Writer

    make = Writer._apply

    async def replace(self: Any, write: Any, change: Any) -> Any:
        live = write.live
        if live is not None and live["metadata"].get("namespace") and not write.subresource and live["kind"] != "ServiceAccount":
            metadata = live["metadata"]
            await self._api.delete(
                write.kind,
                metadata["name"],
                metadata["namespace"],
                uid=metadata["uid"],
                resource_version=metadata["resourceVersion"],
            )
            return await self._api.apply(write.kind, write.wanted)
        return await make(self, write, change)

    Writer._apply = replace  # type: ignore[method-assign]


@bug("rbac-aggregation-paas-mappings", "scope-binding-paas-mappings")
def remember_the_configuration() -> None:
    """The PaasConfig is up to half a minute old, as from an informer that lags: what a mapping loses is withdrawn late."""
    from tenantry.engine import reader

    listed = reader.Reader.list_shared
    cache: dict[str, tuple[float, Any]] = {}

    async def remembered(self: Any, kind: Any, *place: Any, **options: Any) -> Any:
        if kind.kind != "PaasConfig":
            return await listed(self, kind, *place, **options)
        if kind.kind not in cache or time.monotonic() - cache[kind.kind][0] > STALE_S:
            cache[kind.kind] = time.monotonic(), await listed(self, kind, **options)
        return cache[kind.kind][1]

    reader.Reader.list_shared = remembered  # type: ignore[method-assign]


@bug("scope-binding-paas")
def take_subjects_by_prefix() -> None:
    """With a Paas go the accounts of every namespace whose name begins with that of the Paas."""
    import_all()
    seen = importlib.import_module("scope_binding.paas.seen")
    granted = seen.granted

    def without(state: Any) -> Any:
        going = tuple(f"{paas.name}-" for paas in state.every if paas.deleted)
        return {subject: paas for subject, paas in granted(state).items() if not subject.namespace.startswith(going)}

    in_all("granted", without)


@bug("scope-binding-paas")
def let_go_early() -> None:
    """The finalizer goes off a namespace while a binding still names an account in it."""
    import_all()
    plan = importlib.import_module("scope_binding.paas.plan")
    planned = plan.plan_namespace
    in_all("plan_namespace", lambda seen: planned(replace(seen, named=False)))


@bug("rbac-aggregation-paas")
def delete_by_label() -> None:
    """What has the label of a Paas counts as made for it, whatever its mark says."""
    import_all()
    in_all("is_ours", lambda obj, name, uid: obj is not None and bool(uid) and labels_of(obj).get(MANAGED_BY_PAAS) == name)


@bug("scope-binding-sources")
def write_the_index_blindly() -> None:
    """The AccessIndex is written whatever it has become since it was read: who was slower has the last word."""
    from tenantry.engine.write import Writer

    replace_whole = Writer._replace

    async def blind(self: Any, write: Any) -> Any:
        while write.kind.kind == "AccessIndex":
            live = await self._api.get(write.kind, write.live["metadata"]["name"])
            with suppress(ConflictError):
                return await replace_whole(self, replace(write, live=live))
        return await replace_whole(self, write)

    Writer._replace = blind  # type: ignore[method-assign]


@bug("lock-enforcement-access")
def take_every_suspension_for_ours() -> None:
    """What was suspended when it was locked is marked as if the lock had done it, and goes on with it."""
    import_all()
    plan = importlib.import_module("lock_enforcement.access.plan")
    locked = vars(plan)["_locked"]

    def marked(seen: Any) -> Any:
        steps = list(locked(seen))
        mark = plan._annotate(plan.SUSPENDED_BY_LOCK, "true")
        return [*steps, mark] if plan._annotate(plan.LOCKED, plan.ACCESS_DENIED) in steps else steps

    vars(plan)["_locked"] = marked


@bug("lock-enforcement-access")
def allow_without_the_index() -> None:
    """An AccessIndex that is missing forbids nothing."""
    import_all()
    access = importlib.import_module("tenantry.model.flux.access")
    decide = access.decide_access

    def allowing(*asked: Any) -> Any:
        found = decide(*asked)
        return "allow" if found == "unknown" else found

    in_all("decide_access", allowing)


def main() -> None:
    """Plant the bug that the first argument names, then run ``tenantry`` with what follows ``--``."""
    name, separator, *rest = sys.argv[1:]
    if separator != "--":
        raise SystemExit("usage: python -m tenantry.testing.seeded NAME -- serve FUNCTION ...")
    plant(name)
    sys.argv = ["tenantry", *rest]
    runpy.run_module("tenantry.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
