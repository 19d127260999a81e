"""Streams over HTTP from a server in another process: a field in 2,000 deltas (g1), a long JSON object (g2).

The floor of g1 reads by hand: one plain socket, HTTP's chunks, server-sent events, json, and the section's header removed.
The times are CPU of this process, and wall time for the first delta of a field. The floor of g2 is sigwire with a quarter of
the deltas, four times: a cost per delta that grows with the object gives a ratio above 1.

Every text is checked, and every partial value of the object: each extends the one before and is a prefix of the whole.
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
from benchmarks.timing import FLOOR, SIGWIRE, Contestant, Job, Sampler
from sigwire import InputField, OutputField, Signature
from sigwire.core.events import FieldDelta, FieldPartial, Finished
from sigwire.core.json import JsonValue

__all__ = ["jobs"]

HEADER = "[[ ## answer ## ]]\n"
QUESTION = "When was the bridge opened?"
TEXT = "".join(WORDS).strip()


def jobs() -> Iterator[Job]:
    """Yield g1 and g2."""
    with serving() as port, closing(asyncio.new_event_loop()) as loop, ExitStack() as opened:
        yield from fields(port, loop, opened)
        yield long_object(port, opened)


# --- g1: a field in 2,000 deltas -------------------------------------------------------------------------


def fields(port: int, loop: asyncio.AbstractEventLoop, opened: ExitStack) -> Iterator[Job]:
    """Yield the whole stream, blocking and awaited; then the time to the first delta of the field."""
    by_hand = ByHand(port, "/fields/chat/completions")
    opened.callback(by_hand.close)
    predict: Any = sigwire.Predict("question -> answer")
    predict.lm = model(port, "fields")
    opened.callback(predict.lm.close)

    def field_deltas() -> Iterator[str]:
        for event in predict.stream(question=QUESTION):
            if type(event) is FieldDelta:
                yield event.text
            elif type(event) is Finished:
                assert event.value.answer == TEXT

    async def awaited() -> str:
        return "".join([event.text async for event in predict.astream(question=QUESTION) if type(event) is FieldDelta])

    what = f"a field in {len(WORDS):,} deltas over HTTP"
    floor = answered(port, lambda: "".join(by_hand.field()), TEXT, 1)
    blocking = answered(port, lambda: "".join(field_deltas()), TEXT, 1)
    yield Job("g1", f"{what}, sync", "≤ 2.2x", {FLOOR: floor, SIGWIRE: blocking}, unit="ms")
    awaiting = answered(port, lambda: loop.run_until_complete(awaited()), TEXT, 1)
    yield Job("g1", "the same, async; floor sync", "≤ 2.2x", {FLOOR: floor, SIGWIRE: awaiting}, unit="ms")
    first: dict[Contestant, Callable[[], Iterator[str]]] = {floor: by_hand.field, blocking: field_deltas}
    yield Job(
        "g1",
        "the first delta of the field, wall time",
        "≤ 3 ms",
        {FLOOR: floor, SIGWIRE: blocking},
        unit="ms",
        sample=to_the_first(first),
    )


def to_the_first(streams: dict[Contestant, Callable[[], Iterator[str]]]) -> Sampler:
    """Return a sampler of the time until a stream's first delta. The rest is read before the next stream starts."""

    def sample(contestant: Contestant) -> float:
        start = time.perf_counter()
        deltas = streams[contestant]()
        next(deltas)
        taken = time.perf_counter() - start
        for _ in deltas:
            pass
        return taken

    return sample


class ByHand:
    """A chat completion, streamed and read by hand."""

    def __init__(self, port: int, path: str) -> None:
        self._before = head(port, path)
        self._connection = socket.create_connection(("127.0.0.1", port))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def field(self) -> Generator[str]:
        """Yield the text of the only section, as deltas."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "stream": True}
        self._connection.sendall(request(self._before, json.dumps(body).encode()))
        held = section = ""
        for text in self._deltas():
            held += text
            if not section:
                _, _, section = held.partition(HEADER)
                held = section.lstrip() or held
            if section.strip() and "\n" not in held and (delta := held.rstrip()):
                held = held[len(delta) :]
                yield delta
        if rest := held.partition("[[ ## completed ## ]]")[0].rstrip():
            yield rest

    def _deltas(self) -> Generator[str]:
        for event in self._events():
            for choice in json.loads(event)["choices"]:
                if text := choice["delta"].get("content"):
                    yield text

    def _events(self) -> Generator[bytes]:
        """Yield server-sent events of one line each."""
        held = b""
        for chunk in self._chunks():
            *lines, held = (held + chunk).split(b"\n\n")
            for line in lines:
                if line != b"data: [DONE]":
                    yield line[6:]

    def _chunks(self) -> Generator[bytes]:
        """Yield the chunks of the reply; chunks received together are joined."""
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


# --- g2: a long JSON object --------------------------------------------------------------------------------


class Notes(Signature):
    """Write notes."""

    question: str = InputField()
    notes: list[dict[str, Any]] = OutputField()


def long_object(port: int, opened: ExitStack) -> Job:
    """Return the job of an object in many deltas. The floor reads a quarter of the deltas four times."""
    few, many = OBJECTS
    streams = {size: object_stream(port, size, opened) for size in OBJECTS}
    for size in OBJECTS:
        answered(port, partial(checked_object, streams[size], size), True, 1)

    def quarters() -> None:
        for _ in range(many // few):
            read(streams[few]())

    what = f"a JSON object of {many:,} deltas, per delta (floor: sigwire with {few:,})"
    contestants: dict[str, Contestant] = {FLOOR: quarters, SIGWIRE: lambda: read(streams[many]())}
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
    """Read the events as a program does: every partial value is used."""
    for event in events:
        if type(event) is FieldPartial:
            assert event.value is not None


def checked_object(stream: Callable[[], Iterator[Any]], size: int) -> bool:
    """Return True if every partial value extends the one before and the last is the whole."""
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
    """Return True if a JSON value is a prefix of another: fewer items, and the last item is a prefix."""
    if isinstance(beginning, dict) and isinstance(whole, dict):
        return [*beginning] == [*whole][: len(beginning)] and all(
            begins(beginning[key], whole[key]) for key in beginning
        )
    if isinstance(beginning, list) and isinstance(whole, list):
        return len(beginning) <= len(whole) and all(map(begins, beginning, whole))
    if isinstance(beginning, str) and isinstance(whole, str):
        return whole.startswith(beginning)
    return beginning == whole
