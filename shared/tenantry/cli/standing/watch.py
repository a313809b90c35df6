"""``--watch``: the same again when something has changed; on a terminal in place, elsewhere what changed, a line each.

The objects are followed by watches, so that a cluster at rest is asked for nothing but what runs the functions.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from tenantry.api import Api, Listing
from tenantry.api.errors import TransientError
from tenantry.cli import THE_KIT, has_kit
from tenantry.cli.output import is_dumb
from tenantry.cli.served import ServedKinds
from tenantry.cli.standing.glyphs import Glyphs, Line, glyphs_for
from tenantry.cli.standing.look import Sight, look, looked
from tenantry.cli.standing.printing import redraw
from tenantry.cli.standing.read import PERSON, Standing, mark_keys
from tenantry.cli.standing.told import here
from tenantry.model.config import Config
from tenantry.model.kinds import Kind, Object
from tenantry.model.map.seen import kept

if TYPE_CHECKING:
    from tenantry.local.backlog import Verb
    from tenantry.local.reflector import Reflector

TOGETHER_S = 0.5
"""Changes within it are one redraw."""
_AGES = re.compile(r"\b[\d,]+ (?:s|min|h|d)\b|\s+")
"""What a line may differ in without a change: ages, and the width of columns."""
AGAIN_S = 5.0
"""How often what runs the functions is asked anew: it tells nobody of a change."""
FOOT = "Ctrl-C ends"

Lines = Callable[[Sight, Glyphs, int], Sequence[Line]]
Document = Callable[[Sight], Object]

watch_option = click.option(
    "--watch",
    "watching",
    is_flag=True,
    help="Again at each change, until Ctrl-C; without a terminal, what changed, line by line.",
)


def watch(kubeconfig: Path | None, output: str, lines: Lines, document: Document, *, system: bool) -> NoReturn:
    """Show until Ctrl-C or SIGTERM, then exit with the code of the last look."""
    if not has_kit():
        raise click.UsageError(f"--watch needs {THE_KIT}.")
    teller = _teller(output, lines, document)
    try:
        code = asyncio.run(_watch(kubeconfig, teller, system))
    except BrokenPipeError:
        sys.stderr.close()  # whoever read has gone
        code = 0
    sys.exit(code)


def _teller(output: str, lines: Lines, document: Document) -> Callable[[Sight], None]:
    if output != "text":
        return _Documents(document).tell
    if sys.stdout.isatty() and not is_dumb():
        return lambda found: redraw(lambda glyphs, width: lines(found, glyphs, width), f"{found.at:%H:%M:%S} UTC, {FOOT}")
    return _Changes(lines).tell


class _Documents:
    """A document each time that it differs: one line of JSON, or YAML with a separator."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._last = ""

    def tell(self, found: Sight) -> None:
        text = json.dumps(self._document(found), ensure_ascii=False)
        if text != self._last:
            self._last = text
            click.echo(text)
            sys.stdout.flush()


