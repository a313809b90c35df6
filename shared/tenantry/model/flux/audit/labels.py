"""Labels that tenants may have set themselves before they counted (f-122)."""

from __future__ import annotations

from collections.abc import Iterator

from tenantry.model.flux.access import TENANT_KEYS
from tenantry.model.flux.audit.seen import AuditFinding, AuditSeen
from tenantry.model.flux.carriers import tenants_may_set
from tenantry.model.flux.names import ACCESS_INDEX, DEFAULT
from tenantry.model.kinds import NAMESPACE, labels_of

FORMER_TENANT_LABEL = "FormerTenantLabel"


def former_tenant_labels(seen: AuditSeen) -> Iterator[AuditFinding]:
    """Namespaces with a label that grants select by, and that tenants could set until its key left ``tenantLabelKeys``."""
    entries, listed = seen.entries, seen.profile.tenant_label_keys
    keys = [
        each for each in entries.label_keys if tenants_may_set(each, entries.tenant_keys) and not tenants_may_set(each, listed)
    ]
    for name, namespace in sorted(seen.namespaces.items()):
        labels = labels_of(namespace)
        for key in keys if name not in seen.profile.exempt else ():
            if key in labels:
                text = f"has the label {key}={labels[key]}, by which grants select; a tenant may have set it, as {key} was free"
                left = f"then take {key} out of spec.{TENANT_KEYS} of {ACCESS_INDEX.kind} {DEFAULT}"
                fix = f"take the label off unless the platform wants it there; {left}"
                yield AuditFinding(FORMER_TENANT_LABEL, NAMESPACE.kind, "", name, text, fix)
