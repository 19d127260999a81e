"""The events of streams. ``collect`` builds a response from its events, ``events_of`` the events of a response.

``StreamEvent`` has the events of a response, ``ProgramEvent`` those of a program: its own, and the events of its responses
that carry more than the text of fields.

``start`` and ``delta`` events are for display; only an ``end`` carries a complete value: ``ToolCallEnd`` a call,
``ChoiceEnd`` a finish reason, ``ResponseEnd`` the rest. Two promises: ``collect(events_of(response)) == response``, and a
call is never visible as a call before it is complete.

``path`` is the path of the emitting module in the streamed program (``agent.react``; ``self`` is the program); ``turn``
counts the turns of an agent from 0. ``within`` has the ids of the tool calls around the module, outermost first
(``call_0/call_1``): two calls of one agent that run at once have different ones. All are empty in the stream of a model.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from reprlib import repr as short
from typing import Any, ClassVar, Literal, TypeAlias, cast, get_args

from sigwire.core.fold import Fold
from sigwire.core.json import JsonObject, JsonValue, Value, dumps
from sigwire.core.messages import Part
from sigwire.core.narrow import is_mapping
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.response import Attempt, Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import StateError
from sigwire.show.card import BoundedRepr

__all__ = [
    "ApprovalAsked", "AskStart", "ChoiceEnd", "Compacted", "Cut", "FieldDelta", "FieldEnd", "FieldPartial", "Finished",
    "PartEnd", "ProgramEvent", "ReasoningDelta", "ResponseEnd", "ResponseStart", "StreamEvent", "TextDelta", "ToolCallDelta",
    "ToolCallEnd", "ToolCallStart", "ToolDone", "UsageUpdate", "by_word", "collect", "event_from_json", "events_of",
    "one_chunk",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Event(Value):
    path: str = field(default="", kw_only=True)
    turn: int | None = field(default=None, kw_only=True)
    within: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class ResponseStart(_Event):
    """The response starts."""

    kind: ClassVar[str] = "response_start"
    id: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta(_Event):
    """More text of a choice."""

    kind: ClassVar[str] = "text_delta"
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ReasoningDelta(_Event):
    """More reasoning text of a choice."""

    kind: ClassVar[str] = "reasoning_delta"
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class PartEnd(_Event):
    """A complete part: media, an opaque item, thinking with its signature, or a text followed by another text.

    Thinking and text replace the deltas since the last part: a consumer that displays deltas has shown the part already.
    """

    kind: ClassVar[str] = "part_end"
    part: Part
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallStart(_Event):
    """The model starts a call; ``index`` numbers the calls of a choice."""

    kind: ClassVar[str] = "tool_call_start"
    index: int
    id: str
    name: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallDelta(_Event):
    """More of a call's argument text, for display only."""

    kind: ClassVar[str] = "tool_call_delta"
    index: int
    arguments: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallEnd(_Event):
    """The call is complete.

    In the stream of a module it was validated: ``call.error`` has the problem if it does not fit the offered tools. The
    stream of a model has no functions to validate with, so there only arguments that are no JSON object are an error.
    """

    kind: ClassVar[str] = "tool_call_end"
    index: int
    call: ToolCall
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ChoiceEnd(_Event):
    """A choice is complete. ``ordered``: whether the order of its parts has a meaning.

    ``parts``, if given, replace the parts of earlier events: a provider may stream parts in another order than it keeps.
    """

    kind: ClassVar[str] = "choice_end"
    finish_reason: FinishReason = "stop"
    choice: int = 0
    refusal: str | None = None
    logprobs: JsonValue = None
    citations: tuple[JsonObject, ...] = ()
    ordered: bool = False
    raw: JsonValue = None
    parts: tuple[Part, ...] | None = None
    evidence: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class UsageUpdate(_Event):
    """Tokens up to now; the last update is valid."""

    kind: ClassVar[str] = "usage"
    usage: Usage


