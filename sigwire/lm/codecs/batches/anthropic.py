"""Message Batches of Anthropic (platform.claude.com/docs/en/build-with-claude/batch-processing).

One request creates a batch. It keeps no text of its creator: after a lost reply, only its time and size identify it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sigwire.core.json import JsonObject
from sigwire.lm.codecs.anthropic.tables import STATUSES
from sigwire.lm.codecs.batches.shared import (
    UNREADABLE,
    BatchCall,
    BatchCalls,
    BatchCounts,
    BatchLimits,
    BatchLine,
    BatchListing,
    BatchStatus,
    LineResult,
    count_of,
    cursor_after,
    name_of,
    read_json,
    read_pages,
    read_results,
    result_of,
    seconds_of,
)
from sigwire.lm.codecs.shared.untrusted import object_of, string_of

__all__ = ["LIMITS", "cancel", "create", "listed", "results", "status"]

LIMITS = BatchLimits(lines=100_000, bytes=256_000_000, price=0.5, date="2026-11-22", has_marks=False)
_PATH = "/v1/messages/batches"


def create(lines: Sequence[BatchLine], mark: str) -> BatchCalls[str]:
    """Create a batch; return its name.

    >>> next(create([BatchLine("a", "/v1/messages", b'{"model":"m"}')], "")).body
    b'{"requests":[{"custom_id":"a","params":{"model":"m"}}]}'
    """
    items = (b'{"custom_id":"%b","params":%b}' % (line.id.encode(), line.body) for line in lines)
    return name_of(read_json((yield BatchCall("POST", _PATH, b'{"requests":[%b]}' % b",".join(items)))))


def status(name: str) -> BatchCalls[BatchStatus]:
    """Return the state of a batch."""
    reply = read_json((yield BatchCall("GET", f"{_PATH}/{name}")))
    return BatchStatus("ended" if reply.get("processing_status") == "ended" else "running", _counts(reply), reply)


def _counts(reply: JsonObject) -> BatchCounts:
    counts = object_of(reply.get("request_counts"))
    return BatchCounts(
        *(count_of(counts, *names.split()) for names in ("processing", "succeeded", "errored", "expired canceled"))
    )


def results(name: str, status: BatchStatus) -> BatchCalls[list[LineResult]]:
    """Return the results of an ended batch."""
    return read_results((yield BatchCall("GET", f"{_PATH}/{name}/results")), _result)


def _result(line: JsonObject) -> LineResult:
    result = object_of(line.get("result"))
    id, kind = string_of(line, "custom_id") or "", string_of(result, "type")
    if kind == "succeeded":
        return result_of(id, 200, result.get("message"))
    if kind in ("expired", "canceled"):
        return LineResult(id, None)
    if kind != "errored":
        return LineResult(id, UNREADABLE, "a result of an unknown type")
    error = object_of(result.get("error"))
    error_type = string_of(error.get("error"), "type") or ""
    return result_of(id, STATUSES.get(error_type, 500), error)


def cancel(name: str) -> BatchCalls[None]:
    """Cancel a batch: lines that did not run end as cancelled."""
    yield BatchCall("POST", f"{_PATH}/{name}/cancel")


def listed(since: float) -> BatchCalls[list[BatchListing]]:
    """Return the batches from ``since`` on; the API lists the newest first."""
    cursor = partial(cursor_after, name="after_id")
    return (yield from read_pages(f"{_PATH}?limit=100", "data", _listing, cursor, since))


def _listing(item: JsonObject) -> BatchListing | None:
    name = string_of(item, "id")
    if name is None:
        return None
    return BatchListing(name, None, seconds_of(string_of(item, "created_at")), _counts(item).total)
