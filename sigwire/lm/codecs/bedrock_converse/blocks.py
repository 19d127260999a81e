"""Converse: encode the parts of a turn as content blocks, and read content blocks as parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.names import NameMap
from sigwire.errors import InputError
from sigwire.lm.codecs.bedrock_converse.tables import ConverseProfile
from sigwire.lm.codecs.shared.history import error_text
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.media import encode_by_table, require_places
from sigwire.lm.codecs.shared.options import require_feature
from sigwire.lm.codecs.shared.tools import object_arguments
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = ["encode_blocks", "read_block", "text_of_citations"]


def encode_blocks(message: Message, names: NameMap, target: Target[ConverseProfile]) -> list[JsonObject]:
    """Return the parts of a turn as blocks, in order."""
    require_places(message, target)
    return [_encode_part(part, names, target) for part in message.parts]


def _encode_part(part: Part, names: NameMap, target: Target[ConverseProfile]) -> JsonObject:
    if isinstance(part, ToolCall):
        return {"toolUse": {"toolUseId": part.id, "name": names.encode(part.name), "input": object_arguments(part)}}
    return encode_by_table(_ENCODERS, part, target)


def _encode_text(part: TextPart, target: Target[ConverseProfile]) -> JsonObject:
    return {"text": part.text}


def _encode_thinking(part: ThinkingPart, target: Target[ConverseProfile]) -> JsonObject:
    if part.redacted is not None:
        return {"reasoningContent": {"redactedContent": part.redacted}}
    return {"reasoningContent": {"reasoningText": {"text": part.text, "signature": part.signature}}}


def _encode_result(result: ToolResult, target: Target[ConverseProfile]) -> JsonObject:
    is_flagged = result.is_error and target.profile.result_status
    text = result.text if is_flagged else error_text(result)
    # The provider refuses blank text, but an empty list is accepted.
    parts: tuple[Part, ...] = (*((TextPart(text),) if text.strip() else ()), *result.media)
    content = [encode_by_table(_ENCODERS, part, target) for part in parts]
    status: JsonObject = {"status": "error"} if is_flagged else {}
    return {"toolResult": {"toolUseId": result.id, "content": [*content], **status}}


def _encode_image(part: ImagePart, target: Target[ConverseProfile]) -> JsonObject:
    if not part.data and not part.url and not part.file_id:
        raise InputError("An image needs a url or data.")
    kind = _IMAGE_FORMATS.get(part.media_type or _type_of(part.url))
    require_feature(kind is not None, f"an image as {part.media_type!r}", target, "Convert it to PNG or JPEG.")
    return {"image": {"format": kind, "source": _source(part, "image", target)}}


def _encode_file(part: FilePart, target: Target[ConverseProfile]) -> JsonObject:
    if not part.data and not part.url and not part.file_id:
        raise InputError("A file needs data or a url.")
    media_type = (part.media_type or "application/pdf").partition(";")[0]
    kind = _FILE_FORMATS.get(media_type) or ("txt" if media_type.startswith("text/") else None)
    require_feature(kind is not None, f"a document as {media_type!r}", target, "Send it as PDF or as text.")
    return {"document": {"format": kind, "name": part.filename or "document", "source": _source(part, "file", target)}}


def _source(part: ImagePart | FilePart, kind: str, target: Target[ConverseProfile]) -> JsonObject:
    if part.data:
        return {"bytes": part.data}
    is_stored = part.url is not None and part.url.startswith("s3://")
    require_feature(is_stored, f"{kind} input by URL", target, "Pass its data, or the s3:// address of an object.")
    return {"s3Location": {"uri": part.url}}


def _type_of(url: str | None) -> str:
    """Return the media type that the end of an address names, PNG by default."""
    ending = (url or "").rpartition(".")[2].lower()
    return f"image/{ending}" if f"image/{ending}" in _IMAGE_FORMATS else "image/png"


def _encode_opaque(part: OpaquePart, target: Target[ConverseProfile]) -> JsonObject:
    require_feature(isinstance(part.data, dict), "an opaque item that is no object", target, "Leave it out.")
    return object_of(part.data)


_ENCODERS: Mapping[type, Callable[[Any, Target[ConverseProfile]], JsonObject]] = {
    FilePart: _encode_file,
    ImagePart: _encode_image,
    OpaquePart: _encode_opaque,
    TextPart: _encode_text,
    ThinkingPart: _encode_thinking,
    ToolResult: _encode_result,
}
_IMAGE_FORMATS: Mapping[str, str] = {
    "image/gif": "gif", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/png": "png", "image/webp": "webp",
}  # fmt: skip
_FILE_FORMATS: Mapping[str, str] = {
    "application/msword": "doc",
    "application/pdf": "pdf",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "text/csv": "csv",
    "text/html": "html",
    "text/markdown": "md",
}


# --- blocks as parts


def read_block(block: JsonObject, family: str, names: NameMap) -> Part | None:
    """Return the part of a block; ``None`` for an empty text. A block without a canonical form is an opaque part."""
    if isinstance(text := block.get("text"), str):
        return TextPart(text) if text else None
    if cited := object_of(block.get("citationsContent")):
        text = text_of_citations(cited)
        return TextPart(text) if text else None
    use = object_of(block.get("toolUse"))
    if use and "type" not in use:  # a call with a type is run by the provider
        return ToolCall.read(
            string_of(use, "toolUseId") or "", names.decode(string_of(use, "name") or ""), use.get("input")
        )
    if reasoning := object_of(block.get("reasoningContent")):
        return _read_reasoning(reasoning, family)
    return OpaquePart(family, block)


def _read_reasoning(reasoning: JsonObject, family: str) -> ThinkingPart:
    if redacted := string_of(reasoning, "redactedContent"):
        return ThinkingPart(redacted=redacted, provider=family)
    reasoned = object_of(reasoning.get("reasoningText"))
    return ThinkingPart(string_of(reasoned, "text") or "", signature=string_of(reasoned, "signature"), provider=family)


def text_of_citations(cited: JsonObject) -> str:
    """Return the text of a block with citations.

    >>> text_of_citations({"content": [{"text": "a"}, {"text": "b"}]})
    'ab'
    """
    return "".join(string_of(item, "text") or "" for item in objects_of(cited.get("content")))
