"""Replies that break on their way, over real sockets: whole and streamed, blocking and awaited, on every wire.

A server writes a good reply with one fault (``FAULTS``), in random packets, and then closes, resets or keeps the connection.
Every call returns the right answer or raises an ``LMError``, by its deadline. The partial answer is part of the right answer.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest

from sigwire.core.events import collect
from sigwire.core.response import Choice, Response
from sigwire.errors import LMError
from sigwire.lm.client import LM
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.transport import HttpTransport
from sigwire.testing import FakeProvider
from sigwire.testing.places import PLACES
from tests.lm.test_streaming import CALL, MODELS, TOOLS, WIRES
from tests.patience import PATIENCE

ANSWER = Choice("Let me add: 1 and 2. Ä🙂\n\n", (CALL,), finish_reason="tool_calls")
DEADLINE = 0.3  # seconds, of calls whose server keeps the connection open
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n"


# --- good replies --------------------------------------------------------------------------------------


class Recorder(HttpTransport):
    """A transport that keeps the bytes of its last reply."""

    body = b""

    def send(self, request: HttpRequest) -> HttpReply:
        reply = super().send(request)
        self.body = reply.body
        return reply

    @contextmanager
    def stream(self, request: HttpRequest) -> Generator[Any]:
        with super().stream(request) as reply:
            self.body = b"".join(reply)
            yield type("Reply", (list,), {"status": reply.status, "headers": reply.headers})([self.body])


@cache
def good_body(wire: str, streamed: bool) -> bytes:
    with FakeProvider([ANSWER]) as provider, Recorder() as recorder:
        lm = model(wire, provider.url(wire), recorder)
        assert essence(stream(lm) if streamed else lm.respond(TOOLS)) == essence(Response((ANSWER,)))
        return recorder.body


def model(wire: str, url: str, transport: HttpTransport, timeout: float | None = None) -> LM:
    return LM(
        MODELS[wire],
        base_url=url,
        api_key="k",
        transport=transport,
        timeout=timeout,
        num_retries=0,
        **WIRES.get(wire, {}),
    )


def essence(response: Response) -> tuple[object, ...]:
    (choice,) = response.choices
    calls = [(call.name, call.arguments) for call in choice.tool_calls]
    return choice.text, calls, choice.finish_reason


# --- faults --------------------------------------------------------------------------------------------


@dataclass
class Fault:
    """The bytes of a reply and its end: "close", "reset", "stay" or "drip" (one byte now and then)."""

    data: bytes
    end: str = "close"


GARBAGE = [
    b"Internal Server Error",
    b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
    b"zz\r\n{}",
    b"\r\n\r\n",
    b"\0\xff",
]
SIZES = [b"fffffffffffffffff", b"-1", b"0x5", b"", b"5 5", b"g", b"0", b"7fffffff"]


def pieces_of(random: Random, data: bytes, most: int = 6) -> list[bytes]:
    edges = sorted({0, len(data), *(random.randrange(len(data)) for _ in range(random.randrange(most)))})
    return [data[start:end] for start, end in pairwise(edges)]


def chunks_of(random: Random, body: bytes) -> list[list[bytes]]:
    return [[b"%x" % len(piece), b"\r\n", piece, b"\r\n"] for piece in pieces_of(random, body)]


def chunked(chunks: list[list[bytes]], head: bytes = b"") -> bytes:
    framed = b"".join(b"".join(chunk) for chunk in chunks)
    return HEAD % b"text/event-stream" + head + b"transfer-encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"


def measured(body: bytes, length: object) -> bytes:
    return HEAD % b"application/json" + f"content-length: {length}\r\n\r\n".encode() + body


def framed(random: Random, body: bytes) -> bytes:
    until_close = HEAD % b"application/json" + b"\r\n" + body
    return random.choice([chunked(chunks_of(random, body)), measured(body, len(body)), until_close])


def cut(random: Random, body: bytes) -> Fault:
    data = framed(random, body)
    return Fault(data[: random.randrange(len(data))], random.choice(["close", "reset", "stay"]))


def garbage(random: Random, body: bytes) -> Fault:
    data = framed(random, body)
    return Fault(data[: random.randrange(len(data))] + random.choice(GARBAGE), random.choice(["close", "stay"]))


def wrong_chunk_size(random: Random, body: bytes) -> Fault:
    chunks = chunks_of(random, body)
    chunk = random.choice(chunks)
    chunk[0] = random.choice([*SIZES, b"%x" % (len(chunk[2]) + 1), b"%x" % (len(chunk[2]) - 1)])
    return Fault(chunked(chunks), random.choice(["close", "stay"]))


def missing_line_end(random: Random, body: bytes) -> Fault:
    chunks = chunks_of(random, body)
    random.choice(chunks)[random.choice([1, 3])] = random.choice([b"", b"\n", b"\r"])
    return Fault(chunked(chunks), random.choice(["close", "stay"]))


def wrong_length(random: Random, body: bytes) -> Fault:
    length = random.choice([len(body) - random.randrange(1, len(body)), len(body) + 1, 10**15, -1, "", "1, 2", 10**30])
    return Fault(measured(body, length), random.choice(["close", "stay"]))


def two_framings(random: Random, body: bytes) -> Fault:
    return Fault(chunked(chunks_of(random, body), b"content-length: 3\r\n"))


def broken_gzip(random: Random, body: bytes) -> Fault:
    packed = gzip.compress(body)
    place = random.randrange(len(packed) - 8, len(packed))  # the checksum and the length
    flipped = packed[:place] + bytes([packed[place] ^ 1]) + packed[place + 1 :]
    packed = random.choice([flipped, packed[: random.randrange(1, len(packed))], body, b"\x1f\x8b" + body])
    return Fault(chunked(chunks_of(random, packed), b"content-encoding: gzip\r\n"))


def trickle(random: Random, body: bytes) -> Fault:
    return Fault(framed(random, body)[: random.randrange(200)], "drip")


FAULTS: list[Callable[[Random, bytes], Fault]] = [
    cut, cut, garbage, garbage, wrong_chunk_size, wrong_chunk_size, missing_line_end, wrong_length, two_framings,
    broken_gzip, trickle,
]  # fmt: skip


# --- the server ----------------------------------------------------------------------------------------


class Server:
    """Answers a request to ``/<name>/...`` with the fault of that name, and any other with a good reply.

    ``lifetime``: the requests that a connection answers; the next one ends it with a close or, if ``resets``, a reset.
    """

    def __init__(self) -> None:
        self.lifetime, self.resets = 10**9, False
        self.faults: dict[str, tuple[Random, Fault]] = {}
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._socket.getsockname()[1]
        self._ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, wire: str, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}{PLACES[wire].base}"

    def close(self) -> None:
        self._ended.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError), connection.makefile("rb") as reader:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answered = 0
            while name := self._read_request(reader):
                if answered == self.lifetime:
                    self._end(connection, "reset" if self.resets else "close")
                    return
                answered += 1
                if name not in self.faults:
                    wire, streamed = name.rsplit("-", 1)
                    body = good_body(wire, streamed == "True")
                    connection.sendall(measured(body, len(body)))
                    continue
                random, fault = self.faults[name]
                for piece in pieces_of(random, fault.data) if fault.data else []:
                    connection.sendall(piece)
                self._end(connection, fault.end)
                return

    @staticmethod
    def _read_request(reader: Any) -> str:
        first, length = reader.readline(), 0
        while (line := reader.readline().lower()) not in (b"\r\n", b""):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        reader.read(length)
        return urlsplit(first.split()[1].decode()).path.split("/")[1] if first else ""

    def _end(self, connection: socket.socket, end: str) -> None:
        if end == "stay":
            connection.recv(1)  # until the client closes
        elif end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        while end == "drip" and not self._ended.wait(0.02):
            connection.sendall(b" ")


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as server:
        yield server


# --- calls ---------------------------------------------------------------------------------------------


def stream(lm: LM) -> Response:
    events = lm.stream(TOOLS)
    try:
        while True:
            next(events)
    except StopIteration as end:
        return end.value


async def astream(lm: LM) -> Response:
    return collect([event async for event in lm.astream(TOOLS)])


async def perform(lm: LM, how: str) -> Response:
    if how in ("respond", "stream"):
        call = (lambda: lm.respond(TOOLS)) if how == "respond" else (lambda: stream(lm))
        return await asyncio.get_running_loop().run_in_executor(_threads, call)
    return await (lm.arespond(TOOLS) if how == "arespond" else astream(lm))


_threads = ThreadPoolExecutor(64)
HOWS = ["respond", "arespond", "stream", "astream"]


async def check(server: Server, transport: HttpTransport, wire: str, how: str, seed: int) -> None:
    """Make one call whose reply breaks, and judge its outcome."""
    random, name = Random(f"{wire} {how} {seed}"), f"{wire}-{how}-{seed}"
    make = random.choice(FAULTS)
    fault = make(random, good_body(wire, "stream" in how))
    server.faults[name] = random, fault
    limit = DEADLINE if fault.end in ("stay", "drip") else 2 * PATIENCE
    about = f"{name}: {make.__name__}, then {fault.end}: {fault.data!r}"
    call = asyncio.ensure_future(perform(model(wire, server.url(wire, name), transport, limit), how))
    start = time.monotonic()
    await asyncio.wait([call], timeout=PATIENCE)
    assert call.done(), f"hangs after {time.monotonic() - start:.1f} s: {about}"
    error = call.exception()
    if error is None:
        assert essence(call.result()) == essence(Response((ANSWER,))), about
        return
    assert isinstance(error, LMError), about
    if make in (wrong_chunk_size, missing_line_end):  # sizes of chunks among the data can hide an event
        return
    for choice in error.partial.choices if error.partial is not None else ():
        assert ANSWER.text.startswith(choice.text), about
        assert all(
            (each.name, each.arguments) == (CALL.name, CALL.arguments) for each in choice.tool_calls if not each.error
        ), about


async def check_all(server: Server, seeds: range) -> None:
    slots = asyncio.Semaphore(48)

    async def bounded(*case: Any) -> None:
        async with slots:
            await check(server, transport, *case)

    async with HttpTransport() as transport:
        await asyncio.gather(*(bounded(wire, how, seed) for wire in MODELS for how in HOWS for seed in seeds))
        for wire in MODELS:  # no broken reply is left on a connection
            for how in HOWS:
                lm = model(wire, server.url(wire, f"{wire}-{'stream' in how}"), transport)
                assert essence(await perform(lm, how)) == essence(Response((ANSWER,)))


async def test_broken_reply_gives_the_right_answer_or_an_error_by_the_deadline(server: Server) -> None:
    await check_all(server, range(6))


@pytest.mark.long
@pytest.mark.parametrize("start", range(1000, 1300, 100))
async def test_any_broken_reply_gives_the_right_answer_or_an_error_by_the_deadline(server: Server, start: int) -> None:
    await check_all(server, range(start, start + 100))


# --- connections that die while they are kept ----------------------------------------------------------


@pytest.mark.parametrize("resets", [False, True], ids=["close", "reset"])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("wire", MODELS)
async def test_reused_connection_that_dies_before_a_reply_is_redialled_at_once(
    server: Server, wire: str, how: str, resets: bool
) -> None:
    server.lifetime, server.resets = 1, resets
    async with HttpTransport() as transport:
        lm = model(wire, server.url(wire, f"{wire}-{'stream' in how}"), transport)  # num_retries=0
        for number in range(4):
            response = await perform(lm, how)
            assert essence(response) == essence(Response((ANSWER,)))
            attempts = [(attempt.purpose, attempt.error) for attempt in response.attempts]
            if how != "astream":  # an asynchronous generator has no value
                assert attempts == ([("ask", "connection"), ("redial", None)] if number else [("ask", None)])
        for _ in range(2):  # several connections are kept, and all of them die
            responses = await asyncio.gather(*(perform(lm, how) for _ in range(4)))
            assert {essence(response)[0] for response in responses} == {ANSWER.text}
