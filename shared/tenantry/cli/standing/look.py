"""One look at a cluster for ``status``, ``tree`` and ``map``, and the exit codes of what they find."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tenantry.api import Api
from tenantry.api.errors import NotFound
from tenantry.cli.progress import ReadProgress
from tenantry.cli.standing.read import PERSON, Standing, read_standing
from tenantry.cli.standing.services import read_system
from tenantry.model.kinds import NAMESPACE
from tenantry.model.map import Map, Node, map_of
from tenantry.model.map.nodes import OWNERS
from tenantry.model.map.system import System

WELL, NOT_READ, PROBLEMS = 0, 1, 3
"""Exit codes; 2 is for a command that was typed wrong, as everywhere."""
NAMED = (*OWNERS, "namespace")


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen at a moment.  ``system`` is None where nobody asked for it."""

    map: Map
    system: System | None
    at: datetime

    @property
    def code(self) -> int:
        """The exit code: what could not be read comes first, for the rest may be only half of the truth."""
        if self.map.unread:
            return NOT_READ
        well = not self.map.errors and (self.system is None or self.system.is_well(self.at))
        return WELL if well else PROBLEMS


async def look(api: Api, *, system: bool, within: str = "") -> tuple[Sight, Standing]:
    """Read everything once; where namespaces may not be listed and one was asked for, that one.

    Raises:
        NotFound: no Tenantry in this cluster.
    """
    async with ReadProgress("reading the cluster") as progress:
        standing = await read_standing(api, progress)
        if within and NAMESPACE.plural in standing.seen.unread:
            alone = await read_standing(api, progress, within)
            told = {"all but this namespace": standing.seen.unread[NAMESPACE.plural]}
            standing = replace(alone, seen=replace(alone.seen, unread={**told, **alone.seen.unread}))
        return await looked(api, standing, system=system), standing


async def looked(api: Api, standing: Standing, *, system: bool) -> Sight:
    """The look that follows from lists that were read."""
    unread = dict(standing.seen.unread)
    runs = await read_system(api, standing.served, standing.told, unread) if system else None
    return Sight(map_of(replace(standing.seen, unread=unread)), runs, datetime.now(UTC))


async def look_once(kubeconfig: Path | None, *, system: bool, within: str = "") -> Sight:
    """`look` with a client of its own."""
    async with await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig) as api:
        return (await look(api, system=system, within=within))[0]


def parsed_target(text: str) -> tuple[str, str]:
    """``project/p-a`` as type and name.

    Raises:
        ValueError: it is none; the message says what to write.
    """
    kind, _, name = text.partition("/")
    if kind not in NAMED or not name or "/" in name:
        raise ValueError(f"{text!r} names nothing: write {', '.join(f'{each}/NAME' for each in NAMED)}")
    return kind, name


def nodes_of(map_: Map, target: str) -> tuple[Node, ...]:
    """The roots of the tree, or the one that is named.

    Raises:
        NotFound: there is none of that name; the message has those that are like it.
    """
    if not target:
        return map_.groups
    found = map_.find(*parsed_target(target))
    if found is None:
        unsure = " among what could be read" if map_.unread else ""
        raise NotFound(f"there is no {target}{unsure}{_near(target, map_.names())}; `tenantry tree` shows all")
    return (found,)


def _near(target: str, names: Iterable[str]) -> str:
    import difflib

    found = difflib.get_close_matches(target, list(names), 3)
    return f"; did you mean {' or '.join(found)}?" if found else ""
