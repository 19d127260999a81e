"""The seam of batch APIs: values, and the protocol ``BatchWire``.

Functions that need replies are generators: they yield a ``BatchCall``, and are sent the body of its reply. A result that cannot
be read is the result of its line alone: ``read_results`` and ``result_of`` never raise for one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from sigwire.core.json import JsonObject, JsonValue, dumps, is_too_deep, loads_lenient
from sigwire.lm.codecs.shared.paths import value_in_query
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of

__all__ = [
    "UNREADABLE", "BatchCall", "BatchCalls", "BatchCounts", "BatchLimits", "BatchLine", "BatchListing", "BatchState",
    "BatchStatus", "BatchWire", "LineResult", "blamed_lines", "count_of", "cursor_after", "encode_body", "name_of", "read_json",
    "read_pages", "read_results", "result_of", "seconds_of",
]  # fmt: skip

T = TypeVar("T")
BatchState: TypeAlias = Literal["running", "ended", "failed"]


class BatchLimits(NamedTuple):
    """The most lines and bytes of one batch. ``price``: the part of the ordinary price. ``date``: of these figures.

    ``has_marks``: whether the API keeps a text of its creator with a batch.
    """

    lines: int
    bytes: int
    price: float
    date: str
    has_marks: bool = True


class BatchCall(NamedTuple):
    """One HTTP request below the base URL of the provider."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = "application/json"


BatchCalls: TypeAlias = Generator[BatchCall, bytes, T]


class BatchLine(NamedTuple):
    """One request of a batch: its id, the path of the ordinary request, and its body as JSON text."""

    id: str
    path: str
    body: bytes


UNREADABLE = 0
"""The status of a result that cannot be read. Its line may have been paid."""


class LineResult(NamedTuple):
    """The result of a line. ``status`` is that of the ordinary reply; ``None`` if the line never ran: expired or cancelled.

    ``UNREADABLE``: there is a result, and ``body`` is the text of what is wrong with it.
    """

    id: str
    status: int | None
    body: JsonValue = None


class BatchCounts(NamedTuple):
    """How many lines of a batch are in which state. ``expired`` includes cancelled ones."""

    waiting: int = 0
    done: int = 0
    failed: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        """The number of lines."""
        return sum(self)


class BatchStatus(NamedTuple):
    """The state of a batch: "running"; "ended", with results; "failed": the provider refused it, ``detail`` has the reason.

    ``faults``: what a failed batch reports of lines, by their places from 0. ``is_cut``: the batch expired or was cancelled, so
    a line without a result never ran.
    """

    state: BatchState
    counts: BatchCounts
    reply: JsonObject
    detail: str = ""
    faults: Mapping[int, str] = {}
    is_cut: bool = False


class BatchListing(NamedTuple):
    """A listed batch. ``mark``: the text of its creator, if the API keeps one; ``created``: seconds since 1970, if known."""

    name: str
    mark: str | None
    created: float | None
    total: int


class BatchWire(Protocol):
    """One batch API: a module with these functions. ``name`` of a batch is that of the provider.

    ``results`` returns the line results of an ended batch, in any order. ``listed`` returns the batches that were created at
    ``since`` (seconds since 1970) or later, all pages of them, and may return older ones.
    """

    @property
    def LIMITS(self) -> BatchLimits: ...  # noqa: N802  # a constant of the module

    def create(self, lines: Sequence[BatchLine], mark: str) -> BatchCalls[str]: ...

    def status(self, name: str) -> BatchCalls[BatchStatus]: ...

    def results(self, name: str, status: BatchStatus) -> BatchCalls[list[LineResult]]: ...

    def cancel(self, name: str) -> BatchCalls[None]: ...

    def listed(self, since: float) -> BatchCalls[list[BatchListing]]: ...


def read_json(body: bytes) -> JsonObject:
    """Return the object of a reply, without the numbers that JSON has not. Raises ``ValueError`` for one that is not JSON."""
    return object_of(loads_lenient(body))


ListingReader: TypeAlias = Callable[[JsonObject], "BatchListing | None"]
Cursor: TypeAlias = Callable[[JsonObject], "str | None"]
_MOST_PAGES = 100  # of 100 batches: an end for a list whose cursor does not move


