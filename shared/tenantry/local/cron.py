"""Cron schedules as PingSource reads them, on top of croniter.

Five fields, or six with the seconds first; ``@hourly`` and its kin; month and weekday names; an IANA time zone.  Refused,
as there: ``@every``, seven fields, croniter's own random and hashed fields.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def check_schedule(schedule: str, timezone: str) -> None:
    """Raise `ValueError`, with what is wrong, unless the schedule has a next tick in that time zone."""
    try:
        zone = ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{timezone!r} is not an IANA time zone such as UTC or Europe/Berlin") from None
    if schedule.startswith("@") and schedule not in _MACROS:
        raise ValueError(f"{schedule!r} is not supported; known are {', '.join(_MACROS)} and five or six fields")
    fields = schedule.split()
    if not schedule.startswith("@") and len(fields) not in (5, 6):
        raise ValueError(f"{schedule!r} has {len(fields)} fields; a schedule has five, or six with the seconds first")
    if any(field[0] in "RrHh" for field in fields):
        raise ValueError(f"{schedule!r}: random and hashed fields are not supported")
    next_tick(schedule, datetime.now(zone))


def next_tick(schedule: str, after: datetime) -> datetime:
    """The first tick strictly after the moment, in its time zone; raises `ValueError` when there is none."""
    from croniter import croniter

    try:
        tick: datetime = croniter(schedule, after, second_at_beginning=True).get_next(datetime)
    except ValueError as error:  # croniter's errors are ValueErrors
        raise ValueError(f"{schedule!r} is not a schedule: {error}") from None
    return tick
