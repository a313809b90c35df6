"""Spans and instruments, on the OpenTelemetry API alone: free when nobody configured an SDK.

The names are part of the public surface; docs/event-path.md lists them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation

tracer = trace.get_tracer("tenantry")
_meter = metrics.get_meter("tenantry")

events = _meter.create_counter("tenantry.events", unit="{event}", description="Events by function, verdict and type")
reconcile_duration = _meter.create_histogram(
    "tenantry.reconcile.duration", unit="s", description="One run for one owner, by function and unit"
)
writes = _meter.create_counter("tenantry.writes", unit="{write}", description="Writes by function, kind and verb")
refusals = _meter.create_counter(
    "tenantry.refusals", unit="{refusal}", description="Writes that the API server refused, by cause"
)
futile_writes = _meter.create_counter(
    "tenantry.writes.futile", unit="{write}", description="Writes that changed nothing: should stay zero"
)

_last_sweep: dict[str, float] = {}


def sweep_completed(function: str) -> None:
    """Note that a sweep of the function has looked at every owner without a transient failure."""
    _last_sweep[function] = time.time()


def last_sweep(function: str) -> float | None:
    """When the last complete sweep of the function ended in this process, in seconds since the epoch; None before the first."""
    return _last_sweep.get(function)


def _sweep_age(_: CallbackOptions) -> Iterable[Observation]:
    now = time.time()
    return [Observation(now - at, {"function": function}) for function, at in _last_sweep.items()]


_meter.create_observable_gauge(
    "tenantry.sweep.age", [_sweep_age], unit="s", description="Age of the last complete sweep, by function"
)
