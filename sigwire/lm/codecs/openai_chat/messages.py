"""Chat completions: the messages of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.names import NameMap
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.shared.history import error_text
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.media import (
    data_url,
    encode_by_table,
    require_media,
    require_places,
    require_source,
    text_of_file,
)
from sigwire.lm.codecs.shared.options import require_feature
from sigwire.lm.codecs.shared.tools import object_arguments, provider_data
from sigwire.lm.histories.fields import fields_of

__all__ = ["encode_message", "encode_part"]


def encode_message(message: Message, names: NameMap, target: Target[ChatProfile]) -> list[JsonObject]:
    """Return the wire's messages for one turn: one for each result, none for an empty turn.

    A turn that is more than one text is encoded once; a later request with the same names and target reuses it.
    """
    parts = message.parts
    if len(parts) == 1 and type(parts[0]) is TextPart and parts[0].text and message.role != "tool":
        return [{"role": message.role, "content": parts[0].text}]
    cache = message.derived(_CachedTurn)
    last = cache.last
    if last is None or last[0] is not names or last[1] is not target:
        last = cache.last = (names, target, _encode_turn(message, names, target))
    return last[2]


class _CachedTurn:
    """The last encoding of a turn, with the names and the target that it is for."""

    __slots__ = ("last",)

    def __init__(self, message: Message) -> None:
        self.last: tuple[NameMap, Target[ChatProfile], list[JsonObject]] | None = None


def _encode_turn(message: Message, names: NameMap, target: Target[ChatProfile]) -> list[JsonObject]:
    require_places(message, target)
    if message.role == "assistant":
        wire = _encode_assistant(message, names, target)
        return [] if wire == _EMPTY_TURN else [wire]
    if message.role == "tool":
        results = message.tool_results
        return [{"role": "tool", "tool_call_id": result.id, "content": error_text(result)} for result in results]
    return [{"role": message.role, "content": _encode_content(message.parts, target)}]


_EMPTY_TURN: JsonObject = {"role": "assistant", "content": ""}  # some hosts reject such a turn


def _encode_content(parts: tuple[Part, ...], target: Target[ChatProfile]) -> JsonValue:
    """Return a string if all parts are text: weak servers reject lists."""
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    if len(texts) == len(parts) and (len(parts) == 1 or not target.profile.text_lists):
        return "".join(texts)
    return [encode_part(part, target) for part in parts]


def encode_part(part: Part, target: Target[ChatProfile]) -> JsonObject:
    """Return a content part. Raises ``UnsupportedFeature`` for a part that the host does not take."""
    return encode_by_table(_PARTS, part, target)


def _encode_image(part: ImagePart, target: Target[ChatProfile]) -> JsonObject:
    require_media("image", target.profile.media, target)
    require_source(part, target)
    url = part.url or data_url(part.data, part.media_type or "image/png")
    detail: JsonObject = {} if part.detail is None else {"detail": part.detail}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _encode_audio(part: AudioPart, target: Target[ChatProfile]) -> JsonObject:
    require_media("audio", target.profile.media, target)
    require_feature(part.format in ("wav", "mp3"), f"audio as {part.format!r}", target, "Convert it to wav or mp3.")
    return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}


def _encode_file(part: FilePart, target: Target[ChatProfile]) -> JsonObject:
    if (text := text_of_file(part)) is not None:
        return {"type": "text", "text": text}
    require_media("file", target.profile.media, target)
    if part.file_id is not None:
        return {"type": "file", "file": {"file_id": part.file_id}}
    require_feature(part.data is not None, "a document by URL", target, "Download it and pass its data.")
    named: JsonObject = {} if part.filename is None else {"filename": part.filename}
    return {"type": "file", "file": {"file_data": data_url(part.data, part.media_type or "application/pdf"), **named}}


_PartEncoder: TypeAlias = Callable[[Any, Target[ChatProfile]], JsonObject]
_PARTS: Mapping[type, _PartEncoder] = {
    TextPart: lambda part, target: {"type": "text", "text": part.text},
    ImagePart: _encode_image,
    AudioPart: _encode_audio,
    FilePart: _encode_file,
    OpaquePart: lambda part, target: part.data,
}


def _encode_assistant(message: Message, names: NameMap, target: Target[ChatProfile]) -> JsonObject:
    """Return text or ``null``, the calls, the reasoning under the host's name, and the fields of opaque parts."""
    calls: list[JsonValue] = [_encode_call(call, names, target) for call in message.tool_calls]
    no_reasoning = target.profile.no_reasoning if calls and target.facts.thinking != "none" else None
    if len(calls) == len(message.parts) > 0 and no_reasoning is None:  # like most turns of an agent
        return {"role": "assistant", "content": None, "tool_calls": calls}
    fields = fields_of(message.parts)
    wire: JsonObject = {"role": "assistant", "content": _assistant_content(message, fields, target)}
    if calls:
        wire["tool_calls"] = calls
    thinking = _thinking_of(message) or no_reasoning
    if thinking is not None and target.profile.replay in _FIELDS and "reasoning_details" not in fields:
        wire[target.profile.replay] = thinking
    return {**wire, **fields} if fields else wire


_FIELDS = ("reasoning_content", "reasoning")
_BEFORE_TEXT: Mapping[str, str] = {"tags": "<think>\n{}\n</think>\n", "text": "{}\n\n"}


def _thinking_of(message: Message) -> str | None:
    return "".join([part.text for part in message.parts if isinstance(part, ThinkingPart)]) or None


def _assistant_content(message: Message, fields: JsonObject, target: Target[ChatProfile]) -> JsonValue:
    chunks = [_thinking_chunk(part) for part in message.parts if isinstance(part, ThinkingPart)]
    if chunks and target.profile.replay == "chunk":
        text: list[JsonObject] = [{"type": "text", "text": message.text}] if message.text else []
        return cast(JsonValue, chunks + text)
    if "audio" in fields:
        return None  # the text is the transcript of audio that the request names by its id
    if (form := _BEFORE_TEXT.get(target.profile.replay)) and (thinking := _thinking_of(message)):
        return form.format(thinking) + message.text if message.text else form.format(thinking).rstrip()
    return message.text or (None if message.tool_calls else "")


def _thinking_chunk(part: ThinkingPart) -> JsonObject:
    signed: JsonObject = {"signature": part.signature} if part.signature is not None else {}
    return {"type": "thinking", "thinking": [{"type": "text", "text": part.text}], **signed, "closed": True}


def _encode_call(call: ToolCall, names: NameMap, target: Target[ChatProfile]) -> JsonObject:
    arguments = call.arguments_text if target.profile.broken_arguments else dumps(object_arguments(call))
    function: JsonObject = {"name": names.encode(call.name), "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function, **provider_data(call, target.profile.family)}
