"""What namespace-registration is."""

from __future__ import annotations

from tenantry.model.descriptor import Descriptor, Service

PROJECTS = Service("namespace-registration", "namespace-registration")
descriptor = Descriptor((PROJECTS,))
