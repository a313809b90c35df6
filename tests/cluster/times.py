"""How long the tests wait: the times of the acceptance checks, and each longer one with its reason.

What counts is the time from a declaration to the state that follows.  What has to be there first (functions, CRDs, policies in
force) is no part of it and has times of its own.
"""

from __future__ import annotations

# -- the times of the checks -----------------------------------------------------------------------------------

SCOPES_S = 5.0
"""sb checks: "eventually" is 5 s."""
PROJECTS_S = 10.0
"""hpo checks: "eventually" is 10 s."""
HELM_S = 30.0
"""hpo checks: 30 s where a Helm run is needed."""

# -- longer ones ------------------------------------------------------------------------------------------------

CONTROLLER_S = 30.0
"""What Kubernetes' own controllers do before or after ours: pods of Deployments, aggregated ClusterRoles, owned objects."""
