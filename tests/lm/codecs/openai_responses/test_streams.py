"""Responses, streamed: a transcript, every kind of event, and equality with replies that are not streamed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core import events as ev
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import LMContentFilteredError, LMRateLimitError, LMServerError, LMTransportError, LMUnexpectedError
from sigwire.lm.codecs import openai_responses
from sigwire.lm.codecs.openai_responses import OPENAI, ResponsesProfile
from sigwire.lm.codecs.openai_responses.stops import StopCutter, stop_at
from sigwire.lm.codecs.shared.interface import StreamingCodec, Target
from tests.lm.codecs.streaming import ASKED, cuts, decoded_events, hostile, only_our_errors, sent_to, streamed

CODEC: StreamingCodec[ResponsesProfile] = openai_responses
TARGET = Target("openai", "m", OPENAI)
FAMILY = OPENAI.family


# --- events of the wire


def event(kind: str, index: int | None = None, **fields: Any) -> JsonObject:
    return {"type": f"response.{kind}", **({} if index is None else {"output_index": index}), **fields}


def added(index: int, **item: Any) -> JsonObject:
    return event("output_item.added", index, item=item)


def done(index: int, item: JsonValue) -> JsonObject:
    return event("output_item.done", index, item=item)


def write(index: int, *deltas: str, place: int = 0) -> list[JsonObject]:
    return [event("output_text.delta", index, content_index=place, delta=delta, logprobs=[]) for delta in deltas]


def args(index: int, *deltas: str) -> list[JsonObject]:
    return [event("function_call_arguments.delta", index, delta=delta) for delta in deltas]


def message(*texts: str, **fields: Any) -> JsonObject:
    content: list[JsonValue] = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content, **fields}


def function_call(name: str, call_id: str, arguments: str, **fields: Any) -> JsonObject:
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        **fields,
    }


def answer(*items: JsonObject, **fields: Any) -> JsonObject:
    counts: JsonObject = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    return {"id": "r", "model": "m", "status": "completed", "output": list(items), "usage": counts, **fields}


def completed(*items: JsonObject, **fields: Any) -> JsonObject:
    return event("completed", response=answer(*items, **fields))


CREATED = event("created", response={"id": "r", "model": "m", "status": "in_progress", "output": []})
USED = Usage(10, 7, cached_tokens=4, reasoning_tokens=2)
REASONING: JsonObject = {
    "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "ENC",
}  # fmt: skip
CALL_F = function_call("f", "call_a", '{"x":1}', status="completed")
CALL_G = function_call("g", "call_b", "{}", status="completed")
ITEMS: list[JsonObject] = [REASONING, message("Hi"), CALL_F, CALL_G]

TRANSCRIPT: list[JsonObject] = [
    CREATED,
    event("in_progress", response={"id": "r", "model": "m", "status": "in_progress"}),
    added(0, type="reasoning", id="rs_1", summary=[], encrypted_content="not yet"),
    event("reasoning_summary_part.added", 0, summary_index=0),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="h"),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="m"),
    done(0, REASONING),
    added(1, type="message", id="msg_1", role="assistant", status="in_progress", content=[]),
    event("content_part.added", 1, content_index=0),
    *write(1, "H", "i"),
    event("output_text.done", 1, content_index=0, text="Hi"),
    done(1, message("Hi")),
    added(2, **function_call("f", "call_a", "")),
    *args(2, '{"x"', ":1}"),
    event("function_call_arguments.done", 2, arguments='{"x":1}'),
    done(2, CALL_F),
    done(3, CALL_G),
    completed(*ITEMS),
]


def item_data(call: str, after: str | None = "rs_1") -> JsonObject:
    data: JsonObject = {"item": {"id": f"fc_{call}", "status": "completed"}}
    return {FAMILY: {**data, **({} if after is None else {"after": after})}}


F = ToolCall.read("call_a", "f", '{"x":1}', provider_data=item_data("f"))
G = ToolCall.read("call_b", "g", "{}", provider_data=item_data("g"))
THOUGHT = ThinkingPart("hm", provider=FAMILY)


def test_decoder_yields_the_events_of_a_transcript_with_usage_at_the_end_row_72() -> None:
    events = decoded_events(CODEC, TARGET, TRANSCRIPT)
    raw = answer(*ITEMS)
    content: JsonValue = [{"type": "output_text", "annotations": []}]
    bare: JsonObject = {**message(), "content": content}
    assert events == [
        ev.ResponseStart("r", "m"),
        ev.ReasoningDelta("h"),
        ev.ReasoningDelta("m"),
        ev.PartEnd(THOUGHT),
        ev.TextDelta("H"),
        ev.TextDelta("i"),
        ev.ToolCallStart(0, "call_a", "f"),
        ev.ToolCallDelta(0, '{"x"'),
        ev.ToolCallDelta(0, ":1}"),
        ev.ToolCallEnd(0, F),
        ev.ToolCallStart(1, "call_b", "g"),
        ev.ToolCallDelta(1, "{}"),
        ev.ToolCallEnd(1, G),
        ev.ChoiceEnd(
            "tool_calls",
            ordered=True,
            raw=raw["output"],
            parts=(THOUGHT, OpaquePart(FAMILY, REASONING), OpaquePart(FAMILY, bare), TextPart("Hi"), F, G),
        ),
        ev.UsageUpdate(USED),
        ev.ResponseEnd(raw=raw),
    ]


def test_decoder_returns_the_events_of_each_wire_event_at_once() -> None:
    decoder = CODEC.decoder(sent_to(CODEC, TARGET), TARGET)
    counts = [len(decoder.feed(one)) for one in TRANSCRIPT]
    assert counts == [1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 3, 0]


def test_row_64_encode_asks_for_a_stream() -> None:
    body: JsonObject = {"model": "m", "input": [{"role": "user", "content": "q"}], "store": False, "stream": True}
    assert sent_to(CODEC, TARGET).body == body


# --- items

PLAIN_F = replace(F, provider_data=item_data("f", None))
UNNAMED: JsonObject = {"type": "function_call", "name": "f", "arguments": "{}"}


def parts_of(events: list[JsonObject]) -> tuple[object, ...]:
    """Return the parts of the streamed choice, without opaque items."""
    response = streamed(CODEC, TARGET, [CREATED, *events])
    assert response == openai_responses.decode(response.raw, sent_to(CODEC, TARGET), TARGET)
    return tuple(part for part in response.choices[0].parts if not isinstance(part, OpaquePart))


DELTAS: dict[str, tuple[list[JsonObject], tuple[object, ...]]] = {
    "several texts in a message": (
        [*write(0, "a"), *write(0, "b", place=1), done(0, message("a", "b")), completed(message("a", "b"))],
        (TextPart("a"), TextPart("b")),
    ),
    "row 65 the item's end counts, not its deltas": (
        [added(0, **function_call("f", "call_a", "")), *args(0, '{"y'), done(0, CALL_F), completed(CALL_F)],
        (PLAIN_F,),
    ),
    "row 66 no arguments": (
        [added(0, **function_call("g", "call_b", "")), done(0, function_call("g", "call_b", "")),
         completed(function_call("g", "call_b", ""))],
        (ToolCall.read("call_b", "g", "", provider_data={FAMILY: {"item": {"id": "fc_g"}}}),),
    ),
    "calls interleave by index": (
        [added(0, **function_call("f", "call_a", "")), added(1, **function_call("g", "call_b", "")), *args(0, '{"x"'),
         *args(1, "{}"), *args(0, ":1}"), done(1, CALL_G), done(0, CALL_F), completed(CALL_F, CALL_G)],
        (PLAIN_F, replace(G, provider_data=item_data("g", None))),
    ),
    "a call without an id": (
        [added(0, **UNNAMED), done(0, UNNAMED), completed(UNNAMED)], (ToolCall.read("call_0", "f", "{}"),),
    ),
    "a custom tool": (
        [added(0, type="custom_tool_call", call_id="c", name="f", input=""),
         event("custom_tool_call_input.delta", 0, delta="x"),
         done(0, {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}),
         completed({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"})],
        (ToolCall("c", "f", {"input": "x"}, provider_data={FAMILY: {"item": {"type": "custom_tool_call"}}}),),
    ),
    "reasoning that is shown": (
        [added(0, type="reasoning"), event("reasoning_text.delta", 0, delta="hm"),
         done(0, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}),
         completed({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]})],
        (THOUGHT,),
    ),
    "the last event alone": ([completed(*ITEMS)], (THOUGHT, TextPart("Hi"), F, G)),
    "row 67 items that the last event leaves out": ([*TRANSCRIPT[1:-1], completed()], (THOUGHT, TextPart("Hi"), F, G)),
    "items that are never announced nor ended": ([*write(0, "H", "i"), completed()], (TextPart("Hi"),)),
    "items without an index": (
        [event("output_text.delta", item_id="msg_1", delta="H"), event("output_text.delta", item_id="msg_1", delta="i"),
         completed()],
        (TextPart("Hi"),),
    ),
    "row 71 unknown events and built-in tools": (
        [event("web_search_call.searching", 0), {"type": "keepalive"}, event("later", 0, delta="x"), {}, *write(1, "Hi"),
         completed(message("Hi"))],
        (TextPart("Hi"),),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "parts"), DELTAS.values(), ids=DELTAS)
def test_stream_has_the_texts_and_parts_of_its_deltas(events: list[JsonObject], parts: tuple[object, ...]) -> None:
    assert parts_of(events) == parts


def test_summary_parts_are_separated_and_one_source_is_emitted() -> None:
    summary: list[JsonValue] = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    item: JsonObject = {"type": "reasoning", "id": "rs", "summary": summary, "content": []}
    events = decoded_events(
        CODEC,
        TARGET,
        [
            event("reasoning_summary_part.added", 0, summary_index=0),
            event("reasoning_summary_text.delta", 0, delta="a"),
            event("reasoning_text.delta", 0, delta="really"),
            event("reasoning_summary_part.added", 0, summary_index=1),
            event("reasoning_summary_text.delta", 0, delta="b"),
            done(0, item),
            completed(item),
        ],
    )
    assert "".join(one.text for one in events if isinstance(one, ev.ReasoningDelta)) == "a\n\nb"
    assert ev.collect(events).choices[0].reasoning == "a\n\nb"


def test_row_57_refusal_is_no_text() -> None:
    refusal: JsonValue = [{"type": "refusal", "refusal": "I cannot."}]
    events = decoded_events(
        CODEC, TARGET, [event("refusal.delta", 0, delta="I cannot."), completed(message(content=refusal))]
    )
    (choice,) = ev.collect(events).choices
    assert (choice.text, choice.refusal, choice.finish_reason) == ("", "I cannot.", "content_filter")
    assert not [one for one in events if isinstance(one, ev.TextDelta)]


def test_row_44_logprobs_and_row_58_citations_are_in_the_items() -> None:
    token: JsonObject = {"token": "Hi", "logprob": -1.0, "bytes": [], "top_logprobs": []}
    cited: JsonObject = {"type": "url_citation", "url": "u", "start_index": 0, "end_index": 2}
    content: JsonValue = [{"type": "output_text", "text": "Hi", "annotations": [cited], "logprobs": [token]}]
    (choice,) = streamed(CODEC, TARGET, [*write(0, "Hi"), completed(message(content=content))]).choices
    assert choice.citations == (cited,)
    assert choice.logprobs == {"content": [token]}


def test_decoder_returns_the_callers_tool_names_and_new_call_ids() -> None:
    tool = Tool.from_schema("a.b", "d", {"type": "object", "properties": {}})
    request = Request((*ASKED.messages, Message("assistant", (ToolCall("call_0", "a.b", {}),))), tools=(tool.spec,))
    item: JsonObject = {"type": "function_call", "name": "a_b", "arguments": "{}"}
    events = decoded_events(CODEC, TARGET, [added(0, **item), done(0, item), completed(item)], request)
    assert ev.ToolCallStart(0, "call_1", "a.b") in events
    assert ev.collect(events).choices[0].tool_calls == (ToolCall.read("call_1", "a.b", "{}"),)


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
def test_row_60_truncated_call_starts_and_never_ends(reason: str) -> None:
    item = function_call("f", "call_a", '{"x"', status="incomplete")
    last = event("incomplete", response=answer(item, status="incomplete", incomplete_details={"reason": reason}))
    events = decoded_events(
        CODEC,
        TARGET,
        [added(0, **function_call("f", "call_a", "")), *args(0, '{"x"'), done(0, item), last],
    )
    assert ev.ToolCallStart(0, "call_a", "f") in events
    assert not [one for one in events if isinstance(one, ev.ToolCallEnd)]
    (choice,) = ev.collect(events).choices
    assert choice.tool_calls == ()
    assert choice.finish_reason == ("length" if reason == "max_output_tokens" else reason)


def test_row_54_call_with_invalid_json_ends_with_the_response() -> None:
    item = function_call("f", "call_a", '{"x"', status="completed")
    events = decoded_events(CODEC, TARGET, [added(0, **item), done(0, item), completed(item)])
    (call,) = [one.call for one in events if isinstance(one, ev.ToolCallEnd)]
    assert call.error is not None
    assert ev.collect(events).choices[0].tool_calls == (call,)


# --- stop sequences, which the wire lacks

STOP = Request(ASKED.messages, options={"stop": ["END", "ND!"]})


@given(cuts("an E, then END!"))
def test_row_41_no_event_follows_a_stop_sequence(deltas: list[str]) -> None:
    text = "".join(deltas)
    events = decoded_events(
        CODEC,
        TARGET,
        [
            *write(0, *deltas),
            done(0, message(text)),
            added(1, **CALL_F),
            *args(1, "{}"),
            done(1, CALL_F),
            event("reasoning_text.delta", 2, delta="hm"),
            completed(message(text), CALL_F),
        ],
        STOP,
    )
    assert "".join(one.text for one in events if isinstance(one, ev.TextDelta)) == "an E, then "
    assert not [
        one
        for one in events
        if isinstance(one, ev.ToolCallStart | ev.ToolCallDelta | ev.ToolCallEnd | ev.ReasoningDelta)
    ]
    (choice,) = ev.collect(events).choices
    assert (choice.text, choice.tool_calls, choice.finish_reason) == ("an E, then ", (), "stop")


def test_stop_sequence_does_not_extend_over_the_end_of_a_text() -> None:
    texts = message("the E", "ND")
    events = decoded_events(CODEC, TARGET, [*write(0, "the E"), *write(0, "ND", place=1), completed(texts)], STOP)
    assert "".join(one.text for one in events if isinstance(one, ev.TextDelta)) == "the END"
    assert ev.collect(events).choices[0].text == "the END"


def test_start_of_a_stop_sequence_is_emitted_at_the_end_of_its_item() -> None:
    events = decoded_events(
        CODEC, TARGET, [*write(0, "the EN"), done(0, message("the EN")), completed(message("the EN"))], STOP
    )
    assert [one.text for one in events if isinstance(one, ev.TextDelta)] == ["the ", "EN"]
    assert streamed(CODEC, TARGET, [*write(0, "EN"), completed(message("EN"))], STOP).choices[0].text == "EN"


@given(st.lists(st.text("ab", min_size=1, max_size=3), max_size=3), st.lists(st.text("ab", max_size=3)))
def test_stream_ends_before_the_first_stop_sequence_at_any_cut(stops: list[str], deltas: list[str]) -> None:
    """The text ends as if each letter were a delta, and the first complete stop sequence ended the stream."""
    cutter, text = StopCutter(stops), "".join(deltas)
    passed = "".join([*map(cutter.feed, deltas), cutter.close()])
    complete = next((text[:end] for end in range(len(text) + 1) if text[:end].endswith(tuple(stops))), None)
    assert cutter.found is (complete is not None)
    assert passed == (text if complete is None else complete[: stop_at(complete, stops)])


# --- complete and truncated streams


@pytest.mark.parametrize("count", range(len(TRANSCRIPT)))
def test_row_68_stream_without_its_last_event_is_truncated(count: int) -> None:
    with pytest.raises(LMTransportError, match="stopped before the end") as caught:
        decoded_events(CODEC, TARGET, TRANSCRIPT[:count])
    assert caught.value.retryable
    assert (caught.value.partial is None) is (count < 5)


@pytest.mark.parametrize(("last", "errors"), [(-1, [False, False]), (15, [True])], ids=["all items", "a call is open"])
def test_end_mark_completes_a_stream_without_its_last_event(last: int, errors: list[bool]) -> None:
    response = ev.collect(decoded_events(CODEC, TARGET, TRANSCRIPT[:last], end_mark=True))
    (choice,) = response.choices
    assert (choice.text, choice.finish_reason) == ("Hi", "tool_calls")
    assert [call.error is not None for call in choice.tool_calls] == errors
    assert [warning.feature for warning in response.warnings] == ["finish_reason"]


def failed(**error: Any) -> JsonObject:
    return event("failed", response={"id": "r", "status": "failed", "output": [], "error": error or None})


ERRORS: dict[str, tuple[JsonObject, type[Exception], bool]] = {
    "row 70 flat": (
        {"type": "error", "code": "rate_limit_exceeded", "message": "Oh", "param": None},
        LMRateLimitError,
        True,
    ),
    "row 70 nested": ({"type": "error", "error": {"code": "server_error", "message": "Oh"}}, LMServerError, True),
    "row 70 nested and no more": ({"error": {"code": "server_error", "message": "Oh"}}, LMServerError, True),
    "row 70 failed": (failed(code="rate_limit_exceeded", message="Oh"), LMRateLimitError, True),
    "row 79 failed by its status alone": (failed(), LMServerError, True),
    "completed, and failed": (completed(status="failed"), LMServerError, True),
    "a policy": (failed(code="bio_policy", message="Oh"), LMContentFilteredError, False),
}


@pytest.mark.parametrize(("wire", "error", "retryable"), ERRORS.values(), ids=ERRORS)
def test_stream_error_has_the_partial_response(wire: JsonObject, error: type[Exception], retryable: bool) -> None:
    for count in (0, 1, len(TRANSCRIPT) - 1):
        with pytest.raises(error) as caught:
            decoded_events(CODEC, TARGET, [*TRANSCRIPT[:count], wire])
        assert getattr(caught.value, "retryable", None) is retryable
        partial: Response = getattr(caught.value, "partial", None) or Response()
        assert "".join(choice.text for choice in partial.choices) == ("Hi" if count > 1 else "")


def test_row_69_decoder_reads_a_reply_that_is_not_streamed() -> None:
    body = answer(*ITEMS, object="response")
    assert streamed(CODEC, TARGET, [body]) == openai_responses.decode(body, sent_to(CODEC, TARGET), TARGET)
    assert streamed(CODEC, TARGET, [[*TRANSCRIPT]]) == streamed(CODEC, TARGET, TRANSCRIPT)


@pytest.mark.parametrize(
    ("words", "error"), [("<html><title>Go away</title></html>", LMServerError), ("Go away", LMUnexpectedError)]
)
def test_text_instead_of_an_event_is_an_error_with_that_text(words: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="Go away"):
        decoded_events(CODEC, TARGET, [words])


# --- properties

TEXTS = st.text("ab END\n", max_size=12)


@st.composite
def answers(draw: st.DrawFn) -> tuple[JsonObject, list[JsonObject]]:
    """Draw a body and the same body as events, cut anywhere."""
    items: list[JsonObject] = []
    events: list[JsonObject] = [CREATED]
    for index in range(draw(st.integers(0, 4))):
        match draw(st.sampled_from(["message", "call", "reasoning", "web_search_call"])):
            case "message":
                texts = draw(st.lists(TEXTS, max_size=2))
                items.append(message(*texts))
                deltas = [draw(cuts(text)) for text in texts]
                events += [one for place, text in enumerate(deltas) for one in write(index, *text, place=place)]
            case "call":
                arguments = draw(st.sampled_from(['{"x":1}', "{}", "", '{"x"']))
                items.append(function_call("f", f"id{index}", arguments, status="completed"))
                events += [added(index, **function_call("f", f"id{index}", ""))]
                events += args(index, *draw(cuts(arguments)))
            case "reasoning":
                text = draw(TEXTS)
                items.append(
                    {"type": "reasoning", "id": f"rs{index}", "summary": [{"type": "summary_text", "text": text}]}
                )
                events += [event("reasoning_summary_text.delta", index, delta=delta) for delta in draw(cuts(text))]
            case kind:
                items.append({"type": kind, "id": f"ws{index}", "status": "completed"})
        events.append(done(index, items[-1]))
    reason = draw(st.none() | st.sampled_from(["max_output_tokens", "content_filter", "steered"]))
    ended: JsonObject = {"status": "incomplete", "incomplete_details": {"reason": reason}} if reason else {}
    body = answer(*items, **ended)
    return body, [*events, event("incomplete" if reason else "completed", response=body)]


@given(answers(), st.booleans())
def test_stream_gives_the_same_response_as_its_body(made: tuple[JsonObject, list[JsonObject]], stops: bool) -> None:
    body, events = made
    request = STOP if stops else ASKED
    sent = CODEC.encode(request, TARGET, stream=True)
    emitted = decoded_events(CODEC, TARGET, events, request)
    response = ev.collect(emitted)
    assert response == openai_responses.decode(body, sent, TARGET)
    assert "".join(one.text for one in emitted if isinstance(one, ev.TextDelta)) == response.choices[0].text
    ends = [one.call for one in emitted if isinstance(one, ev.ToolCallEnd)]
    assert sorted(call.id for call in ends) == sorted(call.id for call in response.choices[0].tool_calls)


@given(hostile([
    "type", "response", "item", "output", "output_index", "delta", "response.created", "response.completed",
    "response.output_item.added", "response.output_item.done", "response.output_text.delta", "function_call", "message",
    "reasoning", "summary", "summary_index", "content", "content_index", "call_id", "name", "arguments", "error", "status",
    "response.function_call_arguments.delta", "response.reasoning_text.delta", "response.failed", "role", "assistant", "id",
]))  # fmt: skip
def test_any_events_give_a_response_or_an_lm_error(events: list[Any]) -> None:
    only_our_errors(CODEC, TARGET, events)
    only_our_errors(CODEC, TARGET, [*events, completed()])
