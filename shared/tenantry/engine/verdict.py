"""The answer to one event, and the only place where failures become HTTP status codes.

====== ==========================================================================================
204    done, or nothing to do; also for bad user input, which is reported on the user's object
409    the owner changes faster than we can follow; senders try again
429    too much at once; carries retry_after
503    transient: the API server is away or slow; every sender tries again
500    a bug of ours, and nothing else
====== ==========================================================================================

400, 413 and 415 are given by the entry for what is not a usable event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tenantry.api.errors import ApiError, ConflictError, Forbidden, TooManyRequests

_RIGHT = re.compile(r'cannot (\w+) resource "([^"]+)" in API group "([^"]*)"')


@dataclass(frozen=True, slots=True)
class Verdict:
    """Status code, a few words of reason (never payload), seconds to wait, and the number of writes made.

    ``complete`` is False when something was refused and reported on an object instead of being done.
    """

    status: int
    reason: str = ""
    retry_after: float | None = None
    writes: int = 0
    complete: bool = True


DONE = Verdict(204, "done")
NOTHING_TO_DO = Verdict(204, "nothing to do")
NOTHING_NEW = Verdict(204, "nothing new")
"""No run was needed: the last one knew all that the events tell of."""
BUSY = Verdict(409, "the object changes too fast")

_SEVERITY = {204: 0, 409: 1, 429: 2, 503: 3, 400: 4, 500: 5}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict for many: the most severe, with all writes counted."""
    found, writes = NOTHING_TO_DO, 0
    for verdict in verdicts:
        writes += verdict.writes
        if _SEVERITY[verdict.status] > _SEVERITY[found.status]:
            found = verdict
    if writes and found.status == 204:
        found = DONE
    return Verdict(found.status, found.reason, found.retry_after, writes)


def verdict_for(error: ApiError, writes: int = 0) -> Verdict:
    """The verdict for a request that failed for good within one run."""
    if isinstance(error, ConflictError):
        return Verdict(409, BUSY.reason, writes=writes)
    if isinstance(error, TooManyRequests):
        return Verdict(503, "API server overloaded", error.retry_after, writes)
    if isinstance(error, Forbidden):
        return Verdict(503, missing_right(error.message), writes=writes)
    return Verdict(503, type(error).__name__, writes=writes)


def missing_right(message: str) -> str:
    """Which right is missing, from the API server's refusal: what a dead letter must name for somebody to mend it."""
    found = _RIGHT.search(message)
    if found is None:
        return "a right is missing"
    verb, resource, group = found.groups()
    return f"the right to {verb} {resource}{'.' if group else ''}{group} is missing"
