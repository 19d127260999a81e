"""The HTTP backend of one model: a row of the provider table, a codec and a transport, tied together.

    Request ─▶ codec.encode ─▶ HttpRequest ─▶ transport ─▶ HttpReply ─▶ codec.decode / decode_error ─▶ Response

Everything is one program (``HttpBackend.steps``), run blocking or awaited. It decides the order of these steps; it knows no
provider's name, no model's, and nothing of their JSON. Where a request goes and which key goes along is ``EndpointResolver``'s; the
key is masked in what is raised. No HTTP client is imported before the first request, and what only streams need
(``telling``) not before the first stream.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, cast
from urllib.parse import quote

from pydantic_core import from_json, to_json

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.request import Request, memoized
from sigwire.core.response import Attempt, Response
from sigwire.effects.emitting import Emit
from sigwire.effects.gather import Gather
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import (
    ConfigurationError,
    LMAuthenticationError,
    LMError,
    LMInvalidRequestError,
    LMTimeoutError,
    LMTransportError,
    UnsupportedFeature,
)
from sigwire.lm.codecs.shared.choices import join_responses
from sigwire.lm.codecs.shared.errors import read_body
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, StreamingCodec, Target, WireProfile
from sigwire.lm.policy.retry import RetryPolicy, retry_exchange
from sigwire.lm.providers.address import EndpointResolver, ServiceEndpoint
from sigwire.lm.providers.connection import ConnectionOptions, shown
from sigwire.lm.providers.registry import PROVIDERS, suggest_provider
from sigwire.lm.providers.row import Provider, SimpleBackend, Wire
from sigwire.lm.secrets import redact_key

if TYPE_CHECKING:
    from sigwire.core.events import StreamEvent
    from sigwire.lm.http.messages import HttpReply, HttpRequest, Transport

__all__ = ["Backend", "HttpBackend", "SimpleBackendAdapter", "connect"]

# --- the two kinds of backend ------------------------------------------------------------------------------


class Backend(Protocol):
    """What a model hands its requests to."""

    def steps(self, request: Request, policy: RetryPolicy) -> Steps[Response]:
        """Answer; failed trips are made again as ``policy`` says."""
        ...

    def stream_steps(self, request: Request, policy: RetryPolicy) -> Steps[Response]:
        """The same, telling the answer as it comes; once something was told, no trip is made again."""
        ...

    def close(self) -> None:
        """Close idle connections."""
        ...


def connect(
    provider: Provider, name: str, connection: ConnectionOptions, capabilities: Capabilities, model: str | None = None
) -> Backend:
    """What answers for a model of a row; ``model`` is what the user calls it. Opens nothing.

    Raises ``ConfigurationError`` for a wire that the row does not have, and for an extra that is not installed.
    """
    if provider.needs and importlib.util.find_spec(provider.needs) is None:
        known = ", ".join(sorted(row for row in PROVIDERS if not PROVIDERS[row].needs))
        raise ConfigurationError(
            f"{name!r} is reached through {provider.needs}, which is not installed (making an LM). {suggest_provider(name)}"
            f'pip install "sigwire[{provider.needs}]", or use one of the providers that need nothing: {known} '
            "(for example 'offline/lexical')."
        )
    if provider.backend:
        return SimpleBackendAdapter(provider.connect(name, connection), model or f"{provider.prefix}/{name}")
    return HttpBackend(provider, name, connection, capabilities, model)


class SimpleBackendAdapter:
    """A backend of a row's own, with the client's retries around it."""

    def __init__(self, backend: SimpleBackend, model: str) -> None:
        self._backend, self._model = backend, model

    def steps(self, request: Request, policy: RetryPolicy) -> Steps[Response]:
        attempts: list[Attempt] = []
        response = yield from retry_exchange(partial(self._once, request), policy, attempts, self._model)
        return _with_attempts(response, attempts, self._model) if attempts else response

    def stream_steps(self, request: Request, policy: RetryPolicy) -> Steps[Response]:
        in_pieces: Callable[[Request], Steps[Response]] | None = getattr(self._backend, "stream_steps", None)
        if in_pieces is None:
            response = yield from self.steps(request, policy)
            yield _tell_all(response)
            return response
        attempts: list[Attempt] = []
        response = yield from retry_exchange(partial(in_pieces, request), policy, attempts, self._model)
        return _with_attempts(response, attempts, self._model) if attempts else response

    def close(self) -> None:
        """There is nothing of ours to close."""

    def _once(self, request: Request) -> Steps[Response]:
        answer, aanswer = partial(self._backend.answer, request), partial(self._backend.aanswer, request)
        response: Response = yield FunctionEffect(answer, aanswer)
        return response


def _with_attempts(response: Response, failed: list[Attempt], model: str) -> Response:
    done = Attempt("retry" if failed else "ask", model, response.usage)
    return replace(response, attempts=(*failed, done))


# --- over HTTP ---------------------------------------------------------------------------------------------


class _SendEffect(NamedTuple):
    """An effect: one exchange over HTTP."""

    transport: Transport
    request: HttpRequest

    def run(self) -> HttpReply:
        return self.transport.send(self.request)

    async def arun(self) -> HttpReply:
        return await self.transport.asend(self.request)


class _WireRoute(NamedTuple):
    """One of the row's wires, ready for a model. ``continuation``: the codec's function of that name, ``None`` without one."""

    codec: Codec[Any]
    target: Target[Any]
    wire: Wire
    continuation: Callable[[JsonValue, EncodedRequest], EncodedRequest | None] | None


_Tools: TypeAlias = Literal["none", "functions", "builtin"]


def _tools_of(request: Request) -> _Tools:
    return memoized(request.tools, _kind_of) if request.tools else "none"


def _kind_of(tools: tuple[JsonObject, ...]) -> _Tools:
    return "functions" if all(tool.get("type", "function") == "function" for tool in tools) else "builtin"


_AT_ONCE = 8  # requests for the choices of one call, where a wire gives one at a time
_CONTINUATIONS = 32  # of a turn that the provider pauses; more is a turn that does not end


class HttpBackend:
    """Answers over HTTP for one model of one row."""

    def __init__(
        self,
        provider: Provider,
        name: str,
        connection: ConnectionOptions,
        capabilities: Capabilities,
        model: str | None = None,
    ) -> None:
        self._provider, self._name, self._connection = provider, name, connection
        self._capabilities = capabilities
        self._model = model or f"{provider.prefix}/{name}"
        self._address = EndpointResolver(provider, name, connection, self._model)
        self._known = provider.lists_model(name)
        self._wires: dict[_Tools, Wire] = {}
        self._routes: dict[tuple[_Tools, bool], _WireRoute] = {}  # by the tools, and whether it is spoken elsewhere
        if connection.wire is not None and connection.wire not in provider.wires:
            raise ConfigurationError(
                f"{provider.prefix} is not spoken to over {connection.wire!r} (making an LM). "
                f"Use one of {', '.join(provider.wires)}."
            )

    def __deepcopy__(self, memo: object) -> HttpBackend:
        return self  # holds nothing that changes

    def close(self) -> None:
        """Close idle connections; the next request opens new ones."""
        transport = self._connection.transport or _shared
        if transport is not None:
            transport.close()

    # --- the program

    def steps(self, request: Request, policy: RetryPolicy) -> Steps[Response]:
        """Answer a request.

        Raises ``CallerError`` before anything is sent where the request cannot be, and ``LMError`` where no answer came.
        """
        route = self._route(_tools_of(request))
        self._check_tools(request)
        sent = route.codec.encode(request, route.target)
        try:
            return (yield from self._answers(route, sent, policy))
        except LMInvalidRequestError as error:
            return (yield from self._send_alternative(route, sent, error, policy))

    def _answers(self, route: _WireRoute, sent: EncodedRequest, policy: RetryPolicy) -> Steps[Response]:
        """The answers to a request that is sent as often as it takes."""
        if sent.repeat == 1:
            return self._one(route, sent, policy)
        return self._several(route, sent, policy)

    def _several(self, route: _WireRoute, sent: EncodedRequest, policy: RetryPolicy) -> Steps[Response]:
        """The choices of a request that has to be sent for each of them."""
        responses: list[Response] = yield Gather(
            [self._one(route, sent, policy) for _ in range(sent.repeat)], limit=_AT_ONCE
        )
        return join_responses(responses)

    def _send_alternative(
        self, route: _WireRoute, sent: EncodedRequest, error: LMError, policy: RetryPolicy
    ) -> Steps[Response]:
        """The answers to a refused request in another form, where the codec has one; both are in the attempts."""
        other = _other_form(route.codec, error, sent)
        if other is None:
            raise error
        response = yield from self._answers(route, other, policy)
        return replace(response, attempts=(*error.attempts, *response.attempts))

    def _one(self, route: _WireRoute, sent: EncodedRequest, policy: RetryPolicy) -> Steps[Response]:
        """One answer, in as many pieces as the provider gives it."""
        attempts: list[Attempt] = []
        bodies: list[JsonValue] = []
        going_on = sent
        while True:
            before = len(attempts)
            body, response = yield from retry_exchange(
                partial(self._exchange, route, sent, going_on), policy, attempts, self._model
            )
            attempts.append(Attempt("retry" if len(attempts) > before else "ask", self._model, response.usage))
            bodies.append(body)
            following = None if route.continuation is None else route.continuation(body, going_on)
            if following is None or len(bodies) > _CONTINUATIONS:
                break
            going_on = following
        if len(bodies) > 1:
            response = route.codec.decode(bodies, sent, route.target)
        return response.with_attempts(attempts)

    def _exchange(
        self, route: _WireRoute, sent: EncodedRequest, going_on: EncodedRequest
    ) -> Steps[tuple[JsonValue, Response]]:
        """One exchange: its body and what that says."""
        way = self._address.way(going_on.headers)
        try:
            reply: HttpReply = yield _SendEffect(self._transport(), self._http_request(route, going_on, way))
            if 200 <= reply.status < 300:
                return self._read(route, sent, reply)
            recovered = _recovered(route, sent, reply.status, reply.headers, reply.body)
            return recovered.raw, recovered
        except Exception as error:
            raise self._translate_error(error, way, sent)  # noqa: B904  (it has its cause)

    def _read(self, route: _WireRoute, sent: EncodedRequest, reply: HttpReply) -> tuple[JsonValue, Response]:
        body, is_json = _read_json(reply.body)
        try:
            return body, route.codec.decode(body, sent, route.target)
        except LMError as error:
            if error.status is None:
                error.status = reply.status
            if not is_json:
                error.retryable = True  # cut off or garbled on its way: once more may do
            raise

    # --- the same in pieces

    def stream_steps(self, request: Request, policy: RetryPolicy) -> Steps[Response]:
        """Answer a request as ``steps`` does, and emit the answer's events as they come.

        Where an answer takes several requests for its choices, or the codec reads no streams, it is told when it is whole.
        """
        route = self._route(_tools_of(request))
        self._check_tools(request)
        sent = route.codec.encode(request, route.target, stream=True)
        if sent.repeat != 1 or not hasattr(route.codec, "decoder"):
            response = yield from self.steps(request, policy)
            yield _tell_all(response)
            return response
        try:
            return (yield from self._stream_one(route, sent, policy))
        except LMInvalidRequestError as error:
            response = yield from self._send_alternative(
                route, route.codec.encode(request, route.target), error, policy
            )
        yield _tell_all(response)
        return response

    def _stream_one(self, route: _WireRoute, sent: EncodedRequest, policy: RetryPolicy) -> Steps[Response]:
        """One answer, told as it comes, in as many replies as the provider gives it."""
        from sigwire.core.events import collect
        from sigwire.lm.stream_events import end_events, end_events_of

        attempts: list[Attempt] = []
        bodies: list[JsonValue] = []
        going_on = sent
        while True:
            before = len(attempts)
            trip = partial(self._stream_exchange, route, sent, going_on)
            told = yield from retry_exchange(trip, policy, attempts, self._model)
            response, ends = collect(told), end_events(told)
            attempts.append(Attempt("retry" if len(attempts) > before else "ask", self._model, response.usage))
            bodies.append(response.raw)
            following = None if route.continuation is None else route.continuation(response.raw, going_on)
            if following is None or len(bodies) > _CONTINUATIONS:
                break
            going_on = following
        if len(bodies) > 1:
            response = route.codec.decode(bodies, sent, route.target)
            ends = end_events_of(response)
        yield Emit(*ends)
        return response.with_attempts(attempts)

    def _stream_exchange(
        self, route: _WireRoute, sent: EncodedRequest, going_on: EncodedRequest
    ) -> Steps[list[StreamEvent]]:
        """One exchange whose events are told as they come, but for its ends: the provider may have paused.

        What was told by an answer that then fails is on the error.
        """
        from sigwire.lm.stream_events import attach_partial

        told: list[StreamEvent] = []
        way = self._address.way(going_on.headers)
        try:
            yield from self._emit_reply(route, sent, self._http_request(route, going_on, way), told)
        except BaseException as error:  # who stops listening may want what was said, too
            raise attach_partial(self._translate_error(error, way, sent), told)  # noqa: B904
        return told

    def _emit_reply(
        self, route: _WireRoute, sent: EncodedRequest, request: HttpRequest, told: list[StreamEvent]
    ) -> Steps[None]:
        """Open the reply and tell its events; ``told`` has them too."""
        from sigwire.lm.http.reply_stream import ReplyReader
        from sigwire.lm.stream_events import emit_content, emit_decoded

        reply = ReplyReader(self._transport(), request)
        try:
            yield reply.open()
            if 200 <= reply.status < 300:
                yield from emit_decoded(reply, cast("StreamingCodec[Any]", route.codec), sent, route.target, told)
            else:
                body = yield from reply.rest()
                yield emit_content(_recovered(route, sent, reply.status, reply.headers, body), told)
        except GeneratorExit:  # nobody is left to wait
            reply.abort()
            raise
        except BaseException:
            yield reply.close()
            raise
        yield reply.close()

    # --- before the first byte

    def _route(self, tools: _Tools) -> _WireRoute:
        wire = self._wires.get(tools) or self._wire(tools)
        elsewhere = self._is_elsewhere(wire)
        route = self._routes.get((tools, elsewhere))
        if route is None:
            codec, dialect = wire.load(elsewhere=elsewhere)
            row, name = self._provider, self._name
            target: Target[WireProfile] = Target(
                row.prefix, name, dialect, self._capabilities, row.rule_for(name).facts
            )
            route = self._routes[tools, elsewhere] = _WireRoute(
                codec, target, wire, getattr(codec, "continuation", None)
            )
        return route

    def _wire(self, tools: _Tools) -> Wire:
        row, builtin = self._provider, tools == "builtin"
        name = self._connection.wire or row.wire_for(self._name, tools=tools != "none", builtin=builtin)
        return self._wires.setdefault(tools, row.wires[name])

    def _is_elsewhere(self, wire: Wire) -> bool:
        """Whether the wire's other dialect is spoken: to somebody else's model at somebody else's host."""
        if wire.elsewhere is None or self._known:
            return False
        return not self._address.is_own_host(self._address.base()[0])

    def _check_tools(self, request: Request) -> None:
        if request.tools and not self._capabilities.native_tools:
            raise UnsupportedFeature(
                f"{self._model} does not take tools, as far as is known here (nothing was sent). Signatures and ReAct have "
                f"them written as text by themselves; if the model does take tools, say so: "
                f"LM({self._model!r}, capabilities=dataclasses.replace(lm.capabilities, native_tools=True))."
            )

    def _transport(self) -> Transport:
        return self._connection.transport or _shared_transport()

    def _http_request(self, route: _WireRoute, sent: EncodedRequest, way: ServiceEndpoint) -> HttpRequest:
        from sigwire.lm.http.messages import HttpRequest

        url = way.base + _quoted(sent.path)
        if query := route.wire.query or sent.query:
            url += self._address.query({**query, **sent.query})
        # Its own headers: the way is kept, and what a transport does with a request is no other one's business.
        return HttpRequest(url, {**way.headers}, _to_json(sent.body), timeout=self._connection.timeout)

    # --- what to say when it fails

    def _translate_error(self, error: BaseException, way: ServiceEndpoint, sent: EncodedRequest) -> BaseException:
        """What failed on a trip; as an ``LMError`` with what only this place knows, where it is one or of the network."""
        if isinstance(error, LMError):
            return self._add_context(error, way, sent)
        if not isinstance(error, OSError):
            return error
        late = isinstance(error, TimeoutError)
        what = f"No answer from {shown(way.base)}"
        lost = LMTimeoutError(f"{what} in time.") if late else LMTransportError(f"{what}: {error}.")
        lost.__cause__ = error
        return self._add_context(lost, way, sent)

    def _add_context(self, error: LMError, way: ServiceEndpoint, sent: EncodedRequest) -> LMError:
        """The error with what only this place knows: who was asked, with which key, what to do. Without the key."""
        error.provider = error.provider or self._provider.prefix
        error.model = error.model or self._name
        message = error.message
        if isinstance(error, LMAuthenticationError):
            message = f"{message} {way.about_key}"
        if (hint := self._hint(error)) and hint not in message:
            message = f"{message} {hint}"
        if error.status == 404 and self._connection.base_url:
            message = (
                f"{message} Or base_url is not the address of its API: {shown(way.base)} was asked for {sent.path}."
            )
        if isinstance(error, LMInvalidRequestError) and sent.body.get("tools") and _TOOLS_REFUSED.search(message):
            message = f"{message} {_TOOLS_AS_TEXT}"
        error.message = redact_key(message, way.key)
        error.args = (error.message,)
        return error

    def _hint(self, error: LMError) -> str:
        if isinstance(error, LMTransportError) and not isinstance(error.__cause__, ConnectionRefusedError):
            return ""
        return next((hint for kind, hint in self._provider.hints.items() if isinstance(error, kind)), "")


