"""The explanations that installed functions bring, by the module ``explain`` of each unit: no function is known by name here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from tenantry.cli.explain.reading import Reading
from tenantry.model.kinds import Key, Kind, Object, key_of
from tenantry.model.origin import MAKES, Because, Offer, Origin
from tenantry.model.rbac import BoundSubject, Question
from tenantry.serving.installed import descriptors

_DEPTH = 4
"""How far causes that are ours themselves are followed."""


@dataclass(frozen=True, slots=True)
class Explainer:
    """One unit with an explanation."""

    function: str
    unit: str
    module: ModuleType

    @property
    def kinds(self) -> Collection[Kind]:
        """The kinds that it tells something about."""
        found: Collection[Kind] = self.module.KINDS
        return found


@dataclass(frozen=True, slots=True)
class CauseFound:
    """A line from which an object follows: whether its object is there now (None: it may not be read), and who of us made it."""

    because: Because
    there: bool | None = True
    problems: tuple[str, ...] = ()
    whose: tuple[Explained, ...] = ()


@dataclass(frozen=True, slots=True)
class Explained:
    """Where an object comes from, by one unit."""

    by: Explainer
    origin: Origin
    causes: tuple[CauseFound, ...] = field(default=())

    @property
    def ends(self) -> list[str]:
        """What takes it away: of a cause that we make ourselves what ends that, since it would come back else."""
        deeper = [each for cause in self.causes for explained in cause.whose for each in explained.ends]
        made = {cause.because.about.name for cause in self.causes if cause.whose and cause.because.about is not None}
        own = [each for each in self.origin.ends if not made & set(each.split())]
        return list(dict.fromkeys([*deeper, *own]))


@cache
def explainers() -> tuple[Explainer, ...]:
    """All that are installed."""
    found = []
    for descriptor in descriptors().values():
        for package, _ in descriptor.units:
            if find_spec(f"{package}.explain") is not None:
                module = import_module(f"{package}.explain")
                unit = package.rpartition(".")[2].replace("_", "-")
                found.append(Explainer(descriptor.name, unit, module))
    return tuple(found)


async def explained(obj: Object, subject: BoundSubject | None, reading: Reading, depth: int = 0) -> tuple[Explained, ...]:
    """Every unit that an object is of, with the causes as they are now."""
    found = []
    for each in explainers():
        if (obj["apiVersion"].rpartition("/")[0], obj["kind"]) not in {(kind.group, kind.kind) for kind in each.kinds}:
            continue
        origin: Origin | None = await each.module.explain(obj, subject, reading)
        if origin is not None:
            causes: list[CauseFound] = []
            there: dict[Key | None, bool | None] = {}
            for because in origin.because:
                known = because.about in there  # then the rest about it is told with its first line
                cause = CauseFound(because, there[because.about]) if known else await _cause(because, key_of(obj), reading, depth)
                there[because.about] = cause.there
                causes.append(cause)
            found.append(Explained(each, origin, tuple(causes)))
    return tuple(found)


async def _cause(because: Because, of: Key | None, reading: Reading, depth: int) -> CauseFound:
    if because.about is None or because.about == of:
        return CauseFound(because)
    kind = await reading.api.served(because.about.api_version, because.about.kind)
    live = await reading.get(kind, because.about.name, because.about.namespace) if kind is not None else None
    if kind is None or live is None:
        blind = kind is not None and reading.could_not(kind, because.about.name, because.about.namespace)
        return CauseFound(because, None if blind else False)
    whose = await explained(live, None, reading, depth + 1) if depth < _DEPTH else ()
    makers = tuple(each for each in whose if each.origin.does == MAKES)
    return CauseFound(because, True, tuple(problems_of(live)), makers)


def problems_of(live: Object) -> list[str]:
    """What conditions of ours on a declaration say is wrong: reason and message, which names the fix."""
    conditions = (live.get("status") or {}).get("conditions") or ()
    return [f"{each.get('reason')}: {each.get('message')}" for each in conditions if _is_problem(each)]


def _is_problem(condition: Object) -> bool:
    type_, status = str(condition.get("type") or ""), condition.get("status")
    good = type_ in ("Ready", "Templated", "Scoped") or type_.startswith("tenantry.dev/")
    return (good and status == "False") or (type_ in ("HasErrors", "Stalled") and status == "True")


async def offered(question: Question, reading: Reading) -> AsyncIterator[tuple[Explainer, Offer, CauseFound]]:
    """What declarations could give a right, and why they do not."""
    for each in explainers():
        offers = getattr(each.module, "offers", None)
        for offer in await offers(question, reading) if offers is not None else ():
            yield each, offer, await _cause(offer.because, None, reading, _DEPTH)