class _Changes:
    """The lines that came and went since the last look; ages alone are no change."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._last: dict[str, str] | None = None

    def tell(self, found: Sight) -> None:
        glyphs = glyphs_for()
        texts = [line.text for line in self._lines(found, glyphs, 0)]
        now = {_AGES.sub(" ", text): text for text in texts if text}
        shown = texts
        if self._last is not None:
            stamp = f"{found.at:%H:%M:%S}"
            shown = [f"{stamp} - {text.strip()}" for key, text in self._last.items() if key not in now]
            shown += [f"{stamp} + {text.strip()}" for key, text in now.items() if key not in self._last]
        self._last = now
        for text in shown:
            click.echo(text)
        sys.stdout.flush()


async def _watch(kubeconfig: Path | None, tell: Callable[[Sight], None], system: bool) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(await Api.connect(field_manager=PERSON, kubeconfig=kubeconfig))
        found, standing = await look(api, system=system)
        tell(found)
        followed = await stack.enter_async_context(Followed(api, standing))
        while not stop.is_set():
            await _first_of(stop, followed.changed, AGAIN_S if system else None)
            if stop.is_set():
                break
            await asyncio.sleep(TOGETHER_S)
            followed.changed.clear()
            try:
                found = await looked(api, await followed.now(), system=system)
            except TransientError as error:
                click.echo(f"tenantry: what follows may be old: {error.message}", err=True)
                await asyncio.sleep(AGAIN_S)
                followed.changed.set()
                continue
            tell(found)
    return found.code


async def _first_of(stop: asyncio.Event, changed: asyncio.Event, within: float | None) -> None:
    waits = [asyncio.create_task(each.wait()) for each in (stop, changed)]
    try:
        await asyncio.wait(waits, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waits:
            each.cancel()


class Followed:
    """The lists of a look, kept as they are now; between ``async with`` and its end.

    ``on_state`` is called when a watch is lost, and when all work again: see ``lost``.
    """

    def __init__(self, api: Api, standing: Standing, on_state: Callable[[], None] = lambda: None) -> None:
        self.changed = asyncio.Event()
        self.lost: dict[Kind, str] = {}
        """The kinds that nothing is heard of now, each with the reason."""
        self._on_state = on_state
        self._api = api
        self._standing = standing
        self._keys = mark_keys()
        self._objects: dict[Kind, dict[tuple[str, str], Object]] = {
            kind: {_name(each): each for each in found} for kind, found in standing.seen.objects.items()
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Followed:
        from tenantry.local.reflector import Reflector

        for kind, found in self._standing.seen.objects.items():
            reflector = Reflector(
                self._api,
                self._standing.kinds[kind],
                keep_objects=True,
                reduce=lambda each: kept(each, self._keys),
                on_change=self._noter(kind),
                on_state=self._state_noter(kind),
            )
            reflector.begin(Listing([*found], self._standing.versions[kind]))
            self._tasks.append(asyncio.create_task(reflector.run()))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _noter(self, kind: Kind) -> Callable[[Verb, str, str, Object | None], None]:
        objects = self._objects[kind]

        def note(verb: Verb, namespace: str, name: str, obj: Object | None) -> None:
            key, before = (namespace, name), objects.get((namespace, name))
            if verb == "delete" or obj is None:
                objects.pop(key, None)
            else:
                objects[key] = obj
            if _said(before) != _said(objects.get(key)):
                self.changed.set()

        return note

    def _state_noter(self, kind: Kind) -> Callable[[Reflector, str, bool], None]:
        def note(_: Reflector, reason: str, unreachable: bool) -> None:
            del unreachable
            if reason:
                self.lost[kind] = reason
            else:
                self.lost.pop(kind, None)
            self._on_state()

        return note

    @property
    def served(self) -> ServedKinds:
        """The kinds of the cluster."""
        return self._standing.served

    @property
    def config(self) -> Config:
        """The configuration by which namespaces are what they are."""
        return self._standing.seen.config

    def kinds_with(self, kind: str, namespace: str, name: str) -> list[Kind]:
        """The kinds of a name that have an object of a name, as they are served: two groups can have one name of a kind."""
        found = [each for each, objects in self._objects.items() if each.kind == kind and (namespace, name) in objects]
        return [self._standing.kinds[each] for each in found]

    async def now(self) -> Standing:
        """The lists as they are now, and what `tenantry up` tells."""
        unread = dict(self._standing.seen.unread)
        told = await here(self._api, unread)
        objects = {kind: list(found.values()) for kind, found in self._objects.items()}
        return replace(self._standing, seen=replace(self._standing.seen, objects=objects, unread=unread), told=told)


def _name(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _said(obj: Object | None) -> Object | None:
    """What of an object could be shown: another resource version alone is no change."""
    if obj is None:
        return None
    unshown = ("resourceVersion", "managedFields", "generation")
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name not in unshown}}
