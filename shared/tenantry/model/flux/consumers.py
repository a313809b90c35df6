"""Consumers of Flux tenancy: the kinds whose objects name sources or other objects, by which fields, and what stops them.

A kind of another system is a row of ``TenancyProfile.spec.consumers[]``, no code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from tenantry.model.flux.names import IMAGE_REPOSITORY
from tenantry.model.kinds import Kind

Access = Literal["read", "write", "local"]
"""What a reference to another namespace needs: a grant to read, or to write; ``local`` has no right to be one."""

KUSTOMIZE_GROUP = "kustomize.toolkit.fluxcd.io"
HELM_GROUP = "helm.toolkit.fluxcd.io"
AUTOMATION_GROUP = "image.toolkit.fluxcd.io"
NOTIFICATION_GROUP = "notification.toolkit.fluxcd.io"
EXTENSIONS_GROUP = "source.extensions.fluxcd.io"
OPERATOR_GROUP = "fluxcd.controlplane.io"
DEPENDS_ON = "spec.dependsOn[]"


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names an object: ``spec.sourceRef``, or with ``[]`` a list of them, as in ``spec.inputs[].ref``.

    ``kind`` is that of what is named, where the reference has no field that says it.
    """

    path: str
    access: Access
    kind: str = ""

    @property
    def field(self) -> str:
        """The path as people are told it."""
        return self.path.replace("[]", "")

    @property
    def is_list(self) -> bool:
        """Whether the field, or one that it is in, is a list."""
        return "[]" in self.path


@dataclass(frozen=True, slots=True)
class Stop:
    """What stops an object: a field that is true, or an annotation with a value."""

    field: str = ""
    annotation: str = ""
    value: str = ""


@dataclass(frozen=True, slots=True)
class Consumer:
    """A kind whose objects name others; its versions are those that the API server serves."""

    group: str
    resource: str
    references: tuple[Reference, ...]
    stop: Stop

    @property
    def name(self) -> str:
        """As a CRD of it is called, and the end of the names of its policies."""
        return f"{self.resource}.{self.group}"

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """A row of ``TenancyProfile.spec.consumers[]``, which the API server has checked."""
        found = (Reference(each["path"], each["class"], each.get("kind") or "") for each in row["references"])
        stop = row["stop"]
        return cls(
            row["group"],
            row["resource"],
            tuple(found),
            Stop(stop.get("field") or "", stop.get("annotation") or "", stop.get("value") or ""),
        )


SUSPEND = Stop(field="spec.suspend")
_NOT_GENERATED = Stop(annotation=f"{EXTENSIONS_GROUP}/reconcile", value="disabled")
_NOT_RECONCILED = Stop(annotation=f"{OPERATOR_GROUP}/reconcile", value="disabled")

CONSUMERS = (
    Consumer(
        KUSTOMIZE_GROUP,
        "kustomizations",
        (Reference("spec.sourceRef", "read"), Reference(DEPENDS_ON, "local", "Kustomization")),
        SUSPEND,
    ),
    Consumer(
        HELM_GROUP,
        "helmreleases",
        (
            Reference("spec.chart.spec.sourceRef", "read"),
            Reference("spec.chartRef", "read"),
            Reference(DEPENDS_ON, "local", "HelmRelease"),
        ),
        SUSPEND,
    ),
    Consumer(AUTOMATION_GROUP, "imageupdateautomations", (Reference("spec.sourceRef", "write", "GitRepository"),), SUSPEND),
    Consumer(AUTOMATION_GROUP, "imagepolicies", (Reference("spec.imageRepositoryRef", "read", IMAGE_REPOSITORY),), SUSPEND),
    Consumer(EXTENSIONS_GROUP, "artifactgenerators", (Reference("spec.sources[]", "read"),), _NOT_GENERATED),
    Consumer(NOTIFICATION_GROUP, "alerts", (Reference("spec.eventSources[]", "local"),), SUSPEND),
    Consumer(NOTIFICATION_GROUP, "receivers", (Reference("spec.resources[]", "local"),), SUSPEND),
    Consumer(OPERATOR_GROUP, "resourcesets", (Reference(DEPENDS_ON, "local"),), _NOT_RECONCILED),
    Consumer(
        OPERATOR_GROUP,
        "resourcesetinputproviders",
        (Reference("spec.selectors[]", "local", "ExternalArtifact"),),
        _NOT_RECONCILED,
    ),
)
"""The kinds that need no row, as Flux 2.9 and its operator have them (section 3.4)."""

APPLIED = (
    Kind(f"{KUSTOMIZE_GROUP}/v1", "Kustomization", "kustomizations"),
    Kind(f"{HELM_GROUP}/v2", "HelmRelease", "helmreleases"),
    Kind(f"{NOTIFICATION_GROUP}/v1beta3", "Alert", "alerts"),
    Kind(f"{NOTIFICATION_GROUP}/v1", "Receiver", "receivers"),
)
IMAGES = (
    Kind(f"{AUTOMATION_GROUP}/v1", "ImageUpdateAutomation", "imageupdateautomations"),
    Kind(f"{AUTOMATION_GROUP}/v1", "ImagePolicy", "imagepolicies"),
)
GENERATED = (Kind(f"{EXTENSIONS_GROUP}/v1beta1", "ArtifactGenerator", "artifactgenerators"),)
OPERATED = (
    Kind(f"{OPERATOR_GROUP}/v1", "ResourceSet", "resourcesets"),
    Kind(f"{OPERATOR_GROUP}/v1", "ResourceSetInputProvider", "resourcesetinputproviders"),
)
CONSUMER_KINDS = (*APPLIED, *IMAGES, *GENERATED, *OPERATED)
"""The kinds of the rows in the version that is watched; they are read in that which discovery names.

Flux installs them in parts: with the controllers that apply, with those of images, with the source-watcher, with its operator.
"""


def judged(consumers: Sequence[Consumer], *, sources: bool, depends_on: bool) -> list[Consumer]:
    """The consumers with those references that are judged; without those of which none is.

    ``sources``: of access read and write; ``depends_on``: those of ``spec.dependsOn[]`` to objects of other namespaces.
    """
    found = []
    for each in consumers:
        references = tuple(
            one
            for one in each.references
            if (sources or one.access == "local") and (depends_on or one.path != DEPENDS_ON or one.access != "local")
        )
        if references:
            found.append(Consumer(each.group, each.resource, references, each.stop))
    return found
