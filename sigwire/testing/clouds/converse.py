"""The fake provider's Converse wire.

read     turns that alternate from the user's, blocks with one member, a result for each call of the turn before it, tools that
         fit the service model; a history with calls has ``toolConfig``
write    blocks in the order of the answer's parts; thinking gets a signature
split    the events of that answer, in binary frames (``event_stream``)

An unknown member of the body is refused, as the service does. Bytes are base64.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeAlias

from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, ImagePart, MediaPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.testing.answers import Fault, FaultKind
from sigwire.testing.chunking import Cutter
from sigwire.testing.clouds.converse_rules import check_documents, check_extra_fields
from sigwire.testing.clouds.event_stream import EventStreamFraming, events
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import (
    FakeWire,
    IdSequence,
    ParsedRequest,
    ReceivedRequest,
    Rejected,
    Status,
    arguments_of,
    bearer,
    parts_of,
    spec,
    tool_names,
    usage_of,
)

__all__ = ["Converse"]

_FIELDS = frozenset(
    """messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields promptVariables
    additionalModelResponseFieldPaths requestMetadata performanceConfig serviceTier outputConfig""".split()
)
_TOOL_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SIGNATURE = re.compile(r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/\d{8}/[a-z0-9-]+/bedrock/aws4_request,")
_IMAGES = frozenset({"png", "jpeg", "gif", "webp"})
_DOCUMENTS = frozenset({"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"})
_STOP_REASONS: Mapping[str, str] = {
    "stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "content_filtered",
    "error": "malformed_model_output",
}  # fmt: skip


class Converse(FakeWire):
    """``POST /model/{modelId}/converse`` and ``/model/{modelId}/converse-stream``."""

    name = "bedrock"
    route = re.compile(r"/model/(?P<model>.+)/(?P<method>converse|converse-stream)")
    wrong_key = "The security token included in the request is invalid."
    no_such_model = "The provided model identifier is invalid."
    statuses: ClassVar[Mapping[str, Status]] = {
        "auth": (403, "", "UnrecognizedClientException"),
        "bad_request": (400, "", "ValidationException"),
        "billing": (403, "", "AccessDeniedException"),
        "content_filter": (400, "", "ValidationException"),
        "context_length": (400, "", "ValidationException"),
        "not_found": (400, "", "ValidationException"),
        "overloaded": (503, "", "ServiceUnavailableException"),
        "permission": (403, "", "AccessDeniedException"),
        "rate_limit": (429, "", "ThrottlingException"),
        "server": (500, "", "InternalServerException"),
        "timeout": (408, "", "ModelTimeoutException"),
        "too_large": (413, "", "RequestEntityTooLargeException"),
    }
    messages: ClassVar[Mapping[FaultKind, str]] = {
        "billing": "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided.",
        "context_length": "Input is too long for requested model.",
        "overloaded": "Bedrock is unable to process your request.",
        "permission": "You don't have access to the model with the specified model ID.",
        "rate_limit": "Too many requests, please wait before trying again.",
    }

    def key(self, exchange: ReceivedRequest) -> str | None:
        signed = _SIGNATURE.match(exchange.headers.get("authorization", ""))
        if signed and "x-amz-date" in exchange.headers:
            return signed["key"]
        if (key := bearer(exchange)) is None:
            raise Rejected(Fault("auth", "Missing Authentication Token", code="MissingAuthenticationTokenException"))
        return key

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        place = self.route.fullmatch(exchange.path)
        assert place is not None, "the server routes by this pattern"
        body.fields(_FIELDS)
        config = body.get("toolConfig")
        tools = tuple(_tool(tool["toolSpec"]) for tool in config["tools"].items(filled=True)) if config else ()
        messages = (*_system(body.get("system")), *_messages(body["messages"], bool(tools)))
        choice = _choice(config.get("toolChoice"), tools) if config else None
        check_documents(messages, place["model"], body["messages"])
        check_extra_fields(body, place["model"])
        request = Request(messages, tools, choice, None, _format(body.get("outputConfig")), _options(body))
        return ParsedRequest(
            place["model"], request, EventStreamFraming() if place["method"] == "converse-stream" else None
        )

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        usage, choice = usage_of(response, parsed), response.choices[0]
        content: list[JsonValue] = [_block(part, ids) for part in parts_of(choice, ids, "tooluse_")]
        if choice.refusal:
            content.append({"text": choice.refusal})
        reason = "content_filtered" if choice.refusal is not None else _STOP_REASONS[choice.finish_reason]
        has_call = any(isinstance(block, dict) and "toolUse" in block for block in content)
        cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": "tool_use" if has_call and reason == "end_turn" else reason,
            "usage": {
                "inputTokens": (usage.input_tokens or 0) - cached - written,
                "outputTokens": usage.output_tokens,
                "totalTokens": total,
                "cacheReadInputTokens": cached,
                "cacheWriteInputTokens": written,
            },
            "metrics": {"latencyMs": 1},
        }

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        return events(body, cut)

    def describe(self, error: InvalidValue) -> Fault:
        place = ".".join(map(str, error.path))
        problem = {
            "missing": "Member must not be null",
            "unknown": "extraneous key is not permitted",
            "empty": "Member must have length greater than or equal to 1",
            "type": f"Expected {error.wanted}, found {error.found}",
            "value": error.text,
        }[error.kind]
        return Fault("bad_request", f"1 validation error detected: Value at '{place}' failed: {problem}")

    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        return {"message": fault.message}

    def fail(self, fault: Fault, request_id: str, position: int) -> JsonObject:
        name = self.status(fault)[2] or ""
        return {name[:1].lower() + name[1:]: {"message": fault.message}}

    def headers(self, fault: Fault | None, request_id: str) -> Mapping[str, str]:
        named = {} if fault is None else {"x-amzn-errortype": f"{self.status(fault)[2]}:http://internal.amazon.com/"}
        return {**super().headers(fault, request_id), **named, "x-amzn-requestid": request_id}


def _block(part: Part, ids: IdSequence) -> JsonValue:
    if isinstance(part, TextPart):
        return {"text": part.text}
    if isinstance(part, ToolCall):
        return {"toolUse": {"toolUseId": part.id, "name": part.name, "input": arguments_of(part)}}
    if isinstance(part, ThinkingPart):
        if part.redacted is not None:
            return {"reasoningContent": {"redactedContent": part.redacted}}
        reasoned: JsonObject = {"text": part.text, "signature": part.signature or ids("sig_")}
        return {"reasoningContent": {"reasoningText": reasoned}}
    assert isinstance(part, OpaquePart), f"an answer cannot hold {part.kind}"
    return part.data


# --- reading: messages -------------------------------------------------------------------------------


def _system(node: RequestNode | None) -> tuple[Message, ...]:
    texts = [_filled(block["text"]) for block in node.items() if not block.has("cachePoint")] if node else []
    return (Message("system", tuple(map(TextPart, texts))),) if texts else ()


def _messages(node: RequestNode, has_tools: bool) -> tuple[Message, ...]:
    messages: list[Message] = []
    calls: dict[str, str] = {}
    expected = "user"
    for turn in node.items(filled=True):
        turn.fields({"role", "content"})
        if turn["role"].text({"user", "assistant"}) != expected:
            start = "A conversation must start with a user message." if not messages else ""
            raise turn.wrong(start or "A conversation must alternate between user and assistant roles.")
        parts = tuple(_part(block) for block in turn["content"].items(filled=True) if not block.has("cachePoint"))
        if not has_tools and any(isinstance(part, ToolCall | ToolResult) for part in parts):
            raise turn.wrong("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
        results = _results(turn, parts, calls)
        rest = tuple(part for part in parts if not isinstance(part, ToolResult))
        messages += [Message("tool", results)] if results else []
        messages += [Message("assistant" if expected == "assistant" else "user", rest)] if rest else []
        calls = {part.id: part.name for part in parts if isinstance(part, ToolCall)}
        expected = "assistant" if expected == "user" else "user"
    if calls:
        raise node.wrong(
            f"Expected toolResult blocks at messages.{len(messages)}.content for the Ids: {', '.join(calls)}"
        )
    return tuple(messages)


def _results(turn: RequestNode, parts: tuple[Part, ...], calls: Mapping[str, str]) -> tuple[ToolResult, ...]:
    """Check the results of a turn: one for each call of the turn before it, and no other."""
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    answered = [result.id for result in results]
    if missing := [id for id in calls if id not in answered]:
        raise turn.wrong(f"Expected toolResult blocks at {turn.path} for the following Ids: {', '.join(missing)}")
    if len(set(answered)) < len(answered) or not set(answered) <= calls.keys():
        raise turn.wrong("The number of toolResult blocks exceeds the number of toolUse blocks of previous turn.")
    return tuple(ToolResult(r.id, calls[r.id], r.content, r.is_error, r.media) for r in results)


def _part(block: RequestNode) -> Part:
    fields = block.fields()
    if len(fields) != 1:
        raise block.wrong("A content block has exactly one member.")
    (kind,) = fields
    read = _READERS.get(kind)
    return read(block[kind]) if read else OpaquePart("bedrock", block.value)


def _filled(node: RequestNode) -> str:
    if not node.text().strip():
        raise node.wrong(
            "The text field in the ContentBlock object is blank. Add text to the text field, and try again."
        )
    return node.text()


def _text(node: RequestNode) -> Part:
    return TextPart(_filled(node))


def _call(node: RequestNode) -> Part:
    node.fields({"toolUseId", "name", "input", "type"})
    return ToolCall.read(
        _fitting(node["toolUseId"], _TOOL_ID), _fitting(node["name"], _TOOL_NAME), dict(node["input"].fields())
    )


def _result(node: RequestNode) -> Part:
    node.fields({"toolUseId", "content", "status", "type"})
    parts = tuple(_part(block) for block in node["content"].items())
    text = "".join(part.text for part in parts if isinstance(part, TextPart))
    media = tuple(part for part in parts if isinstance(part, MediaPart) and not isinstance(part, TextPart))
    failed = (status := node.get("status")) is not None and status.text({"success", "error"}) == "error"
    return ToolResult(_fitting(node["toolUseId"], _TOOL_ID), "", text, failed, media)


def _reasoning(node: RequestNode) -> Part:
    if redacted := node.get("redactedContent"):
        return ThinkingPart(redacted=redacted.text(), provider="bedrock")
    reasoned = node["reasoningText"]
    return ThinkingPart(reasoned["text"].text(), reasoned["signature"].text(), provider="bedrock")


def _image(node: RequestNode) -> Part:
    kind = node["format"].text(_IMAGES)
    return ImagePart(**_source(node["source"]), media_type=f"image/{kind}")


def _document(node: RequestNode) -> Part:
    kind, name = node["format"].text(_DOCUMENTS), node["name"].text()
    if not re.fullmatch(r"[A-Za-z0-9\-()\[\]]+(?: [A-Za-z0-9\-()\[\]]+)*", name):
        raise node["name"].wrong(
            "The document file name can only contain alphanumeric characters, whitespace and -()[]."
        )
    return FilePart(**_source(node["source"]), filename=name, media_type=f"application/{kind}")


def _source(node: RequestNode) -> dict[str, str]:
    if data := node.get("bytes"):
        return {"data": data.text()}
    return {"url": node["s3Location"]["uri"].text()}


_Reader: TypeAlias = Callable[[RequestNode], Part]
_READERS: Mapping[str, _Reader] = {
    "document": _document,
    "image": _image,
    "reasoningContent": _reasoning,
    "text": _text,
    "toolResult": _result,
    "toolUse": _call,
}


def _fitting(node: RequestNode, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(node.text()):
        raise node.wrong(f"Member must satisfy regular expression pattern: {pattern.pattern}")
    return node.text()


# --- reading: tools and options ----------------------------------------------------------------------


def _tool(node: RequestNode) -> JsonObject:
    node.fields({"name", "description", "inputSchema", "strict"})
    schema = node["inputSchema"]["json"]
    if schema["type"].value != "object":
        raise schema["type"].wrong("The value at toolConfig.tools.toolSpec.inputSchema.json.type must be object.")
    description = node.get("description")
    if description is not None and not description.text():
        raise InvalidValue("empty", description.path)
    return spec(_fitting(node["name"], _TOOL_NAME), description.text() if description else "", schema.value)


def _choice(node: RequestNode | None, tools: tuple[JsonObject, ...]) -> ToolChoice | None:
    if node is None:
        return None
    (kind,) = node.fields({"auto", "any", "tool"})
    if kind != "tool":
        return ToolChoice.AUTO if kind == "auto" else ToolChoice.REQUIRED
    name = node["tool"]["name"].text()
    if name not in tool_names(tools):
        raise node.wrong("The tool of toolChoice is not in toolConfig.tools.")
    return ToolChoice.named(name)


def _format(node: RequestNode | None) -> ResponseFormat | None:
    if node is None or (wanted := node.get("textFormat")) is None:
        return None
    wanted["type"].text({"json_schema"})
    text = wanted["structure"]["jsonSchema"]["schema"]
    try:
        schema = RequestNode(loads(text.text()), text.path)
    except ValueError:
        raise text.wrong("The schema is not JSON.") from None
    for place in schema.walk():
        if (
            place.kind == "object"
            and place.value.get("type") == "object"
            and place.value.get("additionalProperties") is not False
        ):
            raise text.wrong("For 'object' type, 'additionalProperties' must be explicitly set to false")
    return ResponseFormat(dict(schema.fields()))


def _options(body: RequestNode) -> JsonObject:
    options: JsonObject = {}
    given = body.get("inferenceConfig") or RequestNode({}, ("inferenceConfig",))
    given.fields({"maxTokens", "temperature", "topP", "stopSequences"})
    if node := given.get("maxTokens"):
        options["max_tokens"] = node.integer(1)
    for wire, name in (("temperature", "temperature"), ("topP", "top_p")):
        if node := given.get(wire):
            options[name] = node.number(0, 1)
    if node := given.get("stopSequences"):
        options["stop"] = list[JsonValue](item.text() for item in node.items())
    extra = body.get("additionalModelRequestFields")
    if extra is not None and (
        node := extra.get("top_k") or (extra.get("inferenceConfig") or RequestNode({})).get("topK")
    ):
        options["top_k"] = node.integer(0)
    return {**options, **_thinking(body)}


def _thinking(body: RequestNode) -> JsonObject:
    extra, output = body.get("additionalModelRequestFields"), body.get("outputConfig")
    fields: Mapping[str, Any] = extra.fields() if extra else {}
    if effort := (output.get("effort") if output else None):
        return {"reasoning": effort.text({"low", "medium", "high", "xhigh", "max"})}
    if "reasoning_effort" in fields:
        return {"reasoning": fields["reasoning_effort"]}
    if extra is None or (thinking := extra.get("thinking")) is None:
        return {}
    if thinking["type"].text({"enabled", "disabled", "adaptive"}) != "enabled":
        return {"reasoning": "off"} if thinking["type"].value == "disabled" else {}
    return {"reasoning": {"budget": thinking["budget_tokens"].integer(1024)}}
