"""The HTTP client alone, over loopback: sync (t1), 64 tasks (t2), a stream of 2,000 events (t3 sync, t4 async).

The cost of a call beside a plain socket and other installed clients. The server is a separate process, so the times are CPU of
the client. The floor parses only the length of the answer. Every answer is checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib
import importlib.util
import json
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.by_hand import HEADERS, AsyncSender, Sender, head
from benchmarks.server import ANSWER, EVENT, EVENTS, serving
from benchmarks.timing import FLOOR, SIGWIRE, Contestant, Job
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport

__all__ = ["jobs"]

TASKS, CALLS_PER_TASK = 64, 10
BODY = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "When was the bridge opened? " * 40}]}
).encode()


# --- by hand -------------------------------------------------------------------------------------------


def floor_send(port: int) -> Callable[[], bytes]:
    send = Sender(port, "/")
    return lambda: send(BODY)


def floor_stream(port: int) -> Callable[[], bytes]:
    connection = socket.create_connection(("127.0.0.1", port))
    request = b"%b%d\r\n\r\n%b" % (head(port, "/stream"), len(BODY), BODY)

    def read() -> bytes:
        connection.sendall(request)
        chunks, tail = list[bytes](), b""
        while tail != b"\r\n0\r\n\r\n":
            chunks.append(connection.recv(65536))
            tail = (tail + chunks[-1])[-7:]
        return b"".join(line + b"\n\n" for line in b"".join(chunks).split(b"\r\n") if line.startswith(b"data"))

    return lambda: read().replace(b"\n\n\n\n", b"\n\n")


# --- contestants ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Client:
    """The jobs of a client; ``None`` for a job that the client does not support. Async clients are made on their loop."""

    send: Callable[[int], Callable[[], bytes]] | None = None
    asend: Callable[[int], contextlib.AbstractAsyncContextManager[Callable[[], Awaitable[bytes]]]] | None = None
    stream: Callable[[int], Callable[[], bytes]] | None = None
    astream: Callable[[int], contextlib.AbstractAsyncContextManager[Callable[[], Awaitable[bytes]]]] | None = None


@contextlib.asynccontextmanager
async def floor_asend(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    send = AsyncSender(port, "/")
    yield lambda: send(BODY)
    await send.close()


def sigwire_send(port: int) -> Callable[[], bytes]:
    transport = HttpTransport()
    return lambda: transport.send(HttpRequest(f"http://127.0.0.1:{port}/", HEADERS, BODY)).body


@contextlib.asynccontextmanager
async def sigwire_asend(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    async with HttpTransport() as transport:

        async def send() -> bytes:
            return (await transport.asend(HttpRequest(f"http://127.0.0.1:{port}/", HEADERS, BODY))).body

        yield send


def sigwire_stream(port: int) -> Callable[[], bytes]:
    transport = HttpTransport()

    def read() -> bytes:
        with transport.stream(HttpRequest(f"http://127.0.0.1:{port}/stream", HEADERS, BODY)) as stream:
            return b"".join(stream)

    return read


@contextlib.asynccontextmanager
async def sigwire_astream(port: int) -> AsyncGenerator[Callable[[], Awaitable[bytes]]]:
    async with HttpTransport() as transport:

        async def read() -> bytes:
            async with transport.astream(HttpRequest(f"http://127.0.0.1:{port}/stream", HEADERS, BODY)) as stream:
                return b"".join([chunk async for chunk in stream])

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
        chunks: list[bytes] = []
        async with request as answer:
            while (chunk := await answer.body_reader.read_chunk()) is not None:
                chunks.append(bytes(chunk))
        return b"".join(chunks)

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
                return b"".join([chunk async for chunk in answer.content.iter_any()])

        yield read


CLIENTS = {
    FLOOR: Client(floor_send, floor_asend, floor_stream),
    SIGWIRE: Client(sigwire_send, sigwire_asend, sigwire_stream, sigwire_astream),
    "http.client": Client(standard_send),
    "aiohttp": Client(asend=aiohttp_asend, astream=aiohttp_astream),
    "urllib3": Client(urllib3_send),
    "pyreqwest": Client(pyreqwest_send, pyreqwest_asend, astream=pyreqwest_astream),
}


# --- the jobs ------------------------------------------------------------------------------------------


def jobs() -> Iterator[Job]:
    """Yield t1 to t4."""
    with serving() as port:
        yield from jobs_at(port)


def jobs_at(port: int) -> Iterator[Job]:
    here = {name: client for name, client in CLIENTS.items() if name in (FLOOR, SIGWIRE) or _is_installed(name)}
    sends = {name: checked(client.send(port), ANSWER) for name, client in here.items() if client.send}
    yield Job("t1", "HTTP client alone, one request, sync", "", sends)
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
    """Return the contestant after its answer was checked."""
    assert contestant() == answer
    return contestant


Opened = Callable[[int], contextlib.AbstractAsyncContextManager[Callable[[], Awaitable[bytes]]]]


async def stays_open(opened: Opened, port: int) -> Callable[[], Awaitable[bytes]]:
    """Return the client, which stays open until the process ends."""
    manager = opened(port)
    OPEN.append(manager)
    return await manager.__aenter__()


OPEN: list[object] = []


def together(loop: asyncio.AbstractEventLoop, opened: Opened, port: int) -> Contestant:
    """Return a contestant that runs concurrent tasks of several calls with one client."""
    send = loop.run_until_complete(stays_open(opened, port))

    async def one() -> None:
        for _ in range(CALLS_PER_TASK):
            assert await send() == ANSWER

    async def all_of_them() -> None:
        await asyncio.gather(*(one() for _ in range(TASKS)))

    return lambda: loop.run_until_complete(all_of_them())


def alone(loop: asyncio.AbstractEventLoop, opened: Opened, port: int) -> Contestant:
    """Return a contestant that reads one stream at a time."""
    read = loop.run_until_complete(stays_open(opened, port))

    async def once() -> bytes:
        return await read()

    return checked(lambda: loop.run_until_complete(once()), EVENT * EVENTS)
