"""Functions without their budgets, to show which attacks these stop: ``TENANTRY_WITHOUT=budgets``.

``python -m tenantry.testing.unbounded serve ...`` lifts every limit of `tenantry.model.limits` and then goes on as `tenantry`.
Nothing in production code knows of this module.
"""

from __future__ import annotations

import runpy

from tenantry.model import limits
from tenantry.testing.seeded import import_all, in_all

BUDGETS = "budgets"
"""What stands for all of them where the names of admission policies stand."""
BOUNDLESS = 10**12
TOLD = frozenset({"MESSAGE_CHARACTERS", "NOTE_BYTES", "REFUSAL_CHARACTERS", "PROBLEMS_SHOWN"})
"""What the API server limits itself; without these nobody would be told anything."""


def lift() -> list[str]:
    """Lift the limits in this process, wherever they were imported; returns their names."""
    import_all()
    units = {"KIB", "MIB"}
    lifted = [name for name, value in vars(limits).items() if name.isupper() and isinstance(value, int | float)]
    lifted = [name for name in lifted if name not in TOLD | units]
    for name in lifted:
        in_all(name, BOUNDLESS)
    return lifted


def main() -> None:
    """Lift them, then run ``tenantry`` with the arguments."""
    lift()
    runpy.run_module("tenantry.cli", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
