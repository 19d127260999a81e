"""The LiteLLM codec: requests to arguments, answers to responses, exceptions to errors.

A test name gives its row of the wire's checklist: its number and the behaviour.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.calls import CallError, ToolCall, ToolResult, WebSearch
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.tool import Tool
from sigwire.errors import (
    CallerError,
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnexpectedError,
    LMUnsupportedModelError,
    UnsupportedFeature,
    UnsupportedOption,
)
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.litellm.codec import decode_answer, encode_call, target_for, translate_error
from sigwire.lm.litellm.tables import LiteLLMProfile
from sigwire.lm.secrets import Secret

SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
OTHER: JsonObject = {"type": "function", "function": {"name": "g", "description": "e", "parameters": SCHEMA}}
CALL = ToolCall.read("c1", "f", '{"x":1}')
SECOND = ToolCall.read("c2", "f", '{"x":2}')
WIRE_CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
WIRE_SECOND: JsonObject = {"id": "c2", "type": "function", "function": {"name": "f", "arguments": '{"x":2}'}}
ASKED = Message.user("q")
WIRE_ASKED: JsonObject = {"role": "user", "content": "q"}
PNG = ImagePart(data="iVBO", media_type="image/png")

# The parameters that LiteLLM lists for models of these upstreams.
ANTHROPIC = (
    "max_tokens", "parallel_tool_calls", "reasoning_effort", "response_format", "stop", "temperature", "thinking",
    "tool_choice", "tools", "top_p", "user", "web_search_options",
)  # fmt: skip
OLLAMA = (
    "frequency_penalty",
    "max_tokens",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "temperature",
    "tools",
    "top_p",
)


def target(model: str = "acme/m", parameters: tuple[str, ...] | None = None) -> Target[LiteLLMProfile]:
    return target_for(model, parameters)


CLAUDE = target("anthropic/c", ANTHROPIC)
DEEPSEEK = target("deepseek/d")
GEMINI = target("gemini/g")
LLAMA = target("ollama_chat/l", OLLAMA)


def encoded(request: Request, to: Target[LiteLLMProfile] | None = None) -> tuple[dict[str, Any], EncodedRequest]:
    """Return the call, and check that the request is unchanged."""
    before = copy.deepcopy(request)
    call = encode_call(request, to or target())
    assert request == before
    return call


ALONE = {"num_retries": 0, "max_retries": 0}
"""The settings of every call: one exchange."""


def call(*messages: JsonObject, model: str = "acme/m", **fields: Any) -> dict[str, Any]:
    tools = {"_skip_mcp_handler": True} if fields.get("tools") else {}
    return {"model": model, "messages": list(messages), **fields, **ALONE, **tools}


def features(warnings: tuple[LMWarning, ...]) -> list[str]:
    return [warning.feature for warning in warnings]


# --- messages -----------------------------------------------------------------------------------------------------

ANSWERED = Message.tool(ToolResult("c1", "f", "ok"))
WIRE_ANSWERED: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
ASSISTANT: JsonObject = {"role": "assistant", "content": None, "tool_calls": [WIRE_CALL]}
BLOCKS: JsonObject = {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "S"}]}
SIGNED: JsonObject = {"provider_specific_fields": {"thought_signature": "S"}}
CONVERSATIONS: dict[str, tuple[Target[LiteLLMProfile], tuple[Message, ...], list[JsonObject], list[str]]] = {
    "row 6 system": (target(), (Message.system("S"), ASKED), [{"role": "system", "content": "S"}, WIRE_ASKED], []),
    "row 7 second system turn": (
        target(),
        (ASKED, Message.system("T")),
        [WIRE_ASKED, {"role": "system", "content": "T"}],
        [],
    ),
    "row 8 user text": (target(), (ASKED,), [WIRE_ASKED], []),
    "row 9 image url": (
        target(),
        (Message("user", (ImagePart(url="https://x/a.png"),)),),
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/a.png"}}]}],
        [],
    ),
    "row 10 image base64": (
        target(),
        (Message("user", (PNG,)),),
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]}],
        [],
    ),
    "row 11 audio": (
        target(),
        (Message("user", (AudioPart("UklG"),)),),
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}]}],
        [],
    ),
    "row 12 pdf": (
        target(),
        (Message("user", (FilePart(data="JVBE", filename="a.pdf"),)),),
        [
            {
                "role": "user",
                "content": [
                    {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"}}
                ],
            }
        ],
        [],
    ),
    "row 13 assistant text and call": (
        target(),
        (ASKED, Message.assistant("t", [CALL]), ANSWERED),
        [WIRE_ASKED, {**ASSISTANT, "content": "t"}, WIRE_ANSWERED],
        [],
    ),
    "row 14 call without text, row 15 arguments are a string, row 17 one result": (
        target(),
        (ASKED, Message.assistant(tool_calls=[CALL]), ANSWERED),
        [WIRE_ASKED, ASSISTANT, WIRE_ANSWERED],
        [],
    ),
    "row 16 thinking blocks": (
        CLAUDE,
        (
            ASKED,
            Message(
                "assistant",
                (ThinkingPart("hm", provider="litellm/anthropic"), OpaquePart("litellm/anthropic", BLOCKS), CALL),
            ),
            ANSWERED,
        ),
        [WIRE_ASKED, {**ASSISTANT, **BLOCKS}, WIRE_ANSWERED],
        [],
    ),
    "row 16 reasoning_content": (
        DEEPSEEK,
        (ASKED, Message("assistant", (ThinkingPart("hm", provider="litellm/deepseek"), CALL)), ANSWERED),
        [WIRE_ASKED, {**ASSISTANT, "reasoning_content": "hm"}, WIRE_ANSWERED],
        [],
    ),
    "row 16 a signed call": (
        GEMINI,
        (ASKED, Message.assistant(tool_calls=[replace(CALL, provider_data={"litellm/gemini": SIGNED})]), ANSWERED),
        [WIRE_ASKED, {**ASSISTANT, "tool_calls": [{**WIRE_CALL, **SIGNED}]}, WIRE_ANSWERED],
        [],
    ),
    "row 18 two results, row 19 error result": (
        target(),
        (
            ASKED,
            Message.assistant(tool_calls=[CALL, SECOND]),
            Message.tool(ToolResult("c1", "f", "ok"), ToolResult("c2", "f", "boom", is_error=True)),
        ),
        [
            WIRE_ASKED,
            {**ASSISTANT, "tool_calls": [WIRE_CALL, WIRE_SECOND]},
            WIRE_ANSWERED,
            {"role": "tool", "tool_call_id": "c2", "content": "ERROR: boom"},
        ],
        [],
    ),
    "row 20 empty result": (
        target(),
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", ""))),
        [WIRE_ASKED, ASSISTANT, {**WIRE_ANSWERED, "content": ""}],
        [],
    ),
    "row 21 an image in a result": (
        target(),
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.tool(ToolResult("c1", "f", "see", media=(PNG,)))),
        [
            WIRE_ASKED,
            ASSISTANT,
            {**WIRE_ANSWERED, "content": "see\n[image attached below]"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}]},
        ],
        ["result_media"],
    ),
    "row 22 unanswered call, row 23 user text after results": (
        target(),
        (ASKED, Message.assistant(tool_calls=[CALL]), Message.user("and?")),
        [
            WIRE_ASKED,
            ASSISTANT,
            {**WIRE_ANSWERED, "content": "ERROR: tool was not executed"},
            {"role": "user", "content": "and?"},
        ],
        ["tool_results"],
    ),
    "row 82 what another upstream left is dropped": (
        GEMINI,
        (
            ASKED,
            Message(
                "assistant",
                (
                    ThinkingPart("hm", provider="litellm/anthropic"),
                    OpaquePart("litellm/anthropic", BLOCKS),
                    replace(CALL, provider_data={"litellm/vertex_ai": SIGNED}),
                ),
            ),
            ANSWERED,
        ),
        [WIRE_ASKED, ASSISTANT, WIRE_ANSWERED],
        ["thinking"],
    ),
}


@pytest.mark.parametrize(("to", "messages", "wire", "warned"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_messages_are_encoded(
    to: Target[LiteLLMProfile], messages: tuple[Message, ...], wire: list[JsonObject], warned: list[str]
) -> None:
    arguments, sent = encoded(Request(messages), to)
    assert arguments == call(*wire, model=to.model)
    assert features(sent.warnings) == warned


def test_row_10_unsupported_image_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="litellm/deepseek/d has no place for image input"):
        encoded(Request((Message("user", (PNG,)),)), DEEPSEEK)


# --- tools ----------------------------------------------------------------------------------------------------------

OFFERS: dict[str, tuple[Target[LiteLLMProfile], Request, JsonObject, list[str]]] = {
    "row 24 definition": (target(), Request(tools=(TOOL,)), {"tools": [TOOL]}, []),
    "row 27 auto": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.AUTO),
        {"tools": [TOOL], "tool_choice": "auto"},
        [],
    ),
    "row 28 required": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL], "tool_choice": "required"},
        [],
    ),
    "row 28 required where it would be dropped": (
        LLAMA,
        Request(tools=(TOOL,), tool_choice=ToolChoice.REQUIRED),
        {"tools": [TOOL]},
        ["tool_choice"],
    ),
    "row 29 named": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [TOOL, OTHER], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        [],
    ),
    "row 29 named where it would be dropped": (
        LLAMA,
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice.named("f")),
        {"tools": [TOOL]},
        ["tool_choice"],
    ),
    "row 30 none": (
        target(),
        Request(tools=(TOOL,), tool_choice=ToolChoice.NONE),
        {"tools": [TOOL], "tool_choice": "none"},
        [],
    ),
    "row 30 none where there is no choice": (LLAMA, Request(tools=(TOOL,), tool_choice=ToolChoice.NONE), {}, []),
    "row 31 allowed list": (
        target(),
        Request(tools=(TOOL, OTHER), tool_choice=ToolChoice("auto", ("g",))),
        {"tools": [OTHER], "tool_choice": "auto"},
        [],
    ),
    "row 32 parallel off": (
        target(),
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [TOOL], "parallel_tool_calls": False},
        [],
    ),
    "row 32 parallel off where it cannot be": (
        LLAMA,
        Request(tools=(TOOL,), parallel_tool_calls=False),
        {"tools": [TOOL]},
        ["parallel_tool_calls"],
    ),
    "row 32 parallel on where it need not be said": (
        LLAMA,
        Request(tools=(TOOL,), parallel_tool_calls=True),
        {"tools": [TOOL]},
        [],
    ),
    "row 33 choice without tools": (target(), Request(tool_choice=ToolChoice.REQUIRED), {}, []),
    "row 49 web search": (
        CLAUDE,
        Request(tools=(Tool.web_search(WebSearch()).spec, TOOL)),
        {"web_search_options": {}, "tools": [TOOL]},
        [],
    ),
    "row 49 web search near somewhere": (
        CLAUDE,
        Request(
            tools=(Tool.web_search(WebSearch(max_uses=2, user_location={"type": "approximate", "country": "DE"})).spec,)
        ),
        {"web_search_options": {"user_location": {"type": "approximate", "approximate": {"country": "DE"}}}},
        ["max_uses"],
    ),
}


@pytest.mark.parametrize(("to", "request_", "fields", "warned"), OFFERS.values(), ids=OFFERS)
def test_tools_and_tool_choices_are_encoded(
    to: Target[LiteLLMProfile], request_: Request, fields: JsonObject, warned: list[str]
) -> None:
    arguments, sent = encoded(replace(request_, messages=(ASKED,)), to)
    assert arguments == call(WIRE_ASKED, model=to.model, **fields)
    assert features(sent.warnings) == warned


def test_row_25_tool_without_arguments_is_encoded() -> None:
    tool = Tool.from_schema("f", "d", {"type": "object", "properties": {}})
    assert encoded(Request((ASKED,), (tool.spec,)))[0]["tools"] == [tool.spec]


def test_row_26_forbidden_tool_name_is_mapped_both_ways() -> None:
    tool = Tool.from_schema("shop.orders", "d", SCHEMA)
    arguments, sent = encoded(Request((ASKED,), (tool.spec,)))
    assert arguments["tools"][0]["function"] == {"name": "shop_orders", "description": "d", "parameters": SCHEMA}
    wire = answer({"tool_calls": [{"id": "c1", "function": {"name": "shop_orders", "arguments": "{}"}}]})
    assert decode_answer(wire, sent, target()).choices[0].tool_calls[0].name == "shop.orders"


def test_row_49_unsupported_web_search_limits_are_refused() -> None:
    search = Tool.web_search(WebSearch(allowed_domains=("x.org",)))
    with pytest.raises(UnsupportedFeature, match="allowed_domains of a web search"):
        encoded(Request((ASKED,), (search.spec,)), CLAUDE)


def test_row_49_unsupported_web_search_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="ollama_chat/l has no place for a built-in web search"):
        encoded(Request((ASKED,), (Tool.web_search(WebSearch()).spec,)), LLAMA)


# --- output and sampling --------------------------------------------------------------------------------------------

REST: JsonObject = {"top_k": 5, "user": "u", "service_tier": "flex"}
FIELDS: dict[str, tuple[Target[LiteLLMProfile], JsonObject, dict[str, Any], list[str]]] = {
    "row 38 max tokens": (target(), {"max_tokens": 50}, {"max_tokens": 50}, []),
    "row 39 max tokens unset": (target(), {"max_tokens": None}, {}, []),
    "row 40 temperature": (target(), {"temperature": 0.0, "top_p": 0.5}, {"temperature": 0.0, "top_p": 0.5}, []),
    "row 40 temperature on a model that takes none": (target("openai/o", ()), {"temperature": 0.0}, {}, ["temperature"]),
    "row 41 stop": (target(), {"stop": ["a"]}, {"stop": ["a"]}, []),
    "row 42 seed": (target(), {"seed": 7}, {"seed": 7}, []),
    "row 42 seed on a model that takes none": (CLAUDE, {"seed": 7}, {}, ["seed"]),
    "row 43 two choices": (target(), {"n": 2}, {"n": 2}, []),
    "row 43 two choices, one at a time": (CLAUDE, {"n": 2}, {}, ["n"]),
    "row 43 one choice, one at a time": (CLAUDE, {"n": 1}, {}, []),
    "row 44 logprobs": (
        target(),
        {"logprobs": True, "top_logprobs": 3},
        {"logprobs": True, "top_logprobs": 3},
        [],
    ),
    "row 45 effort": (target(), {"reasoning": "high"}, {"reasoning_effort": "high"}, []),
    "row 46 budget": (
        CLAUDE,
        {"reasoning": {"budget": 2000}},
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        [],
    ),
    "row 46 budget where there are efforts only": (
        LLAMA,
        {"reasoning": {"budget": 2000}},
        {"reasoning_effort": "low"},
        ["reasoning"],
    ),
    "row 47 reasoning off": (target(), {"reasoning": "off"}, {"reasoning_effort": "none"}, []),
    "row 47 reasoning off on a model that does not reason": (target("acme/m", ()), {"reasoning": "off"}, {}, []),
    "row 50 extra body": (target(), {"extra_body": {"drop_params": True}}, {"drop_params": True}, []),
    "the rest": (target(), dict(REST), dict(REST), []),
}  # fmt: skip


@pytest.mark.parametrize(("to", "options", "fields", "warned"), FIELDS.values(), ids=FIELDS)
def test_options_are_encoded(
    to: Target[LiteLLMProfile], options: JsonObject, fields: JsonObject, warned: list[str]
) -> None:
    arguments, sent = encoded(Request((ASKED,), options=options), to)
    assert arguments == call(WIRE_ASKED, model=to.model, **fields)
    assert features(sent.warnings) == warned
    assert sent.repeat == (2 if warned == ["n"] else 1)


@pytest.mark.parametrize(
    ("to", "option"),
    [
        pytest.param(CLAUDE, "logprobs", id="row 44 logprobs on a model that has none"),
        pytest.param(target(), "metadata", id="metadata would stay with LiteLLM"),
        pytest.param(target(), "temprature", id="a misspelt option"),
    ],
)
def test_unsupported_option_is_refused(to: Target[LiteLLMProfile], option: str) -> None:
    with pytest.raises(UnsupportedOption, match=f"litellm has no option {option!r}"):
        encoded(Request((ASKED,), options={option: True}), to)


def test_row_45_effort_is_refused_when_the_model_does_not_reason() -> None:
    with pytest.raises(UnsupportedFeature, match="reasoning effort 'high'"):
        encoded(Request((ASKED,), options={"reasoning": "high"}), target("acme/m", ()))


def test_rows_34_35_and_37_structured_output_is_encoded_with_tools() -> None:
    wanted = ResponseFormat(SCHEMA, "reply")
    form: JsonObject = {"type": "json_schema", "json_schema": {"name": "reply", "schema": SCHEMA}}
    assert encoded(Request((ASKED,), response_format=wanted))[0] == call(WIRE_ASKED, response_format=form)
    beside = encoded(Request((ASKED,), (TOOL,), response_format=wanted))[0]
    assert beside == call(WIRE_ASKED, tools=[TOOL], response_format=form)


def test_row_36_unsupported_structured_output_becomes_an_instruction() -> None:
    arguments, sent = encoded(Request((ASKED,), response_format=ResponseFormat()), target("acme/m", ()))
    words: JsonObject = {"role": "system", "content": "Reply with only a JSON object."}
    assert arguments == call(words, WIRE_ASKED)
    assert features(sent.warnings) == ["response_format"]


def test_row_48_cache_hint_marks_the_system_text() -> None:
    request = Request((Message.system("S"), ASKED), options={"prompt_cache": {}})
    system, asked = ({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}} for text in "Sq")
    marked: list[JsonObject] = [{"role": "system", "content": [system]}, {"role": "user", "content": [asked]}]
    assert encoded(request, CLAUDE)[0] == call(*marked, model="anthropic/c")
    assert encoded(request)[0] == call({"role": "system", "content": "S"}, WIRE_ASKED)


# --- answers --------------------------------------------------------------------------------------------------------

COUNTS: JsonObject = {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17}
USED = Usage(10, 7)


def answer(message: JsonObject, finish_reason: str = "stop", **fields: JsonValue) -> JsonObject:
    choice: JsonObject = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}
    return {"id": "r1", "model": "m-1", "object": "chat.completion", "choices": [choice], "usage": COUNTS, **fields}


def decoded(wire: JsonValue, to: Target[LiteLLMProfile] | None = None) -> Response:
    before = copy.deepcopy(wire)
    response = decode_answer(wire, encoded(Request((ASKED,)), to)[1], to or target())
    assert wire == before
    return response


def thought(upstream: str) -> ThinkingPart:
    return ThinkingPart("hm", provider=f"litellm/{upstream}")


BROKEN = CallError("malformed_json", "The arguments are not valid JSON: Expecting value: line 1 column 7 (char 6)")
REPLIES: dict[str, tuple[Target[LiteLLMProfile], JsonObject, str, Choice]] = {
    "row 51 text": (target(), {"content": "Hi"}, "stop", Choice("Hi")),
    "row 52 call id, row 55 two parallel calls, an index that says nothing": (
        target(),
        {"content": None, "tool_calls": [{**WIRE_CALL, "index": 2}, {**WIRE_SECOND, "index": 3}]},
        "tool_calls",
        Choice(tool_calls=(CALL, SECOND), finish_reason="tool_calls"),
    ),
    "row 52 a signature inside the id": (
        GEMINI,
        {"tool_calls": [{**WIRE_CALL, "id": "c1__thought__S"}]},
        "tool_calls",
        Choice(tool_calls=(replace(CALL, provider_data={"litellm/gemini": SIGNED}),), finish_reason="tool_calls"),
    ),
    "row 52 a signature inside the id and beside it": (
        GEMINI,
        {"tool_calls": [{**WIRE_CALL, "id": "c1__thought__S", **SIGNED}]},
        "tool_calls",
        Choice(tool_calls=(replace(CALL, provider_data={"litellm/gemini": SIGNED}),), finish_reason="tool_calls"),
    ),
    "row 53 empty arguments": (
        target(),
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ""}}]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("a", "f", {}, ""),), finish_reason="tool_calls"),
    ),
    "row 54 invalid arguments": (
        target(),
        {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x": '}}]},
        "tool_calls",
        Choice(tool_calls=(ToolCall("a", "f", None, '{"x": ', BROKEN),), finish_reason="tool_calls"),
    ),
    "row 56 thinking": (
        DEEPSEEK,
        {"reasoning_content": "hm", "content": "Hi"},
        "stop",
        Choice.from_parts((thought("deepseek"), TextPart("Hi"))),
    ),
    "row 56 thinking blocks": (
        CLAUDE,
        {"reasoning_content": "hm", "content": "Hi", **BLOCKS, "tool_calls": [WIRE_CALL]},
        "tool_calls",
        Choice.from_parts(
            (thought("anthropic"), OpaquePart("litellm/anthropic", BLOCKS), TextPart("Hi"), CALL),
            finish_reason="tool_calls",
        ),
    ),
    "row 56 signatures of texts": (
        GEMINI,
        {"content": "Hi", "thinking_blocks": [], "images": [], "provider_specific_fields": {"thought_signatures": ["S"]}},
        "stop",
        Choice.from_parts(
            (
                OpaquePart("litellm/gemini", {"provider_specific_fields": {"thought_signatures": ["S"]}}),
                TextPart("Hi"),
            )
        ),
    ),
    "row 57 refusal": (target(), {"content": None}, "content_filter", Choice(finish_reason="content_filter")),
    "row 58 citations": (
        target(),
        {"content": "Hi", "annotations": [{"type": "url_citation", "url_citation": {"url": "https://x"}}]},
        "stop",
        Choice("Hi", citations=({"type": "url_citation", "url": "https://x"},)),
    ),
    "row 59 calls but reason stop": (
        target(),
        {"tool_calls": [WIRE_CALL]},
        "stop",
        Choice(tool_calls=(CALL,), finish_reason="tool_calls"),
    ),
    "row 60 cut inside a call": (
        target(),
        {"tool_calls": [WIRE_CALL, {"id": "c2", "function": {"name": "f", "arguments": '{"x'}}]},
        "length",
        Choice(tool_calls=(CALL,), finish_reason="length"),
    ),
    "row 61 nothing is a call that was lost": (target(), {"content": None}, "stop", Choice(finish_reason="error")),
    "row 61 nothing but thinking": (
        DEEPSEEK,
        {"reasoning_content": "hm", "content": ""},
        "stop",
        Choice.from_parts((thought("deepseek"),), finish_reason="error"),
    ),
    "row 81 a turn to go on with is seen as cut": (target(), {"content": "Hi"}, "length", Choice("Hi", finish_reason="length")),
    "pictures": (
        GEMINI,
        {
            "content": None,
            "images": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
            ],
        },
        "stop",
        Choice.from_parts((PNG, ImagePart(url="https://x/a.png"))),
    ),
}  # fmt: skip
WARNED = {
    "row 60 cut inside a call": ["tool_calls"],
    "row 61 nothing is a call that was lost": ["content"],
    "row 61 nothing but thinking": ["content"],
    "pictures": ["content"],
}


@pytest.mark.parametrize("name", REPLIES)
def test_answers_are_decoded(name: str) -> None:
    to, message, reason, choice = REPLIES[name]
    wire = answer(message, reason)
    response = decoded(wire, to)
    choices = wire["choices"]
    assert isinstance(choices, list)
    expected = replace(choice, raw=choices[0])
    assert response == Response((expected,), USED, "m-1", "r1", response.warnings, raw=wire)
    assert features(response.warnings) == WARNED.get(name, [])


@pytest.mark.parametrize(
    ("counts", "used"),
    [
        pytest.param(
            {
                **COUNTS,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 2},
                "cost": 0.5,
            },
            Usage(10, 7, 4, 1, 2, 0.5),
            id="row 63 all",
        ),
        pytest.param(
            {"prompt_tokens": 6, "cache_read_input_tokens": 1, "cache_creation_input_tokens": 2},
            Usage(6, cached_tokens=1, cache_write_tokens=2),
            id="row 63 anthropic, as LiteLLM adds it up",
        ),
        pytest.param(None, Usage(), id="row 63 none"),
    ],
)
def test_usage_is_decoded(counts: JsonValue, used: Usage) -> None:
    assert decoded(answer({"content": "Hi"}, usage=counts)).usage == used


@pytest.mark.parametrize("wire", [{"choices": []}, {"choices": None}, [], "oops <html>"])
def test_row_62_answer_without_choices_is_an_error(wire: JsonValue) -> None:
    with pytest.raises(LMError, match="no choices"):
        decoded(wire)


# --- errors ---------------------------------------------------------------------------------------------------------


def made(name: str, status: int | None = None, text: str = "", *below: str, **attributes: Any) -> Exception:
    """An exception as LiteLLM would raise it: a class of this name, made from classes of those names."""
    base: type[Exception] = Exception
    for parent in (*reversed(below), name):
        base = type(parent, (base,), {"__module__": "litellm.exceptions"})
    error = base(f"litellm.{name}: {text or 'said'}")
    for attribute, value in {"status_code": status, **attributes}.items():
        setattr(error, attribute, value)
    return error


ERRORS: dict[str, tuple[Exception, type[LMError], bool]] = {
    "row 73 bad key": (made("AuthenticationError", 401), LMAuthenticationError, False),
    "row 73 forbidden": (made("PermissionDeniedError", 403), LMAuthenticationError, False),
    "row 73 forbidden, by status alone": (made("APIError", 403), LMAuthenticationError, False),
    "row 74 unknown model": (made("NotFoundError", 404), LMUnsupportedModelError, False),
    "row 74 unknown provider": (
        made("BadRequestError", 400, "LLM Provider NOT provided. You passed model=nobody/m"),
        LMUnsupportedModelError,
        False,
    ),
    "row 75 context": (
        made("ContextWindowExceededError", 400, "", "BadRequestError"),
        ContextWindowExceededError,
        False,
    ),
    "row 75 context by text": (
        made("BadRequestError", 400, "prompt is too long: 9 tokens"),
        ContextWindowExceededError,
        False,
    ),
    "row 75 context by code": (
        made("BadRequestError", 400, body={"code": "context_length_exceeded", "message": "long"}),
        ContextWindowExceededError,
        False,
    ),
    "row 76 rate limit": (made("RateLimitError", 429), LMRateLimitError, True),
    "row 77 overloaded": (made("InternalServerError", 500, "AnthropicException - Overloaded"), LMServerError, True),
    "row 77 overloaded, by status alone": (made("APIError", 529), LMServerError, True),
    "row 77 unavailable": (made("ServiceUnavailableError", 503), LMServerError, True),
    "row 78 quota by text": (made("RateLimitError", 429, "You exceeded your current quota"), LMBillingError, False),
    "row 78 quota by code": (made("RateLimitError", 429, body={"code": "insufficient_quota"}), LMBillingError, False),
    "row 78 payment": (made("PaymentRequiredError", 402, "", "BadRequestError"), LMBillingError, False),
    "row 78 payment, by status alone": (made("APIError", 402), LMBillingError, False),
    "a budget of LiteLLM's": (made("BudgetExceededError"), LMBillingError, False),
    "content": (made("ContentPolicyViolationError", 400, "", "BadRequestError"), LMContentFilteredError, False),
    "rejected": (made("RejectedRequestError", 400, "", "BadRequestError"), LMContentFilteredError, False),
    "an option": (made("UnsupportedParamsError", 400, "", "BadRequestError"), LMInvalidRequestError, False),
    "bad request": (made("BadRequestError", 400), LMInvalidRequestError, False),
    "unprocessable": (made("UnprocessableEntityError", 422), LMInvalidRequestError, False),
    "timeout": (made("Timeout", 408, "", "APITimeoutError", "APIConnectionError"), LMTimeoutError, True),
    "bad gateway": (made("BadGatewayError", 502), LMServerError, True),
    "connection": (made("APIConnectionError", 500), LMTransportError, True),
    "connection as a server's fault": (
        made("InternalServerError", 500, "OpenAIException - Connection error."),
        LMTransportError,
        True,
    ),
    "an answer nobody could read": (made("APIResponseValidationError", 500), LMServerError, False),
    "any other": (made("APIError", 500), LMServerError, False),
    "a timeout of our own": (TimeoutError(), LMTimeoutError, True),
    "no class of theirs": (KeyError("x"), LMUnexpectedError, False),
}


@pytest.mark.parametrize(("theirs", "kind", "retryable"), ERRORS.values(), ids=ERRORS)
def test_exceptions_become_lm_errors(theirs: Exception, kind: type[LMError], retryable: bool) -> None:
    error = translate_error(theirs, target())
    assert type(error) is kind
    assert error.retryable is retryable
    assert (error.provider, error.model, error.status) == ("litellm", "acme/m", getattr(theirs, "status_code", None))
    assert error.message


def test_error_text_is_the_providers_without_litellm_prefixes() -> None:
    theirs = made(
        "RateLimitError", 429, "RateLimitError: GroqException - try again in 1.5s. Your key gsk_123456 is busy"
    )
    error = translate_error(theirs, target(), {"api_key": Secret("gsk_123456")})
    assert error.message == "GroqException - try again in 1.5s. Your key *** is busy."
    assert translate_error(KeyError("x"), target()).message.startswith("LiteLLM failed with KeyError: 'x'")


def test_row_76_error_has_wait_and_request_id() -> None:
    headers = {"retry-after": "7", "x-request-id": "r9"}
    error = translate_error(made("RateLimitError", 429, litellm_response_headers=headers), target())
    assert (error.retry_after, error.request_id) == (7, "r9")


# --- properties -----------------------------------------------------------------------------------------------------

values: st.SearchStrategy[Any] = (
    st.none() | st.integers() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=2)
)
objects: st.SearchStrategy[Any] = st.dictionaries(st.text(max_size=5), values, max_size=3)
names = st.text(min_size=1, max_size=70)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, st.text(max_size=9)),
    st.builds(ThinkingPart, st.text(max_size=9), provider=st.sampled_from(["litellm/deepseek", "gemini", None])),
    st.builds(ToolCall.read, st.text(max_size=5), names, objects | st.text(max_size=9)),
)
histories = st.lists(
    st.one_of(
        st.builds(Message.user, st.text(max_size=9), st.sampled_from([PNG, AudioPart("x", "flac"), FilePart(url="u")])),
        st.builds(Message, st.just("assistant"), st.lists(parts, max_size=3).map(tuple)),
        st.builds(Message.tool, st.builds(ToolResult, st.text(max_size=5), names, values, st.booleans())),
    ),
    max_size=4,
).map(tuple)
requests = st.builds(
    Request,
    histories,
    st.lists(st.sampled_from([TOOL, OTHER, {"type": "web_search", "web_search": {}}]), max_size=2).map(tuple),
    st.sampled_from([None, ToolChoice.AUTO, ToolChoice.REQUIRED, ToolChoice.NONE]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, ResponseFormat(), ResponseFormat(SCHEMA)]),
    st.fixed_dictionaries(
        {},
        optional={
            "n": st.integers(1, 3),
            "reasoning": st.sampled_from(["off", "max", {"budget": 7}]),
            "seed": st.just(1),
        },
    ),
)


def attempt(request: Request, to: Target[LiteLLMProfile]) -> tuple[dict[str, Any], EncodedRequest] | str:
    """The call, or why there can be none."""
    try:
        return encode_call(request, to)
    except CallerError as error:
        return str(error)


@given(requests, st.sampled_from([target(), CLAUDE, DEEPSEEK, LLAMA, GEMINI]))
def test_any_request_is_encoded_or_refused(request: Request, to: Target[LiteLLMProfile]) -> None:
    made = attempt(request, to)
    if isinstance(made, str):
        assert "no place for" in made
        return
    arguments, sent = made
    json.dumps(arguments, ensure_ascii=False).encode()
    assert ("n" in features(sent.warnings)) == (sent.repeat > 1)
    assert ("tools" in arguments) == ("_skip_mcp_handler" in arguments)


@given(
    st.text(max_size=9),
    st.text(max_size=9),
    st.lists(objects, max_size=3),
    st.sampled_from([CLAUDE, DEEPSEEK, GEMINI]),
    st.booleans(),
)
def test_answer_in_history_is_encoded_as_received(
    text: str, thinking: str, arguments: list[Any], to: Target[LiteLLMProfile], signed: bool
) -> None:
    calls: list[JsonObject] = [
        {
            "id": f"id_{number}",
            "type": "function",
            "function": {"name": "f", "arguments": json.dumps(value, ensure_ascii=False, separators=(",", ":"))},
            **(SIGNED if signed and to is GEMINI else {}),
        }
        for number, value in enumerate(arguments)
    ]
    came: JsonObject = {"role": "assistant", "content": text or (None if calls else "")}
    if calls:
        came["tool_calls"] = [*calls]
    if thinking and to is DEEPSEEK:
        came["reasoning_content"] = thinking
    if thinking and to is CLAUDE:
        came["thinking_blocks"] = [{"type": "thinking", "thinking": thinking, "signature": "S"}]
    choice = decoded({"choices": [{"message": came, "finish_reason": "stop"}]}, to).choices[0]
    stored = Message.from_json(json.loads(json.dumps(choice.message().to_json())))
    written = encode_call(Request((ASKED, stored)), to)[0]["messages"]
    said_something = came != {"role": "assistant", "content": ""}
    if calls and to is DEEPSEEK:  # without the field, the host refuses a call turn while the model thinks
        came.setdefault("reasoning_content", "")
    assert [message for message in written if message["role"] == "assistant"] == ([came] if said_something else [])
