"""Turns as messages: a turn of field values, or a past message, in the form that the model takes.

A model with native tools gets calls and results as parts. Any other model gets them as text in the plan's style: calls in the
assistant's text, results in a user message, because such a model knows no role "tool".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.text_tools.styles import TAUGHT, CallStyle
from sigwire.core.messages import Message, Part
from sigwire.core.narrow import is_mapping
from sigwire.core.parts import TextPart
from sigwire.core.record import FieldValues
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult, with_call_id

__all__ = ["RESULT_NAMES", "TurnWriter", "numbered_calls", "read_calls_value", "read_results"]

_RESULT_KEYS = ("tool_results", "tool_call_results")
RESULT_NAMES = frozenset(_RESULT_KEYS)


@dataclass(frozen=True, slots=True)
class TurnWriter:
    """Turns field values into messages. ``native``: calls and results are parts, not text."""

    layout: Layout
    calls_name: str | None
    native: bool
    style: CallStyle = TAUGHT

    def turn(self, values: FieldValues, before: str = "", after: str = "", prefix: str = "") -> tuple[Message, ...]:
        """Return the messages of one exchange: inputs, outputs with calls, results. Messages without values are omitted.

        ``before`` and ``after`` are texts around the inputs; call ids start with ``prefix``.
        """
        layout = self.layout
        asked: tuple[Message, ...] = ()
        if before or not layout.input_names.isdisjoint(values):
            asked = (Message("user", layout.write_inputs(values, before, after)),)
        text = layout.write(values)
        if not RESULT_NAMES.isdisjoint(values) or (self.calls_name is not None and values.get(self.calls_name)):
            return (*asked, *self._calls_and_results(values, text, prefix))
        return (*asked, Message("assistant", (TextPart(text),))) if text else asked

    def _calls_and_results(self, values: FieldValues, text: str, prefix: str) -> Iterator[Message]:
        calls = read_calls_value(values.get(self.calls_name)) if self.calls_name else ToolCalls()
        ids = {call.id: f"{prefix}{number}" if prefix else call.id for number, call in enumerate(calls)}
        text = text or calls.text
        if text or calls:
            yield self.assistant(text, tuple(with_call_id(call, ids[call.id]) for call in calls))
        results = tuple(replace(result, id=ids.get(result.id, result.id)) for result in read_results(values))
        if results:
            yield self.results(results)

    def assistant(self, text: str, calls: tuple[ToolCall, ...]) -> Message:
        """Return an assistant message: the text, then the calls."""
        if self.native or not calls:
            return Message.assistant(text, calls)
        return Message.assistant("\n\n".join([*([text] if text else ()), self.style.calls(calls)]))

    def results(self, results: Sequence[ToolResult]) -> Message:
        """Return the message with the results of tools."""
        return Message.tool(*results) if self.native else Message("user", self._results_as_text(results))

    def message(self, message: Message) -> Message:
        """Return a past message in the form that this model takes."""
        if self.native or not (message.tool_calls or message.tool_results):
            return message
        if message.role == "tool":
            return Message("user", self._results_as_text(message.tool_results))
        return Message(message.role, self._calls_as_text(message.parts))

    def _results_as_text(self, results: Iterable[ToolResult]) -> tuple[Part, ...]:
        parts: list[Part] = []
        texts: list[str] = []
        for result in results:
            texts.append(self.style.result(result))
            if result.media:
                parts += [TextPart("\n\n".join(texts)), *result.media]
                texts = []
        if texts:
            parts.append(TextPart("\n\n".join(texts)))
        return tuple(parts)

    def _calls_as_text(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        written: list[Part] = []
        for kind, group in groupby(parts, type):
            members = list(group)
            calls = [member for member in members if isinstance(member, ToolCall)]
            texts = (
                [self.style.calls(calls)] if calls else [part.text for part in members if isinstance(part, TextPart)]
            )
            if kind not in (TextPart, ToolCall):
                written += members
            elif written and isinstance(last := written[-1], TextPart):
                written[-1] = TextPart("\n\n".join([last.text.rstrip(), *texts]))
            else:
                written.append(TextPart("\n\n".join(texts)))
        return tuple(written)


def numbered_calls(messages: Iterable[Message], prefix: str) -> tuple[Message, ...]:
    """Return messages in which calls, and their results, have the ids ``<prefix>0``, ``<prefix>1``, ..."""
    ids: dict[str, str] = {}

    def renamed(part: Part) -> Part:
        if not isinstance(part, (ToolCall, ToolResult)):
            return part
        if isinstance(part, ToolCall):
            ids[part.id] = f"{prefix}{len(ids)}"
        return replace(part, id=ids.get(part.id, part.id))

    return tuple(replace(message, parts=tuple(map(renamed, message.parts))) for message in messages)


def read_calls_value(value: Any) -> ToolCalls:
    """Return the ``ToolCalls`` of a demo or a turn, which holds the object, its JSON, or a list of call mappings.

    >>> read_calls_value([{"name": "add", "args": {"a": 1}}])[0].name
    'add'
    """
    if isinstance(value, ToolCalls):
        return value
    if not value:
        return ToolCalls()
    if is_mapping(value) and "tool_calls" in value:
        return ToolCalls(value["tool_calls"], str(value.get("text") or ""))
    return ToolCalls([value] if isinstance(value, ToolCall) or is_mapping(value) else value)


def read_results(values: FieldValues) -> Iterator[ToolResult]:
    """Yield the tool results of a turn: ``ToolResult`` objects, their JSON, or the items that calls may hold."""
    held: list[Any] = [getattr(value, "tool_call_results", None) for value in values.values()]
    for found in [*map(values.get, _RESULT_KEYS), *held]:
        items: Any = next((found[key] for key in _RESULT_KEYS if key in found), ()) if is_mapping(found) else found
        for item in getattr(items, "tool_call_results", items) or ():
            yield item if isinstance(item, ToolResult) else _result_of(item)


def _result_of(item: object) -> ToolResult:
    data: Mapping[str, Any] = item if is_mapping(item) else vars(item)
    content = data["content"] if "content" in data else data.get("value", "")
    id = data.get("id") or data.get("call_id") or ""
    return ToolResult(str(id), str(data.get("name") or ""), content, bool(data.get("is_error", False)))
