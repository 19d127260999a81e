"""The base of the fake provider's wires: routes, keys, reading requests, writing and refusing answers.

A ``FakeWire`` is stateless; the server passes each ``ReceivedRequest``. A wire returns a ``ParsedRequest``, or raises
``Rejected`` or ``InvalidValue``. A streamed answer is the body of the whole answer, cut into events. Rules that providers
share (every call is answered, names are valid) are functions here, without a provider's text.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Part
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import ConfigurationError
from sigwire.testing.answers import Fault, FaultKind
from sigwire.testing.chunking import Cutter, cutter
from sigwire.testing.framing import Framing
from sigwire.testing.rate_limit import Quota
from sigwire.testing.request_node import InvalidValue, RequestNode

__all__ = [
    "USUAL_STATUSES", "Bounds", "FakeWire", "IdSequence", "ParsedRequest", "ReceivedRequest", "Rejected", "Status",
    "arguments_of", "bearer", "numbers_of", "parts_of", "request_tokens", "spec", "tokens_of", "tool_names", "unloaded_tools",
    "usage_of",
]  # fmt: skip

Status: TypeAlias = "tuple[int, str, str | None]"
"""HTTP status, the provider's error type and its code."""

USUAL_STATUSES: Mapping[FaultKind, int] = {
    "auth": 401, "bad_request": 400, "billing": 402, "content_filter": 400, "context_length": 400, "not_found": 404,
    "overloaded": 503, "permission": 403, "rate_limit": 429, "server": 500, "timeout": 504, "too_large": 413,
}  # fmt: skip
"""The statuses of a provider without error types and codes."""


class Rejected(Exception):
    """The provider refuses a request with ``fault``."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A parsed request: the model's name on the wire, and the canonical request.

    ``framing``: of the streamed answer, ``None`` for a whole answer. ``usage``: whether a stream includes token counts.
    ``padded``: whether a stream hides the lengths of its deltas. ``stored``: whether later requests may refer to the answer.
    """

    model: str
    request: Request
    framing: Framing | None = None
    usage: bool = True
    padded: bool = False
    stored: bool = False


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One received HTTP request. Header names are in lower case. ``stored``: output items of earlier answers, by id."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    stored: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class IdSequence:
    """Ids that are unique on one server.

    >>> ids = IdSequence()
    >>> ids("call_"), ids("call_")
    ('call_fake000001', 'call_fake000002')
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def __call__(self, prefix: str) -> str:
        return f"{prefix}fake{next(self._numbers):06d}"


class FakeWire(ABC):
    """The wire of one provider. ``base``: the end of a client's base URL; ``route`` matches its paths."""

    name: ClassVar[str]
    base: ClassVar[str] = ""
    route: ClassVar[re.Pattern[str]]
    statuses: ClassVar[Mapping[str, Status]]
    wrong_key: ClassVar[str]
    no_key: ClassVar[Fault]
    no_such_model: ClassVar[str]
    messages: ClassVar[Mapping[FaultKind, str]] = {}

    def key(self, exchange: ReceivedRequest) -> str | None:
        """Return the key of the request; default: the bearer token. Raises ``Rejected`` if a required header is missing."""
        if (key := bearer(exchange)) is None:
            raise Rejected(self.no_key)
        return key

    @abstractmethod
    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        """Parse the body. Raises ``InvalidValue`` or ``Rejected`` if the provider would refuse it."""

    def answer(self, parsed: ParsedRequest) -> Response | None:
        """Return the answer of an endpoint that needs no script; default: ``None``."""
        return None

    @abstractmethod
    def write(self, response: Response, parsed: ParsedRequest, ids: IdSequence) -> JsonObject:
        """Return the body of the whole answer."""

    @abstractmethod
    def split(self, body: JsonObject, parsed: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        """Return the stream events that are equal to the whole body."""

    @abstractmethod
    def describe(self, error: InvalidValue) -> Fault:
        """Return the provider's error for an invalid value."""

    @abstractmethod
    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        """Return the body of an error reply."""

    def fail(self, fault: Fault, request_id: str, position: int) -> JsonObject:
        """Return the error event of a stream after ``position`` events; default: the body of the error reply."""
        return self.refuse(fault, request_id)

    def headers(self, fault: Fault | None, request_id: str) -> Mapping[str, str]:
        """Return the provider's reply headers, for an error or a success."""
        return {} if fault is None or fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}

    def quota_headers(self, quotas: Sequence[Quota]) -> Mapping[str, str]:
        """Return the headers that announce rate limits; default: none."""
        return {}

    def status(self, fault: Fault) -> Status:
        """Return status, type and code of a fault: the wire's values for the kind, overridden by the fault's."""
        if fault.status is not None and fault.kind == "server":
            same = next((row for row in self.statuses.values() if row[0] == fault.status), None)
            status, kind, code = same or (
                fault.status,
                *self.statuses["server" if fault.status >= 500 else "bad_request"][1:],
            )
        else:
            status, kind, code = self.statuses[fault.kind]
        return fault.status or status, kind, fault.code or code

    def with_message(self, fault: Fault) -> Fault:
        """Return the fault with a message: its own, the wire's for the kind, or a generic one."""
        if fault.message:
            return fault
        return replace(fault, message=self.messages.get(fault.kind, f"The fake provider answers with {fault.kind}."))


