"""``BatchBackend``: the HTTP backend of one model, whose exchanges are lines of batches.

It encodes and decodes as ever; only its transport parks a request until the queue has the reply. A streamed call is emitted
whole. The usage of a reply costs the batch price, that of a repeated one nothing: each line is paid once.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from concurrent.futures import CancelledError
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, cast

from sigwire.core.response import Response
from sigwire.effects.cancellation import StreamCancelled, on_cancel
from sigwire.effects.network import check_network
from sigwire.effects.steps import Steps
from sigwire.effects.waiting import result_of
from sigwire.errors import ConfigurationError, LMTimeoutError
from sigwire.lm.batch.queue import BatchQueue
from sigwire.lm.batch.sending import PAID, AskedLine, BatchGroup, LineFuture
from sigwire.lm.codecs.batches import WIRES
from sigwire.lm.codecs.batches.shared import BatchCall, BatchLine, BatchWire
from sigwire.lm.codecs.shared.interface import EncodedRequest
from sigwire.lm.http.messages import AsyncReplyStream, HttpReply, HttpRequest, ReplyStream, Transport
from sigwire.lm.http_backend import ExchangeResult, HttpBackend
from sigwire.lm.policy.cache.keys import canonical_bytes
from sigwire.lm.policy.call import Call
from sigwire.lm.policy.money.prices import Price, cost_of
from sigwire.lm.providers.address import ServiceEndpoint
from sigwire.lm.secrets import redact_url
from sigwire.lm.stream_events import emit_response

if TYPE_CHECKING:
    from sigwire.core.capabilities import Capabilities
    from sigwire.lm.providers.connection import ConnectionOptions
    from sigwire.lm.providers.row import Provider

__all__ = ["BatchBackend"]


_OF_ONE_REQUEST = frozenset("baggage idempotency-key traceparent tracestate x-request-id".split())


@dataclass(frozen=True, slots=True, repr=False)
class _LineRequest(HttpRequest):
    """An ordinary request, with its line, and as it is sent alone. ``timeout`` is the time until the deadline of the call."""

    line: tuple[AskedLine, HttpRequest] = field(kw_only=True)


class BatchBackend(HttpBackend):
    """Answers through batches for one model of one row. Raises ``ConfigurationError`` for a row without a batch API."""

    def __init__(
        self,
        provider: Provider,
        name: str,
        connection: ConnectionOptions,
        capabilities: Capabilities,
        model: str,
        queue: BatchQueue,
        price: Price | None = None,
    ) -> None:
        if provider.backend or provider.prefix not in WIRES:
            raise ConfigurationError(
                f"{model} has no batch API among those of sigwire (making a BatchLM). Use one of {', '.join(sorted(WIRES))}."
            )
        if capabilities.decides == "only":
            raise ConfigurationError(
                f"{model} answers at a decision endpoint, and there is no batch API for this wire (making a BatchLM). Call LM."
            )
        super().__init__(provider, name, connection, capabilities, model)
        module = import_module(f"sigwire.lm.codecs.batches.{WIRES[provider.prefix]}")
        self._batch_wire = cast(BatchWire, module)
        self._queue, self._price = queue, price
        self._sample: object = None
        self._calls: dict[bytes, list[Call]] = {}

    def for_sample(self, sample: object) -> Self:
        """Return the backend for one answer, which is another sample for each ``sample``."""
        new = copy.copy(self)
        new._sample, new._calls = sample, {}
        return new

    def answer(self, call: Call) -> Steps[Response]:
        """Answer a call; a streamed one is emitted whole."""
        if not call.streamed:
            return (yield from super().answer(call))
        response = yield from super().answer(call.without_stream())
        yield emit_response(call, response)
        return response

    def _exchange(self, call: Call, route: Any, sent: EncodedRequest, current: EncodedRequest) -> Steps[ExchangeResult]:
        result = yield from super()._exchange(call, route, sent, current)
        paid = (call.report.headers or {}).get("sigwire-batch")
        if paid is None:
            return result
        usage, share = result.response.usage, self._batch_wire.LIMITS.price if paid == PAID["sigwire-batch"] else 0.0
        if usage.cost is None and (cost := cost_of(call.target.model, usage, self._price)) is not None:
            usage = replace(usage, cost=float(cost.money) * share)
        return result._replace(response=replace(result.response, usage=usage))

    def _http_request(self, call: Call, route: Any, sent: EncodedRequest, endpoint: ServiceEndpoint) -> HttpRequest:
        alone = super()._http_request(call, route, sent, endpoint)
        headers = tuple(
            sorted((name, value) for name, value in sent.headers.items() if name.lower() not in _OF_ONE_REQUEST)
        )
        group = BatchGroup(self._provider.prefix, redact_url(endpoint.base), sent.path, self._name, headers)
        line = BatchLine(self._line_id(call, sent.path, alone.body), sent.path, alone.body)
        asked = AskedLine(line, group, self._batch_wire, self._send_call)
        return _LineRequest(alone.url, alone.headers, alone.body, timeout=call.remaining(), line=(asked, alone))

    def _line_id(self, call: Call, path: str, body: bytes) -> str:
        """Return the id of a line: equal requests of one sample are one line, the choices of one answer are several."""
        calls = self._calls.setdefault(body, [])
        if call not in calls:  # a retry keeps its id
            calls.append(call)
        key = canonical_bytes([self._provider.prefix, self._name, path, self._sample, calls.index(call)])
        return sha256(b"\0".join([key, body])).hexdigest()

    def account(self) -> AskedLine:
        """Return a line that is not sent: the access to the batches of the account."""
        check_network("model", self._model)
        headers = self._route("none").target.profile.headers
        base = redact_url(self._resolver.endpoint(headers).base)
        group = BatchGroup(self._provider.prefix, base, "", self._name, tuple(sorted(headers.items())))
        return AskedLine(BatchLine("", "", b""), group, self._batch_wire, self._send_call)

    def _send_call(self, headers: Mapping[str, str], call: BatchCall) -> HttpReply:
        endpoint = self._resolver.endpoint(headers)
        url, sent = f"{endpoint.base}{call.path}", {**endpoint.headers, "content-type": call.content_type}
        if endpoint.query:
            url += f"&{endpoint.query[1:]}" if "?" in url else endpoint.query
        limits = self._limits
        transport = super()._transport()
        is_new = call.method == "POST"  # a kept connection may be closed by now, which would leave a creation in doubt
        reply = transport.send(HttpRequest(url, sent, call.body, call.method, limits.exchange, is_new, limits))
        return self._resolver.mask(endpoint, {}, transport).reply(reply)  # before the store keeps it

    def _transport(self) -> Transport:
        return _ParkingTransport(self._queue, super()._transport())


class _ParkingTransport:
    """Parks requests that are lines; the reply is that of their batch. A line that comes back is sent alone."""

    def __init__(self, queue: BatchQueue, inner: Transport) -> None:
        self._queue, self._inner = queue, inner

    def send(self, request: HttpRequest) -> HttpReply:
        asked, alone = _line_of(request)
        future = self._queue.ask(asked)
        try:
            with on_cancel(future.cancel):
                reply = result_of(future, request.timeout)
        except CancelledError:
            raise StreamCancelled from None
        except TimeoutError:
            raise _past_deadline(future) from None
        except BaseException:  # an interrupt
            future.cancel()
            raise
        return reply if reply is not None else self._kept(asked, self._inner.send(alone))

    async def asend(self, request: HttpRequest) -> HttpReply:
        asked, alone = _line_of(request)
        future = self._queue.ask(asked)
        try:
            reply = await asyncio.wait_for(asyncio.wrap_future(future), request.timeout)
        except TimeoutError:
            raise _past_deadline(future) from None
        return reply if reply is not None else self._kept(asked, await self._inner.asend(alone))

    def _kept(self, asked: AskedLine, reply: HttpReply) -> HttpReply:
        self._queue.call(lambda driver: driver.keep(asked.line.id, reply))
        return reply

    def stream(self, request: HttpRequest) -> AbstractContextManager[ReplyStream]:
        return self._inner.stream(request)

    def astream(self, request: HttpRequest) -> AbstractAsyncContextManager[AsyncReplyStream]:
        return self._inner.astream(request)

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()


def _line_of(request: HttpRequest) -> tuple[AskedLine, HttpRequest]:
    assert isinstance(request, _LineRequest), "the backend makes all requests of this transport"
    return request.line


def _past_deadline(future: LineFuture) -> LMTimeoutError:
    future.cancel()
    error = LMTimeoutError("The deadline of the call has passed (waiting for a batch). Raise that of deadline().")
    error.retryable = False
    return error
