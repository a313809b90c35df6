"""Questions to a ledger: which decisions concern something, and what an owner had at a time.

All read the file only; its writer goes on meanwhile.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tenantry.model.decision import Cause, named
from tenantry.model.kinds import Key, Object
from tenantry.serving.ledger.record import unpacked
from tenantry.serving.ledger.store import SCHEMA, LedgerError

FOREVER = 2**62
_SUBJECTS = ("User", "Group", "ServiceAccount")
_OF_LAST = ("time", "function", "unit", "verdict", "causes", "inputs", "inputsLeftOut")
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Query:
    """A condition on decisions ``d`` in SQL, with its arguments."""

    condition: str
    arguments: tuple[Any, ...]


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A ledger that is only read, while it is written or as a copy that lies where nobody may write.

    Raises:
        LedgerError: there is none, it is damaged, or of another version.
    """
    if not path.is_file():
        raise LedgerError(f"there is no ledger at {path}: it begins with the first decision, where decisions.enabled is true")
    try:
        connection = sqlite3.connect(_address(path), uri=True, isolation_level=None)
        try:
            connection.execute("PRAGMA busy_timeout = 5000")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found != SCHEMA:
                raise LedgerError(f"{path} is no ledger of this version: it says {found}, and {SCHEMA} is known")
            connection.execute("BEGIN")  # one moment for all questions
            yield connection
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        way = "its writer puts it aside and begins anew; name another file with --ledger"
        if isinstance(error, sqlite3.OperationalError):  # not its contents, but its place
            way = "you may not use it, or its folder: copy it, and the files of its name beside it, to where you may write"
        raise LedgerError(f"the ledger {path} cannot be read ({error}): {way}") from error


def _address(path: Path) -> str:
    """The file for SQLite, whose readers write beside it, unless they are told that nobody changes it."""
    log = path.with_name(f"{path.name}-wal")
    alone = not os.access(path.parent, os.W_OK) and not log.exists()
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if alone else ''}"


def asked_for(what: str) -> Query:
    """The decisions that a text asks for.

    ``type/name`` and ``type/namespace/name`` with a small letter at first is an owner; ``Kind/name`` and ``Kind/namespace/name``
    an object that was written, or whose event was a cause; ``User/name``, ``Group/name`` and ``ServiceAccount/namespace/name`` a
    subject of bindings; a single word is a namespace, or the name of a user or group.
    """
    if not what:
        return Query("1", ())
    first, _, rest = what.partition("/")
    if first in _SUBJECTS[:2] and rest:
        return _of_subjects(what)
    if what.startswith(_ACCOUNT) and what.count(":") == 3:
        namespace, _, name = what.removeprefix(_ACCOUNT).partition(":")
        return asked_for(f"ServiceAccount/{namespace}/{name}")
    if rest and first[:1].isupper():
        kind, _, group = first.partition(".")
        namespace, _, name = rest.rpartition("/")
        of_object = _of_object(kind, group, namespace, name)
        return _either(of_object, _of_subjects(what)) if kind == _SUBJECTS[2] else of_object
    if rest:
        return _either(Query("d.owner = ?", (what,)), _of_subjects(f"User/{what}", f"Group/{what}"))
    within = "(namespace = ? OR (kind = 'Namespace' AND name = ? AND namespace = ''))"
    of_namespace = Query(
        f"(d.id IN (SELECT decision FROM writes WHERE {within}) "  # noqa: S608 - no part of it is from outside
        f"OR d.id IN (SELECT decision FROM causes WHERE {within}))",
        (what,) * 4,
    )
    return _either(of_namespace, _of_subjects(f"User/{what}", f"Group/{what}"))


def _of_subjects(*subjects: str) -> Query:
    marks = ", ".join("?" * len(subjects))
    return Query(f"d.id IN (SELECT decision FROM subjects WHERE subject IN ({marks}))", subjects)  # noqa: S608


def _of_object(kind: str, group: str, namespace: str, name: str) -> Query:
    of_group = " AND api_version LIKE ?" if group else ""
    one = f"SELECT decision FROM {{}} WHERE namespace = ? AND name = ? AND kind = ?{of_group}"  # noqa: S608
    arguments = (namespace, name, kind, *([f"{group}/%"] if group else ()))
    return Query(f"(d.id IN ({one.format('writes')}) OR d.id IN ({one.format('causes')}))", arguments * 2)


def _either(one: Query, other: Query) -> Query:
    return Query(f"({one.condition} OR {other.condition})", (*one.arguments, *other.arguments))


