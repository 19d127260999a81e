"""Converse: replies and their responses, error replies and their errors."""

from __future__ import annotations

import json

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.response import Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import (
    ContextWindowExceededError,
    LMAuthenticationError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMUnexpectedError,
    LMUnsupportedModelError,
)
from sigwire.lm.codecs.bedrock_converse import decode_error
from tests.lm.codecs.bedrock_converse.wire import CALL, WIRE_CALL, answer, decoded, target
from tests.lm.codecs.encoding import features

SIGNED: JsonObject = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "AAEC"}}}
REDACTED: JsonObject = {"reasoningContent": {"redactedContent": "AAEC"}}
CITED: JsonObject = {
    "citationsContent": {
        "content": [{"text": "It is so."}],
        "citations": [
            {
                "title": "T",
                "sourceContent": [{"text": "so"}],
                "location": {"web": {"url": "https://a.example", "domain": "a.example"}},
            }
        ],
    }
}
SERVED: JsonObject = {"toolUse": {"toolUseId": "s_1", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}}
REPLIES: dict[str, tuple[JsonObject, object]] = {
    "text": (answer({"text": "a"}), [TextPart("a")]),
    "two texts": (answer({"text": "a"}, {"text": "b"}), [TextPart("a"), TextPart("b")]),
    "thinking": (
        answer(SIGNED, REDACTED, {"text": "a"}),
        [
            ThinkingPart("hm", signature="AAEC", provider="bedrock"),
            ThinkingPart(redacted="AAEC", provider="bedrock"),
            TextPart("a"),
        ],
    ),
    "a call": (answer({"text": "t"}, WIRE_CALL, stop="tool_use"), [TextPart("t"), CALL]),
    "a tool of the provider": (answer(SERVED, {"text": "a"}), [OpaquePart("bedrock", SERVED), TextPart("a")]),
    "an empty text": (answer({"text": ""}, {"text": "a"}), [TextPart("a")]),
    "citations": (answer(CITED), [TextPart("It is so.")]),
}


@pytest.mark.parametrize(("wire", "parts"), REPLIES.values(), ids=REPLIES)
def test_reply_is_decoded_to_its_parts(wire: JsonObject, parts: object) -> None:
    response = decoded(wire)
    assert list(response.choices[0].message().parts) == parts
    assert (response.model, response.raw, response.usage) == ("m", wire, Usage(input_tokens=10, output_tokens=7))


def test_citations_are_flat_with_their_place() -> None:
    (choice,) = decoded(answer({"text": "Yes. "}, CITED)).choices
    assert choice.citations == (
        {"type": "web", "title": "T", "url": "https://a.example", "text": "so", "start_index": 5, "end_index": 14},
    )


def test_input_tokens_include_the_cache() -> None:
    counts: JsonValue = {"inputTokens": 1, "outputTokens": 2, "cacheReadInputTokens": 3, "cacheWriteInputTokens": 4}
    usage = decoded(answer({"text": "a"}, usage=counts)).usage
    assert usage == Usage(input_tokens=8, output_tokens=2, cached_tokens=3, cache_write_tokens=4)


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("end_turn", "stop"), ("stop_sequence", "stop"), ("max_tokens", "length"), ("guardrail_intervened", "content_filter"),
        ("model_context_window_exceeded", "length"), ("content_filtered", "content_filter"), ("tool_use", "stop"),
        ("malformed_model_output", "error"), ("malformed_tool_use", "error"), ("of_tomorrow", "stop"),
    ],
)  # fmt: skip
def test_stop_reason_is_mapped(stop: str, reason: str) -> None:
    assert decoded(answer({"text": "a"}, stop=stop)).choices[0].finish_reason == reason


def test_call_at_the_end_of_a_truncated_answer_is_left_out() -> None:
    response = decoded(answer({"text": "t"}, WIRE_CALL, stop="max_tokens"))
    (choice,) = response.choices
    assert (choice.text, choice.tool_calls, choice.finish_reason) == ("t", (), "length")
    assert features(response.warnings) == ["tool_calls"]


def test_names_and_missing_ids_of_calls_are_restored() -> None:
    call: JsonObject = {"toolUse": {"toolUseId": "", "name": "f", "input": {}}}
    assert decoded(answer(call)).choices[0].tool_calls == (ToolCall("call_0", "f", {}),)


@pytest.mark.parametrize(
    ("body", "kind"), [({"message": "no"}, LMServerError), ("no", LMUnexpectedError), ([], LMServerError)]
)
def test_reply_without_content_is_an_error(body: JsonValue, kind: type[LMError]) -> None:
    with pytest.raises(kind, match="holds no message"):
        decoded(body)


ERRORS: list[tuple[int, str, str, type[LMError], bool]] = [
    (400, "ValidationException", "Malformed input request", LMInvalidRequestError, False),
    (400, "ValidationException", "Input is too long for requested model.", ContextWindowExceededError, False),
    (400, "ValidationException", "prompt is too long: 2 tokens > 1 maximum", ContextWindowExceededError, False),
    (400, "ValidationException", "The provided model identifier is invalid.", LMUnsupportedModelError, False),
    (400, "ValidationException", "with on-demand throughput isn't supported.", LMUnsupportedModelError, False),
    (400, "ServiceQuotaExceededException", "Too many tokens per day", LMRateLimitError, True),
    (403, "AccessDeniedException", "You don't have access to the model", LMAuthenticationError, False),
    (
        403,
        "ExpiredTokenException",
        "The security token included in the request is expired",
        LMAuthenticationError,
        False,
    ),
    (404, "ResourceNotFoundException", "Model not found", LMUnsupportedModelError, False),
    (408, "ModelTimeoutException", "Model has timed out", LMTimeoutError, True),
    (424, "ModelErrorException", "The model failed", LMServerError, True),
    (429, "ModelNotReadyException", "Model is not ready", LMServerError, True),
    (429, "ThrottlingException", "Too many requests", LMRateLimitError, True),
    (500, "InternalServerException", "Oops", LMServerError, True),
    (503, "ServiceUnavailableException", "Too busy", LMServerError, True),
]


@pytest.mark.parametrize(("status", "name", "text", "kind", "retried"), ERRORS, ids=lambda value: str(value)[:24])
def test_error_is_read_by_the_name_of_the_exception(
    status: int, name: str, text: str, kind: type[LMError], retried: bool
) -> None:
    in_header = decode_error(
        status,
        {"X-Amzn-ErrorType": f"{name}:http://internal.amazon.com/", "x-amzn-RequestId": "r-1"},
        json.dumps({"message": text}),
        target(),
    )
    in_body = decode_error(status, {}, json.dumps({"__type": f"com.amazon#{name}", "Message": text}), target())
    for error in (in_header, in_body):
        assert (type(error), error.retryable, error.provider_code) == (kind, retried, name.lower())
        assert text.rstrip(".") in error.message
    assert in_header.request_id == "r-1"


def test_model_without_on_demand_throughput_names_the_inference_profile() -> None:
    text = "Invocation of model ID m with on-demand throughput isn’t supported."
    error = decode_error(400, {"x-amzn-errortype": "ValidationException"}, json.dumps({"message": text}), target())
    assert "inference profile" in error.message
