"""Chat completions, streamed: one choice as far as it has come, told piece by piece and put together as a whole one.

``_DELTAS`` says what each field of a delta means. A field that is not there is kept: texts and numbers replace what was
there, lists are added to it, objects are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeAlias

from sigwire.core.events import PartEnd, ReasoningDelta, StreamEvent, TextDelta, ToolCallDelta, ToolCallStart
from sigwire.core.json import JsonObject, JsonValue
from sigwire.lm.codecs.openai_chat.decoding import decode_content
from sigwire.lm.codecs.openai_chat.partial_calls import PartialCall, PartialCalls
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.openai_chat.think_tags import ThinkTags
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = ["PartialChoice"]

_Begin: TypeAlias = Callable[[PartialCall], tuple[str, str]]
"""The id and the name under which a call is told."""


class PartialChoice:
    """One choice: ``read`` tells what a chunk adds to it, ``whole`` is the choice as an answer in one piece has it."""

    def __init__(self, number: int, dialect: ChatProfile, begin: _Begin) -> None:
        self.number, self.calls = number, PartialCalls()
        self._dialect, self._begin = dialect, begin
        self._fields: JsonObject = {}  # of the choice
        self._kept: JsonObject = {}  # of the message
        self._texts: dict[str, list[str]] = {}
        self._lists = {name: _DeltaMerger(grows) for name, grows in _GROWS.items()}
        self._audio: dict[str, list[str]] = {}
        self._voice = ""  # the field whose thinking is told: some hosts send it under two names
        self._listed = self._past_thought = False
        self._tags = ThinkTags() if dialect.think_tags else None

    @property
    def finished(self) -> bool:
        """Whether the choice has said why it ended."""
        return bool(self._fields.get("finish_reason"))

    def read(self, choice: JsonObject) -> Iterator[StreamEvent]:
        """What a chunk adds."""
        for name, value in choice.items():
            if name not in ("delta", "index", "message"):
                _keep(self._fields, name, value)
        delta = object_of(choice.get("delta"))
        for name, read in self._DELTAS.items():
            if (value := delta.get(name)) is not None and value != "":
                yield from read(self, value)
        for name, value in delta.items():
            if name not in self._DELTAS:
                _keep(self._kept, name, value)

    def more_text(self, choice: JsonObject) -> TextDelta | None:
        """The event of a chunk that only goes on with the text; ``None`` for any other, of which nothing is taken."""
        delta = choice.get("delta")
        if not self._past_thought or self._tags is not None or not isinstance(delta, dict):
            return None
        piece = delta.get("content")
        if not isinstance(piece, str) or not piece or (len(delta) > 1 and not self._says_text_alone(delta)):
            return None
        for name, value in choice.items():
            if value is not None and name not in _BESIDE_TEXT:
                return None
        self._lists["content"].add_text(piece)
        return TextDelta(piece, self.number)

    def _says_text_alone(self, delta: JsonObject) -> bool:
        return len(delta) == 2 and "role" in delta and "role" in self._kept

    def end(self) -> Iterator[StreamEvent]:
        """What was held back."""
        for kind, piece in self._tags.close() if self._tags else ():
            yield from self._tell_thinking(piece, "tags") if kind == "thinking" else self._tell_text(piece)
        yield from self.end_thought()

    def whole(self) -> JsonObject:
        """The choice as decode() takes it."""
        return {"index": self.number, **self._fields, "message": self.message()}

    def message(self) -> JsonObject:
        """The choice's message as far as it has come."""
        texts: JsonObject = {name: "".join(pieces) for name, pieces in self._texts.items()}
        lists: JsonObject = {name: pieces.items() for name, pieces in self._lists.items() if pieces.items()}
        content: JsonObject = {} if self._listed else {"content": "".join(self._lists["content"].texts()) or None}
        audio: JsonObject = {name: "".join(pieces) for name, pieces in self._audio.items()}
        calls: list[JsonValue] = [call.wire() for call in self.calls]
        return {
            **self._kept,
            **texts,
            **lists,
            **content,
            **({"audio": {**object_of(self._kept.get("audio")), **audio}} if audio else {}),
            **({"tool_calls": calls} if calls else {}),
        }

    # --- what the fields of a delta say

    def _read_content(self, value: JsonValue) -> Iterator[StreamEvent]:
        """Text, or a list of content parts."""
        if isinstance(value, str):
            self._lists["content"].add_text(value)
            yield from self._read_text(value)
            return
        for chunk in objects_of(value):
            self._listed = True
            if chunk.get("type") == "thinking":
                chunk = {**chunk, "thinking": _thinking_of(chunk)}
            self._lists["content"].add(chunk)
            if chunk.get("type") == "thinking":
                yield from self._tell_thinking(str(chunk["thinking"]), "content")
            else:
                yield from self._read_text(string_of(chunk, "text") or "")

    def _read_text(self, piece: str) -> Iterator[StreamEvent]:
        if self._tags is None or self._voice not in ("", "tags"):
            yield from self._tell_text(piece)
            return
        for kind, told in self._tags.feed(piece):
            yield from self._tell_thinking(told, "tags") if kind == "thinking" else self._tell_text(told)
        if self._tags.over:
            self._tags = None

    def _read_reasoning_content(self, value: JsonValue) -> Iterator[StreamEvent]:
        return self._read_thinking("reasoning_content", value)

    def _read_reasoning(self, value: JsonValue) -> Iterator[StreamEvent]:
        return self._read_thinking("reasoning", value)

    def _read_thinking(self, name: str, value: JsonValue) -> Iterator[StreamEvent]:
        if isinstance(value, str):
            self._texts.setdefault(name, []).append(value)
            yield from self._tell_thinking(value, name)

    def _read_details(self, value: JsonValue) -> Iterator[StreamEvent]:
        for detail in objects_of(value):
            self._lists["reasoning_details"].add(detail)
            piece = string_of(detail, "text") or string_of(detail, "summary") or ""
            yield from self._tell_thinking(piece, "reasoning_details")

    def _read_blocks(self, value: JsonValue) -> Iterator[StreamEvent]:
        for block in objects_of(value):
            self._lists["thinking_blocks"].add(block)
        yield from ()

    def _read_refusal(self, value: JsonValue) -> Iterator[StreamEvent]:
        if isinstance(value, str):
            self._texts.setdefault("refusal", []).append(value)
        yield from ()

    def _read_audio(self, value: JsonValue) -> Iterator[StreamEvent]:
        for name, piece in object_of(value).items():
            if name in ("data", "transcript") and isinstance(piece, str):
                self._audio.setdefault(name, []).append(piece)
            else:
                _keep(self._kept, "audio", {name: piece})
        yield from self._tell_text(string_of(value, "transcript") or "")

    def _read_calls(self, value: JsonValue) -> Iterator[StreamEvent]:
        for fragment in objects_of(value):
            yield from self._tell_call(self.calls.add(fragment))

    def _read_old_call(self, value: JsonValue) -> Iterator[StreamEvent]:
        """The form before ``tool_calls``, of one call."""
        yield from self._tell_call(self.calls.add({"index": 0, "function": value}))

    # --- telling

    def _tell_text(self, piece: str) -> Iterator[StreamEvent]:
        if piece:
            if not self._past_thought:
                yield from self.end_thought()
            yield TextDelta(piece, self.number)

    def _tell_thinking(self, piece: str, voice: str) -> Iterator[StreamEvent]:
        self._voice = self._voice or (voice if piece else "")
        if piece and voice == self._voice:
            yield ReasoningDelta(piece, self.number)

    def end_thought(self) -> Iterator[StreamEvent]:
        """The thinking before the answer, as decode() will have it."""
        if not self._past_thought:
            self._past_thought = True
            for part in decode_content(self.message(), self._dialect)[0]:
                yield PartEnd(part, self.number)

    def _tell_call(self, call: PartialCall) -> Iterator[StreamEvent]:
        """The call once its name is known, and the arguments that came since."""
        if not call.name:
            return
        if call.told < 0:
            yield from self.end_thought()
            yield ToolCallStart(call.position, *self._begin(call), self.number)
            call.told = 0
        for piece in call.pieces[call.told :]:
            yield ToolCallDelta(call.position, piece, self.number)
        call.told = len(call.pieces)

    _DELTAS: ClassVar[Mapping[str, Callable[[Any, JsonValue], Iterator[StreamEvent]]]] = {
        "reasoning_content": _read_reasoning_content,
        "reasoning": _read_reasoning,
        "reasoning_details": _read_details,
        "thinking_blocks": _read_blocks,
        "content": _read_content,
        "refusal": _read_refusal,
        "audio": _read_audio,
        "tool_calls": _read_calls,
        "function_call": _read_old_call,
    }
    """In the order in which a delta that holds several of them is told."""


