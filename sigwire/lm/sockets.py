"""Lines of bytes: TCP, TLS over any line, and the way through HTTP and SOCKS proxies. Written once, for both worlds.

What has to be waited for is an effect (``sigwire.steps``), so everything here is a program that runs blocking or awaited:

    line = yield from connect(address, deadline)      a TcpLine
    line = yield from secure(line, context, host)     a TlsLine over it, or over another TlsLine
    yield from line.send(data)
    data = yield from line.receive()                  b"" when the other side has closed

Under all of it lies a plain non-blocking socket that belongs to no event loop. So it can be kept for a later call from
another thread or loop, closed from anywhere, and when the waiting is cancelled nothing is left behind that a loop would
have to clean up. Knows nothing of HTTP replies beyond what a proxy says, and nothing of pools.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from base64 import b64encode
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from sigwire.errors import ConfigurationError
from sigwire.lm.http1 import ProtocolError, ReplyReader, encode_head
from sigwire.steps import Program, arun, run

__all__ = ["Line", "Proxy", "TcpLine", "TlsLine", "Within", "connect", "secure", "time_left"]

T = TypeVar("T")
Address: TypeAlias = "tuple[str, int]"
_AddressInfo: TypeAlias = "tuple[int, int, int, str, Any]"  # what getaddrinfo gives


class Line(Protocol):
    """Bytes both ways. ``socket`` is what lies at the bottom, ``deadline`` bounds every wait (``time.monotonic()``)."""

    @property
    def bottom(self) -> TcpLine: ...

    def send(self, data: bytes) -> Program[None]: ...

    def receive(self) -> Program[bytes]: ...


def time_left(deadline: float | None) -> float | None:
    """Seconds until a deadline. Raises ``TimeoutError`` when it has passed."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


# --- effects -------------------------------------------------------------------------------------------

# Blocking, every effect minds its line's deadline. Awaited, none does: one timer is enough for all of them, and setting it is
# the business of whoever drives the program, or of Within.


@dataclass(slots=True)
class Within(Generic[T]):
    """Run a part of a program, with a deadline of its own."""

    program: Program[T]
    deadline: float | None

    def run(self) -> T:
        return run(self.program)

    async def arun(self) -> T:
        async with asyncio.timeout(time_left(self.deadline)):
            return await arun(self.program)


