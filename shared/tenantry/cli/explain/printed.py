"""Answers as text: the same values that YAML and JSON have, in lines that a person reads from the top."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from tenantry.cli.explain.told import Told
from tenantry.cli.output import in_a_line
from tenantry.model.origin import MAKES

_FIELDS, _STEPS = 12, 3
"""How many fields of one manager text has, and how deep it names them."""


def _shortened(path: str) -> str:
    """A path of a field down to a few steps: what is below is ours, too."""
    steps: list[str] = re.findall(r"\[[^\]]*\]|[^.\[]+", path)
    kept = steps[:_STEPS]
    return kept[0] + "".join(step if step.startswith("[") else f".{step}" for step in kept[1:])


def say(lines: Iterator[str]) -> None:
    """Print lines; what others wrote cannot move the cursor."""
    for line in lines:
        click.echo(in_a_line(line))


def heading(answer: str, rest: str, *, good: bool) -> None:
    """The answer, coloured on a terminal."""
    click.echo(f"{click.style(answer, fg='green' if good else 'red', bold=True)}: {in_a_line(rest)}")


def can_answer(told: Told) -> tuple[str, str]:
    """Whether somebody has a right, and what was asked."""
    if told.get("unknown"):
        return "not known", f"{told['asked']}? No path is to be seen, and not all could be read"
    return "yes" if told["allowed"] else "no", told["asked"]


def missing_answer(told: Told) -> tuple[str, str]:
    """Whether something is missing for a right, and what was asked."""
    if told["allowed"]:
        return "nothing is missing", f"{told['asked']}; see `tenantry explain can`"
    if told.get("unknown"):
        return "not known", f"{told['asked']}? What may give it could not all be read"
    return "missing", told["asked"]


def can_lines(told: Told) -> Iterator[str]:
    """The paths to a right."""
    if told["paths"] and not told["ours"]:
        yield "nothing of ours gives this; what gives it:"
    for number, path in enumerate(told["paths"], 1):
        yield ""
        yield from _path_lines(number, path)
    yield from rest_lines(told)


def _path_lines(number: int, path: Told) -> Iterator[str]:
    yield f"{number}. {path['binding']} binds {path['subject']} to {path['role']}"
    where = f", from ClusterRole {', '.join(path['aggregatedFrom'])}" if path.get("aggregatedFrom") else ""
    yield f"   rule {path['rule']['number'] + 1}: {path['rule']['text']}{where}"
    for each in path["madeBy"]:
        yield from made_lines(each, "   ")
    for each in path.get("roleMadeBy", ()):
        yield f"   the role: {each['function']} {each['does']} for {each['owner']} ({each['proof']})"


def made_lines(made: Told, indent: str) -> Iterator[str]:
    """Where an object comes from, and what ends it."""
    if "function" not in made:
        managers = f" (written by {', '.join(made['fieldManagers'])})" if made.get("fieldManagers") else ""
        yield f"{indent}{made['note']}{managers}"
    else:
        yield f"{indent}{made['function']} (unit {made['unit']}) {made['does']} for {made['owner']}"
        yield f"{indent}  known by: {made['proof']}"
        yield from _cause_lines(made["because"], f"{indent}  ")
    for each in made["ends"]:
        yield f"{indent}to end it: {each}"


def _cause_lines(causes: Sequence[Told], indent: str) -> Iterator[str]:
    for each in causes:
        says = f": {each['says']}" if each["says"] else ""
        place = f" ({each['place']})" if "place" in each else f" ({each['there']})" if "there" in each else ""
        yield f"{indent}because of {each['of']}, {each['line']}{says}{place}"
        for problem in each.get("problems", ()):
            yield f"{indent}  it says: {problem}"
        for made in each.get("madeBy", ()):
            yield f"{indent}  which {made['function']} (unit {made['unit']}) {made['does']} for {made['owner']}"
            yield from _cause_lines(made["because"], f"{indent}    ")


def rest_lines(told: Told) -> Iterator[str]:
    """What the API server says, remarks, and what could not be seen."""
    review, lines = told.get("review") or {}, []
    if review.get("disagrees"):
        lines.append(f"{review['kind']} says {'yes' if review['allowed'] else 'no'}: {review['disagrees']}")
    elif review.get("allowed") is not None:
        lines.append(f"{review['kind']} agrees")
    elif review:
        lines.append(f"not checked with the API server: {review.get('reason', '')}")
    lines += [f"note: {each}" for each in told.get("notes", ())]
    if told.get("unread"):
        lines.append(f"you may not read: {'; '.join(told['unread'])}: what is there, is not in this answer")
    if lines:
        yield ""
        yield from lines


def lacking_lines(told: Told) -> Iterator[str]:
    """What is missing for a right."""
    near = [each for each in told["bound"] if "nearest" in each]
    for each in near:
        yield f"{each['binding']} binds {each['subject']} to {each['role']}: {each['lacks']}"
        yield f"  nearest rule: {each['nearest']}"
    if far := len(told["bound"]) - len(near):
        yield f"{far} {'more ' if near else ''}bindings name them, and no rule of theirs is near"
    for each in told["elsewhere"]:
        yield f"elsewhere: {each['binding']} gives it {each['where']}"
    for each in told["offers"]:
        yield ""
        yield f"{each['of']}, {each['line']}{': ' if each['says'] else ''}{each['says']}"
        yield f"  {each['lacks']}"
        for problem in each.get("problems", ()):
            yield f"  it says: {problem}"
        yield f"  to have it: {each['fix']}"
    for each in told["roles"]:
        yield ""
        yield f"{each['role']} would give it: {each['fix']}"
    yield from rest_lines(told)


def object_answer(told: Told) -> tuple[str, str]:
    """Whether an object is ours, and its name with what follows."""
    if any(each["does"] == MAKES for each in told["madeBy"]):
        return "ours", told["object"]
    if told["ours"]:
        return "ours in part", f"{told['object']}: somebody else made it"
    return "not ours", f"{told['object']}: no function made it"


def object_lines(told: Told) -> Iterator[str]:
    """Whose an object is, and which fields are ours."""
    for each in told["madeBy"]:
        yield from made_lines(each, "")
    for each in told["fields"]:
        yield ""
        yield f"fields of {each['manager']} ({each['of']}):"
        short = list(dict.fromkeys(_shortened(field) for field in each["fields"]))
        yield from (f"  {field}" for field in short[:_FIELDS])
        if len(short) > _FIELDS:
            yield f"  and {len(short) - _FIELDS} more: -o yaml has all"
    for each in told["finalizers"]:
        yield f"finalizer {each['name']}: {each['of']} has something to do before it goes"
    if told["others"]:
        yield ""
        yield f"other field managers: {', '.join(told['others'])}"
    yield from rest_lines(told)
