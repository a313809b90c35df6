"""What the API server itself says: a SubjectAccessReview, or the nearest to it that the caller may make."""

from __future__ import annotations

from typing import NamedTuple

from tenantry.api import Api
from tenantry.api.errors import Forbidden, RefusedError
from tenantry.model.kinds import Object
from tenantry.model.rbac import Question

_GROUP = "authorization.k8s.io/v1"
_PATH = f"/apis/{_GROUP}"


class Answer(NamedTuple):
    """``allowed`` None: nothing could be asked, ``reason`` says why."""

    review: str
    allowed: bool | None
    reason: str = ""


async def asked_server(question: Question, api: Api) -> Answer:
    """Ask, first about anybody, then in the namespace only, then about the caller itself."""
    spec: Object = {"user": question.user, "groups": list(question.groups), **_attributes(question)}
    try:
        return await _asked("SubjectAccessReview", f"{_PATH}/subjectaccessreviews", spec, api)
    except Forbidden:
        pass
    if question.namespace:
        try:
            path = f"{_PATH}/namespaces/{question.namespace}/localsubjectaccessreviews"
            return await _asked("LocalSubjectAccessReview", path, spec, api, question.namespace)
        except Forbidden:
            pass
    if await _is_caller(question, api):
        return await _asked("SelfSubjectAccessReview", f"{_PATH}/selfsubjectaccessreviews", _attributes(question), api)
    return Answer("SubjectAccessReview", None, "you may not make a SubjectAccessReview: create subjectaccessreviews is missing")


def _attributes(question: Question) -> Object:
    if question.url:
        return {"nonResourceAttributes": {"path": question.url, "verb": question.verb}}
    parts = ("group", "resource", "subresource", "namespace", "name", "verb")
    return {"resourceAttributes": {part: value for part in parts if (value := getattr(question, part))}}


async def _asked(kind: str, path: str, spec: Object, api: Api, namespace: str = "") -> Answer:
    body: Object = {"apiVersion": _GROUP, "kind": kind, "spec": spec}
    if namespace:
        body["metadata"] = {"namespace": namespace}
    try:
        status = (await api.request("POST", path, None, body))["status"]
    except Forbidden:
        raise
    except RefusedError as error:
        return Answer(kind, None, error.message)
    return Answer(kind, bool(status.get("allowed")), str(status.get("reason") or status.get("evaluationError") or ""))


async def _is_caller(question: Question, api: Api) -> bool:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        who = (await api.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", None, body))["status"]["userInfo"]
    except RefusedError:
        return False
    return bool(question.user) and who.get("username") == question.user and set(question.groups) <= set(who.get("groups") or ())