@dataclass(slots=True)
class _Connect:
    """Open a TCP connection to the first address of the host that takes it; they share the time that is left."""

    address: Address
    deadline: float | None

    def run(self) -> socket.socket:
        infos = socket.getaddrinfo(*self.address, type=socket.SOCK_STREAM)
        failure: OSError | None = None
        for untried, info in zip(range(len(infos), 0, -1), infos, strict=True):
            left = time_left(self.deadline)
            try:
                return _dial(info, None if left is None else left / untried)
            except OSError as error:
                failure = failure or error
        raise failure or OSError("the name has no addresses")

    async def arun(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        infos = await self._addresses(loop)
        failure: OSError | None = None
        for untried, info in zip(range(len(infos), 0, -1), infos, strict=True):
            left = time_left(self.deadline)
            try:
                async with asyncio.timeout(None if left is None else left / untried):
                    return await _adial(loop, info)
            except OSError as error:
                failure = failure or error
        raise failure or OSError("the name has no addresses")

    async def _addresses(self, loop: asyncio.AbstractEventLoop) -> list[_AddressInfo]:
        try:  # a numeric address needs no thread to be looked up in
            return list(socket.getaddrinfo(*self.address, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST))
        except socket.gaierror:
            return list(await loop.getaddrinfo(*self.address, type=socket.SOCK_STREAM))


def _dial(info: _AddressInfo, timeout: float | None) -> socket.socket:
    opened = _new_socket(info)
    try:
        opened.settimeout(timeout)
        opened.connect(info[4])
        return opened
    except BaseException:
        opened.close()
        raise


async def _adial(loop: asyncio.AbstractEventLoop, info: _AddressInfo) -> socket.socket:
    opened = _new_socket(info)
    try:
        opened.setblocking(False)
        await loop.sock_connect(opened, info[4])
        return opened
    except BaseException:
        opened.close()
        raise


# An answer may be minutes in the making. Probes keep the way open through routers that forget silent connections.
_KEEP_ALIVE = [
    (getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPALIVE", 60), ("TCP_KEEPINTVL", 30), ("TCP_KEEPCNT", 5))
    if hasattr(socket, name)
]


def _new_socket(info: _AddressInfo) -> socket.socket:
    opened = socket.socket(info[0], info[1], info[2])
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened


@dataclass(slots=True)
class _Send:
    line: TcpLine
    data: bytes

    def run(self) -> None:
        self.line.socket.settimeout(time_left(self.line.deadline))
        self.line.socket.sendall(self.data)

    async def arun(self) -> None:
        await asyncio.get_running_loop().sock_sendall(self.line.socket, self.data)


@dataclass(slots=True)
class _Receive:
    line: TcpLine
    at_most: int = 64 * 1024

    def run(self) -> bytes:
        self.line.socket.settimeout(time_left(self.line.deadline))
        return self.line.socket.recv(self.at_most)

    async def arun(self) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.line.socket, self.at_most)


# --- lines ---------------------------------------------------------------------------------------------


class TcpLine:
    """A connected socket."""

    __slots__ = ("_receive", "deadline", "socket")

    def __init__(self, connected: socket.socket, deadline: float | None) -> None:
        self.socket = connected
        self.deadline = deadline
        self._receive = _Receive(self)

    @property
    def bottom(self) -> TcpLine:
        """The line itself."""
        return self

    def send(self, data: bytes) -> Program[None]:
        """Send all of it."""
        yield _Send(self, data)

    def receive(self) -> Program[bytes]:
        """Whatever has come, at least one byte; nothing when the other side has closed."""
        data: bytes = yield self._receive
        return data

    def is_quiet(self) -> bool:
        """Whether nothing has come and the other side has not closed: what an idle connection must be to be used again."""
        try:
            self.socket.setblocking(False)
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close the socket, at once."""
        self.socket.close()


def connect(address: Address, deadline: float | None) -> Program[TcpLine]:
    """A line to a host and port."""
    connected: socket.socket = yield _Connect(address, deadline)
    return TcpLine(connected, deadline)


_FLUSH = 256 * 1024


class TlsLine:
    """TLS over another line. The protocol runs in memory, so any line will do: a proxy may itself speak TLS."""

    __slots__ = ("_incoming", "_lower", "_outgoing", "_tls")

    def __init__(self, lower: Line, context: ssl.SSLContext, host: str) -> None:
        self._lower = lower
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    @property
    def bottom(self) -> TcpLine:
        """The socket's line under it."""
        return self._lower.bottom

    def handshake(self) -> Program[None]:
        """Agree on keys, and check the certificate."""
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                yield from self._flush()
                yield from self._fill()
            except ssl.SSLError:
                yield from self._flush()  # tells the server why
                raise
        yield from self._flush()

    def send(self, data: bytes) -> Program[None]:
        """Send all of it."""
        left = memoryview(data)
        while left:
            left = left[self._tls.write(left) :]  # one record at a time
            if self._outgoing.pending > _FLUSH:
                yield from self._flush()
        yield from self._flush()

    def receive(self) -> Program[bytes]:
        """Whatever has come, at least one byte; nothing when the other side has closed."""
        while True:
            try:
                return self._tls.read(64 * 1024)
            except ssl.SSLWantReadError:
                yield from self._flush()
                yield from self._fill()
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                return b""  # the reply's own length tells whether something is missing

    def _flush(self) -> Program[None]:
        if data := self._outgoing.read():
            yield from self._lower.send(data)

    def _fill(self) -> Program[None]:
        data = yield from self._lower.receive()
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()


def secure(lower: Line, context: ssl.SSLContext, host: str) -> Program[TlsLine]:
    """TLS over a line to the host of that name."""
    line = TlsLine(lower, context, host)
    yield from line.handshake()
    return line


# --- proxies -------------------------------------------------------------------------------------------

_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where requests go through. The proxy resolves the target's name, with SOCKS too; the repr has no password.

    >>> Proxy.parse("socks5://me:secret@proxy.corp")
    Proxy(socks5://proxy.corp:1080)
    """

    scheme: str
    host: str
    port: int
    username: str = ""
    password: str = ""

    @classmethod
    def parse(cls, url: str) -> Proxy:
        """A proxy from its URL; without a scheme it is an HTTP proxy. Raises ``ConfigurationError``."""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            port = parts.port or _DEFAULT_PORTS[parts.scheme]
            host = parts.hostname if parts.scheme in _DEFAULT_PORTS else None
        except (KeyError, ValueError):
            host, port, parts = None, 0, None
        if not host or not parts:
            raise ConfigurationError(
                f"A proxy's URL cannot be used (opening a connection). Write scheme://host:port with one of the schemes "
                f"{', '.join(_DEFAULT_PORTS)}, in proxy= or in the environment."
            )
        return cls(parts.scheme, host, port, unquote(parts.username or ""), unquote(parts.password or ""))

    def __repr__(self) -> str:
        return f"Proxy({self.scheme}://{self.host}:{self.port})"

    @property
    def authorization(self) -> dict[str, str]:
        """The header for an HTTP proxy that wants to know who is asking."""
        if not self.username:
            return {}
        pair = b64encode(f"{self.username}:{self.password}".encode()).decode()
        return {"proxy-authorization": f"Basic {pair}"}

    def open(self, address: Address, deadline: float | None, tls: ssl.SSLContext | None) -> Program[Line]:
        """A line to the proxy; for SOCKS already through it, to the address."""
        tcp = yield from connect((self.host, self.port), deadline)
        try:
            if self.scheme == "https" and tls is not None:
                return (yield from secure(tcp, tls, self.host))
            if self.scheme.startswith("socks"):
                yield from self._greet(tcp)
                yield from self._ask(tcp, address)
            return tcp
        except BaseException:
            tcp.close()
            raise

    def tunnel(self, line: Line, address: Address) -> Program[None]:
        """Ask an HTTP proxy for a line to the address (CONNECT). A refusal is a ``ProtocolError``."""
        target = f"[{address[0]}]:{address[1]}" if ":" in address[0] else f"{address[0]}:{address[1]}"
        yield from line.send(encode_head("CONNECT", target, {"host": target, **self.authorization}))
        reader = ReplyReader(head_only=True)
        while not reader.complete:
            data = yield from line.receive()
            if not data:
                raise ProtocolError(f"{self} closed the connection without an answer to CONNECT")
            reader.feed(data)
        if not 200 <= reader.status < 300:
            why = " (it wants a user name and password in its URL)" if reader.status == 407 else ""
            raise ProtocolError(f"{self} answered CONNECT with status {reader.status}{why}")

    # SOCKS5, RFC 1928 and 1929

    def _greet(self, line: TcpLine) -> Program[None]:
        yield from line.send(b"\x05\x02\x00\x02" if self.username else b"\x05\x01\x00")
        _, method = yield from _exactly(line, 2)
        if method == 2 and self.username:
            user, password = self.username.encode(), self.password.encode()
            yield from line.send(bytes([1, len(user), *user, len(password), *password]))
            _, method = yield from _exactly(line, 2)
        if method:
            word = "refuses the" if self.username else "wants a"
            raise ProtocolError(f"{self} {word} user name and password in its URL")

    def _ask(self, line: TcpLine, address: Address) -> Program[None]:
        host, port = address
        yield from line.send(b"\x05\x01\x00" + _socks_host(host) + port.to_bytes(2, "big"))
        _, status, _, kind = yield from _exactly(line, 4)
        if status:
            raise ProtocolError(f"{self} could not connect: {_SOCKS_FAULTS.get(status, f'fault {status}')}")
        length = _SOCKS_LENGTHS.get(kind) or (yield from _exactly(line, 1))[0]
        yield from _exactly(line, length + 2)


_SOCKS_LENGTHS = {1: 4, 4: 16}  # of an IPv4 and an IPv6 address; a name (3) comes with its length
_SOCKS_FAULTS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "it took too long",
    7: "command not supported",
    8: "address type not supported",
}


def _socks_host(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        name = host.encode("idna")
        return bytes([3, len(name), *name])
    return bytes([1 if address.version == 4 else 4]) + address.packed


def _exactly(line: TcpLine, size: int) -> Program[bytes]:
    """So many bytes. The other side sends nothing more before it is asked, so what comes is never too much."""
    data = b""
    while len(data) < size:
        more: bytes = yield _Receive(line, size - len(data))
        if not more:
            raise ProtocolError("the SOCKS proxy closed the connection")
        data += more
    return data
