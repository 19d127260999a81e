"""The fake provider's Ollama ``/api/chat`` wire.

read     like the server's Go structs: unknown fields are ignored, wrong types are refused; arguments are objects, results name
         their call or their tool
write    arguments as objects; counts of zero are omitted
split    the lines of that answer (``ollama_stream``), unless the request has ``stream: false``
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message, Part
from sigwire.core.parts import ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall, ToolResult, number_calls
from sigwire.testing.answers import Fault, FaultKind
from sigwire.testing.chunking import Cutter
from sigwire.testing.framing import NdjsonFraming
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.wire import (
    USUAL_STATUSES,
    Bounds,
    FakeWire,
    IdSequence,
    ParsedRequest,
    ReceivedRequest,
    Status,
    arguments_of,
    bearer,
    numbers_of,
    parts_of,
    spec,
    tokens_of,
    usage_of,
)
from sigwire.testing.wires.ollama_stream import lines

__all__ = ["Ollama"]

LEVELS = frozenset({"low", "medium", "high", "max"})
_ROLE: Mapping[str, Any] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class Ollama(FakeWire):
    """``POST /api/chat``, and ``/api/show`` with the context length of every model; that is not recorded."""

    name = "ollama"
    route = re.compile(r"/api/chat")
    show_path = "/api/show"
    context_length = 131_072

    @classmethod
    def show(cls) -> bytes:
        """Return the reply that describes a model."""
        info = {"general.architecture": "fake", "fake.context_length": cls.context_length}
        return dumps({"model_info": info, "capabilities": ["completion", "tools"]}).encode()

    wrong_key = "unauthorized"
    no_such_model = "model '{model}' not found"
    statuses: ClassVar[Mapping[str, Status]] = {kind: (status, "", None) for kind, status in USUAL_STATUSES.items()}
    messages: ClassVar[Mapping[FaultKind, str]] = {
        "auth": wrong_key,
        "context_length": "the prompt is longer than the context length currently set",
        "overloaded": "server busy, please try again.  maximum pending requests exceeded",
        "server": "llama runner process has terminated: exit status 2",
    }

    def key(self, exchange: ReceivedRequest) -> str | None:
        return bearer(exchange)  # a local server requires no key

    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        model = body["model"].text()
        tools = tuple(_tool(tool) for tool in body["tools"].items()) if body.has("tools") else ()
        messages = _messages(body["messages"].items()) if body.has("messages") else ()
        request = Request(messages, tools, None, None, _format(body.get("format")), _options(body))
        return ParsedRequest(model, request, NdjsonFraming() if body.flag_at("stream", default=True) else None)

    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        usage, choice = usage_of(response, parsed), response.choices[0]
        parts = parts_of(choice, ids, "call_")
        thinking = "".join(part.text for part in parts if isinstance(part, ThinkingPart))
        calls: list[JsonValue] = [
            {"id": call.id, "function": {"index": index, "name": call.name, "arguments": arguments_of(call)}}
            for index, call in enumerate(part for part in parts if isinstance(part, ToolCall))
        ]
        text = "".join(part.text for part in parts if isinstance(part, TextPart)) or choice.refusal or ""
        message: JsonObject = {"role": "assistant", "content": text}
        if thinking:
            message["thinking"] = thinking
        if calls:
            message["tool_calls"] = calls
        counts: JsonObject = {"prompt_eval_count": usage.input_tokens, "eval_count": usage.output_tokens}
        answer: JsonObject = {
            "model": response.model or parsed.model,
            "created_at": "2026-01-01T00:00:00.000000Z",
            "message": message,
            "done": True,
            "done_reason": "length" if choice.finish_reason == "length" else "stop",
            "total_duration": 1_000_000,
            "load_duration": 1_000,
            "eval_duration": 500_000,
            **{name: count for name, count in counts.items() if count},
        }
        if tokens := tokens_of(choice, parsed):
            answer["logprobs"] = tokens
        return answer

    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        return lines(body, cut)

    def describe(self, error: InvalidValue) -> Fault:
        place = ".".join(str(step) for step in error.path if isinstance(step, str))
        types = {
            "array": "[]",
            "object": "map[string]interface {}",
            "boolean": "bool",
            "integer": "int",
            "number": "float64",
        }
        text = {
            "missing": f"{error.path[-1] if error.path else 'body'} is required",
            "unknown": f"unknown field {place}",
            "empty": f"{place} is required",
            "type": f"json: cannot unmarshal {error.found} into Go struct field ChatRequest.{place} of type "
            f"{types.get(error.wanted, error.wanted)}",
            "value": error.text,
        }[error.kind]
        return Fault("bad_request", text)

    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        return {"error": fault.message}


def _messages(nodes: list[RequestNode]) -> tuple[Message, ...]:
    messages: list[Message] = []
    open_calls: list[ToolCall] = []
    nameless: frozenset[str] = frozenset()
    for node in nodes:
        role = node["role"].text()
        if role not in _ROLE:
            raise node.wrong(f"invalid role: {role}, must be one of [system, user, assistant, tool]")
        text = content.text() if (content := node.get("content")) else ""
        if role == "tool":
            result = _result(node, text, open_calls, nameless)
            earlier = messages.pop().parts if messages and messages[-1].role == "tool" else ()
            messages.append(Message("tool", (*earlier, result)))
            continue
        message = Message(_ROLE[role], (*_before(node), *((TextPart(text),) if text else ()), *_after(node)))
        if message.tool_calls:
            open_calls, nameless = list(message.tool_calls), _nameless(node, message.tool_calls)
        messages.append(message)
    return tuple(messages)


def _before(node: RequestNode) -> tuple[Part, ...]:
    return (ThinkingPart(thinking.text()),) if (thinking := node.get("thinking")) and thinking.text() else ()


def _after(node: RequestNode) -> tuple[Part, ...]:
    images = tuple(_image(image) for image in found.items()) if (found := node.get("images")) else ()
    calls = number_calls(_call(call) for call in found.items()) if (found := node.get("tool_calls")) else ()
    return (*images, *calls)


def _image(node: RequestNode) -> ImagePart:
    if re.match(r"data:|https?:", node.text()):
        raise node.wrong("illegal base64 data at input byte 4")
    return ImagePart(data=node.text())


def _call(node: RequestNode) -> ToolCall:
    function = node["function"]
    return ToolCall.read(node.text_at("id"), function["name"].text(), dict(function["arguments"].fields()))


def _nameless(node: RequestNode, calls: tuple[ToolCall, ...]) -> frozenset[str]:
    return frozenset(
        call.id for call, sent in zip(calls, node["tool_calls"].items(), strict=True) if not sent.has("id")
    )


def _result(node: RequestNode, text: str, open_calls: list[ToolCall], nameless: frozenset[str]) -> ToolResult:
    """Return the result for its call: by id, else by tool name in call order."""
    # The server compares no ids: an unknown id is the client's own id for a call that had none, and no result is refused.
    given, name = (found.text() if (found := node.get(key)) else None for key in ("tool_call_id", "tool_name"))
    own = [call for call in open_calls if call.id == given]
    others = [call for call in open_calls if not given or call.id in nameless]
    for call in (*own, *(call for call in others if name in (None, call.name))):
        open_calls.remove(call)
        return ToolResult(call.id, call.name, text)
    return ToolResult(given or "", name or "", text)


def _tool(node: RequestNode) -> JsonObject:
    function = node["function"]
    parameters = function.get("parameters")
    schema = dict(parameters.fields()) if parameters else {}
    if parameters and (properties := parameters.get("properties")):
        properties.fields()
    return spec(function["name"].text(), function.text_at("description"), schema)


def _format(node: RequestNode | None) -> ResponseFormat | None:
    if node is None or node.value == "":
        return None
    if node.kind == "string":
        if node.value != "json":
            raise node.wrong(f'invalid format: "{node.value}"; expected "json" or a valid JSON Schema object')
        return ResponseFormat()
    return ResponseFormat(dict(node.fields()))


def _options(body: RequestNode) -> JsonObject:
    given = body.get("options") or RequestNode({}, ("options",))
    options = numbers_of(given, _NUMBERS)
    if node := given.get("stop"):
        options["stop"] = list[JsonValue](item.text() for item in node.items())
    if node := body.get("logprobs"):
        options["logprobs"] = node.flag()
    if node := body.get("think"):
        options.update(_thinking(node))
    return {**options, **numbers_of(body, (("top_logprobs", "top_logprobs", int, 0, 20),))}


def _thinking(node: RequestNode) -> JsonObject:
    if node.kind == "boolean":
        return {} if node.flag() else {"reasoning": "off"}
    if node.text() not in LEVELS:
        levels = ", ".join(f'"{level}"' for level in ("high", "medium", "low", "max"))
        raise node.wrong(f'invalid think value: "{node.value}" (must be {levels}, true, or false)')
    return {"reasoning": node.text()}


_NUMBERS: Bounds = (
    *((name, name, float, None, None) for name in ("temperature", "top_p", "frequency_penalty", "presence_penalty")),
    *(
        (wire, name, int, None, None)
        for wire, name in (("num_predict", "max_tokens"), ("top_k", "top_k"), ("seed", "seed"))
    ),
)
