"""The fake provider's OpenAI Responses wire.

read     items in order: a result for every call and a call for every result, flat tools, no fields of chat completions;
         references to items of earlier answers
write    one item each for reasoning, message and function call
split    the typed events of that answer (``openai_responses_stream``)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.testing.answers import Fault
from sigwire.testing.chunking import Cutter
from sigwire.testing.framing import SSEFraming
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import (
    Bounds,
    IdSequence,
    ParsedRequest,
    ReceivedRequest,
    Rejected,
    numbers_of,
    parts_of,
    tokens_of,
    unloaded_tools,
    usage_of,
)
from sigwire.testing.wires.openai import (
    OpenAIWire,
    check_length,
    check_name,
    detailed_counts,
    image,
    read_choice,
    read_effort,
    read_format,
    read_function,
    stream_options,
)
from sigwire.testing.wires.openai_responses_stream import events

__all__ = ["OpenAIResponses"]

FIELDS = frozenset(
    """background context_management conversation include input instructions max_output_tokens max_tool_calls metadata model
    moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention
    reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p
    truncation user""".split()
)
ITEMS = frozenset(
    {
        "message",
        "function_call",
        "function_call_output",
        "item_reference",
        "reasoning",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
CONTENT: Mapping[str, frozenset[str]] = {
    "user": frozenset({"input_text", "input_image", "input_file"}),
    "system": frozenset({"input_text"}),
    "developer": frozenset({"input_text"}),
    "assistant": frozenset({"output_text", "refusal"}),
    "result": frozenset({"input_text", "input_image", "input_file"}),
}
_LOGPROBS = "message.output_text.logprobs"
_ROLE: Mapping[str, Any] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


# The fields of the request that a response repeats, with their defaults.
_SETTINGS: Mapping[str, Any] = {
    "background": False, "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": {},
    "previous_response_id": None, "prompt_cache_key": None, "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None, "service_tier": "default", "store": False, "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"}, "tool_choice": "auto", "tools": [], "top_logprobs": 0,
    "top_p": 1.0, "truncation": "disabled", "user": None,
}  # fmt: skip


class OpenAIResponses(OpenAIWire):
    """``POST /v1/responses``."""

    name = "openai-responses"
    route = re.compile(r"/v1/responses")

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        body.fields(FIELDS)
        model = body["model"].text()
        for name in ("previous_response_id", "conversation", "prompt", "background"):
            if body.has(name) and body[name].value is not False:
                raise body[name].wrong(f"Unsupported value: '{name}': the fake provider stores nothing.")
        tools = tuple(map(_tool, body["tools"].items())) if body.has("tools") else ()
        _check_search(body.get("tools"), tools)
        instructions, parallel, text = map(body.get, ("instructions", "parallel_tool_calls", "text"))
        system = (Message.system(instructions.text()),) if instructions else ()
        request = Request(
            (*system, *_input(body["input"], exchange.stored)),
            tools,
            read_choice(body.get("tool_choice"), tools, nested=False),
            parallel.flag() if parallel else None,
            read_format(text.get("format") if text else None, None, "invalid_json_schema"),
            _options(body),
        )
        streamed, options = stream_options(body, {"include_obfuscation"})
        framing = SSEFraming(named=True) if streamed else None
        padded, stored = options.flag_at("include_obfuscation", default=True), body.flag_at("store", default=True)
        return ParsedRequest(model, request, framing, padded=padded, stored=stored)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        usage, choice = usage_of(response, parsed), response.choices[0]
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(choice.finish_reason)
        reason = None if choice.refusal is not None else reason
        return {
            **_SETTINGS,
            "id": response.id or ids("resp_"),
            "object": "response",
            "created_at": 1767225600,
            "status": "incomplete" if reason else "completed",
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "model": response.model or parsed.model,
            "output": _items(choice, parsed, ids),
            "parallel_tool_calls": parsed.request.parallel_tool_calls is not False,
            "usage": detailed_counts(usage),
        }

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        return events(body, cut, padded=parsed.padded)

    def fail(self, fault: Fault, request_id: str, position: int) -> JsonObject:
        _, _, code = self.status(fault)
        event: JsonObject = {"type": "error", "sequence_number": position}
        return {**event, "code": code, "message": fault.message, "param": fault.param}


def _items(choice: Choice, parsed: ParsedRequest, ids: IdSequence) -> list[JsonValue]:
    tokens = tokens_of(choice, parsed)
    parts = parts_of(choice, ids, "call_")
    items = _searches(unloaded_tools(parts, parsed.request), parsed.request.tools, ids)
    items += [_item(part, choice, tokens, ids) for part in parts]
    if choice.refusal is not None:
        items.append(_message_item({"type": "refusal", "refusal": choice.refusal}, ids))
    return items


def _item(part: Part, choice: Choice, tokens: list[Any], ids: IdSequence) -> JsonValue:
    if isinstance(part, TextPart):
        text: JsonObject = {"type": "output_text", "text": part.text}
        return _message_item({**text, "annotations": list(choice.citations), "logprobs": tokens}, ids)
    if isinstance(part, ThinkingPart):
        summary: list[JsonValue] = [{"type": "summary_text", "text": part.text}]
        sealed = part.signature or ids("sealed_")
        return {"type": "reasoning", "id": ids("rs_"), "summary": summary, "encrypted_content": sealed}
    if isinstance(part, ToolCall):
        call: JsonObject = {"call_id": part.id, "name": part.name, "arguments": part.arguments_text}
        return {"type": "function_call", "id": ids("fc_"), "status": "completed", **call}
    assert isinstance(part, OpaquePart), f"an answer cannot hold {part.kind}"
    return part.data


def _searches(names: list[str], tools: Iterable[JsonObject], ids: IdSequence) -> list[JsonValue]:
    """Return the items of a search that loads deferred tools."""
    if not names:
        return []
    found: list[JsonValue] = [
        {"type": "function", **function}
        for tool in tools
        if isinstance(function := tool.get("function"), dict) and function["name"] in names
    ]
    shared: JsonObject = {"execution": "server", "call_id": None, "status": "completed"}
    call: JsonObject = {"type": "tool_search_call", "id": ids("tsc_"), **shared, "arguments": {"paths": [*names]}}
    return [call, {"type": "tool_search_output", "id": ids("tso_"), **shared, "tools": found}]


def _check_search(node: RequestNode | None, tools: Iterable[JsonObject]) -> None:
    """Refuse deferred tools without the tool that searches them."""
    is_deferred = any(isinstance(each := tool.get("function"), dict) and each.get("defer_loading") for tool in tools)
    if node and is_deferred and not any(tool["type"] == "tool_search" for tool in tools):
        raise node.wrong("Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.")


def _message_item(content: JsonObject, ids: IdSequence) -> JsonObject:
    return {"type": "message", "id": ids("msg_"), "role": "assistant", "status": "completed", "content": [content]}


def _input(node: RequestNode, stored: Mapping[str, JsonValue]) -> tuple[Message, ...]:
    if node.kind == "string":
        return (Message.user(node.text()),)
    items = [
        _stored_item(item, stored) if _kind(item) == "item_reference" else item for item in node.items(filled=True)
    ]
    _check_pairs(items)
    names: dict[str, str] = {}
    messages: list[Message] = []
    for item in items:
        role, parts = _read_item(item, _kind(item), names)
        if messages and messages[-1].role == role and role in ("assistant", "tool"):
            parts = (*messages.pop().parts, *parts)
        messages.append(Message(role, parts))
    return tuple(messages)


def _kind(item: RequestNode) -> str:
    return item["type"].text(ITEMS) if item.has("type") else "message"


def _stored_item(reference: RequestNode, stored: Mapping[str, JsonValue]) -> RequestNode:
    if (id := reference["id"].text()) in stored:
        return RequestNode(stored[id], reference.path)
    lost = f"Item with id '{id}' not found. Items are not persisted when `store` is set to false."
    raise Rejected(Fault("bad_request", lost, 404, param="input"))


def _check_pairs(items: list[RequestNode]) -> None:
    """Check that every call has a later result, every result an earlier call, and reasoning an item of the model behind it."""
    waiting: dict[str, RequestNode] = {}
    for item, following in zip(items, [*items[1:], None], strict=True):
        kind = _kind(item)
        if kind == "reasoning" and (following is None or not _is_of_model(following)):
            lost = f"Item '{item['id'].text()}' of type 'reasoning' was provided without its required following item."
            raise InvalidValue("value", ("input",), text=lost)
        if kind == "function_call":
            waiting[check_length(item["call_id"], 64)] = item
        elif kind == "function_call_output" and waiting.pop(item["call_id"].text(), None) is None:
            lost = f"No tool call found for function call output with call_id {item['call_id'].value}."
            raise InvalidValue("value", ("input",), text=lost)
    if waiting:
        raise InvalidValue("value", ("input",), text=f"No tool output found for function call {next(iter(waiting))}.")


def _is_of_model(item: RequestNode) -> bool:
    kind = _kind(item)
    return kind != "function_call_output" and (kind != "message" or item["role"].text() == "assistant")


_Read: TypeAlias = "tuple[Any, tuple[Part, ...]]"


def _read_item(item: RequestNode, kind: str, names: dict[str, str]) -> _Read:
    if kind == "message":
        role = item["role"].text(set(_ROLE))
        return _ROLE[role], _content(item["content"], role)
    if kind == "function_call":
        item.fields({"type", "id", "call_id", "name", "arguments", "status", "caller", "namespace", "async"})
        id, name = item["call_id"].text(), check_name(item["name"])
        names[id] = name
        return "assistant", (ToolCall.read(id, name, item["arguments"].text()),)
    if kind == "function_call_output":
        item.fields({"type", "id", "call_id", "output", "status"})
        id = item["call_id"].text()
        parts = _content(item["output"], "result")
        text = "".join(part.text for part in parts if isinstance(part, TextPart))
        media = tuple(part for part in parts if isinstance(part, MediaPart) and not isinstance(part, TextPart))
        return "tool", (ToolResult(id, names[id], text, media=media),)
    if kind == "reasoning":
        item["summary"].items()
    return "assistant", (OpaquePart("openai", item.value),)


def _content(node: RequestNode, role: str) -> tuple[Part, ...]:
    if node.kind == "string":
        return (TextPart(node.value),) if node.value else ()
    return tuple(_part(part, part["type"].text(CONTENT[role])) for part in node.items())


def _part(node: RequestNode, kind: str) -> Part:
    if kind == "input_image":
        if file := node.get("file_id"):
            return ImagePart(file_id=file.text())
        return image(node["image_url"].text(), node.text_at("detail") or None)
    if kind == "input_file":
        given = {name: node[name].text() for name in ("file_data", "file_url", "file_id", "filename") if node.has(name)}
        return FilePart(given.get("file_data"), given.get("file_url"), given.get("file_id"), given.get("filename"))
    return TextPart(node["refusal" if kind == "refusal" else "text"].text())


def _tool(node: RequestNode) -> JsonObject:
    kind = node["type"].text({"function", "tool_search", "web_search", "web_search_2025_08_26"})
    if kind == "tool_search":
        node.fields({"type", "description", "execution", "parameters"})
        return {"type": kind, kind: {}}
    if kind != "function":
        return {
            "type": "web_search",
            "web_search": {key: value for key, value in node.fields().items() if key != "type"},
        }
    node.fields({"type", "name", "description", "parameters", "strict", "defer_loading"})
    return read_function(node, defer=node.flag_at("defer_loading"))


_NUMBERS: Bounds = (
    ("max_output_tokens", "max_tokens", int, 16, None),
    ("temperature", "temperature", float, 0, 2),
    ("top_p", "top_p", float, 0, 1),
    ("top_logprobs", "top_logprobs", int, 0, 20),
)


def _options(body: RequestNode) -> JsonObject:
    options = numbers_of(body, _NUMBERS)
    if (node := body.get("include")) and any(item.text() == _LOGPROBS for item in node.items()):
        options["logprobs"] = True
    reasoning = body.get("reasoning")
    return {**options, **read_effort(reasoning.get("effort") if reasoning else None)}
