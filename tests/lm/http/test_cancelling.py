"""Requests that are cancelled: their connections close, and what waits for them wakes."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from sigwire.effects.emitting import Emit, stream
from sigwire.effects.gather import Gather
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import Steps, arun
from sigwire.errors import LMError
from sigwire.lm.http.messages import HttpReply
from sigwire.lm.http.transport import HttpTransport
from tests.lm.http.server import (
    Certificates,
    Script,
    Server,
    ask,
    begin_and_hang,
    client_sockets,
    drip,
    hang,
    no_open_sockets,
    run_and_close,
    run_and_shut_down,
)
from tests.patience import PATIENCE, wait_until


async def test_cancelling_closes_the_connection(serve: Callable[..., Server]) -> None:
    server = serve(hang)
    with no_open_sockets():
        async with HttpTransport() as transport:
            task = asyncio.create_task(transport.asend(ask(server.url)))
            while not server.requests:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(server.gone.wait, PATIENCE)
        del task


@pytest.mark.parametrize("script", [hang, drip])
async def test_cancelling_closes_a_tls_connection_without_shutdown(
    serve: Callable[..., Server], certificates: Certificates, script: Script
) -> None:
    server = serve(script, certificates.server)
    async with HttpTransport(ca=certificates.ca) as transport:
        task = asyncio.create_task(transport.asend(ask(server.url)))
        while not server.requests:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.is_left, 0)


async def test_timeout_of_the_caller_closes_the_connection_and_is_raised_unchanged(
    serve: Callable[..., Server],
) -> None:
    server = serve(hang)
    async with HttpTransport() as transport:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.1):
                await transport.asend(ask(server.url))
        assert not isinstance(caught.value, LMError)
        assert await asyncio.to_thread(server.gone.wait, PATIENCE)


@pytest.mark.parametrize("run", [run_and_shut_down, run_and_close])
def test_ending_loop_cancels_its_requests(serve: Callable[..., Server], run: Callable[[Any], None]) -> None:
    server = serve(hang)

    async def leave(transport: HttpTransport) -> None:
        begun.append(asyncio.ensure_future(transport.asend(ask(server.url))))
        while not server.requests:
            await asyncio.sleep(0.001)

    begun: list[asyncio.Future[HttpReply]] = []
    with HttpTransport() as transport:
        run(leave(transport))
        begun[0].get_loop().set_exception_handler(
            lambda loop, context: None
        )  # asyncio has its own view of the second way
        begun.clear()
        gc.collect()
        assert server.gone.wait(PATIENCE)
        assert server.is_left(0)


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals arrive in the main thread"
)
def test_interrupt_ends_a_blocking_call_at_once(serve: Callable[..., Server]) -> None:
    def interrupt(server: Server, connection: socket.socket, head: str, body: bytes) -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return hang(server, connection, head, body)

    server = serve(interrupt)
    with HttpTransport() as transport, pytest.raises(KeyboardInterrupt):
        transport.send(ask(server.url))
    assert server.gone.wait(PATIENCE)


# aiohttp is imported beforehand: it takes so long that asyncio's debug mode would write a line about it.
FORKED = """
import asyncio, os, sys
import sigwire.lm.http.async_client
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
transport, request = HttpTransport(), HttpRequest(sys.argv[1])
transport.send(request)
asyncio.run(transport.asend(request))
child = os.fork()
status = transport.send(request).status
if child == 0:
    if os.fork() == 0:
        os._exit(transport.send(request).status != 200 or asyncio.run(transport.asend(request)).status != 200)
    os._exit(status != 200 or os.wait()[1])