def read_pages(
    path: str, key: str, read: ListingReader, cursor: Cursor, since: float
) -> BatchCalls[list[BatchListing]]:
    """Return the batches of all pages of a list, up to the page that has only batches from before ``since``.

    ``key``: the member with the items. ``read`` returns ``None`` for an item that is no batch. ``cursor`` returns the query of
    the next page, ``None`` at the end.
    """
    found: list[BatchListing] = []
    more: str | None = ""
    for _ in range(_MOST_PAGES):
        reply = read_json((yield BatchCall("GET", f"{path}{more}")))
        page = [each for each in map(read, objects_of(reply.get(key))) if each is not None]
        found += page
        more = cursor(reply)
        if more is None or (page and all(each.created is not None and each.created < since for each in page)):
            break
    return found


def cursor_after(reply: JsonObject, name: str) -> str | None:
    """Return the query of the page after the last item of this one."""
    last = string_of(reply, "last_id")
    return None if reply.get("has_more") is not True or last is None else f"&{name}={value_in_query(last)}"


def seconds_of(time: str | None) -> float | None:
    """Return seconds since 1970 of a time as in RFC 3339; ``None`` for another text."""
    try:
        return None if time is None else datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):
        return None


def read_results(body: bytes, read: Callable[[JsonObject], LineResult]) -> list[LineResult]:
    """Return the results of JSON lines. A line that is not JSON has the id that is still found in it, or ``""``.

    >>> read_results(b'{"custom_id": "a"}' + b"\\n\\n" + b'{"custom_id": "b", "resu', lambda line: LineResult("a", 200))
    [LineResult(id='a', status=200, body=None), LineResult(id='b', status=0, body='a line that is not JSON')]
    """
    return [_read_result(line, read) for line in body.splitlines() if line.strip()]


def _read_result(line: bytes, read: Callable[[JsonObject], LineResult]) -> LineResult:
    try:
        return read(read_json(line))
    except ValueError:
        id = _ID.search(line)
        return LineResult(id[1].decode() if id else "", UNREADABLE, "a line that is not JSON")


_ID = re.compile(rb'"custom_id"\s*:\s*"([ -!#-\[\]-~]+)"')


def result_of(id: str, status: object, body: JsonValue) -> LineResult:
    """Return the result of a line that ran. A success without an answer, and an unknown status, are unreadable.

    >>> result_of("a", 200, {"error": {"message": "boom"}})
    LineResult(id='a', status=0, body='a success with the error: boom')
    """
    if type(status) is not int or not 200 <= status <= 599:
        return LineResult(id, UNREADABLE, "a result without a status of HTTP")
    if is_too_deep(body):
        return LineResult(id, UNREADABLE, "a result that is nested too deeply")
    if status < 300 and not isinstance(body, dict):
        return LineResult(id, UNREADABLE, "a success without an answer")
    if status < 300 and (error := object_of(object_of(body).get("error"))):
        message = string_of(error, "message") or "it has no message"
        return LineResult(id, UNREADABLE, f"a success with the error: {message:.300}")
    return LineResult(id, status, body)


def encode_body(value: JsonValue) -> bytes:
    """Return the JSON text of a result. A lone surrogate, which UTF-8 has not, is escaped as it was received.

    >>> encode_body("\\u00e9"), encode_body("\\ud800")
    (b'"\\xc3\\xa9"', b'"\\\\ud800"')
    """
    try:
        return dumps(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def blamed_lines(text: str) -> frozenset[int]:
    """Return the places, from 0, of the lines that a refusal names. Anthropic and Gemini write the path of the member.

    >>> sorted(blamed_lines("requests.3.params.max_tokens: Field required")), sorted(blamed_lines("'x.requests[12].request'"))
    ([3], [12])
    """
    return frozenset(int(place) for place in _PLACE.findall(text))


_PLACE = re.compile(r"\brequests(?:\.|\[)(\d{1,6})\b")


def name_of(reply: JsonObject, key: str = "id") -> str:
    """Return the name of a batch or file. Raises ``ValueError`` for a reply without one."""
    name = string_of(reply, key)
    if name is None:
        raise ValueError(f"a reply without {key}")
    return name


def count_of(counts: Mapping[str, JsonValue], *names: str) -> int:
    """Return the sum of counts; one that is missing, or a text that is no number, is 0."""
    values = [counts.get(name) for name in names]
    return sum(
        int(value) for value in values if isinstance(value, int) or (isinstance(value, str) and value.isdecimal())
    )
