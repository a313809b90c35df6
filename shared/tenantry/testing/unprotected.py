"""Functions without one of their protections, to show which attacks it stops: ``TENANTRY_WITHOUT=NAME``.

``python -m tenantry.testing.unprotected serve ...`` takes away what the variable names and then goes on as `tenantry`.
Nothing in production code knows of this module.
"""

from __future__ import annotations

import asyncio
import os
import runpy
from collections.abc import Callable, Collection
from contextvars import ContextVar
from typing import Any

from tenantry.local.policies import is_left_out, left_out
from tenantry.testing.seeded import import_all, in_all

WITHOUT = "TENANTRY_WITHOUT"
BUDGETS = "budgets"
PROTECTIONS: dict[str, Callable[[], None]] = {}
"""By name, what takes a protection away in the process of a function."""
AROUND: dict[str, Callable[[], None]] = {}
"""The same in the process of the tests: of what stands beside the functions there."""
BOUNDLESS = 10**12
TOLD = frozenset({"MESSAGE_CHARACTERS", "NOTE_BYTES", "REFUSAL_CHARACTERS", "PROBLEMS_SHOWN"})
"""What the API server limits itself; without these nobody would be told anything."""


def protection(name: str, among: dict[str, Callable[[], None]] = PROTECTIONS) -> Callable[[Callable[[], None]], None]:
    """Register what takes a protection away."""

    def register(plant: Callable[[], None]) -> None:
        among[name] = plant

    return register


def concerned(without: Collection[str]) -> list[str]:
    """The protections of functions among what is to be left out; ``all``, which means policies, includes the budgets."""
    return [name for name in PROTECTIONS if name in without or (name == BUDGETS and is_left_out(name, without))]


def take_away() -> None:
    """Take away in this process what the environment says, wherever it was imported."""
    import_all()
    for name in concerned(left_out(os.environ.get(WITHOUT, ""))):
        PROTECTIONS[name]()


def take_away_around(without: Collection[str]) -> None:
    """The same in the process of the tests."""
    for name in AROUND.keys() & set(without):
        AROUND[name]()


def main() -> None:
    """Take it away, then run ``tenantry`` with the arguments."""
    take_away()
    runpy.run_module("tenantry.cli", run_name="__main__", alter_sys=True)


# -- sizes and events --------------------------------------------------------------------------------------


@protection(BUDGETS)
def _without_budgets() -> None:
    """No limit of `tenantry.model.limits` but those of the API server."""
    from tenantry.model import limits

    units = {"KIB", "MIB"}
    for name, value in list(vars(limits).items()):
        if name.isupper() and isinstance(value, int | float) and name not in TOLD | units:
            in_all(name, BOUNDLESS)


@protection("letters-without-data")
def _letters_with_data() -> None:
    """A dead letter tells what the event had."""
    from tenantry.serving.dead_letters import letter

    made = letter.letter_of

    def telling(event: Any, *rest: Any) -> Any:
        plain = made(event, *rest)
        return letter.replace(plain, reason=f"{plain.reason}: {event.data}")

    in_all("letter_of", telling)


@protection("shared-sweeps")
def _sweeps_apart() -> None:
    """Each request for a sweep is one."""
    from tenantry.engine import engine

    async def apart(self: Any) -> Any:
        return await self._sweep_all()

    engine.Engine.sweep = apart  # type: ignore[method-assign]


@protection("owners-by-name")
def _any_owner() -> None:
    """Whatever a request names as an owner is run."""
    from tenantry.engine import unit

    def any_text(text: str) -> Any:
        type_, _, rest = text.partition("/")
        namespace, _, name = rest.rpartition("/")
        return unit.Owner(type_, name, namespace)

    unit.Owner.parse = staticmethod(any_text)  # type: ignore[assignment,method-assign]
    unit.Unit.accepts = lambda self, owner: owner.type in self.handlers  # type: ignore[method-assign]


@protection("live-reads")
def _payloads_believed() -> None:
    """What an event says of its object counts as read."""
    from tenantry.engine import engine
    from tenantry.engine.reader import Reader
    from tenantry.model.kinds import key_of

    told: ContextVar[Any] = ContextVar("told", default=None)
    handle, begin = engine.Engine.handle, Reader.__init__

    async def believing(self: Any, event: Any) -> Any:
        whole = isinstance(event.data, dict) and {"apiVersion", "kind", "metadata"} <= event.data.keys()
        told.set(event.data if whole and "uid" in (event.data["metadata"] or {}) else None)
        return await handle(self, event)

    def knowing(self: Any, *rest: Any, **options: Any) -> None:
        begin(self, *rest, **options)
        if (said := told.get()) is not None:
            self.known[key_of(said)] = said

    engine.Engine.handle = believing  # type: ignore[method-assign]
    Reader.__init__ = knowing  # type: ignore[method-assign]


