"""Messages: encode the parts of a turn as content blocks, and read content blocks as parts."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.names import NameMap
from sigwire.errors import InputError
from sigwire.lm.codecs.anthropic.profiles import NAMES, MessagesProfile
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.media import require_media
from sigwire.lm.codecs.shared.options import require_feature
from sigwire.lm.codecs.shared.tools import object_arguments, provider_data, read_call
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of
from sigwire.lm.histories.fields import join_fields

__all__ = [
    "ANSWER_READERS", "NO_NAMES", "TEXT", "blocks_of", "encode_blocks", "is_native", "plain_content", "read_block",
]  # fmt: skip


NO_NAMES = NameMap((), NAMES)
TEXT = {"type", "text"}


def plain_content(blocks: list[JsonObject]) -> JsonValue:
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0].keys() == TEXT else cast(JsonValue, blocks)


def _fields(part: Part) -> JsonObject | None:
    """Return the fields that a part adds to the block before it; ``None`` for a part that is a block."""
    data = part.data if isinstance(part, OpaquePart) else None
    return data if isinstance(data, dict) and "type" not in data else None


def encode_blocks(message: Message, names: NameMap, target: Target[MessagesProfile]) -> list[JsonObject]:
    """Return the parts as blocks, in order."""
    blocks: list[JsonObject] = []
    for part in message.parts:
        fields = _fields(part)
        if fields is None:
            blocks.append(_encode_part(part, message.role, names, target))
        else:
            blocks[-1] = join_fields(blocks[-1], fields)
    return blocks


_PLACES: Mapping[Role, tuple[type, ...]] = {
    "system": (TextPart, OpaquePart),
    "user": (TextPart, ImagePart, AudioPart, FilePart, OpaquePart),
    "assistant": (TextPart, ThinkingPart, ToolCall, OpaquePart),
    "tool": (ToolResult, OpaquePart),
}


def _encode_part(part: Part, role: Role, names: NameMap, target: Target[MessagesProfile]) -> JsonObject:
    feature = f"a {type(part).__name__} in {'an' if role == 'assistant' else 'a'} {role} turn"
    require_feature(isinstance(part, _PLACES[role]), feature, target, "Move it to a user turn.")
    match part:
        case ToolCall():
            return _encode_call(part, names, target.profile)
        case ToolResult():
            return _encode_result(part, target)
        case ThinkingPart():
            return _encode_thinking(part)
        case OpaquePart(data=data):
            require_feature(isinstance(data, dict), "an opaque item that is no object", target, "Leave it out.")
            return cast(JsonObject, data)
        case _:
            return _encode_media(part, target)


def _encode_call(call: ToolCall, names: NameMap, profile: MessagesProfile) -> JsonObject:
    wire: JsonObject = {"type": "tool_use", "id": call.id, "name": names.encode(call.name)}
    return {**wire, "input": object_arguments(call), **provider_data(call, profile.family)}


def _encode_thinking(part: ThinkingPart) -> JsonObject:
    if part.redacted is not None:
        return {"type": "redacted_thinking", "data": part.redacted}
    signed: JsonObject = {} if part.signature is None else {"signature": part.signature}
    return {"type": "thinking", "thinking": part.text, **signed}


def _encode_result(result: ToolResult, target: Target[MessagesProfile]) -> JsonObject:
    failed: JsonObject = {"is_error": True} if result.is_error else {}
    content = _result_content(result, target)
    return {"type": "tool_result", "tool_use_id": result.id, "content": content, **failed}


def _result_content(result: ToolResult, target: Target[MessagesProfile]) -> JsonValue:
    """Return text, or blocks if there are media. The provider refuses an empty list."""
    if is_native(result.content) and not result.media:
        return result.content
    parts: tuple[MediaPart, ...] = (TextPart(result.text), *result.media)
    blocks = [_encode_media(part, target) for part in parts if not isinstance(part, TextPart) or part.text.strip()]
    return plain_content(blocks) if result.media and blocks else result.text


_NATIVE = frozenset({"tool_reference", "search_result"})


def is_native(content: JsonValue) -> bool:
    """Return True if a result is a list of blocks that only this wire has."""
    if not isinstance(content, list) or not content:
        return False
    return all(isinstance(item, dict) and item.get("type") in _NATIVE for item in content)


def _encode_media(part: MediaPart, target: Target[MessagesProfile]) -> JsonObject:
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ImagePart():
            require_media("image", target.profile.media, target)
            return {"type": "image", "source": _image_source(part, target)}
        case FilePart():
            require_media("file", target.profile.media, target)
            titled: JsonObject = {} if part.filename is None else {"title": part.filename}
            return {"type": "document", "source": _document_source(part, target), **titled}
        case AudioPart():
            require_feature(False, "audio input", target, "Transcribe it first, or use a provider that accepts audio.")
            return {}


_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SPELLINGS: Mapping[str, str] = {"image/jpg": "image/jpeg"}


def _image_source(part: ImagePart, target: Target[MessagesProfile]) -> JsonObject:
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    if part.url is not None:
        return {"type": "url", "url": part.url}
    if not part.data:
        raise InputError("An image needs a url or data, or a file_id.")
    media_type = _SPELLINGS.get(part.media_type or "", part.media_type or "image/png")
    require_feature(media_type in _IMAGE_TYPES, f"an image as {media_type!r}", target, "Convert it to PNG or JPEG.")
    return {"type": "base64", "media_type": media_type, "data": part.data}


def _document_source(part: FilePart, target: Target[MessagesProfile]) -> JsonObject:
    if part.file_id is not None:
        return {"type": "file", "file_id": part.file_id}
    if part.url is not None:
        return {"type": "url", "url": part.url}
    if part.data is None:
        raise InputError("A file needs data, a url or a file_id.")
    media_type = part.media_type or "application/pdf"
    if media_type.startswith("text/"):
        return {"type": "text", "media_type": "text/plain", "data": _text_of(part.data, part.filename)}
    require_feature(
        media_type == "application/pdf", f"a document as {media_type!r}", target, "Send it as PDF or as text."
    )
    return {"type": "base64", "media_type": media_type, "data": part.data}


def _text_of(data: str, filename: str | None) -> str:
    try:
        return base64.b64decode(data, validate=True).decode("utf-8", "replace")
    except ValueError as error:
        raise InputError(f"The data of the file {filename or '(unnamed)'!r} are not base64: {error}.") from error


def blocks_of(content: JsonValue) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(objects_of(content))


# --- blocks as parts


def read_block(block: JsonObject, family: str, names: NameMap, readers: _Readers | None = None) -> tuple[Part, ...]:
    """Return the parts of a block: its part and the fields unknown to the reader, or the whole block as an opaque part."""
    reader, known = (readers or ANSWER_READERS).get(string_of(block, "type") or "", _OPAQUE)
    part = reader(block, family, names)
    if part is None:
        return (OpaquePart(family, block),)
    if isinstance(part, TextPart) and not part.text:
        return ()
    extra = _extra_fields(block, known)
    return (part, OpaquePart(family, extra)) if extra and not isinstance(part, ToolCall) else (part,)


def _extra_fields(block: JsonObject, known: frozenset[str]) -> JsonObject:
    return {name: value for name, value in block.items() if name not in known and value}


def _read_thinking(block: JsonObject, family: str, names: NameMap) -> Part | None:
    signature = block.get("signature")
    signed = signature if isinstance(signature, str) else None
    return ThinkingPart(string_of(block, "thinking") or "", signature=signed, provider=family)


_CALL_FIELDS = frozenset({"type", "id", "name", "input"})


def _read_call(block: JsonObject, family: str, names: NameMap) -> Part | None:
    extra: JsonObject = {name: block[name] for name in block if name not in _CALL_FIELDS and block[name] is not None}
    return read_call(string_of(block, "id"), string_of(block, "name"), block.get("input"), extra, names, family)


_Reader: TypeAlias = Callable[[JsonObject, str, NameMap], Part | None]
_Readers: TypeAlias = Mapping[str, tuple[_Reader, frozenset[str]]]
"""By the type of block: its reader, and the fields that the reader knows."""

_OPAQUE: tuple[_Reader, frozenset[str]] = (lambda block, family, names: None, frozenset())
ANSWER_READERS: _Readers = {
    "text": (lambda block, family, names: TextPart(string_of(block, "text") or ""), frozenset({"type", "text"})),
    "thinking": (_read_thinking, frozenset({"type", "thinking", "signature"})),
    "redacted_thinking": (
        lambda block, family, names: ThinkingPart(redacted=string_of(block, "data") or "", provider=family),
        frozenset({"type", "data"}),
    ),
    "tool_use": (_read_call, _CALL_FIELDS),
}
