"""Spans as the current context: opened at the start of a call, closed at its end, which may come in another context."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import cast

from opentelemetry.context import Context, attach, create_key, get_current, get_value, set_value
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from sigwire.observe.tracing import names
from sigwire.observe.tracing.attributes import AttributeMap

__all__ = ["OpenSpan", "current_span", "end_span", "start_span"]

_KEY = create_key("sigwire-span")


class OpenSpan:
    """A span under way. ``role`` is the kind of call; ``paths`` are those of the modules in its program, by id.

    ``name`` is that of the agent, tool or model; ``facts`` are the attributes that metrics have too.
    """

    __slots__ = ("before", "facts", "has_ended", "name", "paths", "role", "span", "started")

    def __init__(
        self, span: Span, before: Context, role: str, name: str, paths: Mapping[int, str], facts: AttributeMap
    ) -> None:
        self.span, self.before, self.role, self.name, self.paths, self.facts = span, before, role, name, paths, facts
        self.has_ended = False
        self.started = perf_counter()

    @property
    def parent(self) -> OpenSpan | None:
        """The span of sigwire around this one."""
        return _span_of(self.before)

    def nearest(self, role: str) -> OpenSpan | None:
        """Return this span, or the nearest one around it, of a role."""
        found: OpenSpan | None = self
        while found is not None and found.role != role:
            found = found.parent
        return found


def current_span() -> OpenSpan | None:
    """Return the span of sigwire in the current context."""
    return _span_of(get_current())


def _span_of(context: Context) -> OpenSpan | None:
    return cast("OpenSpan | None", get_value(_KEY, context))


def start_span(
    tracer: Tracer,
    label: str,
    attributes: AttributeMap,
    *,
    role: str,
    name: str = "",
    kind: SpanKind = SpanKind.INTERNAL,
    paths: Mapping[int, str] | None = None,
    facts: AttributeMap | None = None,
) -> OpenSpan:
    """Start a span as a child of the current one, and make it the current one."""
    before = get_current()
    span = tracer.start_span(label, context=before, kind=kind, attributes=attributes)
    opened = OpenSpan(span, before, role, name, paths or {}, facts or {})
    attach(set_value(_KEY, opened, set_span_in_context(span, before)))
    return opened


def end_span(opened: OpenSpan, attributes: Mapping[str, object], exception: Mapping[str, str] | None = None) -> float:
    """End a span, and return its seconds. ``exception``: attributes of the event of an exception."""
    span = opened.span
    span.set_attributes(cast(AttributeMap, attributes))
    if exception is not None:
        span.add_event("exception", exception)
    if (error := attributes.get(names.ERROR_TYPE)) is not None:
        message = (exception or {}).get(names.EXCEPTION_MESSAGE)
        span.set_status(Status(StatusCode.ERROR, message or str(error)))
    span.end()
    opened.has_ended = True
    _restore_context(opened)
    return perf_counter() - opened.started


def _restore_context(opened: OpenSpan) -> None:
    """Make the nearest span around that has not ended the current one.

    A stream may be closed in a context in which it was not started: there the span is not the current one, and the context is
    not changed. Two streams in one context may end in any order.
    """
    if current_span() is not opened:
        return
    before = opened.before
    while (outer := _span_of(before)) is not None and outer.has_ended:
        before = outer.before
    attach(before)
