"""Gemini's generateContent, streamed: whole transcripts, every kind of part, and the same answer as in a whole reply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core import events as ev
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import LMError, LMRateLimitError, LMServerError, LMTransportError
from sigwire.lm.codecs import gemini
from sigwire.lm.codecs.gemini import GEMINI, VERTEX
from sigwire.lm.codecs.gemini.partial_calls import FragmentedCall
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.streaming import ASKED, cuts, damaged, decoded_events, hostile, only_our_errors, sent_to, streamed

TARGET = Target("gemini", "gemini-x", GEMINI)


# --- the wire's events, written here by hand ---------------------------------------------------------------------


def said(*parts: JsonObject, index: int | None = 0, **fields: Any) -> JsonObject:
    """One candidate's next parts."""
    numbered: JsonObject = {} if index is None else {"index": index}
    content: JsonObject = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    return {"candidates": [{**numbered, **content, **fields}]}


def text(text: str, **fields: Any) -> JsonObject:
    return {"text": text, **fields}


def thought(piece: str, **fields: Any) -> JsonObject:
    return {"text": piece, "thought": True, **fields}


def calling(name: str, call_id: str | None = None, signature: str | None = None, **fields: Any) -> JsonObject:
    function: JsonObject = {**({"id": call_id} if call_id else {}), "name": name, **fields}
    return {"functionCall": function, **({"thoughtSignature": signature} if signature else {})}


