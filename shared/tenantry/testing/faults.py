"""The ready-made faults: crashes, lost answers, and what a server in trouble says.

Those of time (stale reads, a gate) are in `tenantry.testing.past`, and are found here as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass

from tenantry.testing import answers
from tenantry.testing.fault import Fault, Forward, Meets, Predicate, creations, every, gets, lists, on, writes
from tenantry.testing.past import Gate, Held, StaleGet, StaleList
from tenantry.testing.wire import Request, Response

__all__ = [
    "Ambiguous", "Conflict409", "CrashAfter", "CrashBefore", "Error500", "Exists409", "Expired410", "Fault", "Forbidden403",
    "Forward", "Gate", "Held", "Invalid422", "KindMissing404", "Meets", "NamespaceTerminating403", "Predicate",
    "QuotaExceeded403", "Request", "Reset", "Response", "Slow", "StaleGet", "StaleList", "TooMany429", "Unavailable503",
    "creations", "every", "gets", "lists", "on", "writes",
]  # fmt: skip

Kill = Callable[[], Awaitable[None]]
_WHY = "a test says no"


# -- processes and connections -------------------------------------------------------------------------------


@dataclass(eq=False)
class CrashBefore(Fault, name="crash before write", concerns=writes):
    """``kill`` ends the function before its k-th write reaches the server."""

    k: int = 1
    _: KW_ONLY
    kill: Kill

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Kill, and reset the connection."""
        del request, forward
        await self.kill()
        return Response(0)


@dataclass(eq=False)
class CrashAfter(Fault, name="crash after write", concerns=writes):
    """``kill`` ends the function when its k-th write is carried out and before it hears of it."""

    k: int = 1
    _: KW_ONLY
    kill: Kill

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Forward, kill, and reset the connection."""
        del request
        await forward()
        await self.kill()
        return Response(0)


@dataclass(eq=False)
class Ambiguous(Fault, name="ambiguous write", concerns=writes):
    """The k-th write is carried out and its answer lost: by a reset, or, with ``timeout``, behind a 504."""

    k: int = 1
    _: KW_ONLY
    timeout: bool = False

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Forward, then say nothing of it."""
        del request
        await forward()
        return answers.timed_out() if self.timeout else Response(0)


class Reset(Fault, name="reset"):
    """The connection is reset before the request reaches the server.

    aiohttp sends a GET or DELETE once more by itself when the connection was an old one (RFC 9110, section 9.2.2 allows it),
    so that only ``times=2`` surely reaches the function.
    """

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Reset."""
        del request, forward
        return Response(0)


@dataclass(eq=False)
class Slow(Fault, name="slow"):
    """The answer takes ``seconds`` longer; the request is carried out at once."""

    seconds: float = 30.0

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Forward, wait, answer."""
        del request
        answer = await forward()
        await asyncio.sleep(self.seconds)
        return answer


# -- answers -------------------------------------------------------------------------------------------------


class Conflict409(Fault, name="409 conflict", concerns=writes):
    """Somebody else wrote first."""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer; nothing is written."""
        del forward
        return answers.conflict(request)


class Exists409(Fault, name="409 exists", concerns=creations):
    """The object to create is there already, says the server."""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer; nothing is written."""
        del forward
        return answers.already_exists(request)


@dataclass(eq=False)
class TooMany429(Fault, name="429 too many requests"):
    """The server asks for patience; ``retry_after`` is in seconds."""

    retry_after: int = 1

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer with Retry-After."""
        del request, forward
        return answers.too_many_requests(self.retry_after)


class Error500(Fault, name="500 internal error"):
    """The server fails."""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer; nothing is done."""
        del request, forward
        return answers.internal_error()


class Unavailable503(Fault, name="503 unavailable"):
    """The server cannot answer now."""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer; nothing is done."""
        del request, forward
        return answers.service_unavailable()


class Forbidden403(Fault, name="403 forbidden"):
    """The identity lacks the right."""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer as RBAC does."""
        del forward
        return answers.forbidden(request)


class KindMissing404(Fault, name="404 kind missing"):
    """The kind is not served: its CRD is not there."""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer as for an unknown path."""
        del request, forward
        return answers.page_not_found()


@dataclass(eq=False)
class Invalid422(Fault, name="422 invalid", concerns=writes):
    """Admission refuses: a webhook (``by="webhook"``), a ValidatingAdmissionPolicy ("policy"), or validation ("schema")."""

    _: KW_ONLY
    by: str = "webhook"

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer; nothing is written."""
        del forward
        match self.by:
            case "webhook":
                return answers.denied_by_webhook(422, _WHY)
            case "policy":
                return answers.denied_by_policy(request, _WHY)
            case _:
                return answers.invalid(request, "metadata.labels", _WHY)


class QuotaExceeded403(Fault, name="403 quota exceeded", concerns=creations):
    """A ResourceQuota is used up."""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer; nothing is written."""
        del forward
        return answers.quota_exceeded(request)


class NamespaceTerminating403(
    Fault, name="403 namespace terminating", concerns=lambda request: creations(request) and bool(request.namespace)
):
    """The namespace goes away and takes nothing new."""

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Answer; nothing is written."""
        del forward
        return answers.namespace_terminating(request)


# -- pages ---------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Expired410(Fault, name="410 expired", concerns=lists):
    """The continue token of a list has expired when the second page is asked for.

    The first page is made small (``page``) so that there is a second one; a list that fits into it is left alone.
    """

    page: int = 1

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Shorten the page, and wait for its token."""
        request.query["limit"] = str(self.page)
        answer = await forward()
        token = ((answer.body or {}).get("metadata") or {}).get("continue") if answer.status == 200 else ""
        if not token:
            return None
        request.faults.insert(0, _ExpiredToken(token, self.name))
        return answer


@dataclass(eq=False)
class _ExpiredToken:
    """Waits in the proxy for one token, and refuses it once."""

    token: str
    name: str

    async def meet(self, request: Request, forward: Forward) -> Response | None:
        del forward
        if request.query.get("continue") != self.token:
            return None
        request.faults.remove(self)
        return answers.expired_continue().by(self.name)
