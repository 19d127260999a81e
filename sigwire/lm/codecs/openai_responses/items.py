"""Responses: the conversation as a flat list of items. ``split_message`` separates a message of the model from its texts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.names import NameMap
from sigwire.errors import InputError
from sigwire.lm.codecs.openai_responses.profiles import ResponsesProfile
from sigwire.lm.codecs.openai_responses.tables import JSON_MODE, MARK
from sigwire.lm.codecs.shared.history import error_text
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.media import data_url, encode_by_table, require_media, text_of_file
from sigwire.lm.codecs.shared.options import unsupported_feature
from sigwire.lm.codecs.shared.tools import object_arguments, provider_data
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of

__all__ = [
    "encode_messages", "encode_part", "encode_result", "has_cache_mark", "is_message", "is_text", "split_message",
]  # fmt: skip


def encode_messages(
    messages: tuple[Message, ...],
    output: JsonObject,
    request: Request,
    names: NameMap,
    target: Target[ResponsesProfile],
) -> JsonObject:
    """Return ``input``, and ``instructions`` if the first system turn can be sent so and other turns follow."""
    first, rest = messages[:1], messages[1:]
    system = bool(first) and first[0].role == "system" and is_text(first[0])
    marked = system and has_cache_mark(request, target)
    if system and rest and not marked and output != JSON_MODE:
        return {"instructions": first[0].text, "input": _encode_items(rest, names, target)}
    items = _encode_items(messages, names, target)
    if marked:
        text: JsonObject = {"type": "input_text", "text": first[0].text, "prompt_cache_breakpoint": MARK}
        items[0] = {"role": target.profile.system_role, "content": [text]}
    return {"input": items}


def is_text(message: Message) -> bool:
    """Return True if every part of a turn is text."""
    return all(isinstance(part, TextPart) for part in message.parts)


def has_cache_mark(request: Request, target: Target[ResponsesProfile]) -> bool:
    """Return True if the end of the first system turn gets a cache mark."""
    return isinstance(request.options.get("prompt_cache"), dict) and target.facts.cache_breakpoints


def _encode_items(messages: Iterable[Message], names: NameMap, target: Target[ResponsesProfile]) -> list[JsonValue]:
    items: list[JsonValue] = []
    custom: set[str] = set()  # results of custom calls have another type
    for message in messages:
        if message.role == "assistant":
            items.extend(_encode_turn(message, names, target))
            custom |= {call.id for call in message.tool_calls if _is_custom(call, target)}
        else:
            items.extend(_encode_parts(message, custom, target))
    return items


def _is_custom(call: ToolCall, target: Target[ResponsesProfile]) -> bool:
    return _call_item(call, target).get("type") == "custom_tool_call"


def _encode_parts(message: Message, custom: set[str], target: Target[ResponsesProfile]) -> Iterator[JsonObject]:
    """Yield the items of a user or tool turn: one for each result and opaque item, one message for other parts in a row."""
    role = target.profile.system_role if message.role == "system" else "user"
    for are_items, parts in itertools.groupby(message.parts, _is_item):
        if are_items:
            yield from (_encode_item(part, custom, target) for part in parts)
        else:
            yield {"role": role, "content": _encode_content(tuple(parts), target)}


def _is_item(part: Part) -> bool:
    if isinstance(part, OpaquePart):
        return not (string_of(part.data, "type") or "").startswith("input_")
    return isinstance(part, ToolResult)


def _encode_item(part: Part, custom: set[str], target: Target[ResponsesProfile]) -> JsonObject:
    if not isinstance(part, ToolResult):
        return encode_part(part, target)
    wire = encode_result(part, target)
    return {**wire, "type": "custom_tool_call_output"} if part.id in custom else wire


def encode_result(result: ToolResult, target: Target[ResponsesProfile]) -> JsonObject:
    """Return a result as an item, with its text and its media."""
    text = error_text(result)
    parts = (*((TextPart(text),) if text else ()), *result.media)
    output: JsonValue = [encode_part(part, target) for part in parts] if result.media else text
    return {"type": "function_call_output", "call_id": result.id, "output": output}


def _encode_content(parts: Sequence[Part], target: Target[ResponsesProfile]) -> JsonValue:
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return [encode_part(part, target) for part in parts]


def encode_part(part: Part, target: Target[ResponsesProfile]) -> JsonObject:
    """Return a content part. Raises ``UnsupportedFeature`` for a part that the host does not take."""
    return encode_by_table(_PARTS, part, target)


def _encode_image(part: ImagePart, target: Target[ResponsesProfile]) -> JsonObject:
    require_media("image", target.profile.media, target)
    image: JsonObject = {"type": "input_image", "detail": part.detail or "auto"}
    if part.file_id is not None:
        return {**image, "file_id": part.file_id}
    if part.url is None and part.data is None:
        raise InputError("An image needs a url, data or a file_id.")
    return {**image, "image_url": part.url or data_url(part.data, part.media_type or "image/png")}


def _encode_file(part: FilePart, target: Target[ResponsesProfile]) -> JsonObject:
    if (text := text_of_file(part)) is not None:
        return {"type": "input_text", "text": text}
    require_media("file", target.profile.media, target)
    if part.file_id is not None:
        return {"type": "input_file", "file_id": part.file_id}
    if part.url is not None:
        return {"type": "input_file", "file_url": part.url}
    if part.data is None:
        raise InputError("A document needs a url, data or a file_id.")
    media_type = part.media_type or "application/pdf"
    name = part.filename or f"document.{media_type.rpartition('/')[2]}"  # the provider rejects data without a name
    return {"type": "input_file", "file_data": data_url(part.data, media_type), "filename": name}


_PartEncoder: TypeAlias = Callable[[Any, Target[ResponsesProfile]], JsonObject]
_PARTS: Mapping[type, _PartEncoder] = {
    TextPart: lambda part, target: {"type": "input_text", "text": part.text},
    ImagePart: _encode_image,
    FilePart: _encode_file,
    OpaquePart: lambda part, target: part.data,
}


# --- turns of the model: a part is an item, belongs to an item, or is not sent (reasoning for readers)


def _encode_turn(message: Message, names: NameMap, target: Target[ResponsesProfile]) -> list[JsonObject]:
    reasoning = {string_of(part.data, "id") for part in message.parts if isinstance(part, OpaquePart)}
    items: list[JsonObject] = []
    slots: list[_Slot] = []  # of the last message, for the texts that follow
    for part in message.parts:
        match part:
            case TextPart(text):
                if not slots:  # a message for all texts before the next item
                    kind: JsonObject = {"type": "message"} if target.profile.message_type else {}
                    plain: JsonObject = {**kind, "role": "assistant", "content": ""}
                    items.append(plain)
                    slots = [(plain, "content")] * len(message.parts)
                slot, name = slots.pop(0)
                slot[name] = f"{slot.get(name, '')}{text}"
            case ThinkingPart():
                pass
            case ToolCall():
                items.append(_encode_call(part, reasoning, names, target))
                slots = []
            case OpaquePart(data=dict() as data):
                item, slots = _open_item(data)
                items.append(item)
            case _:
                raise unsupported_feature(
                    f"a {type(part).__name__} in an assistant turn", target, "Move it to a user turn."
                )
    return _sendable_items(items, target)


_Slot: TypeAlias = tuple[JsonObject, str]
"""The place for a text: an object that this module made, and the name of its field."""


def is_message(item: JsonObject) -> bool:
    """Return True for a message of the model. A request may omit its type, and a weak host its role."""
    kind, role = item.get("type"), item.get("role")
    return (kind, role) in (("message", "assistant"), (None, "assistant"), ("message", None))


def split_message(item: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return a message without its texts, and the texts. Empty texts stay in the message: they are no parts of a turn.

    >>> split_message({"role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": "Hi"}]})
    ({'role': 'assistant', 'id': 'msg_1', 'content': [{'type': 'output_text'}]}, ['Hi'])
    """
    content = item.get("content")
    if isinstance(content, str):
        return {name: value for name, value in item.items() if name != "content"}, [content]
    # The choice has the log probabilities; the provider does not need them.
    bare = [{name: value for name, value in part.items() if name != "logprobs"} for part in objects_of(content)]
    texts = [str(part.pop("text")) for part in bare if part.get("type") == "output_text" and part.get("text")]
    return {**item, "content": cast(JsonValue, bare)}, texts


