"""What every wire of the fake provider is: where it listens, who may ask, how it reads, answers and refuses.

A ``Wire`` is stateless; the server gives it each exchange. What it reads is an ``ParsedRequest``, what it refuses is a ``Fault`` or a
``InvalidValue`` of the body, raised. A streamed answer is the whole answer's body, cut into events. The rules that providers share
(every call answered, names that fit) are functions here and say nothing in a provider's words.
"""

from __future__ import annotations

import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, cast

from sigwire.core.json import JsonObject, dumps
from sigwire.core.messages import OpaquePart, Part, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.tool import ToolCall
from sigwire.errors import ConfigurationError
from sigwire.testing.answers import Fault, FaultKind
from sigwire.testing.chunking import Cutter, cutter
from sigwire.testing.framing import Framing
from sigwire.testing.request_node import InvalidValue, RequestNode

__all__ = [
    "USUAL_STATUSES",
    "FakeWire",
    "IdSequence",
    "ParsedRequest",
    "ReceivedRequest",
    "Rejected",
    "Status",
    "arguments_of",
    "bearer",
    "counted",
    "parts_of",
    "spec",
    "tokens_of",
    "tool_names",
]

Status: TypeAlias = "tuple[int, str, str | None]"
"""HTTP status, the provider's type of error, its code."""

USUAL_STATUSES: Mapping[FaultKind, int] = {
    "auth": 401, "bad_request": 400, "billing": 402, "content_filter": 400, "context_length": 400, "not_found": 404,
    "overloaded": 503, "permission": 403, "rate_limit": 429, "server": 500, "timeout": 504, "too_large": 413,
}  # fmt: skip
"""What a provider answers with that has no types and codes of its own."""


class Rejected(Exception):
    """The provider refuses a request, for the reason that the fault gives."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """A request that was read: the model's name on the wire, and the canonical request.

    ``framing`` is how the answer is streamed, ``None`` for one that comes whole; ``usage``: whether a stream tells the tokens;
    ``padded``: whether it hides the lengths of its pieces.
    """

    model: str
    request: Request
    framing: Framing | None = None
    usage: bool = True
    padded: bool = False


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One HTTP request as it came. Header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


class IdSequence:
    """Ids that never repeat on one server, told apart by their prefix.

    >>> ids = IdSequence()
    >>> ids("call_"), ids("call_")
    ('call_fake000001', 'call_fake000002')
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def __call__(self, prefix: str) -> str:
        return f"{prefix}fake{next(self._numbers):06d}"


class FakeWire(ABC):
    """One provider's wire. ``base`` is what a client's base URL ends with; ``route`` matches its paths."""

    name: ClassVar[str]
    base: ClassVar[str] = ""
    route: ClassVar[re.Pattern[str]]
    statuses: ClassVar[Mapping[str, Status]]
    wrong_key: ClassVar[str]
    no_such_model: ClassVar[str]
    messages: ClassVar[Mapping[FaultKind, str]] = {}

    @abstractmethod
    def key(self, exchange: ReceivedRequest) -> str | None:
        """The key that came with the request. Raises ``Rejected`` where headers are missing that the wire requires."""

    @abstractmethod
    def read(self, body: RequestNode, exchange: ReceivedRequest) -> ParsedRequest:
        """The body as a request. Raises ``InvalidValue`` or ``Rejected`` for what the provider would refuse."""

    @abstractmethod
    def write(self, response: Response, asked: ParsedRequest, ids: IdSequence) -> JsonObject:
        """The answer's body."""

    @abstractmethod
    def split(self, body: JsonObject, asked: ParsedRequest, cut: Cutter) -> Iterable[JsonObject]:
        """The events of a stream that make the same answer as the body."""

    @abstractmethod
    def describe(self, misfit: InvalidValue) -> Fault:
        """A misfit in the provider's words."""

    @abstractmethod
    def refuse(self, fault: Fault, request_id: str) -> JsonObject:
        """The body of an error."""

    def fail(self, fault: Fault, request_id: str, position: int) -> JsonObject:
        """The event of an error inside a stream, after as many others: the object of an error's body, or the wire's own."""
        return self.refuse(fault, request_id)

    def headers(self, fault: Fault | None, request_id: str) -> Mapping[str, str]:
        """Headers of the provider's own, with an error or without."""
        return _retry_after(fault)

    def status(self, fault: Fault) -> Status:
        """Status, type and code of a fault: the wire's own for its kind, with what the fault says instead."""
        if fault.status is not None and fault.kind == "server":
            same = next((row for row in self.statuses.values() if row[0] == fault.status), None)
            status, kind, code = same or (
                fault.status,
                *self.statuses["server" if fault.status >= 500 else "bad_request"][1:],
            )
        else:
            status, kind, code = self.statuses[fault.kind]
        return fault.status or status, kind, fault.code or code

    def worded(self, fault: Fault) -> Fault:
        """The fault with a message: its own, the wire's for its kind, or one that says where it comes from."""
        if fault.message:
            return fault
        return replace(fault, message=self.messages.get(fault.kind, f"The fake provider answers with {fault.kind}."))


