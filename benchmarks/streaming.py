"""Streams, over HTTP to a server in another process: a field in 2,000 pieces (g1), a JSON object that grows (g2).

The floor of g1 reads by hand: one plain socket, HTTP's chunks, server-sent events, json, and the section's header taken off.
What is timed is this process's CPU, and for the first piece of a field the time on the clock. For g2 the floor is sigwire
itself with a quarter of the pieces, four times: what grows with the object, and not with the pieces, shows as a ratio above 1.

Every text is checked, and of the growing object every partial value: it goes on from the one before, and is a beginning of the
whole.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import sigwire
from benchmarks.by_hand import head, request
from benchmarks.over_http import MODEL, model
from benchmarks.server import OBJECTS, WORDS, answered, notes, serving
from benchmarks.timing import FLOOR, OURS, Contestant, Job, Sampler
from sigwire import InputField, OutputField, Signature
from sigwire.core.events import FieldDelta, FieldPartial, Finished
from sigwire.core.json import JsonValue

__all__ = ["jobs"]

HEADER = "[[ ## answer ## ]]\n"
QUESTION = "When was the bridge opened?"
TEXT = "".join(WORDS).strip()


def jobs() -> Iterator[Job]:
    """g1 and g2."""
    with serving() as port, closing(asyncio.new_event_loop()) as loop, ExitStack() as opened:
        yield from fields(port, loop, opened)
        yield growing(port, opened)


# --- g1: a field in 2,000 pieces -------------------------------------------------------------------------


def fields(port: int, loop: asyncio.AbstractEventLoop, opened: ExitStack) -> Iterator[Job]:
    """The whole stream, blocking and awaited; then the time to the first piece of the field."""
    by_hand = ByHand(port, "/fields/chat/completions")
    opened.callback(by_hand.close)
    predict: Any = sigwire.Predict("question -> answer")
    predict.lm = model(port, "fields")
    opened.callback(predict.lm.close)

    def told() -> Iterator[str]:
        for event in predict.stream(question=QUESTION):
            if type(event) is FieldDelta:
                yield event.text
            elif type(event) is Finished:
                assert event.value.answer == TEXT

    async def awaited() -> str:
        return "".join([event.text async for event in predict.astream(question=QUESTION) if type(event) is FieldDelta])

    what = f"a field in {len(WORDS):,} pieces over HTTP"
    floor = answered(port, lambda: "".join(by_hand.field()), TEXT, 1)
    blocking = answered(port, lambda: "".join(told()), TEXT, 1)
    yield Job("g1", f"{what}, sync", "≤ 2.2x", {FLOOR: floor, OURS: blocking}, unit="ms")
    ours = answered(port, lambda: loop.run_until_complete(awaited()), TEXT, 1)
    yield Job("g1", "the same, async; floor sync", "≤ 2.2x", {FLOOR: floor, OURS: ours}, unit="ms")
    first: dict[Contestant, Callable[[], Iterator[str]]] = {floor: by_hand.field, blocking: told}
    yield Job(
        "g1",
        "the first piece of the field, on the clock",
        "≤ 3 ms",
        {FLOOR: floor, OURS: blocking},
        unit="ms",
        sample=to_the_first(first),
    )


def to_the_first(streams: dict[Contestant, Callable[[], Iterator[str]]]) -> Sampler:
    """A sampler for the time until a stream tells its first piece; the rest is read before the next one begins."""

    def sample(contestant: Contestant) -> float:
        start = time.perf_counter()
        pieces = streams[contestant]()
        next(pieces)
        taken = time.perf_counter() - start
        for _ in pieces:
            pass
        return taken

    return sample


class ByHand:
    """A chat completion, streamed and read with nothing around it."""

    def __init__(self, port: int, path: str) -> None:
        self._before = head(port, path)
        self._connection = socket.create_connection(("127.0.0.1", port))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def field(self) -> Generator[str]:
        """The text of the only section, in pieces as they come."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "stream": True}
        self._connection.sendall(request(self._before, json.dumps(body).encode()))
        held = begun = ""
        for text in self._deltas():
            held += text
            if not begun:
                _, _, begun = held.partition(HEADER)
                held = begun.lstrip() or held
            if begun.strip() and "\n" not in held and (piece := held.rstrip()):
                held = held[len(piece) :]
                yield piece
        if rest := held.partition("[[ ## completed ## ]]")[0].rstrip():
            yield rest

    def _deltas(self) -> Generator[str]:
        for event in self._events():
            for choice in json.loads(event)["choices"]:
                if text := choice["delta"].get("content"):
                    yield text

    def _events(self) -> Generator[bytes]:
        """Server-sent events of one line each."""
        held = b""
        for chunk in self._chunks():
            *lines, held = (held + chunk).split(b"\n\n")
            for line in lines:
                if line != b"data: [DONE]":
                    yield line[6:]

    def _chunks(self) -> Generator[bytes]:
        """The chunks of the reply, those that are there at once as one."""
        data = self._connection.recv(65536)
        while (end := data.find(b"\r\n\r\n") + 4) < 4:
            data += self._connection.recv(65536)
        data = data[end:]
        length = -1
        while length:
            whole, at = list[bytes](), 0
            while length and (line := data.find(b"\r\n", at)) >= 0:
                length = int(data[at:line], 16)
                if len(data) < line + 4 + length:
                    break
                whole.append(data[line + 2 : line + 2 + length])
                at = line + 4 + length
            yield b"".join(whole)
            data = data[at:] + (self._connection.recv(65536) if length else b"")


