"""No traceback with local variables, no error and no saved state shows a secret that the user gave, by whatever door."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from rich.console import Console
from rich.pretty import pretty_repr
from rich.traceback import Traceback

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError, LMAuthenticationError, LMError, SigwireError
from sigwire.lm.client import LM
from sigwire.lm.http import connect
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.transport import HttpTransport
from sigwire.modules.predict import Predict
from tests.grids import grid
from tests.lm.calls import forget_keys

ROOT = Path(__file__).resolve().parent.parent.parent
CANARY = "-".join(("canary", "7Kq", "secret"))  # not as one text: a traceback shows the lines of this file
BASE = "https://llm.example/v1"

DOORS: Mapping[str, dict[str, Any]] = {
    "api_key": {"api_key": CANARY},
    "api_key function": {"api_key": lambda: CANARY},
    "authorization": {"headers": {"Authorization": f"Bearer {CANARY}"}},
    "x-api-key": {"headers": {"x-api-key": CANARY, "x-goog-api-key": CANARY}},
    "custom header": {"api_key": "k", "headers": {"x-gateway": CANARY}},
    "password in base_url": {"api_key": "k", "base_url": f"https://me:{CANARY}@llm.example/v1"},
    "password without scheme": {"api_key": "k", "base_url": f"me:{CANARY}@llm.example/v1"},
    "password without scheme, with slashes": {"api_key": "k", "base_url": f"//me:{CANARY}@llm.example/v1"},
    "password with an unquoted slash": {"api_key": "k", "base_url": f"https://me:{CANARY}/7@llm.example/v1"},
    "query of base_url": {"api_key": "k", "base_url": f"https://llm.example/v1?api_key={CANARY}"},
    "extra_body": {"api_key": "k", "extra_body": {"upstream": [{"token": CANARY}]}},
    "extra_headers": {"api_key": "k", "extra_headers": {"x-upstream": CANARY}},
    "environment": {"base_url": None},
}
WIRES: Mapping[str, dict[str, Any]] = {
    "openai/gpt-4.1": {},
    "openai/gpt-5.4": {"wire": "responses"},
    "anthropic/claude-sonnet-4-5": {},
    "gemini/gemini-2.5-flash": {},
    "ollama/qwen3": {},
    "bedrock/amazon.nova-lite-v1:0": {},
}


class Failing:
    """A transport that fails: by raising, or by a reply of a status whose body repeats what was sent."""

    def __init__(self, failure: BaseException | int) -> None:
        self.failure = failure

    def send(self, request: HttpRequest) -> HttpReply:
        if isinstance(self.failure, BaseException):
            raise self.failure
        echo = f"refused: {request.url} {dict(request.headers.items())} {request.body.decode()}"
        headers = {"content-type": "application/json", "x-request-id": request.headers.get("authorization", "r1")}
        body = json.dumps({"error": {"message": echo, "code": "c1", "type": "t"}})
        return HttpReply(self.failure, headers, b"<html>" if self.failure == 200 else body.encode())

    async def asend(self, request: HttpRequest) -> HttpReply:
        return self.send(request)

    @contextlib.contextmanager
    def stream(self, request: HttpRequest) -> Iterator[Any]:
        yield Chunks(self.send(request))

    @contextlib.asynccontextmanager
    async def astream(self, request: HttpRequest) -> Any:
        yield Chunks(self.send(request))

    def close(self) -> None: ...

    async def aclose(self) -> None: ...


class Chunks:
    """A reply in one chunk."""

    def __init__(self, reply: HttpReply) -> None:
        self.status, self.headers, self._body = reply.status, reply.headers, reply.body

    def __iter__(self) -> Iterator[bytes]:
        return iter([self._body])

    async def __aiter__(self) -> Any:
        yield self._body


FAILURES: Mapping[str, Callable[[], BaseException | int]] = {
    "refused": lambda: ConnectionRefusedError(111, "Connection refused"),
    "late": TimeoutError,
    "broken": lambda: RuntimeError("the transport is broken"),
    "401 that repeats the request": lambda: 401,
    "500 that repeats the request": lambda: 500,
    "garbled": lambda: 200,
}
HOWS = ("blocking", "awaited", "streamed", "streamed and awaited")


async def call(lm: LM, how: str, **options: Any) -> None:
    request = Request((Message.user("hello"),), options=options)
    if how == "blocking":
        lm.respond(request)
    elif how == "awaited":
        await lm.arespond(request)
    elif how == "streamed":
        list(lm.stream(request))
    else:
        _ = [event async for event in lm.astream(request)]


async def failure_of(how: str, model: str, door: str, failure: BaseException | int) -> Exception:
    given = {"base_url": BASE, "transport": Failing(failure), "num_retries": 0, **WIRES[model], **DOORS[door]}
    lm = LM(model, **given)
    with pytest.raises((SigwireError, RuntimeError)) as caught:
        await call(lm, how)
    assert CANARY not in f"{lm!r} {lm.kwargs!r} {lm.history!r} {json.dumps(lm.dump_state())}"
    return caught.value


def shown_by(error: BaseException) -> str:
    """The error and every local variable of sigwire's frames, of the causes too, as rich and pytest show them."""
    seen = [str(error), repr(error), repr(vars(error))]
    if cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
        seen.append(shown_by(cause))
    for value in {id(value): value for value in locals_of(error.__traceback__)}.values():
        seen += [repr(value), pretty_repr(value, max_string=10, max_length=10)]
    return "\n".join(seen)


