"""Connecting for blocking code: the addresses of a name in turn, then TLS.

Every wait ends at the deadline, and at once when the cancel scope is cancelled: a second socket is polled beside the
connecting one, because not every system can shut down a connection in progress. A name look-up cannot be interrupted: it has
a thread, which is left behind. ``NameLookups`` awaits one.
"""

from __future__ import annotations

import os
import re
import selectors
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from sigwire.effects.cancellation import StreamCancelled, current_scope, on_cancel
from sigwire.effects.loops import to_thread
from sigwire.effects.waiting import wait_for
from sigwire.lm.http.deadlines import seconds_until
from sigwire.lm.http.exchange import configure_socket
from sigwire.lm.http.urls import Origin

if TYPE_CHECKING:
    import ssl

__all__ = ["NameLookups", "open_socket"]

# Windows has no poll; its select has no limit on descriptors.
_Selector: type[selectors.PollSelector | selectors.SelectSelector] = getattr(
    selectors, "PollSelector", selectors.SelectSelector
)


def open_socket(end: Origin, deadline: float | None, context: Callable[[], ssl.SSLContext]) -> socket.socket:
    """Open a TCP connection, with TLS for https. ``context`` returns the TLS context.

    Raises ``TimeoutError`` past the deadline, ``StreamCancelled`` if the scope is cancelled, and ``OSError``.
    """
    with _cancel_socket() as cancelled:
        opened = _connect_first(end.host, end.port, deadline, cancelled)
        if end.scheme == "http":
            return opened
        try:
            opened = context().wrap_socket(opened, server_hostname=end.host, do_handshake_on_connect=False)
            _handshake(opened, deadline, cancelled)
        except BaseException:
            opened.close()
            raise
        return opened


@contextmanager
def _cancel_socket() -> Generator[socket.socket | None]:
    """Yield a socket that becomes readable when the current scope is cancelled; ``None`` without a scope."""
    if current_scope() is None:
        yield None
        return
    cancelled, sender = socket.socketpair()

    def signal() -> None:
        with suppress(OSError):  # closed: connecting has ended
            sender.send(b"!")

    with cancelled, sender, on_cancel(signal):
        yield cancelled


def _connect_first(host: str, port: int, deadline: float | None, cancelled: socket.socket | None) -> socket.socket:
    """Connect to the first address that accepts. The addresses share the remaining time; the first error is raised."""
    infos = _look_up(host, port, deadline)
    failure: OSError | None = None
    for untried, info in zip(range(len(infos), 0, -1), infos, strict=True):
        remaining = seconds_until(deadline)
        try:
            return _connect(info, None if remaining is None else remaining / untried, cancelled)
        except OSError as error:
            failure = failure or error
    raise failure or OSError("the name has no addresses")


_Addresses: TypeAlias = Sequence[tuple[Any, ...]]
_NUMERIC = re.compile(r"[\d.]+|.*:.*|localhost")


def _look_up(host: str, port: int, deadline: float | None) -> _Addresses:
    """Return the addresses of a name. Raises ``TimeoutError`` past the deadline, and ``StreamCancelled``."""
    # A str goes through the idna codec, which is slow to load; bytes do not.
    look_up = partial(socket.getaddrinfo, host.encode() if host.isascii() else host, port, type=socket.SOCK_STREAM)
    if _NUMERIC.fullmatch(host):  # asks no server
        return look_up()
    done, found = threading.Event(), list[_Addresses | Exception]()

    def work() -> None:
        try:
            found.append(look_up())
        except Exception as error:  # raised by the waiting thread
            found.append(error)
        done.set()

    with on_cancel(done.set):
        threading.Thread(target=work, name="sigwire-name-lookup", daemon=True).start()
        if not wait_for(done.wait, seconds_until(deadline)):
            raise TimeoutError
    if not found:
        raise StreamCancelled
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def _connect(info: tuple[Any, ...], limit: float | None, cancelled: socket.socket | None) -> socket.socket:
    opened = configure_socket(socket.socket(*info[:3]))
    try:
        opened.setblocking(False)
        with suppress(BlockingIOError):
            opened.connect(info[4])
            return opened
        _wait(opened, selectors.EVENT_WRITE, limit, cancelled)
        if fault := opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(fault, os.strerror(fault))
    except BaseException:
        opened.close()
        raise
    return opened


def _handshake(opened: ssl.SSLSocket, deadline: float | None, cancelled: socket.socket | None) -> None:
    import ssl  # plain HTTP never loads ssl

    while True:
        try:
            return opened.do_handshake()
        except ssl.SSLWantReadError:
            wanted = selectors.EVENT_READ
        except ssl.SSLWantWriteError:
            wanted = selectors.EVENT_WRITE
        _wait(opened, wanted, seconds_until(deadline), cancelled)


def _wait(opened: socket.socket, wanted: int, limit: float | None, cancelled: socket.socket | None) -> None:
    with _Selector() as selector:
        selector.register(opened, wanted)
        if cancelled is not None:
            selector.register(cancelled, selectors.EVENT_READ)
        ready = set[object]()

        def is_ready(left: float) -> bool:
            ready.update(key.fileobj for key, _ in selector.select(left))
            return bool(ready)

        wait_for(is_ready, limit)
    if cancelled in ready:
        raise StreamCancelled
    if not ready:
        raise TimeoutError


class NameLookups:
    """The look-ups of the system's resolver (not aiodns), for an ``aiohttp.ThreadedResolver`` in the place of its event loop.

    ``asyncio.run`` would wait for look-ups of its loop, also after the request has timed out.
    """

    async def getaddrinfo(self, host: str, port: int, **options: Any) -> Any:
        return await to_thread(socket.getaddrinfo, host, port, **options)

    async def getnameinfo(self, address: Any, flags: int = 0) -> tuple[str, str]:
        return await to_thread(socket.getnameinfo, address, flags)
