"""Logs as JSON lines on standard error: what, when, and for which event, owner and trace."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime

from opentelemetry import trace

from tenantry.engine.context import event_id, running_owner

LEVEL_VARIABLE = "TENANTRY_LOG_LEVEL"


class JsonFormatter(logging.Formatter):
    """One JSON object a line; an exception is one string in it."""

    def __init__(self, function: str) -> None:
        super().__init__()
        self._function = function

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "function": self._function,
            "message": record.getMessage(),
        }
        context = trace.get_current_span().get_span_context()
        optional = {
            "event": event_id.get(),
            "owner": running_owner.get(),
            "trace": format(context.trace_id, "032x") if context.is_valid else "",
            "error": self.formatException(record.exc_info) if record.exc_info else "",
        }
        line |= {name: value for name, value in optional.items() if value}
        return json.dumps(line, ensure_ascii=False)


def set_up_logs(function: str) -> None:
    """Send the logs of this process to standard error; ``TENANTRY_LOG_LEVEL`` sets the level (info)."""
    logging._srcfile = None  # no line says which line of code wrote it: do not walk the stack for it
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(function))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    level = os.environ.get(LEVEL_VARIABLE, "info").upper()
    logging.getLogger("tenantry").setLevel(level if level in logging.getLevelNamesMapping() else "INFO")
