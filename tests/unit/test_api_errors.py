"""From an answer of the API server to a typed error: every status, and the texts that tell refusals apart."""

from __future__ import annotations

from typing import Any

import pytest

from tenantry.api.errors import (
    AdmissionDenied,
    AlreadyExists,
    ApiError,
    ConflictError,
    Expired,
    Forbidden,
    Invalid,
    KindNotServed,
    NamespaceNotFound,
    NamespaceTerminating,
    NotConverted,
    NotFound,
    QuotaExceeded,
    RefusedError,
    TooManyRequests,
    TransientError,
    Unauthorized,
    error_from,
)


def status(message: str = "", reason: str = "", **details: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
    return {**made, "details": details} if details else made


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        (401, status("Unauthorized", "Unauthorized"), Unauthorized),
        (404, status('configmaps "c" not found', "NotFound", name="c", kind="configmaps"), NotFound),
        (404, status("the server could not find the requested resource", "NotFound"), KindNotServed),
        (404, {"message": "404 page not found"}, KindNotServed),
        (404, {}, KindNotServed),
        (404, {**status("x", "NotFound"), "details": None}, KindNotServed),
        (409, status("", "Conflict"), ConflictError),
        (409, status("", "AlreadyExists"), AlreadyExists),
        (409, status("Precondition failed: UID in precondition: a, UID in object meta: b", "Conflict"), ConflictError),
        (410, status("The provided continue parameter is too old", "Expired"), Expired),
        (429, status("", "TooManyRequests"), TooManyRequests),
        (400, status("bad", "BadRequest"), Invalid),
        (405, status(), Invalid),
        (406, status(), Invalid),
        (413, status("", "RequestEntityTooLarge"), Invalid),
        (415, status(), Invalid),
        (422, status('ConfigMap "c" is invalid: data: Forbidden: field is immutable', "Invalid"), Invalid),
        (422, status('admission webhook "v.example.com" denied the request: no owner', "Invalid"), AdmissionDenied),
        (400, status('admission webhook "v.example.com" denied the request: no', ""), AdmissionDenied),
        (418, {}, RefusedError),
        (500, status("", "InternalError"), TransientError),
        (
            500,
            status(
                "failed to convert new object (n/q; /v1, Kind=ResourceQuota) to proper version: "
                "unable to convert unstructured object"
            ),
            Invalid,
        ),
        (500, status("conversion webhook for example.com/v1, Kind=Paas failed: no endpoints available"), NotConverted),
        (502, {"message": "bad gateway"}, TransientError),
        (503, status("", "ServiceUnavailable"), TransientError),
        (504, status("", "Timeout"), TransientError),
        (
            403,
            status(
                'configmaps is forbidden: User "system:serviceaccount:n:s" cannot create resource "configmaps" in API group ""'
            ),
            Forbidden,
        ),
        (
            403,
            status('configmaps "c" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=0'),
            QuotaExceeded,
        ),
        (403, status('pods "p" is forbidden: failed quota: q: must specify limits.cpu for: c'), QuotaExceeded),
        (403, status('secrets "s" is forbidden: must specify an owner'), AdmissionDenied),
        (403, status('admission webhook "v.example.com" denied the request: no'), AdmissionDenied),
        (403, status('pods "p" is forbidden: violates PodSecurity "restricted:latest"'), AdmissionDenied),
        (
            403,
            status(
                'configmaps "c" is forbidden: unable to create new content in namespace x because it is being terminated',
                "Forbidden",
                causes=[{"reason": "Other"}, {"reason": "NamespaceTerminating", "field": "metadata.namespace"}],
            ),
            NamespaceTerminating,
        ),
        (403, {**status("no causes"), "details": {"causes": None}}, AdmissionDenied),
        # a ValidatingAdmissionPolicy, as Kubernetes 1.36 answers
        (
            422,
            status(
                "configmaps \"forbid\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: "
                "failed expression: object.metadata.name != 'forbid'",
                "Invalid",
            ),
            AdmissionDenied,
        ),
        # words of a webhook do not make its refusal a missing right of ours
        (
            403,
            status('admission webhook "v.example.com" denied the request: User may do that, robots cannot do it'),
            AdmissionDenied,
        ),
        # an owner reference that is refused for want of a right on the owner's finalizers: no policy needs to change
        (
            403,
            status(
                'rolebindings.rbac.authorization.k8s.io "b" is forbidden: cannot set blockOwnerDeletion if an ownerReference '
                "refers to a resource you can't set finalizers on: , <nil>",
                "Forbidden",
            ),
            Forbidden,
        ),
        # RBAC refuses to grant rights that we do not hold: one of ours is missing
        (
            403,
            status(
                'roles.rbac.authorization.k8s.io "r" is forbidden: user "system:serviceaccount:n:s" (groups=["x"]) is attempting '
                'to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
                "Forbidden",
            ),
            Forbidden,
        ),
    ],
)
def test_the_error_of_an_answer(code: int, body: dict[str, Any], kind: type[ApiError]) -> None:
    """Status, reason and text decide the type; the error carries the server's words."""
    error = error_from(code, body)
    assert type(error) is kind
    assert (error.status, error.reason) == (code, body.get("reason", ""))
    assert error.message == str(error) == (body.get("message") or f"HTTP {code}")


@pytest.mark.parametrize(
    ("method", "kind"), [("POST", NamespaceNotFound), ("PATCH", NamespaceNotFound), ("GET", NotFound), ("DELETE", NotFound)]
)
def test_a_missing_namespace(method: str, kind: type[ApiError]) -> None:
    """A write into a namespace that is gone is told from a read of a namespace that is not there."""
    body = status('namespaces "x" not found', "NotFound", name="x", kind="namespaces")
    assert type(error_from(404, body, method=method)) is kind


@pytest.mark.parametrize(("given", "seconds"), [(None, 1.0), (7.0, 7.0), (0.0, 1.0)])
def test_how_long_to_wait(given: float | None, seconds: float) -> None:
    """429 carries the seconds that the server asks for, and never none at all."""
    error = error_from(429, {}, retry_after=given)
    assert isinstance(error, TooManyRequests)
    assert error.retry_after == seconds


def test_the_tree() -> None:
    """The engine relies on these kinships."""
    assert issubclass(TooManyRequests, TransientError)
    assert issubclass(AlreadyExists, ConflictError)
    assert issubclass(KindNotServed, NotFound)
    assert issubclass(NamespaceNotFound, NotFound)
    assert all(
        issubclass(kind, RefusedError) for kind in (Forbidden, QuotaExceeded, NamespaceTerminating, AdmissionDenied, Invalid)
    )
    assert not issubclass(Unauthorized, RefusedError)


@pytest.mark.parametrize("code", [403, 404])
def test_answers_of_proxies(code: int) -> None:
    """JSON of another make is an error of the API too, and no bug of ours."""
    assert isinstance(error_from(code, {"message": "no", "details": "text"}), ApiError)
