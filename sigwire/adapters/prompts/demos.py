"""Demos as messages: examples that a model cannot mistake for the conversation.

Each example is an exchange: a user message and the reply. The system message states how many there are (``examples_note``).
With the layout "system" they are text in the system message instead. Incomplete examples come first and are marked as such;
an example without any input or any output is omitted.

A demo is written once, and again only when it changed: an ``Example`` counts its changes, and of a dict the values are
compared by identity. Demos with mutable values are written every time. The store is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from sigwire.adapters.prompts.turns import TurnWriter, read_calls_value, read_results
from sigwire.core.messages import Message
from sigwire.core.narrow import is_mapping
from sigwire.core.tools.calls import ToolCalls, ToolResult
from sigwire.errors import InputError

__all__ = ["EXAMPLE", "EXAMPLES_NOTE", "DemoLayout", "DemoWriter", "examples_note"]

DemoLayout: TypeAlias = Literal["turns", "system"]

EXAMPLE = "Example:"
_PARTIAL = "Example (some fields omitted):"
EXAMPLES_NOTE = "The examples above show the task. They are not part of the conversation."
_NO_RESULT = "(result omitted)"
_IMMUTABLE = (str, int, float, bool, bytes, type(None), ToolCalls)
_KEPT = 1024


@dataclass(slots=True)
class _CachedDemo:
    """A demo as it was written: for which state of it, and at which position if that matters."""

    demo: Any
    state: Any
    position: int | None
    messages: tuple[Message, ...]
    complete: bool


def examples_note(count: int) -> str:
    """The sentence of the system message that separates ``count`` examples from the conversation.

    >>> examples_note(2)
    'The first 2 exchanges are examples of the task, not part of the conversation.'
    """
    if count == 1:
        return "The first exchange is an example of the task, not part of the conversation."
    return f"The first {count} exchanges are examples of the task, not part of the conversation." if count else ""


class DemoWriter:
    """Writes the demos of one plan. ``mark`` is the first line of a complete example."""

    __slots__ = ("_inputs", "_kept", "_mark", "_outputs", "_speaker")

    def __init__(self, speaker: TurnWriter, mark: str = "") -> None:
        visible = speaker.layout.visible
        self._speaker = speaker
        self._mark = mark
        self._inputs = tuple(spec.name for spec in visible.inputs)
        self._outputs = tuple(spec.name for spec in visible.outputs)
        self._kept: dict[int, _CachedDemo] = {}

    def exchanges(self, demos: Iterable[Any]) -> list[tuple[Message, ...]]:
        """The examples as turns, incomplete ones first."""
        partial: list[tuple[Message, ...]] = []
        complete: list[tuple[Message, ...]] = []
        for position, demo in enumerate(demos):
            written = self._kept.get(id(demo))
            if written is None or not _is_current(written, demo, position):
                written = self._write(demo, position)
            if written.messages:
                (complete if written.complete else partial).append(written.messages)
        return partial + complete

    def text(self, demos: Iterable[Any]) -> str:
        """The examples as a part of the system message."""
        return "\n\n".join(
            f"--- {message.role} ---\n{message.text}" if message.role != "user" else message.text
            for exchange in self.exchanges(demos)
            for message in exchange
        )

    def _write(self, demo: Any, position: int) -> _CachedDemo:
        values = fields_of(demo)
        messages, complete, positional = self._speak(values, position)
        written = _CachedDemo(demo, _state(demo, values), position if positional else None, messages, complete)
        if written.state is not None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[id(demo)] = written
        return written

    def _speak(self, values: Mapping[str, Any], position: int) -> tuple[tuple[Message, ...], bool, bool]:
        speaker = self._speaker
        calls = read_calls_value(values.get(speaker.calls_name)) if speaker.calls_name else ToolCalls()
        has_inputs = any(name in values for name in self._inputs)
        has_outputs = bool(calls) or any(name in values for name in self._outputs)
        if not has_inputs or not has_outputs:
            return (), True, False
        complete = all(name in values for name in self._inputs) and (
            bool(calls) or all(name in values for name in self._outputs)
        )
        prefix = f"example_{position}_"
        messages = list(speaker.turn(values, self._mark if complete else _PARTIAL, prefix=prefix))
        if calls and speaker.native and not any(read_results(values)):
            # Every provider wants a call answered before the next message.
            messages.append(
                Message.tool(*(ToolResult(f"{prefix}{at}", call.name, _NO_RESULT) for at, call in enumerate(calls)))
            )
        return tuple(messages), complete, bool(calls) and speaker.native


def fields_of(demo: object) -> Mapping[str, Any]:
    """A demo's fields: of a mapping itself, of an ``Example`` its attributes. Raises ``InputError`` for what has none."""
    try:
        return demo if is_mapping(demo) else vars(demo)
    except TypeError:
        raise InputError(
            f"A demo is an Example or a dict of fields, not {type(demo).__name__}. Write demos=[Example(...), ...]."
        ) from None


def _state(demo: Any, values: Mapping[str, Any]) -> object:
    """What tells whether a demo is still what it was; ``None`` when nothing can tell."""
    if not all(isinstance(value, _IMMUTABLE) for value in values.values()):
        return None
    version = getattr(demo, "_version", None)
    return version if isinstance(version, int) else dict(values)


def _is_current(written: _CachedDemo, demo: Any, position: int) -> bool:
    if written.demo is not demo or (written.position is not None and written.position != position):
        return False
    state = written.state
    if isinstance(state, dict):
        kept, fields = cast("dict[str, Any]", state), fields_of(demo)
        return kept.keys() == fields.keys() and all(fields[name] is value for name, value in kept.items())
    return bool(state == demo._version)
