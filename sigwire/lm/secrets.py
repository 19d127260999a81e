"""Secrets among the options of a language model: what is masked, stored and left out.

The name decides, at any depth: the value of an option named with a word such as key, token, password or headers is
never in a repr, a history entry or a saved program. ``max_tokens`` and similar names count tokens and are no secrets. Pure.

A secret is a ``Secret`` from the place where the user gives it: a traceback with local variables shows ``***``, and
``redact`` finds it in a text of the provider.
"""

from __future__ import annotations

import operator
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self, TypeGuard, TypeVar, cast
from urllib.parse import parse_qsl, unquote

from sigwire.core.json import JsonObject, JsonValue

__all__ = [
    "Secret", "SecretUrl", "is_secret", "mask_secrets", "redact", "redact_url", "secrets_in", "storable_options",
    "without_secrets", "wrap_headers", "wrap_secrets", "wrap_url",
]  # fmt: skip

V = TypeVar("V")


class Secret(str):
    """A text whose repr is ``***``. Texts made of it by ``+`` and formatting are plain.

    >>> key = Secret("sk-1234567")
    >>> key, {"key": key[:4]}, key == "sk-1234567", f"Bearer {key}"
    (***, {'key': ***}, True, 'Bearer sk-1234567')
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "***"

    def __str__(self) -> Self:
        return self

    def __getitem__(self, index: Any) -> Secret:  # rich shows the first characters of a long text
        return Secret(super().__getitem__(index))


class SecretUrl(Secret):
    """A URL with a user, a password or a query, which its repr does not show.

    >>> SecretUrl("https://me:pass@llm.example") + "/v1"
    'https://llm.example/v1'
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(redact_url(self))

    def __add__(self, more: str) -> Self:
        return type(self)(super().__add__(more))


