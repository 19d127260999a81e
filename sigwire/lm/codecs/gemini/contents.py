"""generateContent: encode the conversation as contents, with the signatures that the model requires."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.names import NameMap
from sigwire.lm.codecs.gemini.parts import encode_part, inline_data
from sigwire.lm.codecs.gemini.profiles import GeminiProfile
from sigwire.lm.codecs.gemini.tables import SIGNATURE, UNSIGNED
from sigwire.lm.codecs.shared.choices import is_synthetic_id
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.options import require_feature
from sigwire.lm.codecs.shared.tools import object_arguments, provider_data

__all__ = ["encode_contents", "encode_system"]


def encode_system(messages: Sequence[Message], instruction: str, target: Target[GeminiProfile]) -> JsonObject:
    parts: list[JsonValue] = []
    for part in (part for message in messages if message.role == "system" for part in message.parts):
        require_feature(
            isinstance(part, TextPart | OpaquePart), f"a {type(part).__name__} in a system turn", target, _TO_USER
        )
        parts.append(encode_part(part))
    if instruction:
        parts.append({"text": instruction})
    return {"systemInstruction": {"parts": parts}} if parts else {}


_TO_USER = "Move it to a user turn."


def encode_contents(messages: Sequence[Message], names: NameMap, target: Target[GeminiProfile]) -> list[JsonObject]:
    """Return the turns; neighbours of one role are one content, such as a result and the user's next text."""
    contents: list[tuple[str, list[JsonObject]]] = []
    for message in _sign_turns(messages, target):
        role, parts = _encode_turn(message, names, target)
        if contents and contents[-1][0] == role:
            contents[-1][1].extend(parts)
        elif parts:
            contents.append((role, parts))
    return [{"role": role, "parts": cast(JsonValue, parts)} for role, parts in contents]


def _sign_turns(messages: Sequence[Message], target: Target[GeminiProfile]) -> Iterator[Message]:
    """Yield the turns to encode. In the current turn, the first call of an unsigned step gets a stand-in signature."""
    start = _current_turn(messages)
    for number, message in enumerate(messages):
        if message.role == "system":
            continue
        calls = message.tool_calls
        is_current = target.facts.signed_calls and number > start
        if is_current and calls and not provider_data(calls[0], target.profile.family).get(SIGNATURE):
            family = target.profile.family
            data: JsonObject = {**provider_data(calls[0], family), SIGNATURE: UNSIGNED}
            first = replace(calls[0], provider_data={family: data})
            yield replace(message, parts=tuple(first if part is calls[0] else part for part in message.parts))
        else:
            yield message


def _current_turn(messages: Sequence[Message]) -> int:
    """Return the number of the message that starts the current turn: the user's last content."""
    # User messages directly behind results are in one content with them and start no turn.
    start, before = -1, ""
    for number, message in enumerate(messages):
        if message.role == "system" or (message.role == "user" and before == "tool"):
            continue
        start, before = (number if message.role == "user" else start), message.role
    return start


def _encode_turn(message: Message, names: NameMap, target: Target[GeminiProfile]) -> tuple[str, list[JsonObject]]:
    if message.role == "assistant":
        return "model", _encode_model(message.parts, names, target)
    if message.role == "tool":
        return "user", [_encode_result(result, names) for result in message.tool_results]
    return "user", [encode_part(part) for part in message.parts]


def _encode_model(parts: Iterable[Part], names: NameMap, target: Target[GeminiProfile]) -> list[JsonObject]:
    wires: list[JsonObject] = []
    before: Part | None = None
    for part in parts:
        if isinstance(part, ThinkingPart):
            _encode_thinking(part, wires, is_seal=isinstance(before, TextPart | ImagePart | AudioPart | FilePart))
        elif isinstance(part, ToolCall):
            wires.append(_encode_call(part, names, target.profile.family))
        else:
            wires.append(encode_part(part))
        before = part
    return wires


def _encode_thinking(part: ThinkingPart, wires: list[JsonObject], *, is_seal: bool) -> None:
    if part.redacted is None:
        signed: JsonObject = {SIGNATURE: part.signature} if part.signature is not None else {}
        wires.append({"text": part.text, "thought": True, **signed})
    elif part.signature is not None and is_seal:
        wires[-1] = {**wires[-1], SIGNATURE: part.signature}
    else:
        wires.append({"text": "", SIGNATURE: part.signature or part.redacted})


def _encode_call(call: ToolCall, names: NameMap, family: str) -> JsonObject:
    function: JsonObject = {**_sent_id(call.id), "name": names.encode(call.name), "args": object_arguments(call)}
    return {"functionCall": function, **provider_data(call, family)}


def _sent_id(call_id: str) -> JsonObject:
    return {} if is_synthetic_id(call_id) else {"id": call_id}


def _encode_result(result: ToolResult, names: NameMap) -> JsonObject:
    response: JsonObject = {"error" if result.is_error else "output": result.content}
    function: JsonObject = {**_sent_id(result.id), "name": names.encode(result.name), "response": response}
    if result.media:
        function["parts"] = [_encode_result_media(part) for part in result.media]
    return {"functionResponse": function}


def _encode_result_media(part: MediaPart) -> JsonObject:
    if isinstance(part, TextPart):
        return inline_data("text/plain", base64.b64encode(part.text.encode("utf-8", "replace")).decode())
    return encode_part(part)
