"""The HTTP backend of one model: a row of the provider table, a codec and a transport.

    Request ─▶ codec.encode ─▶ HttpRequest ─▶ transport ─▶ HttpReply ─▶ codec.decode / decode_error ─▶ Response

``HttpBackend.answer`` is written once, as steps, for blocking and awaited calls, whole and streamed. It decides the order
of these stages and knows no provider or model by name, and no JSON of a wire. ``EndpointResolver`` gives the URL and the
key; the key is masked in errors. No HTTP client is imported before the first request, ``stream_events`` not before the
first stream.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import quote

from pydantic_core import from_json, to_json

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.parts import ImagePart
from sigwire.core.request import Request, memoized
from sigwire.core.response import Response
from sigwire.effects.emitting import Emit
from sigwire.effects.gather import Gather
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import (
    CallerError,
    ConfigurationError,
    LMAuthenticationError,
    LMError,
    LMInvalidRequestError,
    LMTimeoutError,
    LMTransportError,
    UnsupportedFeature,
    suggest,
)
from sigwire.lm.codecs.shared.choices import join_responses
from sigwire.lm.codecs.shared.errors import EXPIRED_CODES, damaged_reply_error, read_body
from sigwire.lm.codecs.shared.history import has_media
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, StreamingCodec, Target, WireProfile
from sigwire.lm.http.messages import HttpReply, HttpRequest, method_of
from sigwire.lm.policy.call import Call, through
from sigwire.lm.policy.deadlines import shorter
from sigwire.lm.providers.address import EndpointResolver, ServiceEndpoint
from sigwire.lm.providers.connection import ConnectionOptions
from sigwire.lm.providers.row import Provider, Wire
from sigwire.lm.secrets import SecretUrl, redact, redact_url

if TYPE_CHECKING:
    from sigwire.core.events import StreamEvent
    from sigwire.lm.context_length import ContextLength
    from sigwire.lm.http.messages import Transport
    from sigwire.lm.prompt_watch import PromptWatch

__all__ = ["ExchangeResult", "HttpBackend"]


class ExchangeResult(NamedTuple):
    """The outcome of one exchange, whole or streamed.

    ``body`` is the reply's JSON. ``ends`` are the last events of a streamed reply, not yet emitted.
    """

    body: JsonValue
    response: Response
    ends: Sequence[StreamEvent] = ()


class _WireRoute(NamedTuple):
    """One of the row's wires, loaded for a model. ``continuation``: the codec's function of that name, if any."""

    codec: Codec[Any]
    target: Target[Any]
    wire: Wire
    continuation: Callable[[JsonValue, EncodedRequest], EncodedRequest | None] | None


_ToolKind: TypeAlias = Literal["none", "functions", "builtin"]
_MAX_PARALLEL = 8  # exchanges at once for the choices of one call, on wires that give one choice a request
_MAX_CONTINUATIONS = 32  # of a turn that the provider pauses; a longer turn does not end


class HttpBackend:
    """Answers over HTTP for one model of one row."""

    def __init__(
        self, provider: Provider, name: str, connection: ConnectionOptions, capabilities: Capabilities, model: str
    ) -> None:
        resource = dict(provider.read_resource(name))
        self._name = resource.pop("model", name)
        self._base_model = connection.base_model or self._name
        connection = replace(connection, variables={**resource, **connection.variables}) if resource else connection
        self._provider, self._connection = provider, connection
        self._capabilities, self._model = capabilities, model
        self._limits = connection.limits()
        self._resolver = EndpointResolver(provider, name, connection, model)
        self._is_listed = provider.lists_model(self._base_model)
        self._watch: PromptWatch | None = None
        self._length: ContextLength | None = None
        self._wires: dict[_ToolKind, Wire] = {}
        self._routes: dict[tuple[_ToolKind, bool], _WireRoute] = {}  # the flag: at a foreign host
        self._identities: dict[tuple[_ToolKind, str], bytes] = {}
        if connection.wire is not None and connection.wire not in provider.wires:
            raise ConfigurationError(
                f"{provider.prefix} has no wire {connection.wire!r} (making an LM). "
                f"{suggest(str(connection.wire), provider.wires)}Use one of {', '.join(provider.wires)}."
            )

    def __deepcopy__(self, memo: object) -> HttpBackend:
        return self  # its caches are the only state

    def close(self) -> None:
        """Close idle connections; the next request opens new ones."""
        transport = self._connection.transport or _shared
        if transport is not None:
            transport.close()

    def answer(self, call: Call) -> Steps[Response]:
        """Answer a call. A streamed answer that takes several requests, or a codec without streams, is emitted whole.

        Raises ``CallerError`` before anything is sent if the request cannot be encoded, and ``LMError`` for a failed call.
        """
        route, sent = yield from self._prepare(call)
        if call.streamed and (sent.repeat != 1 or not hasattr(route.codec, "decoder")):
            response = yield from self.answer(call.without_stream())
            yield _emit_all(call, response)
            return response
        try:
            response = yield from self._choices(call, route, sent)
        except LMInvalidRequestError as error:
            return (yield from self._send_alternative(call, route, sent, error))
        return response.with_attempts(call.report.log)

    def first_exchange(
        self, call: Call, resolver: Callable[..., EndpointResolver]
    ) -> tuple[HttpRequest, EncodedRequest]:
        """Return the first exchange of a call and its encoded request, with an endpoint of another ``resolver``."""
        route, sent = self._encode(call)
        resolved = resolver(self._provider, self._name, self._connection, self._model).endpoint(sent.headers)
        return self._http_request(call, route, sent, resolved), sent

    def _prepare(self, call: Call) -> Steps[tuple[_WireRoute, EncodedRequest]]:
        """Encode a call. An awaited one with media is encoded in a thread: converting an image takes long."""
        encoded = yield from self._encode_steps(call)
        if not hasattr(encoded[0].codec, "length_request") or encoded[0].target.capabilities.context_window is not None:
            return encoded
        from sigwire.lm.context_length import ContextLength

        length = self._length = self._length or ContextLength()
        route, sent = encoded
        resolve = partial(self._resolver.endpoint, sent.headers)
        found = yield from length.ask(route.codec, call.request, sent, resolve, self._transport, call.remaining())
        if not found:
            return encoded
        self._routes.clear()
        return (yield from self._encode_steps(call))

    def _encode_steps(self, call: Call) -> Steps[tuple[_WireRoute, EncodedRequest]]:
        if not has_media(call.request.messages):
            return self._encode(call)
        from sigwire.lm.media.threads import in_thread

        return (yield from in_thread(partial(self._encode, call)))

    def _encode(self, call: Call) -> tuple[_WireRoute, EncodedRequest]:
        request = call.request
        route = self._route(_tool_kind(request) if request.tools else "none")
        if request.tools and not self._capabilities.native_tools and self._capabilities.decides != "only":
            raise self._tools_error()
        if not self._capabilities.images and has_media(request.messages, (ImagePart,)):
            raise self._images_error()
        return route, route.codec.encode(call.request, route.target, stream=call.streamed)

    def _send_alternative(self, call: Call, route: _WireRoute, sent: EncodedRequest, error: LMError) -> Steps[Response]:
        """Answer with another form of a refused request, if the codec has one. It is not streamed, but emitted whole."""
        if call.streamed:
            sent = route.codec.encode(call.request, route.target)
        other = _alternative_form(route.codec, error, sent)
        if other is None:
            raise error
        call.report.log[:] = error.attempts
        response = (yield from self._choices(call.without_stream(), route, other)).with_attempts(call.report.log)
        if call.streamed:
            yield _emit_all(call, response)
        return response

    def _choices(self, call: Call, route: _WireRoute, sent: EncodedRequest) -> Steps[Response]:
        """Return the steps of all choices: one turn, or several if the wire gives one choice a turn."""
        return self._turn(call, route, sent) if sent.repeat == 1 else self._turns(call, route, sent)

    def _turns(self, call: Call, route: _WireRoute, sent: EncodedRequest) -> Steps[Response]:
        parts = [call.part() for _ in range(sent.repeat)]
        responses: list[Response] = yield Gather([self._turn(part, route, sent) for part in parts], limit=_MAX_PARALLEL)
        call.report.log += [attempt for part in parts for attempt in part.report.log]
        return join_responses(responses)

    def _turn(self, call: Call, route: _WireRoute, sent: EncodedRequest) -> Steps[Response]:
        """One turn of the model, in as many exchanges as the provider takes: it may pause the turn."""
        exchange = self._stream_exchange if call.streamed else self._exchange
        bodies: list[JsonValue] = []
        current = sent
        while True:
            body, response, ends = yield from through(call.layers, call, partial(exchange, call, route, sent, current))
            call.report.record(response.usage)
            bodies.append(body)
            following = route.continuation and route.continuation(body, current)
            if following is None or len(bodies) > _MAX_CONTINUATIONS:
                break
            current = following
        if len(bodies) > 1:
            response = route.codec.decode(bodies, sent, route.target)
        if self._watch is not None:
            response, ends = self._watch.watch(call.request, call.report.log, sent.body, response, ends)
        if call.streamed:
            from sigwire.lm.stream_events import complete_ends, end_events_of

            yield Emit(*complete_ends(call, end_events_of(response) if len(bodies) > 1 else ends))
        return response

    def identity(self, request: Request) -> bytes | None:
        """Return what decides an answer beside the request, as JSON. ``None``: the codec has no version of its encoding."""
        kind, location = _tool_kind(request) if request.tools else "none", self._resolver.location()
        known = self._identities.get((kind, location))
        return known if known is not None else self._make_identity(kind, location)

    def _make_identity(self, kind: _ToolKind, location: str) -> bytes | None:
        from sigwire.lm.policy.cache.keys import canonical_bytes, plain_headers

        route = self._route(kind)
        version = getattr(route.codec, "ENCODING_VERSION", None)
        if version is None:
            return None
        codec, path = getattr(route.codec, "__name__", ""), route.target.profile.path
        headers = plain_headers(self._connection.headers)
        name, base = route.target.model, self._connection.base_model
        rules = [self._capabilities.to_json(), headers, *([base] if base else ())]
        identity = canonical_bytes([codec, version, self._provider.prefix, path, location, name, *rules])
        self._identities[kind, location] = identity
        return identity

    def logprobs_refusal(self, request: Request) -> str | None:
        """Return why a request for log probabilities of tokens would be refused or sent without; ``None`` if it is sent."""
        route = self._route("none")
        try:
            sent = route.codec.encode(request, route.target)
        except CallerError as error:
            return str(error).partition(" (")[0]
        lost = (each.detail for each in sent.warnings if each.feature in ("logprobs", "top_logprobs"))
        return next(lost, None)

    def address(self) -> str:
        """Return the base URL, without secrets. Reads the environment."""
        return redact_url(self._resolver.base()[0])

    def option_names(self) -> Iterator[Collection[str] | None]:
        """Yield the options of each wire that a request of the model may take, the most common wire first."""
        row, kinds = self._provider, ((False, False), (True, False), (True, True))
        own_wire, base = self._connection.wire, self._base_model
        names = [own_wire or row.wire_for(base, tools=tools, builtin=own) for tools, own in kinds]
        for name in dict.fromkeys(names):
            yield row.wires[name].option_names()

    def open_path(self) -> str:
        """Return the path in the body of options that the wire has no row for; "" is the body itself."""
        codec, _ = self._wire("none").load()
        path: str = getattr(codec, "OPEN_PATH", "")
        return path

    # --- one exchange: ``sent`` is the encoded request, ``current`` the same or its continuation

    def _exchange(
        self, call: Call, route: _WireRoute, sent: EncodedRequest, current: EncodedRequest
    ) -> Steps[ExchangeResult]:
        call.begin()
        endpoint = self._resolver.endpoint(current.headers)
        try:
            transport, request = self._transport(), self._http_request(call, route, current, endpoint)
            send = FunctionEffect(
                partial(method_of(transport, "send"), request), partial(method_of(transport, "asend"), request)
            )
            reply: HttpReply = self._resolver.mask(endpoint, call.request.options, transport).reply((yield send))
            call.report.headers = reply.headers
            if 200 <= reply.status < 300:
                return _decode(route, sent, reply)
            recovered = _recover(route, sent, reply)
            return ExchangeResult(recovered.raw, recovered)
        except Exception as error:
            raise self._translate_error(error, endpoint, call.request, sent)  # noqa: B904  (it has its cause)

    def _stream_exchange(
        self, call: Call, route: _WireRoute, sent: EncodedRequest, current: EncodedRequest
    ) -> Steps[ExchangeResult]:
        """Emit the events of the reply except its ends. A failed exchange has the emitted answer on its error."""
        from sigwire.lm.stream_events import attach_partial, collected, emit_reply

        call.begin()
        events: list[StreamEvent] = []
        endpoint = self._resolver.endpoint(current.headers)
        try:
            transport, request = self._transport(), self._http_request(call, route, current, endpoint)
            codec, recover = cast("StreamingCodec[Any]", route.codec), partial(_recover, route, sent)
            mask = partial(self._resolver.mask, endpoint, call.request.options, transport)
            yield from emit_reply(call, transport, request, mask, codec, sent, route.target, recover, events)
        except BaseException as error:  # a cancelled stream keeps its partial answer as well
            raise attach_partial(self._translate_error(error, endpoint, call.request, sent), events)  # noqa: B904
        response, ends = collected(events)
        return ExchangeResult(response.raw, response, ends)

    def _route(self, tools: _ToolKind) -> _WireRoute:
        wire = self._wires.get(tools) or self._wire(tools)
        foreign = wire.foreign_host is not None and self._is_foreign()
        route = self._routes.get((tools, foreign))
        if route is None:
            codec, profile = wire.load(foreign_host=foreign)
            if self._provider.key == "optional" or foreign:  # a server of the user may cut prompts
                from sigwire.lm.prompt_watch import PromptWatch

                self._watch = self._watch or PromptWatch()
            row, name = self._provider, self._resolver.pasted()[1] or self._name
            facts, able = row.facts_of(self._base_model), self._capabilities
            if self._length is not None and self._length.tokens is not None:
                able = replace(able, context_window=self._length.tokens)
            target: Target[WireProfile] = Target(row.prefix, name, profile, able, facts)
            route = self._routes[tools, foreign] = _WireRoute(codec, target, wire, getattr(codec, "continuation", None))
        return route

    def target_of(self, request: Request) -> Target[WireProfile]:
        """Return the target for which the request would be encoded."""
        return self._route(_tool_kind(request)).target

    def _wire(self, tools: _ToolKind) -> Wire:
        row, builtin = self._provider, tools == "builtin"
        given = self._connection.wire or self._resolver.pasted()[0]
        name = given or row.wire_for(self._base_model, tools=tools != "none", builtin=builtin)
        return self._wires.setdefault(tools, row.wires[name])

    def _is_foreign(self) -> bool:
        """Return True if a wire's profile for foreign hosts applies: an unlisted model at a host that is not the row's."""
        return not self._is_listed and not self._resolver.is_own_host(self._resolver.base()[0])

    def _tools_error(self) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{self._model} does not take tools, as far as the provider table knows (nothing was sent). Signatures and "
            f"ReAct write tools as text for it. If the model does take tools, use LM({self._model!r}, "
            "capabilities=dataclasses.replace(lm.capabilities, native_tools=True))."
        )

    def _images_error(self) -> UnsupportedFeature:
        return UnsupportedFeature(
            f"{self._model} does not take images, as far as the provider table knows (nothing was sent). Use one that does, "
            "or sigwire.to_provider(history, model), which writes notes in their place. If the model does take images, use "
            f"LM({self._model!r}, capabilities=dataclasses.replace(lm.capabilities, images=True))."
        )

    def _transport(self) -> Transport:
        transport, row = self._connection.transport or _shared_transport(), self._provider
        if not row.authorize:
            return transport
        from sigwire.lm.providers.authorized import authorized

        return authorized(transport, row.authorize, self._connection.variables)

    def _http_request(
        self, call: Call, route: _WireRoute, sent: EncodedRequest, endpoint: ServiceEndpoint
    ) -> HttpRequest:
        url = endpoint.base + _quote(sent.path)
        if (query := route.wire.query or sent.query) or endpoint.query:
            url += self._resolver.query({**query, **sent.query}, endpoint.query[1:])
        if endpoint.query:
            url = SecretUrl(url)
        # A copy of the headers: the endpoint is cached, and a transport may change those of its request.
        headers, is_redial, limits = {**endpoint.headers}, call.report.purpose == "redial", self._limits
        seconds = shorter(limits.exchange, call.remaining())
        return HttpRequest(url, headers, _encode_json(sent.body), "POST", seconds, is_redial, limits)

    def _translate_error(
        self, error: BaseException, endpoint: ServiceEndpoint, request: Request, sent: EncodedRequest
    ) -> BaseException:
        """Return the error of an exchange; one of the network becomes an ``LMError``, and every ``LMError`` gets context."""
        if isinstance(error, LMError):
            return self._add_context(error, endpoint, request, sent)
        if not isinstance(error, OSError):
            return error
        what = f"No answer from {redact_url(endpoint.base)}"
        timed_out = isinstance(error, TimeoutError)
        lost = LMTimeoutError(f"{what} in time.") if timed_out else LMTransportError(f"{what}: {error}.")
        lost.__cause__ = error
        return self._add_context(lost, endpoint, request, sent)

    def _add_context(
        self, error: LMError, endpoint: ServiceEndpoint, request: Request, sent: EncodedRequest
    ) -> LMError:
        """Return the error with provider, model, origin of the key and the next step; secrets are masked."""
        error.provider = error.provider or self._provider.prefix
        error.model = error.model or self._name
        message = error.message
        if isinstance(error, LMAuthenticationError):
            message = f"{message} {endpoint.about_key}"
            can_be_cured = error.status != 403 or error.provider_code in EXPIRED_CODES
            error.key_changed = can_be_cured and self._resolver.key_has_changed(endpoint)
        if (hint := self._hint(error)) and hint not in message:
            message = f"{message} {hint}"
        if error.status == 404 and self._connection.base_url:
            message = (
                f"{message} Or base_url is not the address of its API: the request went to {redact_url(endpoint.base)} for "
                f"{sent.path}."
            )
        if isinstance(error, LMInvalidRequestError) and sent.body.get("tools") and _TOOLS_REFUSED.search(message):
            message = f"{message} {_TOOLS_AS_TEXT}"
        error.message = message
        for name in ("message", "provider_code", "request_id"):
            if value := getattr(error, name):
                setattr(
                    error,
                    name,
                    redact(str(value), endpoint, request.options, getattr(self._transport(), "secrets", ())),
                )
        error.args = (error.message,)
        return error

    def _hint(self, error: LMError) -> str:
        if isinstance(error, LMTransportError) and not isinstance(error.__cause__, ConnectionRefusedError):
            return ""
        return next((hint for kind, hint in self._provider.hints.items() if isinstance(error, kind)), "")


def _tool_kind(request: Request) -> _ToolKind:
    return memoized(request.tools, _kind_of_tools) if request.tools else "none"


def _kind_of_tools(tools: tuple[JsonObject, ...]) -> _ToolKind:
    return "functions" if all(tool["type"] == "function" for tool in tools) else "builtin"


@functools.lru_cache(maxsize=256)
def _quote(path: str) -> str:
    return quote(path, safe="/:@!$&'()*+,;=~%")


_TOOLS_REFUSED = re.compile(r"tool|function.call", re.IGNORECASE)
_TOOLS_AS_TEXT = (
    "If the model takes no tools, have them written as text: "
    "LM(..., capabilities=dataclasses.replace(lm.capabilities, native_tools=False))."
)


def _emit_all(call: Call, response: Response) -> Emit:
    from sigwire.lm.stream_events import emit_response

    return emit_response(call, response)


def _alternative_form(codec: Codec[Any], error: LMError, sent: EncodedRequest) -> EncodedRequest | None:
    alternative: Callable[[LMError, EncodedRequest], EncodedRequest | None] | None = getattr(codec, "alternative", None)
    return alternative(error, sent) if alternative is not None and error.partial is None else None


def _recover(route: _WireRoute, sent: EncodedRequest, reply: HttpReply) -> Response:
    """Return the answer inside an error reply, on wires that have such replies; else raise the error."""
    recover: Callable[..., Response | None] | None = getattr(route.codec, "recover", None)
    answer = recover(reply.status, reply.headers, reply.body, sent, route.target) if recover is not None else None
    if answer is None:
        raise route.codec.decode_error(reply.status, reply.headers, reply.body, route.target)
    return answer


def _encode_json(body: Mapping[str, JsonValue]) -> bytes:
    try:
        return to_json(body, inf_nan_mode="null")
    except ValueError:  # half of a surrogate pair in a text
        return dumps(body).encode("utf-8", "replace")


def _decode(route: _WireRoute, sent: EncodedRequest, reply: HttpReply) -> ExchangeResult:
    body, is_json = _decode_json(reply.body)
    try:
        return ExchangeResult(body, route.codec.decode(body, sent, route.target))
    except LMError as error:
        error.status = error.status or reply.status
        if not is_json:
            raise damaged_reply_error(error, str(body), reply.headers) from None
        raise


def _decode_json(body: bytes) -> tuple[JsonValue, bool]:
    """Return the body as JSON, else as text; and True if it was JSON."""
    try:
        return cast("JsonValue", from_json(body, allow_inf_nan=False)), True
    except ValueError:  # pydantic-core refuses a byte order mark and half of a surrogate pair; or it is no JSON
        data = read_body(body)
        return data, not isinstance(data, str)


_lock = threading.Lock()
_shared: Transport | None = None


def _shared_transport() -> Transport:
    global _shared
    if _shared is None:
        from sigwire.lm.http.transport import HttpTransport

        with _lock:
            _shared = _shared or HttpTransport()
    return _shared
