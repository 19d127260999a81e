"""What a stream tells: a response in pieces, and what a program makes of them. ``collect`` puts a response together again.

    of a response      ResponseStart · TextDelta · ReasoningDelta · PartEnd · ToolCallStart · ToolCallDelta · ToolCallEnd
                       ChoiceEnd · UsageUpdate · ResponseEnd
    of a program       AskStart · FieldDelta · FieldPartial · FieldEnd · ToolDone · Finished, and those of its responses
                       that say something beside the fields

``start`` and ``delta`` events show growth; only an ``end`` carries a finished thing: ``ToolCallEnd`` a whole call,
``ChoiceEnd`` a finish reason, ``ResponseEnd`` the rest. Two promises: collecting the events of an answer gives the answer
(``collect(explode(response)) == response``), and a call is never visible as a call before it is complete.

``path`` is the module that an event comes from, by its name in the program that is streamed (``agent.react``; ``self`` is that
program); ``turn`` counts the turns of an agent from 0. A model by itself leaves both empty.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, ClassVar, TypeAlias, cast, get_args

from sigwire.core.json import JsonObject, JsonValue, Value, dumps
from sigwire.core.messages import Part, TextPart, ThinkingPart
from sigwire.core.response import Attempt, Choice, FinishReason, LMWarning, Response, Usage
from sigwire.core.tools.tool import ToolCall, ToolResult

__all__ = [
    "AskStart",
    "ChoiceEnd",
    "Cut",
    "FieldDelta",
    "FieldEnd",
    "FieldPartial",
    "Finished",
    "PartEnd",
    "ProgramEvent",
    "ReasoningDelta",
    "ResponseEnd",
    "ResponseStart",
    "StreamEvent",
    "TextDelta",
    "ToolCallDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolDone",
    "UsageUpdate",
    "by_word",
    "collect",
    "event_from_json",
    "events_of",
    "one_chunk",
]


@dataclass(frozen=True, slots=True)
class _Event(Value):
    """Where an event comes from."""

    path: str = field(default="", kw_only=True)
    turn: int | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class ResponseStart(_Event):
    """The answer begins."""

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
    """More of what the model thinks before it answers."""

    kind: ClassVar[str] = "reasoning_delta"
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class PartEnd(_Event):
    """A whole part: media, an opaque item, thinking with its signature, or a text right before another one. Of thinking and
    of text it replaces the deltas since the last part, so that who shows deltas has seen it already.
    """

    kind: ClassVar[str] = "part_end"
    part: Part
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallStart(_Event):
    """The model begins a call; ``index`` numbers the calls of a choice."""

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
    """The call is complete."""

    kind: ClassVar[str] = "tool_call_end"
    index: int
    call: ToolCall
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ChoiceEnd(_Event):
    """A choice is complete. ``ordered`` says that the order of its parts is part of its meaning; ``parts``, where given, are
    its parts, whatever was told before: what comes in pieces may come in another order than it is kept in.
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


@dataclass(frozen=True, slots=True)
class UsageUpdate(_Event):
    """Tokens so far; the last one counts."""

    kind: ClassVar[str] = "usage"
    usage: Usage


