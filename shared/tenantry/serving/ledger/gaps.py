"""What is missing in a ledger, by the numbers that each process gives its events.

Numbers of a process that are not there were dropped by it or lost on the way.  A process that did not say that it ended, and that
another one followed, may have decided something after its last number: nobody knows how much, and that is said.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict

from tenantry.model.kinds import Object
from tenantry.serving.ledger.asked import shown_time
from tenantry.serving.ledger.store import now_ms

UNDER_WAY_MS = 120_000
"""Numbers that are missing for less may still come: senders try again for that long."""


def missing(connection: sqlite3.Connection, since: int, until: int) -> list[Object]:
    """What is not there of the time from ``since`` to ``until``, each with ``text`` for people, in the order of time."""
    processes = connection.execute(
        "SELECT instance, service, host, COALESCE(began, heard), heard, ended, last, dropped, forgotten, began IS NOT NULL "
        "FROM processes WHERE COALESCE(began, 0) <= ? ORDER BY COALESCE(began, heard)",
        (until,),
    ).fetchall()
    told: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for instance, sequence, at in connection.execute(
        "SELECT instance, sequence, at FROM decisions "
        "WHERE instance IN (SELECT instance FROM processes WHERE heard >= ? OR ended IS NULL) ORDER BY sequence",
        (since,),
    ):
        told[instance].append((sequence, at))
    found: list[tuple[int, Object]] = []
    for instance, service, host, began, heard, ended, last, dropped, forgotten, has_begun in processes:
        numbers = told[instance]
        ends = [*([(0, began)] if has_begun else []), *numbers, *([(last, ended)] if last is not None else [])]
        before, at = forgotten, began  # number 0 is that it begins, and no decision
        for number, then in sorted(ends):
            if number > before + 1 and then >= since and at <= until:
                found.append((at, _lost(instance, service, before + 1, number - 1, at, then, dropped)))
            before, at = max(before, number), max(at, then)
        if ended is None and at <= until:
            others = [each for each in processes if each[0] != instance and each[1] == service and each[3] > heard]
            if others and others[0][3] >= since:
                found.append((at, _not_ended(instance, service, before, at, others[0][0], others[0][3], host == others[0][2])))
    notes = connection.execute("SELECT at, text FROM notes WHERE at BETWEEN ? AND ?", (since, until))
    found += [(at, {"text": text, "until": shown_time(at)}) for at, text in notes]
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def _lost(instance: str, service: str, first: int, last: int, at: int, then: int, dropped: int) -> Object:
    numbers = f"number {first}" if first == last else f"numbers {first} to {last}"
    why = "may still come" if now_ms() - then < UNDER_WAY_MS else "the process dropped them" if dropped else "lost on the way"
    return {
        **_of(instance, service, at, then),
        "first": first,
        "last": last,
        "text": f"{numbers} of process {instance} {'is' if first == last else 'are'} missing: {why}",
    }


def _not_ended(instance: str, service: str, last: int, at: int, successor: str, then: int, same_host: bool) -> Object:
    if same_host:
        told = f"process {instance} ended without a word, and {successor} took its place"
    else:
        told = f"process {instance} is not heard of since {successor} began, and did not say that it ended"
    return {
        **_of(instance, service, at, then),
        "first": last + 1,
        "last": None,
        "text": f"{told}: what it decided after number {last}, if anything, is missing",
    }


def _of(instance: str, service: str, at: int, then: int) -> Object:
    return {"process": instance, "service": service, "after": shown_time(at), "until": shown_time(then)}
