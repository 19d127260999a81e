"""The rows of a journal as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sigwire.core.json import JsonObject, JsonValue
from sigwire.show.card import BoundedRepr

__all__ = ["EffectRow", "RunHead", "RunInfo", "StoredEffect"]


@dataclass(frozen=True, slots=True)
class EffectRow:
    """An effect as it is stored. ``state`` is "started", "waiting", "done" or "failed"; ``key`` and ``value`` are packed."""

    place: str
    kind: str
    fingerprint: str
    state: str
    attempt: int
    on_crash: str | None
    key: bytes
    value: bytes | None
    decision: bytes | None
    started: float
    ended: float | None


@dataclass(frozen=True, slots=True)
class RunHead:
    """A run as it is stored; ``header``, ``inputs`` and ``result`` are packed."""

    run: str
    state: str
    header: bytes
    inputs: bytes
    inputs_digest: str
    result: bytes | None
    error: str | None
    started: float
    updated: float


@dataclass(frozen=True, slots=True)
class RunInfo(BoundedRepr):
    """A run of a journal. ``state``: "running" (or killed), "waiting" for decisions, "failed" with ``error``, or "done".

    Times are seconds of ``time.time()``.
    """

    run: str
    state: str
    program: str
    inputs: Mapping[str, Any]
    error: str | None
    started: float
    updated: float


@dataclass(frozen=True, slots=True)
class StoredEffect(BoundedRepr):
    """A recorded effect: its place in the run, ``key`` (the request, or name and arguments) and ``value`` as JSON.

    ``state`` is "done", "failed", "waiting" for approval, or "started" for a tool whose end is not recorded. ``attempt``
    counts from 1.
    """

    place: str
    kind: str
    state: str
    attempt: int
    key: JsonObject
    value: JsonValue
    started: float
    ended: float | None
