"""The context length of a model on a user's server, asked once: a window above it is memory for nothing.

A codec whose requests name a window has ``length_request``, which returns path and body of the question if a request has a
window that the codec chose, and ``read_length``, which reads the reply. The question is bounded, and a server that does not
answer it changes nothing: the call is sent as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.request import Request
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.lm.codecs.shared.interface import EncodedRequest
from sigwire.lm.http.messages import HttpReply, HttpRequest, Transport, method_of
from sigwire.lm.policy.deadlines import shorter
from sigwire.lm.providers.address import ServiceEndpoint

__all__ = ["ContextLength"]

_MOST_SECONDS = 3.0


class ContextLength:
    """The context length of one model. ``tokens`` is ``None`` until the server has answered."""

    def __init__(self) -> None:
        self.tokens: int | None = None
        self._is_asked = False

    def ask(
        self,
        codec: Any,
        request: Request,
        sent: EncodedRequest,
        endpoint: Callable[[], ServiceEndpoint],
        transport: Callable[[], Transport],
        remaining: float | None,
    ) -> Steps[bool]:
        """Ask the server if the request needs it, once. Return True if the length is new."""
        find: Callable[[Request, JsonObject], tuple[str, JsonObject] | None] | None
        find = None if self._is_asked else getattr(codec, "length_request", None)
        if find is None or (question := find(request, sent.body)) is None:
            return False
        try:
            read: Callable[[JsonValue], int | None] = codec.read_length
            self.tokens = read(loads((yield from _answer(question, endpoint(), transport(), remaining)).body))
        except Exception:  # the call itself has the error to raise
            self.tokens = None
        self._is_asked = True
        return self.tokens is not None


def _answer(
    question: tuple[str, JsonObject], endpoint: ServiceEndpoint, transport: Transport, remaining: float | None
) -> Steps[HttpReply]:
    path, body = question
    seconds = shorter(_MOST_SECONDS, remaining)
    asked = HttpRequest(endpoint.base + path, {**endpoint.headers}, dumps(body).encode(), timeout=seconds)
    send = FunctionEffect(partial(method_of(transport, "send"), asked), partial(method_of(transport, "asend"), asked))
    reply: HttpReply = yield send
    return reply
