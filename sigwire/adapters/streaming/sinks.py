"""What takes the text of an output, by the output's type."""

from __future__ import annotations

from sigwire.adapters.field_events import FieldEvents, FieldSink
from sigwire.adapters.streaming.object_fields import JsonFieldReader
from sigwire.adapters.streaming.text_fields import TextFieldReader, WholeFieldReader, is_streamable_text
from sigwire.adapters.values.codecs import FieldCodec

__all__ = ["make_sink"]


def make_sink(codec: FieldCodec, events: FieldEvents) -> FieldSink:
    """What takes the text of an output."""
    if codec.form == "json":
        return JsonFieldReader(codec, events)
    return TextFieldReader(codec, events) if is_streamable_text(codec) else WholeFieldReader(codec, events)
