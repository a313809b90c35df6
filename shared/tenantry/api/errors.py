"""What can go wrong at the API server, in one tree.

The engine maps it to verdicts in one place: transient errors and conflicts are tried again, refusals become status conditions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tenantry.model.plan import Cause


class ApiError(Exception):
    """A request that did not succeed.

    ``status`` is the HTTP status (0 when there was no answer), ``reason`` the Kubernetes status reason.
    """

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason

    @property
    def line(self) -> str:
        """The message in one line."""
        return " ".join(self.message.split())


class TransientError(ApiError):
    """Try again: unreachable, timeout, 5xx."""


class NotConverted(TransientError):
    """500: an object is stored in another version, and the conversion webhook of its CRD does not answer."""


class TooManyRequests(TransientError):
    """429: the server asks to wait ``retry_after`` seconds."""

    def __init__(self, message: str, *, status: int = 429, reason: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class ConflictError(ApiError):
    """409: somebody else wrote first, or a precondition on uid or resourceVersion does not hold; read again."""


class AlreadyExists(ConflictError):
    """409 on create: the object exists."""


class NotFound(ApiError):
    """404: there is no such object."""


class KindNotServed(NotFound):
    """404 for the kind: its CRD is missing."""


class NamespaceNotFound(NotFound):
    """404 for the namespace of the object to write."""


class Expired(ApiError):
    """410: the resource version or the continue token is too old; list again."""


class Unauthorized(ApiError):
    """401: the credentials are missing, expired or unknown."""


class ConnectError(ApiError):
    """No usable kubeconfig, token or certificates; the message says what to set."""


class RefusedError(ApiError):
    """The server understood the request and refuses it; ``cause`` says in one word why."""

    cause: Cause = "invalid"


class Forbidden(RefusedError):
    """403: our identity lacks the right."""

    cause = "rights"


class QuotaExceeded(RefusedError):
    """403: a ResourceQuota of the namespace refuses the object."""

    cause = "quota"


class NamespaceTerminating(RefusedError):
    """403: the namespace is being deleted and takes no new objects."""


class AdmissionDenied(RefusedError):
    """An admission policy or webhook refuses the object."""

    cause = "admission"


class Invalid(RefusedError):
    """400, 413, 415, 422: the object or the request is not acceptable in itself."""


_DENIED = (" denied the request", " denied request: ")  # webhooks, and ValidatingAdmissionPolicy
_NO_OWNER = ("cannot set blockOwnerDeletion", "cannot set an ownerRef")
"""The admission plugin OwnerReferencesPermissionEnforcement: what it asks for is a right of RBAC."""
_NOT_CONVERTED = "conversion webhook for "
_MISFIT = ("typed patch object", "unable to convert unstructured object")
"""An apply of a field that the kind does not have, or of a value that its field cannot have: answered with 500."""


def _details(body: Mapping[str, Any]) -> Mapping[str, Any]:
    details = body.get("details")
    return details if isinstance(details, dict) else {}


def _has_cause(body: Mapping[str, Any], key: str, value: str) -> bool:
    causes = _details(body).get("causes")
    return isinstance(causes, list) and any(isinstance(cause, dict) and cause.get(key) == value for cause in causes)


def _has_any(message: str, words: Sequence[str]) -> bool:
    return any(each in message for each in words)


def _forbidden(message: str, body: Mapping[str, Any]) -> type[RefusedError]:
    if _has_cause(body, "reason", "NamespaceTerminating"):
        return NamespaceTerminating
    if "exceeded quota" in message or ("must specify" in message and "quota" in message):
        return QuotaExceeded
    if _has_any(message, _DENIED):
        return AdmissionDenied
    by_rbac = (" cannot " in message and "User " in message) or "attempting to grant RBAC permissions" in message
    return Forbidden if by_rbac or _has_any(message, _NO_OWNER) else AdmissionDenied


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
            else:
                kind = NotFound if details.get("name") else KindNotServed
        case 409:
            kind = AlreadyExists if reason == "AlreadyExists" else ConflictError
        case 410:
            kind = Expired
        case 429:
            return TooManyRequests(message, status=status, reason=reason, retry_after=retry_after or 1.0)
        case 422 if _has_cause(body, "field", "metadata.uid"):
            kind = ConflictError  # an apply with the uid of an object that was deleted and made anew
        case 400 | 405 | 406 | 413 | 415 | 422:
            kind = AdmissionDenied if _has_any(message, _DENIED) else Invalid
        case _ if status < 500:
            kind = RefusedError
        case _:
            kind = Invalid if _has_any(message, _MISFIT) else NotConverted if _NOT_CONVERTED in message else TransientError
    return kind(message, status=status, reason=reason)
