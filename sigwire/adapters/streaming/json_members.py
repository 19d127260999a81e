"""The JSON layout in chunks: one object, whose members are the outputs.

Equal to ``ObjectCodec.read`` for an answer that starts with the object, and an object that starts with an output. After
invalid JSON no more deltas are emitted: a repair needs the whole answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, TypeAlias

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.streaming.object_fields import PartialEmitter
from sigwire.adapters.streaming.partial_json import PartialJsonParser, PartialString
from sigwire.adapters.streaming.text_fields import emit_value, is_streamable_text
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.type_shape import compile_type
from sigwire.errors import ValueReadError

__all__ = ["JsonMemberReader"]

_SPACE = re.compile(r"[ \t\r\n]*")
# By state: the expected character, and the state after it.
_MARKS: Mapping[str, tuple[str, str]] = {
    "object": ("{", "first"),
    "colon": (":", "value"),
    "separator": (",", "member"),
}


class JsonMemberReader:
    """The members of one answer's object."""

    __slots__ = ("_events", "_expects", "_member", "_name", "_names", "_outputs")

    def __init__(self, outputs: Iterable[tuple[str, FieldCodec]], events: FieldEvents) -> None:
        self._outputs, self._events = dict(outputs), events
        self._names = frozenset(self._outputs)
        self._expects = "object"
        self._name = ""
        self._member: _MemberReader | None = None

    def opens(self, text: str) -> bool | None:
        """Return True if a text starts with an object."""
        return text.startswith("{")

    def feed(self, text: str) -> None:
        """Read the next text of the answer."""
        at, end = 0, len(text)
        while at < end and self._expects != "nothing":
            if self._member is not None:
                at = self._continue(self._member, text, at)
                continue
            space = _SPACE.match(text, at)
            at = space.end() if space else at
            if at < end:
                at = self._EXPECTED[self._expects](self, text, at)

    def close(self) -> None:
        """Read the end of the answer. An object that is not closed is no answer."""

    def _continue(self, member: _MemberReader, text: str, at: int) -> int:
        at = member.read(text, at)
        if member.failed:
            self._expects = "nothing"
        elif member.done:
            self._member = None
            if self._expects != "value" and isinstance(member, PartialJsonParser):
                self._accept_name(str(member.partial_value()))
            else:
                self._expects = "separator"
        return at

    def _accept_name(self, name: str) -> None:
        """Accept the name of the next member. An object that starts with another name may be an envelope."""
        stray_first = self._expects == "first" and name not in self._names
        self._name, self._expects = name, "nothing" if stray_first else "colon"

    def _read_mark(self, text: str, at: int) -> int:
        mark, following = _MARKS[self._expects]
        self._expects = following if text[at] == mark else "nothing"
        return at + 1

    def _read_member(self, text: str, at: int) -> int:
        if text[at] == '"':
            self._member = PartialJsonParser()
            return at
        self._expects = "nothing"
        return at + 1

    def _read_value(self, text: str, at: int) -> int:
        """Read the start of a value. The first value of an output is emitted, any other one is skipped."""
        codec = self._outputs.pop(self._name, None)
        if codec is None:
            self._member = PartialJsonParser()
        elif text[at] == '"' and is_streamable_text(codec):
            self._member = _StringReader(codec, self._events)
            return at + 1
        elif text[at] in "{[" and codec.form in ("json", "mixed"):
            self._member = _PartialReader(codec, self._events)
        else:
            self._member = _WholeReader(codec, self._events)
        return at

    _EXPECTED: ClassVar[Mapping[str, Callable[[Any, str, int], int]]] = {
        **dict.fromkeys(_MARKS, _read_mark),
        "first": _read_member,
        "member": _read_member,
        "value": _read_value,
    }


class _StringReader:
    __slots__ = ("_events", "_field", "_string")
    failed = False

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        self._string, self._field, self._events = PartialString(), codec.field.name, events
        events.started_texts.add(self._field)

    @property
    def done(self) -> bool:
        return self._string.closed

    def read(self, text: str, at: int) -> int:
        chunk, at = self._string.read(text, at)
        if chunk:
            self._events.text(self._field, chunk)
        if self._string.closed:
            self._events.end(self._field)
        return at


class _PartialReader(PartialEmitter):
    __slots__ = ()

    @property
    def done(self) -> bool:
        return self.value.done

    @property
    def failed(self) -> bool:
        return self.value.failed

    def read(self, text: str, at: int) -> int:
        at = super().read(text, at)
        if self.complete:
            self._events.end(self._name)
        return at


class _WholeReader(PartialJsonParser):
    """A value that is emitted when complete; after the parse if a user's validators check it."""

    __slots__ = ("_codec", "_events")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        super().__init__()
        self._codec, self._events = codec, events

    def read(self, text: str, at: int) -> int:
        at = super().read(text, at)
        if self.done and not compile_type(self._codec.field).runs_users_code:
            with suppress(ValueReadError):  # the parse of the answer reports the error
                emit_value(self._codec, self._codec.load(self.partial_value()).value, self._events)
        return at


_MemberReader: TypeAlias = "PartialJsonParser | _StringReader | _PartialReader"
