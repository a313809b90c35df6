"""The file of the ledger: written by one process, read by any number of others meanwhile (SQLite's write-ahead log).

What was answered is on the disk.  A file that is gone is made anew, one that is damaged is put aside: decisions that come are
kept in any case, and `notes` say from when on.  Retention deletes the oldest, by age and by size.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from tenantry.serving.ledger.record import BegunTold, DecisionTold, EndedTold, Told, packed

log = logging.getLogger("tenantry")

SCHEMA = 1
DAY_MS = 86_400_000
PRUNE_EVERY = 500
"""Records after which it is looked whether there is too much."""
_PORTION = 200
"""Decisions that are deleted at a time for the size."""
_FULL = ("full", "disk i/o")

_TABLES = """
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
CREATE TABLE processes (
  instance TEXT PRIMARY KEY, function TEXT NOT NULL, service TEXT NOT NULL, host TEXT NOT NULL DEFAULT '',
  began INTEGER, heard INTEGER NOT NULL, ended INTEGER, last INTEGER, dropped INTEGER NOT NULL DEFAULT 0,
  forgotten INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE decisions (
  id INTEGER PRIMARY KEY, instance TEXT NOT NULL, sequence INTEGER NOT NULL, at INTEGER NOT NULL, kept INTEGER NOT NULL,
  unit TEXT NOT NULL, owner TEXT NOT NULL, status INTEGER NOT NULL, reason TEXT NOT NULL, complete INTEGER NOT NULL,
  duration INTEGER NOT NULL, part INTEGER NOT NULL, parts INTEGER NOT NULL, trace TEXT NOT NULL, more BLOB NOT NULL,
  UNIQUE (instance, sequence)
);
CREATE INDEX decisions_at ON decisions (at);
CREATE INDEX decisions_owner ON decisions (owner, at);
CREATE TABLE writes (
  decision INTEGER NOT NULL REFERENCES decisions ON DELETE CASCADE, verb TEXT NOT NULL, api_version TEXT NOT NULL,
  kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, more BLOB NOT NULL
);
CREATE INDEX writes_decision ON writes (decision);
CREATE INDEX writes_object ON writes (namespace, name, kind);
CREATE TABLE causes (
  decision INTEGER NOT NULL REFERENCES decisions ON DELETE CASCADE, api_version TEXT NOT NULL, kind TEXT NOT NULL,
  namespace TEXT NOT NULL, name TEXT NOT NULL, event TEXT NOT NULL, time TEXT NOT NULL
);
CREATE INDEX causes_decision ON causes (decision);
CREATE INDEX causes_object ON causes (namespace, name, kind);
CREATE TABLE subjects (
  decision INTEGER NOT NULL REFERENCES decisions ON DELETE CASCADE, subject TEXT NOT NULL
);
CREATE INDEX subjects_decision ON subjects (decision);
CREATE INDEX subjects_subject ON subjects (subject);
CREATE TABLE notes (at INTEGER NOT NULL, text TEXT NOT NULL);
"""


class LedgerError(RuntimeError):
    """The ledger cannot be used now; the message says why and what to do."""


def milliseconds(text: str) -> int:
    """A time as the outbox writes it, since 1970; now for one that is none."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        return now_ms()


def now_ms() -> int:
    """Now, in milliseconds since 1970."""
    return int(time.time() * 1000)


class Ledger:
    """The file, for its one writer; not for two threads at a time.

    Args:
        path: the file; its folder is made where there is none.
        max_age_days, max_bytes: what is older, or more, is deleted.
    """

    def __init__(self, path: Path, *, max_age_days: int, max_bytes: int) -> None:
        self.path = path
        self._max_age_ms = max_age_days * DAY_MS
        self._max_bytes = max_bytes
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] = (0, 0)
        self._since_prune = 0

    def open(self) -> None:
        """Open or make the file; one that is damaged is put aside.

        Raises:
            LedgerError: it cannot be opened.
        """
        if self._connection is not None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                self._connect()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
                    raise
                self._put_aside(error)
            self.prune()
        except (OSError, sqlite3.Error) as error:
            self.close()
            raise _problem(self.path, error) from error

    def close(self) -> None:
        """Close the file; it can be opened again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error as error:
                log.warning("the ledger %s was not closed well: %s", self.path, error)

    def _connect(self) -> None:
        there = self.path.exists()
        if not there:
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        connection = self._connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA busy_timeout = 5000")
        if self.path.stat().st_size == 0:
            connection.executescript(_TABLES)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found != SCHEMA:
            connection.close()
            self._connection = None
            raise LedgerError(
                f"{self.path} is no ledger of this version (it says {found}, known is {SCHEMA}): move it away, or name another"
            )
        if there and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("database disk image is malformed")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        stat = self.path.stat()
        self._file = stat.st_dev, stat.st_ino

    def _put_aside(self, error: Exception) -> None:
        self.close()
        aside = self.path.with_name(f"{self.path.name}.damaged-{now_ms()}")
        for ending in ("", "-wal", "-shm"):
            part = self.path.with_name(self.path.name + ending)
            if part.exists():
                part.rename(aside.with_name(aside.name + ending))
        self._connect()
        self._note(f"the ledger's file was damaged ({error}) and was put aside as {aside.name}: what is older is in there")

    def _note(self, text: str) -> None:
        log.error("%s", text)
        assert self._connection is not None
        self._connection.execute("INSERT INTO notes VALUES (?, ?)", (now_ms(), text))

    def _still_there(self) -> sqlite3.Connection:
        """The connection, to a new file where somebody took the old one away: SQLite would go on to write into nowhere."""
        try:
            stat = self.path.stat()
            found = stat.st_dev, stat.st_ino
        except FileNotFoundError:
            found = (0, 0)
        if self._connection is not None and found != self._file:
            self.close()
            self.open()
            self._note("the ledger's file was taken away and begins anew: what it held before is not here")
        self.open()
        assert self._connection is not None
        return self._connection

    # -- writing ---------------------------------------------------------------------------------------

    def add(self, told: Sequence[tuple[Told, str]]) -> None:
        """Keep what events tell, each with its ``traceparent``, all or nothing; what is there already stays as it is.

        Raises:
            LedgerError: nothing was kept; it may be tried again.
        """
        try:
            connection = self._still_there()
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                for each, trace in told:
                    _add(connection, each, trace)
            self._since_prune += len(told)
            if self._since_prune >= PRUNE_EVERY:
                self.prune()
        except (OSError, sqlite3.Error) as error:
            if not isinstance(error, sqlite3.OperationalError):
                self.close()  # damaged: it is looked at when it is opened again
            raise _problem(self.path, error) from error

    def prune(self) -> None:
        """Delete what is too old or too much, and give the room back.

        Raises:
            sqlite3.Error: it cannot be written.
        """
        assert self._connection is not None
        self._since_prune = 0
        connection = self._connection
        self._forget("SELECT id FROM decisions WHERE kept < ?", now_ms() - self._max_age_ms)
        while self.size() > self._max_bytes:
            if not self._forget("SELECT id FROM decisions ORDER BY kept, id LIMIT ?", _PORTION):
                break
        connection.execute("PRAGMA incremental_vacuum").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def size(self) -> int:
        """Bytes that are in use."""
        assert self._connection is not None
        pages, free, each = (
            self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * each)

    def _forget(self, which: str, argument: int) -> int:
        assert self._connection is not None
        connection = self._connection
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(
                f"UPDATE processes SET forgotten = MAX(forgotten, COALESCE((SELECT MAX(sequence) FROM decisions "  # noqa: S608
                f"WHERE id IN ({which}) AND decisions.instance = processes.instance), 0))",
                (argument,),
            )
            gone = connection.execute(f"DELETE FROM decisions WHERE id IN ({which})", (argument,)).rowcount  # noqa: S608
            if gone:
                oldest = connection.execute("SELECT COALESCE(MIN(kept), ?) FROM decisions", (now_ms(),)).fetchone()[0]
                connection.execute("DELETE FROM notes WHERE at < ?", (oldest,))
                connection.execute(
                    "DELETE FROM processes WHERE heard < ? AND instance NOT IN (SELECT instance FROM decisions)", (oldest,)
                )
        return gone


def _add(connection: sqlite3.Connection, told: Told, trace: str) -> None:
    at = milliseconds(told.time)
    connection.execute(
        "INSERT INTO processes (instance, function, service, heard) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (instance) DO UPDATE SET heard = MAX(heard, excluded.heard)",
        (told.instance, told.function, told.service, at),
    )
    match told:
        case BegunTold():
            connection.execute("UPDATE processes SET began = ?, host = ? WHERE instance = ?", (at, told.host, told.instance))
        case EndedTold():
            connection.execute(
                "UPDATE processes SET ended = ?, last = ?, dropped = ? WHERE instance = ?",
                (at, told.sequence, told.dropped, told.instance),
            )
        case DecisionTold():
            _add_decision(connection, told, trace)


def _add_decision(connection: sqlite3.Connection, told: DecisionTold, trace: str) -> None:
    verdict = told.verdict
    more = {
        "inputs": _lines(told.inputs),
        "inputsLeftOut": told.inputs_left_out,
        "causesLeftOut": told.causes_left_out,
        "refused": _lines(told.refused),
    }
    at = told.began_ms + told.duration_ms
    made = connection.execute(
        "INSERT OR IGNORE INTO decisions (instance, sequence, at, kept, unit, owner, status, reason, complete, duration, part, "
        "parts, trace, more) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            told.instance, told.sequence, at, now_ms(), told.unit, told.owner, verdict.status, verdict.reason, verdict.complete,
            told.duration_ms, told.part, told.parts, trace, packed({name: value for name, value in more.items() if value}),
        ),
    )  # fmt: skip
    if not made.rowcount:
        return  # sent twice
    row = made.lastrowid
    connection.executemany(
        "INSERT INTO causes VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(row, each.api_version, each.kind, each.namespace, each.name, each.event, each.time) for each in told.causes],
    )
    connection.executemany(
        "INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (row, each.verb, each.api_version, each.kind, each.namespace, each.name, each.resource_version, packed(_fields(each)))
            for each in told.writes
        ],
    )
    subjects = {subject for each in told.writes for subject in (*each.subjects_added, *each.subjects_removed)}
    connection.executemany("INSERT INTO subjects VALUES (?, ?)", [(row, subject) for subject in sorted(subjects)])


def _lines(parts: Iterable[object]) -> list[object]:
    return [each.model_dump(by_alias=True, exclude_defaults=True) for each in parts]  # type: ignore[attr-defined]


def _fields(write: object) -> object:
    named = {"verb", "api_version", "kind", "namespace", "name", "resource_version"}
    return write.model_dump(by_alias=True, exclude_defaults=True, exclude=named)  # type: ignore[attr-defined]


def _is_read_only(path: Path) -> bool:
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _problem(path: Path, error: Exception) -> LedgerError:
    text = str(error).lower()
    if any(word in text for word in _FULL) or getattr(error, "errno", 0) == 28:
        way = "the disk is full: free room there, or lower decisions.ledger.maxMegabytes; what comes meanwhile is asked for again"
    elif _is_read_only(path):
        way = f"{path.parent} is on a read-only volume: mount it for writing, or name another file"
    elif isinstance(error, PermissionError) or "unable to open" in text or "readonly" in text:
        way = "this account may not write there: correct the rights of the folder, or name another file"
    elif "locked" in text:
        way = "another process writes it: a ledger has one writer"
    else:
        way = "it is put aside and begun anew at the next event" if isinstance(error, sqlite3.DatabaseError) else "see above"
    return LedgerError(f"the ledger {path} cannot be written ({error}): {way}")