@dataclass(frozen=True, slots=True)
class ResponseEnd(_Event):
    """The answer is complete."""

    kind: ClassVar[str] = "response_end"
    warnings: tuple[LMWarning, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    raw: JsonValue = None


# --- of a program ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskStart(_Event):
    """A model is asked."""

    kind: ClassVar[str] = "ask_start"
    model: str


@dataclass(frozen=True, slots=True)
class FieldDelta(_Event):
    """More text of an output. What is told of a field, put together, is its text, without any mark of the layout."""

    kind: ClassVar[str] = "field_delta"
    field: str
    text: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class FieldPartial(_Event):
    """An output that is no text, as far as it has come: plain JSON, checked by nobody. The whole value is in the end's
    prediction, validated.
    """

    kind: ClassVar[str] = "field_partial"
    field: str
    value: JsonValue
    choice: int = 0


@dataclass(frozen=True, slots=True)
class FieldEnd(_Event):
    """No more text of an output will come."""

    kind: ClassVar[str] = "field_end"
    field: str
    choice: int = 0


@dataclass(frozen=True, slots=True)
class ToolDone(_Event):
    """A tool was run; ``result`` is what the model will see."""

    kind: ClassVar[str] = "tool_done"
    result: ToolResult


@dataclass(frozen=True, slots=True)
class Finished:
    """The program's value: the last event of its stream. It stays in the process: a prediction has its own JSON."""

    value: Any
    path: str = field(default="self", kw_only=True)


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
"""What the stream of a model tells."""

ProgramEvent: TypeAlias = StreamEvent | AskStart | FieldDelta | FieldPartial | FieldEnd | ToolDone | Finished
"""What the stream of a program tells."""


_BY_KIND: Mapping[str, type[_Event]] = {
    event.kind: event for event in get_args(ProgramEvent) if issubclass(event, _Event)
}


def event_from_json(data: Mapping[str, Any]) -> ProgramEvent:
    """Read what any event's ``to_json`` wrote. Raises ``ValueError`` for a type that is none of theirs.

    >>> event_from_json({"type": "text_delta", "text": "4"})
    TextDelta(path='', turn=None, text='4', choice=0)
    """
    event = _BY_KIND.get(str(data.get("type")))
    if event is None:
        raise ValueError(f"There is no event of type {data.get('type')!r}. The types are: {', '.join(_BY_KIND)}.")
    return cast(ProgramEvent, event.from_json(data))


Cut: TypeAlias = Callable[[str], Iterable[str]]


def one_chunk(text: str) -> tuple[str, ...]:
    """A text as one piece.

    >>> whole("all of it")
    ('all of it',)
    """
    return (text,)


def by_word(text: str) -> list[str]:
    """A text word by word, with the white space after each.

    >>> words("all of it")
    ['all ', 'of ', 'it']
    """
    return re.findall(r"\S+\s*|\s+", text)


def events_of(response: Response, cut: Cut = one_chunk) -> Iterator[StreamEvent]:
    """The events of a response that came whole; ``cut`` says in which pieces its texts are told.

    >>> [type(event).__name__ for event in explode(Response((Choice(text="4"),)))]
    ['ResponseStart', 'TextDelta', 'ChoiceEnd', 'UsageUpdate', 'ResponseEnd']
    """
    yield ResponseStart(response.id, response.model)
    for number, choice in enumerate(response.choices):
        yield from _explode_parts(choice.parts or _usual_parts(choice), number, cut)
        yield ChoiceEnd(
            choice.finish_reason,
            number,
            choice.refusal,
            choice.logprobs,
            choice.citations,
            ordered=bool(choice.parts),
            raw=choice.raw,
        )
    yield UsageUpdate(response.usage)
    yield ResponseEnd(response.warnings, response.attempts, response.raw)


def _usual_parts(choice: Choice) -> tuple[Part, ...]:
    thinking: tuple[Part, ...] = () if choice.reasoning is None else (ThinkingPart(choice.reasoning),)
    return (*thinking, *((TextPart(choice.text),) if choice.text else ()), *choice.tool_calls)


def _explode_parts(parts: tuple[Part, ...], choice: int, cut: Cut) -> Iterator[StreamEvent]:
    calls = 0
    for part, following in zip_longest(parts, parts[1:]):
        if isinstance(part, ToolCall):
            yield ToolCallStart(calls, part.id, part.name, choice)
            yield from (ToolCallDelta(calls, piece, choice) for piece in cut(_arguments_of(part)))
            yield ToolCallEnd(calls, part, choice)
            calls += 1
            continue
        if isinstance(part, TextPart):
            yield from (TextDelta(piece, choice) for piece in cut(part.text))
        elif isinstance(part, ThinkingPart) and part.text:
            yield from (ReasoningDelta(piece, choice) for piece in cut(part.text))
        if not isinstance(part, TextPart) or isinstance(following, TextPart) or not part.text:
            yield PartEnd(part, choice)


def _arguments_of(call: ToolCall) -> str:
    return call.raw_arguments if call.raw_arguments is not None else dumps(call.arguments)


@dataclass(slots=True)
class _Building:
    """A choice under construction: finished parts, and the text that is still growing."""

    parts: list[Part] = field(default_factory=list[Part])
    growing: type[TextPart] | type[ThinkingPart] | None = None
    pieces: list[str] = field(default_factory=list[str])
    end: ChoiceEnd = ChoiceEnd()

    def grow(self, kind: type[TextPart] | type[ThinkingPart], text: str) -> None:
        if self.growing is not kind:
            self.close()
        self.growing = kind
        self.pieces.append(text)

    def close(self) -> None:
        if self.growing is not None:
            self.parts.append(self.growing("".join(self.pieces)))
        self.growing, self.pieces = None, []

    def finish(self) -> Choice:
        self.close()
        rest: dict[str, Any] = {
            name: getattr(self.end, name) for name in ("finish_reason", "refusal", "logprobs", "citations", "raw")
        }
        choice = Choice.from_parts(self.parts if self.end.parts is None else self.end.parts, **rest)
        if self.end.ordered:
            return choice
        return Choice(choice.text, choice.tool_calls, choice.reasoning, **rest)


def collect(events: Iterable[StreamEvent]) -> Response:
    """Put the events of one answer together.

    >>> collect([TextDelta("4"), TextDelta("2"), ChoiceEnd("stop")]).choices[0].text
    '42'
    """
    start, usage, end = ResponseStart(), Usage(), ResponseEnd()
    choices: defaultdict[int, _Building] = defaultdict(_Building)
    for event in events:
        match event:
            case TextDelta():  # nearly every event there is
                choices[event.choice].grow(TextPart, event.text)
            case ResponseStart():
                start = event
            case UsageUpdate():
                usage = event.usage
            case ResponseEnd():
                end = event
            case ToolCallStart() | ToolCallDelta():
                pass  # shown while they grow; only the end counts
            case _:
                _add_to(choices[event.choice], event)
    return Response(
        tuple(choices[number].finish() for number in sorted(choices)),
        usage,
        start.model,
        start.id,
        end.warnings,
        end.attempts,
        end.raw,
    )


def _add_to(choice: _Building, event: ReasoningDelta | PartEnd | ToolCallEnd | ChoiceEnd) -> None:
    match event:
        case ReasoningDelta():
            choice.grow(ThinkingPart, event.text)
        case PartEnd():
            if choice.growing is type(event.part):
                choice.growing, choice.pieces = None, []
            choice.close()
            choice.parts.append(event.part)
        case ToolCallEnd():
            choice.close()
            choice.parts.append(event.call)
        case ChoiceEnd():
            choice.end = event
