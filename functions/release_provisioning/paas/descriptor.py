"""What the hand-over of capabilities brings to its function."""

from __future__ import annotations

from release_provisioning import NAME
from tenantry.model.descriptor import Finalizer, Part, Route, Service, Source, Trigger, Watch
from tenantry.model.paas.names import APPLICATION_SET, HAND_OVER_FINALIZER, PAAS, PAAS_CONFIG

ARGO = "argo"
"""The folder of ``knative/`` for what comes with Argo CD: a source ends while one of its kinds is not served."""
_OF = f"{NAME}-paas"
_MARK = ("watch", _OF)

PAAS_HAND_OVER = Service(
    _OF,
    NAME,
    "paas",
    ("paas",),
    sources=(
        Source(_OF, (Watch(PAAS), Watch(PAAS_CONFIG)), whole=True, mark=_MARK),
        Source(f"{_OF}-argo", (Watch(APPLICATION_SET),), mark=_MARK, folder=ARGO),
    ),
    triggers=(Trigger(_OF, mark=_MARK),),
    finalizers=(Finalizer(PAAS, HAND_OVER_FINALIZER),),
    routes=(
        Route(
            "/api/v1/getparams.execute",  # as Argo CD asks
            "release_provisioning.paas.plugin",
            "TENANTRY_PLUGIN_TOKEN_FILE",
            "tenantry-paas-plugin",
        ),
    ),
)
part = Part(PAAS_HAND_OVER)