# --- g2: a JSON object that grows --------------------------------------------------------------------------


class Notes(Signature):
    """Write notes."""

    question: str = InputField()
    notes: list[dict[str, Any]] = OutputField()


def growing(port: int, opened: ExitStack) -> Job:
    """An object of many pieces; the floor does a quarter of them four times."""
    few, many = OBJECTS
    streams = {size: object_stream(port, size, opened) for size in OBJECTS}
    for size in OBJECTS:
        answered(port, partial(checked_object, streams[size], size), True, 1)

    def quarters() -> None:
        for _ in range(many // few):
            read(streams[few]())

    what = f"a JSON object of {many:,} pieces, a piece (floor: sigwire with {few:,})"
    contestants: dict[str, Contestant] = {FLOOR: quarters, OURS: lambda: read(streams[many]())}
    return Job("g2", what, "linear: ≤ 1.2x", contestants, per=many)


def object_stream(port: int, size: int, opened: ExitStack) -> Callable[[], Iterator[Any]]:
    predict: Any = sigwire.Predict(Notes)
    predict.lm = model(port, f"object/{size}")
    opened.callback(predict.lm.close)

    def stream() -> Iterator[Any]:
        with sigwire.context(adapter=sigwire.JSONAdapter()):
            yield from predict.stream(question=QUESTION)

    return stream


def read(events: Iterator[Any]) -> None:
    """As a program would: every partial value is looked at."""
    for event in events:
        if type(event) is FieldPartial:
            assert event.value is not None


def checked_object(stream: Callable[[], Iterator[Any]], size: int) -> bool:
    """Whether every partial value goes on from the one before, and the last is the whole."""
    whole: JsonValue = notes(size)
    before: JsonValue = []
    count = 0
    for event in stream():
        if type(event) is FieldPartial:
            assert begins(before, event.value)
            assert begins(event.value, whole)
            before, count = event.value, count + 1
        elif type(event) is Finished:
            assert event.value.notes == whole
    return before == whole and count > size // 14


def begins(beginning: JsonValue, whole: JsonValue) -> bool:
    """Whether a JSON value is a beginning of another: fewer items at the end, and the last one a beginning itself."""
    if isinstance(beginning, dict) and isinstance(whole, dict):
        return [*beginning] == [*whole][: len(beginning)] and all(
            begins(beginning[key], whole[key]) for key in beginning
        )
    if isinstance(beginning, list) and isinstance(whole, list):
        return len(beginning) <= len(whole) and all(map(begins, beginning, whole))
    if isinstance(beginning, str) and isinstance(whole, str):
        return whole.startswith(beginning)
    return beginning == whole
