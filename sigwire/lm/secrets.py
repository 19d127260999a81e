"""Secrets among the options of a language model: what is masked, stored and left out.

The name decides, at any depth: the value of an option named with a word such as key, token, password or headers is
never in a repr, a history entry or a saved program. ``max_tokens`` and similar names count tokens and are no secrets. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeGuard, TypeVar, cast

from sigwire.core.json import JsonObject, JsonValue

__all__ = ["is_secret", "mask_secrets", "redact_key", "storable_options", "without_secrets"]

V = TypeVar("V")

_SECRET_WORDS = frozenset(
    "apikey auth authentication authorization bearer cookie cookies credential credentials header headers key keys passwd "
    "passphrase password pwd secret secrets session token".split()
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Secret by its value: "sk-...", "Bearer ...", a URL with a password or a key, a connection string.
_SECRET_VALUE = re.compile(
    r"^(?:bearer |basic |sk-|xox[a-z]-|gh[pousr]_|AIza)|://[^/\s:@]+:[^/\s@]+@"
    r"|(?:^|[?&;])\w*(?:key|password|pwd|secret|sig|signature|token)=[^\s&;]",
    re.IGNORECASE,
)


def is_secret(name: str, value: object = None) -> bool:
    """Return True if an option must not be shown or stored.

    >>> is_secret("api_key"), is_secret("extra_headers"), is_secret("max_tokens"), is_secret("apiKey")
    (True, True, False, True)
    """
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _SECRET_WORDS) or (isinstance(value, str) and _SECRET_VALUE.search(value) is not None)


def redact_key(text: str, key: str | None) -> str:
    """Return a text with the key masked. A key of at most 6 characters is a placeholder and stays.

    >>> redact_key("the key abcd-1234 is wrong", "abcd-1234"), redact_key("the next", "x"), redact_key("nothing", None)
    ('the key *** is wrong', 'the next', 'nothing')
    """
    return text.replace(key, "***") if key and len(key) > 6 else text


def storable_options(options: Mapping[str, object]) -> JsonObject:
    """Return the options that may be stored: no secrets at any depth, and JSON only (no clients, no callables).

    >>> storable_options({"temperature": 0.0, "api_key": "k", "extra_body": {"user": "u", "token": "t"}, "client": object()})
    {'temperature': 0.0, 'extra_body': {'user': 'u'}}
    """
    return {
        name: _storable_value(value)
        for name, value in options.items()
        if not is_secret(name, value) and _is_json(value)
    }


def without_secrets(options: Mapping[str, V]) -> dict[str, V]:
    """Return the options without secrets at any depth.

    >>> without_secrets({"seed": 1, "api_key": "k", "extra_body": {"token": "t", "tags": {1}}})
    {'seed': 1, 'extra_body': {'tags': {1}}}
    """
    return {name: _value_without_secrets(value) for name, value in options.items() if not is_secret(name, value)}


def _value_without_secrets(value: V) -> V:
    if isinstance(value, Mapping):
        return cast(V, without_secrets(cast("Mapping[str, object]", value)))
    return (
        cast(V, [_value_without_secrets(item) for item in cast("list[object]", value)])
        if type(value) is list
        else value
    )


def _storable_value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return storable_options(value)
    return [_storable_value(item) for item in value if not is_secret("", item)] if isinstance(value, list) else value


def _is_json(value: object) -> TypeGuard[JsonValue]:
    if isinstance(value, dict):
        items = cast("dict[object, object]", value)
        return all(isinstance(key, str) and _is_json(item) for key, item in items.items())
    if isinstance(value, list):
        return all(_is_json(item) for item in cast("list[object]", value))
    return value is None or isinstance(value, (str, int, float, bool))


def mask_secrets(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options for a repr: secrets as ``***``, at any depth.

    >>> mask_secrets({"api_key": "k", "temperature": 0.0})
    {'api_key': '***', 'temperature': 0.0}
    """
    return {name: _masked_value(name, value) for name, value in options.items()}


def _masked_value(name: str, value: object) -> object:
    if is_secret(name, value):
        return "***"
    if isinstance(value, (list, tuple)):
        return [_masked_value("", item) for item in cast("Sequence[object]", value)]
    return mask_secrets(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else value
