"""The function, by its descriptor."""

from lock_enforcement.descriptor import descriptor
from tenantry.serving import Function

function = Function(descriptor)
