"""Work and memory are linear in the input: one unit repeated, fed in small chunks, at two sizes.

Work is counted in calls of functions, which no machine makes slower; memory in bytes allocated at the peak.
"""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pytest

from sigwire.adapters.plan import Plan
from sigwire.adapters.streaming import FieldReader
from sigwire.adapters.streaming.partial_json import PartialJsonParser
from sigwire.core.events import ChoiceEnd, TextDelta, collect
from sigwire.core.response import Choice
from sigwire.errors import LMError, LMUnexpectedError
from sigwire.lm.codecs.shared.choices import MOST_CHOICES
from sigwire.lm.codecs.shared.framing import make_frame_decoder
from tests.fuzz.replies import LITELLM_CHUNKS, WIRES, Wire, check, read, run_chunks
from tests.fuzz.texts import ADAPTERS, SIGNATURE
from tests.lm.codecs.streaming import sent_to
from tests.lm.litellm.test_effects import CLAUDE, Package

Job = Callable[[int], object]
"""Does something with an input of so many units."""


def calls_of(job: Job, size: int) -> int:
    """How many functions are called."""
    made = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        job(size)
    finally:
        sys.setprofile(None)
    return made


def bytes_of(job: Job, size: int) -> int:
    """How much is allocated at the peak."""
    tracemalloc.start()
    try:
        job(size)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def grows_no_faster(job: Job, size: int) -> None:
    job(2)  # what is made once
    for measure, least in ((calls_of, 400), (bytes_of, 40_000)):
        for _ in range(3):  # a thread of an earlier test may allocate meanwhile
            small, large = measure(job, size), measure(job, 2 * size)
            if large < 2.4 * small + least:
                break
        else:
            raise AssertionError((measure.__name__, small, large))


def _long(values: Iterable[str]) -> list[Any]:
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


def small_chunks(whole: str) -> list[str]:
    return [whole[at : at + 3] for at in range(0, len(whole), 3)]


# --- replies -------------------------------------------------------------------------------------------------------

BYTES = [
    b"\n",
    b"\r",
    b"data: {\n",
    b"data: 1\n\n",
    b": ping\n",
    b"event: x\n",
    b'{"a": 1}\n',
    b"[",
    b"[\n",
    b'"',
    b" ",
    b"\xff",
]


def split(data: bytes) -> None:
    for framing in ("sse", "ndjson"):
        splitter = make_frame_decoder(framing, 10_000)
        try:
            for at in range(0, len(data), 5):
                list(splitter.feed(data[at : at + 5]))
            list(splitter.close())
        except LMError:
            pass


@pytest.mark.parametrize("unit", BYTES, ids=repr)
@pytest.mark.parametrize("head", [b"", b"data: ", b"{\n"], ids=repr)
def test_work_of_framing_is_linear_in_the_bytes(head: bytes, unit: bytes) -> None:
    grows_no_faster(lambda size: split(head + unit * size), 400)


@pytest.mark.parametrize("name", ["anthropic", *_long(name for name in WIRES if name != "anthropic")])
def test_work_of_reading_an_answer_is_linear_in_its_events(name: str) -> None:
    """Each event of a true stream, many times over where it stands."""
    wire = WIRES[name]
    for at in range(len(wire.transcript)):
        grows_no_faster(partial(_answer, wire, at), 120)


def _answer(wire: Wire, at: int, size: int) -> None:
    events = [*wire.transcript[:at], *[wire.transcript[at]] * size, *wire.transcript[at + 1 :]]
    check(read(wire, [lambda: events]), len(json.dumps(events)))


def test_work_of_reading_an_answer_through_litellm_is_linear_in_its_chunks() -> None:
    for at in range(len(LITELLM_CHUNKS)):
        grows_no_faster(partial(_chunks, at), 120)


def _chunks(at: int, size: int) -> None:
    run_chunks(Package([*LITELLM_CHUNKS[:at], *[LITELLM_CHUNKS[at]] * size, *LITELLM_CHUNKS[at + 1 :]]), CLAUDE)


