"""Events of evaluations: one ``gen_ai.evaluation.result`` for each score of an example, as a log record in its span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import time_ns
from typing import Any

from opentelemetry._logs import Logger, LogRecord, SeverityNumber

from sigwire.observe.tracing import names
from sigwire.observe.tracing.attributes import AttributeMap
from sigwire.observe.tracing.content import Content

__all__ = ["emit_scores"]


def emit_scores(logger: Logger, cell: Any, metric: str, content: Content) -> None:
    """Emit the events of a ``Cell`` in the current context."""
    for attributes in _score_attributes(cell, metric, content):
        logger.emit(
            LogRecord(
                timestamp=time_ns(),
                severity_number=SeverityNumber.INFO,
                event_name=names.EVALUATION_RESULT,
                attributes=attributes,
            )
        )


def _score_attributes(cell: Any, metric: str, content: Content) -> Iterator[AttributeMap]:
    """Yield the attributes of each event. A metric that failed has an event without a score."""
    failure = cell.failure
    failed: AttributeMap = {names.FAILURE: failure.kind} if failure is not None else {}
    if failure is not None and failure.kind == "metric":
        yield {names.EVALUATION_NAME: metric, names.ERROR_TYPE: failure.type, **failed}
    if cell.score is not None:
        explained = content.attributes(names.EVALUATION_EXPLANATION, cell.feedback) if cell.feedback else {}
        yield {names.EVALUATION_NAME: metric, names.EVALUATION_SCORE: float(cell.score), **explained, **failed}
    subscores: Mapping[str, float] = cell.subscores
    for name, score in subscores.items():
        yield {names.EVALUATION_NAME: f"{metric}.{name}", names.EVALUATION_SCORE: float(score), **failed}