def _open_item(item: JsonObject) -> tuple[JsonObject, list[_Slot]]:
    """Return an item, and the slots for its texts: of a message, a copy of the item."""
    if not is_message(item):
        return item, []
    if "content" not in item:
        opened = dict(item)
        return opened, [(opened, "content")]
    content = [dict(part) for part in objects_of(item["content"])]
    return {**item, "content": cast(JsonValue, content)}, [(part, "text") for part in content if _has_no_text(part)]


def _has_no_text(part: JsonObject) -> bool:
    return part.get("type") == "output_text" and "text" not in part


def _sendable_items(items: list[JsonObject], target: Target[ResponsesProfile]) -> list[JsonObject]:
    """Remove items that the provider rejects: a message without text."""
    filled = [item for item in map(_with_filled_content, items) if item.get("content") or not is_message(item)]
    if target.profile.interleaved:
        return filled
    return sorted(filled, key=lambda item: item.get("type") in ("function_call", "custom_tool_call"))


def _with_filled_content(item: JsonObject) -> JsonObject:
    if not is_message(item) or isinstance(item.get("content"), str):
        return item
    return {**item, "content": [part for part in objects_of(item.get("content")) if not _has_no_text(part)]}


def _encode_call(
    call: ToolCall, reasoning: set[str | None], names: NameMap, target: Target[ResponsesProfile]
) -> JsonObject:
    """Encode a call. The id of its item is sent only together with the reasoning item before the call."""
    extra = _call_item(call, target)
    after = provider_data(call, target.profile.family).get("after")
    if after is not None and after not in reasoning:
        extra = {name: value for name, value in extra.items() if name != "id"}
    wire: JsonObject = {"type": "function_call", "call_id": call.id, "name": names.encode(call.name)}
    if _is_custom(call, target):
        given = (call.arguments or {}).get("input")
        return {**wire, **extra, "input": given if isinstance(given, str) else call.arguments_text}
    arguments = call.arguments_text if target.profile.broken_arguments else dumps(object_arguments(call))
    return {**wire, "arguments": arguments, **extra}


def _call_item(call: ToolCall, target: Target[ResponsesProfile]) -> JsonObject:
    item = provider_data(call, target.profile.family).get("item")
    return item if isinstance(item, dict) else {}