# --- many of one kind in a reply: choices, calls, sources -------------------------------------------------------------


class Source(dict[str, Any]):
    """A source whose comparisons are counted as calls."""

    def __eq__(self, other: object) -> bool:
        return dict.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]


def _chat(size: int, delta: Callable[[int], Any], index: Callable[[int], int] = lambda number: 0) -> list[Any]:
    chunks = [{"id": "c", "choices": [{"index": index(at), "delta": delta(at)}]} for at in range(size)]
    ends = [{"index": number, "delta": {}, "finish_reason": "stop"} for number in sorted({*map(index, range(size))})]
    return [*chunks, {"id": "c", "choices": ends}]


def _chat_call(at: int, index: int, name: str = "f") -> Any:
    return {"tool_calls": [{"index": index, "id": f"c{at}", "function": {"name": name, "arguments": "{}"}}]}


def _anthropic_calls(size: int) -> list[Any]:
    start: Any = {"type": "message_start", "message": {"id": "m", "role": "assistant", "model": "m", "content": []}}
    blocks: list[Any] = []
    for at in range(size):
        call = {"type": "tool_use", "id": f"c{at}", "name": "f", "input": {}}
        blocks += [
            {"type": "content_block_start", "index": at, "content_block": call},
            {"type": "content_block_stop", "index": at},
        ]
    return [start, *blocks, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


def _gemini(size: int, candidate: Callable[[int], Any]) -> list[Any]:
    return [{"candidates": [{"index": 0, **candidate(at)}]} for at in range(size)] + [
        {"candidates": [{"index": 0, "finishReason": "STOP"}]}
    ]


def _candidates(size: int) -> list[Any]:
    ended: Any = {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}
    return [{"candidates": [{"index": at, **ended}]} for at in range(size)]


def _gemini_sources(at: int) -> Any:
    source, support = Source(web=Source(uri=f"u{at}")), {"segment": {"text": "é", "partIndex": at, "endIndex": 2}}
    grounding = {"groundingChunks": [source], "groundingSupports": [Source(**support, groundingChunkIndices=[at])]}
    # A signature keeps each text a part of its own.
    return {"content": {"parts": [{"text": "é", "thoughtSignature": "s"}]}, "groundingMetadata": grounding}


def _responses_calls(size: int) -> list[Any]:
    calls = [
        {"type": "function_call", "id": f"i{at}", "call_id": f"c{at}", "name": "f", "arguments": "{}"}
        for at in range(size)
    ]
    done = [{"type": "response.output_item.done", "output_index": at, "item": call} for at, call in enumerate(calls)]
    return [*done, {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": calls}}]


MANY: dict[str, tuple[str, Callable[[int], list[Any]]]] = {
    "choices": ("openai_chat", lambda size: _chat(size, lambda at: {"content": "a"}, lambda at: at)),
    "choices with calls": ("openai_chat", lambda size: _chat(size, lambda at: _chat_call(at, 0), lambda at: at)),
    "calls": ("openai_chat", lambda size: _chat(size, lambda at: _chat_call(at, at))),
    "calls, every second without a name": (
        "openai_chat", lambda size: _chat(size, lambda at: _chat_call(at, at, "f" * (at % 2))),
    ),
    "calls of Messages": ("anthropic", _anthropic_calls),
    "calls of generateContent": (
        "gemini",
        lambda size: _gemini(size, lambda at: {"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}}),
    ),
    "candidates": ("gemini", _candidates),
    "sources": ("gemini", lambda size: _gemini(size, _gemini_sources)),
    "calls of Responses": ("openai_responses", _responses_calls),
}  # fmt: skip


@pytest.mark.parametrize("many", MANY)
def test_work_is_linear_in_how_many_a_reply_has(many: str) -> None:
    """Streamed, joined, and read again as a whole reply."""
    name, make = MANY[many]
    wire = WIRES[name]
    size = 200 if many.startswith("calls") else 100  # events of many calls are dear
    made = {count: make(count) for count in (2, size, 2 * size)}
    whole = {count: collect(read(wire, [partial(list, events)]).events) for count, events in made.items()}
    assert len(whole[2 * size].choices) == 2 * size or sum(map(_size_of, whole[2 * size].choices)) >= 2 * size
    grows_no_faster(lambda count: collect(read(wire, [lambda: made[count]]).events), size)
    grows_no_faster(
        lambda count: wire.codec.decode(whole[count].raw, sent_to(wire.codec, wire.target), wire.target), size
    )


def _size_of(choice: Choice) -> int:
    return len(choice.tool_calls) + len(choice.citations)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("many", ["choices", "candidates"])
def test_reply_of_more_choices_than_any_provider_gives_is_an_error(many: str, streamed: bool) -> None:
    name, make = MANY[many]
    wire = WIRES[name]
    if streamed:
        assert read(wire, [lambda: make(MOST_CHOICES + 1)]).error is LMUnexpectedError
        return
    named = "choices" if many == "choices" else "candidates"
    body = {named: [{"index": at, "message": {"content": "a"}} for at in range(MOST_CHOICES + 1)]}
    with pytest.raises(LMUnexpectedError, match=r"more than 4096 choices \(reading the reply\)\. Check"):
        wire.codec.decode(body, sent_to(wire.codec, wire.target), wire.target)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        ("", "<title"),
        ("", "<title>"),
        ("<title>", "</title"),
        ("try again in ", "1m"),
        ("try again in ", "1"),
        ("", "\n"),
    ],
)
def test_work_of_reading_an_error_text_is_not_quadratic(head: str, unit: str) -> None:
    """A search is one call, however long it takes: the text is so long that this would not end if it were a square."""
    openai = WIRES["openai_chat"]
    body = {"error": {"message": head + unit * 300_000}}
    for text in (head + unit * 300_000, json.dumps(body)):
        assert openai.codec.decode_error(500, {}, text, openai.target).status == 500


# --- texts ---------------------------------------------------------------------------------------------------------

UNITS = [
    "a",
    " ",
    "\n",
    "\\",
    "[",
    "[[ ##",
    "\n[[ ## answer ## ]]\n",
    "<",
    "<answer>",
    "</answer>",
    "<items>",
    "<think>",
    '"',
    "{",
]
OPENINGS = [
    "",
    "[[ ## answer ## ]]\n",
    "<answer>",
    '{"answer": "',
    "[[ ## items ## ]]\n[",
    "<items>[",
    '{"items": ["',
    "<think>",
]


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("opening", [OPENINGS[0], *_long(OPENINGS[1:])])
def test_work_of_streaming_outputs_is_linear_in_the_answer(adapter: str, opening: str) -> None:
    plan = ADAPTERS[adapter].plan(SIGNATURE)
    for unit in UNITS:
        grows_no_faster(partial(_stream, plan, opening, unit), 150)


def _stream(plan: Plan, opening: str, unit: str, size: int) -> None:
    reader = FieldReader(plan)
    for chunk in small_chunks(opening + unit * size):
        reader.feed(TextDelta(chunk))  # the events are discarded
    reader.feed(ChoiceEnd())


@pytest.mark.parametrize(
    "unit", ["[", '{"a":', "1", '"', '"a",', "[1],", '{"a": 1},', "\\", "\\u00e9", " ", "9.", "true"]
)
@pytest.mark.parametrize("opening", ["", "[", '["', '{"a": "', "[-"])
def test_work_of_partial_json_is_linear_in_its_length(opening: str, unit: str) -> None:
    grows_no_faster(lambda size: _parse(small_chunks(opening + unit * size)), 300)


def _parse(chunks: Iterable[str]) -> None:
    parser = PartialJsonParser()
    for chunk in chunks:
        parser.read(chunk, 0)
    parser.close()
    parser.partial_value()
