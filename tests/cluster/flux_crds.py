"""CRDs of Flux in their smallest form (1.3): names, versions, subresources, fields that name other objects, and validations.

No package that tests may install has Flux's own.  A set is what a release of Flux serves: ``current`` is 2.9.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from times import SERVED_S

from tenantry.api import Api
from tenantry.model.kinds import CUSTOM_RESOURCE_DEFINITION, Object
from tenantry.testing import eventually
from tenantry.testing.objects import obj

SOURCE, IMAGE = "source.toolkit.fluxcd.io", "image.toolkit.fluxcd.io"
KUSTOMIZE, HELM = "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io"
NOTIFICATION = "notification.toolkit.fluxcd.io"
EXTENSIONS, OPERATOR = "source.extensions.fluxcd.io", "fluxcd.controlplane.io"

FREE: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT: Object = {"type": "string"}
FLAG: Object = {"type": "boolean"}
NAMESPACE_NAME: Object = {"type": "string", "minLength": 1, "maxLength": 63}
DURATION: Object = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"}
TEXTS: Object = {"type": "object", "additionalProperties": TEXT}


def fields(required: Sequence[str] = (), /, **properties: Object) -> Object:
    """An object with these fields; others are pruned."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def listed(item: Object) -> Object:
    """A list of these."""
    return {"type": "array", "items": item}


def one_of(*kinds: str, default: str = "") -> Object:
    """A text that is one of these."""
    return {"type": "string", "enum": list(kinds), **({"default": default} if default else {})}


def exactly_one(schema: Object, *names: str) -> Object:
    """Of these fields one is there."""
    rule = f"[{', '.join(f'has(self.{name})' for name in names)}].exists_one(stated, stated)"
    return {**schema, "x-kubernetes-validations": [{"rule": rule, "message": f"exactly one of {', '.join(names)}"}]}


ACCESS_FROM = fields(["namespaceSelectors"], namespaceSelectors=listed(fields(matchLabels=TEXTS)))
"""1.4."""
SECRET = fields(["name"], name=TEXT)
KUBE_CONFIG = exactly_one(fields(secretRef=FREE, configMapRef=FREE), "secretRef", "configMapRef")
DEPENDS_ON = listed(fields(["name"], name=TEXT, namespace=TEXT, readyExpr=TEXT))


def reference(kind: Object, *, required: Sequence[str] = ("kind", "name")) -> Object:
    """A reference with kind, name and namespace."""
    return fields(required, apiVersion=TEXT, kind=kind, name=TEXT, namespace=TEXT)


class FluxKind(NamedTuple):
    """A kind as ``current`` serves it."""

    group: str
    kind: str
    plural: str
    version: str
    spec: Object
    status: bool = True

    @property
    def crd_name(self) -> str:
        """The name of its CRD."""
        return f"{self.plural}.{self.group}"


def _source(**more: Object) -> Object:
    return fields(url=TEXT, interval=DURATION, suspend=FLAG, secretRef=SECRET, **more)


_CHART_SOURCE = reference(one_of("HelmRepository", "GitRepository", "Bucket"))
_CHART = fields(
    ["spec"],
    metadata=fields(labels=TEXTS, annotations=TEXTS),
    spec=fields(["chart", "sourceRef"], chart=TEXT, version=TEXT, sourceRef=_CHART_SOURCE, verify=fields(secretRef=SECRET)),
)
_KUSTOMIZATION = fields(
    ["interval", "prune", "sourceRef"],
    interval=DURATION,
    path=TEXT,
    prune=FLAG,
    suspend=FLAG,
    wait=FLAG,
    sourceRef=reference(one_of("GitRepository", "OCIRepository", "Bucket", "ExternalArtifact")),
    dependsOn=DEPENDS_ON,
    targetNamespace=NAMESPACE_NAME,
    serviceAccountName=TEXT,
    kubeConfig=KUBE_CONFIG,
    healthChecks=listed(FREE),
    postBuild=FREE,
    decryption=FREE,
)
_HELM_RELEASE = exactly_one(
    fields(
        ["interval"],
        interval=DURATION,
        suspend=FLAG,
        chart=_CHART,
        chartRef=reference(one_of("OCIRepository", "HelmChart", "ExternalArtifact")),
        dependsOn=DEPENDS_ON,
        targetNamespace=NAMESPACE_NAME,
        storageNamespace=NAMESPACE_NAME,
        serviceAccountName=TEXT,
        kubeConfig=KUBE_CONFIG,
        install=FREE,
        valuesFrom=listed(FREE),
        values=FREE,
    ),
    "chart",
    "chartRef",
)
_IMAGE_UPDATE = fields(
    ["interval", "sourceRef"],
    interval=DURATION,
    suspend=FLAG,
    sourceRef=reference(one_of("GitRepository", default="GitRepository")),
    git=FREE,
    update=FREE,
    policySelector=FREE,
)
_GENERATED = one_of("Bucket", "GitRepository", "OCIRepository", "HelmChart", "ExternalArtifact")
_GENERATOR = fields(
    ["sources", "artifacts"],
    sources={
        **listed(fields(["alias", "kind", "name"], alias=TEXT, kind=_GENERATED, name=TEXT, namespace=TEXT)),
        "maxItems": 1000,
    },
    artifacts=listed(FREE),
)

