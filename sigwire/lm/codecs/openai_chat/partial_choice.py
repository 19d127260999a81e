"""Chat completions, streamed: one choice that is not complete yet. Its deltas become events and are joined into a choice.

``_READERS`` has the reader of each field of a delta. An unknown field is kept: a text or number replaces the value before,
lists are concatenated, objects are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

from sigwire.core.events import PartEnd, ReasoningDelta, StreamEvent, TextDelta, ToolCallDelta, ToolCallStart
from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.openai_chat.decoding import decode_content, thinking_text
from sigwire.lm.codecs.openai_chat.partial_calls import PartialCall, PartialCalls
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.openai_chat.think_tags import ThinkTags
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = ["PartialChoice"]

_StartCall: TypeAlias = Callable[[PartialCall, int], tuple[str, str]]
"""Return the id and the name for the event that starts a call of a choice."""


class PartialChoice:
    """One choice of a stream: ``read`` yields the events of a chunk, ``wire_choice`` returns the joined choice."""

    def __init__(self, number: int, profile: ChatProfile, names: Collection[str], start_call: _StartCall) -> None:
        self.number = number
        self._calls = PartialCalls(names)
        self._started = 0  # the calls before this position have their event; one without a name gets it with its name
        self._profile, self._start_call = profile, start_call
        self._fields: JsonObject = {}  # of the choice
        self._message: JsonObject = {}  # fields of the message that have no reader
        self._texts: dict[str, list[str]] = {}
        self._lists = {name: _DeltaMerger(fields) for name, fields in _DELTA_FIELDS.items()}
        self._audio: dict[str, list[str]] = {}
        self._reasoning_field = ""  # the one whose reasoning is emitted: some hosts send two with the same text
        self._has_content_list = self._reasoning_ended = False
        self._is_in_text = False  # the next delta of text needs no look at reasoning or tags
        self._tags = ThinkTags() if profile.think_tags else None

    @property
    def is_finished(self) -> bool:
        """Whether the finish reason has arrived."""
        return bool(self._fields.get("finish_reason"))

    def read(self, choice: JsonObject) -> Iterator[StreamEvent]:
        """Yield the events of a chunk."""
        for name, value in choice.items():
            if name not in ("delta", "index", "message"):
                _merge_field(self._fields, name, value)
        delta = object_of(choice.get("delta"))
        for name, read in self._READERS.items():
            if (value := delta.get(name)) is not None and value != "":
                yield from read(self, value)
        for name, value in delta.items():
            if name not in self._READERS:
                _merge_field(self._message, name, value)
        self._is_in_text = self._reasoning_ended and self._tags is None

    def text_delta(self, choice: JsonObject) -> TextDelta | None:
        """Return the event of a chunk that only continues the text. Of any other chunk nothing is read: None."""
        delta = choice.get("delta")
        if not self._is_in_text or not isinstance(delta, dict):
            return None
        text = delta.get("content")
        if not isinstance(text, str) or not text or (len(delta) > 1 and not self._has_only_text(delta)):
            return None
        for name, value in choice.items():
            if value is not None and name not in _DELTA_ONLY:
                return None
        self._lists["content"].add_text(text)
        return TextDelta(text, self.number)

    def _has_only_text(self, delta: JsonObject) -> bool:
        return len(delta) == 2 and "role" in delta and "role" in self._message

    def end(self) -> Iterator[StreamEvent]:
        """Yield the events of what the reader of tags still holds, and the end of the reasoning."""
        for kind, text in self._tags.close() if self._tags else ():
            yield from self._emit_reasoning(text, "tags") if kind == "thinking" else self._emit_text(text)
        yield from self.end_reasoning()
        for call in self._calls:
            yield from self._start_named(call)

    def wire_choice(self) -> JsonObject:
        """Return the choice in the shape that ``decode`` reads."""
        return {"index": self.number, **self._fields, "message": self.wire_message()}

    def wire_message(self) -> JsonObject:
        """Return the partial message of the choice."""
        texts: JsonObject = {name: "".join(deltas) for name, deltas in self._texts.items()}
        lists: JsonObject = {name: items for name, merger in self._lists.items() if (items := merger.items())}
        content: JsonObject = {"content": "".join(self._lists["content"].texts()) or None}
        audio: JsonObject = {name: "".join(deltas) for name, deltas in self._audio.items()}
        calls: list[JsonValue] = [call.wire_call() for call in self._calls]
        return {
            **self._message,
            **texts,
            **lists,
            **({} if self._has_content_list else content),
            **({"audio": {**object_of(self._message.get("audio")), **audio}} if audio else {}),
            **({"tool_calls": calls} if calls else {}),
        }

    # --- readers of a delta's fields

    def _read_content(self, value: JsonValue) -> Iterator[StreamEvent]:
        if isinstance(value, str):
            self._lists["content"].add_text(value)
            yield from self._read_text(value)
            return
        for chunk in objects_of(value):
            self._has_content_list = True
            if chunk.get("type") == "thinking":
                text = thinking_text(chunk)
                self._lists["content"].add({**chunk, "thinking": text})
                yield from self._emit_reasoning(text, "content")
            else:
                self._lists["content"].add(chunk)
                yield from self._read_text(string_of(chunk, "text") or "")

    def _read_text(self, text: str) -> Iterator[StreamEvent]:
        if self._tags is None or self._reasoning_field not in ("", "tags"):
            yield from self._emit_text(text)
            return
        for kind, part in self._tags.feed(text):
            yield from self._emit_reasoning(part, "tags") if kind == "thinking" else self._emit_text(part)
        if self._tags.is_done:
            self._tags = None

    def _read_reasoning(self, name: str, value: JsonValue) -> Iterator[StreamEvent]:
        if isinstance(value, str):
            self._texts.setdefault(name, []).append(value)
            yield from self._emit_reasoning(value, name)

    def _read_details(self, value: JsonValue) -> Iterator[StreamEvent]:
        for detail in objects_of(value):
            self._lists["reasoning_details"].add(detail)
            text = string_of(detail, "text") or string_of(detail, "summary") or ""
            yield from self._emit_reasoning(text, "reasoning_details")

    def _read_blocks(self, value: JsonValue) -> Iterator[StreamEvent]:
        for block in objects_of(value):
            self._lists["thinking_blocks"].add(block)
        yield from ()

    def _read_refusal(self, value: JsonValue) -> Iterator[StreamEvent]:
        if isinstance(value, str):
            self._texts.setdefault("refusal", []).append(value)
        yield from ()

    def _read_audio(self, value: JsonValue) -> Iterator[StreamEvent]:
        for name, delta in object_of(value).items():
            if name in ("data", "transcript") and isinstance(delta, str):
                self._audio.setdefault(name, []).append(delta)
            else:
                _merge_field(self._message, "audio", {name: delta})
        yield from self._emit_text(string_of(value, "transcript") or "")

    def _read_calls(self, value: JsonValue) -> Iterator[StreamEvent]:
        for fragment in objects_of(value):
            yield from self._emit_call(self._calls.add(fragment))

    def _read_function_call(self, value: JsonValue) -> Iterator[StreamEvent]:
        """Read the single call of the format that ``tool_calls`` replaced."""
        yield from self._emit_call(self._calls.add({"index": 0, "function": value}))

    # --- events

    def _emit_text(self, text: str) -> Iterator[StreamEvent]:
        if text:
            yield from self.end_reasoning()
            yield TextDelta(text, self.number)

    def _emit_reasoning(self, text: str, field: str) -> Iterator[StreamEvent]:
        self._reasoning_field = self._reasoning_field or (field if text else "")
        if text and field == self._reasoning_field:
            yield ReasoningDelta(text, self.number)

    def end_reasoning(self) -> Iterator[StreamEvent]:
        """Yield the reasoning before the text as parts, as ``decode`` returns them; nothing at a second call."""
        if not self._reasoning_ended:
            self._reasoning_ended = True
            for part in decode_content(self.wire_message(), self._profile)[0]:
                yield PartEnd(part, self.number)

    def _emit_call(self, call: PartialCall) -> Iterator[StreamEvent]:
        """Yield the start of a call once its name is complete, then the arguments that no event has yet."""
        if call.emitted < 0:
            if not call.has_name(self._calls.names):
                return
            for each in self._calls.between(
                min(self._started, call.position), call.position
            ):  # those before are complete
                yield from self._start_named(each)
            self._started = max(self._started, call.position + 1)
        for delta in call.deltas[call.emitted :]:
            yield ToolCallDelta(call.position, delta, self.number)
        call.emitted = len(call.deltas)

    def _start_named(self, call: PartialCall) -> Iterator[StreamEvent]:
        if call.name and call.emitted < 0:
            yield from self.end_reasoning()
            yield ToolCallStart(call.position, *self._start_call(call, self.number), self.number)
            call.emitted = 0

    _READERS: ClassVar[Mapping[str, Callable[[Any, JsonValue], Iterator[StreamEvent]]]] = {
        "reasoning_content": lambda self, value: self._read_reasoning("reasoning_content", value),
        "reasoning": lambda self, value: self._read_reasoning("reasoning", value),
        "reasoning_details": _read_details,
        "thinking_blocks": _read_blocks,
        "content": _read_content,
        "refusal": _read_refusal,
        "audio": _read_audio,
        "tool_calls": _read_calls,
        "function_call": _read_function_call,
    }
    """In the order of the events of a delta with several fields."""


_DELTA_ONLY = frozenset({"delta", "index"})

_DELTA_FIELDS: Mapping[str, Mapping[str, str]] = {
    "content": {"text": "text", "thinking": "thinking"},
    "reasoning_details": {"reasoning.text": "text", "reasoning.summary": "summary"},
    "thinking_blocks": {"thinking": "thinking"},
}
"""Lists whose objects arrive as deltas: by list and type of object, the field that is concatenated."""


class _DeltaMerger:
    """A list whose objects arrive as deltas: neighbours that are deltas of one object are joined."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields
        self._items: list[tuple[JsonObject, list[str]]] = []

    def add(self, item: JsonObject) -> None:
        name = self._fields.get(string_of(item, "type") or "")
        delta = item.get(name) if name else None
        deltas = [delta] if isinstance(delta, str) else []
        if name and self._items and _is_continuation(self._items[-1][0], item):
            last, before = self._items[-1]
            last.update({key: value for key, value in item.items() if key != name and value is not None})
            before.extend(deltas)
        else:
            self._items.append((dict(item), deltas))

    def add_text(self, delta: str) -> None:
        if self._items and self._items[-1][0].get("type") == "text":
            self._items[-1][1].append(delta)
        else:
            self._items.append(({"type": "text"}, [delta]))

    def items(self) -> list[JsonValue]:
        return [self._join(item, deltas) for item, deltas in self._items]

    def texts(self) -> Iterator[str]:
        for _, deltas in self._items:
            yield from deltas

    def _join(self, item: JsonObject, deltas: list[str]) -> JsonObject:
        name = self._fields.get(string_of(item, "type") or "")
        return {**item, name: "".join(deltas)} if name and deltas else item


def _is_continuation(last: JsonObject, item: JsonObject) -> bool:
    """Return True if an object is a delta of the last one. A signature ends a block of reasoning."""
    same = all(None in (last.get(name), item.get(name)) or last[name] == item[name] for name in ("id", "index"))
    return same and last.get("type") == item.get("type") and not last.get("signature")


def _merge_field(into: JsonObject, name: str, value: JsonValue) -> None:
    before = into.get(name)
    if value is None:
        return
    if isinstance(value, list):
        into[name] = _extend_list(before, value)
    elif isinstance(value, dict):
        fields = into[name] = before if isinstance(before, dict) else {}
        for key, more in value.items():
            if more is not None:
                fields[key] = _extend_list(fields.get(key), more) if isinstance(more, list) else more
    else:
        into[name] = value


def _extend_list(before: JsonValue, more: list[JsonValue]) -> list[JsonValue]:
    extended = before if isinstance(before, list) else []
    extended.extend(more)
    return extended
