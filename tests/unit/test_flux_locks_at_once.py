"""The locks of many, as one plan."""

from __future__ import annotations

import pytest
from test_flux_lock_plan import MARKS, ROWS, consumer, patched, seen

from lock_enforcement.access.plan import FEW, plan_locks
from lock_enforcement.access.seen import kept_consumer
from tenantry.model.flux.names import LOCK_FINALIZER
from tenantry.model.plan import Edit


@pytest.mark.parametrize(("number", "writes"), [(0, 0), (FEW, 0), (FEW + 1, FEW + 1), (50, 50)])
def test_many_are_locked_before_any_is_told(number: int, writes: int) -> None:
    """One stage of nothing but the updates that lock, each of the version that was seen; few are left to their own runs."""
    plan = plan_locks([seen(kept_consumer(consumer(name=f"c{at}"), ROWS["kustomizations"])) for at in range(number)])
    assert len(plan.stages) == (1 if writes else 0)
    found = [write for write in plan.writes() if isinstance(write, Edit) and not write.subresource]
    assert len(found) == writes
    assert {write.live["metadata"]["name"] for write in found} == {f"c{at}" for at in range(writes)}
    for write in found:
        made = patched(consumer(), write.operations)
        assert made["metadata"]["annotations"] == MARKS
        assert made["spec"]["suspend"] is True
        assert made["metadata"]["finalizers"] == [LOCK_FINALIZER]
