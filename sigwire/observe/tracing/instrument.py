"""Switch tracing on and off. Only ``instrument`` loads OpenTelemetry."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sigwire.errors import ConfigurationError, warn_user
from sigwire.observe.callbacks import EVERYWHERE
from sigwire.observe.tracing.content import Content, Redact

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["instrument", "uninstrument"]

_CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CONTENT_MODES = {"": False, "NO_CONTENT": False, "SPAN_ONLY": True, "EVENT_ONLY": True, "SPAN_AND_EVENT": True}

_installed: list[object] = []


_WANTED: Mapping[str, tuple[str, str]] = {
    "tracer_provider": ("get_tracer", "a TracerProvider of OpenTelemetry"),
    "meter_provider": ("get_meter", "a MeterProvider of OpenTelemetry"),
    "logger_provider": ("get_logger", "a LoggerProvider of OpenTelemetry"),
    "redact": ("__call__", "a function of (kind, value)"),
}
"""The method that an argument must have, and what it is."""


def instrument(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    content: bool = False,
    redact: Redact | None = None,
    *,
    logger_provider: LoggerProvider | None = None,
) -> None:
    """Trace every call of the process with OpenTelemetry. A second call replaces the first.

    A provider that is not given is the global one, which the application sets. ``content``: messages, arguments, results and
    texts of exceptions are recorded too; also by the environment variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
    (SPAN_ONLY, EVENT_ONLY or SPAN_AND_EVENT). ``redact(kind, value)`` gets each of these values as JSON data, with the name of
    its attribute, and returns the value to record, or ``None``. ``logger_provider`` gets the events of evaluations.

    Raises ``ConfigurationError`` if ``opentelemetry-api`` is not installed.

    >>> instrument()
    >>> uninstrument()
    """
    given: Mapping[str, object] = {
        "tracer_provider": tracer_provider,
        "meter_provider": meter_provider,
        "logger_provider": logger_provider,
        "redact": redact,
    }
    for name, value in given.items():
        method, wanted = _WANTED[name]
        if value is not None and not callable(getattr(value, method, None)):
            raise ConfigurationError(
                f"{name} is {wanted}, not {type(value).__name__} (starting tracing). Pass one, or leave {name} out."
            )
    try:
        from opentelemetry._logs import get_logger
        from opentelemetry.metrics import get_meter
        from opentelemetry.trace import get_tracer
    except ImportError as error:
        raise ConfigurationError(
            'Tracing needs opentelemetry-api (starting it). Run pip install "sigwire[otel]", and install an SDK.'
        ) from error
    from sigwire.observe.tracing.listener import TracingListener
    from sigwire.observe.tracing.metrics import Metrics

    version = str(getattr(sys.modules["sigwire"], "__version__", ""))
    listener = TracingListener(
        get_tracer("sigwire", version, tracer_provider),
        Metrics(get_meter("sigwire", version, meter_provider)),
        get_logger("sigwire", version, logger_provider),
        Content(content or _is_content_wanted(), redact),
    )
    uninstrument()
    _installed.append(listener)
    EVERYWHERE.append(listener)


def uninstrument() -> None:
    """Stop tracing. Calls under way are traced to their end."""
    while _installed:
        EVERYWHERE.remove(_installed.pop())


def _is_content_wanted() -> bool:
    """Return True if the environment asks for content. An unknown value is off, with a warning."""
    given = os.environ.get(_CONTENT_VARIABLE, "").strip()
    if given.upper() not in _CONTENT_MODES:
        known = ", ".join(filter(None, _CONTENT_MODES))
        warn_user(f"{_CONTENT_VARIABLE}={given!r} is not known, so no content is traced. Use {known}.", RuntimeWarning)
    return _CONTENT_MODES.get(given.upper(), False)
