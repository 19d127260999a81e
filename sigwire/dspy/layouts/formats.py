"""Layouts of the door: the types of fields are described and written by their own methods."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.typed_json import untyped_json
from sigwire.core.messages import Part
from sigwire.core.parts import TextPart
from sigwire.dspy.type_methods import TypeMethods
from sigwire.dspy.types import Type, formatted, has_own_format, split_message_content_for_custom_types
from sigwire.lm.openai_dicts import decode_messages
from sigwire.signatures.annotations import nested_types
from sigwire.signatures.fields import FieldSpec

__all__ = ["described", "with_formats"]


def described(spec: FieldSpec) -> FieldSpec:
    """Return the field with the descriptions of its types."""
    kinds = [kind for kind in nested_types(spec.annotation) if isinstance(kind, type) and issubclass(kind, TypeMethods)]
    own = [kind for kind in kinds if kind.description.__func__ is not Type.description.__func__]  # type: ignore[attr-defined]
    texts = [spec.description, *(kind.description() for kind in own)]
    return replace(spec, description=" ".join(filter(None, texts))) if any(texts[1:]) else spec


def with_formats(layout: Layout) -> Layout:
    """Return the layout; it writes inputs of types that override ``format`` by that method."""
    inputs = layout._inputs  # pyright: ignore[reportPrivateUsage]  # set once, by the constructor
    if any(has_own_format(codec.field.annotation) for *_, codec in inputs):
        layout._has_media = True  # pyright: ignore[reportPrivateUsage]
        layout._inputs = tuple(  # pyright: ignore[reportPrivateUsage]
            (name, before, after, _FormatCodec(codec.field) if has_own_format(codec.field.annotation) else codec)
            for name, before, after, codec in inputs
        )
    return layout


class _FormatCodec(FieldCodec):
    """Writes an input by the methods ``format`` of its types."""

    __slots__ = ()
    has_media = True

    def parts(self, value: object) -> tuple[str | Part, ...]:
        with suppress(ValueError):  # a demo of a file holds plain data
            value = self.field.adapter.validate_python(value)
        shown = formatted(value)
        text = shown if isinstance(shown, str) else untyped_json(shown)
        found = decode_messages(split_message_content_for_custom_types([{"role": "user", "content": text}]))[0].parts
        return tuple(part.text if isinstance(part, TextPart) else part for part in found)
