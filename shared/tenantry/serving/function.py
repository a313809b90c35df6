"""One function behind HTTP: what every ``main.py`` gives functions-framework to serve.

The answer is the verdict's status with an empty body on success and a few words on failure, never a
``ce-*`` header, never anything of the payload: a broker takes a non-empty answer for a reply event, and an
error text of more than 768 bytes can bring the in-memory dispatcher down.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from opentelemetry import trace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tenantry.api import Api, Keep
from tenantry.api.errors import ApiError
from tenantry.engine import Engine, Units, Verdict, telemetry
from tenantry.engine.context import event_id, event_time
from tenantry.engine.request import MalformedRequest, request_of
from tenantry.engine.request import Request as Asked
from tenantry.engine.verdict import verdict_for
from tenantry.engine.write import OnWrite
from tenantry.model.config import Config
from tenantry.model.descriptor import DUTY_VARIABLE, Descriptor, Route, Service
from tenantry.model.event import APISERVER_TYPE_PREFIX, PING_TYPE, RECONCILE_REQUESTED_TYPE, SWEPT, Event
from tenantry.model.kinds import Kind
from tenantry.model.names import field_manager
from tenantry.serving.cloudevents import BadEvent, parse_event, read_body
from tenantry.serving.config import ConfigError, load_config
from tenantry.serving.intake import Gate
from tenantry.serving.methods import respond
from tenantry.serving.routes import ROOT, answer_question
from tenantry.serving.telemetry import start_event_span

log = logging.getLogger("tenantry")
T = TypeVar("T")

SINK_VARIABLE = "K_SINK"
CONCURRENCY_VARIABLE = "TENANTRY_API_CONCURRENCY"
_APISERVER_TYPES = frozenset(
    f"{APISERVER_TYPE_PREFIX}{mode}.{verb}" for mode in ("resource", "ref") for verb in ("add", "update", "delete")
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What a function's units are made from."""

    config: Config
    duty: str = ""
    """The one duty of this process; empty: all."""
    _common: dict[Any, Any] = field(default_factory=dict, compare=False)

    def common(self, make: Callable[[Config], T]) -> T:
        """What units of a function have in common: made for the first of them that asks."""
        if make not in self._common:
            self._common[make] = make(self.config)
        made: T = self._common[make]
        return made

    def has(self, service: Service) -> bool:
        """Whether the units of a Service belong to this process."""
        return self.duty in ("", service.duty)


