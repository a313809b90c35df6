"""All perturbations, and the plans that follow from what undisturbed runs did.

Every write of every scenario is crashed before and after, and made ambiguous; every event is lost, doubled and so on.
Answers and refusals depend on the request and not on the story around it, so each identity is tried once in the workload;
answers that pass are tried several in a plan, on as many requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenantry.testing import faults
from tenantry.testing.disturbances import EVENTS, HANDS, ORDERS
from tenantry.testing.oracle import Reference
from tenantry.testing.perturbations import (
    Ambiguous,
    Answered,
    CrashAfter,
    CrashBefore,
    Outage,
    Perturbation,
    Stale,
    answered,
    mixed,
    refused,
)
from tenantry.testing.runner import Plan
from tenantry.testing.workload import Workload

SLOW_S = 1.0

PASSING: list[type[Answered]] = [
    answered("429 with Retry-After", lambda: faults.TooMany429(1)),
    answered("500", faults.Error500),
    answered("503", faults.Unavailable503),
    answered("connection reset", faults.Reset, times=2),
    answered("slow reply", lambda: faults.Slow(SLOW_S)),
]
"""What passes when one asks again, whatever the request was: tried together, or each apart to find out which it was."""
ANSWERS: list[type[Perturbation]] = [
    answered("409 conflict", faults.Conflict409, "update"),
    answered("409 already exists", faults.Exists409, "create"),
    answered("410 on a list", faults.Expired410, "list"),
    mixed("429, 500, 503, reset, slow", PASSING),
]
REFUSALS: list[type[Perturbation]] = [
    refused("403 right revoked", faults.Forbidden403, tells=True),
    refused("422 from admission", faults.Invalid422, "made", tells=True),
    refused("quota exceeded", faults.QuotaExceeded403, "made", tells=True),
    refused("namespace terminating", faults.NamespaceTerminating403, "inside"),
    refused("404 of the kind", faults.KindMissing404, "all"),
    refused("403 on a read", faults.Forbidden403, "read"),
]
ALL: list[type[Perturbation]] = [
    CrashBefore,
    CrashAfter,
    Ambiguous,
    Stale,
    *ANSWERS,
    *REFUSALS,
    Outage,
    *EVENTS,
    *HANDS,
    *ORDERS,
]


def plans_for(workload: Workload, references: Mapping[str, Reference], *, apart: bool = False) -> list[Plan]:
    """Every plan of the matrix, in a fixed order; with ``apart`` also each answer that passes by itself."""
    found: list[Plan] = []
    for perturbation in [*ALL, *(PASSING if apart else ())]:
        tried: set[str] = set()
        for name, reference in references.items():
            targets = [target for target in _targets(perturbation, reference, workload) if target not in tried]
            if perturbation.once:
                tried.update(targets)
            found += [Plan(name, perturbation, target) for target in perturbation.combined(targets)]
    return found


def _targets(perturbation: type[Perturbation], reference: Reference, workload: Workload) -> Iterable[str]:
    return dict.fromkeys(perturbation(workload).targets(reference.evidence[0]))
