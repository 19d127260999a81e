"""Encode media parts: by a table of the wire, as data URLs, text documents as text; refuse what the host does not accept."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.errors import InputError
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.options import require_feature, unsupported_feature
from sigwire.lm.histories.thinking import has_sound_item

__all__ = [
    "data_url", "encode_by_table", "require_media", "require_places", "require_source", "split_data_url",
    "text_of_file",
]  # fmt: skip

D = TypeVar("D", bound=WireProfile)

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def data_url(data: str | None, media_type: str) -> str:
    """Return base64 data as a URL.

    >>> data_url("aGk=", "image/png")
    'data:image/png;base64,aGk='
    """
    return f"data:{media_type};base64,{data or ''}"


def split_data_url(url: str) -> tuple[str | None, str | None]:
    """Return the media type and base64 data of a data URL; ``(None, None)`` for any other.

    >>> split_data_url("data:image/png;base64,aGk="), split_data_url("https://a.example/b.png")
    (('image/png', 'aGk='), (None, None))
    """
    matched = _DATA_URL.fullmatch(url)
    return (matched[1], matched[2]) if matched else (None, None)


def require_media(kind: str, able: Collection[str], target: Target[WireProfile]) -> None:
    """Raise ``UnsupportedFeature`` for a kind of input ("image") that is not in ``able``."""
    require_feature(kind in able, f"{kind} input", target, "Leave it out or use a provider that accepts it.")


def require_places(message: Message, target: Target[WireProfile]) -> None:
    """Raise ``UnsupportedFeature`` for media in a turn that cannot hold them. A provider keeps sound of its own."""
    if message.role in (rules := target.profile.history_rules).media_roles:
        return
    for part in message.parts:
        if isinstance(part, ImagePart | FilePart) or (
            isinstance(part, AudioPart) and not has_sound_item(message, rules)
        ):
            place = f"a {type(part).__name__} in {'an' if message.role == 'assistant' else 'a'} {message.role} turn"
            raise unsupported_feature(place, target, "Move it to a user turn.")


def require_source(part: ImagePart, target: Target[WireProfile]) -> None:
    """Raise unless an image has a url or data, for wires that take no id of a file."""
    if part.url is None and part.data is None:
        require_feature(part.file_id is None, "an image by the id of a file", target, "Pass its url or data.")
        raise InputError("An image needs a url or data.")


def encode_by_table(
    table: Mapping[type, Callable[[Any, Target[D]], JsonObject]], part: Part, target: Target[D]
) -> JsonObject:
    """Encode a part by its wire's table. Raises ``UnsupportedFeature`` for a kind without a row."""
    encoder = table.get(type(part))
    if encoder is not None:
        return encoder(part, target)
    if isinstance(part, AudioPart):
        raise unsupported_feature("audio input", target, "Transcribe it first, or use a provider that accepts audio.")
    raise unsupported_feature(f"a part of kind {part.kind!r} in this place", target, "Leave it out or send it as text.")


def text_of_file(part: FilePart) -> str | None:
    """Return the text of a text document given as data, for wires without documents; ``None`` for any other file.

    >>> text_of_file(FilePart(data="aGk=", media_type="text/plain", filename="a.txt"))
    'a.txt:\\nhi'
    """
    if part.data is None or not (part.media_type or "").startswith("text/"):
        return None
    try:
        text = base64.b64decode(part.data, validate=True).decode("utf-8", "replace")
    except ValueError:
        return None
    return f"{part.filename}:\n{text}" if part.filename else text
