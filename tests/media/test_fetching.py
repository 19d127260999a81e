"""``fetch`` over servers on this machine: the checks before a connection, at each redirect, and of the answer."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import pytest
import trustme

import sigwire
from sigwire import Audio, FetchError, FetchPolicy, File, Image, fetch

GIF = b"GIF89a" + bytes(20)
PDF = b"%PDF-1.7 ..."
Route = tuple[int, Mapping[str, str], bytes]


class Site:
    """A server on this machine. ``seen`` holds path and headers of each request."""

    def __init__(self, routes: Mapping[str, Route | Callable[[], Route]], tls: ssl.SSLContext | None) -> None:
        self.seen: list[tuple[str, dict[str, str]]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                route = routes[self.path]
                status, headers, body = route() if callable(route) else route
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    if value:
                        self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):  # the client has closed
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.server.daemon_threads = True
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


Serve = Callable[..., Site]


@pytest.fixture
def serve() -> Iterator[Serve]:
    sites: list[Site] = []

    def start(routes: Mapping[str, Any], tls: ssl.SSLContext | None = None) -> Site:
        sites.append(Site(routes, tls))
        return sites[-1]

    yield start
    for site in sites:
        site.close()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of .example are looked up as public addresses, but for the host of the site. Holds the looked up names."""
    looked_up: list[str] = []
    table = {
        "site.example": ["127.0.0.1"],
        "mixed.example": ["93.184.215.14", "10.0.0.7"],
        "meta.example": ["169.254.169.254"],
    }

    async def getaddrinfo(self: Any, host: str, port: int, **options: Any) -> list[Any]:
        looked_up.append(host)
        if host not in table:
            raise socket.gaierror("unknown name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in table[host]]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return looked_up


OPEN = FetchPolicy(http=True, private_hosts=frozenset({"site.example", "127.0.0.1"}))


def redirect(target: str, status: int = 302) -> Route:
    return status, {"Location": target}, b"moved"


async def refused(url: str, policy: FetchPolicy = OPEN) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetch(url, policy)
    assert caught.value.rule in str(caught.value)
    assert repr(caught.value.host) in str(caught.value)
    return caught.value


# --- the file


async def test_fetch_returns_bytes_and_sniffed_type_without_credentials_of_the_process(
    serve: Serve, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = serve({"/a.png": (200, {"Content-Type": "image/png", "Set-Cookie": "a=1"}, GIF)})
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    url = f"http://site.example:{site.port}/a.png"
    found = await fetch(url + "#part", OPEN)
    assert found == (GIF, "image/gif", url + "#part")
    assert names == ["site.example"]
    (path, headers), host = site.seen[0], f"site.example:{site.port}"
    assert path == "/a.png"
    assert headers.keys() == {"host", "accept", "accept-encoding", "user-agent", "connection"}
    assert headers["host"] == host


def test_types_of_media_are_fetched_by_an_argument_from_blocking_code(serve: Serve) -> None:
    site = serve({"/a": (200, {}, GIF), "/b": (200, {}, b"ID3\x04 sound"), "/c": (200, {}, PDF)})
    base = f"http://127.0.0.1:{site.port}"
    assert Image.from_url(f"{base}/a", fetch=OPEN).media_type == "image/gif"
    assert Audio.from_url(f"{base}/b", fetch=OPEN).audio_format == "mpeg"
    assert File.from_url(f"{base}/c", fetch=OPEN, filename="c.pdf") == File.from_bytes(
        PDF, filename="c.pdf", media_type="application/pdf"
    )
    with pytest.raises(FetchError, match="loopback"):
        Image.from_url("https://127.0.0.1/a", fetch=True)


async def test_blocking_fetch_works_inside_an_event_loop(serve: Serve) -> None:
    site = serve({"/a": (200, {}, GIF)})
    assert Image.from_url(f"http://127.0.0.1:{site.port}/a", fetch=OPEN).media_type == "image/gif"


def test_url_is_not_opened_without_the_argument(sockets: list[str]) -> None:
    assert Image.from_url("https://site.example/a.png").part().url == "https://site.example/a.png"
    with pytest.raises(sigwire.InputError):
        Audio.from_url("https://site.example/a.mp3")
    assert sockets == []


async def test_name_of_tls_is_verified_at_the_checked_address(
    serve: Serve, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, server = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("site.example").configure_cert(server)
    asked: list[str] = []
    server.sni_callback = lambda _, name, __: asked.append(name)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", trusting)
    site = serve({"/a": (200, {}, GIF), "/down": redirect("http://site.example/a")}, server)
    assert (await fetch(f"https://site.example:{site.port}/a", OPEN)).media_type == "image/gif"
    assert asked == ["site.example"]
    assert (await refused(f"https://site.example:{site.port}/down")).rule == "scheme"
    assert (await refused(f"https://127.0.0.1:{site.port}/a")).rule == "connection"


# --- hosts


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://mixed.example/a", "private"),
        ("https://meta.example/latest", "metadata"),
        ("https://unknown.example/a", "connection"),
        ("https://[::ffff:127.0.0.1]/a", "loopback"),
        ("https://[::1]/a", "loopback"),
        ("https://[64:ff9b::a00:1]/a", "private"),
        ("https://0x7f000001/a", "host"),
        ("https://2130706433/a", "host"),
        ("https://0177.0.0.1/a", "host"),
        ("https://127.1/a", "host"),
        ("https://１２７.0.0.1/a", "loopback"),
        ("https://user:word@site.example/a", "credentials"),
        ("http://site.example/a", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("ftp://site.example/a", "scheme"),
        ("a.png", "scheme"),
        ("https://", "host"),
        ("https://site.example:99999/a", "url"),
    ],
)
async def test_url_is_refused_before_a_connection(url: str, rule: str, names: list[str], sockets: list[str]) -> None:
    assert (await refused(url, FetchPolicy())).rule == rule
    assert "socket.connect" not in sockets


async def test_second_look_up_does_not_happen(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    site, answers = serve({"/a": (200, {}, GIF)}), iter(["93.184.215.14", "127.0.0.1"])

    async def getaddrinfo(self: Any, host: str, port: int, **options: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    connected: list[object] = []

    async def sock_connect(self: Any, sock: Any, address: object) -> None:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", sock_connect)
    assert (await refused(f"http://turning.example:{site.port}/a", FetchPolicy(http=True))).rule == "connection"
    assert connected == [("93.184.215.14", site.port)]
    assert site.seen == []


# --- redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_is_followed(status: int, serve: Serve, names: list[str]) -> None:
    site = serve({"/a": redirect("/b", status), "/b": (200, {}, GIF)})
    assert (await fetch(f"http://site.example:{site.port}/a", OPEN)).url.endswith("/b")


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("http://169.254.169.254/latest/meta-data", "metadata"),
        ("http://mixed.example/", "private"),
        ("http://0x7f.1/", "host"),
        ("//10.0.0.1/", "private"),
        ("http://user:word@site.example/", "credentials"),
        ("file:///etc/passwd", "scheme"),
        ("http://site.example:99999/", "redirects"),
    ],
)
async def test_target_of_a_redirect_is_checked(target: str, rule: str, serve: Serve, names: list[str]) -> None:
    site = serve({"/a": redirect(target)})
    assert (await refused(f"http://site.example:{site.port}/a")).rule == rule
    assert len(site.seen) == 1


async def test_redirects_end_after_three(serve: Serve, names: list[str]) -> None:
    site = serve({f"/{n}": redirect(f"/{n + 1}") for n in range(9)})
    assert (await refused(f"http://site.example:{site.port}/0")).rule == "redirects"
    assert [path for path, _ in site.seen] == ["/0", "/1", "/2", "/3"]


async def test_redirect_without_a_target_is_refused(serve: Serve, names: list[str]) -> None:
    site = serve({"/a": (302, {}, b"")})
    assert (await refused(f"http://site.example:{site.port}/a")).rule == "redirects"


# --- the answer


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ((200, {}, b'{"secret": "of the intranet"}'), "type"),
        ((200, {"Content-Type": "image/png"}, b"<html>of the intranet</html>"), "type"),
        ((404, {}, b"of the intranet"), "status"),
        ((200, {"Content-Encoding": "gzip"}, GIF), "encoding"),
        ((200, {}, GIF + bytes(1000)), "size"),
        ((200, {"Content-Length": "90000000000"}, GIF), "size"),
        ((200, {"Content-Length": "900"}, GIF), "connection"),
    ],
)
async def test_answer_is_refused_without_its_content(answer: Route, rule: str, serve: Serve, names: list[str]) -> None:
    site = serve({"/a": answer})
    policy = FetchPolicy(True, OPEN.private_hosts, most_bytes=1000)
    error = await refused(f"http://site.example:{site.port}/a", policy)
    assert error.rule == rule
    assert "intranet" not in str(error)


