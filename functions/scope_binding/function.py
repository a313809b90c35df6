"""The function, by its descriptor."""

from scope_binding.descriptor import descriptor
from tenantry.serving import Function

function = Function(descriptor)
