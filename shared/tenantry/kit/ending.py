"""How a command ends while it waits for something slow, such as a build."""

from __future__ import annotations

import signal


def end_in_order() -> None:
    """Let SIGTERM end this process as Ctrl-C does: what was started is stopped first."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
