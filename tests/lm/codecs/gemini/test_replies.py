"""Gemini: replies decoded, and sent back in history."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sigwire.core.events import collect, events_of
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import LMRateLimitError
from sigwire.lm.codecs import gemini
from sigwire.lm.codecs.gemini import FINISH_REASONS
from tests.lm.codecs.encoding import features, with_parts
from tests.lm.codecs.gemini.wire import (
    ASKED,
    CALL,
    PNG,
    SECOND,
    SIGNED,
    USAGE,
    WIRE_CALL,
    WIRE_PNG,
    WIRE_SECOND,
    WIRE_SIGNED,
    answer,
    decoded,
    encoded,
    model,
    target,
)

USED = Usage(13, 7, cached_tokens=4, reasoning_tokens=2)


def thought(text: str = "", **rest: Any) -> ThinkingPart:
    return ThinkingPart(text, provider="gemini", **rest)


CODE: JsonObject = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "AAED"}
REPLIES: dict[str, tuple[tuple[JsonObject, ...], str, Choice, list[str]]] = {
    "row 51 text": (({"text": "Hi"},), "STOP", Choice("Hi"), []),
    "row 51 texts are joined": (
        ({"text": "Hi "}, {"text": "you"}),
        "STOP",
        with_parts(TextPart("Hi "), TextPart("you")),
        [],
    ),
    "row 51 an empty text is nothing": (({"text": "Hi"}, {"text": ""}), "STOP", Choice("Hi"), []),
    "row 52 call id, row 55 two parallel calls, row 59 reason STOP": (
        (WIRE_SIGNED, WIRE_SECOND),
        "STOP",
        Choice(tool_calls=(SIGNED, SECOND), finish_reason="tool_calls"),
        [],
    ),
    "row 52 no call id, row 53 no arguments": (
        ({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "args": None}}),
        "STOP",
        Choice(tool_calls=(ToolCall("call_0", "f", {}), ToolCall("call_1", "f", {})), finish_reason="tool_calls"),
        [],
    ),
    "row 54 a call the provider could not read": (
        (),
        "MALFORMED_FUNCTION_CALL",
        Choice(finish_reason="error"),
        ["finish_reason"],
    ),
    "row 56 thinking": (
        ({"text": "hm", "thought": True}, {"text": "Hi", "thought": False}),
        "STOP",
        with_parts(thought("hm"), TextPart("Hi")),
        [],
    ),
    "row 56 thinking that is signed": (
        ({"text": "hm", "thought": True, "thoughtSignature": "AAED"}, {"text": "Hi"}),
        "STOP",
        with_parts(thought("hm", signature="AAED"), TextPart("Hi")),
        [],
    ),
    "a text that is signed": (
        ({"text": "Hi", "thoughtSignature": "AAED"},),
        "STOP",
        with_parts(TextPart("Hi"), thought(signature="AAED", redacted="")),
        [],
    ),
    "a signature alone": (
        ({"text": "Hi"}, {"text": "", "thoughtSignature": "AAED"}),
        "STOP",
        with_parts(TextPart("Hi"), thought(redacted="AAED")),
        [],
    ),
    "row 57 filtered": (({"text": "Hi"},), "SAFETY", Choice("Hi", finish_reason="content_filter"), ["finish_reason"]),
    "row 60 cut": (({"text": "Hi"},), "MAX_TOKENS", Choice("Hi", finish_reason="length"), []),
    "row 60 a call in a cut answer is whole": (
        (WIRE_CALL,),
        "MAX_TOKENS",
        Choice(tool_calls=(CALL,), finish_reason="length"),
        [],
    ),
    "row 60 a call that is no call is dropped from a cut answer": (
        ({"text": "Hi"}, {"functionCall": {"id": "c1", "name": "f", "args": [1]}}),
        "MAX_TOKENS",
        Choice("Hi", finish_reason="length"),
        ["tool_calls"],
    ),
    "row 61 nothing": ((), "STOP", Choice(), ["content"]),
    "row 61 nothing for another reason": ((), "OTHER", Choice(finish_reason="error"), ["finish_reason"]),
    "row 81 the provider asks to continue": (
        ({"text": "Hi"},),
        "CONTINUATION",
        Choice("Hi", finish_reason="length"),
        ["continuation"],
    ),
    "calls before text keep their order": (
        (WIRE_CALL, {"text": "Hi"}),
        "STOP",
        with_parts(CALL, TextPart("Hi"), finish_reason="tool_calls"),
        [],
    ),
    "what the provider ran is kept": (
        (CODE, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}, {"text": "Hi"}),
        "STOP",
        with_parts(
            OpaquePart("gemini", CODE),
            OpaquePart("gemini", {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}),
            TextPart("Hi"),
        ),
        [],
    ),
    "an image": (
        ({**WIRE_PNG, "thoughtSignature": "AAED"},),
        "STOP",
        with_parts(PNG, thought(signature="AAED", redacted="")),
        [],
    ),
    "sound": (
        ({"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "UklG"}},),
        "STOP",
        with_parts(AudioPart("UklG", "L16;rate=24000")),
        [],
    ),
}


@pytest.mark.parametrize(("parts", "reason", "choice", "warned"), REPLIES.values(), ids=REPLIES)
def test_replies(parts: tuple[JsonObject, ...], reason: str, choice: Choice, warned: list[str]) -> None:
    wire = answer(*parts, reason=reason)
    response = decoded(wire)
    candidates = wire["candidates"]
    assert isinstance(candidates, list)
    expected = Response((replace(choice, raw=candidates[0]),), USED, "m-1", "r1", response.warnings, raw=wire)
    assert response == expected
    assert features(response.warnings) == warned
    assert collect(events_of(response)) == response
    assert Response.from_json(json.loads(json.dumps(response.to_json()))) == response


FINISHES: dict[tuple[str | None, str], str] = {
    **{(native, ""): ours for native, ours in FINISH_REASONS.items()},
    ("OTHER", "t"): "stop",
    ("FINISH_REASON_UNSPECIFIED", "t"): "stop",
    ("NEWER_THAN_US", "t"): "stop",
    ("NEWER_THAN_US", ""): "error",
    (None, "t"): "stop",
    (None, ""): "error",
}


@pytest.mark.parametrize(("wire", "ours"), FINISHES.items(), ids=map(str, FINISHES))
def test_finish_reasons(wire: tuple[str | None, str], ours: str) -> None:
    reason, text = wire
    assert decoded(answer({"text": text}, reason=reason)).choices[0].finish_reason == ours


def test_finish_message_of_the_provider_is_in_the_warning() -> None:
    wire = answer(reason="UNEXPECTED_TOOL_CALL", finishMessage="undeclared function: x")
    assert decoded(wire).warnings == (
        LMWarning("finish_reason", "The provider ended the answer with UNEXPECTED_TOOL_CALL: undeclared function: x."),
    )


BLOCKED: dict[str, tuple[JsonObject, str]] = {
    "row 57 the Gemini API": ({"blockReason": "SAFETY"}, "The prompt was blocked (SAFETY)."),
    "row 57 Vertex": (
        {"blockReason": "OTHER", "blockReasonMessage": "No."},
        "The prompt was blocked (OTHER: No.).",
    ),
}


@pytest.mark.parametrize(("feedback", "said"), BLOCKED.values(), ids=BLOCKED)
@pytest.mark.parametrize("candidates", [{}, {"candidates": None}, {"candidates": []}], ids=["absent", "null", "empty"])
def test_row_62_a_blocked_prompt_is_a_filtered_choice(feedback: JsonObject, said: str, candidates: JsonObject) -> None:
    wire: JsonObject = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 3}, **candidates}
    choice = Choice(finish_reason="content_filter", raw=feedback)
    assert decoded(wire) == Response((choice,), Usage(3), warnings=(LMWarning("content_filter", said),), raw=wire)


def test_an_invented_id_does_not_repeat_one_of_the_conversation() -> None:
    history = (Message.assistant(tool_calls=[ToolCall("call_0", "f", {})]), Message.tool(ToolResult("call_0", "f", "")))
    wire = answer({"functionCall": {"name": "f"}}, {"functionCall": {"name": "f"}})
    calls = decoded(wire, None, *history).choices[0].tool_calls
    assert [call.id for call in calls] == ["call_1", "call_2"]


def test_row_43_two_candidates_come_in_the_order_of_their_index() -> None:
    first: JsonObject = {"index": 1, "content": model({"text": "b"}), "finishReason": "STOP"}
    second: JsonObject = {"content": model({"text": "a"}), "finishReason": "MAX_TOKENS"}
    response = decoded({"candidates": [first, second]})
    assert [(choice.text, choice.finish_reason) for choice in response.choices] == [("a", "length"), ("b", "stop")]
    assert response.usage == Usage()


def test_row_44_logprobs_have_the_shape_of_all_wires() -> None:
    token: JsonObject = {"token": "Hi", "tokenId": 1, "logProbability": -0.5}
    other: JsonObject = {"token": "Ho", "tokenId": 2, "logProbability": -1.5}
    wire = answer(
        {"text": "Hi"},
        logprobsResult={"chosenCandidates": [token], "topCandidates": [{"candidates": [token, other]}]},
    )
    assert decoded(wire).choices[0].logprobs == {
        "content": [
            {
                "token": "Hi",
                "logprob": -0.5,
                "top_logprobs": [{"token": "Hi", "logprob": -0.5}, {"token": "Ho", "logprob": -1.5}],
            }
        ]
    }


GROUNDING: JsonObject = {
    "groundingChunks": [
        {"web": {"uri": "https://x", "title": "X"}},
        {"retrievedContext": {"title": "a.pdf", "text": "source"}},
        {"maps": {"uri": "https://maps/1", "title": "Place"}},
    ],
    "groundingSupports": [
        {"segment": {"startIndex": 4, "endIndex": 8, "text": "19°"}, "groundingChunkIndices": [0, 1]},
        {"segment": {"text": "elsewhere"}, "groundingChunkIndices": [0, 3]},
    ],
}
PLACED: JsonObject = {"start_index": 3, "end_index": 6, "text": "19°"}


def test_row_58_citations_are_placed_by_characters() -> None:
    wire = answer({"text": "é: 19° today"}, groundingMetadata=GROUNDING)
    assert decoded(wire).choices[0].citations == (
        {"type": "url_citation", "url": "https://x", "title": "X", **PLACED},
        {"type": "file_citation", "title": "a.pdf", **PLACED},
        {"type": "url_citation", "url": "https://x", "title": "X", "text": "elsewhere"},
        {"type": "url_citation", "url": "https://maps/1", "title": "Place"},
    )


ONE: JsonObject = {"start_index": 0, "end_index": 3, "text": "one"}
SEGMENTS: dict[str, tuple[tuple[JsonObject, ...], JsonObject, JsonObject]] = {
    "of a later part": (
        ({"text": "one "}, {"text": "two"}),
        {"partIndex": 1, "endIndex": 3, "text": "two"},
        {"start_index": 4, "end_index": 7, "text": "two"},
    ),
    "of the whole answer after thoughts": (
        ({"text": "hmmm", "thought": True}, {"text": "one two"}),
        {"startIndex": 4, "endIndex": 7, "text": "two"},
        {"start_index": 4, "end_index": 7, "text": "two"},
    ),
    "without its words": (({"text": "one"},), {"endIndex": 3}, ONE),
    "counted wrongly": (
        ({"text": "one two"},),
        {"startIndex": 2, "endIndex": 5, "text": "two"},
        {"start_index": 4, "end_index": 7, "text": "two"},
    ),
    "of words that stand twice": (
        ({"text": "two two"},),
        {"startIndex": 2, "endIndex": 5, "text": "two"},
        {"text": "two"},
    ),
    "of a part that is not there": (({"text": "one"},), {"partIndex": 9, "endIndex": 3, "text": "x"}, {"text": "x"}),
    "of the part after the last": (({"text": "one"},), {"partIndex": 1, "endIndex": 3}, ONE),
    "of nothing": (({"text": "one"},), {}, {}),
}


@pytest.mark.parametrize(("parts", "segment", "place"), SEGMENTS.values(), ids=SEGMENTS)
def test_row_58_a_segment(parts: tuple[JsonObject, ...], segment: JsonObject, place: JsonObject) -> None:
    support: JsonObject = {"segment": segment, "groundingChunkIndices": [0]}
    grounding: JsonObject = {"groundingChunks": [{"web": {"uri": "u"}}], "groundingSupports": [support]}
    citations = decoded(answer(*parts, groundingMetadata=grounding)).choices[0].citations
    assert citations == ({"type": "url_citation", "url": "u", **place},)


def test_row_58_quotations_and_pages_that_were_read_are_citations() -> None:
    wire = answer(
        {"text": "Hi you"},
        citationMetadata={"citations": [{"startIndex": 3, "endIndex": 6, "uri": "https://q", "license": "MIT"}]},
        urlContextMetadata={"urlMetadata": [{"retrievedUrl": "https://p", "urlRetrievalStatus": "OK"}]},
    )
    assert decoded(wire).choices[0].citations == (
        {"type": "url_citation", "url": "https://q", "start_index": 3, "end_index": 6, "text": "you"},
        {"type": "url_citation", "url": "https://p"},
    )


COUNTS: dict[str, tuple[JsonValue, Usage]] = {
    "row 63 all": (USAGE, USED),
    "row 63 only the prompt": ({"promptTokenCount": 3, "totalTokenCount": 3}, Usage(3)),
    "row 63 only thoughts": (
        {"promptTokenCount": 3, "thoughtsTokenCount": 2},
        Usage(3, 2, reasoning_tokens=2),
    ),
    "row 63 nulls are unknown": ({"promptTokenCount": None}, Usage()),
    "row 63 none": (None, Usage()),
}


@pytest.mark.parametrize(("wire", "usage"), COUNTS.values(), ids=COUNTS)
def test_usage(wire: JsonValue, usage: Usage) -> None:
    assert decoded({**answer({"text": "Hi"}), "usageMetadata": wire}).usage == usage


def test_warnings_of_encode_are_on_the_response() -> None:
    to = target(stop=False)
    sent = encoded(Request((ASKED,), options={"stop": "x"}), to)
    assert features(gemini.decode(answer({"text": "Hi"}), sent, to).warnings) == ["stop"]


# --- an answer that is longer than a reply ----------------------------------------------------------------------------


def broken_off(*parts: JsonObject, token: str | None = "AAEC") -> JsonObject:
    body = answer(*parts, reason="CONTINUATION")
    (candidate,) = body["candidates"]  # type: ignore[misc]
    assert isinstance(candidate, dict)
    return {**body, "candidates": [{**candidate, **({"continuationToken": token} if token else {})}]}


def test_row_81_the_same_request_goes_on_with_the_token_of_the_reply() -> None:
    sent = encoded(Request((ASKED,), options={"max_tokens": 5}))
    first, second = broken_off({"text": "Hi "}), broken_off({"text": "you, "}, token="AAED")
    going_on = gemini.continuation(first, sent)
    assert going_on == sent._replace(body={**sent.body, "continuationToken": "AAEC"})
    assert going_on is not None
    later = gemini.continuation([first, second], going_on)
    assert later is not None
    assert later.body == {**sent.body, "continuationToken": "AAED"}
    assert gemini.continuation([first, second, answer({"text": "there"})], later) is None


def test_row_81_the_replies_are_one_answer_whose_tokens_are_added_up() -> None:
    bodies: list[JsonValue] = [broken_off({"text": "Hi "}), answer({"text": "you"}, WIRE_CALL)]
    response = decoded(bodies)
    (choice,) = response.choices
    assert (choice.text, choice.tool_calls, choice.finish_reason) == ("Hi you", (CALL,), "tool_calls")
    assert (response.usage, response.raw, choice.raw) == (USED + USED, bodies, bodies)
    assert response.warnings == ()
    assert decoded(bodies[:1]).warnings == decoded(bodies[0]).warnings != ()


def test_row_81_members_of_a_candidate_are_merged_over_several_replies() -> None:
    def grounded(text: str, uri: str, **rest: Any) -> JsonObject:
        return answer({"text": text}, groundingMetadata={"groundingChunks": [{"web": {"uri": uri}}]}, **rest)

    response = decoded([grounded("a", "https://x", reason="CONTINUATION"), grounded("b", "https://y")])
    assert response.choices[0].text == "ab"
    assert [citation["url"] for citation in response.choices[0].citations] == ["https://x", "https://y"]


@pytest.mark.parametrize(
    "body",
    [
        broken_off({"text": "Hi"}, token=None),
        {"candidates": [{"finishReason": "MAX_TOKENS", "continuationToken": "AAEC"}]},
        {"candidates": [{"finishReason": "CONTINUATION", "continuationToken": "AAEC"}] * 2},
        {"promptFeedback": {"blockReason": "SAFETY"}},
        "hello",
        [],
    ],
    ids=["no token", "another reason", "two candidates", "none", "no body", "nothing"],
)
def test_row_81_complete_answer_has_no_continuation(body: JsonValue) -> None:
    assert gemini.continuation(body, encoded(Request((ASKED,)))) is None


def test_row_81_a_failure_among_several_replies_is_that_failure() -> None:
    with pytest.raises(LMRateLimitError):
        decoded([broken_off({"text": "Hi"}), {"error": {"code": 429, "message": "Slow"}}])
