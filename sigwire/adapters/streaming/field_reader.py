"""``FieldReader``: decode the events of a response into the events of a program.

Each choice is read independently. Its text passes the scan for calls if tools are offered, then the lead-in, then the
layout's reader, which emits the fields. Fields that the layout did not emit follow at the end of the choice, from the parse
of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.finish import was_truncated
from sigwire.adapters.plan import ParsedChoice, is_tool_trace
from sigwire.adapters.streaming.free_text import FreeTextReader
from sigwire.adapters.streaming.lead_in import LeadInReader
from sigwire.adapters.streaming.text_fields import emit_value
from sigwire.core.events import (
    ChoiceEnd,
    PartEnd,
    ProgramEvent,
    ReasoningDelta,
    ResponseEnd,
    ResponseStart,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from sigwire.core.json import dumps
from sigwire.core.response import Choice, FinishReason
from sigwire.core.tools.calls import CallIds, ToolCall, with_call_id
from sigwire.core.tools.tool import Tool
from sigwire.errors import ModelError

if TYPE_CHECKING:
    from sigwire.adapters.plan import Plan
    from sigwire.adapters.text_tools import TextReader

__all__ = ["FieldReader"]

_INCOMPLETE = frozenset({"content_filter", "error", "length"})  # the fields of such a choice are incomplete


class FieldReader:
    """Reads one response in chunks. ``tools``: the offered tools; ``taken``: the call ids in use.

    >>> from sigwire.adapters.chat import ChatAdapter
    >>> from sigwire.signatures import Signature
    >>> reader = FieldReader(ChatAdapter().plan(Signature("question -> answer")))
    >>> [event.text for event in reader.feed(TextDelta("[[ ## answer ## ]]\\nParis, o"))]
    ['Paris, o']
    >>> [type(event).__name__ for event in reader.feed(TextDelta("f course.\\n\\n[[ ## completed ## ]]"))]
    ['FieldDelta', 'FieldEnd']
    """

    __slots__ = ("_choices", "_make_choice", "_path", "_plan", "_turn")

    def __init__(
        self,
        plan: Plan,
        tools: tuple[Tool, ...] = (),
        path: str = "",
        turn: int | None = None,
        taken: Iterable[str] = (),
    ) -> None:
        self._plan, self._path, self._turn = plan, path, turn
        self._choices: dict[int, _ChoiceReader] = {}
        self._make_choice: Callable[[int], _ChoiceReader] = lambda number: _ChoiceReader(
            plan, tools, FieldEvents(path, turn, number), taken
        )

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        """Return the field events of an event of the response."""
        if isinstance(event, (ResponseStart, ResponseEnd)):
            return ()
        if isinstance(event, UsageUpdate):
            return (UsageUpdate(event.usage, path=self._path, turn=self._turn),)
        choice = self._choices.get(event.choice)
        if choice is None:
            choice = self._choices[event.choice] = self._make_choice(event.choice)
        return choice.feed(event)

    def close(self) -> Iterable[ProgramEvent]:
        """Return the remaining events at the end of the response."""
        return [event for choice in self._choices.values() for event in choice.end(ChoiceEnd())]

    def parse(self, number: int, choice: Choice) -> ParsedChoice:
        """Parse a choice of the response. A parse that the stream made is reused: user validators run once."""
        choice_reader = self._choices.get(number)
        final = choice_reader.parsed if choice_reader is not None else None
        return final.as_of(choice) if final is not None and final.is_of(choice) else self._plan.parse(choice)


class _FinalParse(NamedTuple):
    choice: Choice
    outcome: ParsedChoice | ModelError

    def is_of(self, choice: Choice) -> bool:
        return _relevant_fields(self.choice) == _relevant_fields(choice)

    def as_of(self, choice: Choice) -> ParsedChoice:
        if isinstance(self.outcome, ParsedChoice):
            return self.outcome
        self.outcome.choice = choice
        raise self.outcome


_relevant_fields = attrgetter("text", "tool_calls", "reasoning", "refusal", "finish_reason")


class _ChoiceReader:
    """One choice of a response. ``parsed``: its parse, if its outputs needed one."""

    __slots__ = (
        "_call_ids",
        "_calls",
        "_ended",
        "_free_text",
        "_has_thought",
        "_ids",
        "_lead_in",
        "_plan",
        "_reasoning",
        "_scan",
        "_start_scan",
        "_text",
        "_tools",
        "events",
        "parsed",
    )

    def __init__(self, plan: Plan, tools: tuple[Tool, ...], events: FieldEvents, taken: Iterable[str]) -> None:
        self._plan, self._tools, self.events = plan, tools, events
        free = plan.layout.free or not plan.layout.outputs
        self._free_text = FreeTextReader(plan.parts.thoughts, events) if free else None
        outputs = None if free else plan.layout.output_reader(events)
        self._lead_in = LeadInReader(outputs, plan.parts.thoughts) if outputs is not None else None
        self._scan: TextReader | None = None
        self._start_scan: Callable[[], TextReader | None] | None = lambda: plan.text_reader(
            tools, taken=taken, thought=bool(self._reasoning)
        )
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._has_thought = False
        self._calls: list[ToolCall] = []
        self._ids = CallIds(taken)
        self._call_ids: dict[int, str] = {}  # of started calls, by index
        self._ended = False
        self.parsed: _FinalParse | None = None

    def feed(self, event: object) -> list[ProgramEvent]:
        handle = self._HANDLERS.get(type(event))
        if handle is not None:
            handle(self, event)
        return self.events.take()

    def end(self, event: ChoiceEnd) -> list[ProgramEvent]:
        """Return the remaining events at the end of the choice, which may be implicit."""
        self._end(event)
        return self.events.take()

    def _feed_text(self, event: TextDelta) -> None:
        if self._start_scan is not None:
            self._scan, self._start_scan = self._start_scan(), None
        self._text.append(event.text)
        if self._scan is None and self._lead_in is not None:
            self._lead_in.feed(event.text)
        elif self._scan is None:
            self._feed_sink(event.text)
        else:
            self._emit_scanned(self._scan.feed(event.text))

    def _feed_sink(self, text: str) -> None:
        if self._lead_in is not None:
            self._lead_in.feed(text)
        elif self._free_text is not None:
            self._free_text.feed(text)

    def _emit_scanned(self, events: Iterable[TextDelta | ReasoningDelta | ToolCallEnd]) -> None:
        """Emit the events of the scan for calls. A call in text looks like a native one."""
        for event in events:
            if isinstance(event, TextDelta):
                self._feed_sink(event.text)
            elif isinstance(event, ReasoningDelta):
                self._emit_reasoning(event.text)
            else:
                index, call = event.index, event.call
                arguments = call.raw_arguments if call.raw_arguments is not None else dumps(call.arguments)
                self.events.call(ToolCallStart, index, call.id, call.name)
                self.events.call(ToolCallDelta, index, arguments)
                self.events.call(ToolCallEnd, index, self._plan.check_call(call, self._tools))

    def _stop_scan(self) -> None:
        """Treat all text as text, including held text: the provider sends native calls."""
        self._start_scan = None
        if self._scan is None or self._scan.scan.calls:
            return
        emitted, self._scan = self._scan.scan.text, None
        if rest := "".join(self._text).removeprefix(emitted):
            self._feed_sink(rest)

    def _feed_reasoning(self, event: ReasoningDelta) -> None:
        self._reasoning.append(event.text)
        self._emit_reasoning(event.text)

    def _emit_reasoning(self, text: str) -> None:
        self._has_thought = True
        if not self._plan.parts.thinking:
            self.events.reasoning(text)
        for spec in self._plan.parts.thinking:
            self.events.text(spec.name, text)

    def _start_call(self, event: ToolCallStart) -> None:
        self._stop_scan()
        self.events.call(ToolCallStart, event.index, self._id_of(event.index, event.id), event.name)

    def _feed_call(self, event: ToolCallDelta) -> None:
        self.events.call(ToolCallDelta, event.index, event.arguments)

    def _end_call(self, event: ToolCallEnd) -> None:
        self._stop_scan()
        call = with_call_id(event.call, self._id_of(event.index, event.call.id))
        self._calls.append(call)
        self.events.call(ToolCallEnd, event.index, self._plan.check_call(call, self._tools))

    def _id_of(self, index: int, call_id: str) -> str:
        """Return the unique id of a native call; ``normalize`` gives the calls of the response the same ids."""
        if index not in self._call_ids:
            self._call_ids[index] = self._ids.unique(call_id)
        return self._call_ids[index]

    def _end_part(self, event: PartEnd) -> None:
        if is_tool_trace(event.part):
            self._stop_scan()

    def _end(self, event: ChoiceEnd) -> None:
        if self._ended:
            return
        self._ended = True
        if self._scan is not None:
            self._close_scan(self._scan, event.finish_reason)
        if self._free_text is not None:
            self._free_text.close()
        if self._has_thought or self._plan.layout.free:
            self._end_thinking()
        if self._lead_in is not None and event.refusal is None and event.finish_reason not in _INCOMPLETE:
            self._lead_in.close()
        if not self._plan.setup.written.codecs.keys() <= self.events.ended:
            self._emit_rest(self._choice(event))

    def _close_scan(self, scan: TextReader, reason: FinishReason) -> None:
        """Emit the end of the scan, without a call that the token limit truncated."""
        closing = scan.close(truncated=reason == "length")
        ends = [event for event in closing if isinstance(event, ToolCallEnd)]
        if was_truncated(reason, [end.call for end in ends]):
            closing.remove(ends[-1])
        self._emit_scanned(closing)

    def _end_thinking(self) -> None:
        for spec in self._plan.parts.thinking:
            self.events.end(spec.name)

    def _choice(self, event: ChoiceEnd) -> Choice:
        text, calls, thought = "".join(self._text), tuple(self._calls), "".join(self._reasoning)
        if self._scan is not None:
            scan = self._scan.scan
            text, thought = scan.text, thought or scan.reasoning
            calls = scan.calls[:-1] if was_truncated(event.finish_reason, scan.calls) else scan.calls
        return Choice(text, calls, thought or None, event.refusal, event.finish_reason, evidence=event.evidence)

    def _emit_rest(self, choice: Choice) -> None:
        """Emit the outputs that were not emitted, from the parse that makes the prediction."""
        try:
            parsed = self._plan.parse(choice)
        except ModelError as fault:
            self.parsed = _FinalParse(choice, fault)
            return
        self.parsed, fields = _FinalParse(choice, parsed), parsed.fields
        for name, codec in self._plan.setup.written.outputs:
            is_started = codec.form == "text" and name in self.events.started_texts
            if name in fields and name not in self.events.ended and not is_started:
                emit_value(codec, fields[name], self.events)

    _HANDLERS: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        ChoiceEnd: _end,
        PartEnd: _end_part,
        ReasoningDelta: _feed_reasoning,
        TextDelta: _feed_text,
        ToolCallDelta: _feed_call,
        ToolCallEnd: _end_call,
        ToolCallStart: _start_call,
    }