@functools.lru_cache(maxsize=256)
def _quoted(path: str) -> str:
    return quote(path, safe="/:@!$&'()*+,;=~%")


_TOOLS_REFUSED = re.compile(r"tool|function.call", re.IGNORECASE)
_TOOLS_AS_TEXT = (
    "If the model takes no tools, have them written as text: "
    "LM(..., capabilities=dataclasses.replace(lm.capabilities, native_tools=False))."
)


def _tell_all(response: Response) -> Emit:
    from sigwire.lm.stream_events import emit_response

    return emit_response(response)


def _other_form(codec: Codec[Any], error: LMError, sent: EncodedRequest) -> EncodedRequest | None:
    """A refused request in another form, on wires that have one and as long as nothing of an answer was shown."""
    alternative: Callable[[LMError, EncodedRequest], EncodedRequest | None] | None = getattr(codec, "alternative", None)
    return alternative(error, sent) if alternative is not None and error.partial is None else None


def _recovered(
    route: _WireRoute, sent: EncodedRequest, status: int, headers: Mapping[str, str], body: bytes
) -> Response:
    """The answer that an error reply holds, on wires where it can hold one; else the error is raised."""
    recover: Callable[..., Response | None] | None = getattr(route.codec, "recover", None)
    answer = recover(status, headers, body, sent, route.target) if recover is not None else None
    if answer is None:
        raise route.codec.decode_error(status, headers, body, route.target)
    return answer


# --- JSON, as fast as it goes --------------------------------------------------------------------------------


def _to_json(body: Mapping[str, JsonValue]) -> bytes:
    try:
        return to_json(body, inf_nan_mode="null")
    except ValueError:  # half of a surrogate pair in a text
        return dumps(body).encode("utf-8", "replace")


def _read_json(body: bytes) -> tuple[JsonValue, bool]:
    """The body as JSON, else as text; and whether it was JSON."""
    try:
        return cast("JsonValue", from_json(body, allow_inf_nan=False)), True
    except ValueError:  # what it is strict about (a byte order mark, half of a surrogate pair), or no JSON at all
        data = read_body(body)
        return data, not isinstance(data, str)


# --- the transport of all who bring none -----------------------------------------------------------------------

_lock = threading.Lock()
_shared: Transport | None = None


def _shared_transport() -> Transport:
    global _shared
    if _shared is None:
        from sigwire.lm.http.transport import HttpTransport

        with _lock:
            _shared = _shared or HttpTransport()
    return _shared
