"""What takes the text of an output, by the output's type."""

from __future__ import annotations

from sigwire.adapters.field_events import FieldSink, Told
from sigwire.adapters.streaming.object_fields import JsonFieldReader
from sigwire.adapters.streaming.text_fields import TextFieldReader, WholeFieldReader, text_grows
from sigwire.adapters.values.codecs import FieldCodec

__all__ = ["sink_of"]


def sink_of(codec: FieldCodec, told: Told) -> FieldSink:
    """What takes the text of an output."""
    if codec.form == "json":
        return JsonFieldReader(codec, told)
    return TextFieldReader(codec, told) if text_grows(codec) else WholeFieldReader(codec, told)