def decisions(connection: sqlite3.Connection, asked: Query, since: int, until: int, limit: int) -> tuple[list[Object], int]:
    """The newest decisions from ``since`` to ``until``, in milliseconds since 1970, the oldest first; and how many older ones."""
    where = f"FROM decisions d WHERE d.at BETWEEN ? AND ? AND {asked.condition}"
    arguments = (since, until, *asked.arguments)
    count = connection.execute(f"SELECT COUNT(*) {where}", arguments).fetchone()[0]
    rows = connection.execute(
        f"SELECT d.* {where} ORDER BY d.at DESC, d.id DESC LIMIT ?",
        (*arguments, limit),
    )
    rows.row_factory = sqlite3.Row
    found = [_decision(connection, row) for row in reversed(rows.fetchall())]
    return found, count - len(found)


def _decision(connection: sqlite3.Connection, row: sqlite3.Row) -> Object:
    process = connection.execute("SELECT function, service FROM processes WHERE instance = ?", (row["instance"],)).fetchone()
    more = unpacked(row["more"])
    causes = connection.execute(
        "SELECT api_version, kind, namespace, name, event, time FROM causes WHERE decision = ?", (row["id"],)
    )
    writes = connection.execute(
        "SELECT verb, api_version, kind, namespace, name, version, more FROM writes WHERE decision = ? ORDER BY rowid",
        (row["id"],),
    )
    return {
        "time": shown_time(row["at"]),
        "function": process[0],
        "service": process[1],
        "unit": row["unit"],
        "owner": row["owner"],
        "causes": [Cause(Key(*key) if key[1] else None, event, time).document() for *key, event, time in causes],
        "causesLeftOut": more.get("causesLeftOut", 0),
        "writes": [
            {"verb": verb, **named(Key(*key)), **({"resourceVersion": version} if version else {}), **unpacked(fields)}
            for verb, *key, version, fields in writes
        ],
        "refused": more.get("refused", []),
        "verdict": {"status": row["status"], "reason": row["reason"], "complete": bool(row["complete"])},
        "durationMs": row["duration"],
        "inputs": more.get("inputs", []),
        "inputsLeftOut": more.get("inputsLeftOut", 0),
        "process": row["instance"],
        "sequence": row["sequence"],
        "part": row["part"],
        "parts": row["parts"],
        "traceparent": row["trace"],
    }


def owners_decided(connection: sqlite3.Connection, asked: Query, since: int, until: int) -> list[tuple[str, str, str]]:
    """Function, unit and owner of the decisions from ``since`` to ``until``, each once, in the order of their first decision."""
    return connection.execute(
        "SELECT p.function, d.unit, d.owner FROM decisions d JOIN processes p ON p.instance = d.instance "  # noqa: S608
        f"WHERE d.at BETWEEN ? AND ? AND {asked.condition} GROUP BY 1, 2, 3 ORDER BY MIN(d.at), MIN(d.id)",
        (since, until, *asked.arguments),
    ).fetchall()


def owners_like(connection: sqlite3.Connection, text: str) -> list[str]:
    """Some owners whose name has this text."""
    found = connection.execute("SELECT DISTINCT owner FROM decisions WHERE instr(owner, ?) LIMIT 10", (text,))
    return [owner for (owner,) in found]


def begins(connection: sqlite3.Connection) -> int | None:
    """When the oldest decision was made; None where there is none."""
    found: int | None = connection.execute("SELECT MIN(at) FROM decisions").fetchone()[0]
    return found


def owner_at(connection: sqlite3.Connection, owner: str, at: int) -> Object | None:
    """What the decisions for an owner until a time add up to; None where there is none.

    Objects with the version and the fields that they were left with, those of bindings with subjects and role.
    """
    found, _ = decisions(connection, Query("d.owner = ?", (owner,)), 0, at, FOREVER)
    if not found:
        return None
    objects: dict[Key, Object] = {}
    for decision in found:
        for write in decision["writes"]:
            key = Key(*(str(write.get(part, "")) for part in ("apiVersion", "kind", "namespace", "name")))
            if write["verb"] == "delete":
                objects.pop(key, None)
            else:
                objects[key] = _after(objects.get(key), write, key, decision["time"])
    last = found[-1]
    return {
        "owner": owner,
        "at": shown_time(at),
        "objects": list(objects.values()),
        "lastDecision": {name: last[name] for name in _OF_LAST},
    }


def _after(before: Object | None, write: Object, key: Key, time: str) -> Object:
    kept = before or {"fields": [], "subjects": [], "since": time, "made": write["verb"] == "create"}
    lost = set(write.get("givenUp", ()))
    fields = [each for each in kept["fields"] if each not in lost]
    subjects = set(kept["subjects"]) - set(write.get("subjectsRemoved", ())) | set(write.get("subjectsAdded", ()))
    return {
        **named(key),
        "resourceVersion": write.get("resourceVersion", ""),
        "made": kept["made"] or write["verb"] == "create",
        "since": kept["since"],
        "written": time,
        "fields": [*fields, *(each for each in write.get("changed", ()) if each not in fields)],
        "role": write.get("role") or (before or {}).get("role", ""),
        "subjects": sorted(subjects),
    }


def shown_time(milliseconds: int) -> str:
    """A time since 1970 in UTC, as the API server writes it, with milliseconds."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"
