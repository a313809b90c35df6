"""An API server before 1.36, which knows no MutatingAdmissionPolicy of v1: the same server behind a proxy that hides it."""

from __future__ import annotations

import json

from tenantry.model.kinds import ADMISSION_MUTATION, ADMISSION_MUTATION_BINDING, Object
from tenantry.testing.fault import Forward
from tenantry.testing.wire import Request, Response

_HIDDEN = {each.plural for each in (ADMISSION_MUTATION, ADMISSION_MUTATION_BINDING)}
_VERSION = ADMISSION_MUTATION.api_version
_NOT_FOUND = Response(404, b"404 page not found\n", {"Content-Type": "text/plain; charset=utf-8"})


class WithoutMutations:
    """Stands among the faults of a proxy: discovery does not list mutations, and requests for them are not found."""

    def __init__(self) -> None:
        self.hidden = 0
        """The answers of discovery that were changed."""

    async def meet(self, request: Request, forward: Forward) -> Response | None:
        """The answer of an older server."""
        if request.api_version == _VERSION and request.resource in _HIDDEN:
            return _NOT_FOUND
        if request.path not in ("/apis", f"/apis/{_VERSION}"):
            return None
        answer = await forward()
        found = answer.body
        if not isinstance(found, dict):
            return answer
        self.hidden += _hide(found)
        return Response(answer.status, json.dumps(found).encode(), answer.headers)


def _hide(found: Object) -> bool:
    """Take mutations out of a list of groups, or of the resources of their version; returns whether they were there."""
    before = json.dumps(found)
    if found.get("kind") == "APIResourceList":
        found["resources"] = [each for each in found["resources"] if each["name"].partition("/")[0] not in _HIDDEN]
    for group in found.get("items") or ():
        for version in group.get("versions") or ():
            if f"{group['metadata']['name']}/{version['version']}" == _VERSION:
                version["resources"] = [each for each in version["resources"] if each["resource"] not in _HIDDEN]
    return json.dumps(found) != before
