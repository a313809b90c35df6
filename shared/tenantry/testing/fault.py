"""What all faults share: which requests concern them, and which of those they act on.

A fault acts on the requests that it concerns: those of its kind (a conflict concerns writes, an expired token lists), of one
``function`` if one is named, for which ``where`` holds.  Of these it takes the k-th since it was armed and the following ones
up to ``times`` in all (0: all).  So it is deterministic, given the order of requests.  ``acted`` counts; the exchange of a
request that it acted on has the fault's name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Protocol

from tenantry.testing.wire import Request, Response

Forward = Callable[[], Awaitable[Response]]
Predicate = Callable[[Request], bool]


class Meets(Protocol):
    """Whatever stands in `FaultProxy.faults`."""

    async def meet(self, request: Request, forward: Forward) -> Response | None:
        """The answer to a request, or None when it is not concerned.  ``forward`` asks the server, once at most."""


def every(request: Request) -> bool:
    """All requests."""
    del request
    return True


def writes(request: Request) -> bool:
    """Requests that ask for a change."""
    return request.is_write


def creations(request: Request) -> bool:
    """Requests that can bring an object into being."""
    return request.verb in ("create", "apply") and not request.subresource and request.is_write


def gets(request: Request) -> bool:
    """Reads of one whole object."""
    return request.verb == "get" and bool(request.resource) and not request.subresource


def lists(request: Request) -> bool:
    """Lists, each page for itself."""
    return request.verb == "list"


def on(resource: str, name: str = "", *, namespace: str = "", verb: str = "") -> Predicate:
    """A predicate: requests for a plural, an object, a verb; what is left out is not looked at."""

    def concerned(request: Request) -> bool:
        found = ((resource, request.resource), (name, request.name), (namespace, request.namespace), (verb, request.verb))
        return all(not wanted or wanted == is_ for wanted, is_ in found)

    return concerned


@dataclass(eq=False)
class Fault:
    """The counting that all share.  ``k`` begins at one; ``function`` is a function's name or field manager."""

    name: ClassVar[str] = "nothing"
    _concerned: ClassVar[Any] = staticmethod(every)

    _: KW_ONLY
    k: int = 1
    times: int = 1
    function: str = ""
    where: Predicate | None = None
    armed: bool = True
    met: int = field(default=0, init=False)
    acted: int = field(default=0, init=False)

    def __init_subclass__(cls, *, name: str = "", concerns: Predicate | None = None) -> None:
        super().__init_subclass__()
        cls.name = name or cls.name
        if concerns is not None:
            cls._concerned = staticmethod(concerns)

    def arm(self) -> None:
        """Begin to count anew."""
        self.armed, self.met, self.acted = True, 0, 0

    def disarm(self) -> None:
        """Concern nothing any more."""
        self.armed = False

    async def meet(self, request: Request, forward: Forward) -> Response | None:
        """Count the request and act on it if it is its turn."""
        if not self.armed or not self._concerned(request):
            return None
        if self.function and self.function != request.function.removeprefix("tenantry-") and self.function != request.function:
            return None
        if self.where is not None and not self.where(request):
            return None
        self.met += 1
        if self.met < self.k or (self.times and self.met >= self.k + self.times):
            return None
        self.acted += 1
        answer = await self.act(request, forward)
        if answer is None:
            self.acted -= 1
            return None
        return answer.by(self.name)

    async def act(self, request: Request, forward: Forward) -> Response | None:
        """Do what the fault does; None when there turned out to be nothing to do."""
        del request
        return await forward()
