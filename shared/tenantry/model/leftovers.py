"""What stands although its declaration was deleted: its deletion was refused, and no condition is left to report it.

It is reported on the object itself, by a Warning ``CleanUpFailed`` that is there once for each object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tenantry.model.descriptor import Service
from tenantry.model.kinds import Key, Object, key_of
from tenantry.model.limits import REFUSAL_CHARACTERS
from tenantry.model.plan import Apply, Plan, Refusal, plan_of
from tenantry.model.refusals import fixes
from tenantry.model.standing import warning, warning_name

REASON = "CleanUpFailed"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Objects that have to go, with the Warnings that they have already; ``now`` is the time for a new one."""

    objects: Mapping[Key, Object] = field(default_factory=dict)
    warnings: Mapping[Key, Object | None] = field(default_factory=dict)
    now: str = ""


def report_leftovers(
    left: Leftovers,
    refusals: Sequence[Refusal],
    service: Service,
    unit: str,
    *,
    failed: str = "it could not be deleted",
    by_hand: str = "delete it",
) -> Plan:
    """A Warning on each object whose deletion was refused and that has none yet; ``service`` has the rights for it.

    ``failed`` says what was refused, and ``by_hand`` what people can do themselves, where that was no deletion.
    """
    writes: list[Apply] = []
    for refusal in refusals:
        about = left.objects.get(refusal.key)
        if about is not None and left.warnings.get(refusal.key) is None:
            fix = fixes(service)[refusal.cause] if refusal.cause in ("admission", "rights") else ""
            note = f"nobody declares this any more and {failed}: {refusal.message[:REFUSAL_CHARACTERS]}"
            note += f". To fix it, {fix}, or {by_hand} by hand" if fix else ""
            by = (service.function, unit, "CleanUp")
            writes.append(warning(about, warning_of(about), REASON, note, None, left.now, by=by))
    return plan_of(*writes)


def warning_of(obj: Object) -> str:
    """The name of the Warning on an object."""
    return warning_name(obj, REASON, str(key_of(obj)))
