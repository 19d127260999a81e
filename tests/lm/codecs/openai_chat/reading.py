"""Chat completions: body -> Request, the opposite of ``encoding``, for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolResult, number_calls
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.names import NameMap
from sigwire.lm.codecs.openai_chat.decoding import decode_call, decode_content
from sigwire.lm.codecs.openai_chat.messages import encode_part
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.openai_chat.tables import OPTIONS
from sigwire.lm.codecs.shared.media import split_data_url
from sigwire.lm.codecs.shared.options import Place
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of
from tests.lm.codecs.reading import read_content, read_error_text

__all__ = ["read_request"]


def read_request(body: JsonObject, profile: ChatProfile | None = None) -> Request:
    """Return the request of a body. Unknown data become opaque parts and ``extra_body``."""
    profile = profile or ChatProfile()
    known = {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "stream",
        "stream_options",
    }
    rest = {name: value for name, value in body.items() if name not in known}
    options = _read_options(rest, profile)
    wanted = _read_format(body.get("response_format"))
    if wanted is None and body.get("response_format") is not None:
        options.setdefault("extra_body", {})
        cast(JsonObject, options["extra_body"])["response_format"] = body["response_format"]
    return Request(
        tuple(_read_messages(objects_of(body.get("messages")), profile)),
        tuple(_read_tool(tool) for tool in objects_of(body.get("tools"))),
        _read_choice(body.get("tool_choice"), profile),
        cast("bool | None", body.get("parallel_tool_calls")),
        wanted,
        options,
    )


def _read_options(rest: JsonObject, profile: ChatProfile) -> JsonObject:
    places = {**OPTIONS, **profile.options}
    names = {option.path: name for name, option in places.items() if isinstance(option, Place)}
    options: JsonObject = {names[key]: value for key, value in rest.items() if key in names and value is not None}
    extra = {key: value for key, value in rest.items() if key not in names}
    words = profile.reasoning
    effort = extra.get(words.effort)
    if extra and words.off and all(extra.get(key) == value for key, value in words.off.items()):
        options["reasoning"] = "off"
        extra = {key: value for key, value in extra.items() if key not in words.off}
    elif isinstance(effort, str) and effort in words.efforts and not words.on:
        options["reasoning"] = effort
        del extra[words.effort]
    return {**options, "extra_body": extra} if extra else options


def _read_tool(tool: JsonObject) -> JsonObject:
    kind = tool.get("type")
    if not isinstance(kind, str) or kind == "function":
        return {"type": "function", **tool}
    return {"type": kind, kind: {name: value for name, value in tool.items() if name != "type"}}


def _read_choice(choice: JsonValue, profile: ChatProfile) -> ToolChoice | None:
    if isinstance(choice, str):
        words: Mapping[str, ToolChoice] = {
            "auto": ToolChoice.AUTO, "none": ToolChoice.NONE, "required": ToolChoice.REQUIRED,
            profile.required: ToolChoice.REQUIRED,
        }  # fmt: skip
        return words.get(choice)
    if not isinstance(choice, dict):
        return None
    allowed = choice.get("allowed_tools")
    if isinstance(allowed, dict):
        names = tuple(string_of(tool.get("function"), "name") or "" for tool in objects_of(allowed.get("tools")))
        return ToolChoice("required" if allowed.get("mode") == "required" else "auto", names)
    name = string_of(choice.get("function"), "name")
    return ToolChoice.named(name) if name else None


def _read_format(wire: JsonValue) -> ResponseFormat | None:
    if not isinstance(wire, dict):
        return None
    if wire.get("type") == "json_object":
        return ResponseFormat()
    inner = wire.get("json_schema")
    if isinstance(inner, dict) and isinstance(inner.get("schema"), dict) and not inner.keys() - {"name", "schema"}:
        return ResponseFormat(cast(JsonObject, inner["schema"]), string_of(inner, "name") or "response")
    return None


_ROLES: Mapping[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def _read_messages(wires: Iterable[JsonObject], profile: ChatProfile) -> list[Message]:
    messages: list[Message] = []
    names: dict[str, str] = {}
    for wire in wires:
        role = string_of(wire, "role") or "user"
        if role == "tool":
            result = _read_result(wire, names)
            together = messages[-1].tool_results if messages and messages[-1].role == "tool" else ()
            messages[len(messages) - bool(together) :] = [Message.tool(*together, result)]
        elif role == "assistant":
            message = _read_assistant(wire, profile)
            names |= {call.id: call.name for call in message.tool_calls}
            messages.append(message)
        else:
            messages.append(Message(_ROLES.get(role, "user"), _read_parts(wire.get("content"), profile)))
    return messages


def _read_result(wire: JsonObject, names: Mapping[str, str]) -> ToolResult:
    content = wire.get("content")
    text = (
        content if isinstance(content, str) else "".join(string_of(part, "text") or "" for part in objects_of(content))
    )
    call_id = string_of(wire, "tool_call_id") or ""
    value, failed = read_error_text(text)
    return ToolResult(call_id, names.get(call_id, ""), value, failed)


def _read_assistant(wire: JsonObject, profile: ChatProfile) -> Message:
    thinking, text = decode_content({**wire, "reasoning": wire.get("reasoning") or ""}, profile)
    calls = [
        decode_call(call, NameMap((), profile.names), profile.family) for call in objects_of(wire.get("tool_calls"))
    ]
    modelled = {"role", "content", "tool_calls", "reasoning", "reasoning_content"}
    rest: JsonObject = {name: value for name, value in wire.items() if name not in modelled and value is not None}
    opaque: tuple[Part, ...] = (OpaquePart(profile.family, rest),) if rest else ()
    return Message("assistant", (*thinking, *opaque, *((TextPart(text),) if text else ()), *number_calls(calls)))


def _read_parts(content: JsonValue, profile: ChatProfile) -> tuple[Part, ...]:
    return read_content(content, _READERS, encode_part, profile)


def _read_image(wire: JsonObject) -> Part:
    image = wire.get("image_url")
    url, detail = string_of(image, "url") or "", string_of(image, "detail")
    media_type, data = split_data_url(url)
    return ImagePart(None if data is not None else url, data, media_type, detail)


def _read_audio(wire: JsonObject) -> Part:
    audio = wire.get("input_audio")
    return AudioPart(string_of(audio, "data") or "", string_of(audio, "format") or "wav")


def _read_file(wire: JsonObject) -> Part:
    file = wire.get("file")
    media_type, data = split_data_url(string_of(file, "file_data") or "")
    return FilePart(data, None, string_of(file, "file_id"), string_of(file, "filename"), media_type)


_READERS: Mapping[str, Callable[[JsonObject], Part]] = {
    "text": lambda wire: TextPart(string_of(wire, "text") or ""),
    "image_url": _read_image,
    "input_audio": _read_audio,
    "file": _read_file,
}
