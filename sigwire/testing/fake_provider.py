"""``FakeProvider``: a language model provider on this machine, for tests of programs that talk HTTP.

It speaks the providers' wires at one address, answers from a script (``answers.py``) or by any language model, and refuses
what the real one refuses, with its status and its words. A request goes through these steps; each may end it:

    route -> key -> JSON -> the wire's rules -> model known -> script -> the wire's answer, whole or event by event

Everything is recorded, refused requests too, and of a stream how far it came.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import to_thread
from sigwire.errors import ConfigurationError
from sigwire.lm.base import LanguageModel
from sigwire.testing.answers import Answer, Events, Fault, Raw, Script, Streamed
from sigwire.testing.chunking import cutter
from sigwire.testing.playback import Progress, StreamPlayback
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.server import LoopbackServer, ServerReply
from sigwire.testing.wire import FakeWire, IdSequence, ParsedRequest, ReceivedRequest, Rejected
from sigwire.testing.wires.anthropic import Anthropic
from sigwire.testing.wires.clouds import AzureChat, AzureResponses, Vertex
from sigwire.testing.wires.compatible import CompatibleChat
from sigwire.testing.wires.gemini import Gemini
from sigwire.testing.wires.ollama import Ollama
from sigwire.testing.wires.openai_chat import OpenAIChat
from sigwire.testing.wires.openai_responses import OpenAIResponses

__all__ = ["PLACES", "WIRES", "FakeProvider", "Recorded"]

WIRES: Mapping[str, FakeWire] = {
    wire.name: wire for wire in (OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini(), Ollama())
}
"""The wires by name."""

PLACES: Mapping[str, FakeWire] = {
    **WIRES,
    **{wire.name: wire for wire in (CompatibleChat(), AzureChat(), AzureResponses(), Vertex())},
}
"""The wires, and those of them that compatible hosts and clouds serve elsewhere."""

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"})
_SECRET_QUERY = frozenset({"key", "api_key"})


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as it came, and what was made of it.

    ``wire`` is ``None`` for a path that no wire has, ``request`` for a request that was refused; ``body`` is the JSON, or the
    text where it is none. Keys are masked. ``status`` and ``answer`` are what went back; for a stream, ``answer`` lists the
    events that make the whole of it, and ``stream`` says how far it came.
    """

    wire: str | None
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: JsonValue
    request: Request | None
    status: int
    answer: JsonValue
    stream: Progress | None = None


@dataclass(frozen=True, slots=True)
class _Handled:
    answered: ServerReply
    asked: ParsedRequest | None = None
    performance: StreamPlayback | None = None


