"""Traces, metrics and logs of one function, received by a real OTLP endpoint on loopback."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest_asyncio
from aiohttp import web
from one_function import ready, serving
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from people import C1, FUNCTION, People, look, post, token

from tenantry.model.config import Config
from tenantry.model.kinds import NAMESPACE

TRACE = {"event": "11" * 16, "hop": "22" * 16, "both": "33" * 16}
PARENT = {"event": "aa" * 8, "hop": "bb" * 8, "both": "cc" * 8}


@dataclass
class Receiver:
    """What came to ``/v1/traces`` and ``/v1/metrics``."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)
    metrics: dict[str, Any] = field(default_factory=dict)

    async def handle(self, request: web.BaseRequest) -> web.Response:
        body = await request.read()
        if request.path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.services |= {each.value.string_value for each in resource.resource.attributes if each.key == "service.name"}
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        elif request.path == "/v1/metrics":
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics |= {metric.name: metric for scope in measured.scope_metrics for metric in scope.metrics}
        return web.Response(content_type="application/x-protobuf")


@asynccontextmanager
async def _receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    runner = web.ServerRunner(web.Server(receiver.handle, access_log=None), shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()


@dataclass
class Told:
    """Everything that one process told: what it exported, its log lines, and the id of each event."""

    receiver: Receiver
    logs: list[dict[str, str]]
    ids: dict[str, str]
    project: str


def _traceparent(which: str) -> str:
    return f"00-{TRACE[which]}-{PARENT[which]}-01"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def told(identity: Callable[..., Awaitable[Path]], people: People, tmp_path_factory: Any) -> AsyncIterator[Told]:
    """A function that exports handles three events and a sweep, and ends on SIGTERM."""
    project = f"p-{token()}"
    await people.namespace(f"a1-{project}", project)
    kubeconfig = await identity(FUNCTION, Config.model_validate(C1))
    carried = {
        "event": {"ce-traceparent": _traceparent("event")},
        "hop": {"traceparent": _traceparent("hop")},
        "both": {"ce-traceparent": _traceparent("event"), "traceparent": _traceparent("both")},
    }
    ids = {}
    async with _receiver() as receiver:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "TENANTRY_LOG_LEVEL": "debug"}
        folder = tmp_path_factory.mktemp("telemetry")
        async with serving(kubeconfig, C1, folder, environment=environment) as (process, url):
            await ready(process, url)
            for which, trace in carried.items():
                headers, body = look(NAMESPACE, f"a1-{project}")
                ids[which] = headers["ce-id"]
                assert await post(url, {**headers, **trace}, body) == (204, "")
            ping = {"type": "dev.knative.sources.ping", "source": "/tests", "id": token(), "specversion": "1.0"}
            headers = {f"ce-{name}": value for name, value in ping.items()} | {"ce-resync": FUNCTION}
            assert await post(url, headers, b"") == (204, "")
            process.send_signal(signal.SIGTERM)
            _, errors = await asyncio.wait_for(process.communicate(), 20)
            assert process.returncode == 0
        lines = [json.loads(line) for line in errors.decode().splitlines()]
        yield Told(receiver, lines, ids, project)


def _attributes(of: Any) -> dict[str, Any]:
    """The attributes of a span or of a point, by key."""
    return {each.key: each.value for each in of.attributes}


def _consumer(told: Told, which: str) -> Span:
    spans = [span for span in told.receiver.spans if span.trace_id.hex() == TRACE[which] and span.kind == Span.SPAN_KIND_CONSUMER]
    assert len(spans) == 1
    return spans[0]


def test_span_continues_the_trace_of_the_event(told: Told) -> None:
    """An event that carries a trace of its own is a consumer span in that trace, with the run for its owner below it."""
    span = _consumer(told, "event")

    assert PARENT["event"] == span.parent_span_id.hex()
    attributes = _attributes(span)
    assert told.ids["event"] == attributes["cloudevents.event_id"].string_value
    assert attributes["http.response.status_code"].int_value == 204
    below = [each for each in told.receiver.spans if each.parent_span_id == span.span_id]
    owners = {each.value.string_value for run in below for each in run.attributes if each.key == "tenantry.owner"}
    assert f"project/{told.project}" in owners
    assert told.receiver.services == {FUNCTION}


def test_span_continues_the_trace_of_the_hop(told: Told) -> None:
    """The HTTP header is the parent; where the event carries a trace too, that one is linked."""
    assert PARENT["hop"] == _consumer(told, "hop").parent_span_id.hex()
    span = _consumer(told, "both")
    assert PARENT["both"] == span.parent_span_id.hex()
    assert [TRACE["event"]] == [link.trace_id.hex() for link in span.links]


def test_metrics_are_exported_at_the_end(told: Told) -> None:
    """Events, runs, writes and the age of the last sweep are exported before the process ends."""
    metrics = told.receiver.metrics

    assert {"tenantry.events", "tenantry.reconcile.duration", "tenantry.writes", "tenantry.sweep.age"} <= set(metrics)
    assert "tenantry.writes.futile" not in metrics
    points = metrics["tenantry.events"].sum.data_points
    events = {_attributes(point)["type"].string_value: point.as_int for point in points}
    assert events == {"dev.knative.apiserver.ref.update": 3, "dev.knative.sources.ping": 1}
    for point in points:
        assert _attributes(point)["function"].string_value == FUNCTION
        assert _attributes(point)["status"].int_value == 204
    runs = metrics["tenantry.reconcile.duration"].histogram.data_points
    assert {_attributes(run)["function"].string_value for run in runs} == {FUNCTION}
    assert all(run.count > 0 and run.sum > 0 for run in runs)
    kinds = {_attributes(point)["kind"].string_value for point in metrics["tenantry.writes"].sum.data_points}
    assert {"Namespace", "ConfigMap", "NetworkPolicy", "ServiceAccount"} <= kinds
    ages = [point.as_double for point in metrics["tenantry.sweep.age"].gauge.data_points]
    assert len(ages) == 1
    assert 0 <= ages[0] < 60


def test_log_lines_name_event_owner_and_trace(told: Told) -> None:
    """Each line is a JSON object; what a write was for can be followed by event, owner and trace."""
    writes = [line for line in told.logs if line["message"].startswith("create ")]

    assert writes
    for line in writes:
        assert {"time", "level", "function", "message", "event", "owner", "trace"} <= set(line)
    first = next(line for line in writes if f"Namespace cattle-project-{told.project}" in line["message"])
    assert (told.ids["event"], f"project/{told.project}", TRACE["event"]) == (first["event"], first["owner"], first["trace"])


def test_nothing_is_loaded_without_an_endpoint() -> None:
    """Without an endpoint the SDK is not even imported."""
    program = (
        "import sys\n"
        "from tenantry.serving import server, telemetry\n"
        "telemetry.set_up_telemetry('namespace-registration')()\n"
        "server.make_app('namespace-registration')\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry.sdk', 'opentelemetry.exporter'))])\n"
    )
    environment = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"
