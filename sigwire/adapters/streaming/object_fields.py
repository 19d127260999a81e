"""An output that is a JSON object or list, as partial values: ``PartialEmitter``; and its text: ``JsonFieldReader``.

Each partial value is the JSON as the model wrote it. Closed members are shared between partial values, open ones are copied.
A large value is emitted less often than it grows, so that the copying is linear.
"""

from __future__ import annotations

import re

from sigwire.adapters.field_events import FieldEvents, FieldSink
from sigwire.adapters.streaming.partial_json import PartialJsonParser
from sigwire.adapters.streaming.text_fields import TextFieldReader, WholeFieldReader, emit_text, is_streamable_text
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.type_shape import compile_type

__all__ = ["JsonFieldReader", "PartialEmitter", "make_sink"]

_SHARE = 64  # items that may be copied for each new one
_START = re.compile(r"\s*(?:```[\w+-]*[ \t]*\r?\n\s*)?(?P<bracket>[\[{])")
_PARTIAL_START = re.compile(r"\s*(?:`(?:`(?:`(?:[\w+-]*[ \t]*(?:\r?(?:\n\s*)?)?)?)?)?)?\Z")
_KINDS = {"{": "object", "[": "array"}


class PartialEmitter:
    """Emits a value while it grows. If the first member is none of the type's, the value is emitted after its parse: the
    object may be an envelope around it.
    """

    __slots__ = ("_emitted_changes", "_events", "_known", "_name", "value")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        shape = compile_type(codec.field).shape
        self._known = shape.resolve(shape.schema).get("properties")
        self._name, self._events = codec.field.name, events
        self._emitted_changes = 0
        self.value = PartialJsonParser()

    @property
    def complete(self) -> bool:
        """Whether the complete value was emitted."""
        return self.value.done and self._emitted_changes == self.value.changes

    def read(self, text: str, at: int) -> int:
        """Read from a position. Return the position after the value, or the end of the text."""
        value = self.value
        at = value.read(text, at)
        added = value.changes - self._emitted_changes
        if added and self._emitted_changes >= 0 and (value.done or added * _SHARE >= value.cost):
            self._emit()
        return at

    def _emit(self) -> None:
        partial_value = self.value.partial_value()
        first = next(iter(partial_value), None) if isinstance(partial_value, dict) else None
        if self._known and first is not None and first not in self._known:
            self._emitted_changes = -1
            return
        self._emitted_changes = self.value.changes
        self._events.partial(self._name, partial_value)


def make_sink(codec: FieldCodec, events: FieldEvents) -> FieldSink:
    """Return the reader of an output's text."""
    if codec.form == "json":
        return JsonFieldReader(codec, events)
    return TextFieldReader(codec, events) if is_streamable_text(codec) else WholeFieldReader(codec, events)


class JsonFieldReader:
    """The text of an output that is no text type. Numbers and other scalars are emitted at its end."""

    __slots__ = ("_chunks", "_codec", "_events", "_head", "_is_whole", "_kinds", "_partials")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        self._codec, self._events = codec, events
        self._kinds = compile_type(codec.field).shape.kinds
        self._chunks: list[str] = []
        self._head = ""
        self._partials: PartialEmitter | None = None
        self._is_whole = False  # emitted at the end only

    def feed(self, text: str) -> None:
        self._chunks.append(text)
        if self._partials is not None:
            self._partials.read(text, 0)
        elif not self._is_whole:
            self._start(self._head + text)

    def close(self) -> None:
        whole = "".join(self._chunks)
        text = whole.strip()
        is_alone = text[:1] in _KINDS and text[-1:] in "]}"
        if self._partials is not None and self._partials.complete and is_alone:
            self._events.end(self._codec.field.name)
        else:
            emit_text(self._codec, whole, self._events)

    def _start(self, text: str) -> None:
        start = _START.match(text)
        if start is not None:
            self._is_whole = _KINDS[start["bracket"]] not in self._kinds and "any" not in self._kinds
            if not self._is_whole:
                self._partials = PartialEmitter(self._codec, self._events)
                self._partials.read(text, start.start("bracket"))
        elif _PARTIAL_START.match(text) and len(text) < _MAX_HEAD:
            self._head = text
        else:
            self._is_whole = True


_MAX_HEAD = 200
