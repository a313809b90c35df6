"""What a function is, in one value: all that others have to know of it.

A function is its units: each says in the ``descriptor.py`` of its own folder what it brings, and `described_by` joins that.

A function is one for people: its name is in logs, field managers, dead letters and events.  Where its units have duties of very
different strength they are deployed as one Service each, so that who steals the token of one has not the rights of the others
(decision 23).  A process knows its duty by `DUTY_VARIABLE`; without it, it has all duties of its function.

From a descriptor come the commands, what is watched and what wakes whom (``triggers/``), the Services and their kustomizations
(``knative/``), the rights of the sources, and what an uninstallation looks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, Literal

from tenantry.model.kinds import Kind

DUTY_VARIABLE = "TENANTRY_DUTY"


@dataclass(frozen=True, slots=True)
class Watch:
    """Objects of a kind that a source watches; ``selector`` selects by label, as ``kubectl -l`` takes it."""

    kind: Kind
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """What is watched together, cluster-wide: kinds in namespaces, or cluster-scoped ones."""

    name: str
    watches: tuple[Watch, ...]
    whole: bool = False
    """Objects travel whole, for labels that say whose a deleted object was; else their kind and name."""
    mark: tuple[str, str] | None = None
    """The extension that its events carry; without one ``watch`` with the name of the function."""
    account: str = ""
    """Its identity, where that has rights of its own; else it is ``tenantry-source-<service>``, with the right to watch."""
    own_namespace: bool = False
    """Namespaced kinds are watched in the namespace of the functions alone."""
    folder: str = ""
    """In ``knative/``, where its kinds come with another system: a source ends while one of its kinds is not served."""


@dataclass(frozen=True, slots=True)
class EventsOf:
    """Events of a kind, from the sources of a function."""

    kind: Kind
    function: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """What a Service is woken by: events of kinds, or all with an extension."""

    name: str
    events: tuple[EventsOf, ...] = ()
    mark: tuple[str, str] | None = None
    folder: str = ""
    """In ``knative/``, beside the source whose events it is for."""


@dataclass(frozen=True, slots=True)
class Finalizer:
    """A finalizer that a Service puts on objects of a kind: an uninstallation takes it off."""

    kind: Kind
    name: str
    shared: bool = False
    """Others put it on, too: it is taken only off objects that our functions wrote."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path at which a Service answers others than senders of events; ``module`` has ``answer(question, reader)``.

    Who asks has a token.  ``variable`` names the file that it is in; in a cluster that is the key ``token`` of the Secret
    ``secret``, where there is one.  Without a token nothing is at the path.
    """

    path: str
    module: str
    variable: str
    secret: str


@dataclass(frozen=True, slots=True)
class Service:
    """What runs apart: its name is that of its identity, its fence and its folder in ``knative/``.

    Besides its ``triggers`` it gets the sweeps of its function, and fan-outs for its ``units``.
    """

    name: str
    function: str
    duty: str = ""
    """Empty where the function has only one."""
    units: tuple[str, ...] = ()
    """Of its duty, by the names that fan-outs have; empty where the function has only one duty."""
    sources: tuple[Source, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    reads: tuple[Kind, ...] = ()
    writes: tuple[Kind, ...] = ()
    """What its first rights are made from; then ``make rights`` keeps them to what the tests were seen to use."""
    finalizers: tuple[Finalizer, ...] = ()
    routes: tuple[Route, ...] = ()
    memory_mib: int = 192
    """What a pod may have: a third more than it was seen to have, at least."""
    rights_folder: str = ""
    """In ``knative/``, where rights and events come only with the system that needs them."""

    @property
    def folders(self) -> tuple[str, ...]:
        """In ``knative/``, what comes only with another system: its rights and events, or single sources and Triggers."""
        found = (self.rights_folder, *(each.folder for each in self.sources), *(each.folder for each in self.triggers))
        return tuple(dict.fromkeys(folder for folder in found if folder))

    @property
    def rights_file(self) -> str:
        """Where the rights of its identity are."""
        return f"knative/{self.rights_folder or self.name}/rights.yaml"


@dataclass(frozen=True, slots=True)
class Product:
    """What a function makes, by kind and label selector.  Only what our functions wrote is taken away."""

    kind: Kind
    selector: str


@dataclass(frozen=True, slots=True)
class Tells:
    """A condition with which a unit tells of a problem on objects of a kind: for `tenantry status`, `tree` and `map`.

    ``bad`` is the status that means one.  Where others write conditions of that type too, ``reasons`` are those of ours, and the
    kind is another system's.  ``wanted`` are reasons that somebody asked for: no problem.
    """

    kind: Kind
    type: str
    bad: Literal["True", "False"] = "False"
    warns: bool = False
    """What is declared works, and not quite as somebody may think."""
    reasons: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OwnerMark:
    """A label (or annotation) by which an object says whose it is: an owner of a type, or the uid of an object of a kind.

    It is for showing: what decides asks for more than a label.
    """

    owner: str
    key: str
    uid_of: tuple[Kind, ...] = ()
    annotation: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ``tenantry`` that comes with a function; ``module`` has it under its name, with underscores."""

    name: str
    module: str
    about: str


