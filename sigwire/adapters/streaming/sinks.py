"""What takes the text of an output, by the output's type."""

from __future__ import annotations

from sigwire.adapters.field_events import Sink, Told
from sigwire.adapters.streaming.object_fields import GrowingJson
from sigwire.adapters.streaming.text_fields import GrowingText, WholeField, text_grows
from sigwire.adapters.values.codecs import FieldCodec

__all__ = ["sink_of"]


def sink_of(codec: FieldCodec, told: Told) -> Sink:
    """What takes the text of an output."""
    if codec.form == "json":
        return GrowingJson(codec, told)
    return GrowingText(codec, told) if text_grows(codec) else WholeField(codec, told)
