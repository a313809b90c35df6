"""Conditions of a Tenant: one for each part, by the function that does it, and Ready from all of them.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from tenantry.model import limits
from tenantry.model.conditions import condition, find_condition
from tenantry.model.difference import entries_of
from tenantry.model.flux.names import TENANT
from tenantry.model.flux.tenant import DELIVERY_FINALIZER, DeclaredTenant, TenantProblem
from tenantry.model.kinds import Object, name_metadata, object_of
from tenantry.model.plan import Apply, KubernetesEvent, Refusal
from tenantry.model.refusals import REASONS, Fixes, message_of, text_of

READY = "Ready"
RIGHTS_PART = "RightsBound"
"""By rbac-aggregation: the account has its role in all namespaces."""
DELIVERY_PART = "Delivered"
"""By release-provisioning: source and Kustomization are there."""
DONE = "Reconciled"
WAITING = "Waiting"
_BETWEEN = "; "


def refused(tenant: DeclaredTenant, part: str, refusals: Iterable[Refusal], known: Fixes) -> list[TenantProblem]:
    """The problems that refused writes are, in the words that stand already where they are about the same."""
    standing = message_of(tenant.live, part, generation=tenant.live["metadata"].get("generation"))
    return [TenantProblem(REASONS[each.cause], text_of(each, known, standing, separator=_BETWEEN)) for each in refusals]


def told_part(
    tenant: DeclaredTenant,
    part: str,
    problems: Sequence[TenantProblem],
    *,
    manager: str,
    done: str,
    waits: str = "",
    more: Mapping[str, object] | None = None,
) -> Apply:
    """The condition of a part; ``waits`` says what it waits for, ``more`` are further fields of the status."""
    generation = tenant.live["metadata"].get("generation", 0)
    status: Literal["True", "False", "Unknown"]
    if problems:
        texts = limits.few(sorted({each.text for each in problems}), between=_BETWEEN, last=_BETWEEN)
        status, reason, message = "False", min(each.reason for each in problems), texts
    elif waits:
        status, reason, message = "Unknown", WAITING, waits
    else:
        status, reason, message = "True", DONE, done
    made = condition(part, status, reason, message, generation)
    wanted = object_of(TENANT, name_metadata(tenant.live), status={"conditions": [made], **(more or {})})
    return Apply(TENANT, wanted, tenant.live, subresource="status", event=_event(tenant, made), manager=manager)


def given_up_part(tenant: DeclaredTenant, part: str, *, manager: str) -> list[Apply]:
    """The end of a condition about something that a Tenant has not any more."""
    if find_condition(tenant.live, part) is None or not entries_of(tenant.live, manager, "status"):
        return []
    return [Apply(TENANT, object_of(TENANT, name_metadata(tenant.live)), tenant.live, subresource="status", manager=manager)]


def _event(tenant: DeclaredTenant, made: Object) -> KubernetesEvent | None:
    """A Warning when a problem begins or changes, ``Healed`` when it ends."""
    before = find_condition(tenant.live, made["type"]) or {}
    was = (before.get("reason"), before.get("message")) if before.get("status") == "False" else None
    now = (made["reason"], made["message"]) if made["status"] == "False" else None
    if now is not None and now != was:
        return KubernetesEvent(tenant.live, made["reason"], made["message"], "Report", "Warning")
    if was is not None and made["status"] == "True":
        return KubernetesEvent(tenant.live, "Healed", "the problem that was reported here is gone", "Report")
    return None


def others_parts(tenant: DeclaredTenant) -> tuple[list[TenantProblem], str]:
    """What the other functions say of the current generation: their problems, and what they have not done yet."""
    generation = tenant.live["metadata"].get("generation", 0)
    due = [RIGHTS_PART]
    if tenant.source is not None or DELIVERY_FINALIZER in tenant.finalizers:
        due.append(DELIVERY_PART)
    problems, waits = [], []
    for part in due:
        found = find_condition(tenant.live, part) or {}
        if found.get("observedGeneration") != generation or found.get("status") == "Unknown":
            waits.append(part)
        elif found.get("status") == "False":
            problems.append(TenantProblem(str(found.get("reason")), str(found.get("message"))))
    return problems, f"waits for {' and '.join(waits)}" if waits else ""
