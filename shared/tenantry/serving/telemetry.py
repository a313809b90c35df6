"""OpenTelemetry for one function: an SDK only when an OTLP endpoint is configured, else nothing at all.

Set ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or the one for traces or metrics); the other standard variables
(``OTEL_TRACES_SAMPLER``, ``OTEL_METRIC_EXPORT_INTERVAL``, ``OTEL_RESOURCE_ATTRIBUTES``, ...) hold as the
SDK documents them.  The exporters are imported when there is something to export, off the way of the
first event.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.trace import Link, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.trace import Span

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
QUEUE_SPANS = 512
BATCH_SPANS = 128

_propagator = TraceContextTextMapPropagator()
_tracer = trace.get_tracer("tenantry")


def _configured(signal: str) -> bool:
    return bool(os.environ.get(ENDPOINT) or os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))


def set_up_telemetry(function: str) -> Callable[[], None]:
    """Configure export for this process; returns what flushes and ends it."""
    endings = [set_up(function) for signal, set_up in (("TRACES", _traces), ("METRICS", _metrics)) if _configured(signal)]

    def end() -> None:
        for ending in endings:
            ending()

    return end


def _traces(function: str) -> Callable[[], object]:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

    class LateExporter(SpanExporter):
        """Imports the OTLP exporter at the first export."""

        def __init__(self) -> None:
            self._exporter: SpanExporter | None = None

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            if self._exporter is None:
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

                self._exporter = OTLPSpanExporter()
            return self._exporter.export(spans)

        def shutdown(self) -> None:
            if self._exporter is not None:
                self._exporter.shutdown()

    provider = TracerProvider(resource=Resource.create({"service.name": function}))
    provider.add_span_processor(BatchSpanProcessor(LateExporter(), max_queue_size=QUEUE_SPANS, max_export_batch_size=BATCH_SPANS))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _metrics(function: str) -> Callable[[], object]:
    from opentelemetry import metrics
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource

    provider = MeterProvider(
        resource=Resource.create({"service.name": function}),
        metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())],
    )
    metrics.set_meter_provider(provider)
    return provider.shutdown


def start_event_span(function: str, headers: Mapping[str, str], extensions: Mapping[str, str]) -> Span:
    """The CONSUMER span of one event.

    Its parent is the HTTP hop's ``traceparent``; the trace that the event itself carries (the CloudEvents
    distributed tracing extension) is the parent when there is no hop, and else a link.
    """
    hop, origin = _context(headers), _context(extensions)
    links = [Link(trace.get_current_span(origin).get_span_context())] if hop is not None and origin is not None else []
    return _tracer.start_span(f"{function} process", context=hop or origin, kind=SpanKind.CONSUMER, links=links)


def _context(carrier: Mapping[str, str]) -> Context | None:
    return _propagator.extract(carrier) if carrier.get("traceparent") else None