async def test_size_of_an_answer_is_counted_when_its_header_has_none(serve: Serve, names: list[str]) -> None:
    chunked = b"".join(b"3e8\r\n" + bytes(1000) + b"\r\n" for _ in range(3)) + b"0\r\n\r\n"
    site = serve({"/a": (200, {"Content-Length": "", "Transfer-Encoding": "chunked"}, chunked)})
    error = await refused(f"http://site.example:{site.port}/a", FetchPolicy(True, OPEN.private_hosts, most_bytes=2500))
    assert error.rule == "size"


async def test_slow_answer_ends_with_the_seconds_of_the_policy(serve: Serve, names: list[str]) -> None:
    waiting = threading.Event()

    def slow() -> Route:
        waiting.wait(60)
        return 200, {}, GIF

    site = serve({"/a": slow})
    try:
        error = await refused(f"http://site.example:{site.port}/a", FetchPolicy(True, OPEN.private_hosts, seconds=0.05))
    finally:
        waiting.set()
    assert error.rule == "seconds"


async def test_cancelled_fetch_raises_the_cancellation(serve: Serve, names: list[str]) -> None:
    waiting = threading.Event()
    site = serve({"/a": lambda: (200 + 0 * waiting.wait(60), {}, GIF)})
    task = asyncio.create_task(fetch(f"http://site.example:{site.port}/a", OPEN))
    while not site.seen:
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    waiting.set()


def test_unknown_option_of_a_policy_is_refused() -> None:
    with pytest.raises(sigwire.ConfigurationError, match="seconds"):
        FetchPolicy(second=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("make", [Image, Audio], ids=["image", "audio"])
def test_fetch_that_is_not_awaited_is_refused_as_media(make: Any) -> None:
    waiting = fetch("https://site.example/a.png")
    with pytest.raises(sigwire.InputError, match=r"not a coroutine: await sigwire\.fetch"):
        make(waiting)
    waiting.close()
