"""Control planes for modules of tests: one for many, but never one that another module has left its projects in.

Functions look at everything that there is, so what a module leaves is work for every function of the next ones, and with
another configuration they write it anew.  Deleting a namespace costs the control plane about 0.1 s of CPU, a new control
plane 4 s: a used one is thrown away.
"""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tenantry.local.control_plane import ControlPlane, Lines, ensure_binaries


class ControlPlanes:
    """The control plane that runs, if one does.  ``with`` ends it."""

    def __init__(self, api_server_args: Sequence[str] = ()) -> None:
        self._args = tuple(api_server_args)
        self._running: ControlPlane | None = None
        self._namespaces: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        ensure_binaries(Lines())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def take(self) -> ControlPlane:
        """A control plane with no other namespaces than Kubernetes' own."""
        if self._running is None:
            self._running = ControlPlane(ephemeral=True, api_server_args=self._args)
            self._running.start()
            self._namespaces = _namespaces(self._running)
        return self._running

    def give_back(self) -> None:
        """End it if a namespace was made."""
        assert self._running is not None
        try:
            unused = _namespaces(self._running) <= self._namespaces
        except OSError:
            unused = False  # a test has stopped its API server
        if not unused:
            self._end()

    def _end(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.stop()


def _namespaces(plane: ControlPlane) -> frozenset[str]:
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    headers = {"Authorization": f"Bearer {plane.admin_token}"}
    request = urllib.request.Request(f"{plane.server_url}/api/v1/namespaces", headers=headers)  # noqa: S310 (https, and ours)
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:  # noqa: S310
        found = json.load(answer)
    return frozenset(item["metadata"]["name"] for item in found["items"])
