"""Replies that are read in chunks as they arrive: order, bounds, slow readers, closing early."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from sigwire.errors import LMTransportError
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
from tests.lm.http.server import (
    Script,
    Server,
    ask,
    drip,
    head,
    no_open_sockets,
    reply,
    reset,
    says,
)
from tests.patience import PATIENCE


def step_by_step(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
    """Send a chunk; send the next one when the client has received it."""
    connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n")
    for number in range(5):
        connection.sendall(b"7\r\ndata: %d\r\n" % number)
        assert server.go_on.wait(PATIENCE)
        server.go_on.clear()
    connection.sendall(b"0\r\n\r\n")
    return True


def test_chunks_are_yielded_as_they_arrive(serve: Callable[..., Server]) -> None:
    server = serve(step_by_step)
    with HttpTransport() as transport:
        for _ in range(2):
            with transport.stream(ask(server.url)) as stream:
                assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
                pieces = []
                for piece in stream:
                    pieces.append(piece)
                    server.go_on.set()
            assert pieces == [b"data: %d" % number for number in range(5)]
    assert server.accepted == 1


async def test_chunks_are_yielded_as_they_arrive_async(serve: Callable[..., Server]) -> None:
    server = serve(step_by_step)
    async with HttpTransport() as transport:
        for _ in range(2):
            async with transport.astream(ask(server.url)) as stream:
                assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
                pieces = []
                async for piece in stream:
                    pieces.append(piece)
                    server.go_on.set()
            assert pieces == [b"data: %d" % number for number in range(5)]
    assert server.accepted == 1


@pytest.mark.parametrize("how", ["blocking", "awaited"])
@pytest.mark.parametrize("fault", ["cut off", "reset", "garbled"])
async def test_slow_reader_gets_what_arrived_before_the_error(
    serve: Callable[..., Server], how: str, fault: str
) -> None:
    def script(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        assert server.go_on.wait(PATIENCE)
        connection.sendall(b"1\r\nb\r\n2\r\ncd\r\n" + (b"Internal Server Error" if fault == "garbled" else b""))
        return reset(server, connection, head, body) if fault == "reset" else False

    async def arrived() -> None:
        server.go_on.set()
        assert await asyncio.to_thread(server.is_left, 0)
        await asyncio.sleep(0.02)  # the loop reads what came

    async def read(transport: HttpTransport, request: HttpRequest) -> None:
        if how == "blocking":
            with transport.stream(request) as stream:
                for piece in stream:
                    pieces.append(piece)
                    await arrived()
        async with transport.astream(request) as awaited_stream:
            async for piece in awaited_stream:
                pieces.append(piece)
                await arrived()

    server, pieces = serve(script), list[bytes]()
    async with HttpTransport() as transport:
        with pytest.raises(LMTransportError):
            await read(transport, ask(server.url))
    assert b"".join(pieces) == b"abcd"


async def test_slow_reader_gets_a_reply_that_arrived_before_the_deadline(serve: Callable[..., Server]) -> None:
    body = bytes(range(256)) * 400
    async with HttpTransport(timeout=0.1) as transport, transport.astream(ask(serve(says(reply(body))).url)) as stream:
        await asyncio.sleep(0.15)
        assert b"".join([piece async for piece in stream]) == body


async def test_unread_body_is_not_received_without_bound(serve: Callable[..., Server]) -> None:
    sent = 0

    def flood(server: Server, connection: socket.socket, _: str, body: bytes) -> bool:
        nonlocal sent
        connection.sendall(head("content-length: 50000000"))
        for _ in range(50):
            connection.sendall(bytes(1_000_000))
            sent += 1
        return True

    server = serve(flood)
    async with HttpTransport() as transport:
        for _ in range(2):
            async with transport.astream(ask(server.url)) as stream:
                await asyncio.sleep(0.1)
                assert sent < 25
                assert sum([len(piece) async for piece in stream]) == 50_000_000
            sent = 0
    assert server.accepted == 1


def test_closing_a_stream_early_closes_the_connection(serve: Callable[..., Server]) -> None:
    server = serve(drip)
    with no_open_sockets(), HttpTransport() as transport:
        with transport.stream(ask(server.url)) as stream:
            assert next(iter(stream))
        assert server.is_left(0)
        with pytest.raises(ZeroDivisionError), transport.stream(ask(server.url)) as stream:
            raise ZeroDivisionError
        assert server.is_left(0)
        with pytest.raises(OSError, match="mine"), transport.stream(ask(server.url)) as stream:
            raise OSError("mine")  # not the transport's business
        del stream


@pytest.mark.parametrize(
    "script", [drip, says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")], ids=["left", "cut off"]
)
def test_reading_a_closed_reply_is_an_error_each_time(serve: Callable[..., Server], script: Script) -> None:
    with no_open_sockets(), HttpTransport() as transport:
        with transport.stream(ask(serve(script).url)) as stream:
            assert next(iter(stream))
            if script is not drip:
                with pytest.raises(LMTransportError, match="in the middle"):
                    next(iter(stream))
        for _ in range(2):
            with pytest.raises(LMTransportError, match="closed before it was fully read"):
                next(iter(stream))
        with transport.stream(ask(serve().url)) as stream:
            pass
        assert b"".join(stream) == b'{"ok":true}'  # it was here already, and nothing is waited for


@pytest.mark.parametrize(
    "script", [drip, says(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")], ids=["left", "cut off"]
)
async def test_reading_a_closed_reply_is_an_error_each_time_async(serve: Callable[..., Server], script: Script) -> None:
    async with HttpTransport() as transport:
        async with transport.astream(ask(serve(script).url)) as stream:
            assert await anext(aiter(stream))
            if script is not drip:
                with pytest.raises(LMTransportError, match="in the middle"):
                    await anext(aiter(stream))
        for _ in range(2):
            with pytest.raises(LMTransportError, match="closed before it was fully read"):
                await anext(aiter(stream))


async def test_closing_a_stream_early_closes_the_connection_async(serve: Callable[..., Server]) -> None:
    server = serve(drip)

    async def read(transport: HttpTransport) -> None:
        async with transport.astream(ask(server.url)) as stream:
            async for _ in stream:
                begun.set()

    begun = asyncio.Event()
    async with HttpTransport() as transport:
        task = asyncio.create_task(read(transport))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.is_left, 0)
        async with transport.astream(ask(server.url)) as stream:
            async for _ in stream:
                break
        assert await asyncio.to_thread(server.is_left, 0)
