"""Verdicts: the one for a failure, and the one for many."""

from __future__ import annotations

import pytest

from tenantry.api.errors import (
    AlreadyExists,
    ApiError,
    ConflictError,
    Expired,
    Forbidden,
    KindNotServed,
    TooManyRequests,
    TransientError,
    Unauthorized,
)
from tenantry.engine.verdict import BUSY, DONE, NOTHING_TO_DO, Verdict, verdict_for, worst


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ConflictError("m"), Verdict(409, BUSY.reason, writes=3)),
        (AlreadyExists("m"), Verdict(409, BUSY.reason, writes=3)),
        (TooManyRequests("m", retry_after=7.0), Verdict(503, "API server overloaded", 7.0, 3)),
        (TransientError("m"), Verdict(503, "TransientError", writes=3)),
        (KindNotServed("m"), Verdict(503, "KindNotServed", writes=3)),
        (Unauthorized("m"), Verdict(503, "Unauthorized", writes=3)),
        (Expired("m"), Verdict(503, "Expired", writes=3)),
        (Forbidden("m"), Verdict(503, "a right is missing", writes=3)),
        (
            Forbidden(
                'namespaces "m" is forbidden: User "u" cannot patch resource "namespaces" in API group "" at the cluster scope'
            ),
            Verdict(503, "the right to patch namespaces is missing", writes=3),
        ),
        (
            Forbidden('User "m" cannot create resource "events" in API group "events.k8s.io" in the namespace "m"'),
            Verdict(503, "the right to create events.events.k8s.io is missing", writes=3),
        ),
    ],
)
def test_failures(error: ApiError, verdict: Verdict) -> None:
    """A lost race is 409, everything else that the API server says is 503; of its words only the missing right is passed on."""
    assert verdict_for(error, 3) == verdict
    assert "m" not in verdict.reason.split()


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ([], NOTHING_TO_DO),
        ([NOTHING_TO_DO, NOTHING_TO_DO], NOTHING_TO_DO),
        ([NOTHING_TO_DO, Verdict(204, "done", writes=2), Verdict(204, "done", writes=3)], Verdict(204, "done", writes=5)),
        ([Verdict(204, "done", writes=2), Verdict(503, "x", 4.0, 1), Verdict(409, "y")], Verdict(503, "x", 4.0, 3)),
        ([Verdict(409, "y"), Verdict(429, "z", 1.0)], Verdict(429, "z", 1.0)),
        ([Verdict(503, "x"), Verdict(500, "bug"), Verdict(503, "z")], Verdict(500, "bug")),
        ([Verdict(503, "first"), Verdict(503, "second")], Verdict(503, "first")),
        ([Verdict(400, "bad"), Verdict(503, "x")], Verdict(400, "bad")),
    ],
)
def test_the_worst_of_many(many: list[Verdict], one: Verdict) -> None:
    """The most severe status stands for all, and the writes of all are counted."""
    assert worst(many) == one
    assert worst(iter(many)) == one


def test_writes_make_nothing_into_done() -> None:
    """Done says that something was written."""
    assert worst([Verdict(204, "nothing to do", writes=1)]) == Verdict(204, DONE.reason, writes=1)
