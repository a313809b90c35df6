"""What can go wrong at the API server, in one tree.

::

    ApiError
    ├── TransientError          try again: unreachable, timeout, 5xx
    │   └── TooManyRequests     429; carries retry_after
    ├── ConflictError           409: somebody else wrote; look again
    │   └── AlreadyExists       409 on create
    ├── NotFound                404: no such object
    │   ├── KindNotServed       404 for the kind: its CRD is missing
    │   └── NamespaceNotFound   404 for the namespace that the object should live in
    ├── Expired                 410: resource version or continue token too old; list again
    ├── Unauthorized            401: the credentials are not valid
    ├── ConnectError            there is no usable way to a server: kubeconfig, token, certificates
    └── RefusedError            the server understood and will not do it
        ├── Forbidden           403: our identity lacks a right
        ├── QuotaExceeded       403: a ResourceQuota says no
        ├── NamespaceTerminating  403: nothing new in a namespace that goes away
        ├── AdmissionDenied     a policy or webhook says no
        └── Invalid             400, 413, 415, 422: the object itself is wrong

The engine maps the tree to verdicts in one place: transient and conflict are tried again, refusals
are told to the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """A request that did not succeed.

    ``status`` is the HTTP status (0 when there was no answer), ``reason`` the Kubernetes status reason.
    """

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason


class TransientError(ApiError):
    """The server could not be reached or could not answer now."""


class TooManyRequests(TransientError):
    """The server asks for patience; ``retry_after`` is in seconds."""

    def __init__(self, message: str, *, status: int = 429, reason: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class ConflictError(ApiError):
    """Somebody else wrote first, or a precondition on uid or resourceVersion does not hold."""


class AlreadyExists(ConflictError):
    """The object to create is there already."""


class NotFound(ApiError):
    """There is no such object."""


class KindNotServed(NotFound):
    """The API server does not serve this kind."""


class NamespaceNotFound(NotFound):
    """The namespace of the object does not exist."""


class Expired(ApiError):
    """The resource version or the continue token is too old: list again."""


class Unauthorized(ApiError):
    """The credentials are missing, expired or unknown."""


class ConnectError(ApiError):
    """No usable way to an API server; the message says what to set."""


class RefusedError(ApiError):
    """The server understood the request and refuses it."""


class Forbidden(RefusedError):
    """Our identity lacks the right."""


class QuotaExceeded(RefusedError):
    """A ResourceQuota of the namespace refuses the object."""


class NamespaceTerminating(RefusedError):
    """The namespace is going away and takes no new objects."""


class AdmissionDenied(RefusedError):
    """An admission policy or webhook refuses the object."""


class Invalid(RefusedError):
    """The object or the request is not acceptable in itself."""


_DENIED = (" denied the request", " denied request: ")  # webhooks, and ValidatingAdmissionPolicy
_NO_OWNER = ("cannot set blockOwnerDeletion", "cannot set an ownerRef")
"""The admission plugin OwnerReferencesPermissionEnforcement: what it asks for is a right of RBAC."""


def _details(body: Mapping[str, Any]) -> Mapping[str, Any]:
    details = body.get("details")
    return details if isinstance(details, dict) else {}


def _has_cause(body: Mapping[str, Any], reason: str) -> bool:
    causes = _details(body).get("causes")
    return isinstance(causes, list) and any(isinstance(cause, dict) and cause.get("reason") == reason for cause in causes)


def _is_about_uid(body: Mapping[str, Any]) -> bool:
    causes = _details(body).get("causes")
    return isinstance(causes, list) and any(isinstance(cause, dict) and cause.get("field") == "metadata.uid" for cause in causes)


def _forbidden(message: str, body: Mapping[str, Any]) -> type[RefusedError]:
    if _has_cause(body, "NamespaceTerminating"):
        return NamespaceTerminating
    if "exceeded quota" in message or ("must specify" in message and "quota" in message):
        return QuotaExceeded
    if any(words in message for words in _DENIED):
        return AdmissionDenied
    if (" cannot " in message and "User " in message) or "attempting to grant RBAC permissions" in message:
        return Forbidden
    if any(words in message for words in _NO_OWNER):
        return Forbidden
    return AdmissionDenied


_MISFIT = ("typed patch object", "unable to convert unstructured object")
"""An apply of a field that the kind does not have, or of a value that its field cannot have."""


def _failed(message: str) -> type[ApiError]:
    """What an apply cannot make sense of is answered as if the server had failed."""
    return Invalid if any(words in message for words in _MISFIT) else TransientError


def error_from(status: int, body: Mapping[str, Any], *, retry_after: float | None = None, method: str = "GET") -> ApiError:
    """The error for an answer of 400 and above; ``body`` is the decoded ``metav1.Status``, or empty."""
    message = str(body.get("message") or f"HTTP {status}")
    reason = str(body.get("reason") or "")
    kind: type[ApiError]
    match status:
        case 401:
            kind = Unauthorized
        case 403:
            kind = _forbidden(message, body)
        case 404:
            details = _details(body)
            if details.get("kind") == "namespaces" and method in ("POST", "PATCH"):
                kind = NamespaceNotFound
            elif not details.get("name"):
                kind = KindNotServed
            else:
                kind = NotFound
        case 409:
            kind = AlreadyExists if reason == "AlreadyExists" else ConflictError
        case 410:
            kind = Expired
        case 429:
            return TooManyRequests(message, status=status, reason=reason, retry_after=retry_after or 1.0)
        case 422 if _is_about_uid(body):
            kind = ConflictError  # an apply with the uid of an object that was deleted and made anew
        case 400 | 405 | 406 | 413 | 415 | 422:
            kind = AdmissionDenied if any(words in message for words in _DENIED) else Invalid
        case _:
            kind = _failed(message) if status >= 500 else RefusedError
    return kind(message, status=status, reason=reason)
