"""What work costs, for tests of how cost grows: two costs of one run are compared, and no cost with a clock."""

from __future__ import annotations

import time
from collections.abc import Callable


def cpu_of(work: Callable[[], object], *, times: int = 5) -> float:
    """Seconds of this process' CPU, the least of several times: what else the machine does adds to the others."""
    return min(_once(work) for _ in range(times))


def _once(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
