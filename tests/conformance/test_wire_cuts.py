"""Recorded streams of every wire, cut into chunks of any size: the events do not change."""

from __future__ import annotations

import random
import re

import pytest

from sigwire.core.json import JsonValue
from sigwire.lm.codecs.shared.framing import make_frame_decoder
from sigwire.lm.codecs.shared.interface import Framing
from tests.conformance.recordings import Exchange, recorded

FILES: dict[str, Framing] = {
    "anthropic-messages": "sse",
    "gemini": "sse",
    "ollama-chat": "ndjson",
    "openai-chat": "sse",
    "openai-responses": "sse",
}
RECORDED = {name: recorded(f"{name}-stream.jsonl") for name in FILES}

pytestmark = pytest.mark.skipif(not any(RECORDED.values()), reason="no recorded traffic; set SIGWIRE_FIXTURES")


def events(chunks: list[bytes], framing: Framing) -> list[JsonValue]:
    splitter = make_frame_decoder(framing)
    return [event for chunk in chunks for event in splitter.feed(chunk)] + [*splitter.close()]


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def cut_at_random(data: bytes, most: int) -> list[bytes]:
    numbers, start = random.Random(most), 0
    chunks: list[bytes] = []
    while start < len(data):
        end = start + numbers.randint(0, most)
        chunks.append(data[start:end])
        start = end
    return chunks


@pytest.mark.parametrize("name", FILES)
def test_recorded_stream_gives_the_same_events_at_any_cut(name: str) -> None:
    for exchange in RECORDED[name]:
        data = text_of(exchange)
        whole = events([data], FILES[name])
        assert whole
        for chunks in (cut(data, 7), cut_at_random(data, 50), *([cut(data, 1)] if len(data) < 20_000 else ())):
            assert events(chunks, FILES[name]) == whole, exchange["id"]


@pytest.mark.parametrize("name", FILES)
def test_other_line_ends_and_comments_give_the_same_events(name: str) -> None:
    for exchange in RECORDED[name]:
        lines = text_of(exchange).replace(b"\r\n", b"\n")
        whole = events([lines], FILES[name])
        assert events(cut(lines.replace(b"\n", b"\r\n"), 9), FILES[name]) == whole
        if FILES[name] == "sse":
            assert events(cut(lines.replace(b"\n", b"\r"), 9), "sse") == whole
            bare = re.sub(rb"^data: ", b"data:", lines.lstrip(), flags=re.MULTILINE)
            assert events(cut(b"\xef\xbb\xbf: ping\n\n" + bare, 9), "sse") == whole


def text_of(exchange: Exchange) -> bytes:
    return str(exchange["response"]).encode()
