"""How a plan is printed: a line for each write with its cause, differences, and all of it for programs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

import click
import yaml

from tenantry.cli.foresee.outcome import Net, PlanOutcome, grant_dict, grant_line, told
from tenantry.cli.output import in_a_line
from tenantry.engine.overlay.asking import DryRuns
from tenantry.engine.overlay.store import Overlay, Written
from tenantry.model.comparison import Path, shown
from tenantry.model.kinds import SECRET, Object, finalizers_of, is_terminating

_COLOURS = {"create": "green", "delete": "red", "update": "yellow", "status": "cyan"}
_PATHS = 4
"""Paths of fields in a line, at most; all are in JSON, YAML and the difference."""
NOT_WHOLE = "; this is not the whole plan"
_EVENTS = 20
"""Events that are printed, at most; all are in JSON and YAML."""
_UNIMPORTANT = ("lastTransitionTime",)


def show(outcome: PlanOutcome, *, diff: bool, whole: bool) -> None:
    """Print a plan for people; one that is not the whole says so in its first line, since the reasons go to standard error."""
    click.secho(f"{outcome.summary}{'' if whole else NOT_WHOLE}", bold=True)
    rows = [(str(each.actor.step), each.verb, str(each.key), _why(each)) for each in outcome.writes]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        number, verb, key = (text.ljust(width) for text, width in zip(row, widths, strict=False))
        click.echo(in_a_line(f"{number}  ") + click.style(verb, fg=_COLOURS[row[1]]) + in_a_line(f"  {key}  {row[3]}").rstrip())
    for grants, verb in ((outcome.lost, "loses"), (outcome.gained, "gains")):
        for grant in sorted(grants):
            click.echo(in_a_line(grant_line(grant, verb)))
    for each in outcome.events[:_EVENTS]:
        assert each.after is not None
        event = each.after
        click.echo(in_a_line(f"says {event.get('reason')} of {_of(event)}: {event.get('note', '')}"))
    if len(outcome.events) > _EVENTS:
        click.echo(f"and {len(outcome.events) - _EVENTS} more Events: see -o json")
    if diff:
        for net in outcome.nets:
            for line in difference_of(net):
                click.secho(in_a_line(line), fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))


def notes(outcome: PlanOutcome, overlay: Overlay, asked: DryRuns | None) -> Iterator[str]:
    """What is not foreseen, not seen, or would be refused, a line each."""
    for what, about in overlay.unforeseen.items():
        yield f"not foreseen: {what} ({about})"
    for key, words in overlay.refused.items():
        yield f"would be refused: {key}: {words}"
    if asked is not None and asked.not_asked:
        first = next(iter(asked.not_asked.items()))
        count = len(asked.not_asked)
        yield f"not asked: the server cannot be asked about {count} of {count + asked.asked} writes: {first[0]}: {first[1]}"
    for what, why in overlay.unseen.items():
        yield f"could not be read: {what}: {why}"
    for each in outcome.foreseen.problems:
        older = f": {', '.join(sorted(overlay.not_served))}; is the installation older than this command?"
        reason = each.reason + (older if each.reason.startswith("KindNotServed") else "")
        yield f"not foreseen to the end: {each.service}/{each.unit} about {each.about}: {reason}"
    if outcome.foreseen.restless:
        yield f"comes to no rest: {outcome.foreseen.restless}; what is listed is the beginning"


def as_dict(outcome: PlanOutcome, overlay: Overlay, asked: DryRuns | None, source: str, *, diff: bool) -> dict[str, Any]:
    """A plan for programs."""
    return {
        "summary": outcome.summary,
        "configuration": source,
        "change": [_object(each, each.change, diff=diff) for each in outcome.nets if each.change],
        "objects": [_object(each, each.follows, diff=diff) for each in outcome.follows],
        "writes": [_write(each) for each in outcome.writes],
        "rights": [grant_dict(each, "lost") for each in sorted(outcome.lost)]
        + [grant_dict(each, "gained") for each in sorted(outcome.gained)],
        "events": [
            {"of": _of(each.after or {}), "reason": (each.after or {}).get("reason"), "note": (each.after or {}).get("note")}
            for each in outcome.events
        ],
        "notForeseen": [{"what": what, "about": about} for what, about in overlay.unforeseen.items()],
        "refused": [{"object": str(key), "message": words} for key, words in overlay.refused.items()],
        "notAsked": [{"object": what, "why": why} for what, why in (asked.not_asked if asked is not None else {}).items()],
        "notRead": [{"what": what, "why": why} for what, why in overlay.unseen.items()],
        "problems": [
            {"service": each.service, "unit": each.unit, "about": each.about, "reason": each.reason}
            for each in outcome.foreseen.problems
        ],
        "restless": outcome.foreseen.restless,
    }


def _object(net: Net, effect: str, *, diff: bool) -> dict[str, Any]:
    found: dict[str, Any] = {**_key(net), "effect": effect}
    if diff:
        found["diff"] = "\n".join(difference_of(net))
    return found


def _write(written: Written) -> dict[str, Any]:
    actor = written.actor
    paths = [] if written.before is None or written.after is None else [shown(each) for each in changed(written)]
    return {
        "step": actor.step,
        "verb": written.verb,
        **_key(written),
        "function": actor.name,
        "unit": actor.unit,
        "owner": written.owner,
        "cause": actor.cause,
        "fields": paths,
    }


def _key(of: Net | Written) -> dict[str, str]:
    key = of.key
    return {"apiVersion": key.api_version, "kind": key.kind, "namespace": key.namespace, "name": key.name}


def _why(written: Written) -> str:
    """Who writes, for whom, because of what; and which fields."""
    actor = written.actor
    who = f"{actor.name}/{actor.unit} for {written.owner}" if actor.unit else actor.name
    text = f"{who}, because of {actor.cause}"
    if written.verb == "delete" and written.after is not None:
        text += f": stays until {', '.join(finalizers_of(written.after)) or 'it is empty'}"
    elif written.verb != "delete" and written.after is None:
        text += ": its last finalizer, and it is gone"
    elif written.before is not None and written.after is not None:
        paths = [shown(each) for each in changed(written)]
        more = f" and {len(paths) - _PATHS} more" if len(paths) > _PATHS else ""
        text += f": {', '.join(paths[:_PATHS])}{more}" if paths else ": only who owns its fields"
    return text


def _of(event: Object) -> str:
    about = event.get("regarding") or {}
    where = "/".join(filter(None, (about.get("namespace"), about.get("name"))))
    return f"{about.get('kind')} {where}"


def changed(written: Written) -> list[Path]:
    """Where an object differs after a write."""
    assert written.before is not None
    assert written.after is not None
    return list(_paths(told(written.before), told(written.after), ()))


def _paths(one: Any, other: Any, path: Path) -> Iterator[Path]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in sorted({*one, *other}, key=str):
            if name not in _UNIMPORTANT:
                yield from _paths(one.get(name), other.get(name), (*path, name))
    elif isinstance(one, dict | None) and isinstance(other, dict | None) and (one or other) and path[-1:] in _MAPS:
        yield from ((*path, str(name)) for name in {**(one or {}), **(other or {})})
    elif isinstance(one, list) and isinstance(other, list) and all(_typed(each) for each in (*one, *other)):
        by_one, by_other = ({each["type"]: each for each in entries} for entries in (one, other))
        for name in {**by_one, **by_other}:
            yield from [(*path, (("type", name),))] if by_one.get(name) != by_other.get(name) else []
    elif one != other:
        yield path


_MAPS = (("labels",), ("annotations",), ("data",))


def _typed(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("type"), str)


def difference_of(net: Net) -> list[str]:
    """The difference of an object before and after all writes, as YAML; what Secrets hold is not shown."""
    before, after = (_lines(each) for each in (net.before, net.after))
    if net.after is not None and is_terminating(net.after):
        after = [*after, "# it is being deleted"]
    return list(difflib.unified_diff(before, after, f"{net.key} (now)", f"{net.key} (then)", lineterm=""))


def _lines(obj: Object | None) -> list[str]:
    if obj is None:
        return []
    body = told(obj)
    if obj["kind"] == SECRET.kind:
        for part in ("data", "stringData"):
            if isinstance(body.get(part), dict):
                body = {**body, part: {name: f"({len(str(value))} characters)" for name, value in body[part].items()}}
    text: str = yaml.safe_dump(body, sort_keys=True, allow_unicode=True, width=120)
    return text.splitlines()