sys.exit(os.wait()[1] or transport.send(request).status != 200)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_child_opens_its_own_connections(serve: Callable[..., Server]) -> None:
    server = serve()
    done = subprocess.run([sys.executable, "-X", "dev", "-c", FORKED, server.url], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (server.accepted, len(server.requests)) == (5, 7)


EXITS = """
import asyncio, sys, threading
import sigwire.lm.http.async_client
from sigwire.lm.http.messages import HttpRequest
from sigwire.lm.http.transport import HttpTransport
transport = HttpTransport()
transport.send(HttpRequest(sys.argv[1]))
asyncio.run(transport.asend(HttpRequest(sys.argv[1])))
threading.Thread(target=transport.send, args=(HttpRequest(sys.argv[2]),), daemon=True).start()
"""


def test_interpreter_exits_without_warnings(serve: Callable[..., Server]) -> None:
    server, silent = serve(), serve(hang)
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", EXITS, server.url, silent.url]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert server.is_left(0)
    assert silent.is_left(0)


@dataclass
class Fetch:
    """The effect of reading a stream to its end, blocking."""

    transport: HttpTransport
    url: str

    def run(self) -> bytes:
        with self.transport.stream(ask(self.url)) as reply:
            return b"".join(reply)

    async def arun(self) -> bytes:
        return await to_thread(self.run)


def fetched(effect: Fetch) -> Steps[bytes]:
    return (yield effect)


def says_hello() -> Steps[bytes]:
    yield Emit("hello")
    return b""


@pytest.mark.parametrize("script", [hang, begin_and_hang], ids=["before the head", "in the body"])
@pytest.mark.parametrize("proxied", [False, True])
def test_cancelling_steps_wakes_their_waiting_threads(
    serve: Callable[..., Server], script: Script, proxied: bool
) -> None:
    server = serve(script)
    with no_open_sockets(), HttpTransport(proxy=f"http://127.0.0.1:{server.port}" if proxied else None) as transport:

        def program() -> Steps[Any]:
            url = "http://model.test/v1" if proxied else server.url
            return (yield Gather([fetched(Fetch(transport, url)), says_hello()]))

        events = stream(program())
        assert next(events) == "hello"
        assert server.has_heard(1)
        events.close()
        assert server.is_left(0)


@contextmanager
def a_full_house() -> Iterator[str]:
    """The address of a server that takes no connection: its queue is full."""
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as server:
        waiting = [socket.socket() for _ in range(4)]
        for guest in waiting:
            guest.setblocking(False)
            guest.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        for guest in waiting:
            guest.close()


@contextmanager
def a_silent_house() -> Iterator[str]:
    """The address of a server that accepts connections and sends nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}/"


@pytest.fixture(params=[a_full_house, a_silent_house], ids=["connecting", "shaking hands"])
def deaf(request: pytest.FixtureRequest) -> Iterator[str]:
    with request.param() as url:
        yield url


def test_cancelling_steps_does_not_wait_for_a_connecting_socket(deaf: str) -> None:
    others = client_sockets()
    with no_open_sockets(), HttpTransport(connect_timeout=600) as transport:

        def program() -> Steps[Any]:
            return (yield Gather([fetched(Fetch(transport, deaf)), says_hello()]))

        events = stream(program())
        assert next(events) == "hello"
        wait_until(lambda: client_sockets() - others)
        before = time.monotonic()
        events.close()
        assert not client_sockets() - others
        assert time.monotonic() - before < PATIENCE


async def test_cancelling_a_task_does_not_wait_for_a_connecting_socket(deaf: str) -> None:
    others = client_sockets()
    async with HttpTransport(connect_timeout=600) as transport:
        task = asyncio.ensure_future(arun(fetched(Fetch(transport, deaf))))
        await asyncio.to_thread(wait_until, lambda: client_sockets() - others)
        before = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not client_sockets() - others
        assert time.monotonic() - before < PATIENCE


@pytest.mark.parametrize("proxied", [False, True])
async def test_cancelling_a_task_wakes_its_waiting_threads(serve: Callable[..., Server], proxied: bool) -> None:
    server = serve(begin_and_hang)
    async with HttpTransport(proxy=f"http://127.0.0.1:{server.port}" if proxied else None) as transport:
        url = "http://model.test/v1" if proxied else server.url
        task = asyncio.ensure_future(arun(fetched(Fetch(transport, url))))
        assert await asyncio.to_thread(server.has_heard, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.is_left, 0)
