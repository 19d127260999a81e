"""Metrics: durations of operations, and counts of tokens. The buckets are those of the OpenTelemetry helper for Python."""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.metrics import Histogram, Meter

from sigwire.core.response import Usage
from sigwire.observe.tracing import names
from sigwire.observe.tracing.attributes import AttributeMap

__all__ = ["AGENT_SECONDS", "CALL_SECONDS", "TOKENS", "Metrics"]

CALL_SECONDS: Sequence[float] = [0.01 * 2**power for power in range(14)]
AGENT_SECONDS: Sequence[float] = [0.1 * 2**power for power in range(13)]
TOKENS: Sequence[float] = [4**power for power in range(14)]

_DURATIONS = {
    names.CHAT: (names.OPERATION_DURATION, "Duration of a call of a model, with its retries.", CALL_SECONDS),
    names.EXECUTE_TOOL: (names.EXECUTE_TOOL_DURATION, "Duration of a run of a tool.", CALL_SECONDS),
    names.INVOKE_AGENT: (names.INVOKE_AGENT_DURATION, "Duration of a run of an agent.", AGENT_SECONDS),
}


class Metrics:
    """The instruments of one meter."""

    def __init__(self, meter: Meter) -> None:
        self._durations: dict[str, Histogram] = {
            role: meter.create_histogram(name, "s", text, explicit_bucket_boundaries_advisory=buckets)
            for role, (name, text, buckets) in _DURATIONS.items()
        }
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE, "{token}", "Tokens of a call of a model.", explicit_bucket_boundaries_advisory=TOKENS
        )

    def record_duration(self, role: str, seconds: float, attributes: AttributeMap) -> None:
        """Record the duration of an operation, if operations of its role are measured."""
        if (histogram := self._durations.get(role)) is not None:
            histogram.record(seconds, attributes)

    def record_tokens(self, usage: Usage, attributes: AttributeMap) -> None:
        """Record the tokens of a call, as far as they are known."""
        for kind, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if count is not None:
                self._tokens.record(count, {**attributes, names.TOKEN_TYPE: kind})
