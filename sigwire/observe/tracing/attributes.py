"""Attributes of a model's call: of its request, and of its response. Pure; nothing here is content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Response, Usage
from sigwire.observe.tracing import names

__all__ = [
    "AttributeMap",
    "CallFacts",
    "is_in_process",
    "model_of",
    "request_attributes",
    "response_attributes",
    "usage_attributes",
]

CallFacts: TypeAlias = "Mapping[str, Any]"
"""The inputs of a watched call."""
AttributeValue: TypeAlias = str | bool | int | float | Sequence[str]
AttributeMap: TypeAlias = dict[str, AttributeValue]


def model_of(lm: object) -> tuple[str, str]:
    """Return the provider's name in the conventions, and the model's name at the provider.

    A model string without a provider is a user's own model: its class is its provider.

    >>> class Model:
    ...     model = "vertex/gemini-2.5-flash"
    >>> model_of(Model())
    ('gcp.vertex_ai', 'gemini-2.5-flash')
    """
    model = str(getattr(lm, "model", ""))
    provider, slash, name = model.removeprefix("litellm/").partition("/")
    return (names.PROVIDER_NAMES.get(provider, provider), name) if slash else (type(lm).__name__, model)


def is_in_process(provider: str) -> bool:
    """Return True for the models of sigwire that send nothing."""
    return provider in ("offline", "FakeLM", "DummyLM")


def request_attributes(lm: object, inputs: Mapping[str, object]) -> AttributeMap:
    """Return the attributes that are known when a call of a model starts."""
    provider, name = model_of(lm)
    found: AttributeMap = {names.OPERATION: names.CHAT, names.PROVIDER: provider, names.REQUEST_MODEL: name}
    request = inputs.get("request")
    if isinstance(request, Request):
        found |= _option_attributes({**_defaults(lm), **_given(request.options)})
        if request.response_format is not None:
            found[names.OUTPUT_TYPE] = "json"
    if inputs.get("streamed"):
        found[names.REQUEST_STREAM] = True
    return found | _server_attributes(lm)


def _defaults(lm: object) -> dict[str, object]:
    options = getattr(lm, "kwargs", None)
    return _given(options) if is_mapping(options) else {}


def _given(options: Mapping[str, object]) -> dict[str, object]:
    return {_ALIASES.get(name, name): value for name, value in options.items() if value is not None}


_ALIASES = {"max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens", "reasoning_effort": "reasoning"}


def _number(value: object) -> AttributeValue | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _texts(value: object) -> AttributeValue | None:
    return [value] if isinstance(value, str) else list(map(str, value)) if is_items(value) else None


_OPTIONS: Mapping[str, tuple[str, Callable[[object], AttributeValue | None]]] = {
    "frequency_penalty": (names.REQUEST_FREQUENCY_PENALTY, _number),
    "max_tokens": (names.REQUEST_MAX_TOKENS, _number),
    "n": (names.REQUEST_CHOICES, lambda value: None if value == 1 else _number(value)),
    "presence_penalty": (names.REQUEST_PRESENCE_PENALTY, _number),
    "reasoning": (names.REQUEST_REASONING, lambda value: value if isinstance(value, str) else None),
    "seed": (names.REQUEST_SEED, _number),
    "stop": (names.REQUEST_STOP, _texts),
    "temperature": (names.REQUEST_TEMPERATURE, _number),
    "top_k": (names.REQUEST_TOP_K, _number),
    "top_p": (names.REQUEST_TOP_P, _number),
}


def _option_attributes(options: Mapping[str, object]) -> AttributeMap:
    found: AttributeMap = {}
    for option in options.keys() & _OPTIONS.keys():
        name, read = _OPTIONS[option]
        if (value := read(options[option])) is not None:
            found[name] = value
    return found


def _server_attributes(lm: object) -> AttributeMap:
    """Return host and port of the base URL. User and password of the URL are not part of them."""
    with suppress(Exception):  # a variable of the URL is missing: the call raises the error
        parts = urlsplit(str(getattr(lm, "address", None) or ""))
        if parts.hostname:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            return {names.SERVER_ADDRESS: parts.hostname, names.SERVER_PORT: port}
    return {}


def response_attributes(response: Response) -> AttributeMap:
    """Return the attributes of a response, whole or partial."""
    known: dict[str, AttributeValue | None] = {
        names.RESPONSE_ID: response.id,
        names.RESPONSE_MODEL: response.model,
        names.RESPONSE_FIRST_CHUNK: next((one.first for one in reversed(response.attempts) if one.first), None),
        names.CACHE: response.cache,
    }
    found: AttributeMap = {name: value for name, value in known.items() if value is not None}
    if response.choices:
        found[names.RESPONSE_FINISH_REASONS] = [
            _FINISH.get(one.finish_reason, one.finish_reason) for one in response.choices
        ]
    return found | usage_attributes(response.usage) | attempt_attributes(response.attempts)


_FINISH: Mapping[str, str] = {"tool_calls": "tool_call"}


def usage_attributes(usage: Usage) -> AttributeMap:
    """Return the known counts of tokens.

    >>> usage_attributes(Usage(input_tokens=3))
    {'gen_ai.usage.input_tokens': 3}
    """
    counts = {
        names.INPUT_TOKENS: usage.input_tokens,
        names.OUTPUT_TOKENS: usage.output_tokens,
        names.CACHE_READ_TOKENS: usage.cached_tokens,
        names.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
        names.REASONING_TOKENS: usage.reasoning_tokens,
    }
    return {name: count for name, count in counts.items() if count is not None}


def attempt_attributes(attempts: Sequence[Attempt]) -> AttributeMap:
    """Return the number of exchanges, if the model logs them."""
    sent = [attempt for attempt in attempts if attempt.purpose not in ("skip", "joined")]
    return {names.ATTEMPTS: len(sent)} if attempts else {}