class Function:
    """A function by its descriptor.  Configuration and client are made at the first use, in its loop.

    Each unit is what ``made(settings)`` in the ``unit.py`` of its folder returns.  That reads what only this function needs, such
    as charts, and raises ConfigError where it cannot be used: then this function does not start, and the others do.

    ``concurrency`` is how many requests to the API server may be under way at once: many where runs wait for lists of
    kinds at rest, which the API server holds back for up to 0.1 s while anything else is written.

    ``keeps`` reduces, by kind, objects that tenants can make large (`tenantry.api.Api`).
    """

    def __init__(
        self,
        descriptor: Descriptor,
        *,
        concurrency: int = 16,
        keeps: Mapping[Kind, Keep] | None = None,
    ) -> None:
        self.name = descriptor.name
        self._descriptor = descriptor
        self._modules = [(import_module(f"{unit}.unit"), service) for unit, service in descriptor.units]
        self.keeps = keeps
        self._concurrency = concurrency
        self.on_write: OnWrite | None = None
        self._made: Units | None = None
        self._settings: Settings | None = None
        self._api: Api | None = None
        self._engine: Engine | None = None
        self._starting = asyncio.Lock()
        self._gate = Gate()
        self._emitter: Any = None
        self._outbox: Any = None

    def configure(self, config: Config | None = None) -> Settings:
        """Read the configuration now, and what this function needs of what it names.

        Raises:
            ConfigError: it cannot be used; the process must not start.
        """
        if self._settings is None:
            settings = Settings(config or load_config(), duty_of_process(self._descriptor))
            self._made = self.units(settings)
            self._settings = settings
        return self._settings

    def units(self, settings: Settings) -> Units:
        """New units, as these settings make them."""
        settings = replace(settings, _common={})  # each time new ones, with nothing in common with those before
        return [module.made(settings) for module, service in self._modules if settings.has(service)]

    async def start(self, kubeconfig: Path | None = None) -> Engine:
        """Connect and make the engine; a second call returns the same."""
        async with self._starting:
            if self._engine is None:
                settings = self.configure()
                units, self._made = self._made or self.units(settings), None  # an engine has units of its own
                self._api = await Api.connect(
                    field_manager=field_manager(self.name),
                    kubeconfig=kubeconfig,
                    concurrency=int(os.environ.get(CONCURRENCY_VARIABLE, self._concurrency)),
                    keeps=self.keeps,
                )
                if sink := os.environ.get(SINK_VARIABLE):
                    from tenantry.serving.emit import Emitter

                    self._emitter = Emitter(sink)
                service = self._descriptor.service_of(settings.duty)
                if settings.config.decisions.enabled:
                    from tenantry.serving.decisions import Outbox

                    self._outbox = Outbox(self._emitter and self._emitter.emit, self.name, service.name)
                    self._outbox.open()
                self._engine = Engine(
                    self.name,
                    self._api,
                    units,
                    emit=self._emitter and self._emitter.emit,
                    on_write=self.on_write,
                    service=service,
                    on_decision=self._outbox and self._outbox.take,
                    project_label=settings.config.project_label,
                )
        return self._engine

    async def stop(self) -> None:
        """Finish what runs, then close the connections."""
        if self._engine is not None:
            await self._engine.drain()
        if self._outbox is not None:
            await self._outbox.close()
        if self._emitter is not None:
            await self._emitter.close()
        if self._api is not None:
            await self._api.close()
        self._engine = self._api = self._emitter = self._outbox = None

    async def handle(self, request: Request) -> Response:
        """Answer one HTTP request."""
        if request.scope["path"].startswith(ROOT) and (routes := self._routes()):
            return await answer_question(request, routes, self._connected)
        if request.method == "GET" and request.scope["path"] == SWEPT:
            return self._swept()
        return await respond(request, self._event, self.start)

    def _swept(self) -> Response:
        """When the last complete sweep of this process ended, for `tenantry status`: nothing else of the process."""
        at = telemetry.last_sweep(self.name)
        swept = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at is not None else None
        return JSONResponse({"function": self.name, "duty": self.configure().duty, "swept": swept})

    def _routes(self) -> list[Route]:
        """What this process answers besides events."""
        settings = self.configure()
        return [route for service in self._descriptor.services if settings.has(service) for route in service.routes]

    async def _connected(self) -> Api:
        await self.start()
        assert self._api is not None
        return self._api

    async def _event(self, request: Request) -> Response:
        kind = ""
        try:
            event = parse_event(request.headers.raw, await read_body(request, gate=self._gate))
            kind = event.type
            event_id.set(event.id)
            event_time.set(event.time or "")
            asked = request_of(event, self.name, self._engine.states if self._engine is not None else {})
            event = replace(event, data=None)  # the object may be megabytes: it is not kept while the event is handled
            verdict = await self._process(asked, event, request)
        except BadEvent as error:
            verdict = Verdict(error.status, error.reason)
        except MalformedRequest as error:
            verdict = Verdict(400, str(error))
        except ApiError as error:
            log.error("%s", error.message)
            verdict = verdict_for(error)  # no engine yet: there is no API server to talk to
        except ClientDisconnect:
            verdict = Verdict(400, "the sender went away")
        except Exception:
            log.exception("a bug: the event could not be handled")
            verdict = Verdict(500, "internal error")
        telemetry.events.add(1, {"function": self.name, "status": verdict.status, "type": _known(kind)})
        if verdict.status >= 400:
            log.warning("%d %s", verdict.status, verdict.reason)
        return answer(verdict)

    async def _process(self, asked: Asked, event: Event, request: Request) -> Verdict:
        engine = self._engine or await self.start()
        span = start_event_span(self.name, request.headers, event.extensions)
        with trace.use_span(span, end_on_exit=True):
            verdict = await engine.answer(asked)
            if span.is_recording():
                span.set_attribute("cloudevents.event_id", event.id)
                span.set_attribute("cloudevents.event_type", event.type)
                span.set_attribute("cloudevents.event_source", event.source)
                span.set_attribute("http.response.status_code", verdict.status)
        log.debug("%d %s, %d writes", verdict.status, verdict.reason, verdict.writes)
        return verdict


def duty_of_process(function: Descriptor) -> str:
    """The duty that the environment gives this process of a function; empty: all.

    Raises:
        ConfigError: the function has no such duty.
    """
    duty = os.environ.get(DUTY_VARIABLE, "")
    known = function.duties
    if duty and duty not in known:
        there_are = f"there are: {', '.join(known)}" if known else "it has only one; leave the variable out"
        raise ConfigError(f"{DUTY_VARIABLE}: {function.name} has no duty {duty!r}; {there_are}")
    return duty


def _known(event_type: str) -> str:
    """The event type for a metric: senders must not be able to make series without end."""
    known = event_type in (PING_TYPE, RECONCILE_REQUESTED_TYPE) or event_type in _APISERVER_TYPES
    return event_type if known else "other"


def answer(verdict: Verdict) -> Response:
    """The HTTP response for a verdict: empty on success, a few words otherwise."""
    headers = {} if verdict.retry_after is None else {"Retry-After": str(max(1, round(verdict.retry_after)))}
    if verdict.status < 300:
        return Response(status_code=verdict.status)
    return PlainTextResponse(verdict.reason[:150], verdict.status, headers)
