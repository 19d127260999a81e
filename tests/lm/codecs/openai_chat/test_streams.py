"""Chat completions, streamed: transcripts, deviations of hosts, and equality with replies that are not streamed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core import events as ev
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import LMInvalidRequestError, LMRateLimitError, LMServerError, LMTransportError, LMUnexpectedError
from sigwire.lm.codecs import openai_chat
from sigwire.lm.codecs.openai_chat.profiles import (
    COMPATIBLE,
    DEEPSEEK,
    GEMINI_CHAT,
    GROQ,
    MISTRAL,
    OPENAI,
    OPENROUTER,
    VLLM,
    ChatProfile,
)
from sigwire.lm.codecs.openai_chat.think_tags import ThinkTags
from sigwire.lm.codecs.shared.framing import make_frame_decoder
from sigwire.lm.codecs.shared.interface import StreamingCodec, Target
from tests.lm.codecs.streaming import ASKED, cuts, decoded_events, hostile, only_our_errors, sent_to, streamed

CODEC: StreamingCodec[ChatProfile] = openai_chat
TARGET = Target("openai", "m", OPENAI)


def at(profile: ChatProfile) -> Target[ChatProfile]:
    return Target(profile.family, "m", profile)


def f() -> None: ...
def get() -> None: ...
def weather() -> None: ...
def get_weather() -> None: ...


# --- chunks of the wire


def chunk(delta: JsonObject | None = None, reason: str | None = None, index: int = 0, **fields: Any) -> JsonObject:
    choice: JsonObject = {"index": index, "delta": delta or {}, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **fields}


def fragment(arguments: JsonValue = None, name: str | None = None, **fields: Any) -> JsonObject:
    """Return a chunk with a fragment of a call."""
    function: JsonObject = {"name": name} if name is not None else {}
    if arguments is not None:
        function["arguments"] = arguments
    return chunk({"tool_calls": [{**fields, "function": function}]})


def finish_chunk(reason: str = "stop") -> JsonObject:
    return chunk({}, reason)


COUNTS: JsonObject = {
    "prompt_tokens": 10,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
USED = Usage(10, 7, cached_tokens=4, reasoning_tokens=2)
COUNTED: JsonObject = {"id": "c", "model": "m", "choices": [], "usage": COUNTS}
F, G = ToolCall.read("call_a", "f", '{"x":1}'), ToolCall.read("call_b", "g", "")

TRANSCRIPT: list[JsonObject] = [
    chunk({"role": "assistant", "content": ""}, usage=None),
    chunk({"content": "H"}, usage=None, obfuscation="x7"),
    chunk({"content": "i"}, usage=None),
    chunk(
        {"tool_calls": [{"index": 0, "id": "call_a", "type": "function", "function": {"name": "f", "arguments": ""}}]}
    ),
    fragment('{"x"', index=0),
    chunk(
        {"tool_calls": [{"index": 1, "id": "call_b", "type": "function", "function": {"name": "g", "arguments": ""}}]}
    ),
    fragment(":1}", index=0),
    finish_chunk("tool_calls"),
    COUNTED,
]


def test_decoder_yields_the_events_of_a_transcript_without_padding_row_71() -> None:
    events = decoded_events(CODEC, TARGET, TRANSCRIPT)
    assert isinstance(events[-1], ev.ResponseEnd)
    raw: Any = events[-1].raw
    assert events == [
        ev.ResponseStart("c", "m"),
        ev.TextDelta("H"),
        ev.TextDelta("i"),
        ev.ToolCallStart(0, "call_a", "f"),
        ev.ToolCallDelta(0, '{"x"'),
        ev.ToolCallStart(1, "call_b", "g"),
        ev.ToolCallDelta(0, ":1}"),
        ev.UsageUpdate(USED),
        ev.ToolCallEnd(0, F),
        ev.ToolCallEnd(1, G),
        ev.ChoiceEnd("tool_calls", raw=raw["choices"][0]),
        ev.ResponseEnd(raw=raw),
    ]
    assert raw == {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "usage": COUNTS,
        "obfuscation": "x7",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "Hi",
                    "tool_calls": [
                        {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}},
                        {"id": "call_b", "type": "function", "function": {"name": "g", "arguments": ""}},
                    ],
                },
            }
        ],
    }


def test_decoder_returns_the_events_of_each_wire_event_at_once() -> None:
    decoder = CODEC.decoder(sent_to(CODEC, TARGET), TARGET)
    assert [len(decoder.feed(event)) for event in TRANSCRIPT] == [1, 1, 1, 1, 1, 1, 1, 0, 1]


def test_row_64_encode_asks_for_a_stream_with_usage_when_the_host_has_usage() -> None:
    assert sent_to(CODEC, TARGET).body == {
        "model": "m",
        "messages": [{"role": "user", "content": "q"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "stream_options" not in sent_to(CODEC, at(MISTRAL)).body


# --- calls: deviations of hosts


def call(call_id: str, name: str, arguments: object, **data: Any) -> ToolCall:
    return ToolCall.read(call_id, name, arguments, provider_data={OPENAI.family: data} if data else None)


CALLS: dict[str, tuple[list[JsonObject], list[ToolCall]]] = {
    "row 65 interleaved by index": (
        [fragment("", "f", index=0, id="a"), fragment("", "g", index=1, id="b"), fragment('{"x', index=0),
         fragment('{"y"', index=1), fragment('":1}', index=0), fragment(":2}", index=1)],
        [call("a", "f", '{"x":1}'), call("b", "g", '{"y":2}')],
    ),
    "row 65 one index for all, ids tell them apart": (
        [fragment('{"x":', "f", index=0, id="a"), fragment("1}", index=0), fragment('{"x":', "f", index=0, id="b"),
         fragment("2}", index=0)],
        [call("a", "f", '{"x":1}'), call("b", "f", '{"x":2}')],
    ),
    "one index for all, without arguments": (
        [fragment("", "f", index=0, id="a"), fragment("", "f", index=0, id="b")],
        [call("a", "f", ""), call("b", "f", "")],
    ),
    "no index, each call in one fragment": (
        [fragment('{"x":1}', "f", id="a"), fragment('{"x":2}', "f", id="b")],
        [call("a", "f", '{"x":1}'), call("b", "f", '{"x":2}')],
    ),
    "no index, fragments go on with the last call": (
        [fragment('{"x"', "f", id="a"), fragment(":1}"), fragment("", "g", id="b"), fragment("{}")],
        [call("a", "f", '{"x":1}'), call("b", "g", "{}")],
    ),
    "no ids": (
        [fragment("{}", "f", index=0), fragment("{}", "g", index=1)],
        [call("call_0", "f", "{}"), call("call_1", "g", "{}")],
    ),
    "no ids, one index": (
        [fragment("{}", "f", index=0), fragment("{}", "g", index=0), fragment("", "h", index=0)],
        [call("call_0", "f", "{}"), call("call_1", "g", "{}"), call("call_2", "h", "")],
    ),
    "neither ids nor index": (
        [fragment('{"x":1}', "f"), fragment('{"x":2}', "f")],
        [call("call_0", "f", '{"x":1}'), call("call_1", "f", '{"x":2}')],
    ),
    "all in one delta": (
        [chunk({"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}, {"function": {"name": "g"}}]})],
        [call("call_0", "f", "{}"), call("call_1", "g", None)],
    ),
    "two objects glued together": (
        [fragment('{"x":1}', "f", index=0, id="a"), fragment('{"x":', index=0), fragment("2}", index=0)],
        [call("a", "f", '{"x":1}'), call("call_0", "f", '{"x":2}')],
    ),
    "braces inside texts glue nothing": (
        [fragment('{"x":"}', "f", index=0, id="a"), fragment('{\\"', index=0), fragment('{}{\\\\"}', index=0)],
        [call("a", "f", '{"x":"}{\\"{}{\\\\"}')],
    ),
    "an escape at the end of a fragment": (
        [fragment('{"x":"\\', "f", index=0, id="a"), fragment('"}', index=0), fragment('{"}', index=0)],
        [call("a", "f", '{"x":"\\"}{"}')],
    ),
    "objects in objects glue nothing": (
        [fragment('{"x":[{"y":1}', "f", index=0, id="a"), fragment(",", index=0), fragment('{"y":2}', index=0),
         fragment("]}", index=0)],
        [call("a", "f", '{"x":[{"y":1},{"y":2}]}')],
    ),
    "the id again with every fragment": (
        [fragment('{"x"', "f", index=0, id="a"), fragment(":1}", index=0, id="a")],
        [call("a", "f", '{"x":1}')],
    ),
    "the name again with every fragment": (
        [fragment('{"x"', "f", index=0, id="a"), fragment(":", "f", index=0), fragment("1}", "", index=0)],
        [call("a", "f", '{"x":1}')],
    ),
    "an empty id and null in later fragments": (
        [fragment('{"x"', "f", index=0, id="a"), fragment(":1}", index=0, id=""), fragment("", index=0, id=None)],
        [call("a", "f", '{"x":1}')],
    ),
    "the id after the name": (
        [fragment("", "f", index=0), fragment("{}", index=0, id="a")],
        [call("a", "f", "{}")],
    ),
    "the name after the arguments": (
        [fragment("{", index=0, id="a"), fragment("}", "f", index=0)],
        [call("a", "f", "{}")],
    ),
    "an id that is the word null": ([fragment("{}", "f", index=0, id="null")], [call("call_0", "f", "{}")]),
    "row 66 no arguments at all": ([fragment(None, "f", index=0, id="a")], [call("a", "f", None)]),
    "row 66 arguments that are null": (
        [chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}]})],
        [call("a", "f", None)],
    ),
    "arguments as an object": ([fragment({"x": 1}, "f", index=0, id="a")], [call("a", "f", {"x": 1})]),
    "two objects": (
        [fragment({"x": 1}, "f", id="a"), fragment({"x": 2}, "f")],
        [call("a", "f", {"x": 1}), call("call_0", "f", {"x": 2})],
    ),
    "arguments that are no JSON": ([fragment('{"x"', "f", index=0, id="a")], [call("a", "f", '{"x"')]),
    "the form before tool_calls": (
        [chunk({"function_call": {"name": "f", "arguments": "{"}}), chunk({"function_call": {"arguments": "}"}})],
        [call("call_0", "f", "{}")],
    ),
    "a custom tool": (
        [chunk({"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "x "}}]}),
         chunk({"tool_calls": [{"index": 0, "custom": {"input": "y"}}]})],
        [call("a", "f", {"input": "x y"})],
    ),
    "what else the host leaves on a call": (
        [fragment("{}", "f", index=0, id="a", extra_content={"google": {"thought_signature": "S"}})],
        [call("a", "f", "{}", extra_content={"google": {"thought_signature": "S"}})],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "calls"), CALLS.values(), ids=CALLS)
def test_decoder_separates_calls(events: list[JsonObject], calls: list[ToolCall]) -> None:
    emitted = decoded_events(CODEC, TARGET, [*events, finish_chunk("tool_calls")])
    response = ev.collect(emitted)
    assert list(response.choices[0].tool_calls) == calls
    assert response.choices[0].finish_reason == "tool_calls"
    assert calls_of(emitted) == [(call.name, call_text(call)) for call in calls]
    assert response == openai_chat.decode(response.raw, sent_to(CODEC, TARGET), TARGET)


def calls_of(events: list[ev.StreamEvent]) -> list[tuple[str, str]]:
    """Return names and arguments of the calls, from starts and deltas."""
    starts = [event for event in events if isinstance(event, ev.ToolCallStart)]
    assert [event.index for event in starts] == list(range(len(starts)))
    deltas = [event for event in events if isinstance(event, ev.ToolCallDelta)]
    return [
        (start.name, "".join(delta.arguments for delta in deltas if delta.index == start.index)) for start in starts
    ]


def call_text(call: ToolCall) -> str:
    if call.arguments and "input" in call.arguments:
        return str(call.arguments["input"])
    return call.raw_arguments if call.raw_arguments is not None else dumps(call.arguments) if call.arguments else ""


def test_decoder_returns_the_callers_tool_names() -> None:
    tool = Tool.from_schema("a.b", "d", {"type": "object", "properties": {}})
    request = Request(ASKED.messages, tools=(tool.spec,))
    events = decoded_events(
        CODEC, TARGET, [fragment("{}", "a_b", index=0, id="c1"), finish_chunk("tool_calls")], request
    )
    assert ev.ToolCallStart(0, "c1", "a.b") in events
    assert ev.collect(events).choices[0].tool_calls[0].name == "a.b"


def test_row_60_truncated_call_starts_and_never_ends() -> None:
    events = decoded_events(CODEC, TARGET, [*TRANSCRIPT[:5], finish_chunk("length")])
    assert ev.ToolCallStart(0, "call_a", "f") in events
    assert not [event for event in events if isinstance(event, ev.ToolCallEnd)]
    (choice,) = ev.collect(events).choices
    assert (choice.finish_reason, choice.text, choice.tool_calls) == ("length", "Hi", ())


def test_synthetic_call_id_is_new_in_the_conversation() -> None:
    asked = Message("assistant", (ToolCall("call_0", "f", {}),))
    request = Request((*ASKED.messages, asked))
    events = decoded_events(CODEC, TARGET, [fragment("{}", "f", index=0), finish_chunk("tool_calls")], request)
    assert ev.ToolCallStart(0, "call_1", "f") in events
    assert ev.collect(events).choices[0].tool_calls[0].id == "call_1"


# --- texts and parts

HM: JsonObject = {"content": "ok"}
OK = TextPart("ok")


def thought(profile: ChatProfile, text: str = "hm", signature: str | None = None) -> ThinkingPart:
    return ThinkingPart(text, signature=signature, provider=profile.family)


def detail(kind: str = "reasoning.text", **fields: Any) -> JsonObject:
    return {"reasoning_details": [{"type": kind, "index": 0, **fields}]}


DELTAS: dict[str, tuple[ChatProfile, list[JsonObject], tuple[object, ...]]] = {
    "text": (OPENAI, [{"content": "o"}, {"content": None}, {"content": ""}, {"content": "k"}], (OK,)),
    "row 56 reasoning_content": (
        DEEPSEEK, [{"reasoning_content": "h", "content": None}, {"reasoning_content": "m"}, HM],
        (thought(DEEPSEEK), OK),
    ),
    "row 56 reasoning": (GROQ, [{"reasoning": "h"}, {"reasoning": "m", "channel": "analysis"}, HM], (thought(GROQ), OK)),
    "row 56 both names say the same": (
        VLLM, [{"reasoning": "h", "reasoning_content": "h"}, {"reasoning_content": "m", "reasoning": "m"}, HM],
        (thought(VLLM), OK),
    ),
    "row 56 reasoning_details": (
        OPENROUTER,
        [{"reasoning": "h", **detail(text="h")}, {"reasoning": "m", **detail(text="m")}, detail(signature="S"), HM],
        (
            thought(OPENROUTER),
            OpaquePart(OPENROUTER.family, {
                "reasoning_details": [{"type": "reasoning.text", "index": 0, "text": "hm", "signature": "S"}],
            }),
            OK,
        ),
    ),
    "details of several blocks": (
        OPENROUTER,
        [detail(text="h", id="1"), detail(text="m", id="1", signature="S"), detail(text="!", id="2"),
         detail("reasoning.encrypted", data="X"), detail("reasoning.encrypted", data="Y"), HM],
        (
            thought(OPENROUTER, "hm!"),
            OpaquePart(OPENROUTER.family, {
                "reasoning_details": [
                    {"type": "reasoning.text", "index": 0, "text": "hm", "id": "1", "signature": "S"},
                    {"type": "reasoning.text", "index": 0, "text": "!", "id": "2"},
                    {"type": "reasoning.encrypted", "index": 0, "data": "X"},
                    {"type": "reasoning.encrypted", "index": 0, "data": "Y"},
                ],
            }),
            OK,
        ),
    ),
    "row 56 thinking in the content": (
        MISTRAL,
        [{"content": ""}, {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}]},
         {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m"}], "signature": "S"}]},
         {"content": "o"}, {"content": [{"type": "text", "text": "k"}]}],
        (thought(MISTRAL, signature="S"), OK),
    ),
    "row 56 thinking in tags": (
        VLLM,
        [{"content": "\n<thi"}, {"content": "nk>\nh"}, {"content": "m</"}, {"content": "think>"}, {"content": "\n\n"}, HM],
        (thought(VLLM), OK),
    ),
    "tags that never end": (VLLM, [{"content": "<think>h"}, {"content": "m</thin"}], (thought(VLLM, "hm</thin"),)),
    "what only looks like a tag": (VLLM, [{"content": " <thi"}, {"content": "ng> ok"}], (TextPart(" <thing> ok"),)),
    "what only begins like a tag": (VLLM, [{"content": "<thin"}], (TextPart("<thin"),)),
    "no tags behind other thinking": (
        VLLM, [{"reasoning": "hm"}, {"content": "<think>"}], (thought(VLLM), TextPart("<think>")),
    ),
    "thinking and text in one delta": (DEEPSEEK, [{"content": "ok", "reasoning_content": "hm"}], (thought(DEEPSEEK), OK)),
    "thinking after text": (
        DEEPSEEK, [{"content": "o"}, {"reasoning_content": "h"}, {"content": "k"}, {"reasoning_content": "m"}],
        (thought(DEEPSEEK), OK),
    ),
    "thinking and nothing else": (DEEPSEEK, [{"reasoning_content": "hm"}], (thought(DEEPSEEK),)),
    "speech": (
        OPENAI,
        [{"audio": {"id": "au_1", "transcript": "o"}}, {"audio": {"data": "AA"}}, {"audio": {"transcript": "k", "data": "BB"}},
         {"audio": {"expires_at": 9}}],
        (AudioPart("AABB", "wav"), OpaquePart(OPENAI.family, {"audio": {"id": "au_1"}}), OK),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("profile", "deltas", "parts"), DELTAS.values(), ids=DELTAS)
def test_stream_has_the_texts_and_parts_of_its_deltas(
    profile: ChatProfile, deltas: list[JsonObject], parts: tuple[object, ...]
) -> None:
    response = streamed(CODEC, at(profile), [*map(chunk, deltas), finish_chunk()])
    assert response.choices[0].message().parts == parts
    assert response == openai_chat.decode(response.raw, sent_to(CODEC, at(profile)), at(profile))


def test_reasoning_ends_before_the_text_starts() -> None:
    events = decoded_events(CODEC, at(DEEPSEEK), [chunk({"reasoning_content": "hm"}), chunk(HM), finish_chunk()])
    assert events[1:4] == [ev.ReasoningDelta("hm"), ev.PartEnd(thought(DEEPSEEK)), ev.TextDelta("ok")]


TAGGED = "\n<think>\nh</m <think> <\n</think> \n o<k</think> "


@given(cuts(TAGGED))
def test_think_tags_give_the_same_text_at_any_cut(deltas: list[str]) -> None:
    events = decoded_events(CODEC, at(VLLM), [*(chunk({"content": delta}) for delta in deltas), finish_chunk()])
    assert "".join(event.text for event in events if isinstance(event, ev.ReasoningDelta)) == "\nh</m <think> <\n"
    assert "".join(event.text for event in events if isinstance(event, ev.TextDelta)) == "o<k</think> "
    assert ev.collect(events).choices[0].parts == (thought(VLLM, "h</m <think> <"), TextPart("o<k</think> "))


def test_row_57_refusal_deltas_are_joined_and_are_no_text() -> None:
    events = decoded_events(CODEC, TARGET, [chunk({"refusal": "I c"}), chunk({"refusal": "annot."}), finish_chunk()])
    (choice,) = ev.collect(events).choices
    assert (choice.refusal, choice.text, choice.finish_reason) == ("I cannot.", "", "content_filter")


def test_row_44_logprobs_and_row_58_citations_are_joined() -> None:
    tokens: list[JsonObject] = [{"token": token, "logprob": -1.0, "top_logprobs": []} for token in "ok"]
    cited: JsonObject = {"type": "url_citation", "url_citation": {"url": "u", "start_index": 0, "end_index": 1}}
    chunks: list[Any] = [chunk({"content": token["token"]}) for token in tokens]
    for one, token in zip(chunks, tokens, strict=True):
        one["choices"][0]["logprobs"] = {"content": [token], "refusal": None}
    (choice,) = streamed(CODEC, TARGET, [*chunks, chunk({"annotations": [cited]}), finish_chunk()]).choices
    assert choice.logprobs == {"content": tokens}
    assert choice.citations == ({"type": "url_citation", "url": "u", "start_index": 0, "end_index": 1},)


def test_row_43_decoder_separates_interleaved_choices() -> None:
    events = decoded_events(
        CODEC,
        TARGET,
        [
            chunk({"content": "b"}, index=1),
            chunk({"content": "a"}),
            fragment("{}", "f", index=0, id="x"),
            chunk({"content": "B"}, index=1),
            chunk({}, "length", index=1),
            finish_chunk("tool_calls"),
        ],
    )
    first, second = ev.collect(events).choices
    assert (first.text, first.tool_calls, first.finish_reason) == ("a", (call("x", "f", "{}"),), "tool_calls")
    assert (second.text, second.tool_calls, second.finish_reason) == ("bB", (), "length")
    assert ev.TextDelta("B", choice=1) in events


# --- usage and names

USAGES: dict[str, list[JsonObject]] = {
    "row 72 alone, after the end": [chunk(HM), finish_chunk(), COUNTED],
    "with the end": [chunk(HM), chunk({}, "stop", usage=COUNTS)],
    "null before and after": [chunk(HM, usage=None), chunk({}, "stop", usage=COUNTS), {"choices": [], "usage": None}],
    "usage in each chunk": [
        chunk(HM, usage={"prompt_tokens": 10, "completion_tokens": 1}),
        chunk({}, "stop", usage={"prompt_tokens": 10, "completion_tokens": 3}),
        COUNTED,
    ],
    "twice": [chunk(HM), finish_chunk(), COUNTED, COUNTED],
    "in Groq's field": [chunk(HM, x_groq={"id": "r"}), chunk({}, "stop", x_groq={"usage": COUNTS, "seed": 1})],
    "in both": [chunk(HM), chunk({}, "stop", x_groq={"usage": COUNTS}, usage=COUNTS)],
    "without choices": [chunk(HM), finish_chunk(), {"choices": None, "usage": COUNTS}],
}


@pytest.mark.parametrize("events", USAGES.values(), ids=USAGES)
def test_usage_is_read_in_any_chunk_and_any_number_of_chunks(events: list[JsonObject]) -> None:
    emitted = decoded_events(CODEC, TARGET, events)
    assert ev.collect(emitted).usage == USED
    updates = [event.usage for event in emitted if isinstance(event, ev.UsageUpdate)]
    assert updates[-1] == USED
    assert len(updates) == len(set(updates))


def test_usage_is_unknown_when_the_stream_has_no_counts() -> None:
    assert streamed(CODEC, TARGET, [chunk(HM), finish_chunk()]).usage == Usage()


def test_response_has_the_first_id_and_the_first_model() -> None:
    """Azure starts with a chunk without names; Groq's agents give each chunk another id."""
    events: list[JsonObject] = [
        {"id": "", "model": "", "choices": [], "prompt_filter_results": []},
        chunk(HM, id="one"),
        chunk({}, "stop", id="two", model="m2"),
    ]
    emitted = decoded_events(CODEC, TARGET, events)
    assert (ev.collect(emitted).id, ev.collect(emitted).model) == ("one", "m")
    assert [event for event in emitted if isinstance(event, ev.ResponseStart)][-1] == ev.ResponseStart("one", "m")