@dataclass(frozen=True, slots=True)
class ResponseEnd(_Event):
    """The response is complete. ``cache`` and ``cached_usage`` are those of ``Response``."""

    kind: ClassVar[str] = "response_end"
    warnings: tuple[LMWarning, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    raw: JsonValue = None
    cache: Literal["hit", "miss", "off"] = "off"
    cached_usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class AskStart(_Event):
    """A predictor sends a request to a model, or discards outputs that it emitted: its fields start again."""

    kind: ClassVar[str] = "ask_start"
    model: str


@dataclass(frozen=True, slots=True)
class FieldDelta(_Event):
    """More text of an output. The deltas of a field, joined, are its text without the marks of the layout."""

    kind: ClassVar[str] = "field_delta"
    field: str
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class FieldPartial(_Event):
    """The partial value of an output that is not text: plain JSON, not validated. ``Finished`` has the validated value."""

    kind: ClassVar[str] = "field_partial"
    field: str
    value: JsonValue
    choice: int = 0


@dataclass(frozen=True, slots=True)
class FieldEnd(_Event):
    """The text of an output is complete."""

    kind: ClassVar[str] = "field_end"
    field: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ToolDone(_Event):
    """A tool was run; ``result`` is sent to the model."""

    kind: ClassVar[str] = "tool_done"
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ApprovalAsked(_Event):
    """A tool call waits for a decision: ``ApprovalNeeded`` ends the stream, and its ``pending`` has the call by this id."""

    kind: ClassVar[str] = "approval_asked"
    id: str
    name: str
    arguments: JsonObject
    why: str


@dataclass(frozen=True, slots=True)
class Compacted(_Event):
    """The conversation was folded: later requests leave turns out."""

    kind: ClassVar[str] = "compacted"
    fold: Fold


@dataclass(frozen=True, slots=True)
class Finished(BoundedRepr):
    """The last event of a program's stream: its value."""

    value: Any
    path: str = field(default="self", kw_only=True)

    def to_json(self) -> JsonObject:
        """Return the event as JSON: of a prediction the outputs (``outputs_of``), any other value as plain data.

        Raises ``ValueError`` for a value without a JSON form. ``event_from_json`` does not read this event.

        >>> from sigwire.core.example import Prediction
        >>> Finished(Prediction(answer="4")).to_json()
        {'type': 'finished', 'path': 'self', 'value': {'answer': '4'}}
        """
        from sigwire.core.example import Prediction, outputs_of
        from sigwire.core.record import to_plain

        value = outputs_of(self.value) if isinstance(self.value, Prediction) else to_plain(self.value)
        return {"type": "finished", "path": self.path, "value": value}


StreamEvent: TypeAlias = (
    ResponseStart
    | TextDelta
    | ReasoningDelta
    | PartEnd
    | ToolCallStart
    | ToolCallDelta
    | ToolCallEnd
    | ChoiceEnd
    | UsageUpdate
    | ResponseEnd
)
"""The events of a model's stream."""

ProgramEvent: TypeAlias = (
    StreamEvent | AskStart | FieldDelta | FieldPartial | FieldEnd | ToolDone | ApprovalAsked | Compacted | Finished
)
"""The events of a program's stream."""


_BY_KIND: Mapping[str, type[_Event]] = {
    event.kind: event for event in get_args(ProgramEvent) if issubclass(event, _Event)
}


def event_from_json(data: Mapping[str, object]) -> ProgramEvent:
    """Return the event that an event's ``to_json`` encoded. Raises ``StateError``, a ``ValueError``, for other data.

    >>> event_from_json({"type": "text_delta", "text": "4"})
    TextDelta(path='', turn=None, within='', text='4', choice=0)
    """
    event = _BY_KIND.get(str(data.get("type"))) if is_mapping(data) else None
    if event is None:
        raise StateError(
            f"unknown event type {short(data.get('type')) if is_mapping(data) else short(data)} (decoding an event). The types "
            f"are: {', '.join(_BY_KIND)}."
        )
    return cast(ProgramEvent, event.from_json(data))


Cut: TypeAlias = Callable[[str], Iterable[str]]


def one_chunk(text: str) -> tuple[str, ...]:
    """Return a text as one chunk.

    >>> one_chunk("all of it")
    ('all of it',)
    """
    return (text,)


def by_word(text: str) -> list[str]:
    """Split a text into words, each with the white space that follows.

    >>> by_word("all of it")
    ['all ', 'of ', 'it']
    """
    return re.findall(r"\S+\s*|\s+", text)


def events_of(response: Response, cut: Cut = one_chunk) -> Iterator[StreamEvent]:
    """Yield the events of a complete response. ``cut`` splits its texts into deltas.

    >>> [type(event).__name__ for event in events_of(Response((Choice(text="4"),)))]
    ['ResponseStart', 'TextDelta', 'ChoiceEnd', 'UsageUpdate', 'ResponseEnd']
    """
    yield ResponseStart(response.id, response.model)
    for number, choice in enumerate(response.choices):
        yield from _part_events(choice.parts or _usual_parts(choice), number, cut)
        facts = (choice.refusal, choice.logprobs, choice.citations, bool(choice.parts), choice.raw)
        yield ChoiceEnd(choice.finish_reason, number, *facts, evidence=choice.evidence)
    yield UsageUpdate(response.usage)
    yield ResponseEnd(response.warnings, response.attempts, response.raw, response.cache, response.cached_usage)


def _usual_parts(choice: Choice) -> tuple[Part, ...]:
    thinking: tuple[Part, ...] = () if choice.reasoning is None else (ThinkingPart(choice.reasoning),)
    return (*thinking, *((TextPart(choice.text),) if choice.text else ()), *choice.tool_calls)


def _part_events(parts: tuple[Part, ...], choice: int, cut: Cut) -> Iterator[StreamEvent]:
    calls = 0
    for part, following in zip_longest(parts, parts[1:]):
        if isinstance(part, ToolCall):
            yield ToolCallStart(calls, part.id, part.name, choice)
            arguments = part.raw_arguments if part.raw_arguments is not None else dumps(part.arguments)
            yield from (ToolCallDelta(calls, delta, choice) for delta in cut(arguments))
            yield ToolCallEnd(calls, part, choice)
            calls += 1
            continue
        if isinstance(part, TextPart):
            yield from (TextDelta(delta, choice) for delta in cut(part.text))
        elif isinstance(part, ThinkingPart) and part.text:
            yield from (ReasoningDelta(delta, choice) for delta in cut(part.text))
        if not isinstance(part, TextPart) or isinstance(following, TextPart) or not part.text:
            yield PartEnd(part, choice)


@dataclass(slots=True)
class _ChoiceBuilder:
    """Builds a choice: complete parts, and the deltas of an open text or thinking part."""

    parts: list[Part] = field(default_factory=list[Part])
    open_part: type[TextPart] | type[ThinkingPart] | None = None
    deltas: list[str] = field(default_factory=list[str])
    end: ChoiceEnd = ChoiceEnd()

    def add_delta(self, kind: type[TextPart] | type[ThinkingPart], text: str) -> None:
        if self.open_part is not kind:
            self.close_part()
        self.open_part = kind
        self.deltas.append(text)

    def close_part(self) -> None:
        if self.open_part is not None:
            self.parts.append(self.open_part("".join(self.deltas)))
        self.open_part, self.deltas = None, []

    def finish(self) -> Choice:
        self.close_part()
        rest: dict[str, Any] = {
            name: getattr(self.end, name)
            for name in ("finish_reason", "refusal", "logprobs", "citations", "raw", "evidence")
        }
        choice = Choice.from_parts(self.parts if self.end.parts is None else self.end.parts, **rest)
        if self.end.ordered:
            return choice
        return Choice(choice.text, choice.tool_calls, choice.reasoning, **rest)


def collect(events: Iterable[StreamEvent]) -> Response:
    """Build the response from its events.

    >>> collect([TextDelta("4"), TextDelta("2"), ChoiceEnd("stop")]).choices[0].text
    '42'
    """
    start, usage, end = ResponseStart(), Usage(), ResponseEnd()
    choices: defaultdict[int, _ChoiceBuilder] = defaultdict(_ChoiceBuilder)
    for event in events:
        match event:
            case TextDelta():  # first: nearly every event is one
                choices[event.choice].add_delta(TextPart, event.text)
            case ResponseStart():
                start = event
            case UsageUpdate():
                usage = event.usage
            case ResponseEnd():
                end = event
            case ToolCallStart() | ToolCallDelta():
                pass  # for display; ToolCallEnd has the call
            case _:
                _add_to(choices[event.choice], event)
    finished = tuple(choices[number].finish() for number in sorted(choices))
    ended = (end.warnings, end.attempts, end.raw, end.cache, end.cached_usage)
    return Response(finished, usage, start.model, start.id, *ended)


def _add_to(choice: _ChoiceBuilder, event: ReasoningDelta | PartEnd | ToolCallEnd | ChoiceEnd) -> None:
    match event:
        case ReasoningDelta():
            choice.add_delta(ThinkingPart, event.text)
        case PartEnd():
            if choice.open_part is type(event.part):
                choice.open_part, choice.deltas = None, []
            choice.close_part()
            choice.parts.append(event.part)
        case ToolCallEnd():
            choice.close_part()
            choice.parts.append(event.call)
        case ChoiceEnd():
            choice.end = event
