"""Reads that are answered as they were before, where something is taken away for what they say."""

from __future__ import annotations

from collections.abc import Iterable

from tenantry.testing import faults
from tenantry.testing.oracle import Evidence
from tenantry.testing.perturbations import Ask, Perturbation, Scene, targets_of
from tenantry.testing.recording import Exchange
from tenantry.testing.workload import Workload


class Stale(Perturbation):
    """A read that comes before something is taken away is answered with an earlier state."""

    name, group, retries_heal = "stale read", "stale", False

    def redone(self, target: str) -> int:
        """Of one object no API server gives such an answer: it is put right, and not foreseen.  A list is looked at twice."""
        return int(target.startswith("get "))

    def targets(self, run: Evidence) -> Iterable[str]:
        """Every read before a deletion, or before a write that takes something away."""
        requests = targets_of(run.disturbed)
        last = max((number for number, (_, each) in enumerate(requests) if _destroys(each, self.workload)), default=-1)
        return [target for target, each in requests[: last + 1] if not each.is_write]

    async def hit(self, scene: Scene, ask: Ask) -> faults.Response | None:
        """Answer with what was true before."""
        fault = faults.StaleList() if ask.request.verb == "list" else faults.StaleGet()
        answer: faults.Response | None = await fault.meet(ask.request, ask.forward)
        scene.reached = answer is not None
        return answer


def _destroys(exchange: Exchange, workload: Workload) -> bool:
    if not (exchange.is_write and exchange.changed):
        return False
    body = exchange.request
    if exchange.verb == "delete":
        return True
    if isinstance(body, list):  # the steps of a JSON patch
        return any(workload.destroys(step) for step in body)
    return isinstance(body, dict) and (workload.destroys(body) or workload.leftover(body))
