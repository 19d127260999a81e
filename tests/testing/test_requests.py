"""Requests of sigwire's client, parsed with the types of the official packages: every field, and no other field.

The types drop unknown fields, so the parsed request equals the sent one only if every field is known. ``UNKNOWN`` lists the
fields of the providers that a package has no type for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from sigwire.core.messages import Message
from sigwire.core.parts import FilePart, ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.lm.client import LM
from sigwire.testing import FakeProvider
from tests.grids import grid

SCHEMA: Any = {
    "type": "object",
    "properties": {"a": {"type": "integer", "description": "A number"}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "function": {"name": "add", "description": "Add.", "parameters": SCHEMA}}
CALLS = (ToolCall("call_a", "add", {"a": 1}), ToolCall("call_b", "add", {"a": 2}))
RESULTS = Message.tool(ToolResult("call_a", "add", "1"), ToolResult("call_b", "add", "no", True))
IMAGE, FILE = ImagePart(data="AAAA", media_type="image/png"), FilePart(data="AAAA", media_type="application/pdf")

MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "openai": ("openai/gpt-4.1", {}),
    "openai-responses": ("openai/gpt-4.1", {"wire": "responses"}),
    "anthropic": ("anthropic/claude-sonnet-4-6", {}),
    "gemini": ("gemini/gemini-3-flash", {}),
    "ollama": ("ollama/qwen3", {}),
}
# Fields that the interfaces have and the packages' types have not.
UNKNOWN: Mapping[str, frozenset[str]] = {
    "anthropic": frozenset({"temperature"}),  # its types are those of models that do not sample
    "ollama": frozenset({"truncate", "shift"}),
}

REQUESTS: Mapping[str, Request] = {
    "a question": Request((Message.system("S"), Message.user("Hi"))),
    "an image and a file": Request((Message("user", (TextPart("Look"), IMAGE, FILE)),)),
    "tools that were called": Request(
        (Message.system("S"), Message.user("Hi"), Message("assistant", (TextPart("Let me"), *CALLS)), RESULTS),
        (TOOL,),
        ToolChoice.AUTO,
    ),
    "a thought that is signed": Request(
        (Message.user("Hi"), Message("assistant", (ThinkingPart("Hm", "SIG", provider="anthropic"), *CALLS)), RESULTS),
        (TOOL,),
    ),
    "a forced tool": Request((Message.user("Hi"),), (TOOL,), ToolChoice.named("add"), False),
    "structured output": Request((Message.user("Hi"),), response_format=ResponseFormat(SCHEMA, "r")),
    "options": Request((Message.user("Hi"),), options={"max_tokens": 100, "temperature": 0.5, "stop": ["END"]}),
    "reasoning": Request((Message.user("Hi"),), options={"reasoning": "low", "max_tokens": 2000}),
}


def sent(wire: str, request: Request, streamed: bool) -> Any:
    """The body that arrives, without the fields that the package does not know."""
    model, options = MODELS[wire]
    if "reasoning" in request.options:
        model = model.replace("gpt-4.1", "gpt-5-mini")
    with FakeProvider(["ok"]) as provider:
        lm = LM(model, base_url=provider.url(wire), api_key="k", **options)
        if streamed:
            list(lm.stream(request))
        else:
            lm.respond(request)
    assert (provider.requests[0].stream is not None) == streamed
    body = cast("dict[str, Any]", provider.requests[0].body)
    return {name: value for name, value in body.items() if name not in UNKNOWN.get(wire, ())}


def _plain(value: Any) -> Any:
    """Return the validated value with lazy lists as lists."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value


def _typed(kind: Any) -> Callable[[Any], Any]:
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(kind)
    return lambda body: _plain(adapter.validate_python(body))


def _openai(body: Any) -> Any:
    from openai.types.chat import completion_create_params as kinds

    streamed = body.get("stream")
    return _typed(kinds.CompletionCreateParamsStreaming if streamed else kinds.CompletionCreateParamsNonStreaming)(body)


def _openai_responses(body: Any) -> Any:
    from openai.types.responses import response_create_params as kinds

    streamed = body.get("stream")
    return _typed(kinds.ResponseCreateParamsStreaming if streamed else kinds.ResponseCreateParamsNonStreaming)(body)


def _anthropic(body: Any) -> Any:
    from anthropic.types import message_create_params as kinds

    streamed = body.get("stream")
    return _typed(kinds.MessageCreateParamsStreaming if streamed else kinds.MessageCreateParamsNonStreaming)(body)


def _gemini(body: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about itself while it is imported
        from google.genai import types

    kinds: Mapping[str, Any] = {
        "contents": list[types.Content],
        "systemInstruction": types.Content,
        "tools": list[types.Tool],
        "toolConfig": types.ToolConfig,
        "generationConfig": types.GenerationConfig,
    }
    read = {name: _dumped(kinds[name], value) for name, value in body.items()}
    thinking = read.get("generationConfig", {}).get("thinkingConfig", {})
    if "thinkingLevel" in thinking:  # the package's enumeration is in capitals; the interface takes both
        thinking["thinkingLevel"] = thinking["thinkingLevel"].lower()
    return read


def _dumped(kind: Any, value: Any) -> Any:
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(kind)
    return adapter.dump_python(adapter.validate_python(value), by_alias=True, exclude_none=True, mode="json")


def _ollama(body: Any) -> Any:
    from ollama._types import ChatRequest

    return _dumped(ChatRequest, body)


READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "openai": ("openai", _openai),
    "openai-responses": ("openai", _openai_responses),
    "anthropic": ("anthropic", _anthropic),
    "gemini": ("google.genai", _gemini),
    "ollama": ("ollama", _ollama),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@grid("wire, name, streamed", MODELS, REQUESTS, [False, True])
def test_sent_requests_match_the_types_of_the_official_packages(wire: str, name: str, streamed: bool) -> None:
    package, read = READERS[wire]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(package, reason=f"the official {package} package is not installed")
    request = REQUESTS[name]
    if wire == "ollama":  # it takes no files
        request = replace(request, messages=tuple(_without_files(message) for message in request.messages))
    body = sent(wire, request, streamed)
    assert read(body) == body


def _without_files(message: Message) -> Message:
    return Message(message.role, tuple(part for part in message.parts if part != FILE))
