"""Refusals and failures in the words of a Kubernetes 1.36 API server: ``metav1.Status``, or text where it answers with text.

Sources: k8s.io/apimachinery ``pkg/api/errors``, k8s.io/apiserver ``endpoints/handlers``, ``server/filters``, ``storage``,
and the admission plugins.  tests/faults compares those that can be provoked with a real server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenantry.model import kinds
from tenantry.testing.wire import Request, Response

_KINDS = {found.plural: found.kind for found in vars(kinds).values() if isinstance(found, kinds.Kind)}
_OTHER_UID = "00000000-0000-4000-8000-000000000000"
_RECREATED = "The object might have been deleted and then recreated"
_MODIFIED = "The object might have been modified"
_RECORDED = "ResourceVersion in record (1)"
_TEXT = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


def status(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A ``metav1.Status`` of a failure."""
    made: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        made["reason"] = reason
    if details:
        made["details"] = dict(details)
    return {**made, "code": code}


def failure(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> Response:
    """An answer with a ``metav1.Status``; ``Retry-After`` goes with a time in the details, as the server does it."""
    wait = (details or {}).get("retryAfterSeconds")
    return Response.json(code, status(code, reason, message, details), {"Retry-After": str(wait)} if wait else None)


def text(code: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in plain text, as the parts in front of the resource handlers give it."""
    return Response(code, f"{message}\n".encode(), {**_TEXT, **(headers or {})})


def details_of(request: Request) -> dict[str, Any]:
    """Name, group and resource of a request, where it has them."""
    found = {"name": request.name, "group": request.group, "kind": request.resource}
    return {field: value for field, value in found.items() if value}


def qualified(request: Request) -> str:
    """The resource with its group, and the object's name in quotes if there is one."""
    resource = f"{request.resource}.{request.group}" if request.group else request.resource
    return f'{resource} "{request.name}"' if request.name else resource


def not_found(request: Request) -> Response:
    """404 for one object."""
    return failure(404, "NotFound", f"{qualified(request)} not found", details_of(request))


def page_not_found() -> Response:
    """404 for a path that is not served: a kind without its CRD."""
    return text(404, "404 page not found")


def conflict(request: Request) -> Response:
    """409: the version or the uid that the request names is not the object's."""
    body = request.body if isinstance(request.body, dict) else {}
    preconditions = body.get("preconditions") or {}
    if preconditions:
        # Here the server names the kind, and reads the record under its lock.
        kind = _KINDS.get(request.resource, request.resource)
        if uid := preconditions.get("uid"):
            why = f"the UID in the precondition ({uid}) does not match the UID in record ({_OTHER_UID}). {_RECREATED}"
        else:
            version = preconditions["resourceVersion"]
            why = f"the ResourceVersion in the precondition ({version}) does not match the {_RECORDED}. {_MODIFIED}"
        message = f'Operation cannot be fulfilled on {kind} "{request.name}": {why}'
        return failure(409, "Conflict", message, {"name": request.name, "kind": kind})
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return failure(409, "Conflict", f"Operation cannot be fulfilled on {qualified(request)}: {why}", details_of(request))


def already_exists(request: Request) -> Response:
    """409: the object to create is there."""
    return failure(409, "AlreadyExists", f"{qualified(request)} already exists", details_of(request))


def forbidden(request: Request) -> Response:
    """403 of RBAC.  A create has no name at this point; a list has the one that its field selector asks for."""
    verb = "patch" if request.verb == "apply" else request.verb
    resource = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    scope = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
    if request.resource == "namespaces" and request.named:
        scope = f'in the namespace "{request.name}"'
    who = f'User "{request.user}" cannot {verb} resource "{resource}" in API group "{request.group}" {scope}'
    named = request.name if request.named else request.query.get("fieldSelector", "").partition("metadata.name=")[2]
    resource = f"{request.resource}.{request.group}" if request.group else request.resource
    subject = f'{resource} "{named}"' if named else resource
    details = {field: value for field, value in {**details_of(request), "name": named}.items() if value}
    return failure(403, "Forbidden", f"{subject} is forbidden: {who}", details)


def quota_exceeded(request: Request) -> Response:
    """403 of a ResourceQuota on the number of objects."""
    counted = f"count/{request.resource}" + (f".{request.group}" if request.group else "")
    numbers = f"requested: {counted}=1, used: {counted}=1, limited: {counted}=1"
    message = f"{qualified(request)} is forbidden: exceeded quota: full, {numbers}"
    return failure(403, "Forbidden", message, details_of(request))


def namespace_terminating(request: Request) -> Response:
    """403 for a new object in a namespace that goes away."""
    namespace = request.namespace
    message = (
        f"{qualified(request)} is forbidden: unable to create new content in namespace {namespace} because it is being terminated"
    )
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    return failure(403, "Forbidden", message, {**details_of(request), "causes": [cause]})


def denied_by_webhook(code: int, why: str) -> Response:
    """The refusal of an admission webhook, with the code that the webhook chose."""
    return failure(code, "", f'admission webhook "rules.tenantry.test" denied the request: {why}')


def denied_by_policy(request: Request, why: str) -> Response:
    """422 of a ValidatingAdmissionPolicy."""
    who = "ValidatingAdmissionPolicy 'rules' with binding 'rules' denied request"
    message = f"{qualified(request)} is forbidden: {who}: {why}"
    details = {**details_of(request), "causes": [{"message": f"{who}: {why}"}]}
    return failure(422, "Invalid", message, details)


def invalid(request: Request, where: str, why: str) -> Response:
    """422 of validation."""
    kind = str((request.body or {}).get("kind", "")) if isinstance(request.body, dict) else ""
    message = f'{kind} "{request.name}" is invalid: {where}: Invalid value: {why}'
    cause = {"reason": "FieldValueInvalid", "message": f"Invalid value: {why}", "field": where}
    return failure(422, "Invalid", message, {**details_of(request), "kind": kind, "causes": [cause]})


def too_many_requests(retry_after: int) -> Response:
    """429 of priority and fairness: text, with the time to wait in a header."""
    return text(429, "Too many requests, please try again later.", {"Retry-After": str(retry_after)})


def internal_error() -> Response:
    """500: here the store behind the server lost its leader."""
    why = "etcdserver: leader changed"
    return failure(500, "", why)


def service_unavailable() -> Response:
    """503."""
    return failure(503, "ServiceUnavailable", "the server is currently unable to handle the request")


def timed_out() -> Response:
    """504: the request may have been carried out."""
    return failure(504, "Timeout", "Timeout: request did not complete within requested timeout - context deadline exceeded")


def expired_continue() -> Response:
    """410 for a continue token."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
        "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
        "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
        "deleted between the time the first chunk was returned and now may show up in the list."
    )
    return failure(410, "Expired", message)