_BESIDE_TEXT = frozenset({"delta", "index"})

_GROWS: Mapping[str, Mapping[str, str]] = {
    "content": {"text": "text", "thinking": "thinking"},
    "reasoning_details": {"reasoning.text": "text", "reasoning.summary": "summary"},
    "thinking_blocks": {"thinking": "thinking"},
}
"""Lists whose objects come in pieces: which field of which type grows."""


class _DeltaMerger:
    """Objects that come in pieces: neighbours that are pieces of one are put together."""

    def __init__(self, grows: Mapping[str, str]) -> None:
        self._grows = grows
        self._items: list[tuple[JsonObject, list[str]]] = []

    def add(self, item: JsonObject) -> None:
        name = self._grows.get(string_of(item, "type") or "")
        piece = item.get(name) if name else None
        pieces = [piece] if isinstance(piece, str) else []
        if name and self._items and _goes_on(self._items[-1][0], item):
            last, before = self._items[-1]
            last.update({key: value for key, value in item.items() if key != name and value is not None})
            before.extend(pieces)
        else:
            self._items.append((dict(item), pieces))

    def add_text(self, piece: str) -> None:
        """The same of a text."""
        if self._items and self._items[-1][0].get("type") == "text":
            self._items[-1][1].append(piece)
        else:
            self._items.append(({"type": "text"}, [piece]))

    def items(self) -> list[JsonValue]:
        """Each object whole."""
        return [self._joined(item, pieces) for item, pieces in self._items]

    def texts(self) -> Iterator[str]:
        """What has grown."""
        for _, pieces in self._items:
            yield from pieces

    def _joined(self, item: JsonObject, pieces: list[str]) -> JsonObject:
        name = self._grows.get(string_of(item, "type") or "")
        return {**item, name: "".join(pieces)} if name and pieces else item


def _goes_on(last: JsonObject, item: JsonObject) -> bool:
    """Whether an object is more of the one before. A signature ends a thought."""
    same = all(None in (last.get(name), item.get(name)) or last[name] == item[name] for name in ("id", "index"))
    return same and last.get("type") == item.get("type") and not last.get("signature")


def _thinking_of(chunk: JsonObject) -> str:
    inner = chunk.get("thinking")
    return inner if isinstance(inner, str) else "".join(string_of(one, "text") or "" for one in objects_of(inner))


def _keep(into: JsonObject, name: str, value: JsonValue) -> None:
    """Add to what came before: lists are added up, an object's fields are added one by one, anything else is replaced."""
    before = into.get(name)
    if value is None:
        return
    if isinstance(value, list):
        into[name] = _extended(before, value)
    elif isinstance(value, dict):
        fields = into[name] = before if isinstance(before, dict) else {}
        for key, more in value.items():
            if more is not None:
                fields[key] = _extended(fields.get(key), more) if isinstance(more, list) else more
    else:
        into[name] = value


def _extended(before: JsonValue, more: list[JsonValue]) -> list[JsonValue]:
    """The list that is ours, with more in it."""
    ours = before if isinstance(before, list) else []
    ours.extend(more)
    return ours