def _retry_after(fault: Fault | None) -> Mapping[str, str]:
    return {} if fault is None or fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}


def bearer(exchange: ReceivedRequest) -> str | None:
    """The token of an ``Authorization: Bearer`` header."""
    scheme, _, token = exchange.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def spec(name: str, description: str, parameters: Any) -> JsonObject:
    """A tool as canonical requests hold it."""
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def tool_names(tools: Iterable[JsonObject]) -> list[str]:
    """The names of the functions that are offered; built-in tools have none."""
    return [str(function["name"]) for tool in tools if isinstance(function := tool.get("function"), dict)]


def arguments_of(call: ToolCall) -> JsonObject:
    """The arguments for a wire that sends an object. Raises ``ConfigurationError`` for a call that has none."""
    if call.arguments is None:
        raise ConfigurationError(
            f"The scripted call of {call.name!r} has arguments that are no object (writing the answer), and this wire sends "
            "objects only. Give arguments, or answer with Raw."
        )
    return call.arguments


_SAYABLE = (TextPart, ThinkingPart, ToolCall, OpaquePart)


def parts_of(choice: Choice, ids: IdSequence, prefix: str) -> tuple[Part, ...]:
    """What a choice says, in order, every call with an id."""
    thinking = (ThinkingPart(choice.reasoning),) if choice.reasoning else ()
    text = (TextPart(choice.text),) if choice.text else ()
    parts: Iterable[Part] = choice.parts or (*thinking, *text, *choice.tool_calls)
    if strange := [part.kind for part in parts if not isinstance(part, _SAYABLE)]:
        raise ConfigurationError(f"An answer cannot hold {strange[0]} (writing the scripted answer). Answer with Raw.")
    return tuple(
        replace(part, id=ids(prefix)) if isinstance(part, ToolCall) and not part.id else part for part in parts
    )


def tokens_of(choice: Choice, asked: ParsedRequest) -> list[Any]:
    """The tokens of a choice with their log probabilities, as OpenAI shapes them: the script's, or made up if asked for.

    >>> tokens_of(Choice("Hi you"), ParsedRequest("m", Request(options={"logprobs": True})))[1]
    {'token': ' you', 'logprob': -0.25, 'bytes': [32, 121, 111, 117], 'top_logprobs': []}
    """
    if isinstance(choice.logprobs, dict):
        return [*cast("list[Any]", choice.logprobs.get("content") or [])]
    if not asked.request.options.get("logprobs"):
        return []
    listed = bool(asked.request.options.get("top_logprobs"))
    return [_token(text, listed) for text in cutter(None, None)(choice.text)]


def _token(text: str, listed: bool) -> JsonObject:
    token: JsonObject = {"token": text, "logprob": -0.25, "bytes": list(text.encode())}
    return {**token, "top_logprobs": [token] if listed else []}


def counted(response: Response, asked: ParsedRequest) -> Usage:
    """The response's usage; what is unknown is four characters to a token."""
    usage = response.usage
    written = sum(len(choice.text) + sum(map(_size, choice.tool_calls)) for choice in response.choices)
    return replace(
        usage,
        input_tokens=_known(usage.input_tokens, len(dumps(asked.request.to_json()))),
        output_tokens=_known(usage.output_tokens, written),
    )


def _size(call: ToolCall) -> int:
    return len(call.name) + len(call.arguments_text)


def _known(tokens: int | None, characters: int) -> int:
    return characters // 4 + 1 if tokens is None else tokens