@dataclass(frozen=True, slots=True)
class Part:
    """What one unit brings to its function: ``part`` in the ``descriptor.py`` of its folder.

    Units that run as one Service each name it, with what they themselves need; the function's has all of that.
    """

    service: Service
    settings: tuple[str, ...] = ()
    makes: tuple[Product, ...] = ()
    commands: tuple[Command, ...] = ()
    tells: tuple[Tells, ...] = ()
    marks: tuple[OwnerMark, ...] = ()


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A function: its Services, of which the first is called like the function, when it sweeps, and what it brings.

    ``sweep`` is a schedule as of cron.  ``settings`` names what it reads of the configuration, as paths in the file: keys, or
    sections with all that is in them.  ``makes`` is in the order in which an uninstallation takes it away.  ``units`` are the
    packages of its units with the Service of each.
    """

    services: tuple[Service, ...]
    sweep: str
    settings: tuple[str, ...] = ()
    makes: tuple[Product, ...] = ()
    commands: tuple[Command, ...] = ()
    units: tuple[tuple[str, Service], ...] = ()
    tells: tuple[Tells, ...] = ()
    marks: tuple[OwnerMark, ...] = ()

    @property
    def name(self) -> str:
        """The function's."""
        return self.services[0].function

    @property
    def duties(self) -> tuple[str, ...]:
        """None where it has only one."""
        return tuple(each.duty for each in self.services if each.duty)

    def reads_setting(self, path: str) -> bool:
        """Whether a key of the configuration is, or is in, one of its ``settings``."""
        return any(f"{path}.".startswith(f"{each}.") for each in self.settings)

    def service_of(self, duty: str) -> Service:
        """The Service of a duty; of all duties together the one that is called like the function.

        Raises:
            LookupError: the function has no such duty.
        """
        for each in self.services:
            if duty in ("", each.duty):
                return each
        raise LookupError(duty)


def described_by(package: str, sweep: str) -> Descriptor:
    """The descriptor of a function by the folders of its units: those of its package that have a ``descriptor.py``."""
    folders = [each.name for each in iter_modules(import_module(package).__path__) if each.ispkg]
    found = {f"{package}.{name}": _part_in(f"{package}.{name}") for name in sorted(folders)}
    parts = {unit: part for unit, part in found.items() if part is not None}
    # the Service that is called like the function first
    units = sorted(parts, key=lambda unit: parts[unit].service.name != parts[unit].service.function)
    services = dict.fromkeys(parts[unit].service.name for unit in units)
    return Descriptor(
        tuple(joined_service([parts[unit].service for unit in units if parts[unit].service.name == name]) for name in services),
        sweep,
        settings=tuple(dict.fromkeys(path for unit in units for path in parts[unit].settings)),
        makes=tuple(dict.fromkeys(product for unit in parts for product in parts[unit].makes)),
        commands=tuple(command for unit in units for command in parts[unit].commands),
        units=tuple((unit, parts[unit].service) for unit in units),
        tells=tuple(dict.fromkeys(each for unit in parts for each in parts[unit].tells)),
        marks=tuple(dict.fromkeys(each for unit in parts for each in parts[unit].marks)),
    )


def _part_in(package: str) -> Part | None:
    if find_spec(f"{package}.descriptor") is None:
        return None
    part: Part = import_module(f"{package}.descriptor").part
    return part


def joined_service(services: Sequence[Service]) -> Service:
    """One Service for several units, with what each of them needs."""

    def every(field: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(value for each in services for value in getattr(each, field)))

    return replace(
        services[0],
        units=every("units"),
        sources=_sources(every("sources")),
        triggers=_by_name(every("triggers"), "events"),
        reads=every("reads"),
        writes=every("writes"),
        finalizers=every("finalizers"),
        routes=every("routes"),
        memory_mib=max(each.memory_mib for each in services),
    )


def _sources(found: Sequence[Source]) -> tuple[Source, ...]:
    """Those of one name are one, whose objects travel whole where one of them wants that, whichever comes first."""
    whole = {each.name for each in found if each.whole}
    return tuple(replace(each, whole=each.name in whole) for each in _by_name(found, "watches"))


def _by_name(found: Iterable[Any], field: str) -> tuple[Any, ...]:
    """Those of one name are one, which has all that is in this field of each."""
    made: dict[str, Any] = {}
    for each in found:
        before = made.get(each.name, each)
        made[each.name] = replace(before, **{field: tuple(dict.fromkeys((*getattr(before, field), *getattr(each, field))))})
    return tuple(made.values())