def test_new_fields_in_a_chunk_with_text_are_kept() -> None:
    """Chunks that only continue the text take a fast path; these chunks must not."""
    events = [
        chunk({"content": "a"}, system_fingerprint=None),
        chunk({"content": "b"}, system_fingerprint=None),
        chunk({"content": "c"}, service_tier="flex"),
        chunk({"content": "d", "channel": "final"}),
        chunk({"content": "e", "role": "assistant"}),
        chunk({"content": "f"}, "stop"),
    ]
    response = streamed(CODEC, TARGET, events)
    assert response.choices[0].text == "abcdef"
    assert isinstance(response.raw, dict)
    assert response.raw["service_tier"] == "flex"
    assert isinstance(response.choices[0].raw, dict)
    assert response.choices[0].raw["message"] == {"role": "assistant", "channel": "final", "content": "abcdef"}


SIGNED: JsonObject = {"google": {"thought_signature": "AAEC"}}


@pytest.mark.parametrize("profile", [GEMINI_CHAT, COMPATIBLE], ids=["gemini-chat", "compatible"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_signature_of_a_message_is_sent_back(profile: ChatProfile, is_streamed: bool) -> None:
    if is_streamed:
        response = streamed(CODEC, at(profile), [chunk({"content": "Hi"}), chunk({"extra_content": SIGNED}, "stop")])
    else:
        body: JsonObject = {
            "choices": [{"message": {"content": "Hi", "extra_content": SIGNED}, "finish_reason": "stop"}]
        }
        response = CODEC.decode(body, sent_to(CODEC, at(profile)), at(profile))
    history = (*ASKED.messages, response.choices[0].message(), Message.user("on"))
    sent: Any = CODEC.encode(Request(history), at(profile)).body
    assert sent["messages"][1] == {"role": "assistant", "content": "Hi", "extra_content": SIGNED}
    assert "AAEC" not in str(CODEC.encode(Request(history), TARGET).body)


NAMED = Request((Message.user("q"),), tuple(Tool(named).spec for named in (f, get, get_weather, weather)))


@pytest.mark.parametrize("name", ["get", "weather", "get_weather", "get_wether"])
@pytest.mark.parametrize("arguments", ["", '{"x":1}'])
@pytest.mark.parametrize("call_id", ["call_a", None])
def test_name_in_deltas_is_the_name_of_one_call(name: str, arguments: str, call_id: str | None) -> None:
    for cut in range(1, len(name)):
        first = fragment("", name[:cut], index=0, **({"id": call_id, "type": "function"} if call_id else {}))
        rest = [fragment(None, name[cut:], index=0), *([fragment(arguments, index=0)] if arguments else [])]
        events = decoded_events(CODEC, TARGET, [first, *rest, finish_chunk("tool_calls")], NAMED)
        (choice,) = ev.collect(events).choices
        assert choice.tool_calls == (ToolCall.read(call_id or "call_0", name, arguments),)
        starts = [event for event in events if isinstance(event, ev.ToolCallStart)]
        assert starts == [ev.ToolCallStart(0, call_id or "call_0", name)]
        assert events.index(starts[0]) < min(at for at, event in enumerate(events) if isinstance(event, CALL_EVENTS))


CALL_EVENTS = (ev.ToolCallDelta, ev.ToolCallEnd)


def test_offered_names_in_a_row_are_two_calls() -> None:
    for names in (["f", "get"], ["get", "weather"], ["get_weather", "get"]):
        events = decoded_events(
            CODEC, TARGET, [*(fragment("", name, index=0) for name in names), finish_chunk()], NAMED
        )
        assert [call.name for call in ev.collect(events).choices[0].tool_calls] == names
        assert [event.name for event in events if isinstance(event, ev.ToolCallStart)] == names


def test_offered_name_starts_its_call_at_once() -> None:
    decoder = CODEC.decoder(CODEC.encode(NAMED, TARGET, stream=True), TARGET)
    assert [*decoder.feed(fragment("", "weather", index=0))][-1] == ev.ToolCallStart(0, "call_0", "weather")
    assert [*decoder.feed(fragment("", "get", index=1))] == []  # it may become get_weather
    assert [*decoder.feed(fragment("{", index=1))] == [ev.ToolCallStart(1, "call_1", "get"), ev.ToolCallDelta(1, "{")]


# --- complete and truncated streams


@pytest.mark.parametrize("count", range(len(TRANSCRIPT) - 2))
def test_row_68_stream_without_finish_reason_is_truncated(count: int) -> None:
    with pytest.raises(LMTransportError, match="stopped before the end") as caught:
        decoded_events(CODEC, TARGET, TRANSCRIPT[:count])
    assert caught.value.retryable
    assert (caught.value.provider, caught.value.model) == ("openai", "m")
    assert (caught.value.partial is None) is (count < 2)


@pytest.mark.parametrize(
    "events",
    [
        [chunk(HM), chunk(HM, index=1), finish_chunk()],
        [chunk(HM, index=1), chunk({}, "stop", index=1)],
        [COUNTED],
        [{}],
    ],
    ids=["one choice is not over", "the first choice never came", "nothing but counts", "nothing"],
)
def test_row_68_stream_without_all_choices_is_truncated(events: list[JsonObject]) -> None:
    with pytest.raises(LMTransportError, match="stopped before the end"):
        decoded_events(CODEC, TARGET, events)


def test_stream_without_finish_reasons_ends_with_its_usage() -> None:
    response = streamed(CODEC, TARGET, [{"choices": [{"delta": HM}]}, COUNTED])
    assert [(choice.text, choice.finish_reason) for choice in response.choices] == [("ok", "stop")]
    assert [warning.feature for warning in response.warnings] == ["finish_reason"]


@pytest.mark.parametrize("count", [3, 5, 6, 7])
def test_end_mark_completes_a_stream_without_finish_reason(count: int) -> None:
    response = ev.collect(decoded_events(CODEC, TARGET, TRANSCRIPT[:count], end_mark=True))
    (choice,) = response.choices
    assert (choice.text, choice.finish_reason) == ("Hi", "stop" if count == 3 else "tool_calls")
    assert [warning.feature for warning in response.warnings] == ["finish_reason"]


@pytest.mark.parametrize("events", [[], [{}], [COUNTED]], ids=["no chunk", "an empty chunk", "usage"])
def test_end_mark_does_not_complete_a_stream_without_a_choice(events: list[JsonObject]) -> None:
    with pytest.raises(LMTransportError, match="stopped before the end"):
        decoded_events(CODEC, TARGET, events, end_mark=True)


def failed(**error: Any) -> JsonObject:
    return {"error": error}


ERRORS: dict[str, tuple[JsonObject, type[Exception], bool]] = {
    "row 70 a code in words": (failed(message="Slow", code="rate_limit_exceeded"), LMRateLimitError, True),
    "row 70 a code in numbers": (failed(message="Slow", code=429), LMRateLimitError, True),
    "row 70 an unknown code": (failed(message="Oh"), LMServerError, True),
    "a text": ({"error": "Oh"}, LMServerError, True),
    "beside a choice": ({**chunk(HM, "error"), **failed(code=502, message="Oh")}, LMServerError, True),
    "in a choice": ({"choices": [{"index": 0, "error": {"code": 400, "message": "No"}}]}, LMInvalidRequestError, False),
    "without choices": ({"choices": None, **failed(code=429, message="Slow")}, LMRateLimitError, True),
}


@pytest.mark.parametrize(("event", "error", "retryable"), ERRORS.values(), ids=ERRORS)
def test_stream_error_has_the_partial_response(event: JsonObject, error: type[Exception], retryable: bool) -> None:
    for count in (0, 2, len(TRANSCRIPT)):
        with pytest.raises(error) as caught:
            decoded_events(CODEC, TARGET, [*TRANSCRIPT[:count], event])
        assert getattr(caught.value, "retryable", None) is retryable
        partial: Response = getattr(caught.value, "partial", None) or Response()
        assert "".join(choice.text for choice in partial.choices) == {0: "", 2: "H"}.get(count, "Hi")


def test_x_groq_error_in_a_stream_is_raised() -> None:
    with pytest.raises(LMServerError, match="over capacity"):
        decoded_events(CODEC, at(GROQ), [chunk(HM), {"choices": [], "x_groq": {"error": "over capacity"}}])


def test_rejected_call_in_a_stream_has_the_complaint() -> None:
    refused = failed(message="x is missing", code="tool_use_failed", failed_generation='{"name":"f","arguments":{}}')
    events = decoded_events(CODEC, at(GROQ), [chunk({"reasoning": "hm"}), refused])
    (choice,) = ev.collect(events).choices
    (call,) = choice.tool_calls
    assert choice.parts == (thought(GROQ), call)
    assert (call.name, call.arguments, call.error and call.error.message) == ("f", {}, "x is missing")
    assert [type(event) for event in events[-7:-3]] == [ev.PartEnd, ev.ToolCallStart, ev.ToolCallDelta, ev.ToolCallEnd]
    assert [warning.feature for warning in ev.collect(events).warnings] == ["tool_calls"]
    assert ev.collect(decoded_events(CODEC, at(GROQ), [refused])).choices[0].tool_calls == (call,)


BODY: JsonObject = {
    "id": "c",
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
}


def test_row_69_decoder_reads_a_reply_that_is_not_streamed() -> None:
    assert streamed(CODEC, TARGET, [BODY]) == openai_chat.decode(BODY, sent_to(CODEC, TARGET), TARGET)


@pytest.mark.parametrize("mark", [b"data: [DONE]\n\n", b"data: [DONE]", b""])
def test_row_67_end_mark_is_optional(mark: bytes) -> None:
    splitter = make_frame_decoder(openai_chat.FRAMING)
    data = b"".join(b"data: " + dumps(event).encode() + b"\n\n" for event in TRANSCRIPT) + mark
    events = [*splitter.feed(data), *splitter.close()]
    assert streamed(CODEC, TARGET, events) == streamed(CODEC, TARGET, TRANSCRIPT)


def test_chunks_in_one_array_give_the_same_response() -> None:
    assert streamed(CODEC, TARGET, [[*TRANSCRIPT]]) == streamed(CODEC, TARGET, TRANSCRIPT)


def test_message_is_ignored_when_the_chunk_has_a_delta() -> None:
    """Some hosts send the partial message with every delta."""
    events: list[Any] = [chunk({"content": delta}) for delta in "Hi"]
    for one, so_far in zip(events, ("H", "Hi"), strict=True):
        one["choices"][0]["message"] = {"content": so_far}
    assert streamed(CODEC, TARGET, [*events, finish_chunk()]).choices[0].text == "Hi"


@pytest.mark.parametrize(
    ("words", "error"), [("<html><title>Go away</title></html>", LMServerError), ("Go away", LMUnexpectedError)]
)
def test_text_instead_of_a_chunk_is_an_error_with_that_text(words: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="Go away"):
        decoded_events(CODEC, TARGET, [words])


# --- properties

TEXTS = st.text('ab {}<>\\"\n', max_size=12)
NAMES = st.sampled_from(["f", "g"])
WIRE_CALLS = st.lists(
    st.tuples(NAMES, st.sampled_from(['{"x":"}{"}', '{"x":{"y":[1]}}', "{}", "", '{"x"'])), max_size=3
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[JsonObject, list[JsonObject]]:
    """Draw a body and the same body as chunks, cut anywhere."""
    text, thinking, refusal = draw(TEXTS), draw(st.none() | TEXTS), draw(st.none() | st.just("I cannot."))
    calls = draw(WIRE_CALLS)
    reason = draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter", "eos", "never heard of"]))
    wires: list[JsonValue] = [
        {"id": f"id{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    message: JsonObject = {"role": "assistant", "content": text, "reasoning": thinking, "refusal": refusal}
    message["tool_calls"] = wires
    choice: JsonObject = {"index": 0, "message": message, "finish_reason": reason}
    body: JsonObject = {**BODY, "choices": [choice], "usage": COUNTS}
    chunks = [chunk({"role": "assistant"})]
    chunks += [chunk({"reasoning": delta}) for delta in draw(cuts(thinking or ""))]
    chunks += [chunk({"content": delta}) for delta in draw(cuts(text))]
    chunks += [chunk({"refusal": delta}) for delta in draw(cuts(refusal or ""))]
    streams = [
        [fragment("", name, index=n, id=f"id{n}"), *(fragment(delta, index=n) for delta in draw(cuts(arguments)))]
        for n, (name, arguments) in enumerate(calls)
    ]
    while any(streams):
        chunks.append(draw(st.sampled_from([stream for stream in streams if stream])).pop(0))
    return body, [*chunks, finish_chunk(reason), COUNTED]


def without_raw(response: Response) -> Response:
    return replace(response, raw=None, choices=tuple(replace(choice, raw=None) for choice in response.choices))


@given(answers(), st.sampled_from([GROQ, OPENAI, VLLM]))
def test_stream_gives_the_same_response_as_its_body(
    answer: tuple[JsonObject, list[JsonObject]], host: ChatProfile
) -> None:
    body, chunks = answer
    sent = sent_to(CODEC, at(host))
    events = decoded_events(CODEC, at(host), chunks)
    response = ev.collect(events)
    # Calls are in the order of their starts, which may differ from the order of their indexes.
    begun = [event.id for event in events if isinstance(event, ev.ToolCallStart)]
    choices: Any = body["choices"]
    wires: list[dict[str, str]] = choices[0]["message"]["tool_calls"]
    wires.sort(key=lambda wire: begun.index(wire["id"]))
    assert without_raw(response) == without_raw(openai_chat.decode(body, sent, at(host)))
    assert response == openai_chat.decode(response.raw, sent, at(host))


@given(hostile([
    "choices", "delta", "index", "content", "tool_calls", "function", "name", "arguments", "id", "finish_reason", "usage",
    "stop", "error", "message", "reasoning", "reasoning_details", "thinking", "type", "text", "audio", "x_groq", "custom",
    "logprobs", "model", "role", "thinking_blocks", "function_call", "code", "tool_use_failed", "failed_generation",
]))  # fmt: skip
def test_any_events_give_a_response_or_an_lm_error(events: list[Any]) -> None:
    only_our_errors(CODEC, TARGET, events)
    deltas: list[Any] = [{"choices": [{"delta": event}]} for event in events]
    only_our_errors(CODEC, at(VLLM), [*deltas, finish_chunk()])


@pytest.mark.parametrize(
    ("end", "deltas"), [("<think>a</think>b", [("thinking", "a"), ("text", "b")]), ("b", None), ("", None)]
)
def test_white_space_before_an_answer_is_not_read_again_with_each_delta(end: str, deltas: Any) -> None:
    reader, blank = ThinkTags(), " \n" * 500
    for character in blank:
        assert [*reader.feed(character)] == []
        assert len(reader._lookahead) < len("<think>")
    assert [*reader.feed(end), *reader.close()] == (deltas or [("text", blank + end)])
