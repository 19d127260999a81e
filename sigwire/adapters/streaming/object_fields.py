"""An output that is a JSON object or list, told as it grows: ``PartialEmitter``; and its text in an answer, ``JsonFieldReader``.

Each partial is the value as far as it has come, as the model wrote it. What is closed is shared between partials, what is open
is copied; a large value is told a little less often than it grows, so that all copying together is linear.
"""

from __future__ import annotations

import re

from sigwire.adapters.field_events import FieldEvents, FieldSink
from sigwire.adapters.streaming.partial_json import PartialJsonParser
from sigwire.adapters.streaming.text_fields import TextFieldReader, WholeFieldReader, emit_text, is_streamable_text
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.type_shape import compiled

__all__ = ["JsonFieldReader", "PartialEmitter", "make_sink"]

_SHARE = 64  # how many items may be copied for each one that is new
_START = re.compile(r"\s*(?:```[\w+-]*[ \t]*\r?\n\s*)?(?P<bracket>[\[{])")
_MAY_START = re.compile(r"\s*(?:`(?:`(?:`(?:[\w+-]*[ \t]*(?:\r?(?:\n\s*)?)?)?)?)?)?\Z")
_KINDS = {"{": "object", "[": "array"}


class PartialEmitter:
    """Tells a value as it grows. An object whose first member is none of the type's is told when it has been read: it may be
    an envelope around the value.
    """

    __slots__ = ("_events", "_known", "_name", "_upto", "value")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        shape = compiled(codec.field).shape
        self._known = shape.resolve(shape.schema).get("properties")
        self._name, self._events = codec.field.name, events
        self._upto = 0
        self.value = PartialJsonParser()

    @property
    def complete(self) -> bool:
        """Whether the whole value has been told."""
        return self.value.done and self._upto == self.value.changes

    def read(self, text: str, at: int) -> int:
        """Read on from a position; gives the one after the value, or the end of the text."""
        value = self.value
        at = value.read(text, at)
        grown = value.changes - self._upto
        if grown and self._upto >= 0 and (value.done or grown * _SHARE >= value.cost):
            self._emit()
        return at

    def _emit(self) -> None:
        so_far = self.value.so_far()
        if self._known and isinstance(so_far, dict) and so_far and next(iter(so_far)) not in self._known:
            self._upto = -1
            return
        self._upto = self.value.changes
        self._events.partial(self._name, so_far)


def make_sink(codec: FieldCodec, events: FieldEvents) -> FieldSink:
    """What takes the text of an output."""
    if codec.form == "json":
        return JsonFieldReader(codec, events)
    return TextFieldReader(codec, events) if is_streamable_text(codec) else WholeFieldReader(codec, events)


class JsonFieldReader:
    """The text of an output whose type is no text. Numbers and the like are told at its end."""

    __slots__ = ("_chunks", "_codec", "_events", "_head", "_kinds", "_partials", "_whole")

    def __init__(self, codec: FieldCodec, events: FieldEvents) -> None:
        self._codec, self._events = codec, events
        self._kinds = compiled(codec.field).shape.kinds
        self._chunks: list[str] = []
        self._head = ""
        self._partials: PartialEmitter | None = None
        self._whole = False  # nothing is told before the end

    def feed(self, text: str) -> None:
        """More of it."""
        self._chunks.append(text)
        if self._partials is not None:
            self._partials.read(text, 0)
        elif not self._whole:
            self._begin(self._head + text)

    def close(self) -> None:
        """The end of it."""
        if self._partials is not None and self._partials.complete and self._stands_alone():
            self._events.end(self._codec.field.name)
        else:
            emit_text(self._codec, "".join(self._chunks), self._events)

    def _begin(self, text: str) -> None:
        start = _START.match(text)
        if start is not None:
            self._whole = _KINDS[start["bracket"]] not in self._kinds and "any" not in self._kinds
            if not self._whole:
                self._partials = PartialEmitter(self._codec, self._events)
                self._partials.read(text, start.start("bracket"))
        elif _MAY_START.match(text) and len(text) < _LONG_HEAD:
            self._head = text
        else:
            self._whole = True

    def _stands_alone(self) -> bool:
        text = "".join(self._chunks).strip()
        return text[:1] in _KINDS and text[-1:] in "]}"


_LONG_HEAD = 200