class FakeProvider:
    """A provider on the loopback interface that answers from a script.

    ``answers``: a list of texts, tool calls, ``Choice``, ``Response``, ``Fault``, ``Raw``, ``LMError`` and functions of the
    request, used up one by one; or one function or language model for every request. A script that has run out answers with an
    error that says so. ``key``: the only key that is taken (without it, any); ``models``: the only models that exist.
    ``port`` 0 takes a free one. ``streamed``: how answers are streamed whose script does not say it.

    It runs between ``start()`` and ``close()``, or as a context manager, sync or async. ``requests`` holds what came.

    >>> from urllib.request import Request as HttpRequest, urlopen
    >>> with FakeProvider(["Hello"]) as provider:
    ...     body = b'{"model": "m", "messages": [{"role": "user", "content": "Hi"}]}'
    ...     url = provider.url("openai") + "/chat/completions"
    ...     with urlopen(HttpRequest(url, body, {"Authorization": "Bearer any"})) as answer:
    ...         text = loads(answer.read())["choices"][0]["message"]["content"]
    >>> text, provider.requests[0].request.messages[0].text
    ('Hello', 'Hi')
    """

    def __init__(
        self,
        answers: Iterable[Answer] | Callable[[Request], Answer] | LanguageModel | str = (),
        *,
        key: str | None = None,
        models: Collection[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        streamed: Streamed | None = None,
    ) -> None:
        self.script = Script(answers)
        self._streamed = streamed or Streamed()
        self._requests: list[Recorded] = []
        self._key, self._models = key, models
        self._address = (host, port)
        self._server: LoopbackServer | None = None
        self._ids = IdSequence()
        self._lock = threading.Lock()

    # --- running ---------------------------------------------------------------------------------

    def start(self) -> Self:
        """Listen and answer; gives the provider itself. Raises ``OSError`` where the port is taken."""
        if self._server is None:
            self._server = LoopbackServer(self._answer, *self._address)
            self._server.start()
        return self

    def close(self) -> None:
        """Stop, and end every open connection. ``requests`` stay."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def url(self, wire: str) -> str:
        """The base URL for a client of the wire ("openai", "openai-responses", "anthropic", "gemini", "ollama"), or of another
        host that serves it ("compatible", "azure", "azure-responses", "vertex").

        Raises ``ConfigurationError`` for a wire that there is none of, and before the provider runs.
        """
        if wire not in PLACES:
            raise ConfigurationError(
                f"No wire {wire!r} (asking a FakeProvider for its URL). Use one of {sorted(PLACES)}."
            )
        if self._server is None:
            raise ConfigurationError("The FakeProvider is not running (asking for its URL). Use it in a with block.")
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}{PLACES[wire].base}"

    @property
    def requests(self) -> tuple[Recorded, ...]:
        """What came so far, in order."""
        with self._lock:
            return tuple(self._requests)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await to_thread(self.close)

    # --- answering -------------------------------------------------------------------------------

    def _answer(self, exchange: ReceivedRequest) -> ServerReply:
        wire = next((wire for wire in PLACES.values() if wire.route.fullmatch(exchange.path)), None)
        if wire is None or exchange.method != "POST":
            outcome = _Handled(_no_such_place(exchange))
        else:
            outcome = self._outcome(wire, exchange)
        record = _record(wire, exchange, outcome)
        with self._lock:
            self._requests.append(record)
        return outcome.answered

    def _outcome(self, wire: FakeWire, exchange: ReceivedRequest) -> _Handled:
        request_id = self._ids("req_")
        try:
            asked = self._read(wire, exchange)
        except InvalidValue as misfit:
            return _Handled(_refused(wire, wire.describe(misfit), request_id))
        except Rejected as rejected:
            return _Handled(_refused(wire, rejected.fault, request_id))
        reply, how = self.script.next(asked.request)
        if isinstance(reply, Raw):
            return _Handled(ServerReply(reply.status, reply.encoded, reply.headers, reply.cut), asked)
        if isinstance(reply, Fault):
            return _Handled(_refused(wire, reply, request_id), asked)
        try:
            return self._answered(wire, asked, reply, how or self._streamed, request_id)
        except ConfigurationError as error:
            return _Handled(_refused(wire, Fault("server", str(error)), request_id), asked)

    def _answered(
        self, wire: FakeWire, asked: ParsedRequest, reply: Response | Events, how: Streamed, request_id: str
    ) -> _Handled:
        headers = wire.headers(None, request_id)
        if asked.framing is not None:
            events = self._events(wire, asked, reply, how)
            sent = min(how.stop_after or 0, len(events))
            fault = wire.fail(wire.worded(how.fault), request_id, sent) if how.fault else None
            performance = StreamPlayback(events, asked.framing, how, fault, isinstance(reply, Events))
            headers = {**headers, "content-type": asked.framing.content_type}
            return _Handled(ServerReply(200, headers=headers, play=performance.play), asked, performance)
        if isinstance(reply, Events):
            raise ConfigurationError("The script has Events, and the request asks for a whole answer (answering).")
        return _Handled(ServerReply(200, dumps(wire.write(reply, asked, self._ids)).encode(), headers), asked)

    def _events(
        self, wire: FakeWire, asked: ParsedRequest, reply: Response | Events, how: Streamed
    ) -> list[JsonObject | str | bytes]:
        if isinstance(reply, Events):
            return list(reply.items)
        return [*wire.split(wire.write(reply, asked, self._ids), asked, cutter(how.cut, how.seed))]

    def _read(self, wire: FakeWire, exchange: ReceivedRequest) -> ParsedRequest:
        key = wire.key(exchange)
        if self._key is not None and key != self._key:
            raise Rejected(Fault("auth", wire.wrong_key))
        try:
            body = RequestNode(loads(exchange.body))
        except ValueError as error:
            raise Rejected(Fault("bad_request", f"We could not parse the JSON body of your request: {error}")) from None
        asked = wire.read(body, exchange)
        if self._models is not None and asked.model not in self._models:
            raise Rejected(Fault("not_found", wire.no_such_model.format(model=asked.model)))
        return asked


def _no_such_place(exchange: ReceivedRequest) -> ServerReply:
    error: JsonObject = {
        "message": f"The fake provider has nothing at {exchange.method} {exchange.path}.",
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    }
    return ServerReply(404, dumps({"error": error}).encode())


def _refused(wire: FakeWire, fault: Fault, request_id: str) -> ServerReply:
    status, _, _ = wire.status(fault)
    return ServerReply(
        status, dumps(wire.refuse(wire.worded(fault), request_id)).encode(), wire.headers(fault, request_id)
    )


def _record(wire: FakeWire | None, exchange: ReceivedRequest, outcome: _Handled) -> Recorded:
    return Recorded(
        wire.name if wire else None,
        exchange.method,
        exchange.path,
        _masked(exchange.query, _SECRET_QUERY),
        _masked(exchange.headers, _SECRET_HEADERS),
        _json_or_text(exchange.body),
        outcome.asked.request if outcome.asked else None,
        outcome.answered.status,
        _json_or_text(outcome.answered.body) if outcome.performance is None else _shown(outcome.performance),
        outcome.performance.progress if outcome.performance else None,
    )


def _shown(performance: StreamPlayback) -> JsonValue:
    return [event.decode(errors="replace") if isinstance(event, bytes) else event for event in performance.events]


def _masked(values: Mapping[str, str], secret: Collection[str]) -> dict[str, str]:
    return {name: "***" if name in secret else value for name, value in values.items()}


def _json_or_text(body: bytes) -> Any:
    try:
        return loads(body)
    except ValueError:
        return body.decode(errors="replace")
