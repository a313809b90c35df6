"""Kinds, labels, annotations and finalizers of Flux tenancy, each with its owner and meaning.

The ``tenantry.dev`` kinds are ours.  Kinds of Flux are named here without the version that is read: that one discovery names.
"""

from __future__ import annotations

from tenantry.model.kinds import Kind

GROUP_OF_KINDS = "tenantry.dev"
VERSION = f"{GROUP_OF_KINDS}/v1alpha1"

SOURCE_GRANT = Kind(VERSION, "SourceGrant", "sourcegrants")
"""Who may use sources of its namespace; written by their owners."""
TENANCY_PROFILE = Kind(VERSION, "TenancyProfile", "tenancyprofiles", namespaced=False)
"""What is enforced; only the name `DEFAULT` is valid."""
ACCESS_INDEX = Kind(VERSION, "AccessIndex", "accessindices", namespaced=False)
"""The grants in the form that admission policies read; only scope-binding writes it."""
TENANT = Kind(VERSION, "Tenant", "tenants", namespaced=False)
"""Namespaces, account and repository of a team."""

DEFAULT = "default"
"""The one TenancyProfile, and the one AccessIndex."""

SOURCE_GROUP = "source.toolkit.fluxcd.io"
IMAGE_GROUP = "image.toolkit.fluxcd.io"
KUSTOMIZE_GROUP = "kustomize.toolkit.fluxcd.io"

SOURCES = ("GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart", "ExternalArtifact")
"""The kinds of `SOURCE_GROUP` that a SourceGrant may name."""
IMAGE_REPOSITORY = "ImageRepository"
"""Of `IMAGE_GROUP`; only its own ``spec.accessFrom`` opens it."""

ACCESS_FROM = "tenantry.dev/access-from"
"""Annotation on a source: who may use it, as JSON of the shape of ``spec.accessFrom``."""
LEAVING = "tenantry.dev/leaving"
"""Annotation of release-provisioning on the source of a Tenant that it is about to delete."""
REQUESTED_AT = "reconcile.fluxcd.io/requestedAt"
"""Annotation that has Flux reconcile an object at once, whenever its value is another one."""
LOCKED = "tenantry.dev/locked"
"""Annotation of lock-enforcement on a consumer without a grant: `ACCESS_DENIED`."""
SUSPENDED_BY_LOCK = "tenantry.dev/suspended-by-lock"
"""Annotation beside it: the suspension is ours, and goes with the lock."""
LOCK_FINALIZER = "tenantry.dev/lock"
"""Finalizer of lock-enforcement on a locked consumer."""
ACCESS_DENIED = "AccessDenied"

TENANT_LABEL = "toolkit.fluxcd.io/tenant"
"""Label of a tenant's namespaces, accounts and bindings: its name, as Flux' own command writes it."""
MADE_FOR_TENANT = "tenantry.dev/tenant"
"""Label on what is made for a Tenant: its name."""
PRUNE = "kustomize.toolkit.fluxcd.io/prune"
"""Annotation ``disabled`` on a namespace of a Tenant: no Kustomization that took it into its inventory deletes it (2.4)."""
SHOW_SOURCES = "tenantry.dev/show-sources"
"""Annotation ``true`` on a namespace: it gets a list of the sources that it may use (2.8)."""
SOURCES_SHOWN = "tenantry-sources"
"""The ConfigMap with that list: keys ``read`` and ``write``, one ``Kind/namespace/name`` on a line."""
SHOWN_MARK = "tenantry.dev/sources"
"""Label on that ConfigMap."""
ACCOUNT_LABEL = "tenantry.dev/service-account"
"""Label on a namespace of a Tenant: the account that its deliveries are applied as."""
CHART_OWNER_NAME = "helm.toolkit.fluxcd.io/name"
CHART_OWNER_NAMESPACE = "helm.toolkit.fluxcd.io/namespace"
"""Labels on a HelmChart: the HelmRelease that it was made for."""

SOURCE_KINDS = (
    Kind(f"{SOURCE_GROUP}/v1", "GitRepository", "gitrepositories"),
    Kind(f"{SOURCE_GROUP}/v1", "OCIRepository", "ocirepositories"),
    Kind(f"{SOURCE_GROUP}/v1", "Bucket", "buckets"),
    Kind(f"{SOURCE_GROUP}/v1", "HelmRepository", "helmrepositories"),
    Kind(f"{SOURCE_GROUP}/v1", "HelmChart", "helmcharts"),
    Kind(f"{SOURCE_GROUP}/v1", "ExternalArtifact", "externalartifacts"),
)
"""The kinds of sources in the version that is watched; read they are in that which discovery names."""
IMAGE_REPOSITORIES = Kind(f"{IMAGE_GROUP}/v1", IMAGE_REPOSITORY, "imagerepositories")
SHARED_KINDS = (*SOURCE_KINDS, IMAGE_REPOSITORIES)
"""What other namespaces may be granted: the kinds that have entries in the AccessIndex."""

ACL_VALID = "ACLValid"
"""Condition of a SourceGrant: whether all that it says counts."""
INVALID_ACL = "InvalidACL"
"""Reason of a Warning about a source: a part of what it says about access does not count."""
INDEX_FULL = "IndexFull"
"""Reason where a grant has found no place in the AccessIndex."""
INDEX_NOT_WRITTEN = "IndexNotWritten"
"""Reason where the AccessIndex says something else than the carriers: somebody refuses its write."""
NEARLY_FULL = "NearlyFull"
"""Condition of the AccessIndex while it has more than four fifths of the grants that it can have."""