def locals_of(trace: TracebackType | None) -> Iterator[object]:
    for frame, _ in traceback.walk_tb(trace):
        if "/sigwire/" in frame.f_code.co_filename.replace(os.sep, "/"):
            yield from frame.f_locals.values()


@pytest.fixture(autouse=True)
def keys_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, CANARY)


@grid("door, failure", DOORS, FAILURES)
async def test_no_secret_is_shown_by_a_failed_call(door: str, failure: str) -> None:
    for how in HOWS:
        error = await failure_of(how, "openai/gpt-4.1", door, FAILURES[failure]())
        assert CANARY not in shown_by(error)


@grid("door, model", DOORS, WIRES)
async def test_no_secret_is_shown_by_a_failed_call_over_each_wire(door: str, model: str) -> None:
    error = await failure_of("blocking", model, door, 401)
    assert CANARY not in shown_by(error)
    is_sent = not (door == "environment" and model.startswith("ollama"))  # that key belongs to Ollama's cloud
    assert not (is_sent and isinstance(error, LMError)) or "***" in error.message


# --- the own transport ---------------------------------------------------------------------------------


def closing(connection: socket.socket) -> None:
    connection.recv(100)


def garbling(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n" + connection.recv(1 << 16))


def silent(connection: socket.socket) -> None:
    connection.settimeout(5)
    with contextlib.suppress(OSError):
        while connection.recv(1 << 16):
            pass


def deaf(connection: socket.socket) -> None:
    time.sleep(0.4)


def with_little_room(opened: socket.socket) -> socket.socket:
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    return opened


@pytest.fixture
def peer() -> Iterator[Callable[[Callable[[socket.socket], None]], str]]:
    """Starts servers that treat each connection by a function."""
    with contextlib.ExitStack() as stack:

        def start(behave: Callable[[socket.socket], None]) -> str:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

            def serve() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        with listener.accept()[0] as connection, contextlib.suppress(OSError):
                            behave(connection)

            threading.Thread(target=serve, daemon=True).start()
            return f"127.0.0.1:{listener.getsockname()[1]}"

        yield start


@pytest.mark.parametrize("behave", [closing, garbling, silent, deaf])
@pytest.mark.parametrize("how", HOWS)
async def test_no_secret_is_shown_when_the_connection_fails(
    how: str, behave: Callable[[socket.socket], None], peer: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "configure_socket", with_little_room)
    body = {"token": CANARY, "filler": "x" * (300_000 if behave is deaf else 1)}
    with HttpTransport(headers={"x-proxy-key": CANARY}) as transport:
        lm = LM(
            "openai/gpt-4.1", api_key=CANARY, base_url=f"http://me:{CANARY}@{peer(behave)}/v1?key={CANARY}",
            extra_body=body, transport=transport, timeout=0.1, num_retries=0,
        )  # fmt: skip
        with pytest.raises(LMError) as caught:
            await call(lm, how)
        assert CANARY not in shown_by(caught.value)


# --- errors before a request ---------------------------------------------------------------------------


WRONG: list[dict[str, Any]] = [
    {"timeout": "soon"},
    {"wire": "telegraph"},
    {"headers": [("authorization", CANARY)]},
    {"headers": {"authorization": f"{CANARY}\n"}},
    {"api_key": f"{CANARY}\nmore"},
    {"base_url": f"me:{CANARY}@llm.example/v1"},
    {"base_url": f"https://me:{CANARY}@llm.example:port/v1"},
    {"base_url": f"https://me:{CANARY}@/v1"},
    {"base_url": f"//me:{CANARY}@llm.example/v1"},
    {"base_url": f"htps://me:{CANARY}@llm.example/v1"},
    {"base_url": f"https://me:{CANARY}/7@llm.example/v1"},
    {"extra_body": {"token": CANARY, "client": object()}},
    {"extra_body": [{"key": CANARY}]},
    {"temprature": 1},
]


@pytest.mark.parametrize("how", HOWS)
async def test_no_secret_is_shown_by_a_wrong_setting(how: str) -> None:
    for given in WRONG:
        settings = {"api_key": CANARY, "headers": {"x-a": CANARY}, "extra_body": {"token": CANARY}, "num_retries": 0}
        with pytest.raises(Exception, match=r".") as caught:
            await call(LM("openai/gpt-4.1", **{**settings, **given}), how)
        assert CANARY not in shown_by(caught.value), given


def test_no_secret_is_shown_by_a_wrong_option_of_a_call_or_a_module() -> None:
    lm = LM("openai/gpt-4.1", api_key=CANARY)
    secret: dict[str, Any] = {"extra_body": {"token": CANARY}, "temprature": 1}
    for fails in (
        lambda: lm("hello", **secret),
        lambda: lm.copy(api_key=CANARY, **secret)("hello"),
        lambda: Predict("q -> a", lm=lm, **secret)(q="x"),
    ):
        with pytest.raises(SigwireError) as caught:
            fails()
        assert CANARY not in shown_by(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"proxy": f"ftp://me:{CANARY}@proxy:21"},
        {"proxy": f"http://me:{CANARY}@proxy:port"},
        {"certificate": ("missing.pem", "missing.key", CANARY)},
        {"headers": {"x-proxy-key": f"{CANARY}\n"}},
        {"timeout": 0, "headers": {"x-proxy-key": CANARY}},
    ],
    ids=["proxy scheme", "proxy port", "certificate", "header", "timeout"],
)
def test_no_secret_is_shown_by_a_wrong_setting_of_the_transport(
    given: dict[str, Any], peer: Callable[..., str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        HttpTransport(**given).send(HttpRequest(f"https://{peer(closing)}/", {}))
    assert CANARY not in shown_by(caught.value)


def test_no_secret_is_shown_by_a_wrong_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", f"ftp://me:{CANARY}@proxy:21")
    with pytest.raises(ConfigurationError) as caught:
        HttpTransport().send(HttpRequest("https://llm.example/", {}))
    assert CANARY not in shown_by(caught.value)


# --- the tools that print local variables --------------------------------------------------------------


@pytest.mark.long  # printing the local variables takes seconds
def test_rich_traceback_with_locals_shows_no_secret() -> None:
    predict = Predict(
        "q -> a", lm=LM("openai/gpt-4.1", transport=Failing(401), num_retries=0, **DOORS["authorization"])
    )
    with pytest.raises(LMAuthenticationError) as caught:
        predict(q="x")
    error, printed = caught.value, io.StringIO()
    trace = Traceback.from_exception(type(error), error, error.__traceback__, show_locals=True, extra_lines=0)
    Console(file=printed, width=160).print(trace)
    assert "endpoint" in printed.getvalue()
    assert CANARY not in printed.getvalue()


@pytest.mark.long
def test_failed_test_under_pytest_with_locals_shows_no_secret(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os, sigwire\n"
        "def test_it():\n"
        "    lm = sigwire.LM('openai/gpt-4.1', base_url='http://127.0.0.1:9/v1', api_key=os.environ['X'], num_retries=0)\n"
        "    sigwire.Predict('q -> a', lm=lm)(q='x')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-l", "-q", "-p", "no:cacheprovider", tmp_path],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "X": CANARY, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "LMTransportError" in done.stdout
    assert "endpoint" in done.stdout
    assert CANARY not in done.stdout
