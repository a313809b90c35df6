"""From an event to a verdict: key, owners, single flight, observe, plan, write, verify; and the sweep.

An event only says "look at this key".  What is done follows from live reads, is computed by a pure plan
and written as differences.  Events are hints; the sweep, which runs the same code over every owner, is
the guarantee.
"""

from tenantry.engine.engine import Engine
from tenantry.engine.reader import Reader
from tenantry.engine.unit import Handler, Owner, Unit, Units
from tenantry.engine.verdict import Verdict

__all__ = ["Engine", "Handler", "Owner", "Reader", "Unit", "Units", "Verdict"]
