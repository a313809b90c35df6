"""What the rights of Paas bring to their function.

Its sources watch Paas for this duty alone, and of namespaces, RoleBindings and ConfigMaps only those with the label of a Paas, so
their events have a mark of their own: those of releases' rights do not wake it.
"""

from __future__ import annotations

from rbac_aggregation import NAME
from tenantry.model.descriptor import EventsOf, Finalizer, Part, Service, Source, Trigger, Watch
from tenantry.model.kinds import CONFIG_MAP, NAMESPACE, ROLE_BINDING
from tenantry.model.paas.names import (
    ARGO_CD,
    GROUP,
    MANAGED_BY_PAAS,
    PAAS,
    PAAS_CONFIG,
    PAAS_NS,
    RIGHTS_FINALIZER,
)

_FROM_PAAS = f"{NAME}-paas"
_MARK = ("watch", _FROM_PAAS)
_MADE = (NAMESPACE, ROLE_BINDING, CONFIG_MAP)
_DECLARED = (PAAS, PAAS_NS, PAAS_CONFIG)

RIGHTS = Service(
    _FROM_PAAS,
    NAME,
    "paas",
    ("paas",),
    sources=(
        Source(_FROM_PAAS, (*map(Watch, _DECLARED), *(Watch(kind, MANAGED_BY_PAAS) for kind in _MADE)), whole=True, mark=_MARK),
        Source(f"{_FROM_PAAS}-groups", (Watch(GROUP, MANAGED_BY_PAAS),), whole=True, mark=_MARK, folder="openshift"),
        Source(f"{_FROM_PAAS}-argo", (Watch(ARGO_CD, MANAGED_BY_PAAS),), mark=_MARK, folder="argo"),
    ),
    triggers=(
        Trigger(_FROM_PAAS, tuple(EventsOf(kind, _FROM_PAAS) for kind in (*_DECLARED, *_MADE))),
        Trigger(f"{_FROM_PAAS}-groups", (EventsOf(GROUP, _FROM_PAAS),), folder="openshift"),
        Trigger(f"{_FROM_PAAS}-argo", (EventsOf(ARGO_CD, _FROM_PAAS),), folder="argo"),
    ),
    finalizers=(Finalizer(PAAS, RIGHTS_FINALIZER),),
    memory_mib=256,
)
part = Part(RIGHTS)
"""What it makes stays when it is uninstalled: what Paas declared is data of the cluster (section 6)."""
