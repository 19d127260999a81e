"""``FakeProvider``: a language model provider on the loopback interface, for tests of programs that use HTTP.

It serves the providers' wires at one address and answers from a script (``answers``) or by a language model. It refuses
requests that the real provider refuses, with its status and its text. A request passes these steps; each may end it:

    route -> key -> JSON -> the rules of the wire -> known model -> rate limit -> script -> the answer, whole or as events

Every request is recorded and counted, refused ones as well, and of a stream its progress.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex
from typing import Any, Self

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.loops import to_thread
from sigwire.errors import ConfigurationError, suggest
from sigwire.lm.base import LanguageModel
from sigwire.testing.answers import Answer, Delivered, Events, Fault, Raw, Script, ScriptedAnswer, Streamed
from sigwire.testing.batches.desk import BatchDesk, BatchPlan
from sigwire.testing.chunking import cutter
from sigwire.testing.families import check_family
from sigwire.testing.media import check_media
from sigwire.testing.places import BATCH_APIS, PLACES, ROUTED
from sigwire.testing.playback import Progress, StreamPlayback
from sigwire.testing.rate_limit import RateLimit, Traffic, Turnstile
from sigwire.testing.request_node import InvalidValue, RequestNode
from sigwire.testing.server import LoopbackServer, ServerReply
from sigwire.testing.wire import FakeWire, IdSequence, ParsedRequest, ReceivedRequest, Rejected, request_tokens
from sigwire.testing.wires.ollama import Ollama

__all__ = ["FakeProvider", "Recorded"]

_CANNOT_WRITE = "The scripted answer cannot be written: {}: "
_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie"})
_SECRET_QUERY = frozenset({"key", "api_key"})


@dataclass(frozen=True, slots=True)
class Recorded:
    """A received request and its answer. Keys are masked.

    ``wire`` is ``None`` for an unknown path, ``request`` is ``None`` for a refused request. ``body``: the JSON, or the text
    if it is not JSON. ``status`` and ``answer``: the reply; for a stream ``answer`` lists the events and ``stream`` is the
    progress.
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
    reply: ServerReply
    parsed: ParsedRequest | None = None
    playback: StreamPlayback | None = None


