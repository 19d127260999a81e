"""The fake provider's Gemini ``generateContent`` wire.

read     one result for each call of the previous turn, in one content; valid names; one schema field and one thinking field;
         signed calls from models that sign them
write    parts in order; the first call of an answer has a signature
split    the chunks of that answer (``gemini_stream``)
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.testing.answers import Fault, FaultKind
from sigwire.testing.chunking import Cutter
from sigwire.testing.framing import Framing, JsonArrayFraming, SSEFraming
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import (
    Bounds,
    FakeWire,
    IdSequence,
    ParsedRequest,
    ReceivedRequest,
    Status,
    arguments_of,
    numbers_of,
    parts_of,
    spec,
    tokens_of,
    tool_names,
    usage_of,
)
from sigwire.testing.wires.gemini_stream import chunks

__all__ = ["Gemini"]

FIELDS = frozenset(
    """cachedContent contents continuationToken generationConfig labels model safetySettings serviceTier store systemInstruction
    toolConfig tools""".split()
)
CONFIG = frozenset(
    """audioTimestamp candidateCount enableEnhancedCivicAnswers frequencyPenalty imageConfig logprobs maxOutputTokens
    mediaResolution presencePenalty responseJsonSchema responseLogprobs responseMimeType responseModalities responseSchema seed
    speechConfig stopSequences temperature thinkingConfig topK topP""".split()
)
PART = frozenset(
    """codeExecutionResult executableCode fileData functionCall functionResponse inlineData mediaResolution partMetadata text
    thought thoughtSignature toolCall toolResponse videoMetadata""".split()
)
DECLARATION = frozenset("behavior description name parameters parametersJsonSchema response responseJsonSchema".split())
LEVELS = frozenset({"minimal", "low", "medium", "high", "xhigh"})
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
SIGNS = re.compile(r"gemini-([3-9]|\d\d)\b.*")
FINISH: Mapping[str, str] = {
    "stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY", "error": "OTHER",
}  # fmt: skip
# Protocol buffers accept both spellings of a field in JSON.
SNAKE = re.compile(r"_([a-z])")


class Gemini(FakeWire):
    """``POST /v1/models/{model}:generateContent``, also below ``/v1beta`` and ``/v1alpha``."""

    name = "gemini"
    route = re.compile(
        r"/v1(?:alpha|beta)?/(?:models/|(?=tunedModels/))(?P<model>.+):(?P<method>generateContent|streamGenerateContent)"
    )
    wrong_key = "API key not valid. Please pass a valid API key."
    no_key = Fault("permission", "Method doesn't allow unregistered callers (callers without established identity).")
    no_such_model = "models/{model} is not found for API version v1, or is not supported for generateContent."
    statuses: ClassVar[Mapping[str, Status]] = {
        "auth": (400, "INVALID_ARGUMENT", "API_KEY_INVALID"),
        "bad_request": (400, "INVALID_ARGUMENT", None),
        "billing": (400, "FAILED_PRECONDITION", None),
        "content_filter": (400, "INVALID_ARGUMENT", None),
        "context_length": (400, "INVALID_ARGUMENT", None),
        "not_found": (404, "NOT_FOUND", None),
        "overloaded": (503, "UNAVAILABLE", None),
        "permission": (403, "PERMISSION_DENIED", None),
        "rate_limit": (429, "RESOURCE_EXHAUSTED", None),
        "server": (500, "INTERNAL", None),
        "timeout": (504, "DEADLINE_EXCEEDED", None),
        "too_large": (400, "INVALID_ARGUMENT", None),
    }
    messages: ClassVar[Mapping[FaultKind, str]] = {
        "auth": wrong_key,
        "context_length": "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        "overloaded": "The model is overloaded. Please try again later.",
        "rate_limit": "Resource has been exhausted (e.g. check quota).",
    }

    def key(self, exchange: ReceivedRequest) -> str | None:
        return exchange.headers.get("x-goog-api-key") or exchange.query.get("key") or super().key(exchange)

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        place = self.route.fullmatch(exchange.path)
        assert place is not None, "the server routes by this pattern"
        model = place["model"]
        body = RequestNode(_camel(body.value))
        body.fields(FIELDS)
        tools, served = _tools(body.get("tools"))
        config = body.get("generationConfig") or RequestNode({}, ("generationConfig",))
        config.fields(CONFIG)
        choice = _tool_choice(body.get("toolConfig"), tools)
        messages = (*_system(body.get("systemInstruction")), *_contents(body["contents"], model))
        request = Request(messages, (*tools, *served), choice, None, _format(config), _options(config))
        framing: Framing = SSEFraming(newline="\r\n") if exchange.query.get("alt") == "sse" else JsonArrayFraming()
        return ParsedRequest(model, request, framing if place["method"] == "streamGenerateContent" else None)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        usage = usage_of(response, parsed)
        thought = usage.reasoning_tokens or 0
        counts: JsonObject = {
            "promptTokenCount": usage.input_tokens,
            "candidatesTokenCount": (usage.output_tokens or 0) - thought,
            "totalTokenCount": usage.total_tokens,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input_tokens}],
        }
        if thought:
            counts["thoughtsTokenCount"] = thought
        if usage.cached_tokens:
            counts["cachedContentTokenCount"] = usage.cached_tokens
        answer: JsonObject = {
            "usageMetadata": counts,
            "modelVersion": response.model or parsed.model,
            "responseId": response.id or ids("resp_"),
        }
        if response.choices[0].refusal is not None:
            blocked: JsonObject = {
                "blockReason": "PROHIBITED_CONTENT",
                "blockReasonMessage": response.choices[0].refusal,
            }
            return {"promptFeedback": blocked, **answer}
        return {
            "candidates": [_candidate(choice, index, parsed, ids) for index, choice in enumerate(response.choices)],
            **answer,
        }

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        return chunks(body, cut)

    def describe(self, error: InvalidValue) -> Fault:
        whole = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.path).removeprefix(".")
        parent, _, name = whole.rpartition(".")
        text = {
            "missing": f"* {whole}: {name} is not specified",
            "unknown": f"Invalid JSON payload received. Unknown name \"{name}\" at '{parent}': Cannot find field.",
            "empty": f"* {whole}: {name} must not be empty.",
            "type": f"Invalid value at '{whole}': expected {error.wanted}, found {error.found}.",
            "value": f"* {whole}: {error.text}",
        }[error.kind]
        return Fault("bad_request", text)

    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        status, name, code = self.status(fault)
        details: list[JsonValue] = []
        if code:
            reason: JsonObject = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}
            details.append({**reason, "domain": "googleapis.com"})
        if fault.retry_after is not None:
            details.append(
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{fault.retry_after:g}s"}
            )
        error: JsonObject = {"code": status, "message": fault.message, "status": name}
        return {"error": {**error, "details": details} if details else error}

    def headers(self, fault: Fault | None, request_id: str) -> Mapping[str, str]:
        return {}  # the retry delay is in the body


# Objects of the caller or the model: their keys are not fields of the protocol.
_FOREIGN = frozenset({"args", "response", "parametersJsonSchema", "responseJsonSchema", "labels"})


def _camel(value: Any) -> Any:
    kind = RequestNode(value).kind
    if kind == "array":
        return [_camel(item) for item in value]
    if kind != "object":
        return value
    renamed = {SNAKE.sub(lambda found: found[1].upper(), name): item for name, item in value.items()}
    return {name: item if name in _FOREIGN else _camel(item) for name, item in renamed.items()}


def _candidate(choice: Choice, index: int, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
    parts: list[JsonValue] = []
    unsigned = True
    for part in parts_of(choice, ids, "fc_"):
        written = _write_part(part)
        if isinstance(part, ToolCall) and isinstance(written, dict):
            if unsigned and "thoughtSignature" not in written:
                written["thoughtSignature"] = b64encode(ids("sig_").encode()).decode()
            unsigned = False
        parts.append(written)
    candidate: JsonObject = {
        "content": {"role": "model", "parts": parts},
        "finishReason": FINISH[choice.finish_reason],
        "index": index,
    }
    if tokens := tokens_of(choice, parsed):
        tops: list[JsonValue] = [{"candidates": list(map(_log_probability, token["top_logprobs"]))} for token in tokens]
        candidate["logprobsResult"] = {"chosenCandidates": list(map(_log_probability, tokens)), "topCandidates": tops}
    return candidate


def _log_probability(token: Any) -> JsonValue:
    return {"token": token["token"], "logProbability": token["logprob"]}


def _write_part(part: Part) -> JsonValue:
    if isinstance(part, TextPart):
        return {"text": part.text}
    if isinstance(part, ThinkingPart):
        signature: JsonObject = {"thoughtSignature": part.signature} if part.signature else {}
        return {"text": part.text, "thought": True, **signature}
    if isinstance(part, ToolCall):
        call: JsonObject = {"functionCall": {"id": part.id, "name": part.name, "args": arguments_of(part)}}
        return {**call, **part.provider_data} if isinstance(part.provider_data, dict) else call
    assert isinstance(part, OpaquePart), f"an answer cannot hold {part.kind}"
    return part.data


def _system(node: RequestNode | None) -> tuple[Message, ...]:
    if node is None:
        return ()
    node.fields({"role", "parts"})
    return (Message("system", tuple(TextPart(part["text"].text()) for part in node["parts"].items(filled=True))),)


def _contents(node: RequestNode, model: str) -> tuple[Message, ...]:
    messages: list[Message] = []
    calls: tuple[ToolCall, ...] = ()
    contents = node.items(filled=True)
    current = max((n for n, content in enumerate(contents) if _is_question(content)), default=0)
    for number, content in enumerate(contents):
        content.fields({"role", "parts"})
        role = content["role"].text({"user", "model"}) if content.has("role") else "user"
        nodes = content["parts"].items(filled=True)
        parts = tuple(map(_part, nodes))
        if role == "user":
            messages.extend(_user(content, parts, calls))
            calls = ()
            continue
        if calls:
            raise _count_error(content)
        message = Message("assistant", parts)
        calls = message.tool_calls
        if calls and (not messages or messages[-1].role == "assistant"):
            raise content.wrong(
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
            )
        if calls and number > current:
            _check_signed(nodes, model)
        messages.append(message)
    if calls:
        raise _count_error(contents[-1])
    return tuple(messages)


def _is_question(content: RequestNode) -> bool:
    if content.kind != "object" or content.value.get("role") == "model":
        return False
    return not any("functionResponse" in part.fields() for part in content["parts"].items())


def _user(content: RequestNode, parts: tuple[Part, ...], calls: tuple[ToolCall, ...]) -> list[Message]:
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    if len(results) != len(calls) or [result.name for result in results] != [call.name for call in calls]:
        raise _count_error(content)
    named = tuple(
        ToolResult(call.id, r.name, r.content, r.is_error, r.media) for r, call in zip(results, calls, strict=True)
    )
    rest = tuple(part for part in parts if not isinstance(part, ToolResult))
    return [*([Message("tool", named)] if named else []), *([Message("user", rest)] if rest else [])]


def _count_error(content: RequestNode) -> InvalidValue:
    return content.wrong(
        "Please ensure that the number of function response parts is equal to the number of function call parts of the "
        "function call turn, in the same order, and that they directly follow it."
    )


def _check_signed(nodes: list[RequestNode], model: str) -> None:
    first = next(node for node in nodes if node.has("functionCall"))
    if SIGNS.fullmatch(model) and not first.has("thoughtSignature"):
        name = first["functionCall"]["name"].text()
        raise first.wrong(
            f"Function call is missing a thought_signature in functionCall parts. Function call: {name}. This is required for "
            "tools to work correctly."
        )


def _part(node: RequestNode) -> Part:
    node.fields(PART)
    if call := node.get("functionCall"):
        call.fields({"id", "name", "args", "partialArgs", "willContinue"})
        arguments = call.get("args")
        signature = node.get("thoughtSignature")
        data: JsonValue = {"thoughtSignature": signature.text()} if signature else None
        return ToolCall(
            call.text_at("id"),
            _name(call["name"]),
            dict(arguments.fields()) if arguments else {},
            provider_data=data,
        )
    if answer := node.get("functionResponse"):
        return _result(answer)
    if data_node := node.get("inlineData"):
        return _media(data_node, "data")
    if file := node.get("fileData"):
        return _media(file, "fileUri")
    if text := node.get("text"):
        signature = node.get("thoughtSignature")
        if (thought := node.get("thought")) and thought.flag():
            return ThinkingPart(text.text(), signature.text() if signature else None, provider="gemini")
        return TextPart(text.text())
    if not node.fields().keys() - {"thought", "thoughtSignature"}:
        raise node.wrong("required oneof field 'data' must have one initialized field")
    return OpaquePart("gemini", node.value)


def _result(node: RequestNode) -> ToolResult:
    node.fields({"id", "name", "response", "parts", "scheduling", "willContinue"})
    response: Mapping[str, Any] = node["response"].fields()
    failed = "error" in response
    content = response["error"] if failed else response.get("output", dict(response))
    return ToolResult(node.text_at("id"), _name(node["name"]), content, failed)


def _media(node: RequestNode, field: str) -> ImagePart | FilePart:
    kind, data = node["mimeType"].text(), node[field].text()
    if field == "data":
        return (
            ImagePart(data=data, media_type=kind) if kind.startswith("image/") else FilePart(data=data, media_type=kind)
        )
    return ImagePart(url=data, media_type=kind) if kind.startswith("image/") else FilePart(url=data, media_type=kind)


def _name(node: RequestNode) -> str:
    if not NAME.fullmatch(node.text()):
        raise node.wrong(
            "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
            "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
        )
    return node.text()


def _tools(node: RequestNode | None) -> tuple[tuple[JsonObject, ...], tuple[JsonObject, ...]]:
    functions: list[JsonObject] = []
    served: list[JsonObject] = []
    for tool in node.items() if node else []:
        for kind in tool.fields():
            if kind == "functionDeclarations":
                functions.extend(_function(one) for one in tool[kind].items())
            else:
                name = "web_search" if kind == "googleSearch" else kind
                served.append({"type": name, name: tool[kind].value})
    names = tool_names(functions)
    if node and len(set(names)) < len(names):
        raise node.wrong(f"Duplicate function declaration found: {max(names, key=names.count)}")
    return tuple(functions), tuple(served)


def _function(node: RequestNode) -> JsonObject:
    node.fields(DECLARATION)
    if node.has("parameters") and node.has("parametersJsonSchema"):
        raise node.wrong("only one of parameters and parametersJsonSchema may be set.")
    schema = node.get("parametersJsonSchema") or node.get("parameters")
    if schema and str(schema["type"].value).lower() != "object":
        raise schema.wrong("schema should be of type OBJECT.")
    _references_stand_alone(schema)
    return spec(_name(node["name"]), node.text_at("description"), schema.value if schema else {})


def _references_stand_alone(schema: RequestNode | None) -> None:
    for place in schema.walk() if schema else ():
        if place.kind == "object" and place.has("$ref") and any(not key.startswith("$") for key in place.fields()):
            raise place.wrong("$ref must not have sibling fields other than those that start with $.")


def _tool_choice(node: RequestNode | None, tools: tuple[JsonObject, ...]) -> ToolChoice | None:
    calling = node.get("functionCallingConfig") if node else None
    if calling is None:
        return None
    if not tools:
        raise calling.wrong("Function calling config is set without function_declarations.")
    calling.fields({"mode", "allowedFunctionNames", "streamFunctionCallArguments"})
    modes = {"AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED"}
    mode = calling["mode"].text(modes) if calling.has("mode") else "AUTO"
    listed = calling.get("allowedFunctionNames")
    allowed = tuple(name.text() for name in listed.items()) if listed else ()
    if listed and allowed and mode not in ("ANY", "VALIDATED"):
        raise listed.wrong("allowed_function_names should only be set when the mode is ANY or VALIDATED.")
    if listed and (unknown := set(allowed) - set(tool_names(tools))):
        raise listed.wrong(f"{sorted(unknown)[0]!r} is not among the function declarations.")
    return ToolChoice("required" if mode == "ANY" else "none" if mode == "NONE" else "auto", allowed)


def _format(config: RequestNode) -> ResponseFormat | None:
    mime = config.get("responseMimeType")
    schema = config.get("responseJsonSchema") or config.get("responseSchema")
    _references_stand_alone(schema)
    if config.has("responseJsonSchema") and config.has("responseSchema"):
        raise config.wrong("only one of response_schema and response_json_schema may be set.")
    if schema and (mime is None or mime.text() != "application/json"):
        raise schema.wrong("response schema is only supported with response_mime_type 'application/json'.")
    if mime is None or mime.text({"application/json", "text/plain", "text/x.enum"}) != "application/json":
        return None
    return ResponseFormat(dict(schema.fields()) if schema else None)


def _options(config: RequestNode) -> JsonObject:
    options = numbers_of(config, _NUMBERS)
    if node := config.get("stopSequences"):
        stops = [item.text() for item in node.items()]
        if len(stops) > 5:
            raise node.wrong("at most 5 stop sequences are allowed.")
        options["stop"] = list[JsonValue](stops)
    if node := config.get("responseLogprobs"):
        options["logprobs"] = node.flag()
    if thinking := config.get("thinkingConfig"):
        options.update(_reasoning(thinking))
    return options


def _reasoning(node: RequestNode) -> JsonObject:
    node.fields({"includeThoughts", "thinkingBudget", "thinkingLevel"})
    level, budget = node.get("thinkingLevel"), node.get("thinkingBudget")
    if level and budget:
        raise node.wrong("You can only set only one of thinking budget and thinking level.")
    if level:
        if level.text().lower() not in LEVELS:
            raise level.wrong(f"{level.value!r} is no thinking level.")
        return {"reasoning": level.text().lower()}
    if budget is None:
        return {}
    tokens = budget.integer(-1)
    return {"reasoning": "off" if tokens == 0 else {"budget": tokens}}


_NUMBERS: Bounds = (
    ("temperature", "temperature", float, 0, 2),
    ("topP", "top_p", float, 0, 1),
    ("frequencyPenalty", "frequency_penalty", float, -2, 2),
    ("presencePenalty", "presence_penalty", float, -2, 2),
    ("maxOutputTokens", "max_tokens", int, 1, None),
    ("topK", "top_k", int, 0, None),
    ("candidateCount", "n", int, 1, None),
    ("logprobs", "top_logprobs", int, 0, None),
    ("seed", "seed", int, None, None),
)
