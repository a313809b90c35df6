"""What permissions of Paas' service accounts bring to their function."""

from __future__ import annotations

from scope_binding import NAME
from tenantry.model.descriptor import Finalizer, Part, Service, Source, Trigger, Watch
from tenantry.model.kinds import CLUSTER_ROLE_BINDING, NAMESPACE, ROLE_BINDING
from tenantry.model.paas.names import ACCOUNTS_FINALIZER, MANAGED_BY_PAAS, PAAS, PAAS_CONFIG, SUBJECTS_FINALIZER

PERMISSIONS_LABEL = "tenantry.dev/paas-permissions"
"""Label on the bindings of service accounts, ``cluster`` or ``namespace``: it finds them and proves nothing."""
_OF = f"{NAME}-paas"
_MARK = ("watch", _OF)
"""Not that of the function: who scopes is woken by all namespaces, and this duty by those of Paas alone."""

PAAS_ACCOUNTS = Service(
    _OF,
    NAME,
    "paas",
    ("paas",),
    sources=(
        Source(
            _OF,
            (
                Watch(PAAS),
                Watch(PAAS_CONFIG),
                Watch(NAMESPACE, MANAGED_BY_PAAS),
                Watch(ROLE_BINDING, PERMISSIONS_LABEL),
            ),
            whole=True,
            mark=_MARK,
        ),
        # all of them: when one that is not ours goes, its name is free for ours
        Source(f"{_OF}-cluster", (Watch(CLUSTER_ROLE_BINDING),), mark=_MARK),
    ),
    triggers=(Trigger(_OF, mark=_MARK),),
    finalizers=(Finalizer(PAAS, ACCOUNTS_FINALIZER), Finalizer(NAMESPACE, SUBJECTS_FINALIZER)),
)
part = Part(PAAS_ACCOUNTS)
