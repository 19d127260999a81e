"""generateContent: body -> Request, for fakes and conformance: what ``encoding`` wrote is read back."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult, number_calls
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.names import NameMap
from sigwire.lm.codecs.gemini.parts import decode_media, decode_part
from sigwire.lm.codecs.gemini.profiles import GEMINI, GeminiProfile
from sigwire.lm.codecs.gemini.tables import JSON_TYPE, OPTIONS
from sigwire.lm.codecs.shared.options import Place
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, value_at

__all__ = ["read_request"]


def read_request(body: JsonObject, dialect: GeminiProfile = GEMINI) -> Request:
    """The request that this body is the encoding of, its keys in either spelling of the wire (camelCase, snake_case).

    What is not modelled stays in opaque parts and ``extra_body``.
    """
    body = cast(JsonObject, _in_camel_case(body))
    tools = [tool for entry in _entries(body.get("tools")) for tool in _read_tools(entry)]
    choice, unread_config = _read_choice(body.get("toolConfig"), tools, dialect)
    wanted, options, unread_generation = _read_generation(body.get("generationConfig"))
    named = {option.path: name for name, option in {**OPTIONS, **dialect.options}.items() if isinstance(option, Place)}
    options |= {named[name]: value for name, value in body.items() if name in named}
    extra: JsonObject = {name: value for name, value in body.items() if name not in _MODELLED and name not in named}
    extra |= {"toolConfig": unread_config} if unread_config else {}
    extra |= {"generationConfig": unread_generation} if unread_generation else {}
    system = objects_of(value_at(body, "systemInstruction.parts"))
    return Request(
        (
            *((Message("system", _read_parts(system, dialect)),) if system else ()),
            *_read_contents(objects_of(body.get("contents")), dialect),
        ),
        tuple(tools),
        choice,
        None,
        wanted,
        {**options, "extra_body": extra} if extra else options,
    )


_MODELLED = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"})
_NOT_OURS = frozenset({"args", "response", "parameters", "parametersJsonSchema", "responseJsonSchema", "responseSchema",
                       "labels", "partMetadata"})  # fmt: skip


def _in_camel_case(value: JsonValue) -> JsonValue:
    """The wire's own keys in camelCase; what callers and models put in stays as it is."""
    if isinstance(value, list):
        return [_in_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {re.sub(r"_([a-z])", lambda found: found.group(1).upper(), name): child for name, child in value.items()}
    return {name: child if name in _NOT_OURS else _in_camel_case(child) for name, child in renamed.items()}


def _entries(value: JsonValue) -> tuple[JsonObject, ...]:
    return (value,) if isinstance(value, dict) else objects_of(value)  # one entry may stand without its list


# --- contents


def _read_contents(contents: Iterable[JsonObject], dialect: GeminiProfile) -> list[Message]:
    """Neighbours of one role are one turn; results come out of it first."""
    turns = [
        (role == "model", tuple(wire for content in group for wire in objects_of(content.get("parts"))))
        for role, group in itertools.groupby(contents, lambda content: string_of(content, "role") or "user")
    ]
    messages: list[Message] = []
    calls: tuple[ToolCall, ...] = ()
    taken: set[str] = set()
    for is_model, wires in turns:
        if is_model:
            message = _read_model(wires, taken, dialect)
            calls = message.tool_calls
            taken |= {call.id for call in calls}
            messages.append(message)
            continue
        answers = [cast(JsonObject, wire["functionResponse"]) for wire in wires if _is_answer(wire)]
        said = [wire for wire in wires if not _is_answer(wire)]
        if answers:
            messages.append(Message.tool(*_read_results(answers, calls)))
        if said:
            messages.append(Message("user", _read_parts(said, dialect)))
    return messages


def _is_answer(wire: JsonObject) -> bool:
    return isinstance(wire.get("functionResponse"), dict)


def _read_model(wires: Iterable[JsonObject], taken: Iterable[str], dialect: GeminiProfile) -> Message:
    parts = _read_parts(wires, dialect)
    numbered = iter(number_calls((part for part in parts if isinstance(part, ToolCall)), taken))
    return Message("assistant", tuple(next(numbered) if isinstance(part, ToolCall) else part for part in parts))


def _read_parts(wires: Iterable[JsonObject], dialect: GeminiProfile) -> tuple[Part, ...]:
    return tuple(part for wire in wires for part in decode_part(wire, NameMap((), dialect.names), dialect.family))


def _read_results(answers: Iterable[JsonObject], calls: tuple[ToolCall, ...]) -> list[ToolResult]:
    """A result without an id belongs to the first call of its name that has none yet."""
    results: list[ToolResult] = []
    waiting = list(calls)
    for answer in answers:
        call_id, name = string_of(answer, "id"), string_of(answer, "name") or ""
        call = next((call for call in waiting if call.id == call_id or (call_id is None and call.name == name)), None)
        if call is not None:
            waiting.remove(call)
        results.append(_read_result(answer, call_id or (call.id if call else ""), name))
    return results


def _read_result(answer: JsonObject, call_id: str, name: str) -> ToolResult:
    response = answer.get("response")
    key = next(iter(response)) if isinstance(response, dict) and len(response) == 1 else None
    content = response[key] if isinstance(response, dict) and key in ("output", "error") else response
    media = tuple(part for wire in objects_of(answer.get("parts")) if (part := decode_media(wire)) is not None)
    return ToolResult(call_id, name, content, key == "error", media)


# --- tools


def _read_tools(entry: JsonObject) -> Iterator[JsonObject]:
    for key, settings in entry.items():
        if key == "functionDeclarations":
            yield from map(_read_function, objects_of(settings))
        elif key == "googleSearch" and not settings:
            yield {"type": "web_search", "web_search": {}}
        else:
            yield {"type": key, key: settings}


def _read_function(declared: JsonObject) -> JsonObject:
    function: JsonObject = {name: declared[name] for name in ("name", "description") if name in declared}
    schema = declared.get("parametersJsonSchema") or _with_small_types(declared.get("parameters"))
    if schema:
        function["parameters"] = schema
    return {"type": "function", "function": function}


def _with_small_types(schema: JsonValue) -> JsonValue:
    """Return the schema with types in lower case: ``parameters`` has OpenAPI's upper case."""
    if isinstance(schema, list):
        return [_with_small_types(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.lower() if name == "type" and isinstance(value, str) else _with_small_types(value)
        for name, value in schema.items()
    }


def _read_choice(
    config: JsonValue, tools: Sequence[JsonObject], dialect: GeminiProfile
) -> tuple[ToolChoice | None, JsonObject]:
    """The choice, and what of the configuration would not be written again from it and the tools."""
    unread: JsonObject = dict(config) if isinstance(config, dict) else {}
    kinds = {tool["type"] == "function" for tool in tools}
    if kinds == {True, False} and dialect.announce_builtin and unread.get("includeServerSideToolInvocations") is True:
        del unread["includeServerSideToolInvocations"]
    calling = unread.get("functionCallingConfig")
    if True not in kinds or not isinstance(calling, dict) or calling.keys() - {"mode", "allowedFunctionNames"}:
        return None, unread
    listed = calling.get("allowedFunctionNames")
    allowed = tuple(str(name) for name in listed) if isinstance(listed, list) else ()
    choice = _CHOICES.get((str(calling.get("mode")), bool(allowed)))
    if choice is not None:
        del unread["functionCallingConfig"]
    return replace(choice, allowed=allowed) if choice else None, unread


_CHOICES: Mapping[tuple[str, bool], ToolChoice] = {
    ("AUTO", False): ToolChoice.AUTO,
    ("ANY", False): ToolChoice.REQUIRED,
    ("NONE", False): ToolChoice.NONE,
    ("ANY", True): ToolChoice.REQUIRED,
    ("VALIDATED", True): ToolChoice.AUTO,
}


# --- generationConfig


def _read_generation(config: JsonValue) -> tuple[ResponseFormat | None, JsonObject, JsonObject]:
    """The output format, the options, and what is not modelled."""
    unread: JsonObject = dict(config) if isinstance(config, dict) else {}
    options: JsonObject = {}
    for name, option in OPTIONS.items():
        key = option.path.removeprefix("generationConfig.") if isinstance(option, Place) else ""
        if unread.get(key) is not None:
            options[name] = unread.pop(key)
    reasoning = _read_reasoning(unread.get("thinkingConfig"))
    if reasoning is not None:
        options["reasoning"] = reasoning
        del unread["thinkingConfig"]
    if unread.get("responseMimeType") != JSON_TYPE or "responseSchema" in unread:
        return None, options, unread
    del unread["responseMimeType"]
    schema = unread.pop("responseJsonSchema", None)
    return ResponseFormat(schema if isinstance(schema, dict) else None), options, unread


def _read_reasoning(config: JsonValue) -> JsonValue:
    match config:
        case {"thinkingLevel": str(level), "includeThoughts": True, **rest} if not rest:
            return level.lower()
        case {"thinkingBudget": 0, **rest} if not rest:
            return "off"
        case {"thinkingBudget": int(budget), "includeThoughts": True, **rest} if not rest and budget > 0:
            return {"budget": budget}
        case _:
            return None