# -- names -------------------------------------------------------------------------------------------------


@protection("leftovers-kept")
def _leftovers_handed_on() -> None:
    """What a release left in its namespace is the next one's."""
    from release_provisioning.projects import seen

    seen._is_left_by_another_project = lambda *_: False


@protection("registration-namespaces-only")
def _charts_anywhere() -> None:
    """A ProjectHelmChart counts for its project wherever it is."""
    from tenantry.model import projects, releases

    home = projects.project_of_registration_name
    in_all("may_be_home", lambda *_: True)
    in_all("project_of_registration_name", lambda name: home(name) or name.partition("-")[2])
    in_all("project_of", lambda asked, *_: releases.chart_key(asked).namespace.partition("-")[2])


@protection("first-come")
def _last_come() -> None:
    """Of two who ask for a name the later has it."""
    in_all("holder_of", lambda asking, _: next((key for key in reversed(asking) if asking[key]), None))


@protection("consent-by-uid")
def _consent_by_name() -> None:
    """A consent is for whichever namespace has the name."""
    in_all("is_given_to", lambda *_: True)


@protection("roles-that-others-bind")
def _any_role_filled() -> None:
    """A Role is filled whoever is bound to it."""
    in_all("other_bindings", lambda *_: ())
    in_all("is_held", lambda *_: False)


# -- locks -------------------------------------------------------------------------------------------------


@protection("one-storage")
def _any_storage() -> None:
    """The newest record counts, in whichever storage it is."""
    from lock_enforcement.records import Records
    from tenantry.model.kinds import CONFIG_MAP, SECRET

    history = Records.history

    async def newest(self: Any, release: Any, _: Any, reader: Any) -> Any:
        found = await asyncio.gather(*(history(self, release, kind, reader) for kind in (SECRET, CONFIG_MAP)))
        return max(found, key=lambda each: each.newest.record.revision if each.newest else 0)

    Records.history = newest  # type: ignore[method-assign]


@protection("reach-of-locks")
def _locks_everywhere() -> None:
    """A lock goes wherever the manifest names something."""
    from lock_enforcement.locks import Reach

    Reach.outside = lambda *_: ""  # type: ignore[method-assign]


@protection("marks-of-helm")
def _unmarked_locked() -> None:
    """What a manifest names is the release's, whatever marks it has."""
    in_all("is_marked", lambda *_: True)


# -- releases ----------------------------------------------------------------------------------------------


@protection("layers-of-values")
def _values_on_top() -> None:
    """The values of a ProjectHelmChart win against the layers above them."""
    from release_provisioning.projects import values

    composed = values.composed_values

    def forged(asked: Any, *rest: Any) -> Any:
        return values.merged(composed(asked, *rest), (asked.get("spec") or {}).get("values") or {})

    in_all("composed_values", forged)


@protection("dashboards-of-one-namespace")
def _everybodys_dashboards() -> None:
    """Dashboards are read by label alone."""
    from release_provisioning.projects import observe

    read = observe._read_dashboards

    async def everywhere(_: str, __: Any, reader: Any) -> Any:
        return await read("", {observe.DASHBOARD_VALUES: ""}, reader)

    observe._read_dashboards = everywhere


@protection("one-helm-at-a-time")
def _jobs_at_once() -> None:
    """The next pod of a Job comes as soon as the last one is asked to end."""
    from release_provisioning.jobs import manifest

    manifest.REPLACEMENT = "TerminatingOrFailed"


@protection("rights-of-jobs", AROUND)
def _jobs_of_administrators() -> None:
    """Jobs that run Helm are administrators."""
    from tenantry.local.jobs import JobRunner
    from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, SERVICE_ACCOUNT
    from tenantry.testing.objects import obj

    async def administrator(self: Any, _: Any) -> bytes:
        name, home = "everything", "kube-system"
        subject = {"kind": SERVICE_ACCOUNT.kind, "name": name, "namespace": home}
        role = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": "cluster-admin"}
        await self._api.apply(SERVICE_ACCOUNT, obj(SERVICE_ACCOUNT, name, home))
        await self._api.apply(CLUSTER_ROLE_BINDING, obj(CLUSTER_ROLE_BINDING, name, roleRef=role, subjects=[subject]))
        answer = await self._api.request("POST", SERVICE_ACCOUNT.path(home, name) + "/token", None, {"spec": {}})
        return str(answer["status"]["token"]).encode()

    JobRunner._token = administrator  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
