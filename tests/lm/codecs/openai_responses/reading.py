"""Responses: body -> Request, the opposite of ``encoding``, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import FilePart, ImagePart, MediaPart, OpaquePart, TextPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.names import NameMap
from sigwire.lm.codecs.openai_responses.decoding import decode_item
from sigwire.lm.codecs.openai_responses.items import encode_part
from sigwire.lm.codecs.openai_responses.profiles import OPENAI, ResponsesProfile
from sigwire.lm.codecs.openai_responses.tables import ENCRYPTED, LOGPROBS, OPTIONS
from sigwire.lm.codecs.shared.media import split_data_url
from sigwire.lm.codecs.shared.options import Place
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of
from tests.lm.codecs.reading import read_content, read_error_text

__all__ = ["read_request"]


_MODELLED = frozenset({
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "include",
    "store", "stream",
})  # fmt: skip


def read_request(body: JsonObject, profile: ResponsesProfile | None = None) -> Request:
    """Return the request of a body. Unknown data become opaque parts and ``extra_body``."""
    profile = profile or OPENAI
    rest: JsonObject = {name: value for name, value in body.items() if name not in _MODELLED and value is not None}
    options, extra = _read_options(rest, profile)
    for reader in (_read_store, _read_reasoning, _read_include):
        modelled, left = reader(body, profile)
        options, extra = {**options, **modelled}, {**extra, **left}
    tools, wires_left = _read_tools(body)
    choice, choice_left = _read_choice(body.get("tool_choice"))
    wanted, text_left = _read_format(body.get("text"))
    extra |= {**wires_left, **choice_left, **text_left}
    parallel = body.get("parallel_tool_calls")
    return Request(
        tuple(_read_messages(body, profile)),
        tools,
        choice,
        parallel if isinstance(parallel, bool) else None,
        wanted,
        {**options, "extra_body": extra} if extra else options,
    )


_Read: TypeAlias = tuple[JsonObject, JsonObject]
"""Options, and the fields for ``extra_body``."""


def _read_options(rest: JsonObject, profile: ResponsesProfile) -> _Read:
    places = {**OPTIONS, **profile.options}
    names = {option.path: name for name, option in places.items() if isinstance(option, Place)}
    options: JsonObject = {names[key]: value for key, value in rest.items() if key in names}
    return options, {key: value for key, value in rest.items() if key not in names}


def _read_store(body: JsonObject, profile: ResponsesProfile) -> _Read:
    store = body.get("store")
    if store is None and profile.store is not None:
        store = True  # the provider's default
    return {}, {} if store == profile.store else {"store": store}


def _read_reasoning(body: JsonObject, profile: ResponsesProfile) -> _Read:
    wire = body.get("reasoning")
    given: JsonObject = {name: value for name, value in object_of(wire).items() if value is not None}
    effort = given.get("effort")
    word = "off" if effort == "none" else effort
    options: JsonObject = {}
    if isinstance(word, str) and word in profile.efforts:
        options["reasoning"] = word
        del given["effort"]
    return options, {"reasoning": given} if given else {}


def _read_include(body: JsonObject, profile: ResponsesProfile) -> _Read:
    include = body.get("include")
    words = [word for word in include if isinstance(word, str)] if isinstance(include, list) else []
    if set(words) - {ENCRYPTED, LOGPROBS}:
        return {}, {"include": include}
    return {"logprobs": True} if LOGPROBS in words else {}, {}


def _read_tools(body: JsonObject) -> tuple[tuple[JsonObject, ...], JsonObject]:
    """Return the tools, and the complete list if a tool has unknown fields."""
    wires = objects_of(body.get("tools"))
    more = any(wire.get("type") == "function" and wire.keys() - _TOOL_FIELDS for wire in wires)
    return tuple(map(_read_tool, wires)), {"tools": body["tools"]} if more else {}


_TOOL_FIELDS = frozenset({"type", "name", "description", "parameters", "strict"})


def _read_tool(wire: JsonObject) -> JsonObject:
    kind = string_of(wire, "type") or "function"
    fields = ("name", "description", "parameters")
    if kind == "function":
        return {"type": kind, kind: {name: wire[name] for name in fields if wire.get(name) is not None}}
    settings: JsonObject = {name: value for name, value in wire.items() if name != "type" and value is not None}
    if kind == "web_search":
        settings = _read_search(settings)
    return {"type": kind, kind: settings}


def _read_search(settings: JsonObject) -> JsonObject:
    filters, location = object_of(settings.get("filters")), object_of(settings.get("user_location"))
    read: JsonObject = {name: value for name, value in settings.items() if name not in ("filters", "user_location")}
    if filters.get("allowed_domains"):
        read["allowed_domains"] = filters["allowed_domains"]
    if location:
        read["user_location"] = {name: value for name, value in location.items() if name != "type"}
    return read


_CHOICES: Mapping[str, ToolChoice] = {
    "auto": ToolChoice.AUTO, "none": ToolChoice.NONE, "required": ToolChoice.REQUIRED,
}  # fmt: skip


def _read_choice(choice: JsonValue) -> tuple[ToolChoice | None, JsonObject]:
    if choice is None:
        return None, {}
    if isinstance(choice, str) and choice in _CHOICES:
        return _CHOICES[choice], {}
    if (name := string_of(choice, "name")) and string_of(choice, "type") == "function":
        return ToolChoice.named(name), {}
    tools = objects_of(object_of(choice).get("tools"))
    names = tuple(name for tool in tools if (name := string_of(tool, "name")))
    if not names or len(names) < len(tools):
        return None, {"tool_choice": choice}
    return ToolChoice("required" if string_of(choice, "mode") == "required" else "auto", names), {}


def _read_format(text: JsonValue) -> tuple[ResponseFormat | None, JsonObject]:
    rest = {name: value for name, value in object_of(text).items() if name != "format"}
    wanted, left = _read_schema(object_of(object_of(text).get("format")))
    if left:
        rest["format"] = left
    return wanted, {"text": rest} if rest else {}


def _read_schema(wire: JsonObject) -> tuple[ResponseFormat | None, JsonObject]:
    kind, schema = wire.get("type"), wire.get("schema")
    if kind == "json_object":
        return ResponseFormat(), {}
    if kind != "json_schema" or not isinstance(schema, dict):
        return None, wire
    left: JsonObject = {name: value for name, value in wire.items() if name not in ("type", "name", "schema")}
    return ResponseFormat(schema, string_of(wire, "name") or "response"), left


# --- the conversation


_ROLES: Mapping[str, Role] = {"system": "system", "developer": "system"}


def _read_messages(body: JsonObject, profile: ResponsesProfile) -> list[Message]:
    """Join items of the model in a row to one turn, and results in a row to one turn."""
    instructions = body.get("instructions")
    messages: list[Message] = [Message.system(instructions)] if isinstance(instructions, str) and instructions else []
    given = body.get("input")
    if isinstance(given, str):
        return [*messages, Message.user(given)]
    names: dict[str, str] = {}
    for item in objects_of(given):
        role, parts = _read_item(item, names, profile)
        names |= {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        if messages and messages[-1].role == role and role in ("assistant", "tool") and not _new_turn(messages, parts):
            parts = (*messages.pop().parts, *parts)
        messages.append(Message(role, parts))
    return messages


def _new_turn(messages: Sequence[Message], parts: tuple[Part, ...]) -> bool:
    """Return True for a plain text after a plain text: in one turn both would be one text."""
    return isinstance(parts[0], TextPart) and isinstance(messages[-1].parts[-1], TextPart)


def _read_item(item: JsonObject, names: Mapping[str, str], profile: ResponsesProfile) -> tuple[Role, tuple[Part, ...]]:
    if (string_of(item, "type") or "") in ("function_call_output", "custom_tool_call_output"):
        return "tool", (_read_result(item, names, profile),)
    role = string_of(item, "role")
    if role in (None, "assistant"):
        parts = tuple(decode_item(item, NameMap((), profile.names), profile.family))
        return "assistant", parts or (TextPart(""),)
    if item.get("type", "message") != "message":  # tools that a developer adds in between
        return _ROLES.get(role, "user"), (OpaquePart(profile.family, item),)
    return _ROLES.get(role, "user"), _read_parts(item.get("content"), profile)


def _read_result(item: JsonObject, names: Mapping[str, str], profile: ResponsesProfile) -> ToolResult:
    call_id, output = string_of(item, "call_id") or "", item.get("output")
    wires = objects_of(output)
    media = tuple(_read_media(wire) for wire in wires)
    text = output if isinstance(output, str) else ""
    if media and isinstance(first := media[0], TextPart):
        text, media = first.text, media[1:]
    content, failed = read_error_text(text)
    return ToolResult(call_id, names.get(call_id, ""), content, failed, media)


def _read_media(wire: JsonObject) -> MediaPart:
    reader = _READERS.get(string_of(wire, "type") or "")
    return reader(wire) if reader else TextPart(dumps(wire))


def _read_parts(content: JsonValue, profile: ResponsesProfile) -> tuple[Part, ...]:
    return read_content(content, _READERS, encode_part, profile)


def _read_image(wire: JsonObject) -> ImagePart:
    url, detail = string_of(wire, "image_url"), string_of(wire, "detail")
    media_type, data = split_data_url(url or "")
    detail = None if detail == "auto" else detail
    return ImagePart(None if data is not None else url, data, media_type, detail, string_of(wire, "file_id"))


def _read_file(wire: JsonObject) -> FilePart:
    media_type, data = split_data_url(string_of(wire, "file_data") or "")
    url, file_id, filename = (string_of(wire, name) for name in ("file_url", "file_id", "filename"))
    return FilePart(data, url, file_id, filename, media_type)


_READERS: Mapping[str, Callable[[JsonObject], MediaPart]] = {
    "input_text": lambda wire: TextPart(string_of(wire, "text") or ""),
    "input_image": _read_image,
    "input_file": _read_file,
}
