"""End to end: a program calls a provider over HTTP, and its spans reach a collector over OTLP/HTTP."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import sigwire
from sigwire.observe.otel import instrument, uninstrument
from sigwire.testing import FakeProvider

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
metrics_service = pytest.importorskip("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")


class Collector(ThreadingHTTPServer):
    """Parses what is sent to it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.traces, self.metrics = trace_service.ExportTraceServiceRequest(), set[str]()
        self.paths = set[str]()
        self.headers: dict[str, str] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.paths.add(self.path)
        self.server.headers |= {name.lower(): value for name, value in self.headers.items()}
        if self.path.endswith("/traces"):
            self.server.traces.MergeFromString(body)
        else:
            found = metrics_service.ExportMetricsServiceRequest.FromString(body)
            self.server.metrics |= {
                metric.name
                for resource in found.resource_metrics
                for scope in resource.scope_metrics
                for metric in scope.metrics
            }
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
    uninstrument()


# The path below the address of a backend, and the header of its key, as docs/tracing.md names them.
BACKENDS = [
    pytest.param("/v1/traces", {}, id="mlflow-and-phoenix"),
    pytest.param("/api/public/otel/v1/traces", {"authorization": "Basic cGs6c2s="}, id="langfuse"),
]


@pytest.mark.long
@pytest.mark.parametrize(("path", "headers"), BACKENDS)
def test_spans_of_a_program_reach_a_collector(collector: Collector, path: str, headers: dict[str, str]) -> None:
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    meters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(exporters.OTLPSpanExporter(collector.url + path, headers=headers)))
    reader = PeriodicExportingMetricReader(meters.OTLPMetricExporter(f"{collector.url}/v1/metrics"))
    meter_provider = MeterProvider([reader], shutdown_on_exit=False)
    instrument(tracers, meter_provider)
    answer = "[[ ## answer ## ]]\nParis, of course.\n\n[[ ## completed ## ]]"
    with FakeProvider([answer]) as provider:
        predict = sigwire.Predict("question -> answer")
        predict.set_lm(sigwire.LM("openai/gpt-5-mini", api_key="any", base_url=provider.url("openai")))
        list(predict.stream(question="What is the capital of France?"))
        port = int(provider.url("openai").split(":")[2].partition("/")[0])
    tracers.force_flush()
    tracers.shutdown()
    meter_provider.shutdown()
    assert collector.paths == {path, "/v1/metrics"}
    assert headers.items() <= collector.headers.items()
    (scope,) = collector.traces.resource_spans[0].scope_spans
    assert scope.scope.name == "sigwire"
    spans = {span.name: span for span in scope.spans}
    chat, predicted = spans["chat gpt-5-mini"], spans["predict Predict"]
    assert (chat.parent_span_id, chat.trace_id) == (predicted.span_id, predicted.trace_id)
    values = {pair.key: pair.value for pair in chat.attributes}
    assert values["gen_ai.provider.name"].string_value == "openai"
    assert values["gen_ai.request.stream"].bool_value
    assert values["gen_ai.usage.input_tokens"].int_value > 0
    assert values["server.address"].string_value == "127.0.0.1"
    assert values["server.port"].int_value == port
    assert values["sigwire.attempts"].int_value == 1
    seconds = (chat.end_time_unix_nano - chat.start_time_unix_nano) / 1e9
    assert 0 < values["gen_ai.response.time_to_first_chunk"].double_value < seconds
    assert collector.metrics == {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"}
