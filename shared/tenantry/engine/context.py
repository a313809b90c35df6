"""Who is at work, for logs: the event and the owner of the current task."""

from __future__ import annotations

from contextvars import ContextVar

event_id: ContextVar[str] = ContextVar("event_id", default="")
running_owner: ContextVar[str] = ContextVar("running_owner", default="")
event_time: ContextVar[str] = ContextVar("event_time", default="")
