"""``FieldReader``: the events of a response in, the events of a program out.

Each choice of a response is read by itself: its text goes through the scan for calls, where tools are on offer, and past
thinking into the layout's pieces, which tell the fields. What a layout did not tell as it came is told at the end of the
choice, from the plan's own reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from sigwire.adapters.streaming.opening import Opening
from sigwire.adapters.streaming.texts import is_text, tell
from sigwire.adapters.streaming.told import Told
from sigwire.adapters.text_tools import TextReader
from sigwire.core.events import (
    ChoiceEnd,
    ProgramEvent,
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageUpdate,
)
from sigwire.core.json import dumps
from sigwire.core.response import Choice
from sigwire.core.tools import Tool, ToolCall
from sigwire.errors import ModelError

if TYPE_CHECKING:
    from sigwire.adapters.plan import Plan

__all__ = ["FieldReader"]

_CUT = frozenset({"content_filter", "error", "length"})  # what has come of a field then is not all of it


class FieldReader:
    """Reads one response in pieces. ``tools`` are those on offer, ``taken`` the ids of calls that are used already.

    >>> from sigwire.adapters.chat import ChatAdapter
    >>> from sigwire.signatures import Signature
    >>> reader = FieldReader(ChatAdapter().plan(Signature("question -> answer")))
    >>> [event.text for event in reader.feed(TextDelta("[[ ## answer ## ]]\\nParis, o"))]
    ['Paris, o']
    >>> [type(event).__name__ for event in reader.feed(TextDelta("f course.\\n\\n[[ ## completed ## ]]"))]
    ['FieldDelta', 'FieldEnd']
    """

    __slots__ = ("_choices", "_make", "_path", "_turn")

    def __init__(
        self,
        plan: Plan,
        tools: tuple[Tool, ...] = (),
        path: str = "",
        turn: int | None = None,
        taken: Iterable[str] = (),
    ) -> None:
        self._path, self._turn = path, turn
        self._choices: dict[int, _Choice] = {}
        self._make: Callable[[int], _Choice] = lambda number: _Choice(plan, tools, Told(path, turn, number), taken)

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        """What an event of the response means for the fields."""
        if type(event) is UsageUpdate:
            return (UsageUpdate(event.usage, path=self._path, turn=self._turn),)
        number: int | None = getattr(event, "choice", None)
        if number is None:
            return ()
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = self._make(number)
        return choice.feed(event)

    def close(self) -> Iterable[ProgramEvent]:
        """What is left to say at the response's end."""
        return [event for choice in self._choices.values() for event in choice.end(ChoiceEnd())]


class _Choice:
    """One choice of a response."""

    __slots__ = ("_calls", "_ended", "_free", "_opening", "_plan", "_scan", "_text", "_thinking", "_thought", "told")

    def __init__(self, plan: Plan, tools: tuple[Tool, ...], told: Told, taken: Iterable[str]) -> None:
        self._plan, self.told = plan, told
        self._thinking = tuple(spec.name for spec in plan.thinking)
        pieces = plan.layout.pieces(told)
        self._free = plan.layout.free or not plan.layout.outputs
        self._opening = Opening(pieces, plan.thoughts) if pieces is not None else None
        self._scan: TextReader | None = None
        if plan.layout.visible.calls and tools:
            names = [tool.name for tool in tools]
            self._scan = TextReader(names, strict=plan.adapter.strict, taken=taken)
        self._text: list[str] = []
        self._thought: list[str] = []
        self._calls: list[ToolCall] = []
        self._ended = False

    def feed(self, event: object) -> list[ProgramEvent]:
        """An event of this choice."""
        handle = self._HANDLERS.get(type(event))
        if handle is not None:
            handle(self, event)
        return self.told.take()

    def end(self, event: ChoiceEnd) -> list[ProgramEvent]:
        """The end of the choice, told or not."""
        self._end(event)
        return self.told.take()

    # --- one event after another -----------------------------------------------------------------------

    def _read(self, event: TextDelta) -> None:
        self._text.append(event.text)
        if self._scan is None:
            self._say(event.text)
        else:
            self._said(self._scan.feed(event.text))

    def _said(self, events: Iterable[TextDelta | ReasoningDelta | ToolCallEnd]) -> None:
        """What the scan for calls made of the text."""
        for event in events:
            if isinstance(event, TextDelta):
                self._say(event.text)
            elif isinstance(event, ReasoningDelta):
                self.told.reasoning(event.text)
            else:
                self._tell_call(event.index, event.call)

    def _tell_call(self, index: int, call: ToolCall) -> None:
        """A call that was written as text, told as one that was not."""
        self.told.call_start(index, call.id, call.name)
        self.told.call_delta(index, call.raw_arguments if call.raw_arguments is not None else dumps(call.arguments))
        self.told.call_end(index, call)

    def _say(self, text: str) -> None:
        if self._free:
            self.told.free_text(text)
        elif self._opening is not None:
            self._opening.feed(text)

    def _think(self, event: ReasoningDelta) -> None:
        self._thought.append(event.text)
        if not self._thinking:
            self.told.reasoning(event.text)
        for name in self._thinking:
            self.told.text(name, event.text)

    def _begin_call(self, event: ToolCallStart) -> None:
        self.told.call_start(event.index, event.id, event.name)

    def _grow_call(self, event: ToolCallDelta) -> None:
        self.told.call_delta(event.index, event.arguments)

    def _end_call(self, event: ToolCallEnd) -> None:
        self._calls.append(event.call)
        self.told.call_end(event.index, event.call)

    def _end(self, event: ChoiceEnd) -> None:
        if self._ended:
            return
        self._ended = True
        if self._scan is not None:
            self._said(self._scan.close())
        for name in self._thinking:
            self.told.end(name)
        if self._opening is not None and event.refusal is None and event.finish_reason not in _CUT:
            self._opening.close()
        if any(name not in self.told.ended for name, _ in self._plan.layout.outputs):
            self._tell_rest(self._choice(event))

    def _choice(self, event: ChoiceEnd) -> Choice:
        """The choice as the plan will read it."""
        scan = self._scan.scan if self._scan is not None and not self._calls else None
        text = scan.text if scan is not None and scan.calls else "".join(self._text)
        calls = scan.calls if scan is not None else tuple(self._calls)
        thought = "".join(self._thought) if self._thought else None
        return Choice(text, calls, thought, event.refusal, event.finish_reason)

    def _tell_rest(self, choice: Choice) -> None:
        """Tell the outputs that were not told yet, from the reading that the prediction is made of."""
        try:
            fields = self._plan.parse(choice).fields
        except ModelError:
            return
        for name, codec in self._plan.layout.outputs:
            if name in fields and name not in self.told.ended and not (is_text(codec) and name in self.told.begun):
                tell(codec, fields[name], self.told)

    _HANDLERS: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        ChoiceEnd: _end,
        ReasoningDelta: _think,
        TextDelta: _read,
        ToolCallDelta: _grow_call,
        ToolCallEnd: _end_call,
        ToolCallStart: _begin_call,
    }
