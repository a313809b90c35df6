"""The manifests of RFC-0002 as they are written there, and CRDs that take them (section 1.3, set RFC)."""

from __future__ import annotations

import copy

import yaml
from flux_crds import ACCESS_FROM, HELM, IMAGE, KINDS, KUSTOMIZE, SOURCE, FluxKind, crd, current, flux_kind, version_of

from tenantry.model.kinds import Kind, Object

V1BETA1, V1BETA2 = "v1beta1", "v1beta2"
STORIES = """
apiVersion: source.toolkit.fluxcd.io/v1beta1
kind: HelmRepository
metadata:
  name: bitnami
  namespace: flux-system
spec:
  url: https://charts.bitnami.com/bitnami
  accessFrom:
    namespaceSelectors:
      - matchLabels: {}
---
apiVersion: source.toolkit.fluxcd.io/v1beta1
kind: GitRepository
metadata:
  name: app1
  namespace: dev-team1
spec:
  url: ssh://git@github.com/<org>/app1-deploy
  secretRef:
    name: app1-ro-ssh-key
  accessFrom:
    namespaceSelectors:
    - matchLabels:
        kubernetes.io/metadata.name: dev-team2
---
apiVersion: source.toolkit.fluxcd.io/v1beta1
kind: GitRepository
metadata:
  name: cluster-config
  namespace: flux-system
spec:
  url: ssh://git@github.com/<org>/cluster-config
  secretRef:
    name: read-write-ssh-key
  accessFrom:
    namespaceSelectors:
    - matchLabels:
        kubernetes.io/metadata.name: dev-team1
---
apiVersion: image.toolkit.fluxcd.io/v1beta1
kind: ImageUpdateAutomation
metadata:
  name: app1
  namespace: dev-team1
spec:
  sourceRef:
    kind: GitRepository
    name: cluster-config
    namespace: flux-system
"""
BITNAMI, APP1, CLUSTER_CONFIG, AUTOMATION = yaml.safe_load_all(STORIES)
_FORMER = ("GitRepository", "Bucket", "HelmRepository", "HelmChart")
"""The kinds of sources that there were then."""
_IMAGES = ("ImageRepository", "ImagePolicy", "ImageUpdateAutomation")
_BEFORE = {SOURCE: V1BETA2, IMAGE: V1BETA2, KUSTOMIZE: V1BETA2, HELM: "v2beta2"}
_NEW_IN_V1 = ("ExternalArtifact",)


def _with_field(kind: FluxKind) -> Object:
    """The spec of a kind as it was then: sources keep the field, and nobody asks for an interval."""
    spec = copy.deepcopy(kind.spec)
    if kind.kind in (*_FORMER, "ImageRepository"):
        spec["properties"]["accessFrom"] = ACCESS_FROM
    spec["required"] = [each for each in spec.get("required", ()) if each != "interval"]
    return spec


def rfc() -> list[Object]:
    """The set RFC: sources and images as v1beta1, stored and with the field; all others as in ``current``."""
    old = [*_FORMER, *_IMAGES]
    found = [crd(each, version_of(V1BETA1, _with_field(each))) for each in map(flux_kind, old)]
    return [*found, *current(*(each.kind for each in KINDS if each.group not in (SOURCE, IMAGE)))]


def mixed() -> list[Object]:
    """The set mixed: as 2.7, v1 stored and an older version served beside it; of GitRepository only that one has the field."""
    return [_older(each) if each.group in _BEFORE and each.kind not in _NEW_IN_V1 else crd(each) for each in KINDS]


def _older(kind: FluxKind) -> Object:
    older = _with_field(kind) if kind.kind in _FORMER else kind.spec
    stored = version_of(kind.version, kind.spec, status=kind.status)
    return crd(kind, stored, version_of(_BEFORE[kind.group], older, storage=False, status=kind.status))


def kind_of(body: Object) -> Kind:
    """The kind of a manifest, in its version."""
    return Kind(body["apiVersion"], body["kind"], flux_kind(body["kind"]).plural)


def in_version(body: Object, version: str) -> Object:
    """A manifest in another version."""
    return {**body, "apiVersion": f"{body['apiVersion'].partition('/')[0]}/{version}"}
