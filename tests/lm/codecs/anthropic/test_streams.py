"""Anthropic Messages, streamed: whole transcripts, every kind of event, and the same answer as in a whole reply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core import events as ev
from sigwire.core.json import JsonObject, dumps
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import LMRateLimitError, LMServerError, LMTransportError
from sigwire.lm.codecs import anthropic
from sigwire.lm.codecs.anthropic import ANTHROPIC
from sigwire.lm.codecs.shared.interface import Target
from tests.lm.codecs.streaming import ASKED, cuts, damaged, decoded_events, hostile, only_our_errors, sent_to, streamed

TARGET = Target("anthropic", "claude-x", ANTHROPIC)


# --- the wire's events, written here by hand ---------------------------------------------------------------------


def start(**usage: int) -> JsonObject:
    counts: JsonObject = {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 1, **usage}
    message: JsonObject = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": counts,
    }  # fmt: skip
    return {"type": "message_start", "message": message}


def begin(index: int, kind: str, **fields: Any) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: int, kind: str, **fields: Any) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "end_turn", **usage: int) -> list[JsonObject]:
    counts: JsonObject = {"output_tokens": 7, **usage}
    changed: JsonObject = {"stop_reason": reason, "stop_sequence": None}
    return [{"type": "message_delta", "delta": changed, "usage": counts}, {"type": "message_stop"}]


def text(index: int, *pieces: str) -> list[JsonObject]:
    deltas = (delta(index, "text_delta", text=piece) for piece in pieces)
    return [begin(index, "text", text=""), *deltas, stop(index)]


def call(index: int, call_id: str, name: str, *pieces: str) -> list[JsonObject]:
    deltas = (delta(index, "input_json_delta", partial_json=piece) for piece in pieces)
    return [begin(index, "tool_use", id=call_id, name=name, input={}), *deltas, stop(index)]


PING: JsonObject = {"type": "ping"}
THOUGHT = ThinkingPart("hm", signature="SIG", provider="anthropic")
F, G = ToolCall("toolu_a", "f", {"x": 1}), ToolCall("toolu_b", "g", {})
USED = Usage(10, 7, cached_tokens=4)

TRANSCRIPT: list[JsonObject] = [
    start(),
    begin(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="h"),
    delta(0, "thinking_delta", thinking="m"),
    delta(0, "signature_delta", signature="SIG"),
    stop(0),
    PING,
    *text(1, "H", "i"),
    *call(2, "toolu_a", "f", "", '{"x":', "1}"),
    *call(3, "toolu_b", "g"),
    *end("tool_use"),
]


def test_transcript_is_emitted_event_by_event() -> None:
    events = decoded_events(anthropic, TARGET, TRANSCRIPT)
    raw = events[-1].raw if isinstance(events[-1], ev.ResponseEnd) else None
    assert events == [
        ev.ResponseStart("msg_1", "claude-x"),
        ev.UsageUpdate(Usage(10, 1, cached_tokens=4)),
        ev.ReasoningDelta("h"),
        ev.ReasoningDelta("m"),
        ev.PartEnd(THOUGHT),
        ev.TextDelta("H"),
        ev.TextDelta("i"),
        ev.ToolCallStart(0, "toolu_a", "f"),
        ev.ToolCallDelta(0, '{"x":'),
        ev.ToolCallDelta(0, "1}"),
        ev.ToolCallEnd(0, F),
        ev.ToolCallStart(1, "toolu_b", "g"),
        ev.UsageUpdate(USED),
        ev.ToolCallEnd(1, G),
        ev.ChoiceEnd("tool_calls", ordered=True, raw=raw),
        ev.ResponseEnd(raw=raw),
    ]
    assert raw == {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "stop_reason": "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 7},
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "SIG"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "toolu_a", "name": "f", "input": {"x": 1}},
            {"type": "tool_use", "id": "toolu_b", "name": "g", "input": {}},
        ],
    }  # fmt: skip


def test_each_event_is_emitted_before_the_next_is_read() -> None:
    decoder = anthropic.decoder(sent_to(anthropic, TARGET), TARGET)
    said = [decoder.feed(event) for event in TRANSCRIPT]
    assert [len(ours) for ours in said] == [2, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0, 2, 0, 1, 0]


# --- blocks --------------------------------------------------------------------------------------------------

SEARCH: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND: JsonObject = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITED: JsonObject = {"type": "char_location", "cited_text": "c", "document_title": "d"}

BLOCKS: dict[str, tuple[list[JsonObject], tuple[object, ...]]] = {
    "row 66 a call without arguments and without deltas": (call(0, "toolu_b", "g"), (G,)),
    "row 66 a call with an empty delta": (call(0, "toolu_b", "g", ""), (G,)),
    "a call whose arguments are in its start": (
        [begin(0, "tool_use", id="toolu_a", name="f", input={"x": 1}), stop(0)],
        (F,),
    ),
    "a call that nobody numbered": (call(0, "", "g"), (ToolCall("call_0", "g", {}),)),
    "a call whose end is not said": (call(0, "toolu_a", "f", '{"x":1}')[:-1], (F,)),
    "arguments that are no JSON": (
        call(0, "toolu_a", "f", '{"x"'),
        (ToolCall.read("toolu_a", "f", '{"x"'),),
    ),
    "what the provider says beside a call": (
        [begin(0, "tool_use", id="toolu_b", name="g", input={}, caller={"type": "direct"}), stop(0)],
        (ToolCall("toolu_b", "g", {}, provider_data={"anthropic": {"caller": {"type": "direct"}}}),),
    ),
    "redacted thinking comes whole": (
        [begin(0, "redacted_thinking", data="X"), stop(0), *text(1, "a")],
        (ThinkingPart(redacted="X", provider="anthropic"), TextPart("a")),
    ),
    "thinking that is not shown has its signature": (
        [begin(0, "thinking", thinking="", signature=""), delta(0, "signature_delta", signature="S"), stop(0)],
        (ThinkingPart(signature="S", provider="anthropic"),),
    ),
    "neighbouring texts stay two parts": ([*text(0, "a", "b"), *text(1, "c")], (TextPart("ab"), TextPart("c"))),
    "a text in which nothing is said": ([*text(0), *text(1, "c")], (TextPart("c"),)),
    "citations go with their text": (
        [begin(0, "text", text="", citations=[]), delta(0, "text_delta", text="a"),
         delta(0, "citations_delta", citation=CITED), stop(0)],
        (TextPart("a"), OpaquePart("anthropic", {"citations": [CITED]})),
    ),
    "the provider's own tools": (
        [begin(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
         delta(0, "input_json_delta", partial_json='{"query":'), delta(0, "input_json_delta", partial_json='"q"}'),
         stop(0), begin(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[]), stop(1), *text(2, "a")],
        (OpaquePart("anthropic", SEARCH), OpaquePart("anthropic", FOUND), TextPart("a")),
    ),
    "a summary of what was said before": (
        [begin(0, "compaction", content=None), delta(0, "compaction_delta", content="S"), stop(0)],
        (OpaquePart("anthropic", {"type": "compaction", "content": "S"}),),
    ),
    "blocks whose beginning is not said": (
        [delta(0, "thinking_delta", thinking="hm"), delta(0, "signature_delta", signature="SIG"),
         delta(1, "text_delta", text="a"), delta(1, "text_delta", text="b")],
        (THOUGHT, TextPart("ab")),
    ),
    "row 71 pings, unknown events and unknown deltas are passed over": (
        [PING, {"type": "later"}, *text(0, "a")[:2], PING, delta(0, "later_delta", x=1), delta(0, "text_delta", text="b")],
        (TextPart("ab"),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str) -> None:
    events, parts = BLOCKS[name]
    response = streamed(anthropic, TARGET, [start(), *events, *end()])
    (choice,) = response.choices
    assert choice.message().parts == parts
    assert response == anthropic.decode(response.raw, sent_to(anthropic, TARGET), TARGET)


def test_the_names_of_tools_are_the_callers_own() -> None:
    tool = Tool.from_schema("a.b", "d", {"type": "object", "properties": {}})
    request = Request(ASKED.messages, tools=(tool.spec,))
    events = decoded_events(anthropic, TARGET, [start(), *call(0, "toolu_b", "a_b"), *end("tool_use")], request)
    assert ev.ToolCallStart(0, "toolu_b", "a.b") in events
    assert ev.collect(events).choices[0].tool_calls == (ToolCall("toolu_b", "a.b", {}),)


def test_a_call_that_was_cut_off_begins_and_never_ends() -> None:
    events = decoded_events(
        anthropic, TARGET, [start(), *text(0, "a"), *call(1, "toolu_a", "f", '{"x":1}'), *end("max_tokens")]
    )
    assert ev.ToolCallStart(0, "toolu_a", "f") in events
    assert not [event for event in events if isinstance(event, ev.ToolCallEnd)]
    response = ev.collect(events)
    assert response.choices[0].finish_reason == "length"
    assert response.choices[0].tool_calls == ()
    assert [warning.feature for warning in response.warnings] == ["tool_calls"]


def test_a_whole_call_before_a_cut_one_is_kept() -> None:
    cut = [start(), *call(0, "toolu_b", "g"), *call(1, "toolu_a", "f", '{"x"'), *end("max_tokens")]
    assert streamed(anthropic, TARGET, cut).choices[0].tool_calls == (G,)


def test_a_refusal_without_content() -> None:
    refused: JsonObject = {"stop_reason": "refusal", "stop_details": {"type": "refusal", "explanation": "No."}}
    (choice,) = streamed(anthropic, TARGET, [start(), {"type": "message_delta", "delta": refused}]).choices
    assert (choice.finish_reason, choice.refusal, choice.text) == ("content_filter", "No.", "")


# --- counts ------------------------------------------------------------------------------------------------------


def test_counts_are_those_of_the_whole_message_and_replace_each_other() -> None:
    first: JsonObject = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3, "input_tokens": None}}
    events = decoded_events(anthropic, TARGET, [start(), *text(0, "a"), first, *end(input_tokens=8)])
    assert [event.usage for event in events if isinstance(event, ev.UsageUpdate)] == [
        Usage(10, 1, cached_tokens=4),
        Usage(10, 3, cached_tokens=4),
        Usage(12, 7, cached_tokens=4),
    ]


def test_without_counts_nothing_is_known() -> None:
    message: JsonObject = {"type": "message_start", "message": {"id": "msg_1"}}
    over: JsonObject = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    assert streamed(anthropic, TARGET, [message, *text(0, "a"), over]).usage == Usage()


# --- the end, and what is none ---------------------------------------------------------------------------------------

OVERLOADED: JsonObject = {
    "type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1",
}  # fmt: skip


def test_row_70_error_in_the_stream_is_classified_by_type_and_keeps_the_partial_response() -> None:
    with pytest.raises(LMServerError, match="Overloaded") as caught:
        decoded_events(anthropic, TARGET, [*TRANSCRIPT[:10], OVERLOADED])
    error = caught.value
    assert (error.retryable, error.status, error.request_id) == (True, 529, "req_1")
    (choice,) = error.partial.choices
    assert choice.parts == (THOUGHT, TextPart("Hi"))
    assert choice.finish_reason == "error"
    assert error.partial.usage == Usage(10, 1, cached_tokens=4)


ERRORS: list[tuple[JsonObject, type[Exception]]] = [
    ({"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}, LMRateLimitError),
    ({"error": {"type": "api_error", "message": "Oh"}}, LMServerError),
    ({"type": "error", "message": "Oh"}, LMServerError),
]


@pytest.mark.parametrize(("event", "error"), ERRORS)
def test_errors_of_any_shape_and_at_any_time(event: JsonObject, error: type[Exception]) -> None:
    for before in ([], TRANSCRIPT[:1], TRANSCRIPT[:-1]):
        with pytest.raises(error):
            decoded_events(anthropic, TARGET, [*before, event])


@pytest.mark.parametrize("count", range(len(TRANSCRIPT) - 2))
def test_row_68_a_stream_that_stops_before_its_stop_reason_was_cut_off(count: int) -> None:
    with pytest.raises(LMTransportError, match="stopped before the end") as caught:
        decoded_events(anthropic, TARGET, TRANSCRIPT[:count])
    assert caught.value.retryable


@pytest.mark.parametrize("last", [[], end(None), [{"type": "message_stop"}]], ids=["[DONE]", "null", "message_stop"])
def test_end_marker_completes_a_stream_without_stop_reason(last: list[JsonObject]) -> None:
    response = ev.collect(decoded_events(anthropic, TARGET, [*TRANSCRIPT[:-2], *last], end_mark=not last))
    (choice,) = response.choices
    assert (choice.text, choice.tool_calls, choice.finish_reason) == ("Hi", (F, G), "tool_calls")
    assert [warning.feature for warning in response.warnings] == ["finish_reason"]


def test_end_marker_does_not_complete_a_stream_without_content() -> None:
    with pytest.raises(LMTransportError, match="stopped before the end"):
        decoded_events(anthropic, TARGET, [start(), {"type": "message_stop"}], end_mark=True)


def test_row_67_the_end_marker_may_be_missing() -> None:
    assert streamed(anthropic, TARGET, TRANSCRIPT[:-1]) == streamed(anthropic, TARGET, TRANSCRIPT)


def test_row_69_whole_reply_in_place_of_a_stream_is_decoded() -> None:
    body: JsonObject = {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
    assert streamed(anthropic, TARGET, [body]) == anthropic.decode(body, sent_to(anthropic, TARGET), TARGET)


def test_the_events_in_one_array_are_the_same_answer() -> None:
    assert streamed(anthropic, TARGET, [[*TRANSCRIPT]]) == streamed(anthropic, TARGET, TRANSCRIPT)


def test_text_in_place_of_events_is_an_error_with_that_text() -> None:
    with pytest.raises(LMServerError, match="Bad gateway"):
        decoded_events(anthropic, TARGET, ["<html><title>Bad gateway</title></html>"])


# --- a paused turn --------------------------------------------------------------------------------------------------


def test_row_81_a_decoder_goes_on_with_a_paused_turn() -> None:
    sent = sent_to(anthropic, TARGET)
    decoder = anthropic.decoder(sent, TARGET)
    first = [start(), *text(0, "a"), *end("pause_turn")]
    second = [start(), *text(0, "b"), *call(1, "toolu_b", "g"), *end("tool_use")]
    told_first = [ours for event in first for ours in decoder.feed(event)] + decoder.close()
    paused = told_first[-1]
    assert isinstance(paused, ev.ResponseEnd)
    assert [warning.feature for warning in paused.warnings] == ["finish_reason"]
    going_on = anthropic.continuation(paused.raw, sent)
    assert going_on is not None
    assert going_on.body["messages"] == [{"role": "user", "content": "q"}, {"role": "assistant", "content": WIRE_A}]
    assert going_on.body["stream"] is True
    told_second = [ours for event in second for ours in decoder.feed(event)] + decoder.close()
    response = ev.collect([*told_first, *told_second])
    assert isinstance(response.raw, list)
    assert response == anthropic.decode(response.raw, sent, TARGET)
    assert response.usage == Usage(20, 14, cached_tokens=8)
    assert (response.choices[0].text, response.choices[0].tool_calls) == ("ab", (G,))
    assert anthropic.continuation(response.raw, sent) is None


WIRE_A = [{"type": "text", "text": "a"}]


# --- properties -----------------------------------------------------------------------------------------------------

words = st.text(max_size=12)
some = st.text(min_size=1, max_size=12)
objects = st.dictionaries(some, st.integers() | words | st.none(), max_size=3)
fields_of = st.fixed_dictionaries
blocks = (
    fields_of({"type": st.just("text"), "text": some})
    | fields_of({"type": st.just("text"), "text": some, "citations": st.lists(st.just(CITED), min_size=1, max_size=2)})
    | fields_of({"type": st.just("thinking"), "thinking": words, "signature": some})
    | fields_of({"type": st.just("redacted_thinking"), "data": some})
    | fields_of(
        {"type": st.just("tool_use"), "id": some.map("toolu_{}".format), "name": st.just("f"), "input": objects}
    )
    | fields_of({"type": st.just("server_tool_use"), "id": some, "name": st.just("web_search"), "input": objects})
    | fields_of({"type": st.just("web_search_tool_result"), "tool_use_id": some, "content": st.just([])})
)
bodies = fields_of(
    {
        "id": some, "type": st.just("message"), "role": st.just("assistant"), "model": some,
        "content": st.lists(blocks, max_size=5),
        "stop_reason": st.sampled_from([*anthropic.FINISH_REASONS, "later"]), "stop_sequence": st.none() | some,
        "usage": st.dictionaries(st.sampled_from(["input_tokens", "output_tokens"]), st.integers(0, 99)),
    }
)  # fmt: skip

DELTAS = {"text": ("text", "text_delta"), "thinking": ("thinking", "thinking_delta")}


@st.composite
def in_events(draw: st.DrawFn, body: dict[str, Any]) -> list[JsonObject]:
    """The body as this provider would stream it: by a writer that knows nothing of the decoder."""
    events: list[JsonObject] = [
        {"type": "message_start", "message": {**body, "content": [], "stop_reason": None, "stop_sequence": None}}
    ]
    for index, block in enumerate(body["content"]):
        events += draw(block_in_events(index, block))
    changed = {name: body[name] for name in ("stop_reason", "stop_sequence")}
    return [*events, {"type": "message_delta", "delta": changed, "usage": body["usage"]}, {"type": "message_stop"}]


@st.composite
def block_in_events(draw: st.DrawFn, index: int, block: dict[str, Any]) -> list[JsonObject]:
    began, deltas = dict(block), list[JsonObject]()
    if block["type"] in DELTAS:
        name, kind = DELTAS[block["type"]]
        began[name] = ""
        deltas = [delta(index, kind, **{name: piece}) for piece in draw(cuts(block[name]))]
    if "signature" in block:
        began["signature"] = ""
        deltas.append(delta(index, "signature_delta", signature=block["signature"]))
    if "input" in block:
        began["input"] = {}
        written = dumps(block["input"]) if block["input"] or draw(st.booleans()) else ""
        deltas = [delta(index, "input_json_delta", partial_json=piece) for piece in draw(cuts(written))]
    if "citations" in block:
        began["citations"] = []
        deltas += [delta(index, "citations_delta", citation=citation) for citation in block["citations"]]
    pings = [PING] if draw(st.booleans()) else []
    return [{"type": "content_block_start", "index": index, "content_block": began}, *deltas, *pings, stop(index)]


@given(st.data(), bodies)
def test_streamed_answer_equals_the_whole_reply(data: st.DataObject, body: dict[str, Any]) -> None:
    events = data.draw(in_events(body))
    assert streamed(anthropic, TARGET, events) == anthropic.decode(body, sent_to(anthropic, TARGET), TARGET)


@given(st.data(), bodies)
def test_streamed_answer_is_sent_back_unchanged(data: st.DataObject, body: dict[str, Any]) -> None:
    history = (Message.user("q"), streamed(anthropic, TARGET, data.draw(in_events(body))).choices[0].message())
    whole = anthropic.decode(body, sent_to(anthropic, TARGET), TARGET).choices[0].message()
    assert anthropic.encode(Request(history), TARGET) == anthropic.encode(Request((history[0], whole)), TARGET)


WORDS = (
    "type", "index", "message", "message_start", "message_delta", "message_stop", "content_block_start", "delta", "usage",
    "content_block_delta", "content_block_stop", "content_block", "content", "text", "text_delta", "thinking", "tool_use",
    "thinking_delta", "signature", "signature_delta", "input_json_delta", "partial_json", "id", "name", "input", "citations",
    "citations_delta", "citation", "stop_reason", "end_turn", "max_tokens", "error", "input_tokens", "compaction_delta",
)  # fmt: skip


@given(hostile(WORDS))
def test_hostile_events_raise_documented_errors_only(events: list[Any]) -> None:
    only_our_errors(anthropic, TARGET, events)


shuffled = st.lists(st.sampled_from([*TRANSCRIPT, *BLOCKS["citations go with their text"][0], OVERLOADED]), max_size=12)


@given(shuffled)
def test_shuffled_events_raise_documented_errors_only(events: list[JsonObject]) -> None:
    only_our_errors(anthropic, TARGET, events)


@given(
    damaged(
        [
            *TRANSCRIPT[:-2],
            *BLOCKS["citations go with their text"][0],
            *BLOCKS["the provider's own tools"][0],
            *TRANSCRIPT[-2:],
        ]
    )
)
def test_damaged_stream_raises_documented_errors_only(events: list[Any]) -> None:
    only_our_errors(anthropic, TARGET, events)
