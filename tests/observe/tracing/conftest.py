"""A tracer provider that keeps its spans, and tracing switched on for one test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span

from sigwire.observe.otel import instrument, uninstrument


class Telemetry:
    """Spans, metrics and events of a test."""

    def __init__(self) -> None:
        self._spans, self._reader, self._events = (
            InMemorySpanExporter(), InMemoryMetricReader(), InMemoryLogRecordExporter(),
        )  # fmt: skip
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self._meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self._loggers = LoggerProvider(shutdown_on_exit=False)
        self._loggers.add_log_record_processor(SimpleLogRecordProcessor(self._events))

    def start(self, **options: Any) -> None:
        instrument(self.tracers, self._meters, logger_provider=self._loggers, **options)

    def user_span(self, name: str) -> Any:
        """A span of the user's code, as a context manager."""
        return self.tracers.get_tracer("user").start_as_current_span(name)

    def open_span(self, name: str) -> Span:
        return self.tracers.get_tracer("user").start_span(name)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The finished spans in the order in which they started."""
        return sorted(self._spans.get_finished_spans(), key=lambda span: span.start_time or 0)

    @property
    def tree(self) -> list[str]:
        """The names of spans, indented below their parents; children in the order of their start."""
        return self._lines(None, 0)

    def _lines(self, parent: int | None, depth: int) -> list[str]:
        lines: list[str] = []
        for span in self.spans:
            if (span.parent.span_id if span.parent else None) == parent:
                lines.append("  " * depth + span.name)
                lines += self._lines(span.get_span_context().span_id, depth + 1)
        return lines

    def named(self, name: str) -> ReadableSpan:
        """The only span of a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def attributes(self, name: str) -> dict[str, Any]:
        return dict(self.named(name).attributes or {})

    @property
    def events(self) -> list[Any]:
        """The emitted log records."""
        return [each.log_record for each in self._events.get_finished_logs()]

    def points(self, metric: str) -> list[Any]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in found.data.data_points
        ]


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    """Tracing with spans kept in memory, without content. ``telemetry.start(...)`` starts it with other options."""
    made = Telemetry()
    made.start()
    yield made
    uninstrument()