KINDS = (
    FluxKind(SOURCE, "GitRepository", "gitrepositories", "v1", _source(ref=FREE, include=listed(FREE))),
    FluxKind(SOURCE, "OCIRepository", "ocirepositories", "v1", _source(ref=FREE)),
    FluxKind(SOURCE, "Bucket", "buckets", "v1", _source(bucketName=TEXT, endpoint=TEXT)),
    FluxKind(SOURCE, "HelmRepository", "helmrepositories", "v1", _source(type=TEXT, accessFrom=ACCESS_FROM)),
    FluxKind(
        SOURCE,
        "HelmChart",
        "helmcharts",
        "v1",
        fields(chart=TEXT, version=TEXT, interval=DURATION, suspend=FLAG, sourceRef=fields(kind=TEXT, name=TEXT)),
    ),
    FluxKind(SOURCE, "ExternalArtifact", "externalartifacts", "v1", fields(sourceRef=reference(TEXT))),
    FluxKind(EXTENSIONS, "ArtifactGenerator", "artifactgenerators", "v1beta1", _GENERATOR),
    FluxKind(KUSTOMIZE, "Kustomization", "kustomizations", "v1", _KUSTOMIZATION),
    FluxKind(HELM, "HelmRelease", "helmreleases", "v2", _HELM_RELEASE),
    FluxKind(
        IMAGE,
        "ImageRepository",
        "imagerepositories",
        "v1",
        fields(image=TEXT, interval=DURATION, suspend=FLAG, secretRef=SECRET, accessFrom=ACCESS_FROM),
    ),
    FluxKind(
        IMAGE,
        "ImagePolicy",
        "imagepolicies",
        "v1",
        fields(["imageRepositoryRef"], imageRepositoryRef=fields(["name"], name=TEXT, namespace=TEXT), policy=FREE, suspend=FLAG),
    ),
    FluxKind(IMAGE, "ImageUpdateAutomation", "imageupdateautomations", "v1", _IMAGE_UPDATE),
    FluxKind(
        NOTIFICATION,
        "Alert",
        "alerts",
        "v1beta3",
        fields(
            ["eventSources"],
            eventSources=listed(reference(TEXT)),
            providerRef=SECRET,
            eventSeverity=TEXT,
            summary=TEXT,
            suspend=FLAG,
        ),
        status=False,
    ),
    FluxKind(
        NOTIFICATION,
        "Provider",
        "providers",
        "v1beta3",
        fields(type=TEXT, address=TEXT, secretRef=SECRET, suspend=FLAG),
        status=False,
    ),
    FluxKind(
        NOTIFICATION,
        "Receiver",
        "receivers",
        "v1",
        fields(["resources"], type=TEXT, events=listed(TEXT), resources=listed(reference(TEXT)), secretRef=SECRET, suspend=FLAG),
    ),
    FluxKind(
        OPERATOR,
        "ResourceSet",
        "resourcesets",
        "v1",
        fields(
            dependsOn=listed(
                fields(["apiVersion", "kind", "name"], apiVersion=TEXT, kind=TEXT, name=TEXT, namespace=TEXT, readyExpr=TEXT)
            ),
            serviceAccountName=TEXT,
            inputsFrom=listed(FREE),
            resources=listed(FREE),
            resourcesTemplate=TEXT,
        ),
    ),
    FluxKind(
        OPERATOR,
        "ResourceSetInputProvider",
        "resourcesetinputproviders",
        "v1",
        fields(type=TEXT, url=TEXT, serviceAccountName=TEXT, selectors=listed(fields(namespace=TEXT, labelSelector=FREE))),
    ),
)
"""As 2.9 serves them, one version each."""


def version_of(name: str, spec: Object, *, storage: bool = True, status: bool = True) -> Object:
    """A served version of a CRD."""
    schema: Object = {
        "type": "object",
        "properties": {"apiVersion": TEXT, "kind": TEXT, "metadata": {"type": "object"}, "spec": spec},
    }
    found: Object = {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}
    if status:
        schema["properties"]["status"] = FREE
        found["subresources"] = {"status": {}}
    return found


def crd(kind: FluxKind, *versions: Object) -> Object:
    """The CRD of a kind, with other versions than its own if some are given."""
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    served = list(versions) or [version_of(kind.version, kind.spec, status=kind.status)]
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": served}
    return obj(CUSTOM_RESOURCE_DEFINITION, kind.crd_name, spec=spec)


def flux_kind(name: str) -> FluxKind:
    """A kind of ``current`` by its name."""
    return next(each for each in KINDS if each.kind == name)


def current(*names: str) -> list[Object]:
    """The CRDs of the set ``current``, or those of these kinds."""
    return [crd(each) for each in KINDS if not names or each.kind in names]


async def install_flux(admin: Api, crds: Sequence[Object] = ()) -> None:
    """Install CRDs of Flux, ``current`` unless others are given, and wait until each version of them is served."""
    crds = crds or current()
    await asyncio.gather(*(admin.apply(CUSTOM_RESOURCE_DEFINITION, each) for each in crds))
    asked = [
        (each["spec"]["group"], version["name"], each["spec"]["names"]["kind"]) for each in crds for version in _served(each)
    ]

    async def served() -> bool:
        answers = [await admin.served(f"{group}/{version}", kind, again=True) for group, version, kind in asked]
        return None not in answers

    await eventually(served, within=SERVED_S, what="Flux' kinds are served")


def _served(definition: Object) -> list[Any]:
    return [each for each in definition["spec"]["versions"] if each["served"]]
