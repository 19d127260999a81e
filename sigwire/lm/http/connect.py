"""The way to a server, for blocking code: the addresses of its name one after the other, then TLS.

    opened = dial(end, deadline, context)      a socket, connected; it does not block until a timeout is set

Every wait ends at the deadline, and at once when those for whom it is done leave (``leaving``): a connection that is being
made cannot be shut down everywhere, so a bell is watched beside it. Only the look-up of a name is the system's own affair:
nothing wakes it, and who left meanwhile is heard after it.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sigwire.effects.cancellation import StreamCancelled, current_scope, on_cancel
from sigwire.lm.http.deadlines import seconds_until
from sigwire.lm.http.exchange import configure_socket
from sigwire.lm.http.urls import ServerUrl

if TYPE_CHECKING:
    import ssl

__all__ = ["open_socket"]

# For one socket or two; without poll, Windows' select takes any number.
_Selector: type[selectors.PollSelector | selectors.SelectSelector] = getattr(
    selectors, "PollSelector", selectors.SelectSelector
)


def open_socket(end: ServerUrl, deadline: float | None, context: Callable[[], ssl.SSLContext]) -> socket.socket:
    """TCP, and TLS where the address wants it. ``context`` gives the TLS context.

    Raises ``TimeoutError`` past the deadline, ``StreamCancelled`` when nobody waits any more, else the ``OSError`` it was.
    """
    with _bell() as bell:
        opened = _first_that_takes_it(end.host, end.port, deadline, bell)
        if end.scheme == "http":
            return opened
        try:
            opened = context().wrap_socket(opened, server_hostname=end.host, do_handshake_on_connect=False)
            _shake_hands(opened, deadline, bell)
        except BaseException:
            opened.close()
            raise
        return opened


@contextmanager
def _bell() -> Generator[socket.socket | None]:
    """Can be read from once they leave, for whom this is done; none where nobody can leave."""
    if current_scope() is None:
        yield None
        return
    bell, rope = socket.socketpair()

    def ring() -> None:
        with suppress(OSError):  # closed: it has gone on
            rope.send(b"!")

    with bell, rope, on_cancel(ring):
        yield bell


def _first_that_takes_it(host: str, port: int, deadline: float | None, bell: socket.socket | None) -> socket.socket:
    """They share the time that is left. Of those that fail the first one's error is raised."""
    # Text goes through the codec for international names, which takes a while to load; bytes go as they are.
    infos = socket.getaddrinfo(host.encode() if host.isascii() else host, port, type=socket.SOCK_STREAM)
    failure: OSError | None = None
    for untried, info in zip(range(len(infos), 0, -1), infos, strict=True):
        left = seconds_until(deadline)
        try:
            return _connected(info, None if left is None else left / untried, bell)
        except OSError as error:
            failure = failure or error
    raise failure or OSError("the name has no addresses")


def _connected(info: tuple[Any, ...], limit: float | None, bell: socket.socket | None) -> socket.socket:
    opened = configure_socket(socket.socket(*info[:3]))
    try:
        opened.setblocking(False)
        with suppress(BlockingIOError):
            opened.connect(info[4])
            return opened
        _wait(opened, selectors.EVENT_WRITE, limit, bell)
        if fault := opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(fault, os.strerror(fault))
    except BaseException:
        opened.close()
        raise
    return opened


def _shake_hands(opened: ssl.SSLSocket, deadline: float | None, bell: socket.socket | None) -> None:
    import ssl  # loaded with the context; plain HTTP goes without

    while True:
        try:
            return opened.do_handshake()
        except ssl.SSLWantReadError:
            wanted = selectors.EVENT_READ
        except ssl.SSLWantWriteError:
            wanted = selectors.EVENT_WRITE
        _wait(opened, wanted, seconds_until(deadline), bell)


def _wait(opened: socket.socket, wanted: int, limit: float | None, bell: socket.socket | None) -> None:
    with _Selector() as selector:
        selector.register(opened, wanted)
        if bell is not None:
            selector.register(bell, selectors.EVENT_READ)
        ready = {key.fileobj for key, _ in selector.select(limit)}
    if bell in ready:
        raise StreamCancelled
    if not ready:
        raise TimeoutError
