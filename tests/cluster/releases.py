"""Project owners who ask for charts, and what they look at: short forms for the tests of releases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml
from people import C1, CORE_EVENT, People, changed, registration

from tenantry.model.conditions import find_condition
from tenantry.model.kinds import CONFIG_MAP, HELM_CHART, HELM_RELEASE, PROJECT_HELM_CHART, Object
from tenantry.testing.objects import obj

REGISTRATION = "namespace-registration"
PROVISIONING = "release-provisioning"
FUNCTIONS = (REGISTRATION, PROVISIONING)
SYSTEM = "cattle-helm-system"
DUMMY = "dummy.cattle.io/v1alpha1"
DASHBOARD = "helm.cattle.io/dashboard-values-configmap"
CLEANUP = "helm.cattle.io/helm-project-operator-cleanup"
FINALIZER = "tenantry.dev/release"
CONFIG = changed(
    C1,
    cattle={"url": "https://cattle.example"},
    operator={
        "valuesOverride": {"global": {"cattle": {"rkeVersion": "from-the-file"}}, "targets": ["file"]},
        "helmController": {"enabled": False, "externalControllerName": "helm-project-operator"},
    },
)
"""The reference configuration with defaults and overrides of values; who runs Helm is not the subject of these tests."""

Demo = tuple[str, str, str]
"""A project, its ProjectHelmChart, and the release of it."""


class Owners(People):
    """Project owners, with the rights of an administrator."""

    async def ask(self, name: str, project: str, *, version: str = DUMMY, namespace: str = "", **spec: Any) -> Object:
        """Create a ProjectHelmChart."""
        return await self.admin.create(
            PROJECT_HELM_CHART,
            obj(PROJECT_HELM_CHART, name, namespace or registration(project), spec={"helmApiVersion": version, **spec}),
        )

    async def told(
        self, name: str, project: str, status: str, *, namespace: str = "", holds: Callable[[Object], Any] = lambda _: True
    ) -> Object:
        """Wait until a ProjectHelmChart has a status; returns the object."""
        return await self.until(
            PROJECT_HELM_CHART,
            name,
            namespace or registration(project),
            lambda found: (found.get("status") or {}).get("status") == status and holds(found),
            what=f"{status} on {name}",
        )

    async def provisioned(self, release: str, *, holds: Callable[[Object], Any] = lambda _: True) -> Object:
        """Wait until a release has its HelmChart and HelmRelease; returns the HelmChart."""
        await self.until(HELM_RELEASE, release, SYSTEM, lambda _: True, what=f"HelmRelease {release}")
        return await self.until(HELM_CHART, release, SYSTEM, holds, what=f"HelmChart {release}")

    async def taken_away(self, release: str) -> None:
        """Wait until a release has neither HelmChart nor HelmRelease."""
        for kind in (HELM_CHART, HELM_RELEASE):
            await self.away(kind, release, SYSTEM)

    async def dashboard(self, name: str, namespace: str, release: str, **data: str) -> Object:
        """A ConfigMap as a chart leaves it."""
        return await self.admin.create(CONFIG_MAP, obj(CONFIG_MAP, name, namespace, labels={DASHBOARD: release}, data=data))

    async def warning(self, name: str, project: str, reason: str) -> str:
        """Wait for a Warning Event of that reason about a ProjectHelmChart; returns its text."""
        return await self.warned(name, reason, kind=PROJECT_HELM_CHART, namespace=registration(project))

    async def said(self, name: str, namespace: str) -> list[tuple[str, str]]:
        """Type and reason of the Kubernetes Events about a ProjectHelmChart, in the order in which they came."""
        fields = f"involvedObject.kind=ProjectHelmChart,involvedObject.name={name}"
        found = (await self.admin.list(CORE_EVENT, namespace, field_selector=fields)).items
        found.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [(event["type"], event["reason"]) for event in found]


def values_of(helm_chart: Object) -> Any:
    """The values of a HelmChart, as Helm reads them."""
    return yaml.safe_load(helm_chart["spec"]["valuesContent"])


def cattle_of(helm_chart: Object) -> Any:
    """``global.cattle`` of the values."""
    return values_of(helm_chart)["global"]["cattle"]


def conditions_of(chart: Object) -> dict[str, tuple[str, str]]:
    """Status and reason of the conditions."""
    found = ((type_, find_condition(chart, type_) or {}) for type_ in ("Ready", "Reconciling", "Stalled"))
    return {type_: (each.get("status", ""), each.get("reason", "")) for type_, each in found}