_SECRET_WORDS = frozenset(
    "apikey auth authentication authorization bearer cookie cookies credential credentials header headers key keys passwd "
    "passphrase password pwd secret secrets session token".split()
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Secret by its value: "sk-...", "Bearer ...", a URL with a password or a key, a connection string.
_SECRET_VALUE = re.compile(
    r"^(?:bearer |basic |sk-|xox[a-z]-|gh[pousr]_|AIza|[srp]k_(?:live|test)_|hf_|glpat-)|(?:^|://)[^/\s:@]*:[^/\s@]+@|(?:^|:)//[^/\s@]+@"
    r"|^(?:[\w+.-]*:)?//[^/?#\s@\[]*:(?!\d*(?:[/?#]|$))[^\s@]*@"
    r"|(?:^|[?&;])[\w.-]*(?:code|key|password|pwd|secret|sig|signature|token)=[^\s&;]",
    re.IGNORECASE,
)
# Headers that name no account and open nothing: an error may show them.
_OPEN_HEADERS = frozenset(
    "accept accept-encoding accept-language anthropic-beta anthropic-version content-encoding content-type http-referer "
    "openai-beta openai-organization openai-project traceparent user-agent x-title".split()
)


def is_secret(name: str, value: object = None) -> bool:
    """Return True if an option must not be shown or stored.

    >>> is_secret("api_key"), is_secret("extra_headers"), is_secret("max_tokens"), is_secret("apiKey")
    (True, True, False, True)
    """
    return _is_secret_name(str(name)) or (isinstance(value, str) and _SECRET_VALUE.search(value, 0, 4096) is not None)


@lru_cache(maxsize=1024)
def _is_secret_name(name: str) -> bool:
    return not _SECRET_WORDS.isdisjoint(word.lower() for word in _WORD.findall(name))


def wrap_secrets(options: Mapping[str, V]) -> Mapping[str, V]:
    """Return the options with every text of a secret as a ``Secret``, at any depth; the same object if there is none.

    >>> wrap_secrets({"seed": 1, "extra_body": {"token": "t", "tags": ["a"]}})
    {'seed': 1, 'extra_body': {'token': ***, 'tags': ['a']}}
    """
    return cast("Mapping[str, V]", _wrapped(options, False))


def _wrapped(value: object, secret: bool) -> object:
    if type(value) is str:
        return Secret(value) if secret or is_secret("", value) else value
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        pairs = {name: _wrapped(item, _holds_secret(str(name), secret)) for name, item in items.items()}
        return items if _are_same(items.values(), pairs.values()) else pairs
    if isinstance(value, (list, tuple)):
        entries = cast("Sequence[object]", value)
        found = [_wrapped(item, secret) for item in entries]
        return entries if _are_same(entries, found) else found
    return value


def _are_same(old: Iterable[object], new: Iterable[object]) -> bool:
    return all(map(operator.is_, old, new))


@lru_cache(maxsize=1024)
def _holds_secret(name: str, inside_secret: bool) -> bool:
    return (inside_secret and name.lower() not in _OPEN_HEADERS) or _is_secret_name(name)


def wrap_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the headers with their values as secrets, except those of headers that hold none."""
    return dict(cast("Mapping[str, str]", _wrapped(headers, True)))


def wrap_url(url: str) -> str:
    """Return a URL with a user, a password or a query as a ``SecretUrl``, any other as it is."""
    return url if redact_url(url) == url else SecretUrl(url)


def redact_url(url: str) -> str:
    """Return a URL without user, password, query and fragment, which can hold secrets. Takes any text.

    >>> redact_url("https://me:secret@example.org/v1?key=k")
    'https://example.org/v1'
    """
    return _USER.sub(r"\1", url, 1).partition("#")[0].partition("?")[0]


# User and password of a URL with or without a scheme; also a password that holds "/", "?" or "#" unquoted: no port precedes it.
_USER = re.compile(r"^((?:[\w+.-]*:)?//)?((?>[^/?#]*@)|[^/?#@\[]*:(?!\d*(?:[/?#]|$))[^@]*@)")


def redact(text: str, *holders: object) -> str:
    """Return a text with the secrets in ``holders`` masked. A secret of at most 6 characters is a placeholder and stays.

    >>> redact("the key abcd-1234 is wrong", {"authorization": Secret("Bearer abcd-1234")}), redact("the next", Secret("x"))
    ('the key *** is wrong', 'the next')
    """
    found = {secret for secret in secrets_in(holders) if len(secret) > _LONGEST_PLACEHOLDER}
    for secret in sorted(found, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


_LONGEST_PLACEHOLDER = 6


def secrets_in(value: object) -> Iterator[str]:
    """Yield the texts of secrets at any depth: a header's value with and without its scheme, the secret parts of a URL."""
    if isinstance(value, SecretUrl):
        yield from _secrets_of_url(value)
    elif isinstance(value, Secret):
        yield from (value, value.partition(" ")[2])
    elif isinstance(value, Mapping):
        yield from secrets_in(tuple(cast("Mapping[object, object]", value).values()))
    elif isinstance(value, (list, tuple)):
        for item in cast("Sequence[object]", value):
            yield from secrets_in(item)


def _secrets_of_url(url: str) -> Iterator[str]:
    found = _USER.match(url)
    user = found[2].removesuffix("@") if found else ""
    password = user.partition(":")[2] or user
    yield from (password, unquote(password), b64encode(unquote(user).encode()).decode())
    for name, value in parse_qsl(_USER.sub("", url, 1).partition("#")[0].partition("?")[2]):
        if is_secret(name, f"{name}={value}"):
            yield value


def storable_options(options: Mapping[str, object]) -> JsonObject:
    """Return the options that may be stored: no secrets at any depth, and JSON only (no clients, no callables).

    >>> storable_options({"temperature": 0.0, "api_key": "k", "extra_body": {"user": "u", "token": "t"}, "client": object()})
    {'temperature': 0.0, 'extra_body': {'user': 'u'}}
    """
    return {name: value for name, value in without_secrets(options).items() if _is_json(value)}


def without_secrets(options: Mapping[str, V]) -> dict[str, V]:
    """Return the options without secrets at any depth.

    >>> without_secrets({"seed": 1, "api_key": "k", "extra_body": {"token": "t", "tags": {1}}})
    {'seed': 1, 'extra_body': {'tags': {1}}}
    """
    return {name: _value_without_secrets(value) for name, value in options.items() if not is_secret(name, value)}


def _value_without_secrets(value: V) -> V:
    if isinstance(value, Mapping):
        return cast(V, without_secrets(cast("Mapping[str, object]", value)))
    if type(value) is list:
        return cast(
            V, [_value_without_secrets(item) for item in cast("list[object]", value) if not is_secret("", item)]
        )
    return value


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
