"""Whether RBAC lets somebody do something, by the bindings and roles as they would be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenantry.api.review import reviewed
from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Object
from tenantry.model.rbac import Question, allowing, subject_in

if TYPE_CHECKING:
    from tenantry.engine.overlay.reading import OverlayReads


async def allowed(spec: Mapping[str, Any], over: OverlayReads) -> bool:
    """The answer to a SubjectAccessReview: the server's, where nothing of RBAC is laid on."""
    if not any(place.group == ROLE.group for place in over.overlay.laid):
        return await reviewed(over.live, spec)
    question = _question(spec)
    lists = [over.list(CLUSTER_ROLE_BINDING)]
    if question.namespace:
        lists.append(over.list(ROLE_BINDING, question.namespace))
    for listing in await asyncio.gather(*lists):
        for binding in listing.items:
            if subject_in(binding, question) is not None and allowing(question, await _rules(binding, over)) is not None:
                return True
    return False


def _question(spec: Mapping[str, Any]) -> Question:
    parts = ("verb", "group", "resource", "subresource", "namespace", "name")
    asked = spec["resourceAttributes"]
    return Question(spec.get("user", ""), tuple(spec.get("groups") or ()), **{part: asked.get(part, "") for part in parts})


async def _rules(binding: Object, over: OverlayReads) -> Sequence[Object]:
    reference = binding["roleRef"]
    kind = ROLE if reference["kind"] == ROLE.kind else CLUSTER_ROLE
    role = await over.get(kind, reference["name"], binding["metadata"].get("namespace", "") if kind is ROLE else "")
    return (role or {}).get("rules") or ()
