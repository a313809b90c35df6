"""The garbage collector of a process that handles events."""

from __future__ import annotations

import gc

THRESHOLDS = 10_000, 20, 20
"""Objects made before the youngest are looked at, and how many such looks before the older ones are.

Each event makes a few hundred objects, almost all of which go by themselves.  With Python's defaults (700, 10, 10) a sixth of a
function's CPU for an event without work, and a quarter of the broker's for a delivery, went into looking for cycles.
"""


def settle() -> None:
    """Leave alone for good what is there now, such as modules, and look for cycles less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
