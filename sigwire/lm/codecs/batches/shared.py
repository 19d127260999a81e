"""The seam of batch APIs: values, and the protocol ``BatchWire``.

Functions that need replies are generators: they yield a ``BatchCall``, and are sent the body of its reply.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.lm.codecs.shared.untrusted import object_of, string_of

__all__ = [
    "BatchCall", "BatchCalls", "BatchCounts", "BatchLimits", "BatchLine", "BatchListing", "BatchState", "BatchStatus",
    "BatchWire", "LineResult", "count_of", "name_of", "read_json", "read_lines",
]  # fmt: skip

T = TypeVar("T")
BatchState: TypeAlias = Literal["running", "ended", "failed"]


class BatchLimits(NamedTuple):
    """The most lines and bytes of one batch. ``price``: the part of the ordinary price. ``date``: of these figures."""

    lines: int
    bytes: int
    price: float
    date: str


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


class LineResult(NamedTuple):
    """The result of a line. ``status`` is that of the ordinary reply; ``None`` if the line never ran: expired or cancelled."""

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
    """The state of a batch: "running"; "ended", with results; "failed": the provider refused it, ``detail`` has the reason."""

    state: BatchState
    counts: BatchCounts
    reply: JsonObject
    detail: str = ""


class BatchListing(NamedTuple):
    """A listed batch. ``mark``: the text of its creator, if the API keeps one; ``created``: seconds since 1970, if known."""

    name: str
    mark: str | None
    created: float | None
    total: int


class BatchWire(Protocol):
    """One batch API: a module with these functions. ``name`` of a batch is that of the provider.

    ``results`` returns the line results of an ended batch, in any order. ``listed`` returns the newest batches.
    """

    @property
    def LIMITS(self) -> BatchLimits: ...  # noqa: N802  # a constant of the module

    def create(self, lines: Sequence[BatchLine], mark: str) -> BatchCalls[str]: ...

    def status(self, name: str) -> BatchCalls[BatchStatus]: ...

    def results(self, name: str, status: BatchStatus) -> BatchCalls[list[LineResult]]: ...

    def cancel(self, name: str) -> BatchCalls[None]: ...

    def listed(self) -> BatchCalls[list[BatchListing]]: ...


def read_json(body: bytes) -> JsonObject:
    """Return the object of a reply. Raises ``ValueError`` for a body that is not JSON."""
    return object_of(loads(body))


def read_lines(body: bytes) -> list[JsonObject]:
    """Return the objects of JSON lines.

    >>> read_lines(b'{"a": 1}' + b"\\n\\n" + b'{"a": 2}')
    [{'a': 1}, {'a': 2}]
    """
    return [read_json(line) for line in body.splitlines() if line.strip()]


def name_of(reply: JsonObject, key: str = "id") -> str:
    """Return the name of a batch or file. Raises ``ValueError`` for a reply without one."""
    name = string_of(reply, key)
    if name is None:
        raise ValueError(f"a reply without {key}")
    return name


def count_of(counts: Mapping[str, JsonValue], *names: str) -> int:
    """Return the sum of counts; one that is missing, or a text that is no number, is 0."""
    values = [counts.get(name) for name in names]
    return sum(int(value) for value in values if isinstance(value, int) or (isinstance(value, str) and value.isdigit()))
