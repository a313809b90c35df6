"""Functions without one of their protections, to show which attacks it stops: ``TENANTRY_WITHOUT=NAME``.

``python -m tenantry.testing.unprotected serve ...`` takes away what the variable names and then goes on as `tenantry`.
Nothing in production code knows of this module.
"""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from tenantry.local.policies import is_left_out
from tenantry.testing.plugin import policies_left_out
from tenantry.testing.seeded import import_all, in_all

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
    for name in concerned(policies_left_out()):
        PROTECTIONS[name]()


def take_away_among(among: Mapping[str, Callable[[], None]]) -> None:
    """The same of these, in the process of the tests."""
    for name in among.keys() & policies_left_out():
        among[name]()


def main() -> None:
    """Take it away, then run ``tenantry`` with the arguments."""
    take_away()
    runpy.run_module("tenantry.cli", run_name="__main__", alter_sys=True)


def _put(owner: Any, **members: Any) -> None:
    for name, member in members.items():
        setattr(owner, name, member)


# -- sizes and events --------------------------------------------------------------------------------------


@protection(BUDGETS)
def _without_budgets() -> None:
    """No limit of `tenantry.model.limits` but those of the API server."""
    from tenantry.model import limits

    units = {"KIB", "MIB"}
    for name, value in list(vars(limits).items()):
        if name.isupper() and isinstance(value, int | float) and name not in TOLD | units:
            in_all(name, BOUNDLESS)


@protection("bounded-letters", AROUND)
def _every_letter_kept() -> None:
    """Dead letters are kept however many they are."""
    from tenantry.model import limits

    _put(limits, DEAD_LETTERS=BOUNDLESS, DEAD_LETTERS_BYTES=BOUNDLESS)


@protection("letters-without-data", AROUND)
def _letters_with_data() -> None:
    """A dead letter tells what the event had."""
    from tenantry.serving.dead_letters.entry import LettersEntry
    from tenantry.serving.dead_letters.letter import letter_of

    body: ContextVar[bytes] = ContextVar("body", default=b"")
    take = LettersEntry._take

    async def reading(self: Any, request: Any) -> Any:
        body.set(await request.body())
        return await take(self, request)

    def telling(*about: Any) -> Any:
        letter = letter_of(*about)
        return replace(letter, reason=f"{letter.reason}: {body.get()[:400].decode('utf-8', 'replace')}")

    _put(LettersEntry, _take=reading)
    in_all("letter_of", telling)


@protection("shared-sweeps")
def _sweeps_apart() -> None:
    """Each request for a sweep is one."""
    from tenantry.engine import engine

    async def apart(self: Any) -> Any:
        return await self._sweep_all()

    _put(engine.Engine, sweep=apart)


@protection("owners-by-name")
def _any_owner() -> None:
    """Whatever a request names as an owner is run."""
    from tenantry.engine import unit

    def any_text(text: str) -> Any:
        type_, _, rest = text.partition("/")
        namespace, _, name = rest.rpartition("/")
        return unit.Owner(type_, name, namespace)

    _put(unit.Owner, parse=staticmethod(any_text))
    _put(unit.Unit, accepts=lambda self, owner: owner.type in self.handlers)


@protection("live-reads")
def _payloads_believed() -> None:
    """What an event says of its object counts as read."""
    from tenantry.engine.reader import Reader
    from tenantry.engine.request import request_of
    from tenantry.model.kinds import key_of

    told: ContextVar[Any] = ContextVar("told", default=None)
    begin = Reader.__init__

    def believing(event: Any, function: str) -> Any:
        said = event.data if isinstance(event.data, dict) else {}
        metadata = said.get("metadata")
        whole = {"apiVersion", "kind", "metadata"} <= said.keys() and isinstance(metadata, dict) and "uid" in metadata
        told.set(said if whole else None)
        return request_of(event, function)

    def knowing(self: Any, *rest: Any, **options: Any) -> None:
        begin(self, *rest, **options)
        if (said := told.get()) is not None:
            self.known[key_of(said)] = said

    in_all("request_of", believing)
    _put(Reader, __init__=knowing)


# -- names -------------------------------------------------------------------------------------------------


@protection("leftovers-kept")
def _leftovers_handed_on() -> None:
    """What a release left in its namespace is the next one's."""
    from release_provisioning.projects import seen

    _put(seen, _is_left_by_another_project=lambda *_: False)


@protection("registration-namespaces-only")
def _charts_anywhere() -> None:
    """A ProjectHelmChart counts for its project wherever it is."""
    from tenantry.model.projects import project_of_registration_name
    from tenantry.model.releases import chart_key

    def anywhere(asked: Any, *_: Any) -> str:
        place = chart_key(asked).namespace
        return project_of_registration_name(place) or place.partition("-")[2]

    in_all("may_be_home", lambda *_: True)
    in_all("project_of", anywhere)


@protection("first-come")
def _next_come() -> None:
    """Of two who ask for a name the one who does not have it gets it."""
    from tenantry.model.releases import holder_of

    def other(asking: Any, marked: str) -> Any:
        return next((key for key in asking if asking[key] and str(key) != marked), holder_of(asking, marked))

    in_all("holder_of", other)


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

    _put(Records, history=newest)


@protection("reach-of-locks")
def _locks_everywhere() -> None:
    """A lock goes wherever the manifest names something."""
    from lock_enforcement.locks import LockReach

    _put(LockReach, outside=lambda *_: "")


@protection("marks-of-helm")
def _unmarked_locked() -> None:
    """What a manifest names is the release's, whatever marks it has."""
    in_all("is_marked", lambda *_: True)


# -- releases ----------------------------------------------------------------------------------------------


@protection("layers-of-values")
def _values_on_top() -> None:
    """The values of a ProjectHelmChart win against the layers above them."""
    from release_provisioning.projects import values
    from tenantry.model.values import merged

    composed = values.composed_values

    def forged(asked: Any, *rest: Any) -> Any:
        return merged(composed(asked, *rest), (asked.get("spec") or {}).get("values") or {})

    in_all("composed_values", forged)


@protection("dashboards-of-one-namespace")
def _everybodys_dashboards() -> None:
    """Dashboards are read by label alone."""
    from release_provisioning.projects import observe
    from tenantry.model.names import DASHBOARD_VALUES

    read = observe._read_dashboards

    async def everywhere(_: str, __: Any, reader: Any) -> Any:
        return await read("", {DASHBOARD_VALUES: ""}, reader)

    _put(observe, _read_dashboards=everywhere)


@protection("one-helm-at-a-time")
def _jobs_at_once() -> None:
    """The next pod of a Job comes as soon as the last one is asked to end."""
    from release_provisioning.jobs import manifest

    _put(manifest, REPLACEMENT="TerminatingOrFailed")


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

    _put(JobRunner, _token=administrator)


if __name__ == "__main__":
    main()
