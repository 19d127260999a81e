"""Read calls and text out of a model's text: ``TextReader`` for a text in chunks, ``read_calls`` for a whole one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sigwire.adapters.text_tools.grammar import Grammar, ToolCatalog
from sigwire.adapters.text_tools.registry import current_scanner
from sigwire.adapters.text_tools.scan.compiled import CompiledGrammars
from sigwire.adapters.text_tools.scan.output_buffer import CallsAlone, TextEvent
from sigwire.adapters.text_tools.scan.scanner import CallScanner, ThinkingState
from sigwire.core.events import ReasoningDelta, TextDelta, ToolCallEnd
from sigwire.core.tools.calls import CallIds, ToolCall, with_call_id

__all__ = ["ScanResult", "TextReader", "read_calls"]


_JOIN_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The calls of a text, the text without them, the dialect of the first call, and notes of the repairs.

    ``reasoning`` is the text that a dialect itself marks as reasoning. Thinking blocks in tags stay in the text.
    """

    text: str
    calls: tuple[ToolCall, ...] = ()
    dialect: str | None = None
    notes: tuple[str, ...] = ()
    reasoning: str = ""


class TextReader:
    """Finds the calls in a text that arrives in chunks.

    ``tools``: names, or parameter schemas by name; schemas type the arguments that a dialect writes as plain text.
    ``strict``: a call that needs a repair is an error. ``thinking``: whether the text can start inside a thinking block that
    the prompt opened; while that is "unknown", calls wait until a block closes or the text ends. ``whole_message``: calls
    count only in a message without other text (see ``CallsAlone``). ``taken``: call ids in use; calls without an id get a free
    one.

    ``feed`` and ``close`` return events: ``TextDelta`` for text that cannot be markup, ``ToolCallEnd`` for a whole call. No
    event is revoked. However the text is cut, the events are the same except for the boundaries between texts.

    >>> reader = TextReader(["ping"], thinking="over")
    >>> [event.text for event in reader.feed("Sure.\\n<tool_c")]
    ['Sure.']
    >>> reader.feed('all>{"name": "ping"}</tool_call>')[0].call.name
    'ping'
    >>> reader.close(), reader.scan.dialect
    ([], 'hermes')
    """

    __slots__ = ("_collected", "_ids", "_pending", "_pending_length", "_scanner", "_steps")

    def __init__(
        self,
        tools: ToolCatalog | Mapping[str, Any] | Collection[str],
        *,
        strict: bool = False,
        thinking: ThinkingState = "unknown",
        whole_message: CallsAlone = False,
        taken: Iterable[str] = (),
        grammars: Sequence[Grammar] | None = None,
    ) -> None:
        catalog = tools if isinstance(tools, ToolCatalog) else ToolCatalog.of(tools, strict=strict)
        compiled = _grammars_for(grammars, catalog)
        self._scanner = CallScanner(compiled, catalog, thinking=thinking, whole_message=whole_message)
        self._steps = self._scanner.steps() if catalog.tools else None
        self._ids = CallIds(taken)
        self._collected: list[TextEvent] = []
        self._pending: list[str] = []
        self._pending_length = 0

    def feed(self, text: str) -> list[TextEvent]:
        """Return the events that are certain after this text."""
        if self._steps is None:
            return self._collect([TextDelta(text)] if text else [])
        self._pending.append(text)
        self._pending_length += len(text)
        # Join a long held text rarely, so that each of its characters is copied a few times at most.
        if not text or self._pending_length * 32 < self._scanner.held_length - _JOIN_LIMIT:
            return []
        return self._advance()

    def close(self, *, truncated: bool = False) -> list[TextEvent]:
        """Return the last events, at the end of the text. In a ``truncated`` text, an open thought hides its calls."""
        if self._steps is None:
            return []
        self._scanner.cursor.is_truncated = truncated
        self._scanner.cursor.closed = True
        return self._advance()

    def _advance(self) -> list[TextEvent]:
        scanner = self._scanner
        scanner.cursor.text += "".join(self._pending)
        self._pending, self._pending_length = [], 0
        if self._steps is not None:
            next(self._steps, None)
        events, scanner.output.events = scanner.output.events, []
        return self._collect(events)

    def _collect(self, events: list[TextEvent]) -> list[TextEvent]:
        for at, event in enumerate(events):
            if isinstance(event, ToolCallEnd):
                events[at] = replace(event, call=with_call_id(event.call, self._ids.unique(event.call.id)))
        self._collected += events
        return events

    @property
    def scan(self) -> ScanResult:
        """The result up to here."""
        out = self._scanner.output
        return ScanResult(
            "".join(event.text for event in self._collected if isinstance(event, TextDelta)),
            tuple(event.call for event in self._collected if isinstance(event, ToolCallEnd)),
            out.dialect,
            tuple(dict.fromkeys(out.notes)),
            "".join(event.text for event in self._collected if isinstance(event, ReasoningDelta)),
        )


def read_calls(
    text: str,
    tools: ToolCatalog | Mapping[str, Any] | Collection[str],
    *,
    strict: bool = False,
    thinking: ThinkingState = "unknown",
    whole_message: CallsAlone = False,
    truncated: bool = False,
    taken: Iterable[str] = (),
    grammars: Sequence[Grammar] | None = None,
) -> ScanResult:
    """Return the calls in a model's text, and the text without them: ``TextReader``, fed once.

    >>> found = read_calls('Sure.\\n~~~tool_call\\n{"name": "ping", "arguments": {}}\\n~~~', {"ping"})
    >>> found.text, found.calls[0].name, found.dialect
    ('Sure.', 'ping', 'fenced')
    """
    catalog = tools if isinstance(tools, ToolCatalog) else ToolCatalog.of(tools, strict=strict)
    # Most texts hold no markup at all.
    if not catalog.tools or not _grammars_for(grammars, catalog).can_hold_calls(text, catalog):
        return ScanResult(text)
    reader = TextReader(catalog, thinking=thinking, whole_message=whole_message, taken=taken, grammars=grammars)
    reader.feed(text)
    reader.close(truncated=truncated)
    return reader.scan


def _grammars_for(grammars: Sequence[Grammar] | None, catalog: ToolCatalog) -> CompiledGrammars:
    return current_scanner(catalog.fields) if grammars is None else CompiledGrammars(tuple(grammars), catalog.fields)
