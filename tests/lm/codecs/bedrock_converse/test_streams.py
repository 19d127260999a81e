"""Converse, streamed: the events of a reply come to the response of the whole reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.events import TextDelta, ToolCallDelta, ToolCallEnd, collect
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.parts import OpaquePart
from sigwire.errors import LMRateLimitError, LMServerError, LMTransportError
from sigwire.lm.codecs import bedrock_converse
from sigwire.testing.chunking import cutter
from sigwire.testing.clouds.event_stream import events as events_of_answer
from tests.lm.codecs.bedrock_converse.test_decoding import CITED, REPLIES, SERVED, SIGNED
from tests.lm.codecs.bedrock_converse.wire import CODEC, WIRE_CALL, answer, decoded, target
from tests.lm.codecs.streaming import damaged, decoded_events, hostile, only_our_errors, streamed

CUT = cutter(None, None)
STREAMED = {name: reply for name, reply in REPLIES.items() if name not in ("citations", "an empty text")}


def transcript(wire: JsonObject) -> list[JsonValue]:
    return [*events_of_answer(wire, CUT)]


@pytest.mark.parametrize("wire", [wire for wire, _ in STREAMED.values()], ids=STREAMED)
def test_streamed_reply_is_equal_to_the_whole_reply(wire: JsonObject) -> None:
    came, whole = streamed(CODEC, target(), transcript(wire)), decoded(wire)
    assert came.choices[0].message().parts == whole.choices[0].message().parts
    assert (came.choices[0].finish_reason, came.usage, came.raw) == (
        whole.choices[0].finish_reason, whole.usage, whole.raw,
    )  # fmt: skip


def test_text_and_arguments_are_emitted_as_they_arrive() -> None:
    found = decoded_events(CODEC, target(), transcript(answer({"text": "a b"}, WIRE_CALL, stop="tool_use")))
    kinds = [type(event) for event in found]
    assert kinds.count(TextDelta) == 2
    assert kinds.index(ToolCallDelta) > kinds.index(TextDelta)
    assert kinds.index(ToolCallEnd) < len(kinds) - 1


def test_citations_of_a_stream_are_those_of_the_whole_reply() -> None:
    cited: Any = CITED["citationsContent"]
    delta: JsonObject = {"contentBlockIndex": 0, "delta": {"text": "It is so."}}
    source: JsonObject = {"contentBlockIndex": 0, "delta": {"citation": cited["citations"][0]}}
    came = streamed(
        CODEC,
        target(),
        [{"contentBlockDelta": delta}, {"contentBlockDelta": source}, {"messageStop": {"stopReason": "end_turn"}}],
    )
    assert came.choices[0].citations == decoded(answer(CITED)).choices[0].citations
    assert came.choices[0].text == "It is so."


def test_blocks_of_the_provider_are_assembled() -> None:
    result: JsonObject = {"start": {"toolResult": {"toolUseId": "s_1"}}, "contentBlockIndex": 0}
    image: JsonObject = {"start": {"image": {"format": "png"}}, "contentBlockIndex": 1}
    events: list[JsonValue] = [
        {"contentBlockStart": result},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolResult": [{"text": "a"}]}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolResult": [{"text": "b"}]}}},
        {"contentBlockStart": image},
        {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"image": {"source": {"bytes": "AAAA"}}}}},
        {"messageStop": {"stopReason": "end_turn"}},
    ]
    parts = streamed(CODEC, target(), events).choices[0].parts
    assert parts == (
        OpaquePart("bedrock", {"toolResult": {"toolUseId": "s_1", "content": [{"text": "a"}, {"text": "b"}]}}),
        OpaquePart("bedrock", {"image": {"format": "png", "source": {"bytes": "AAAA"}}}),
    )


def test_call_of_a_truncated_stream_is_left_out_and_never_ends() -> None:
    found = decoded_events(CODEC, target(), transcript(answer({"text": "t"}, WIRE_CALL, stop="max_tokens")))
    assert not any(isinstance(event, ToolCallEnd) for event in found)
    assert collect(found).choices[0].tool_calls == ()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", LMRateLimitError), ("modelStreamErrorException", LMServerError),
        ("internalServerException", LMServerError), ("ofTomorrowException", LMServerError),
    ],
)  # fmt: skip
def test_exception_in_a_stream_is_an_error_with_the_partial_answer(name: str, kind: type[Exception]) -> None:
    error: JsonValue = {"error": {"code": name, "message": "no"}}
    with pytest.raises(kind, match="no") as caught:
        streamed(CODEC, target(), [*transcript(answer({"text": "a"}))[:2], error])
    assert caught.value.partial.choices[0].text == "a"  # type: ignore[attr-defined]


def test_stream_without_a_stop_reason_is_truncated() -> None:
    with pytest.raises(LMTransportError, match="before the end"):
        streamed(CODEC, target(), transcript(answer({"text": "a"}))[:3])


def test_whole_reply_in_place_of_a_stream_is_read() -> None:
    wire = answer(SIGNED, {"text": "a"})
    assert streamed(CODEC, target(), [wire]).choices[0].text == "a"


WORDS = (
    "messageStart contentBlockStart contentBlockDelta contentBlockStop messageStop metadata contentBlockIndex delta start "
    "toolUse toolResult text reasoningContent citation usage stopReason end_turn output message content error code"
).split()


@given(hostile(WORDS))
def test_hostile_events_give_an_answer_or_an_error_of_this_package(events: list[Any]) -> None:
    only_our_errors(bedrock_converse, target(), events)


@given(st.data())
def test_damaged_stream_gives_an_answer_or_an_error_of_this_package(data: st.DataObject) -> None:
    true: Sequence[Any] = transcript(answer(SIGNED, {"text": "a b"}, SERVED, WIRE_CALL, stop="tool_use"))
    only_our_errors(bedrock_converse, target(), data.draw(damaged(true)))
