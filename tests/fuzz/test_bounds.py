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
from sigwire.core.events import ChoiceEnd, TextDelta
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.framing import make_frame_decoder
from tests.fuzz.replies import LITELLM_CHUNKS, WIRES, Wire, check, read, run_chunks
from tests.fuzz.texts import ADAPTERS, SIGNATURE
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
        small, large = measure(job, size), measure(job, 2 * size)
        assert large < 2.4 * small + least, (measure.__name__, small, large)


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
