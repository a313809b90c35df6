"""Control planes for modules of tests: one after the other on the same, but never one that holds what another module made.

Functions look at everything that there is, so what a module leaves is work for every function of the next ones, and with
another configuration they write it anew.  Deleting a namespace costs the control plane about 0.1 s of CPU, a new control
plane 5 s, and what is installed on it 4 s more: so etcd is put back to what it held before (`tenantry.testing.etcd`).

Half of what an installation costs is the API server's compiling of admission policies, which it does again when a policy has
had no binding for a moment.  Policies are kept, with a binding that matches nothing; but for those with a param: the API server
would go on with the params of the module before, until it looks again for a kind that it has not found, after up to a minute.
"""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.request
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from tenantry.local.control_plane import ControlPlane, Lines, ensure_binaries
from tenantry.local.control_plane.flags import ETCD_SOCKET
from tenantry.testing.etcd import Baseline, Etcd, NotQuiet

_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
_KEPT = "kept-"
_NOTHING = {"objectSelector": {"matchLabels": {"tenantry.example/kept": "never"}}}


class ControlPlanes:
    """Control planes that wait for their next use.  ``with`` ends all of them."""

    def __init__(self, api_server_args: Sequence[str] = ()) -> None:
        self._args = tuple(api_server_args)
        self._baselines: dict[ControlPlane, Baseline] = {}
        self._free: list[ControlPlane] = []

    def __enter__(self) -> Self:
        ensure_binaries(Lines())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for plane in list(self._baselines):
            self._end(plane)

    def take(self, *, policies: bool = True) -> ControlPlane:
        """A control plane that holds what a new one holds and, with ``policies``, some that have no effect."""
        while self._free:
            plane = self._free.pop()
            if policies or self._put_back(plane, policies=False):
                return plane
        plane = ControlPlane(ephemeral=True, api_server_args=self._args)
        plane.start()
        self._baselines[plane] = Baseline(Etcd(plane.data_dir / ETCD_SOCKET))
        return plane

    def give_back(self, plane: ControlPlane) -> None:
        """Put it back to what it held before, or end it where that cannot be done."""
        if self._put_back(plane, policies=True):
            self._free.append(plane)

    def _put_back(self, plane: ControlPlane, *, policies: bool) -> bool:
        """Whether it holds again what it held before, and policies if they are kept; else it is ended."""
        try:
            self._baselines[plane].restore(list(_kept_policies(plane)) if policies else ())
        except (OSError, http.client.HTTPException, NotQuiet):
            self._end(plane)  # a test has stopped its API server, for one
            return False
        return True

    def _end(self, plane: ControlPlane) -> None:
        del self._baselines[plane]
        plane.stop()


def _kept_policies(plane: ControlPlane) -> Iterator[str]:
    """The keys of policies that nobody has changed, and of a binding for each, which is made if it is not there."""
    bound = {each["metadata"]["name"] for each in _ask(plane, _BINDINGS)["items"]}
    for policy in _ask(plane, _POLICIES)["items"]:
        name = policy["metadata"]["name"]
        if policy["metadata"]["generation"] > 1 or "paramKind" in policy["spec"]:
            continue
        if _KEPT + name not in bound:
            spec = {"policyName": name, "validationActions": ["Audit"], "matchResources": _NOTHING}
            _ask(plane, _BINDINGS, {"metadata": {"name": _KEPT + name}, "spec": spec})
        yield f"/registry/validatingadmissionpolicies/{name}"
        yield f"/registry/validatingadmissionpolicybindings/{_KEPT}{name}"


def _ask(plane: ControlPlane, path: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
    """The answer to a GET, or to a POST of a document."""
    context = ssl.create_default_context(cafile=str(plane.ca_file))
    headers = {"Authorization": f"Bearer {plane.admin_token}", "Content-Type": "application/json"}
    body = json.dumps(document).encode() if document is not None else None
    request = urllib.request.Request(plane.server_url + path, body, headers)  # noqa: S310 (https, and ours)
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:  # noqa: S310
        found: dict[str, Any] = json.load(answer)
    return found
