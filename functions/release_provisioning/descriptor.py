"""What release-provisioning is."""

from __future__ import annotations

from tenantry.model.descriptor import Descriptor, Service

RELEASES = Service("release-provisioning", "release-provisioning", "releases")
HELM_JOBS = Service("release-provisioning-helm-jobs", "release-provisioning", "helm-jobs")
descriptor = Descriptor((RELEASES, HELM_JOBS))
