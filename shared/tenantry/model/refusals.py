"""How a refused write is reported, in a condition and an Event: its reason, the API server's words, and the fix.

The API server's own words may differ each time (a webhook's request id, a quota's use).  A condition that took them over would be
written on every run, and where writing it is an event, for ever: a message about the same refusal stands as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenantry.model import limits
from tenantry.model.conditions import find_condition
from tenantry.model.descriptor import Service
from tenantry.model.kinds import Object
from tenantry.model.plan import Cause, Refusal

Fixes = Mapping[Cause, str]

REASONS: Mapping[Cause, str] = {
    "quota": "QuotaExceeded",
    "admission": "AdmissionDenied",
    "rights": "RightMissing",
    "invalid": "InvalidConfiguration",
}
"""The reason of a condition that reports nothing else."""


OF_NAMESPACES = (
    "change the admission policy, or add what it asks for under helmProjectOperator.namespaceLabels or namespaceAnnotations"
)
"""What mends a refusal by an admission policy where namespaces are made."""


def fixes(
    service: Service,
    *,
    quota: str = "raise the ResourceQuota or delete what is not needed",
    admission: str = "change the admission policy",
    rights: str = "",
    invalid: str = "correct the configuration that this object is made from",
) -> Fixes:
    """What mends a refusal, by its cause; ``service`` is the one whose rights are to be applied again."""
    rights = rights or f"apply {service.rights_file} again"
    return {"quota": quota, "admission": admission, "rights": rights, "invalid": invalid}


def first_of(refusals: Sequence[Refusal]) -> Refusal | None:
    """The one to report where only one is.  Writes of a stage end in any order, and the report must not depend on it."""
    return min(refusals, key=lambda each: (each.key, each.cause, each.message), default=None)


def message_of(obj: Object, type_: str, reason: str = "", generation: int | None = None) -> str:
    """The message of a condition; empty where it has another reason than the given one, or is of another generation."""
    found = find_condition(obj, type_) or {}
    if reason and found.get("reason") != reason:
        return ""
    if generation is not None and found.get("observedGeneration") != generation:
        return ""
    return str(found.get("message") or "")


def text_of(refusal: Refusal, known: Fixes, standing: str = "", *, place: str = "", separator: str = "") -> str:
    """``<place>: <key> was refused: to fix it, <fix> (the API server says: <words>)``, as the message that stands has it.

    Args:
        standing: the message of the condition as it is; it may be cut at its end.
        place: what comes before.
        separator: what joins the parts of a message about several problems; it is taken out of the server's words.
    """
    begins = (
        f"{place}: " if place else ""
    ) + f"{refusal.key} was refused: to fix it, {known[refusal.cause]} (the API server says: "
    for part in standing.split(separator) if separator else (standing,):
        if part.startswith(begins):
            return part
    words = " ".join(refusal.message.split())
    words = words.replace(separator, ", ") if separator else words
    return f"{begins}{words[: limits.REFUSAL_CHARACTERS]})"
