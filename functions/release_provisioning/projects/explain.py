"""Where HelmCharts, HelmReleases and namespaces of releases come from."""

from __future__ import annotations

from tenantry.model.difference import entries_of, owns
from tenantry.model.kinds import (
    HELM_CHART,
    HELM_RELEASE,
    NAMESPACE,
    NETWORK_POLICY,
    PROJECT_HELM_CHART,
    SERVICE_ACCOUNT,
    Object,
    annotations_of,
    key_in,
    key_of,
    labels_of,
)
from tenantry.model.names import HELM_API_VERSION, OPERATED, PROJECT_CHART
from tenantry.model.origin import HARDENS, MAKES, Because, Looking, Origin, kubectl
from tenantry.model.projects import RELEASE_MANAGER, is_made_for_release
from tenantry.model.rbac import BoundSubject
from tenantry.model.releases import held_by

KINDS = frozenset({HELM_CHART, HELM_RELEASE, NAMESPACE, NETWORK_POLICY, SERVICE_ACCOUNT})
_HARDENED = frozenset({NETWORK_POLICY.kind, SERVICE_ACCOUNT.kind})


async def explain(obj: Object, subject: BoundSubject | None, look: Looking) -> Origin | None:
    """The ProjectHelmChart, and the chart of the configuration that it asks for."""
    del subject
    key = key_of(obj)
    if key.kind in _HARDENED:
        return _hardened(obj)
    ours = is_made_for_release(obj) if key.kind == NAMESPACE.kind else owns(obj, RELEASE_MANAGER, "spec")
    home, _, name = held_by(obj).partition("/")
    if not ours or not name:
        return None
    asked = await look.get(PROJECT_HELM_CHART, name, home)
    version = (asked or {}).get("spec", {}).get("helmApiVersion") or annotations_of(obj).get(HELM_API_VERSION, "")
    because = [Because(key_in(PROJECT_HELM_CHART, name, home), "spec.helmApiVersion", version)]
    charts = look.config.helm_project_operator.charts
    number = next((number for number, each in enumerate(charts) if each.helm_api_version == version), None)
    if number is not None:
        because.append(Because(None, f"helmProjectOperator.charts[{number}].helmApiVersion", version))
    end = kubectl("delete", PROJECT_HELM_CHART, name, home)
    stays = "  # then it is marked as orphaned, and may be deleted" if key.kind == NAMESPACE.kind else ""
    field = "its name label" if key.kind == NAMESPACE.kind else "its spec"
    proof = f"field manager {RELEASE_MANAGER} has {field}; annotation {PROJECT_CHART}"
    return Origin(f"release/{key.name}", proof, tuple(because), (f"{end}{stays}",))


def _hardened(obj: Object) -> Origin | None:
    """What hardens the namespace of a release."""
    place = obj["metadata"]["namespace"]
    if not entries_of(obj, RELEASE_MANAGER) or OPERATED not in labels_of(obj):
        return None
    because = (
        Because(None, "helmProjectOperator.hardenedNamespaces", "hardening"),
        Because(key_in(NAMESPACE, place, ""), "metadata.name", "the namespace of a release"),
    )
    proof = f"label {OPERATED}, and fields of field manager {RELEASE_MANAGER}"
    does = HARDENS if obj["kind"] == SERVICE_ACCOUNT.kind else MAKES
    end = "set helmProjectOperator.hardenedNamespaces.enabled to false, then delete it; it goes with its namespace"
    return Origin(f"release/{place}", proof, because, (end,), does)
