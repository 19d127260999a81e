"""Secrets of a request in its reply: masked on the way in, before anything of the reply is parsed, logged or kept.

A gateway may echo headers in an error, and in a success too. ``ReplyMask`` knows the secrets that went out (key, headers,
options, URL, those of the transport) and replaces them in the bytes of the body and in the headers. Texts that answers contain
by themselves stay: see ``sent_secrets``. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import cast
from urllib.parse import quote

from sigwire.core.json import JsonValue
from sigwire.core.narrow import is_array, is_object
from sigwire.lm.http.messages import HttpReply
from sigwire.lm.secrets import Secret, SecretUrl, is_secret, secrets_in

__all__ = ["ReplyMask", "StreamMask", "mask_of", "sent_secrets"]

_MASK = b"***"


class ReplyMask:
    """Masks secrets in replies, as they are and in the forms of JSON and URLs.

    >>> mask = ReplyMask(["tok/en-12345678"])
    >>> mask.body(b'{"headers": {"x-key": "tok/en-12345678"}}'), mask.body(b'"tok\\\\/en-12345678"')
    (b'{"headers": {"x-key": "***"}}', b'"***"')
    """

    __slots__ = ("forms", "needles", "opening")

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {form.encode("utf-8", "replace") for secret in secrets for form in _forms(secret)}
        self.forms = tuple(sorted(found, key=len, reverse=True))
        # Most forms contain another one, such as a header its key: without that one in the data, none of them is there.
        self.needles = tuple(form for form in found if not any(other in form for other in found if other is not form))
        self.opening = frozenset(b"".join(form[:-1] for form in found))

    def __repr__(self) -> str:
        return f"ReplyMask({len(self.forms)} forms)"

    def body(self, data: bytes) -> bytes:
        """Return the bytes without the secrets; the same object if there is none in them."""
        for needle in self.needles:
            if needle in data:
                break
        else:
            return data
        for form in self.forms:
            data = data.replace(form, _MASK)
        return data

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        data = text.encode("utf-8", "surrogatepass")
        masked = self.body(data)
        return text if masked is data else masked.decode("utf-8", "surrogatepass")

    def headers(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Return the headers without the secrets; the same object if there is none in them."""
        joined = "\n".join(headers.values())
        if self.text(joined) is joined:
            return headers
        return {name: self.text(value) for name, value in headers.items()}

    def reply(self, reply: HttpReply) -> HttpReply:
        """Return a whole reply without the secrets."""
        body, headers = self.body(reply.body), self.headers(reply.headers)
        return reply if body is reply.body and headers is reply.headers else HttpReply(reply.status, headers, body)

    def value(self, value: JsonValue) -> JsonValue:
        """Return parsed JSON without the secrets."""
        if isinstance(value, str):
            return self.text(value)
        if is_object(value):
            return {self.text(name): self.value(item) for name, item in value.items()}
        return [self.value(item) for item in value] if is_array(value) else value


class StreamMask:
    """Masks secrets in the chunks of one reply, also those that a border of chunks cuts.

    The end of a chunk is held back while a secret may begin in it.

    >>> stream = StreamMask(ReplyMask(["secret-12345678"]))
    >>> [stream.feed(chunk) for chunk in (b"a secr", b"et-1234", b"5678 b sec")], stream.close()
    ([b'a ', b'', b'*** b '], b'sec')
    """

    __slots__ = ("_held", "_mask", "_needles", "_opening")

    def __init__(self, mask: ReplyMask) -> None:
        self._mask, self._held = mask, b""
        self._needles, self._opening = mask.needles, mask.opening

    def feed(self, chunk: bytes) -> bytes:
        """Return the bytes that are sure, masked."""
        if chunk and not self._held and chunk[-1] not in self._opening:  # most chunks end with a line feed
            for needle in self._needles:
                if needle in chunk:
                    break
            else:
                return chunk
        data = self._mask.body(self._held + chunk if self._held else chunk)
        size = max((_overlap(data, form) for form in self._mask.forms), default=0)
        self._held = data[len(data) - size :] if size else b""
        return data[: len(data) - size] if size else data

    def close(self) -> bytes:
        """Return the bytes that were held back."""
        held, self._held = self._held, b""
        return held


def _overlap(data: bytes, form: bytes) -> int:
    """Return the size of the longest end of ``data`` that begins ``form``."""
    start = max(0, len(data) - len(form) + 1)
    while (start := data.find(form[:1], start)) >= 0:
        if form.startswith(data[start:]):
            return len(data) - start
        start += 1
    return 0


def _forms(secret: str) -> Iterable[str]:
    """Yield a secret as it is, in JSON with and without escapes of other alphabets and of slashes, and in a URL."""
    escaped = json.dumps(secret, ensure_ascii=False)[1:-1]
    yield from (secret, escaped, json.dumps(secret)[1:-1], escaped.replace("/", "\\/"), quote(secret, safe=""))


@lru_cache(maxsize=256)
def mask_of(secrets: tuple[str, ...]) -> ReplyMask:
    """Return the mask of these secrets."""
    return ReplyMask(secrets)


_PLACEHOLDERS = frozenset(
    "dummy-api-key no-key-needed no-key-required not-required placeholder sk-no-key-required your-api-key".split()
)
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[A-Za-z]")


def sent_secrets(*holders: object) -> tuple[str, ...]:
    """Return the secrets in options, headers and URLs that are masked in replies.

    An answer may contain a short or common word that is also a key ("lm-studio") or a header ("x-team: research"). So a secret
    has 11 characters, or 7 with a digit; the value of a header whose name names no secret has 12 with a digit and a letter.

    >>> sent_secrets({"authorization": Secret("Bearer abcd-12345"), "x-team": Secret("research")}, Secret("lm-studio"))
    ('Bearer abcd-12345', 'abcd-12345')
    """
    return tuple(sorted({secret for holder in holders for secret in _masked_in(holder, "", True)}))


def _masked_in(value: object, name: str, is_named: bool) -> Iterable[str]:
    if isinstance(value, Secret):
        is_named = is_named or isinstance(value, SecretUrl) or is_secret(name, str(value))
        for secret in secrets_in(value):
            has_digit = _DIGIT.search(secret) is not None
            size = (7 if has_digit else 11) if is_named else 12
            fits = is_named or (has_digit and _LETTER.search(secret) is not None and " " not in secret)
            if len(secret) >= size and fits and secret.lower() not in _PLACEHOLDERS:
                yield str.__str__(secret)
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield from _masked_in(item, str(key), False)
    elif isinstance(value, (list, tuple)):
        for item in cast("Iterable[object]", value):
            yield from _masked_in(item, name, is_named)
