"""The HTTP client alone, over loopback: sync (t1), 64 tasks (t2), a stream of 2,000 events (t3 sync, t4 async).

python -m benchmarks.transport                what a call costs, beside a socket used by hand and other clients, where installed
python -m benchmarks.transport --rounds 5

The server is a process of its own (``python -m benchmarks.transport serve``), so what is timed is the client's CPU. The
floor sends prepared bytes and looks only for the length of the answer. Every answer is checked.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import importlib
import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.timing import FLOOR, OURS, Contestant, Job, measure, table
from sigwire.lm.transport import HttpRequest, HttpTransport

__all__ = ["jobs"]

TASKS, CALLS_PER_TASK, EVENTS = 64, 10, 2_000
HEADERS = {"content-type": "application/json", "authorization": "Bearer benchmark"}
BODY = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "When was the bridge opened? " * 40}]}
).encode()
ANSWER = json.dumps(
    {"choices": [{"message": {"role": "assistant", "content": "In 1932. " * 30}}], "usage": {}}
).encode()
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":" bridge"}}]}\n\n'
REPLY = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: r\r\ncontent-length: %d\r\n\r\n" % len(
    ANSWER
)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


# --- the server ----------------------------------------------------------------------------------------


class Answering(asyncio.Protocol):
    """Answers every request; to /stream with events, each in a chunk and a write of its own."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, separator, body = self.received.partition(b"\r\n\r\n")
        if separator and len(body) >= len(BODY):
            self.received = body[len(BODY) :]
            if head.startswith(b"POST /stream"):
                self.stream()
            else:
                self.transport.write(REPLY + ANSWER)

    def stream(self) -> None:
        self.transport.write(STREAM_HEAD)
        for _ in range(EVENTS):
            self.transport.write(b"%x\r\n%b\r\n" % (len(EVENT), EVENT))
        self.transport.write(b"0\r\n\r\n")


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def serving() -> Generator[int]:
    command = [sys.executable, "-m", "benchmarks.transport", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


# --- by hand -------------------------------------------------------------------------------------------


def prepared(port: int, path: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"host: 127.0.0.1:{port}", *(f"{name}: {HEADERS[name]}" for name in HEADERS)]
    return "\r\n".join([*lines, f"content-length: {len(BODY)}", "", ""]).encode() + BODY


def floor_send(port: int) -> Callable[[], bytes]:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = prepared(port, "/")

    def send() -> bytes:
        connection.sendall(request)
        data = connection.recv(65536)
        while len(data) < len(REPLY) + length_of(data):
            data += connection.recv(65536)
        return data[len(REPLY) :]

    return send


def length_of(data: bytes) -> int:
    start = data.index(b"content-length: ") + 16
    return int(data[start : data.index(b"\r\n", start)])


def floor_stream(port: int) -> Callable[[], bytes]:
    connection = socket.create_connection(("127.0.0.1", port))
    request = prepared(port, "/stream")

    def read() -> bytes:
        connection.sendall(request)
        pieces, tail = list[bytes](), b""
        while tail != b"\r\n0\r\n\r\n":
            pieces.append(connection.recv(65536))
            tail = (tail + pieces[-1])[-7:]
        return b"".join(line + b"\n\n" for line in b"".join(pieces).split(b"\r\n") if line.startswith(b"data"))

    return lambda: read().replace(b"\n\n\n\n", b"\n\n")


class ByHand(asyncio.Protocol):
    """One request at a time, one answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.data = b""
        self.waiting: asyncio.Future[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        self.data += data
        if self.waiting and len(self.data) >= len(REPLY) + length_of(self.data):
            body, self.data = self.data[len(REPLY) :], b""
            self.waiting.set_result(body)

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        self.waiting = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self.waiting


# --- contestants ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Client:
    """What a client can do here; what it cannot is ``None``. Async ones are made on the loop that uses them."""

    send: Callable[[int], Callable[[], bytes]] | None = None
    asend: Callable[[int], contextlib.AbstractAsyncContextManager[Callable[[], Awaitable[bytes]]]] | None = None
    stream: Callable[[int], Callable[[], bytes]] | None = None
    astream: Callable[[int], contextlib.AbstractAsyncContextManager[Callable[[], Awaitable[bytes]]]] | None = None


@contextlib.asynccontextmanager
async def floor_asend(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    loop, request = asyncio.get_running_loop(), prepared(port, "/")
    idle: list[ByHand] = []

    async def send() -> bytes:
        connection = idle.pop() if idle else (await loop.create_connection(ByHand, "127.0.0.1", port))[1]
        body = await connection.ask(request)
        idle.append(connection)
        return body

    yield send
    for connection in idle:
        connection.transport.close()


def ours_send(port: int) -> Callable[[], bytes]:
    transport = HttpTransport()
    return lambda: transport.send(HttpRequest(f"http://127.0.0.1:{port}/", HEADERS, BODY)).body


@contextlib.asynccontextmanager
async def ours_asend(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    async with HttpTransport() as transport:

        async def send() -> bytes:
            return (await transport.asend(HttpRequest(f"http://127.0.0.1:{port}/", HEADERS, BODY))).body

        yield send


def ours_stream(port: int) -> Callable[[], bytes]:
    transport = HttpTransport()

    def read() -> bytes:
        with transport.stream(HttpRequest(f"http://127.0.0.1:{port}/stream", HEADERS, BODY)) as stream:
            return b"".join(stream)

    return read


@contextlib.asynccontextmanager
async def ours_astream(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    async with HttpTransport() as transport:

        async def read() -> bytes:
            async with transport.astream(HttpRequest(f"http://127.0.0.1:{port}/stream", HEADERS, BODY)) as stream:
                return b"".join([piece async for piece in stream])

        yield read


def standard_send(port: int) -> Callable[[], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port)

    def send() -> bytes:
        connection.request("POST", "/", BODY, HEADERS)
        return connection.getresponse().read()

    return send


def urllib3_send(port: int) -> Callable[[], bytes]:
    pool: Any = importlib.import_module("urllib3").PoolManager()
    options = {"body": BODY, "headers": HEADERS, "retries": False, "redirect": False}
    return lambda: bytes(pool.request("POST", f"http://127.0.0.1:{port}/", **options).data)


def pyreqwest_send(port: int) -> Callable[[], bytes]:
    client: Any = importlib.import_module("pyreqwest.client").SyncClientBuilder().build()
    return lambda: bytes(
        client.post(f"http://127.0.0.1:{port}/").headers(HEADERS).body_bytes(BODY).build().send().bytes()
    )


@contextlib.asynccontextmanager
async def pyreqwest_asend(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    client: Any = importlib.import_module("pyreqwest.client").ClientBuilder().build()

    async def send() -> bytes:
        answer = await client.post(f"http://127.0.0.1:{port}/").headers(HEADERS).body_bytes(BODY).build().send()
        return bytes(await answer.bytes())

    yield send
    await client.close()


@contextlib.asynccontextmanager
async def pyreqwest_astream(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    client: Any = importlib.import_module("pyreqwest.client").ClientBuilder().build()

    async def read() -> bytes:
        request = client.post(f"http://127.0.0.1:{port}/stream").headers(HEADERS).body_bytes(BODY).build_streamed()
        pieces: list[bytes] = []
        async with request as answer:
            while (piece := await answer.body_reader.read_chunk()) is not None:
                pieces.append(bytes(piece))
        return b"".join(pieces)

    yield read
    await client.close()


@contextlib.asynccontextmanager
async def aiohttp_asend(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    aiohttp: Any = importlib.import_module("aiohttp")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def send() -> bytes:
            async with session.post(f"http://127.0.0.1:{port}/", data=BODY, headers=HEADERS) as answer:
                body: bytes = await answer.read()
            return body

        yield send


@contextlib.asynccontextmanager
async def aiohttp_astream(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    aiohttp: Any = importlib.import_module("aiohttp")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def read() -> bytes:
            async with session.post(f"http://127.0.0.1:{port}/stream", data=BODY, headers=HEADERS) as answer:
                return b"".join([piece async for piece in answer.content.iter_any()])

        yield read


CLIENTS = {
    FLOOR: Client(floor_send, floor_asend, floor_stream),
    OURS: Client(ours_send, ours_asend, ours_stream, ours_astream),
    "http.client": Client(standard_send),
    "aiohttp": Client(asend=aiohttp_asend, astream=aiohttp_astream),
    "urllib3": Client(urllib3_send),
    "pyreqwest": Client(pyreqwest_send, pyreqwest_asend, astream=pyreqwest_astream),
}


# --- the jobs ------------------------------------------------------------------------------------------


def jobs(port: int) -> Iterator[Job]:
    """t1 to t4."""
    here = {name: client for name, client in CLIENTS.items() if name in (FLOOR, OURS) or _is_installed(name)}
    sends = {name: checked(client.send(port), ANSWER) for name, client in here.items() if client.send}
    yield Job("t1", "one request, sync", "", sends)
    loop = asyncio.new_event_loop()
    tasks = {name: together(loop, client.asend, port) for name, client in here.items() if client.asend}
    yield Job("t2", f"the same, {TASKS} tasks", "", tasks, per=TASKS * CALLS_PER_TASK)
    streams = {name: checked(client.stream(port), EVENT * EVENTS) for name, client in here.items() if client.stream}
    yield Job("t3", f"a stream of {EVENTS:,} events, sync", "", streams, unit="ms")
    awaited = {name: alone(loop, client.astream, port) for name, client in here.items() if client.astream}
    yield Job("t4", "the same, async; floor sync", "", {FLOOR: streams[FLOOR], **awaited}, unit="ms")
    loop.close()


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def checked(contestant: Callable[[], bytes], answer: bytes) -> Contestant:
    """The contestant, once its answer was seen to be right."""
    assert contestant() == answer
    return contestant


Opened = Callable[[int], contextlib.AbstractAsyncContextManager[Callable[[], Awaitable[bytes]]]]


async def stays_open(opened: Opened, port: int) -> Callable[[], Awaitable[bytes]]:
    """The client, open as long as the process lives."""
    manager = opened(port)
    OPEN.append(manager)
    return await manager.__aenter__()


OPEN: list[object] = []


def together(loop: asyncio.AbstractEventLoop, opened: Opened, port: int) -> Contestant:
    """Many tasks at once, each of which makes several calls with one client."""
    send = loop.run_until_complete(stays_open(opened, port))

    async def one() -> None:
        for _ in range(CALLS_PER_TASK):
            assert await send() == ANSWER

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(TASKS)))

    return lambda: loop.run_until_complete(all_of_them())


def alone(loop: asyncio.AbstractEventLoop, opened: Opened, port: int) -> Contestant:
    """One stream after the other."""
    read = loop.run_until_complete(stays_open(opened, port))

    async def once() -> bytes:
        return await read()

    return checked(lambda: loop.run_until_complete(once()), EVENT * EVENTS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transport", description="The HTTP client alone.")
    parser.add_argument("what", nargs="?", choices=["serve"], help="be the server of the benchmark")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if arguments.what == "serve":
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve())
        return
    with serving() as port:
        print(table([measure(job, arguments.rounds) for job in jobs(port)]))


if __name__ == "__main__":
    main()
