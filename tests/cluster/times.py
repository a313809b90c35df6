"""How long the tests wait: the times of the acceptance checks, and each longer one with its reason.

What counts is the time from a declaration to the state that follows. What has to be there first (control planes, functions, CRDs,
policies in force) is no part of it, and has times of its own, which are long: tests run side by side on few cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from tenantry.testing import eventually

Found = TypeVar("Found")

WHOLE = bool(os.environ.get("TENANTRY_WHOLE"))
"""Whether nothing is left out for its time."""
FULL = bool(os.environ.get("TENANTRY_FULL_SIZE"))
"""Whether the sizes are those of the checks; by default they are as large as a run of all tests has time for."""
LEFT_TO_MAKE_WHOLE = pytest.mark.skipif(not WHOLE, reason="takes long: make whole")
"""What `make test`, which has to be quick, leaves out."""

SIDE_BY_SIDE = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
"""How many tests run at the same time. What holds only with nothing else on the machine, or *during* an attack, depends on who
else is on these cores, so such times are as many times longer; `make attacks` and `make volume`, and pytest by itself, run one
test at a time, and hold to the times as they are written."""

# -- the times of the checks -----------------------------------------------------------------------------------------

SCOPES_S = 5.0
"""sb checks: "eventually" is 5 s."""
PROJECTS_S = 10.0
"""hpo checks: "eventually" is 10 s."""
PAAS_S = 5.0 * SIDE_BY_SIDE
"""p checks: T is 5 s with nothing else on the machine."""
FLUX_S = 5.0
"""f checks: 5 s from the API server's answer to the cause."""
HELM_S = 30.0
"""hpo checks: 30 s where a Helm run is needed."""

SERVED_MEANWHILE_S = 2.0 * SIDE_BY_SIDE
"""a-12 to a-19: others' events are answered within 2 s, whatever is sent or made meanwhile."""

# -- what others take ------------------------------------------------------------------------------------------------

CONTROLLER_S = 30.0 * SIDE_BY_SIDE
"""Kubernetes' own controllers come first: pods of Deployments, aggregated ClusterRoles, default ServiceAccounts, quotas."""
NAMESPACE_GONE_S = 30.0 * SIDE_BY_SIDE
"""The namespace controller takes five seconds at least to delete a namespace, and longer when it has several."""
GARBAGE_S = 60.0 * SIDE_BY_SIDE
"""The garbage collector looks for new kinds every thirty seconds: until then what waits for it stays."""
POLICY_S = 30.0 * SIDE_BY_SIDE
"""An admission policy comes into force, or goes, some time after it was written."""
SERVED_S = 60.0 * SIDE_BY_SIDE
"""The API server begins or ends to serve a kind some time after its CRD came or went, and tells nobody."""
START_S = 60.0 * SIDE_BY_SIDE
"""Processes start: a control plane, sources, functions."""
LOCAL_S = 30.0 * SIDE_BY_SIDE
"""Sources, broker and Job runner of one machine, for which no check names a time: they try again after growing pauses."""
VOLUME_S = 90.0
"""Hundreds of objects at once beside other tests on the same cores: how fast that is, is a question for ``make bench``."""
DEAD_LETTER_S = 90.0
"""An event is a dead letter after seven tries with pauses of 63 s in all."""


async def until(found: Callable[[], Found], *, within: float = LOCAL_S, what: str = "") -> Found:
    """Wait for something true in this process: `eventually` for what is at hand without a request."""

    async def check() -> Found:
        return found()

    return await eventually(check, within=within, what=what)
