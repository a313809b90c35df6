"""Whether RBAC lets somebody do something, by the bindings and roles as they would be.

Rules as of ``k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac``: rights only add up, and nothing takes one away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenantry.model.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Object

if TYPE_CHECKING:
    from tenantry.engine.overlay.reading import OverlayReads

_RBAC = "rbac.authorization.k8s.io"


async def allowed(spec: Mapping[str, Any], over: OverlayReads) -> bool:
    """The answer to a SubjectAccessReview: the server's, where nothing of RBAC is laid on."""
    changed = any(place.group == _RBAC for place in over.overlay.laid)
    if not changed:
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": dict(spec)}
        answer = await over.live.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", None, body)
        return bool(answer["status"].get("allowed"))
    asked = spec["resourceAttributes"]
    namespace = asked.get("namespace", "")
    several, inside = await asyncio.gather(
        over.list(CLUSTER_ROLE_BINDING), over.list(ROLE_BINDING, namespace) if namespace else _none()
    )
    found: list[Object] = [*several.items, *(inside.items if inside is not None else ())]
    for binding in found:
        if any(_is_subject(each, binding, spec) for each in binding.get("subjects") or ()):
            rules = await _rules(binding, over)
            if any(_allows(rule, asked) for rule in rules):
                return True
    return False


async def _none() -> None:
    return None


async def _rules(binding: Object, over: OverlayReads) -> Sequence[Object]:
    reference = binding["roleRef"]
    kind = ROLE if reference["kind"] == ROLE.kind else CLUSTER_ROLE
    role = await over.get(kind, reference["name"], binding["metadata"].get("namespace", "") if kind is ROLE else "")
    return (role or {}).get("rules") or ()


def _is_subject(subject: Object, binding: Object, spec: Mapping[str, Any]) -> bool:
    match subject["kind"]:
        case "User":
            return bool(subject["name"] == spec.get("user"))
        case "Group":
            return subject["name"] in (spec.get("groups") or ())
        case _:
            namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
            return bool(spec.get("user") == f"system:serviceaccount:{namespace}:{subject['name']}")


def _allows(rule: Object, asked: Mapping[str, str]) -> bool:
    resource = asked.get("resource", "")
    below = asked.get("subresource", "")
    wanted = {f"{resource}/{below}", f"*/{below}"} if below else {resource}
    names = rule.get("resourceNames") or ()
    return (
        bool({asked.get("verb", ""), "*"} & set(rule.get("verbs") or ()))
        and bool({asked.get("group", ""), "*"} & set(rule.get("apiGroups") or ()))
        and bool({*wanted, "*"} & set(rule.get("resources") or ()))
        and (not names or asked.get("name", "") in names)
    )