def bearer(exchange: ReceivedRequest) -> str | None:
    """Return the token of an ``Authorization: Bearer`` header."""
    scheme, _, token = exchange.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


Bounds: TypeAlias = "tuple[tuple[str, str, type[int | float], float | None, float | None], ...]"
"""Rows of a number in a body: its name on the wire, its option, ``int`` or ``float``, its least and its greatest value."""


def numbers_of(body: RequestNode, bounds: Bounds) -> JsonObject:
    """Return the options of a request that are numbers, within their bounds."""
    options: JsonObject = {}
    for wire, name, kind, low, high in bounds:
        if node := body.get(wire):
            options[name] = node.integer(low, high) if kind is int else node.number(low, high)
    return options


def spec(name: str, description: str, parameters: Any, *, defer: bool = False) -> JsonObject:
    """Return a tool in the form of canonical requests."""
    deferred: JsonObject = {"defer_loading": True} if defer else {}
    function: JsonObject = {"name": name, "description": description, "parameters": parameters, **deferred}
    return {"type": "function", "function": function}


def tool_names(tools: Iterable[JsonObject]) -> list[str]:
    """Return the names of the offered functions; built-in tools have none."""
    return [str(function["name"]) for tool in tools if isinstance(function := tool.get("function"), dict)]


def unloaded_tools(parts: Iterable[Part], request: Request) -> list[str]:
    """Return the deferred tools that the parts call and that no search of the conversation loaded.

    The provider's search tool has found them before such a call.
    """
    deferred = {
        str(function["name"])
        for tool in request.tools
        if isinstance(function := tool.get("function"), dict) and function.get("defer_loading")
    }
    past = dumps([message.to_json() for message in request.messages]) if deferred else ""
    called = dict.fromkeys(part.name for part in parts if isinstance(part, ToolCall) and part.name in deferred)
    return [name for name in called if dumps(name) not in past]


def arguments_of(call: ToolCall) -> JsonObject:
    """Return the arguments as an object. Raises ``ConfigurationError`` for a call whose arguments are not an object."""
    if call.arguments is None:
        raise ConfigurationError(
            f"The scripted call of {call.name!r} has arguments that are not an object (writing the answer); this wire sends "
            "only objects. Give arguments, or answer with Raw."
        )
    return call.arguments


_ANSWER_PARTS = (TextPart, ThinkingPart, ToolCall, OpaquePart)


def parts_of(choice: Choice, ids: IdSequence, prefix: str) -> tuple[Part, ...]:
    """Return the parts of a choice in order, every call with an id."""
    thinking = (ThinkingPart(choice.reasoning),) if choice.reasoning else ()
    text = (TextPart(choice.text),) if choice.text else ()
    parts: Iterable[Part] = choice.parts or (*thinking, *text, *choice.tool_calls)
    if unsupported := [part.kind for part in parts if not isinstance(part, _ANSWER_PARTS)]:
        raise ConfigurationError(
            f"An answer cannot hold {unsupported[0]} (writing the scripted answer). Answer with Raw."
        )
    return tuple(
        replace(part, id=ids(prefix)) if isinstance(part, ToolCall) and not part.id else part for part in parts
    )


def tokens_of(choice: Choice, parsed: ParsedRequest) -> list[Any]:
    """Return the tokens of a choice with log probabilities in OpenAI's shape: the script's, or invented ones if requested.

    >>> tokens_of(Choice("Hi you"), ParsedRequest("m", Request(options={"logprobs": True})))[1]
    {'token': ' you', 'logprob': -0.25, 'bytes': [32, 121, 111, 117], 'top_logprobs': []}
    """
    if isinstance(choice.logprobs, dict):
        return [*cast("list[Any]", choice.logprobs.get("content") or [])]
    if not parsed.request.options.get("logprobs"):
        return []
    listed = bool(parsed.request.options.get("top_logprobs"))
    return [_token(text, listed) for text in cutter(None, None)(choice.text)]


def _token(text: str, listed: bool) -> JsonObject:
    token: JsonObject = {"token": text, "logprob": -0.25, "bytes": list(text.encode())}
    return {**token, "top_logprobs": [token] if listed else []}


def usage_of(response: Response, parsed: ParsedRequest) -> Usage:
    """Return the usage of a response; unknown counts are estimated by four characters per token."""
    usage = response.usage
    calls = [call for choice in response.choices for call in choice.tool_calls]
    written = sum(len(choice.text) for choice in response.choices)
    written += sum(len(call.name) + len(call.arguments_text) for call in calls)
    return replace(
        usage,
        input_tokens=_known_or_estimate(usage.input_tokens, _characters(parsed)),
        output_tokens=_known_or_estimate(usage.output_tokens, written),
    )


def request_tokens(parsed: ParsedRequest) -> int:
    """Return the tokens that a rate limit counts for a request: its estimated input and its ``max_tokens``."""
    most: Any = parsed.request.options.get("max_tokens")
    return _characters(parsed) // 4 + 1 + int(most or 0)


def _characters(parsed: ParsedRequest) -> int:
    return len(dumps(parsed.request.to_json()))


def _known_or_estimate(tokens: int | None, characters: int) -> int:
    return characters // 4 + 1 if tokens is None else tokens
