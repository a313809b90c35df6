"""The only place that talks to the API server.

`Api` is the client, `tenantry.api.errors` the tree of what can go wrong.  Nothing outside this package
imports a Kubernetes client; an import contract holds that.
"""

from tenantry.api.client import Api, Keep, Listing
from tenantry.api.errors import ConnectError

__all__ = ["Api", "ConnectError", "Keep", "Listing"]
