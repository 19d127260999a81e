"""The key of a request in the cache of responses. Pure: no I/O, no clock, no environment.

A key is the SHA-256 of the model's identity (of its backend: codec and its version, row, address, capabilities) and of the
request in canonical JSON. Dicts inside messages, tools and schemas keep their order, because models read and write in it;
options are sorted by name. Equal numbers are written alike (1.0 as 1). Without part in the key: options that change no answer,
secrets, tracing headers, and the number of repeated messages, which only places prompt-cache marks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from types import NoneType
from typing import TypeAlias, cast

from pydantic_core import to_json

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart
from sigwire.core.request import Request, memoized
from sigwire.lm.secrets import is_secret

__all__ = ["canonical_bytes", "changes_with_time", "plain_headers", "request_key"]


def request_key(identity: bytes, request: Request, rollout_id: object = None) -> bytes | None:
    """Return the key: 32 bytes. ``None`` for a request without a canonical form: NaN, a callable, an unknown object.

    Each ``rollout_id`` is another sample of one request.

    >>> hello = Request((Message.user("hello"),), options={"temperature": 1.0, "stop": ["."]})
    >>> again = Request((Message.user("hello"),), options={"stop": ["."], "temperature": 1})
    >>> request_key(b"acme", hello) == request_key(b"acme", again)
    True
    >>> request_key(b"acme", hello, rollout_id=1) == request_key(b"acme", hello)
    False
    """
    try:
        form = request.response_format
        tail: list[JsonValue] = [
            memoized(request.tools, _tools_digest) if request.tools else None,
            None if request.tool_choice is None else request.tool_choice.to_json(),
            request.parallel_tool_calls,
            None if form is None else [form.name, form.required, _canonical(form.schema)],
            _canonical_options(request.options) if request.options else None,
            None if rollout_id is None else _canonical(rollout_id),
        ]
        messages = request.messages
        # The last message is new in most requests: its digest would be used once.
        if messages and (text := _short_text(messages[-1])) is not None:
            tail += messages[-1].role, text
            messages = messages[:-1]
        parts = [identity]
        for message in messages:
            parts.append(message.derived(_message_digest))
        parts.append(_encode(tail))
        # JSON has no zero byte, and digests have one size: no part can be taken for another.
        return sha256(b"\0".join(parts)).digest()
    except (RecursionError, TypeError, ValueError):
        return None


def canonical_bytes(value: object) -> bytes:
    """Return canonical JSON. Raises ``ValueError`` for a value without one.

    >>> canonical_bytes({"b": 1.0, "a": [0.5, -0.0, True]})
    b'{"b":1,"a":[0.5,0,true]}'
    """
    return _encode(_canonical(value))


def changes_with_time(request: Request) -> bool:
    """Return True if the answer depends on more than the request: a search, or a conversation that the provider keeps."""
    if request.tools and any(tool.get("type") != "function" for tool in request.tools):
        return True
    extra = request.options.get("extra_body")
    return isinstance(extra, dict) and not _LIVE.isdisjoint(extra)


_LIVE = frozenset(
    "conversation enable_search plugins previous_response_id search_parameters tools web_search_options".split()
)


def plain_headers(headers: Mapping[str, object]) -> dict[str, object]:
    """Return the headers that may change an answer, by lower-case name: no secrets, no headers for tracing.

    >>> plain_headers({"X-Api-Key": "k", "traceparent": "00-1", "anthropic-beta": "context-1m"})
    {'anthropic-beta': 'context-1m'}
    """
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: lower[name] for name in sorted(lower) if name not in _TRACING and not is_secret(name, lower[name])}


_TRACING = frozenset("baggage idempotency-key traceparent tracestate user-agent x-request-id".split())
_NO_PART = frozenset({"prompt_cache", "service_tier"})  # options that decide the price of an answer


_PLAIN = frozenset({str, int, bool})  # types whose values are canonical
_Scalar: TypeAlias = str | int | float | None
_SCALARS = _PLAIN | {float, NoneType}
_SHORT = 4096  # characters of a last message that is hashed without a digest of its own


def _canonical_options(options: JsonObject) -> JsonValue:
    if _SCALARS.issuperset(map(type, options.values())):
        return _scalar_options(**cast("dict[str, _Scalar]", options))
    return _sorted_options(options)


@lru_cache(maxsize=128, typed=True)  # typed: True is not 1
def _scalar_options(**options: _Scalar) -> JsonValue:
    return _sorted_options({**options})


def _sorted_options(options: JsonObject) -> JsonValue:
    canonical: JsonObject = {}
    for name in sorted(options):
        value = options[name]
        if value is None or name in _NO_PART:
            continue
        if name == "extra_headers" and isinstance(value, dict):
            value = cast("JsonValue", plain_headers(value))
        canonical[name] = value if type(value) in _PLAIN else _canonical(value)
    return canonical or None


def _short_text(message: Message) -> str | None:
    """Return the text of a short message that is one text."""
    parts = message.parts
    if len(parts) != 1 or type(part := parts[0]) is not TextPart or len(part.text) > _SHORT:
        return None
    return part.text


def _message_digest(message: Message) -> bytes:
    parts = message.parts
    if len(parts) == 1 and type(parts[0]) is TextPart:
        content: JsonValue = parts[0].text
    else:
        content = [_canonical(part.to_json()) for part in parts]
    return sha256(_encode([message.role, content])).digest()


def _tools_digest(tools: tuple[JsonObject, ...]) -> str:
    return sha256(canonical_bytes(tools)).hexdigest()


def _canonical(value: object) -> JsonValue:
    """Return JSON in which equal numbers are one type. Raises ``ValueError`` for anything else."""
    if value is None or isinstance(value, (str, bool)) or type(value) is int:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a number that JSON does not have")
        return int(value) if value.is_integer() else value
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in cast("list[object]", value)]
    if isinstance(value, Mapping):
        return {_name(name): _canonical(item) for name, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, int):
        return int(value)
    raise ValueError(f"{type(value).__name__} is not JSON")


def _name(name: object) -> str:
    if isinstance(name, str):
        return name
    raise ValueError("a key that is not a text")


def _encode(value: JsonValue) -> bytes:
    try:
        return to_json(value)
    except ValueError:  # half of a surrogate pair, which UTF-8 cannot encode
        import json

        return json.dumps(value, separators=(",", ":")).encode()
