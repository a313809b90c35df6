"""What rbac-aggregation is."""

from __future__ import annotations

from tenantry.model.descriptor import Descriptor, Service

RELEASES = Service("rbac-aggregation", "rbac-aggregation")
descriptor = Descriptor((RELEASES,))
