"""Tracing with OpenTelemetry: ``instrument()`` and ``uninstrument()``. The code is in ``tracing``."""

from sigwire.observe.tracing.instrument import instrument, uninstrument

__all__ = ["instrument", "uninstrument"]
