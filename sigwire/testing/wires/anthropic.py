"""The fake provider's Anthropic Messages wire.

read     version header, ``max_tokens``, results directly after their calls and first in their turn, valid ids and names,
         signed thinking, the structured-output subset of JSON Schema
write    blocks in the order of the answer's parts; thinking gets a signature
split    the events of that answer (``anthropic_stream``)
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.testing.answers import Fault, FaultKind
from sigwire.testing.chunking import Cutter
from sigwire.testing.framing import SSEFraming
from sigwire.testing.rate_limit import Quota
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import (
    Bounds,
    FakeWire,
    IdSequence,
    ParsedRequest,
    ReceivedRequest,
    Rejected,
    Status,
    arguments_of,
    numbers_of,
    parts_of,
    spec,
    tool_names,
    unloaded_tools,
    usage_of,
)
from sigwire.testing.wires.anthropic_stream import PING, events
from sigwire.testing.wires.anthropic_turns import (
    ROLES,
    missing_results_error,
    new_calls,
    results_of,
    turns_of,
)

__all__ = ["Anthropic"]

FIELDS = frozenset(
    """cache_control container context_management diagnostics inference_geo max_tokens mcp_servers messages metadata model
    output_config service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p""".split()
)
# The former name of ``output_config.format`` is accepted with its beta header.
OUTPUT_FORMAT_BETA = "structured-outputs-2025-11-13"
SAMPLING = ("temperature", "top_k", "top_p")
VERSIONS = frozenset({"2023-06-01", "2026-10-21"})
BLOCKS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"text", "image", "document", "search_result", "tool_result"}),
    "assistant": frozenset(
        {
            "text",
            "thinking",
            "redacted_thinking",
            "tool_use",
            "server_tool_use",
            "web_search_tool_result",
            "tool_search_tool_result",
        }
    ),
    "system": frozenset({"text"}),
}
_SEARCH = "tool_search_tool_bm25"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ID = re.compile(r"[a-zA-Z0-9_-]+")
EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
# Keywords outside of the structured-output subset.
NOT_COMPILED = frozenset(
    """minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems patternProperties oneOf not if
    then else uniqueItems minProperties maxProperties propertyNames""".split()
)
STOP_REASONS: Mapping[str, str] = {
    "stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal", "error": "end_turn",
}  # fmt: skip


class Anthropic(FakeWire):
    """``POST /v1/messages``."""

    name = "anthropic"
    route = re.compile(r"/v1/messages")
    wrong_key = "invalid x-api-key"
    no_key = Fault("auth", "x-api-key header is required")
    no_such_model = "model: {model}"
    statuses: ClassVar[Mapping[str, Status]] = {
        "auth": (401, "authentication_error", None),
        "bad_request": (400, "invalid_request_error", None),
        "billing": (402, "billing_error", None),
        "content_filter": (400, "invalid_request_error", None),
        "context_length": (400, "invalid_request_error", None),
        "not_found": (404, "not_found_error", None),
        "overloaded": (529, "overloaded_error", None),
        "permission": (403, "permission_error", None),
        "rate_limit": (429, "rate_limit_error", None),
        "server": (500, "api_error", None),
        "timeout": (504, "timeout_error", None),
        "too_large": (413, "request_too_large", None),
    }
    messages: ClassVar[Mapping[FaultKind, str]] = {
        "content_filter": "Output blocked by content filtering policy",
        "context_length": "prompt is too long: 210000 tokens > 200000 maximum",
        "overloaded": "Overloaded",
        "rate_limit": "This request would exceed your organization's rate limit of requests per minute.",
    }

    def key(self, exchange: ReceivedRequest) -> str | None:
        key = exchange.headers.get("x-api-key") or super().key(exchange)
        if (version := exchange.headers.get("anthropic-version")) is None:
            raise Rejected(Fault("bad_request", "anthropic-version: header is required"))
        if version not in VERSIONS:
            raise Rejected(Fault("bad_request", f'anthropic-version: "{version}" is not a valid version'))
        return key

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        betas = exchange.headers.get("anthropic-beta", "").replace(" ", "").split(",")
        body.fields(FIELDS | {"output_format"} if OUTPUT_FORMAT_BETA in betas else FIELDS)
        model = body["model"].text()
        limit = body["max_tokens"].integer(0)
        if exchange.headers["anthropic-version"] != "2023-06-01" and (sampling := [n for n in SAMPLING if body.has(n)]):
            raise InvalidValue("unknown", (sampling[0],))
        tools = _tools(body.get("tools"))
        choice, parallel = _tool_choice(body.get("tool_choice"), tools)
        system = (Message("system", _content(node, "system")),) if (node := body.get("system")) else ()
        messages = (*system, *_messages(body["messages"]))
        _check_references(body["messages"], messages, tool_names(tools))
        options: JsonObject = {"max_tokens": limit, **_sampling(body), **_reasoning(body)}
        request = Request(messages, tools, choice, parallel, _format(body), options)
        return ParsedRequest(model, request, SSEFraming(named=True, alive=PING) if body.flag_at("stream") else None)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        usage = usage_of(response, parsed)
        choice = response.choices[0]
        parts = parts_of(choice, ids, "toolu_")
        content = _searches(unloaded_tools(parts, parsed.request), ids) + [_block(part, ids) for part in parts]
        called = any(part.kind == "tool_call" for part in choice.parts) or bool(choice.tool_calls)
        refused = choice.refusal is not None
        reason = "refusal" if refused else STOP_REASONS[choice.finish_reason]
        cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        return {
            "id": response.id or ids("msg_"),
            "type": "message",
            "role": "assistant",
            "model": response.model or parsed.model,
            "content": _add_citations(content, choice),
            "stop_reason": "tool_use" if called and reason == "end_turn" else reason,
            "stop_sequence": None,
            "stop_details": {"type": "refusal", "category": None, "explanation": choice.refusal} if refused else None,
            "usage": {
                "input_tokens": (usage.input_tokens or 0) - cached - written,
                "cache_creation_input_tokens": written,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": written - (usage.hour_write_tokens or 0),
                    "ephemeral_1h_input_tokens": usage.hour_write_tokens or 0,
                },
                "cache_read_input_tokens": cached,
                "output_tokens": usage.output_tokens,
                "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens or 0},
                "service_tier": "standard",
            },
        }

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        return events(body, cut)

    def describe(self, error: InvalidValue) -> Fault:
        problem = {
            "missing": "Field required",
            "unknown": "Extra inputs are not permitted",
            "empty": "List should have at least 1 item after validation, not 0",
            "type": f"Input should be a valid {_TYPES.get(error.wanted, error.wanted)}",
            "value": error.text,
        }[error.kind]
        return Fault("bad_request", f"{'.'.join(map(str, error.path))}: {problem}")

    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        _, kind, code = self.status(fault)
        error: JsonObject = {"type": kind, "message": fault.message}
        if code:
            error["details"] = {"error_code": code}
        return {"type": "error", "error": error, "request_id": request_id}

    def headers(self, fault: Fault | None, request_id: str) -> Mapping[str, str]:
        return {**super().headers(fault, request_id), "request-id": request_id}

    def quota_headers(self, quotas: Sequence[Quota]) -> Mapping[str, str]:
        headers: dict[str, str] = {}
        for name, limit, remaining, reset in quotas:
            at = datetime.fromtimestamp(math.ceil(time.time() + reset), UTC)
            place = f"anthropic-ratelimit-{name}"
            values = {"limit": str(limit), "remaining": str(remaining), "reset": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
            headers.update({f"{place}-{what}": value for what, value in values.items()})
        return headers


_TYPES: Mapping[str, str] = {"array": "list", "object": "dictionary"}


def _block(part: Part, ids: IdSequence) -> JsonValue:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, ToolCall):
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_of(part)}
    if isinstance(part, ThinkingPart):
        if part.redacted is not None:
            return {"type": "redacted_thinking", "data": part.redacted}
        return {"type": "thinking", "thinking": part.text, "signature": part.signature or ids("sig_")}
    assert isinstance(part, OpaquePart), f"an answer cannot hold {part.kind}"
    return part.data


def _searches(names: Sequence[str], ids: IdSequence) -> list[JsonValue]:
    """Return the blocks of a search that loads deferred tools."""
    if not names:
        return []
    id = ids("srvtoolu_")
    found: list[JsonValue] = [{"type": "tool_reference", "tool_name": name} for name in names]
    asked: JsonObject = {"type": "server_tool_use", "id": id, "name": _SEARCH, "input": {"query": " ".join(names)}}
    result: JsonObject = {"type": "tool_search_tool_search_result", "tool_references": found}
    return [asked, {"type": "tool_search_tool_result", "tool_use_id": id, "content": result}]


def _check_references(place: RequestNode, messages: Iterable[Message], names: Sequence[str]) -> None:
    """Refuse a result of an earlier search whose tools the request does not have."""
    for part in (part for message in messages for part in message.parts if isinstance(part, OpaquePart)):
        content = part.data.get("content") if isinstance(part.data, dict) else None
        found = content.get("tool_references") if isinstance(content, dict) else None
        for each in found if isinstance(found, list) else ():
            if isinstance(each, dict) and each.get("tool_name") not in names:
                raise place.wrong(f"Tool reference '{each.get('tool_name')}' not found in available tools")


def _add_citations(content: list[JsonValue], choice: Choice) -> list[JsonValue]:
    for block in reversed(content) if choice.citations else ():
        if isinstance(block, dict) and block["type"] == "text":
            block["citations"] = list(choice.citations)
            break
    return content


def _messages(node: RequestNode) -> tuple[Message, ...]:
    nodes = node.items()
    if not nodes:
        raise node.wrong("at least one message is required")
    if nodes[0]["role"].text() == "assistant":
        raise node.wrong('first message must use the "user" role')
    messages: list[Message] = []
    calls: dict[str, str] = {}
    seen: set[str] = set()
    for number, (role, contents) in enumerate(turns_of(nodes)):
        last = number == len(nodes) - 1
        parts = tuple(part for content in contents for part in _content(content, role, empty=last))
        results = results_of(contents, parts, calls)
        if results:
            messages.append(Message("tool", results))
            parts = parts[len(results) :]
        calls = new_calls(contents[0], parts, seen)
        if parts:
            messages.append(Message(ROLES[role], parts))
    if calls:
        raise missing_results_error(node, calls)
    return tuple(messages)


def _content(node: RequestNode, role: str, *, empty: bool = False) -> tuple[Part, ...]:
    if node.kind == "string":
        if not node.value and not (empty and role == "assistant"):
            raise node.wrong("messages must have non-empty content except for the optional final assistant message")
        return (TextPart(node.value),) if node.value else ()
    return tuple(_part(block, block["type"].text(BLOCKS[role])) for block in node.items(filled=not empty))


def _part(block: RequestNode, kind: str) -> Part:
    read = _READERS.get(kind)
    return read(block) if read else OpaquePart("anthropic", block.value)


def _text(block: RequestNode) -> TextPart:
    block.fields({"type", "text", "citations", "cache_control"})
    if not block["text"].text().strip():
        raise block.wrong(
            f"text content blocks must {'contain non-whitespace text' if block['text'].value else 'be non-empty'}"
        )
    return TextPart(block["text"].text())


def _thinking(block: RequestNode) -> ThinkingPart:
    block.fields({"type", "thinking", "signature"})
    if not block["signature"].text():
        raise block.wrong("Invalid `signature` in `thinking` block")
    return ThinkingPart(block["thinking"].text(), block["signature"].text(), provider="anthropic")


def _call(block: RequestNode) -> ToolCall:
    block.fields({"type", "id", "name", "input", "cache_control", "caller", "toolset_name"})
    id, name = _fitting(block["id"], ID, "^[a-zA-Z0-9_-]+$"), _fitting(block["name"], NAME, "^[a-zA-Z0-9_-]{1,128}$")
    return ToolCall.read(id, name, block["input"].fields())


def _result(block: RequestNode) -> ToolResult:
    block.fields({"type", "tool_use_id", "content", "is_error", "cache_control"})
    content = block.get("content")
    parts = _content(content, "user", empty=content.kind == "string") if content and content.value != "" else ()
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    media = tuple(part for part in parts if isinstance(part, MediaPart) and not isinstance(part, TextPart))
    return ToolResult(block["tool_use_id"].text(), "", text, block.flag_at("is_error"), media)


def _image(block: RequestNode) -> ImagePart:
    source = block["source"]
    kind = source["type"].text({"base64", "url", "file"})
    if kind != "base64":
        return ImagePart(url=source["url"].text()) if kind == "url" else ImagePart(file_id=source["file_id"].text())
    media_type = source["media_type"].text({"image/jpeg", "image/png", "image/gif", "image/webp"})
    return ImagePart(data=source["data"].text(), media_type=media_type)


def _document(block: RequestNode) -> Part:
    source = block["source"]
    kind = source["type"].text({"base64", "url", "file", "text", "content"})
    if kind == "content":
        return OpaquePart("anthropic", block.value)
    field = {"base64": "data", "text": "data", "url": "url", "file": "file_id"}[kind]
    return FilePart(
        **{field: source[field].text()},
        filename=block.text_at("title") or None,
        media_type=source.text_at("media_type") or None,
    )


_READERS: Mapping[str, Callable[[RequestNode], Part]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": lambda block: ThinkingPart(redacted=block["data"].text(), provider="anthropic"),
    "tool_use": _call,
    "tool_result": _result,
    "image": _image,
    "document": _document,
}


def _fitting(node: RequestNode, pattern: re.Pattern[str], shown: str) -> str:
    if not pattern.fullmatch(node.text()):
        raise node.wrong(f"String should match pattern '{shown}'")
    return node.text()


def _tools(node: RequestNode | None) -> tuple[JsonObject, ...]:
    nodes = node.items() if node else []
    names = [tool["name"].text() for tool in nodes]
    if node and len(set(names)) < len(names):
        raise node.wrong("Tool names must be unique.")
    if node and nodes and all(tool.flag_at("defer_loading") for tool in nodes):
        raise node.wrong("At least one tool must have defer_loading=false")
    return tuple(map(_tool, nodes))


def _tool(node: RequestNode) -> JsonObject:
    kind = node.get("type")
    if kind and kind.text() != "custom":
        rest: JsonObject = {key: value for key, value in node.fields().items() if key not in ("type", "name")}
        return {"type": "web_search" if kind.text().startswith("web_search") else kind.text(), kind.text(): rest}
    if (is_deferred := node.flag_at("defer_loading")) and node.has("cache_control"):
        raise node.wrong("Tools with defer_loading cannot have cache_control")
    name = _fitting(node["name"], NAME, "^[a-zA-Z0-9_-]{1,128}$")
    schema = node["input_schema"]
    if schema["type"].value != "object":
        raise schema["type"].wrong("Input should be 'object'")
    if schema.value.keys() & {"anyOf", "oneOf", "allOf"}:
        raise schema.wrong("input_schema does not support oneOf, allOf, or anyOf at the top level")
    if node.flag_at("strict"):
        _check_compiled(schema)
    return spec(name, node.text_at("description"), schema.value, defer=is_deferred)


_CHOICE_FIELDS: Mapping[str, frozenset[str]] = {
    "auto": frozenset({"type", "disable_parallel_tool_use"}),
    "any": frozenset({"type", "disable_parallel_tool_use"}),
    "tool": frozenset({"type", "disable_parallel_tool_use", "name"}),
    "none": frozenset({"type"}),
}


def _tool_choice(node: RequestNode | None, tools: tuple[JsonObject, ...]) -> tuple[ToolChoice | None, bool | None]:
    if node is None:
        return None, None
    if not tools:
        raise node.wrong("tool_choice may only be specified while providing tools")
    kind = node["type"].text({"auto", "any", "tool", "none"})
    node.fields(_CHOICE_FIELDS[kind])
    parallel = False if node.flag_at("disable_parallel_tool_use") else None
    if kind != "tool":
        return {"auto": ToolChoice.AUTO, "any": ToolChoice.REQUIRED, "none": ToolChoice.NONE}[kind], parallel
    name = node["name"].text()
    if name not in tool_names(tools):
        raise node.wrong(f"Tool '{name}' not found in provided tools")
    return ToolChoice.named(name), parallel


def _format(body: RequestNode) -> ResponseFormat | None:
    config, former = body.get("output_config"), body.get("output_format")
    wanted = config.get("format") if config else None
    if wanted and former:
        raise former.wrong("Cannot specify both output_format and output_config.format.")
    if (wanted := wanted or former) is None:
        return None
    wanted.fields({"type", "schema"})
    wanted["type"].text({"json_schema"})
    _check_compiled(wanted["schema"])
    return ResponseFormat(wanted["schema"].value)


def _check_compiled(schema: RequestNode) -> None:
    schema.fields()
    for place in schema.walk():
        if place.kind != "object" or place.path[-1] in ("properties", "$defs"):
            continue
        found = place.fields()
        if unknown := sorted(found.keys() & NOT_COMPILED):
            raise schema.wrong(f"For '{found.get('type')}' type, property '{unknown[0]}' is not supported")
        if found.get("type") == "object" and found.get("additionalProperties") is not False:
            raise schema.wrong("For 'object' type, 'additionalProperties' must be explicitly set to false")


_NUMBERS: Bounds = (
    ("temperature", "temperature", float, 0, 1),
    ("top_p", "top_p", float, 0, 1),
    ("top_k", "top_k", int, 0, None),
)


def _sampling(body: RequestNode) -> JsonObject:
    options = numbers_of(body, _NUMBERS)
    if node := body.get("stop_sequences"):
        stops = [item.text() for item in node.items()]
        if any(not stop.strip() for stop in stops):
            raise node.wrong("each stop sequence must contain non-whitespace")
        options["stop"] = list[JsonValue](stops)
    return options


def _reasoning(body: RequestNode) -> JsonObject:
    config = body.get("output_config")
    effort = config.get("effort") if config else None
    node = body.get("thinking")
    kind = node["type"].text({"enabled", "disabled", "adaptive", "between_tools"}) if node else None
    if node is None or kind != "enabled":
        return {"reasoning": "off"} if kind == "disabled" else {"reasoning": effort.text(EFFORTS)} if effort else {}
    return {"reasoning": {"budget": node["budget_tokens"].integer(1024)}}