class FakeProvider:
    """A provider on the loopback interface that answers from a script.

    ``answers``: a list of texts, tool calls, ``Choice``, ``Response``, ``Fault``, ``Raw``, ``LMError`` and functions of the
    request, consumed in order; or one function or language model for every request. An empty script answers with an error.
    ``key``: the only accepted key (default: any). ``models``: the only existing models (default: any).
    ``port``: 0 for a free port. ``streamed``: how answers without a ``Streamed`` are streamed. ``delivered``: how those
    without a ``Delivered`` are delivered. ``limit``: what each key may send; its refusals are sent at once. ``keep``: the
    number of the latest requests to keep (default: all). ``batches``: how batches run (default: at once, all lines).

    It runs between ``start()`` and ``close()``, or as a context manager, sync or async. ``requests`` holds the received
    requests, ``traffic`` their numbers by key.

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
        delivered: Delivered | None = None,
        limit: RateLimit | None = None,
        keep: int | None = None,
        batches: BatchPlan | None = None,
    ) -> None:
        self.script = Script(answers)
        self._streamed = streamed or Streamed()
        self._delivered = delivered or Delivered()
        self._turnstile = Turnstile(limit)
        self._requests: deque[Recorded] = deque(maxlen=keep)
        self._key, self._models = key, models
        self._address, self._run = (host, port), f"run-{token_hex(4)}"
        self._server: LoopbackServer | None = None
        self._batches = BatchDesk(batches or BatchPlan(), BATCH_APIS, self._run)
        self._stored: dict[str, JsonValue] = {}
        self._ids, self._lock = IdSequence(), threading.Lock()

    def start(self) -> Self:
        """Listen and answer; return the provider. Raises ``OSError`` if the port is in use."""
        if self._server is None:
            self._server = LoopbackServer(self._answer, *self._address)
            self._server.start()
        return self

    def close(self) -> None:
        """Stop and close every connection. ``requests`` are kept."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def url(self, wire: str) -> str:
        """Return the base URL of a wire: "openai", "openai-responses", "anthropic", "gemini", "ollama", "bedrock", or a
        variant: "compatible", "azure", "azure-responses", "vertex", "vertex-claude"; or a decision endpoint: "decisions",
        "system-one", "gemini-decisions".

        Raises ``ConfigurationError`` for an unknown wire, and if the provider is not running.
        """
        if wire not in PLACES:
            raise ConfigurationError(
                f"Unknown wire {wire!r} (getting the URL of a FakeProvider). {suggest(wire, PLACES)}Use one of "
                f"{', '.join(sorted(PLACES))}."
            )
        if self._server is None:
            raise ConfigurationError("The FakeProvider is not running (getting its URL). Use it in a with block.")
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/{self._run}{PLACES[wire].base}"

    @property
    def requests(self) -> tuple[Recorded, ...]:
        """The received requests, in order, with the lines of batches whose time has come."""
        self._batches.run_due()
        with self._lock:
            return tuple(self._requests)

    @property
    def traffic(self) -> Mapping[str, Traffic]:
        """The counters of requests by key; the key of a request without one is ""."""
        return self._turnstile.traffic

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await to_thread(self.close)

    def _answer(self, exchange: ReceivedRequest) -> ServerReply:
        exchange = replace(exchange, path=exchange.path.removeprefix(f"/{self._run}"))
        if (api := self._batches.endpoints(exchange)) is not None:
            try:
                self._authenticate(api.wire, exchange)
                return self._batches.reply(api, exchange, self._answer)
            except Rejected as rejected:
                return _error_reply(api.wire, rejected.fault, self._ids("req_"))
        if exchange.path == Ollama.show_path:
            return ServerReply(200, Ollama.show())
        wire = next((wire for wire in ROUTED if wire.route.fullmatch(exchange.path)), None)
        asked = wire if exchange.method == "POST" else None
        handled = _Handled(_unknown_path(exchange)) if asked is None else self._handle(asked, exchange)
        if self._requests.maxlen != 0:
            record = _record(wire, exchange, handled)
            with self._lock:
                self._requests.append(record)
        return handled.reply

    def _handle(self, wire: FakeWire, exchange: ReceivedRequest) -> _Handled:
        request_id = self._ids("req_")
        try:
            key = self._authenticate(wire, exchange)
            parsed = self._read(wire, exchange)
        except InvalidValue as error:
            return _Handled(_error_reply(wire, wire.describe(error), request_id))
        except Rejected as rejected:
            return _Handled(_error_reply(wire, rejected.fault, request_id))
        refusal, quotas = self._turnstile.admit(key, request_tokens(parsed))
        announced = wire.quota_headers(quotas)
        if refusal is not None:
            return _Handled(_with_headers(_error_reply(wire, refusal, request_id), announced), parsed)
        own = wire.answer(parsed)
        answer = self.script.next(parsed.request) if own is None else ScriptedAnswer(own)
        handled = self._answer_to(wire, parsed, answer, request_id)
        reply = replace(
            _with_headers(handled.reply, announced),
            delivery=answer.delivery or self._delivered,
            done=partial(self._turnstile.finish, key),
        )
        return replace(handled, reply=reply)

    def _answer_to(self, wire: FakeWire, parsed: ParsedRequest, answer: ScriptedAnswer, request_id: str) -> _Handled:
        reply, how = answer.reply, answer.how or self._streamed
        if isinstance(reply, Raw):
            return _Handled(ServerReply(reply.status, reply.encoded, reply.headers, reply.cut), parsed)
        if isinstance(reply, Fault):
            return _Handled(_error_reply(wire, reply, request_id), parsed)
        breaks = (answer.delivery or self._delivered).stop == "body"
        try:
            return self._reply_to(wire, parsed, reply, how, request_id, breaks)
        except Exception as error:  # values of the user's script: a server answers and keeps running
            why = "" if isinstance(error, ConfigurationError) else _CANNOT_WRITE.format(type(error).__name__)
            text = f"{why}{error}"
            return _Handled(_error_reply(wire, Fault("server", text), request_id), parsed)

    def _reply_to(
        self,
        wire: FakeWire,
        parsed: ParsedRequest,
        reply: Response | Events,
        how: Streamed,
        request_id: str,
        breaks: bool,
    ) -> _Handled:
        headers = wire.headers(None, request_id)
        if parsed.framing is not None:
            events = self._events(wire, parsed, reply, how)
            if breaks and how.stop_after is None:
                how = replace(how, stop_after=len(events) // 2)
            sent = min(how.stop_after or 0, len(events))
            fault = wire.fail(wire.with_message(how.fault), request_id, sent) if how.fault else None
            playback = StreamPlayback(events, parsed.framing, how, fault, isinstance(reply, Events))
            headers = {**headers, "content-type": parsed.framing.content_type}
            return _Handled(ServerReply(200, headers=headers, play=playback.play), parsed, playback)
        if isinstance(reply, Events):
            raise ConfigurationError("The script has Events, but the request is for a whole answer (answering).")
        return _Handled(ServerReply(200, dumps(self._write(wire, parsed, reply)).encode(), headers), parsed)

    def _events(
        self, wire: FakeWire, parsed: ParsedRequest, reply: Response | Events, how: Streamed
    ) -> list[JsonObject | str | bytes]:
        if isinstance(reply, Events):
            return list(reply.items)
        body = self._write(wire, parsed, reply)
        dumps(body)  # an answer that is not JSON is an error before the stream starts
        return [*wire.split(body, parsed, cutter(how.cut, how.seed))]

    def _write(self, wire: FakeWire, parsed: ParsedRequest, reply: Response) -> JsonObject:
        body = wire.write(reply, parsed, self._ids)
        if parsed.stored:
            output: Any = body["output"]
            self._stored.update({item["id"]: item for item in output})
        return body

    def _authenticate(self, wire: FakeWire, exchange: ReceivedRequest) -> str:
        key = wire.key(exchange)
        if self._key is not None and key != self._key:
            raise Rejected(Fault("auth", wire.wrong_key))
        self._turnstile.see(key or "")
        return key or ""

    def _read(self, wire: FakeWire, exchange: ReceivedRequest) -> ParsedRequest:
        try:
            body = RequestNode(loads(exchange.body))
        except ValueError as error:
            raise Rejected(Fault("bad_request", f"We could not parse the JSON body of your request: {error}")) from None
        parsed = wire.read(body, replace(exchange, stored=self._stored))
        check_media(wire.name, parsed.request)
        check_family(parsed, wire.name)
        if self._models is not None and parsed.model not in self._models:
            raise Rejected(Fault("not_found", wire.no_such_model.format(model=parsed.model)))
        return parsed


def _unknown_path(exchange: ReceivedRequest) -> ServerReply:
    text = f"The fake provider does not serve {exchange.method} {exchange.path}."
    error: JsonObject = {"message": text, "type": "invalid_request_error", "param": None, "code": None}
    return ServerReply(404, dumps({"error": error}).encode())


def _error_reply(wire: FakeWire, fault: Fault, request_id: str) -> ServerReply:
    body = dumps(wire.refuse(wire.with_message(fault), request_id)).encode()
    return ServerReply(wire.status(fault)[0], body, wire.headers(fault, request_id))


def _with_headers(reply: ServerReply, headers: Mapping[str, str]) -> ServerReply:
    return replace(reply, headers={**headers, **reply.headers}) if headers else reply


def _record(wire: FakeWire | None, exchange: ReceivedRequest, handled: _Handled) -> Recorded:
    return Recorded(
        wire.name if wire else None,
        exchange.method,
        exchange.path,
        _mask_values(exchange.query, _SECRET_QUERY),
        _mask_values(exchange.headers, _SECRET_HEADERS),
        _json_or_text(exchange.body),
        handled.parsed.request if handled.parsed else None,
        handled.reply.status,
        _json_or_text(handled.reply.body) if handled.playback is None else _events_sent(handled.playback),
        handled.playback.progress if handled.playback else None,
    )


def _events_sent(playback: StreamPlayback) -> JsonValue:
    return [event.decode(errors="replace") if isinstance(event, bytes) else event for event in playback.events]


def _mask_values(values: Mapping[str, str], secret: Collection[str]) -> dict[str, str]:
    return {name: "***" if name in secret else value for name, value in values.items()}


def _json_or_text(body: bytes) -> Any:
    try:
        return loads(body)
    except ValueError:
        return body.decode(errors="replace")
