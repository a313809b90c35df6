"""A map and what runs it as lines of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from tenantry.cli.output import columns
from tenantry.cli.standing.glyphs import Glyphs, Line, printable
from tenantry.model.limits import few
from tenantry.model.map import Map, Node, ToldProblem
from tenantry.model.map.system import System, time_text

SUBJECTS = 5
"""Of one binding, on one line."""
PROBLEMS = 20
"""On one screen; the rest is counted, and is all there with ``-o json``."""
LETTERS = 3
_INDENT = "    "


def head_lines(unread: Mapping[str, str], missing: Sequence[str], glyphs: Glyphs) -> Iterator[Line]:
    """What could not be read, before anything else, and what an older installation does not have."""
    if unread:
        yield Line("NOT ALL OF THE CLUSTER: what follows lacks what could not be read", "red", bold=True)
        for what, why in sorted(unread.items()):
            yield Line(f"  {what}: {printable(why, glyphs)}", "red")
        yield Line("  ask an administrator for the rights to list them, or use another kubeconfig", "red")
        yield Line("")
    if missing:
        yield Line(f"OLDER INSTALLATION: the cluster does not serve {few(sorted(missing))}", "yellow", bold=True)
        yield Line(
            "  apply knative/ of this version again (docs/running.md, Upgrade), or use the command of the version installed",
            "yellow",
        )
        yield Line("")


def tree_lines(nodes: Sequence[Node], glyphs: Glyphs) -> Iterator[Line]:
    """A tree below each of the nodes."""
    for node in nodes:
        yield _node_line(node, "", glyphs)
        yield from _below(node, "", glyphs)


def _below(node: Node, prefix: str, glyphs: Glyphs) -> Iterator[Line]:
    for number, child in enumerate(node.children, 1):
        last = number == len(node.children)
        yield _node_line(child, prefix + (glyphs.last if last else glyphs.branch), glyphs)
        yield from _below(child, prefix + (glyphs.space if last else glyphs.down), glyphs)


def node_text(node: Node) -> str:
    """A node in one line, without its marks."""
    if node.role:
        whom = few(list(node.subjects), SUBJECTS) or "nobody"
        by = f", made for {node.by}" if node.by else ""
        return f"{node.kind} {node.name}: {node.role} to {whom}{by}"
    return f"{node.title} ({node.note})" if node.note else node.title


def _node_line(node: Node, prefix: str, glyphs: Glyphs) -> Line:
    errors = [each.reason for each in node.problems if not each.warns]
    warnings = [each.reason for each in node.problems if each.warns]
    marks = [f"{glyphs.error} {reason}" for reason in errors] + [f"{glyphs.warning} {reason}" for reason in warnings]
    text = printable("  ".join([node_text(node), *marks]), glyphs)
    colour = "red" if errors else "yellow" if warnings else ""
    return Line(prefix + text, colour, bold=node.kind == "group")


def status_lines(map_: Map, system: System, now: datetime, glyphs: Glyphs, width: int) -> Iterator[Line]:
    """One screen: what runs, what waits, and what is wrong."""
    yield from _service_lines(system, now, glyphs)
    yield Line("")
    waiting = "unknown" if system.backlog is None else f"{system.backlog} waiting"
    note = f" ({system.backlog_note})" if system.backlog_note else ""
    yield Line(f"backlog: {waiting}{note}", "yellow" if (system.backlog or 0) > 0 else "")
    yield from _letter_lines(system, glyphs)
    for text in system.events:
        yield Line(f"{glyphs.error} {printable(text, glyphs)}", "red")
    yield Line(summary(map_))
    yield Line("")
    yield from problem_lines(map_, now, glyphs, width)


def summary(map_: Map) -> str:
    """How much there is, in a line."""
    owners = {"projects": ("project", "projects"), "paas": ("Paas", "Paas"), "tenants": ("tenant", "tenants")}
    found = [counted(len(group.children), *owners[group.name]) for group in map_.groups if group.name in owners]
    places, people = counted(map_.namespaces, "namespace", "namespaces"), counted(map_.people, "person", "people")
    return ", ".join([*(found or ["no project, no Paas, no tenant"]), places, f"{people} named by bindings"])


def _service_lines(system: System, now: datetime, glyphs: Glyphs) -> Iterator[Line]:
    head = ("FUNCTION", "STATE", "LAST SWEEP", "EVERY")
    rows, colours = [], []
    for each in system.services:
        age = each.age_s(now)
        last = "unknown" if age is None else f"{time_text(age)} ago"
        rows.append((each.name, each.state, f"{last}, late" if each.is_late(now) else last, time_text(each.every_s or None)))
        colours.append("red" if each.failed or not each.is_well(now) else "")
    first, *lines = columns(head, rows)
    yield Line(first, bold=True)
    for line, colour in zip(lines, colours, strict=True):
        yield Line(printable(line, glyphs), colour)
    notes: dict[str, list[str]] = {}
    for each in system.services:
        if each.note:
            notes.setdefault(each.note, []).append(each.name)
    for note, names in notes.items():
        who = "all of them" if len(names) == len(system.services) > 1 else few(names, 3)
        yield Line(f"  {who}: {printable(note, glyphs)}")


def _letter_lines(system: System, glyphs: Glyphs) -> Iterator[Line]:
    if not system.letters:
        yield Line("dead letters: none")
        return
    dropped = f", {system.dropped} older ones dropped" if system.dropped else ""
    yield Line(f"dead letters: {len(system.letters)}{dropped}; see `tenantry dead-letters`", "red")
    for each in system.letters[:LETTERS]:
        text = f"{each.function}: {each.key}: {each.status} {each.reason} ({each.count} times, last {each.last})"
        yield Line(f"  {printable(text, glyphs)}", "red")


def problem_lines(map_: Map, now: datetime, glyphs: Glyphs, width: int, most: int = PROBLEMS) -> Iterator[Line]:
    """The problems with their fixes, the most urgent first."""
    if not map_.problems:
        yield Line(
            f"{glyphs.well} no problems" + (" in what could be read" if map_.unread else ""), "" if map_.unread else "green"
        )
        return
    warnings = len(map_.problems) - len(map_.errors)
    counts = f"{counted(len(map_.errors), 'error', 'errors')}, {counted(warnings, 'warning', 'warnings')}"
    yield Line(f"problems: {counts}; first those that concern most people", bold=True)
    for each in map_.problems[:most]:
        yield Line("")
        yield from _problem(each, now, glyphs, width)
    if len(map_.problems) > most:
        yield Line("")
        yield Line(f"{glyphs.more} and {len(map_.problems) - most} more: `tenantry status -o json`")


def _problem(problem: ToldProblem, now: datetime, glyphs: Glyphs, width: int) -> Iterator[Line]:
    mark, colour = (glyphs.warning, "yellow") if problem.warns else (glyphs.error, "red")
    owner = f" of {problem.owner}" if problem.owner and problem.owner != f"{problem.kind.lower()}/{problem.name}" else ""
    yield Line(f"{mark} {problem.reason}: {problem.about}{owner}", colour, bold=True)
    yield Line(f"{_INDENT}{concerns(problem, now)}")
    yield from _wrapped(printable(problem.told, glyphs), "", width)
    yield from _wrapped(printable(problem.fix, glyphs), "fix: ", width)


def concerns(problem: ToldProblem, now: datetime) -> str:
    """Whom a problem concerns, and for how long."""
    since = ""
    if problem.since:
        since = f", for {time_text((now - datetime.fromisoformat(problem.since)).total_seconds())}"
    whom = f"{counted(problem.people, 'person', 'people')}, {counted(problem.namespaces, 'namespace', 'namespaces')}"
    return f"concerns {whom}{since}"


def counted(number: int, one: str, several: str) -> str:
    """``1 person``, ``2 people``."""
    return f"{number:,} {one if number == 1 else several}"


def _wrapped(text: str, before: str, width: int) -> Iterator[Line]:
    wide = max(40, width or 130)
    lines = textwrap.wrap(text, wide, initial_indent=_INDENT + before, subsequent_indent=_INDENT, break_on_hyphens=False)
    yield from (Line(each) for each in lines)
