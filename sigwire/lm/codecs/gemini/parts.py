"""generateContent: a part of a turn in both directions, for answers and for history."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from sigwire.core.json import JsonObject
from sigwire.core.messages import Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.names import NameMap
from sigwire.errors import InputError
from sigwire.lm.codecs.gemini.tables import SIGNATURE
from sigwire.lm.codecs.shared.media import split_data_url
from sigwire.lm.codecs.shared.tools import read_call
from sigwire.lm.codecs.shared.untrusted import string_of, value_at

__all__ = ["decode_media", "decode_part", "encode_part", "inline_data"]


def encode_part(part: Part) -> JsonObject:
    match part:
        case TextPart(text):
            return {"text": text}
        case ImagePart(url=url, data=data, media_type=media_type, file_id=file_id):
            return _encode_media(url or file_id, data, media_type, "image/png")
        case AudioPart(data=data, format=format):
            return inline_data(f"audio/{format}", data)
        case FilePart(data=data, url=url, file_id=file_id, media_type=media_type):
            return _encode_media(url or file_id, data, media_type, "application/pdf")
        case OpaquePart(data=data):
            return cast(JsonObject, data)
        case _:
            raise InputError(f"A {type(part).__name__} cannot stand in this turn.")


def _encode_media(url: str | None, data: str | None, media_type: str | None, usual: str) -> JsonObject:
    if data is not None:
        return inline_data(media_type or usual, data)
    if url is None:
        raise InputError("An image needs a url or data, a file a url, data or the id of an uploaded file.")
    inline_type, inline = split_data_url(url)
    if inline_type is not None and inline is not None:
        return inline_data(inline_type, inline)
    known = media_type or _TYPE_OF_ENDING.get(re.split(r"[?#]", url)[0].rsplit(".", 1)[-1].lower())
    return {"fileData": {"fileUri": url, **({"mimeType": known} if known else {})}}


def inline_data(media_type: str, data: str) -> JsonObject:
    return {"inlineData": {"mimeType": media_type, "data": data}}


_TYPE_OF_ENDING: Mapping[str, str] = {
    **{ending: f"image/{ending}" for ending in ("png", "jpeg", "webp", "heic", "heif", "gif")},
    **{ending: f"audio/{ending}" for ending in ("wav", "aac", "flac", "ogg", "aiff")},
    **{ending: f"video/{ending}" for ending in ("mp4", "mpeg", "webm")},
    "jpg": "image/jpeg",
    "mp3": "audio/mpeg",
    "mov": "video/quicktime",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "csv": "text/csv",
    "html": "text/html",
}
"""A URL needs its media type; if the caller gave none, the ending of the URL decides."""


# --- decoding


def decode_part(wire: JsonObject, names: NameMap, family: str) -> tuple[Part, ...]:
    """Return the part and its seal; nothing for an empty text without a signature."""
    wire = {name: value for name, value in wire.items() if value is not None}
    if isinstance(wire.get("functionCall"), dict):
        return (_decode_call(wire, names, family),)
    text, signature = wire.get("text"), string_of(wire, SIGNATURE)
    if isinstance(text, str):
        return _decode_text(text, signature, wire.get("thought") is True, family)
    media = decode_media(wire)
    bare: JsonObject = {name: value for name, value in wire.items() if name != SIGNATURE}
    if media is None or encode_part(media) != bare:
        return (OpaquePart(family, wire),)  # it would be encoded differently
    return (media, *_seal(signature, family))


def _decode_text(text: str, signature: str | None, thought: bool, family: str) -> tuple[Part, ...]:
    if thought:
        return (ThinkingPart(text, signature=signature, provider=family),)
    if text:
        return (TextPart(text), *_seal(signature, family))
    return (ThinkingPart(redacted=signature, provider=family),) if signature else ()


def _seal(signature: str | None, family: str) -> tuple[ThinkingPart, ...]:
    return (ThinkingPart(signature=signature, redacted="", provider=family),) if signature else ()


def _decode_call(wire: JsonObject, names: NameMap, family: str) -> ToolCall:
    function = wire["functionCall"]
    extra: JsonObject = {name: value for name, value in wire.items() if name != "functionCall"}
    arguments = value_at(function, "args")
    return read_call(string_of(function, "id"), string_of(function, "name"), arguments, extra, names, family)


def decode_media(wire: JsonObject) -> ImagePart | AudioPart | FilePart | None:
    inline, file = wire.get("inlineData"), wire.get("fileData")
    media_type = string_of(inline, "mimeType") or string_of(file, "mimeType")
    data, url = string_of(inline, "data"), string_of(file, "fileUri")
    kind, _, subtype = (media_type or "").partition("/")
    if data is not None and kind == "audio":
        return AudioPart(data, subtype)
    if data is None and url is None:
        return None
    return ImagePart(url, data, media_type) if kind == "image" else FilePart(data=data, url=url, media_type=media_type)
