"""``tenantry history``: what was decided, because of what, and what an owner had at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from tenantry.cli.ledger import Time, ledger_option, ledger_path
from tenantry.cli.options import kubeconfig_option
from tenantry.cli.output import in_a_line, output_option, structured
from tenantry.model.kinds import Object
from tenantry.model.limits import few
from tenantry.serving.ledger.asked import asked_for, begins, decisions, owner_at, owners_like, reading, shown_time
from tenantry.serving.ledger.gaps import missing
from tenantry.serving.ledger.store import LedgerError, milliseconds, now_ms

FIELDS_SHOWN = 6
"""Of a write, as text; the other forms have all that are kept."""
_NOT_PROVEN = (
    "values of fields: only their names are kept",
    "what others wrote or deleted, or the garbage collector and the end of a namespace took",
    "what was there before the ledger began ({begins}), unless it was written since",
)


@click.command()
@click.argument("what", default="", metavar="[OWNER|KIND/NAMESPACE/NAME|NAMESPACE|USER]")
@click.option("--since", type=Time(), metavar="TIME", help="Only what was decided since: 90s, 30m, 2h, 7d, or a time.")
@click.option("--until", type=Time(), metavar="TIME", help="Only what was decided until then.")
@click.option("--at", type=Time(), metavar="TIME", help="What an OWNER had then, as far as its decisions say.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most so many, the newest.")
@ledger_option
@kubeconfig_option
@output_option
def history(
    what: str,
    since: int | None,
    until: int | None,
    at: int | None,
    limit: int,
    ledger: Path | None,
    kubeconfig: Path | None,
    output: str,
) -> None:
    """List decisions: what was written, because of what, and how it ended; the newest at the end.

    An OWNER is what a run is for, as in logs: project/p-a.  KIND/NAME or KIND/NAMESPACE/NAME is an object that was written, or
    that a run was made for.  A NAMESPACE has all that was written in it.  A USER has the bindings that named it, when they came
    and when they went; User/NAME, Group/NAME and ServiceAccount/NAMESPACE/NAME say which is meant.

    What is missing in the ledger is said at the end.  No values of fields are kept, so none are shown.

    \b
    Examples:
      tenantry history
      tenantry history project/p-a --since 2h
      tenantry history RoleBinding/cattle-project-p-a/alice
      tenantry history alice -o yaml
      tenantry history --at 2026-11-27T15:00:00Z project/p-a
    """
    if at is not None and (not what or since is not None or until is not None):
        raise click.UsageError("--at is for one OWNER, such as project/p-a, and goes without --since and --until")
    try:
        path = ledger_path(ledger, kubeconfig)
        if at is not None:
            _tell_at(path, what, at, output)
        else:
            _tell(path, what, since, until if until is not None else now_ms(), limit, output)
    except LedgerError as error:
        click.echo(f"tenantry: {error}", err=True)
        sys.exit(1)


def _tell(path: Path, what: str, since: int | None, until: int, limit: int, output: str) -> None:
    with reading(path) as connection:
        found, older = decisions(connection, asked_for(what), since or 0, until, limit)
        first = milliseconds(found[0]["time"]) if older and found else since or 0
        gaps, begin = missing(connection, first, until), begins(connection)
    if output != "text":
        begun = shown_time(begin) if begin is not None else None
        click.echo(structured({"decisions": found, "older": older, "missing": gaps, "ledgerBegins": begun}, output))
        return
    for each in found:
        _show(each)
    if not found:
        about = f" about {in_a_line(what)}" if what else ""
        when = f"; it begins at {shown_time(begin)}" if begin is not None else ", and nothing else yet"
        click.echo(f"the ledger has no decision{about} in that time{when}")
    if older:
        click.echo(f"{older} older ones: --limit, --since and --until choose")
    _show_gaps(gaps)


def _show(decision: Object) -> None:
    click.secho(in_a_line(decision_head(decision)), bold=True, fg=None if went_well(decision) else "yellow")
    for line in decision_causes(decision):
        click.echo(in_a_line(f"  {line}"))
    for write in decision["writes"]:
        click.echo(in_a_line(f"  {write_line(write)}"))
    for line in refused_lines(decision):
        click.secho(in_a_line(f"  {line}"), fg="yellow")


def decision_head(decision: Object) -> str:
    """A decision in a line: when, who, for whom, and how it ended."""
    part = f", part {decision['part']} of {decision['parts']}" if decision["parts"] > 1 else ""
    who = f"{decision['function']}/{decision['unit']}"
    return f"{decision['time']} {who} {decision['owner']}: {_ended(decision['verdict'])} in {decision['durationMs']} ms{part}"


def went_well(decision: Object) -> bool:
    """Whether nothing is left to be done, and nothing was refused."""
    return bool(decision["verdict"]["complete"]) and decision["verdict"]["status"] == 204


def decision_causes(decision: Object) -> Iterable[str]:
    """A line for each object whose events were causes."""
    return (f"because of {line}" for line in _causes(decision))


def write_line(write: Object) -> str:
    """A write in a line, with the fields that it changed."""
    return f"{write['verb']} {object_name(write)}{_fields(write)}"


def refused_lines(decision: Object) -> Iterable[str]:
    """A line for each write that was refused."""
    return (f"refused {object_name(each)}: {each['cause']}" for each in decision["refused"])


def _ended(verdict: Object) -> str:
    return str(verdict["reason"] if verdict["status"] == 204 else f"{verdict['status']} {verdict['reason']}")


def _causes(decision: Object) -> Iterable[str]:
    """A line for each object whose events were causes, with the newest of them."""
    events: dict[str, list[Object]] = {}
    for cause in decision["causes"]:
        events.setdefault("a sweep" if cause.get("sweep") else object_name(cause), []).append(cause)
    for what, several in events.items():
        last = max(several, key=lambda each: str(each.get("time", "")))
        named = [f"{name}{last[key]}" for key, name in (("event", "event "), ("time", "")) if last.get(key)]
        many = [f"{len(several)} events, the last"] if len(several) > 1 else []
        yield f"{what} ({' '.join([*many, ', '.join(named)])})" if named else what
    if decision["causesLeftOut"]:
        yield f"{decision['causesLeftOut']} more events"


def _fields(write: Object) -> str:
    parts = [f"+{subject}" for subject in write.get("subjectsAdded", ())]
    parts += [f"-{subject}" for subject in write.get("subjectsRemoved", ())]
    if write.get("role"):
        parts = [f"{write['role']} for", *parts] if parts else [write["role"]]
    fields = [*write.get("changed", ()), *(f"-{path}" for path in write.get("givenUp", ()))]
    if write.get("fieldsLeftOut"):
        fields.append(f"{write['fieldsLeftOut']} more")
    text = few(fields, FIELDS_SHOWN) if write["verb"] != "create" else ""
    return "".join(f": {each}" for each in (" ".join(parts), text) if each)


def object_name(named: Object) -> str:
    """An object as people write it: ``RoleBinding ns/name``."""
    where = f"{named['namespace']}/" if named.get("namespace") else ""
    return f"{named.get('kind', '')} {where}{named.get('name', '')}"


def _show_gaps(gaps: list[Object]) -> None:
    for each in gaps:
        span = f"{each['after']} to {each['until']}" if "after" in each else each["until"]
        click.secho(in_a_line(f"missing, {span}: {each['text']}"), fg="yellow")


# -- at a time -------------------------------------------------------------------------------------------------------


def _tell_at(path: Path, owner: str, at: int, output: str) -> None:
    with reading(path) as connection:
        found = owner_at(connection, owner, at)
        gaps = missing(connection, 0, at)
        begin = begins(connection)
        near = owners_like(connection, owner.rpartition("/")[2]) if found is None else []
    if found is None:
        known = f"; there are {', '.join(near)}" if near else ""
        raise LedgerError(f"the ledger has no decision for {in_a_line(owner)} until {shown_time(at)}{in_a_line(known)}")
    begun = shown_time(begin) if begin is not None else "?"
    limits = [each.format(begins=begun) for each in _NOT_PROVEN]
    if output != "text":
        click.echo(structured({**found, "missing": gaps, "notProven": limits}, output))
        return
    click.secho(in_a_line(f"{owner} at {found['at']}, as its decisions until then left it"), bold=True)
    for each in found["objects"]:
        version = f" version {each['resourceVersion']}" if each["resourceVersion"] else ""
        did = "made" if each["made"] else "changed"
        click.echo(in_a_line(f"  {object_name(each)}{version}, {did} {each['since']}, last written {each['written']}"))
        if each["role"]:
            click.echo(in_a_line(f"    {each['role']} for {', '.join(each['subjects']) or 'nobody'}"))
        if each["fields"]:
            click.echo(in_a_line(f"    fields: {', '.join(each['fields'])}"))
    if not found["objects"]:
        click.echo("  nothing is left of what it had")
    last = found["lastDecision"]
    click.echo(in_a_line(f"decided last {last['time']} by {last['function']}/{last['unit']}: {_ended(last['verdict'])}, from"))
    for each in last["inputs"]:
        version = f"version {each['resourceVersion']}" if each.get("resourceVersion") else "not there"
        click.echo(in_a_line(f"  {object_name(each)} {version}"))
    if last["inputsLeftOut"]:
        click.echo(f"  {last['inputsLeftOut']} more objects")
    click.echo("not proven by it: " + "; ".join(limits))
    _show_gaps(gaps)
