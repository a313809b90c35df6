"""In which order release-provisioning reads what it concludes from."""

from __future__ import annotations

from typing import Any, cast

from release_provisioning.projects.observe import observe_release
from tenantry.api import Api, Listing
from tenantry.engine.reader import Reader
from tenantry.model.config import Config
from tenantry.model.kinds import HELM_CHART, PROJECT_HELM_CHART, Kind, Object

HOME = "cattle-project-p-a"
CHART: Object = {
    "apiVersion": "helm.cattle.io/v1alpha1",
    "kind": "ProjectHelmChart",
    "metadata": {"name": "demo", "namespace": HOME, "uid": "u"},
    "spec": {"helmApiVersion": "somebody.else/v1"},
}
MADE: Object = {
    "apiVersion": "helm.cattle.io/v1",
    "kind": "HelmChart",
    "metadata": {"name": "demo-dummy", "annotations": {"tenantry.dev/project-helm-chart": f"{HOME}/demo"}},
}


class Late:
    """A ProjectHelmChart that comes, and is provisioned, after its kind was listed."""

    def __init__(self, *, comes: bool) -> None:
        self.comes = comes

    async def list(self, kind: Kind, namespace: str = "", **_: Any) -> Listing:
        return Listing([], "1")

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        if kind == HELM_CHART:
            return MADE
        return CHART if kind == PROJECT_HELM_CHART and self.comes else None


async def gone(*, comes: bool) -> frozenset[str]:
    reader = Reader(cast(Api, Late(comes=comes)))
    assert await reader.all_shared(PROJECT_HELM_CHART) == []
    return (await observe_release("demo-dummy", Config(), reader)).gone


async def test_who_a_helm_chart_was_made_for_is_read_after_it() -> None:
    """An older list of ProjectHelmCharts says nothing about who is gone; a read that follows does."""
    assert await gone(comes=True) == frozenset()
    assert await gone(comes=False) == {f"{HOME}/demo"}
