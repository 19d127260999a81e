"""The fake provider's OpenAI chat completions wire.

read     every call answered directly after its turn, known results, arguments as JSON text, valid names and formats
write    one choice for each candidate; OpenAI returns no reasoning, compatible hosts return it
split    the chunks of that answer (``openai_chat_stream``)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.testing.chunking import Cutter
from sigwire.testing.framing import SSEFraming
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import (
    Bounds,
    IdSequence,
    ParsedRequest,
    ReceivedRequest,
    numbers_of,
    parts_of,
    tokens_of,
    usage_of,
)
from sigwire.testing.wires.openai import (
    OpenAIWire,
    check_length,
    check_name,
    image,
    read_choice,
    read_effort,
    read_format,
    read_function,
    stream_options,
)
from sigwire.testing.wires.openai_chat_stream import chunks

__all__ = ["OpenAIChat"]

FIELDS = frozenset(
    """audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
    modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
    prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
    stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options""".split()
)
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
PARTS: Mapping[str, frozenset[str]] = {
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
}


class OpenAIChat(OpenAIWire):
    """``POST /v1/chat/completions``."""

    name = "openai"
    route = re.compile(r"/v1/chat/completions")
    finish_reasons: ClassVar[Mapping[str, str]] = {"error": "stop"}  # those that OpenAI has no name for
    reasoning: ClassVar[str | None] = None  # the field of a message
    longest_id: ClassVar[int] = 40

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        body.fields(FIELDS)
        model = body["model"].text()
        messages = _messages(body["messages"].items(filled=True))
        for turn in body["messages"].items():
            for call in found.items() if (found := turn.get("tool_calls")) else ():
                check_length(call["id"], self.longest_id)
        tools = tuple(_tool(tool) for tool in body["tools"].items(filled=True)) if body.has("tools") else ()
        for name in ("tool_choice", "parallel_tool_calls"):
            if not tools and (node := body.get(name)):
                raise node.wrong(f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.")
        request = Request(
            messages,
            tools,
            read_choice(body.get("tool_choice"), tools, nested=True),
            node.flag() if (node := body.get("parallel_tool_calls")) else None,
            _response_format(body.get("response_format"), messages),
            _options(body),
        )
        streamed, options = stream_options(body, {"include_usage", "include_obfuscation"})
        usage, padded = options.flag_at("include_usage"), options.flag_at("include_obfuscation", default=True)
        return ParsedRequest(model, request, SSEFraming(done="[DONE]") if streamed else None, usage, padded)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        usage = usage_of(response, parsed)
        return {
            "id": response.id or ids("chatcmpl-"),
            "object": "chat.completion",
            "created": 1767225600,
            "model": response.model or parsed.model,
            "choices": [self._choice(choice, index, parsed, ids) for index, choice in enumerate(response.choices)],
            "usage": {
                "prompt_tokens": usage.input_tokens,
                "completion_tokens": usage.output_tokens,
                "total_tokens": usage.total_tokens,
                "prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0, "audio_tokens": 0},
            },
            "service_tier": "default",
            "system_fingerprint": None,
        }

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        return chunks(body, cut, usage=parsed.usage, padded=parsed.padded)

    def _choice(self, choice: Choice, index: int, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        parts = parts_of(choice, ids, "call_")
        calls: list[JsonValue] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}
            for call in parts
            if isinstance(call, ToolCall)
        ]
        text = _text_of(parts, TextPart)
        message: JsonObject = {
            "role": "assistant",
            "content": text or (None if calls or choice.refusal is not None else ""),
            "refusal": choice.refusal,
            "annotations": list(choice.citations),
        }
        if self.reasoning and (thought := _text_of(parts, ThinkingPart)):
            message[self.reasoning] = thought
        if calls:
            message["tool_calls"] = calls
        reason = "stop" if choice.refusal is not None else choice.finish_reason
        tokens = tokens_of(choice, parsed)
        return {
            "index": index,
            "message": message,
            "logprobs": {"content": tokens, "refusal": None} if tokens else None,
            "finish_reason": "tool_calls" if calls and reason == "stop" else self.finish_reasons.get(reason, reason),
        }


def _text_of(parts: tuple[Part, ...], kind: type[TextPart | ThinkingPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, kind))


def _messages(nodes: list[RequestNode]) -> tuple[Message, ...]:
    messages: list[Message] = []
    open_calls: dict[str, str] = {}
    calls_at: RequestNode | None = None
    for node in nodes:
        role = node["role"].text(ROLES)
        if role == "tool":
            result = _result(node, open_calls)
            if messages[-1].role == "tool":
                messages[-1] = Message("tool", (*messages[-1].parts, result))
            else:
                messages.append(Message("tool", (result,)))
            continue
        _all_answered(open_calls, calls_at)
        message = _message(node, role)
        messages.append(message)
        open_calls, calls_at = {call.id: call.name for call in message.tool_calls}, node
    _all_answered(open_calls, calls_at)
    return tuple(messages)


def _all_answered(open_calls: Mapping[str, str], turn: RequestNode | None) -> None:
    if open_calls and turn is not None:
        raise turn.wrong(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
            f"The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )


def _result(node: RequestNode, open_calls: dict[str, str]) -> ToolResult:
    at = node["tool_call_id"]
    if not open_calls:
        raise node.wrong("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
    if at.text() not in open_calls:
        raise at.wrong(
            f"Invalid parameter: 'tool_call_id' of '{at.value}' not found in 'tool_calls' of previous message."
        )
    text = "".join(part.text for part in _content(node["content"], "tool") if isinstance(part, TextPart))
    return ToolResult(at.text(), open_calls.pop(at.text()), text)


def _message(node: RequestNode, role: str) -> Message:
    calls = tuple(map(_call, found.items(filled=True))) if (found := node.get("tool_calls")) else ()
    content = node.get("content")
    if content is None and not (role == "assistant" and (calls or node.has("refusal"))):
        raise InvalidValue("type", (*node.path, "content"), wanted="string", found="null")
    parts = _content(content, role) if content is not None else ()
    return Message("system" if role == "developer" else _ROLE[role], (*parts, *calls))


_ROLE: Mapping[str, Any] = {"system": "system", "user": "user", "assistant": "assistant"}


def _content(node: RequestNode, role: str) -> tuple[Part, ...]:
    if isinstance(node.value, str):
        return (TextPart(node.value),) if node.value else ()
    return tuple(_part(part, part["type"].text(PARTS[role])) for part in node.items(filled=True))


def _part(node: RequestNode, kind: str) -> Part:
    if kind in ("text", "refusal"):
        return TextPart(node[kind].text())
    if kind == "image_url":
        picture = node["image_url"]
        return image(picture["url"].text(), picture.text_at("detail") or None)
    if kind == "input_audio":
        audio = node["input_audio"]
        return AudioPart(audio["data"].text(), audio["format"].text({"wav", "mp3"}))
    given = {name: value.text() for name in ("file_data", "file_id", "filename") if (value := node["file"].get(name))}
    return FilePart(given.get("file_data"), None, given.get("file_id"), given.get("filename"))


def _call(node: RequestNode) -> ToolCall:
    node["type"].text({"function"})
    function = node["function"]
    check_name(function["name"])
    return ToolCall.read(node["id"].text(), function["name"].text(), function["arguments"].text())


def _tool(node: RequestNode) -> JsonObject:
    node["type"].text({"function"})
    function = node["function"]
    function.fields({"name", "description", "parameters", "strict"})
    return read_function(function)


def _response_format(node: RequestNode | None, messages: tuple[Message, ...]) -> ResponseFormat | None:
    wanted = read_format(node, "json_schema", "invalid_value")
    if wanted == ResponseFormat() and "json" not in json.dumps([message.to_json() for message in messages]).lower():
        raise InvalidValue(
            "value",
            ("messages",),
            text="'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
        )
    return wanted


def _options(body: RequestNode) -> JsonObject:
    if body.has("max_tokens") and body.has("max_completion_tokens"):
        raise body["max_tokens"].wrong(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
        )
    if body.has("top_logprobs") and not body.value.get("logprobs"):
        raise body["top_logprobs"].wrong("'top_logprobs' is only allowed when 'logprobs' is enabled.")
    options = numbers_of(body, _NUMBERS)
    if node := body.get("logprobs"):
        options["logprobs"] = node.flag()
    options |= read_effort(body.get("reasoning_effort"))
    if node := body.get("stop"):
        options["stop"] = node.value if isinstance(node.value, str) else [item.text() for item in _at_most_four(node)]
    return options


def _at_most_four(node: RequestNode) -> list[RequestNode]:
    if len(items := node.items()) > 4:
        raise node.wrong(
            f"Invalid 'stop': array too long. Expected an array with maximum length 4, but got {len(items)}."
        )
    return items


_NUMBERS: Bounds = (
    ("temperature", "temperature", float, 0, 2),
    ("top_p", "top_p", float, 0, 1),
    ("frequency_penalty", "frequency_penalty", float, -2, 2),
    ("presence_penalty", "presence_penalty", float, -2, 2),
    ("max_completion_tokens", "max_tokens", int, 1, None),
    ("max_tokens", "max_tokens", int, 1, None),
    ("n", "n", int, 1, 128),
    ("seed", "seed", int, None, None),
    ("top_logprobs", "top_logprobs", int, 0, 20),
)
