"""Connections of the transport: reused, idle, expired, closed with their thread, loop or transport."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest

from sigwire.lm.http.transport import HttpTransport
from tests.lm.http.server import (
    Call,
    Certificates,
    Server,
    ask,
    awaited,
    blocking,
    no_open_sockets,
    reply,
    run_and_close,
    run_and_shut_down,
    says,
    streamed,
)
from tests.patience import PATIENCE


def test_no_socket_is_open_before_the_first_call_and_after_close(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    with no_open_sockets():
        transport = HttpTransport()
        assert server.accepted == 0
        call(transport, ask(server.url))
        assert server.accepted == 1
        transport.close()
        assert server.is_left(0)


def test_threads_reuse_one_connection(serve: Callable[..., Server]) -> None:
    server = serve()
    with HttpTransport() as transport:
        for how in (blocking, streamed, blocking):
            how(transport, ask(server.url))
        thread = threading.Thread(target=blocking, args=(transport, ask(server.url)))
        thread.start()
        thread.join()
    assert (server.accepted, len(server.requests)) == (1, 4)


async def test_event_loop_reuses_its_connection(serve: Callable[..., Server]) -> None:
    server = serve()
    async with HttpTransport() as transport:
        for _ in range(3):
            await transport.asend(ask(server.url))
            async with transport.astream(ask(server.url)) as stream:
                assert [piece async for piece in stream]
    assert (server.accepted, len(server.requests)) == (1, 6)


@pytest.mark.parametrize("run", [run_and_shut_down, run_and_close])
@pytest.mark.long
def test_thousand_calls_on_twenty_loops_leave_no_socket_open(
    serve: Callable[..., Server], run: Callable[[Any], None]
) -> None:
    server = serve()

    async def fifty(transport: HttpTransport) -> None:
        for _ in range(2):
            replies = await asyncio.gather(*(transport.asend(ask(server.url)) for _ in range(25)))
            assert {reply.body for reply in replies} == {b'{"ok":true}'}

    with no_open_sockets():
        with HttpTransport() as transport:
            for _ in range(20):
                run(fifty(transport))
        assert server.is_left(0)
    assert len(server.requests) == 1000
    assert server.accepted == 500


def test_connections_close_with_a_loop_that_is_closed_by_hand(
    serve: Callable[..., Server], certificates: Certificates
) -> None:
    server = serve(tls=certificates.server)
    with no_open_sockets():
        transport = HttpTransport(ca=certificates.ca)
        run_and_close(transport.asend(ask(server.url)))
        assert server.is_left(0)  # the transport was not closed
        run_and_close(transport.asend(ask(server.url)))


def test_one_loop_can_run_several_times(serve: Callable[..., Server]) -> None:
    server = serve()
    with no_open_sockets(), closing(asyncio.new_event_loop()) as loop:
        transport = HttpTransport()
        for _ in range(2):
            loop.run_until_complete(transport.asend(ask(server.url)))
        assert server.accepted == 1
        transport.close()  # while the loop stands still
        assert server.is_left(0)
        loop.run_until_complete(transport.asend(ask(server.url)))
        loop.run_until_complete(transport.aclose())
        assert server.is_left(0)
    assert len(server.requests) == 3


async def test_other_thread_closes_the_connections_of_a_running_loop(serve: Callable[..., Server]) -> None:
    server = serve()
    transport = HttpTransport()
    await transport.asend(ask(server.url))
    async with transport.astream(ask(server.url)) as stream:
        await asyncio.to_thread(transport.close)
        assert b"".join([piece async for piece in stream]) == b'{"ok":true}'
    assert await asyncio.to_thread(server.is_left, 0)


def test_other_thread_closes_while_the_loop_ends(serve: Callable[..., Server]) -> None:
    server, complaints = serve(), list[Any]()
    transport = HttpTransport()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, about: complaints.append(about))
        await transport.asend(ask(server.url))
        closer = threading.Thread(target=transport.close)
        closer.start()
        closer.join(0.05)  # the callback waits for this loop, which is blocked until it ends
        await loop.shutdown_asyncgens()
        await asyncio.to_thread(closer.join)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # asyncio warns of a generator that started after the shutdown
        asyncio.run(main())
    gc.collect()
    assert not complaints
    assert server.is_left(0)


async def test_connections_close_when_all_tasks_of_the_loop_are_cancelled(
    serve: Callable[..., Server],
) -> None:
    server = serve()
    transport = HttpTransport()
    await transport.asend(ask(server.url))
    before = asyncio.all_tasks()
    transport.close()
    for task in asyncio.all_tasks() - before:
        task.cancel()
    assert await asyncio.to_thread(server.is_left, 0)
    assert (await transport.asend(ask(server.url))).status == 200
    await transport.aclose()


async def test_discarded_transports_leave_nothing_on_a_loop(serve: Callable[..., Server]) -> None:
    import aiohttp

    def connectors() -> int:
        gc.collect()
        return sum(isinstance(thing, aiohttp.BaseConnector) for thing in gc.get_objects())

    server, before = serve(), connectors()
    for _ in range(20):
        async with HttpTransport() as transport:
            await transport.asend(ask(server.url))
    del transport
    assert connectors() <= before
    assert await asyncio.to_thread(server.is_left, 0)


def test_collected_transport_closes_its_connections(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    with no_open_sockets():
        call(HttpTransport(), ask(server.url))
        gc.collect()
        assert server.is_left(0)


def test_closed_transport_opens_connections_again(serve: Callable[..., Server], call: Call) -> None:
    server = serve()
    transport = HttpTransport()
    for _ in range(2):
        call(transport, ask(server.url))
        transport.close()
        assert server.is_left(0)
    assert server.accepted == 2


def test_connection_in_use_at_close_is_not_kept(serve: Callable[..., Server]) -> None:
    server = serve()
    transport = HttpTransport()
    with transport.stream(ask(server.url)) as stream:
        transport.close()
        assert b"".join(stream) == b'{"ok":true}'
    assert server.is_left(0)


async def test_async_context_manager_closes_the_transport(serve: Callable[..., Server]) -> None:
    server = serve()
    async with HttpTransport() as transport:
        await transport.asend(ask(server.url))
    assert server.is_left(0)
    await transport.asend(ask(server.url))
    await transport.aclose()
    assert server.is_left(0)


UNASKED = {
    "closed": b"",
    "spoken on": b"HTTP/1.1 408 Too slow\r\ncontent-length: 0\r\n\r\n",
    "answered unasked": reply(b"for somebody else"),
}


@dataclass
class Impatient:
    """Answer; on a signal send unsolicited bytes on the idle connection, then close it or keep it open."""

    what: bytes
    closes: bool
    given_up: threading.Event

    def __call__(self, server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(reply())
        if len(server.requests) > 1:
            return True
        server.go_on.wait(PATIENCE)
        connection.sendall(self.what)
        if self.closes:
            socket.socket.shutdown(connection, socket.SHUT_WR)  # ends TLS without close_notify
        self.given_up.set()
        connection.recv(1)
        return False


@pytest.fixture(params=[(name, closes) for name in UNASKED for closes in (True, False) if name != "closed" or closes])
def impatient(request: pytest.FixtureRequest) -> Impatient:
    name, closes = request.param
    return Impatient(UNASKED[name], closes, threading.Event())


@pytest.fixture(params=["http", "https"])
def given_up(
    request: pytest.FixtureRequest, serve: Callable[..., Server], impatient: Impatient, certificates: Certificates
) -> Server:
    return serve(impatient, certificates.server if request.param == "https" else None)


def test_idle_connection_closed_by_the_server_is_not_reused(
    given_up: Server, impatient: Impatient, certificates: Certificates
) -> None:
    with HttpTransport(ca=certificates.ca) as transport:
        transport.send(ask(given_up.url))
        given_up.go_on.set()
        assert impatient.given_up.wait(PATIENCE)
        assert given_up.has_reached_client()  # a system under load delivers later than it accepts
        assert transport.send(ask(given_up.url)).body == b'{"ok":true}'
    assert (given_up.accepted, len(given_up.requests)) == (2, 2)


@pytest.mark.parametrize("turns", [0, 1, 5])
async def test_idle_connection_closed_by_the_server_is_not_reused_async(
    given_up: Server, impatient: Impatient, certificates: Certificates, turns: int
) -> None:
    async with HttpTransport(ca=certificates.ca) as transport:
        await transport.asend(ask(given_up.url))
        given_up.go_on.set()
        assert impatient.given_up.wait(PATIENCE)  # the loop is blocked meanwhile
        assert given_up.has_reached_client()
        for _ in range(turns):
            await asyncio.sleep(0)
        assert (await transport.asend(ask(given_up.url))).body == b'{"ok":true}'
    assert (given_up.accepted, len(given_up.requests)) == (2, 2)


@pytest.mark.parametrize("header", ["connection: close", "Connection: Keep-Alive, Close"])
def test_connection_close_header_is_obeyed(serve: Callable[..., Server], call: Call, header: str) -> None:
    server = serve(says(reply(b"", header), stay=True))
    with HttpTransport() as transport:
        call(transport, ask(server.url))
        assert server.is_left(0)


async def test_idle_connections_expire_after_keep_alive(serve: Callable[..., Server]) -> None:
    server = serve()
    async with HttpTransport(keep_alive=0.0) as transport:
        for _ in range(2):
            transport.send(ask(server.url))
            await transport.asend(ask(server.url))
    assert server.accepted == 4


def test_many_threads_share_one_transport(serve: Callable[..., Server]) -> None:
    def echo(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        connection.sendall(reply(body))
        return True

    server = serve(echo)
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(25):
            body = f"{number} {turn}".encode()
            how = awaited if turn % 5 == 0 else blocking
            if how(transport, ask(server.url, body)).body != body:
                wrong.append(body)

    with HttpTransport() as transport:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong
    assert len(server.requests) == 400
    assert server.is_left(0)
