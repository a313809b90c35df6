"""What would be refused if the profile multi-tenant were switched on now, and what stands in its way (2.5, f-141)."""

from __future__ import annotations

from collections.abc import Iterator

from tenantry.model.flux.audit.charts import chart_conflicts, foreign_charts
from tenantry.model.flux.audit.controllers import wrong_flags
from tenantry.model.flux.audit.deliveries import with_own_namespace, without_account
from tenantry.model.flux.audit.labels import former_tenant_labels
from tenantry.model.flux.audit.references import denied_references
from tenantry.model.flux.audit.seen import AuditFinding, AuditSeen

_PARTS = (
    denied_references,
    without_account,
    with_own_namespace,
    foreign_charts,
    chart_conflicts,
    wrong_flags,
    former_tenant_labels,
)


def audited(seen: AuditSeen) -> Iterator[AuditFinding]:
    """All findings, subject by subject."""
    for part in _PARTS:
        yield from part(seen)
