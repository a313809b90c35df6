"""What runs the functions, as `tenantry status` tells it: up, down or unknown, and how old the last sweep is."""

from __future__ import annotations

from datetime import timedelta

from map_objects import NOW, said

from tenantry.model.descriptor import Service
from tenantry.model.kinds import NAMESPACE
from tenantry.model.map.system import (
    ServiceState,
    deployed_state,
    knative_state,
    not_ready,
    period_s,
    time_text,
    told_state,
)
from tenantry.testing.objects import obj

SERVICE = Service("scope-binding", "scope-binding")


def test_a_sweep_is_late_after_two_and_a_half_periods() -> None:
    """The period is that of the schedule; one whose time nobody knows is not late."""
    assert [period_s(each) for each in ("3-59/10 * * * *", "1-59/5 * * * *", "@hourly")] == [600, 300, 0]
    for minutes, late in ((5, False), (24, False), (26, True)):
        swept = (NOW - timedelta(minutes=minutes)).isoformat()
        assert ServiceState("a", "a", True, "", swept, 600).is_late(NOW) is late
    assert not ServiceState("a", "a", True, "", "", 600).is_late(NOW)


def test_a_service_is_as_what_runs_it_says() -> None:
    """By `tenantry up`, by a Knative Service, by a Deployment: up, down, or nobody can say; and why a time is not known."""
    schedule = "7-59/10 * * * *"
    failed = told_state(SERVICE, schedule, {"up": True, "starts": 3, "tried": {"status": 503, "at": "t"}})
    assert (failed.up, failed.state) == (True, "running, started 3 times")
    assert failed.note == "its last sweep answered 503 at t: see what `tenantry up` printed then"
    assert told_state(SERVICE, schedule, {"up": False, "swept": "2026-11-27T11:59:00Z"}).age_s(NOW) == 60
    ready = knative_state(SERVICE, schedule, {"status": said("Ready", "True", "")})
    assert (ready.up, ready.swept) == (True, "")
    assert "tenantry.sweep.age" in ready.note
    broken = knative_state(SERVICE, schedule, {"status": said("Ready", "False", "RevisionMissing", "no image")})
    assert (broken.up, broken.state) == (False, "not ready: RevisionMissing no image")
    assert knative_state(SERVICE, schedule, {}).up is None
    gone = deployed_state(SERVICE, schedule, {"spec": {"replicas": 1}, "status": {}}, "", "why")
    assert (gone.up, gone.state, gone.note) == (False, "0 of 1 available", "why")


def test_what_of_the_way_of_events_is_not_ready_is_named() -> None:
    """A Trigger that is not ready is told with its reason; one that has not said anything yet is not."""
    down = {**obj(NAMESPACE, "t"), "status": said("Ready", "False", "BrokerMissing", "no broker")}
    assert not_ready([("Trigger", [down, obj(NAMESPACE, "new")])]) == ("Trigger t is not ready: BrokerMissing no broker",)


def test_ages_are_for_people() -> None:
    """Seconds, minutes, hours and days, of each at least two of the smaller unit."""
    assert [time_text(each) for each in (None, 0, 119, 120, 7199, 7200, 200000)] == [
        "unknown",
        "0 s",
        "119 s",
        "2 min",
        "119 min",
        "2 h",
        "2 d",
    ]
