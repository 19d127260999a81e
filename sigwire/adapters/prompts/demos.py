"""Demos as messages, marked so that a model does not mistake them for the conversation.

Each demo is an exchange: a user message and the reply. The system message states the number of exchanges
(``examples_note``); with the demo layout "system" it holds the demos as text. Incomplete demos precede complete ones and are
marked; a demo without any input or any output is omitted.

A demo with a history, such as a run of an agent, begins with the turns of the history.

A written demo is cached until it changes: an ``Example`` counts its changes, values of a dict are compared by identity.
Demos with mutable values are written every time. The cache is bounded. A list of unchanged ``Example`` objects is
recognized as a whole, so that its cost does not grow with the length of the demos.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, is_
from typing import NamedTuple, cast

from sigwire.adapters.prompts.history import HistoryWriter
from sigwire.adapters.prompts.turns import RESULT_NAMES, TurnWriter, numbered_calls, read_calls_value, read_results
from sigwire.core.messages import Message
from sigwire.core.narrow import is_mapping
from sigwire.core.parts import TextPart
from sigwire.core.record import FieldValues
from sigwire.core.tools.calls import ToolCalls, ToolResult
from sigwire.errors import DemoWarning, InputError, similar_name, warn_user
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.types.history import History

__all__ = ["EXAMPLE", "EXAMPLES_NOTE", "DemoWriter", "examples_note"]

EXAMPLE = "Example:"
_PARTIAL = "Example (some fields omitted):"
EXAMPLES_NOTE = "The examples above show the task. They are not part of the conversation."
_NO_RESULT = "(result omitted)"
_IMMUTABLE = (str, int, float, bool, bytes, type(None), ToolCalls)
_MAX_DEMOS = 1024
_IGNORED = RESULT_NAMES | {"augmented"}  # a mark of demos that a run made
_version_of = attrgetter("_version")


@dataclass(slots=True)
class _CachedDemo:
    """A written demo, the state of the demo at that time, and its position if the messages depend on it."""

    demo: object
    state: object
    position: int | None
    messages: tuple[Message, ...]
    complete: bool


class _CachedDemos(NamedTuple):
    demos: tuple[object, ...]
    versions: list[object]
    exchanges: list[tuple[Message, ...]]


def examples_note(count: int) -> str:
    """Return the sentence of the system message that separates ``count`` demos from the conversation.

    >>> examples_note(2)
    'The first 2 exchanges are examples of the task, not part of the conversation.'
    """
    if count == 1:
        return "The first exchange is an example of the task, not part of the conversation."
    return f"The first {count} exchanges are examples of the task, not part of the conversation." if count else ""


class DemoWriter:
    """Writes the demos of one plan. ``mark`` is the first line of a complete demo, ``known`` the signature's fields.

    ``hidden``: outputs that the model does not write, its reasoning; the user message of a demo has them. A demo that lacks a
    field and has one of a similar name is a ``DemoWarning``, once for each name; an ``InputError`` if ``strict``. Other
    unknown fields, such as those of a dataset, are ignored, unless the demo has nothing else to show.
    """

    __slots__ = (
        "_cache",
        "_hidden",
        "_history",
        "_history_name",
        "_inputs",
        "_known",
        "_last",
        "_mark",
        "_outputs",
        "_strict",
        "_turns",
        "_warned",
    )

    def __init__(
        self,
        turns: TurnWriter,
        mark: str,
        known: Mapping[str, object],
        hidden: tuple[FieldSpec, ...] = (),
        *,
        history: str | None = None,
        strict: bool,
    ) -> None:
        visible = turns.layout.visible
        self._history, self._history_name = HistoryWriter(turns, frozenset(known)), history
        self._turns, self._hidden = turns, hidden
        self._mark, self._known, self._strict = mark, known, strict
        self._warned: set[str] = set()
        self._inputs = tuple(spec.name for spec in visible.inputs)
        self._outputs = tuple(spec.name for spec in visible.outputs)
        self._cache: dict[int, _CachedDemo] = {}
        self._last: _CachedDemos | None = None

    def exchanges(self, demos: Iterable[object]) -> Sequence[tuple[Message, ...]]:
        """Return the demos as turns, incomplete ones first."""
        demos, last = tuple(demos), self._last
        try:
            versions = [*map(_version_of, demos)]
        except AttributeError:  # a dict has no version
            return self._exchanges(demos)
        if last is not None and versions == last.versions and all(map(is_, demos, last.demos)):
            return last.exchanges
        exchanges = self._exchanges(demos)
        if all(id(demo) in self._cache for demo in demos):
            self._last = _CachedDemos(demos, versions, exchanges)
        return exchanges

    def _exchanges(self, demos: tuple[object, ...]) -> list[tuple[Message, ...]]:
        partial: list[tuple[Message, ...]] = []
        complete: list[tuple[Message, ...]] = []
        for position, demo in enumerate(demos):
            cached = self._cache.get(id(demo))
            if cached is None or not _is_current(cached, demo, position):
                cached = self._write(demo, position)
            if cached.messages:
                (complete if cached.complete else partial).append(cached.messages)
        return partial + complete

    def text(self, demos: Iterable[object]) -> str:
        """Return the demos as a part of the system message."""
        return "\n\n".join(
            f"--- {message.role} ---\n{message.text}" if message.role != "user" else message.text
            for exchange in self.exchanges(demos)
            for message in exchange
        )

    def _write(self, demo: object, position: int) -> _CachedDemo:
        values = _fields_of(demo)
        calls, past = self._calls_in(values), self._past(values)
        shown = (_share(past, self._inputs, values), _share(calls, self._outputs, values))
        complete = shown == (1, 1)
        messages = self._messages(values, calls, complete, position, past) if all(shown) else ()
        self._check_names(values, is_omitted=not messages)
        has_ids = bool(calls or past) and self._turns.native
        written = _CachedDemo(demo, _state(demo, values), position if has_ids else None, messages, complete)
        self._keep(written)
        return written

    def _keep(self, written: _CachedDemo) -> None:
        if written.state is None:
            self._cache.pop(id(written.demo), None)
            return
        if len(self._cache) >= _MAX_DEMOS:
            self._cache.clear()
        self._cache[id(written.demo)] = written

    def _past(self, values: FieldValues) -> list[Message]:
        past: list[Message] = []
        if self._history_name is not None and (turns := values.get(self._history_name)):
            self._history.extend(past, History.read(turns))
        return past

    def _check_names(self, values: FieldValues, *, is_omitted: bool) -> None:
        names = (*self._inputs, *self._outputs)
        missing = [name for name in names if name not in values]
        unknown = {str(name) for name in values} - self._known.keys() - _IGNORED - self._warned
        wrong = _misspelt(unknown, missing, is_omitted) if unknown and missing else {}
        if not wrong:
            return
        shown = ", ".join(f"{name!r}{hint}" for name, hint in wrong.items())
        text = f"A demo has no {', '.join(map(repr, missing))}, but an unknown {shown}. The fields are: {', '.join(names)}."
        if self._strict:
            raise InputError(text)
        self._warned |= wrong.keys()
        warn_user(text, DemoWarning)

    def _calls_in(self, values: FieldValues) -> ToolCalls:
        return read_calls_value(values.get(self._turns.calls_name)) if self._turns.calls_name else ToolCalls()

    def _notes(self, values: FieldValues) -> str:
        hidden = {field.name: values[field.name] for field in self._hidden if values.get(field.name)}
        return self._turns.layout.escaper.escape(
            "\n\n".join(f"{name} of this example:\n{value}" for name, value in hidden.items())
        )

    def _messages(
        self, values: FieldValues, calls: ToolCalls, complete: bool, position: int, past: list[Message]
    ) -> tuple[Message, ...]:
        prefix = f"example_{position}_"
        after = self._notes(values) if self._hidden else ""
        mark = self._mark if complete else _PARTIAL
        earlier = _marked(numbered_calls(past, prefix), mark)
        if earlier:
            mark, prefix = "", f"{prefix}last_"
        messages = (*earlier, *self._turns.turn(values, mark, after, prefix))
        if not calls or not self._turns.native or any(read_results(values)):
            return messages
        # Every provider requires that a call is answered before the next message.
        results = (ToolResult(f"{prefix}{at}", call.name, _NO_RESULT) for at, call in enumerate(calls))
        return (*messages, Message.tool(*results))


def _marked(messages: tuple[Message, ...], mark: str) -> tuple[Message, ...]:
    if not mark or not messages:
        return messages
    first = messages[0]
    return (Message(first.role, (TextPart(f"{mark}\n\n"), *first.parts)), *messages[1:])


def _misspelt(unknown: Iterable[str], missing: Sequence[str], is_omitted: bool) -> dict[str, str]:
    """Return a hint for each unknown field that resembles a missing one; for each at all if the demo is omitted."""
    nearest = {name: similar_name(name, missing) for name in sorted(unknown)}
    return {name: f" (did you mean {near!r}?)" if near else "" for name, near in nearest.items() if near or is_omitted}


def _share(others: Iterable[object], names: tuple[str, ...], values: FieldValues) -> float:
    """Return the share of the fields that a demo has: all if it has turns, or calls, in their place."""
    if any(True for _ in others):
        return 1
    return sum(name in values for name in names) / len(names) if names else 0


def _fields_of(demo: object) -> FieldValues:
    """Return the fields of a mapping or an ``Example``. Raises ``InputError`` for other objects."""
    try:
        return demo if is_mapping(demo) else vars(demo)
    except TypeError:
        raise InputError(
            f"A demo is an Example or a dict of fields, not {type(demo).__name__}. Write demos=[Example(...), ...]."
        ) from None


def _state(demo: object, values: FieldValues) -> object:
    """Return a state that changes with the demo; ``None`` if no state can show every change."""
    if not all(isinstance(value, _IMMUTABLE) for value in values.values()):
        return None
    version = getattr(demo, "_version", None)
    return version if isinstance(version, int) else dict(values)


def _is_current(cached: _CachedDemo, demo: object, position: int) -> bool:
    if cached.demo is not demo or (cached.position is not None and cached.position != position):
        return False
    state = cached.state
    if isinstance(state, dict):
        before, fields = cast("dict[str, object]", state), _fields_of(demo)
        return before.keys() == fields.keys() and all(fields[name] is value for name, value in before.items())
    return state == getattr(demo, "_version", None)