def counted(event: JsonObject, **counts: int) -> JsonObject:
    return {**event, "usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 4, **counts}}


STOP = said(text(""), finishReason="STOP")
THOUGHT = ThinkingPart("hm", provider="gemini")
F = ToolCall("c1", "f", {"x": 1}, provider_data={"gemini": {"thoughtSignature": "AAEC"}})
G = ToolCall("c2", "g", {})

TRANSCRIPT: list[JsonObject] = [
    {**counted(said(thought("h")), thoughtsTokenCount=2), "modelVersion": "m", "responseId": "r"},
    said(thought("m")),
    counted(said(text("H")), candidatesTokenCount=1, thoughtsTokenCount=2),
    said(text("i"), index=None),
    said(calling("f", "c1", "AAEC", args={"x": 1}), calling("g", "c2")),
    counted(STOP, candidatesTokenCount=5, thoughtsTokenCount=2, totalTokenCount=17),
]


def test_transcript_is_emitted_event_by_event() -> None:
    events = decoded_events(gemini, TARGET, TRANSCRIPT)
    raw: Any = events[-1].raw if isinstance(events[-1], ev.ResponseEnd) else None
    assert events == [
        ev.ResponseStart("r", "m"),
        ev.ReasoningDelta("h"),
        ev.UsageUpdate(Usage(10, 2, cached_tokens=4, reasoning_tokens=2)),
        ev.ReasoningDelta("m"),
        ev.PartEnd(THOUGHT),
        ev.TextDelta("H"),
        ev.UsageUpdate(Usage(10, 3, cached_tokens=4, reasoning_tokens=2)),
        ev.TextDelta("i"),
        ev.ToolCallStart(0, "c1", "f"),
        ev.ToolCallDelta(0, '{"x":1}'),
        ev.ToolCallEnd(0, F),
        ev.ToolCallStart(1, "c2", "g"),
        ev.ToolCallDelta(1, "{}"),
        ev.UsageUpdate(Usage(10, 7, cached_tokens=4, reasoning_tokens=2)),
        ev.ToolCallEnd(1, G),
        ev.ChoiceEnd("tool_calls", ordered=True, raw=raw["candidates"][0]),
        ev.ResponseEnd(raw=raw),
    ]
    assert raw == {
        "modelVersion": "m", "responseId": "r",
        "candidates": [{
            "index": 0, "finishReason": "STOP",
            "content": {"role": "model", "parts": [
                thought("hm"), text("Hi"), calling("f", "c1", "AAEC", args={"x": 1}), calling("g", "c2"),
            ]},
        }],
        "usageMetadata": {
            "promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5, "thoughtsTokenCount": 2,
            "totalTokenCount": 17,
        },
    }  # fmt: skip


# --- parts ---------------------------------------------------------------------------------------------------------


def sealed(signature: str) -> ThinkingPart:
    return ThinkingPart(signature=signature, redacted="", provider="gemini")


CODE: JsonObject = {"executableCode": {"language": "PYTHON", "code": "1"}}
TWICE = said(calling("f", "c1", args={"x": 1}))

PARTS: dict[str, tuple[list[JsonObject], tuple[object, ...]]] = {
    "row 66 a call without arguments and without an id": ([said(calling("g"))], (ToolCall("call_0", "g", {}),)),
    "two equal calls without ids are two": (
        [said(calling("g")), said(calling("g"))],
        (ToolCall("call_0", "g", {}), ToolCall("call_1", "g", {})),
    ),
    "a call that is sent again is one call": ([TWICE, TWICE], (ToolCall("c1", "f", {"x": 1}),)),
    "a signature of its own ends the text": (
        [said(text("a")), said(text("", thoughtSignature="S"))],
        (TextPart("a"), ThinkingPart(redacted="S", provider="gemini")),
    ),
    "a signed text is a part of its own, and so is what follows": (
        [said(text("a")), said(text("b", thoughtSignature="S")), said(text("c")), said(text("d"))],
        (TextPart("a"), TextPart("b"), sealed("S"), TextPart("cd")),
    ),
    "a signed thought": (
        [said(thought("h")), said(thought("m", thoughtSignature="S"))],
        (ThinkingPart("h", provider="gemini"), ThinkingPart("m", signature="S", provider="gemini")),
    ),
    "code that ran between two texts": (
        [said(text("a")), said(CODE), said(text("b"))],
        (TextPart("a"), OpaquePart("gemini", CODE), TextPart("b")),
    ),
    "a picture": (
        [said(text("a"), {"inlineData": {"mimeType": "image/png", "data": "iVBO"}})],
        (TextPart("a"), ImagePart(data="iVBO", media_type="image/png")),
    ),
    "empty texts and events in which nothing is said": (
        [said(text("")), {}, said(), said(text("a"))],
        (TextPart("a"),),
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str) -> None:
    events, parts = PARTS[name]
    response = streamed(gemini, TARGET, [*events, STOP])
    (choice,) = response.choices
    assert choice.message().parts == parts
    assert response == gemini.decode(response.raw, sent_to(gemini, TARGET), TARGET)


def test_the_names_of_tools_are_the_callers_own_and_ids_are_new_in_the_conversation() -> None:
    tool = Tool.from_schema("look up", "d", {"type": "object", "properties": {}})
    before = (Message.assistant(tool_calls=[ToolCall("call_0", "look up", {})]), Message.user("r"))
    request = Request((*ASKED.messages, *before), tools=(tool.spec,))
    events = decoded_events(gemini, TARGET, [said(calling("look_up")), STOP], request)
    assert ev.ToolCallStart(0, "call_1", "look up") in events
    assert ev.collect(events).choices[0].tool_calls == (ToolCall("call_1", "look up", {}),)


def test_several_candidates_come_side_by_side() -> None:
    events = [
        said(text("a")),
        said(text("b"), index=1),
        said(text("c")),
        STOP,
        said(index=1, finishReason="MAX_TOKENS"),
    ]
    response = streamed(gemini, TARGET, events)
    assert [(choice.text, choice.finish_reason) for choice in response.choices] == [("ac", "stop"), ("b", "length")]
    assert [event.choice for event in decoded_events(gemini, TARGET, events) if isinstance(event, ev.TextDelta)] == [
        0,
        1,
        0,
    ]


SOURCE: JsonObject = {"web": {"uri": "https://a.example", "title": "A"}}
CHOSEN: list[JsonObject] = [{"token": token, "logProbability": -0.1} for token in "ab"]
PAGE: JsonObject = {"retrievedUrl": "https://b.example"}
SUPPORT: JsonObject = {"segment": {"endIndex": 2, "text": "ab"}, "groundingChunkIndices": [0]}
CITING: list[JsonObject] = [
    said(text("a"), groundingMetadata={}, urlContextMetadata={"urlMetadata": [PAGE]},
         logprobsResult={"chosenCandidates": CHOSEN[:1]}),
    said(text("b"), groundingMetadata={"groundingChunks": [SOURCE]}, logprobsResult={"chosenCandidates": CHOSEN[1:]}),
    said(groundingMetadata={"groundingChunks": [SOURCE], "groundingSupports": [SUPPORT]}, finishReason="STOP"),
]  # fmt: skip


def test_citations_and_log_probabilities_are_gathered() -> None:
    (choice,) = streamed(gemini, TARGET, CITING).choices
    assert choice.citations == (
        {
            "type": "url_citation",
            "url": "https://a.example",
            "title": "A",
            "start_index": 0,
            "end_index": 2,
            "text": "ab",
        },
        {"type": "url_citation", "url": "https://b.example"},
    )
    assert choice.logprobs == {
        "content": [{"token": token, "logprob": -0.1, "top_logprobs": []} for token in "ab"],
    }


# --- calls in fragments ----------------------------------------------------------------------------------------------


def fragment(*pieces: JsonObject, goes_on: bool = True, **fields: Any) -> JsonObject:
    partial: JsonObject = {"partialArgs": list(pieces)} if pieces else {}
    return said({"functionCall": {**fields, **partial, **({"willContinue": True} if goes_on else {})}})


def piece(path: str, goes_on: bool = False, **value: Any) -> JsonObject:
    return {"jsonPath": path, **value, **({"willContinue": True} if goes_on else {})}


FRAGMENTS: list[JsonObject] = [
    fragment(name="f", id="c1"),
    fragment(piece("$.q", True, stringValue="cats ")),
    fragment(piece("$.q", True, stringValue="and ")),
    fragment(piece("$.q", stringValue="dogs"), piece("$.at[1].x", numberValue=2)),
    fragment(piece("$['odd name']", boolValue=True), piece("$.none", nullValue="NULL_VALUE")),
    fragment(goes_on=False),
]
ARGUMENTS: JsonObject = {"q": "cats and dogs", "at": [None, {"x": 2}], "odd name": True, "none": None}


def test_a_call_in_fragments_is_one_call() -> None:
    target = Target("vertex", "gemini-x", VERTEX)
    events = decoded_events(gemini, target, [*FRAGMENTS, said(calling("g", "c2")), STOP])
    assert [event for event in events if isinstance(event, ev.ToolCallStart)] == [
        ev.ToolCallStart(0, "c1", "f"), ev.ToolCallStart(1, "c2", "g"),
    ]  # fmt: skip
    assert ev.collect(events).choices[0].tool_calls == (ToolCall("c1", "f", ARGUMENTS), G)


def test_a_call_in_fragments_that_another_call_cuts_off_is_as_long_as_it_came() -> None:
    events = [*FRAGMENTS[:2], said(calling("g", "c2")), STOP]
    assert streamed(gemini, TARGET, events).choices[0].tool_calls == (ToolCall("c1", "f", {"q": "cats "}), G)


@pytest.mark.parametrize("path", ["", "q", "$", "$[0]", "$.q[0]", "$.q.r.s", "$.at[99999]", "$..", "$.at[-1]"])
def test_paths_that_lead_nowhere_change_nothing_else(path: str) -> None:
    call = FragmentedCall("c1")
    call.add({"functionCall": {"name": "f", "args": {"q": "a"}, "partialArgs": [piece(path, stringValue="b")]}})
    assert call.arguments["q"] in ("a", "b")


# --- the end, and what is none ----------------------------------------------------------------------------------------


def test_a_blocked_prompt_is_an_answer_that_was_filtered() -> None:
    response = streamed(gemini, TARGET, [{"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "m"}])
    assert [choice.finish_reason for choice in response.choices] == ["content_filter"]
    assert response == gemini.decode(response.raw, sent_to(gemini, TARGET), TARGET)


def test_an_answer_that_is_filtered_on_its_way_keeps_its_text() -> None:
    (choice,) = streamed(gemini, TARGET, [said(text("a")), said(finishReason="SAFETY")]).choices
    assert (choice.text, choice.finish_reason) == ("a", "content_filter")


FAULTS: list[tuple[int, str, type[LMError]]] = [
    (503, "UNAVAILABLE", LMServerError),
    (429, "RESOURCE_EXHAUSTED", LMRateLimitError),
]


@pytest.mark.parametrize(("code", "status", "error"), FAULTS)
def test_row_70_error_in_the_stream_is_classified_and_keeps_the_partial_response(
    code: int, status: str, error: type[LMError]
) -> None:
    fault: JsonObject = {"error": {"code": code, "message": "No.", "status": status}}
    with pytest.raises(error) as caught:
        decoded_events(gemini, TARGET, [*TRANSCRIPT[:4], fault])
    assert (caught.value.status, caught.value.retryable) == (code, True)
    (choice,) = caught.value.partial.choices
    assert (choice.parts, choice.finish_reason) == ((THOUGHT, TextPart("Hi")), "error")


@pytest.mark.parametrize("count", range(len(TRANSCRIPT)))
def test_row_68_a_stream_that_stops_before_its_finish_reason_was_cut_off(count: int) -> None:
    with pytest.raises(LMTransportError, match="stopped before the end") as caught:
        decoded_events(gemini, TARGET, TRANSCRIPT[:count])
    assert caught.value.retryable


def test_end_mark_completes_a_stream_without_finish_reason() -> None:
    response = ev.collect(decoded_events(gemini, TARGET, TRANSCRIPT[:-1], end_mark=True))
    assert [(choice.text, choice.tool_calls, choice.finish_reason) for choice in response.choices] == [
        ("Hi", (F, G), "tool_calls")
    ]
    assert [warning.feature for warning in response.warnings] == ["finish_reason"]


def test_one_candidate_without_a_finish_reason_is_a_stream_that_was_cut_off() -> None:
    with pytest.raises(LMTransportError):
        decoded_events(gemini, TARGET, [said(text("a")), said(text("b"), index=1), STOP])


def test_row_69_whole_reply_or_array_decodes_to_the_same_answer() -> None:
    whole = said(text("Hi"), finishReason="STOP")
    assert streamed(gemini, TARGET, [whole]) == gemini.decode(whole, sent_to(gemini, TARGET), TARGET)
    assert streamed(gemini, TARGET, [[*TRANSCRIPT]]) == streamed(gemini, TARGET, TRANSCRIPT)


def test_text_in_place_of_events_is_an_error_with_that_text() -> None:
    with pytest.raises(LMServerError, match="Bad gateway"):
        decoded_events(gemini, TARGET, ["<html><title>Bad gateway</title></html>"])


# --- properties -----------------------------------------------------------------------------------------------------

some = st.text(min_size=1, max_size=12)
objects = st.dictionaries(some, st.integers() | some | st.none(), max_size=3)
plain = st.builds(text, some) | st.builds(thought, some)


def signed(part: JsonObject, signature: str) -> JsonObject:
    return {**part, "thoughtSignature": signature}


whole_parts = (
    st.builds(signed, plain | st.just(text("")), some)
    | st.builds(calling, st.just("f"), st.none(), st.none() | some, args=objects)
    | st.just(CODE)
)


@st.composite
def parts_of_an_answer(draw: st.DrawFn) -> list[JsonObject]:
    """Parts of a whole reply. Texts stand side by side only where a signature keeps them apart: else they are one."""
    parts = draw(st.lists(plain | whole_parts, max_size=6))
    return [part for number, part in enumerate(parts) if not number or not joins(parts[number - 1], part)]


def joins(before: JsonObject, part: JsonObject) -> bool:
    return "text" in part and "thoughtSignature" not in part and part.keys() == before.keys()


reasons = st.sampled_from([*gemini.FINISH_REASONS, "OTHER"])


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    candidates: list[JsonObject] = []
    for index in range(draw(st.integers(1, 2))):
        candidate: JsonObject = {"index": index, "finishReason": draw(reasons)}
        if parts := draw(parts_of_an_answer()):
            candidate["content"] = {"role": "model", "parts": list(parts)}
        candidates.append(candidate)
    counts = draw(st.dictionaries(st.sampled_from(["promptTokenCount", "candidatesTokenCount"]), st.integers(0, 9)))
    return {"candidates": candidates, "responseId": "r", **({"usageMetadata": counts} if counts else {})}


@st.composite
def in_events(draw: st.DrawFn, body: dict[str, Any]) -> list[JsonObject]:
    """The body as this provider would stream it: by a writer that knows nothing of the decoder."""
    events: list[JsonObject] = []
    for candidate in body["candidates"]:
        for part in candidate.get("content", {}).get("parts", []):
            is_cut = "text" in part and "thoughtSignature" not in part
            pieces = [{**part, "text": piece} for piece in draw(cuts(part["text"]))] if is_cut else [part]
            events += [said(piece, index=candidate["index"]) for piece in pieces]
        events.append(said(index=candidate["index"], finishReason=candidate["finishReason"]))
    last = {name: value for name, value in body.items() if name != "candidates"}
    return [*events[:-1], {**events[-1], **last}]


@given(st.data(), bodies())
def test_streamed_answer_equals_the_whole_reply(data: st.DataObject, body: dict[str, Any]) -> None:
    events = data.draw(in_events(body))
    assert streamed(gemini, TARGET, events) == gemini.decode(body, sent_to(gemini, TARGET), TARGET)


WORDS = (
    "candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "args", "id", "index",
    "finishReason", "STOP", "MAX_TOKENS", "usageMetadata", "promptTokenCount", "promptFeedback", "blockReason", "error",
    "groundingMetadata", "groundingChunks", "willContinue", "partialArgs", "jsonPath", "$.a", "$.a[0]", "stringValue", "role",
    "inlineData", "mimeType", "data", "logprobsResult", "chosenCandidates", "citationMetadata", "citations",
)  # fmt: skip


@pytest.mark.parametrize("indexes", [[-1], [3], [0, -1], [0, 2]])
def test_stream_without_each_candidate_is_truncated(indexes: list[int]) -> None:
    candidates = [{"index": i, "content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"} for i in indexes]
    with pytest.raises(LMTransportError, match="stopped before the end"):
        streamed(gemini, TARGET, [{"candidates": candidates}])


@given(hostile(WORDS))
def test_hostile_events_raise_documented_errors_only(events: list[Any]) -> None:
    only_our_errors(gemini, TARGET, events)


@given(st.lists(st.sampled_from([*TRANSCRIPT, *FRAGMENTS, {"error": {"code": 500}}]), max_size=12))
def test_shuffled_events_raise_documented_errors_only(events: list[JsonObject]) -> None:
    only_our_errors(gemini, TARGET, events)


@given(damaged([*TRANSCRIPT[:-1], *FRAGMENTS, *CITING, TRANSCRIPT[-1]]))
def test_damaged_stream_raises_documented_errors_only(events: list[Any]) -> None:
    only_our_errors(gemini, TARGET, events)
