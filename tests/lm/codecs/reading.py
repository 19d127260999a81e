"""Request bodies read back, shared by all wires: content parts by a table, and results with an error mark in the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Part
from sigwire.core.parts import OpaquePart, TextPart
from sigwire.errors import InputError, UnsupportedFeature
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of

P = TypeVar("P", bound=WireProfile)


def read_error_text(text: str) -> tuple[str, bool]:
    """Return the content and the error flag that ``error_text`` wrote.

    >>> read_error_text("ERROR: boom")
    ('boom', True)
    """
    content = text.removeprefix("ERROR: ")
    return content, content != text


def read_content(
    content: JsonValue,
    readers: Mapping[str, Callable[[JsonObject], Part]],
    encode: Callable[[Part, Target[P]], JsonObject],
    profile: P,
) -> tuple[Part, ...]:
    """Return the parts of a turn's content, a text or a list. A part that would be encoded differently stays opaque."""
    if isinstance(content, str):
        return (TextPart(content),)
    target = Target("", "", profile)
    return tuple(_read_part(wire, readers, encode, target) for wire in objects_of(content))


def _read_part(
    wire: JsonObject,
    readers: Mapping[str, Callable[[JsonObject], Part]],
    encode: Callable[[Part, Target[P]], JsonObject],
    target: Target[P],
) -> Part:
    bare: JsonObject = {name: value for name, value in wire.items() if value is not None}
    reader = readers.get(string_of(bare, "type") or "")
    part = reader(bare) if reader else None
    try:
        is_same = part is not None and encode(part, target) == bare
    except (InputError, UnsupportedFeature):
        is_same = False
    return part if part is not None and is_same else OpaquePart(target.profile.family, wire)
