"""The function, by its descriptor."""

from namespace_registration.descriptor import descriptor
from tenantry.serving import Function

function = Function(descriptor)
