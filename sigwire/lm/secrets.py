"""Which options of a language model are secret, and how the rest is shown and stored.

Decided by name, at any depth: an option whose name has a word such as key, token, password or headers never reaches a
repr, a history entry or a saved program. ``max_tokens`` and its kin count tokens and are no secrets. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, cast

from sigwire.core.json import JsonObject, JsonValue

__all__ = ["is_secret", "mask_secrets", "redact_key", "storable_options", "without_secrets"]

_SECRET_WORDS = frozenset(
    "apikey auth authentication authorization bearer cookie cookies credential credentials header headers key keys passwd "
    "passphrase password pwd secret secrets session token".split()
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# A value can give itself away too: "sk-...", "Bearer ...", a URL with a password or a key, a connection string.
_SECRET_VALUE = re.compile(
    r"^(?:bearer |basic |sk-|xox[a-z]-|gh[pousr]_|AIza)|://[^/\s:@]+:[^/\s@]+@"
    r"|(?:^|[?&;])\w*(?:key|password|pwd|secret|sig|signature|token)=[^\s&;]",
    re.IGNORECASE,
)


def is_secret(name: str, value: object = None) -> bool:
    """Whether an option must not be shown or stored.

    >>> is_secret("api_key"), is_secret("extra_headers"), is_secret("max_tokens"), is_secret("apiKey")
    (True, True, False, True)
    """
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(words & _SECRET_WORDS) or (isinstance(value, str) and _SECRET_VALUE.search(value) is not None)


def redact_key(text: str, key: str | None) -> str:
    """A text without the key. A dummy such as "x" is no secret, and stands in every other word.

    >>> hidden("the key abcd-1234 is wrong", "abcd-1234"), hidden("the next", "x"), hidden("nothing", None)
    ('the key *** is wrong', 'the next', 'nothing')
    """
    return text.replace(key, "***") if key and len(key) > _DUMMY else text


_DUMMY = 6


def storable_options(options: Mapping[str, Any]) -> JsonObject:
    """The options that may be stored: no secrets at any depth, and nothing that is not JSON (clients, callables).

    >>> public({"temperature": 0.0, "api_key": "k", "extra_body": {"user": "u", "token": "t"}, "client": object()})
    {'temperature': 0.0, 'extra_body': {'user': 'u'}}
    """
    kept: JsonObject = {}
    for name, value in options.items():
        if not is_secret(name, value) and _is_json(value):
            kept[name] = _public_value(value)
    return kept


def without_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without secrets at any depth; whatever else they are stays.

    >>> without_secrets({"seed": 1, "api_key": "k", "extra_body": {"token": "t", "tags": {1}}})
    {'seed': 1, 'extra_body': {'tags': {1}}}
    """
    return {name: _bare(value) for name, value in options.items() if not is_secret(name, value)}


def _bare(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_secrets(cast("Mapping[str, Any]", value))
    return [_bare(item) for item in value] if _is_list(value) else value


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return type(value) is list


def _public_value(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return storable_options(value)
    return [_public_value(item) for item in value if not is_secret("", item)] if isinstance(value, list) else value


def _is_json(value: object) -> TypeGuard[JsonValue]:
    if isinstance(value, dict):
        items = cast("dict[object, object]", value)
        return all(isinstance(key, str) and _is_json(item) for key, item in items.items())
    if isinstance(value, list):
        return all(_is_json(item) for item in cast("list[object]", value))
    return value is None or isinstance(value, (str, int, float, bool))


def mask_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options for a repr: secrets as ``***``, at any depth.

    >>> masked({"api_key": "k", "temperature": 0.0})
    {'api_key': '***', 'temperature': 0.0}
    """
    return {name: _masked_value(name, value) for name, value in options.items()}


def _masked_value(name: str, value: Any) -> Any:
    if is_secret(name, value):
        return "***"
    if isinstance(value, (list, tuple)):
        return [_masked_value("", item) for item in cast("Sequence[Any]", value)]
    return mask_secrets(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
