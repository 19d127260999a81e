"""``Submissions``: an executor, and the futures of the chunks that are out."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import NamedTuple, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.effects.cancellation import on_cancel
from sigwire.effects.inbox import Empty, Inbox
from sigwire.errors import ConfigurationError
from sigwire.jobs.errors import error_text
from sigwire.jobs.worker import run_chunk

__all__ = ["Chunk", "EndedChunk", "ExecutorLike", "Submissions"]

ExecutorLike: TypeAlias = Executor | Callable[[], Executor]
"""An executor, or a function that makes one, so that a broken pool is replaced."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a job that are sent together. ``block``: the folder of their journal.

    ``level`` 0: rows; 1: a row that was under way when a worker was lost; 2: one that was lost alone, sent with nothing else.
    """

    job: str
    block: str
    rows: tuple[JsonObject, ...]
    level: int = 0

    def text(self) -> str:
        """Return the text that ``run_chunk`` takes, another one each time: engines run equal calls once."""
        return json.dumps({"block": self.block, "nonce": token_hex(8), "rows": self.rows})


class EndedChunk(NamedTuple):
    """A chunk whose future ended. ``answer``: that of ``run_chunk``; ``None`` if the worker was lost."""

    chunk: Chunk
    answer: JsonObject | None
    error: str = ""
    is_cancelled: bool = False


class Submissions:
    """Sends chunks, and returns those that end. Used from one thread at a time."""

    def __init__(self, executor: ExecutorLike, in_flight: int | None, stall: float) -> None:
        if not isinstance(executor, Executor) and not callable(executor):
            raise _no_executor(executor)
        self._make: Callable[[], Executor] | None = None if isinstance(executor, Executor) else executor
        self._executor: Executor | None = executor if isinstance(executor, Executor) else None
        self._ended: Inbox[Future[str] | None] = Inbox()
        self._stall = stall
        self._is_broken = False
        self.out: dict[Future[str], Chunk] = {}
        self.in_flight = in_flight or self._usual()

    def _usual(self) -> int:
        """Two chunks for each process of a pool: the next one overlaps the slowest rows of the one before."""
        workers: object = getattr(self._open(), "_max_workers", None)
        return 2 * workers if isinstance(workers, int) else 64

    def has_room(self) -> bool:
        """Return True if one more chunk may go out. A broken pool is replaced when nothing of it is out."""
        return not (self._is_broken and self.out) and len(self.out) < self.in_flight

    def submit(self, chunk: Chunk) -> bool:
        """Send a chunk. Return False if the executor is broken; with a function that makes executors, try again later."""
        try:
            future = self._open().submit(run_chunk, chunk.job, chunk.text())
        except BrokenExecutor:
            self._break()
            return False
        self.out[future] = chunk
        future.add_done_callback(self._ended.put)
        return True

    def can_go_on(self) -> bool:
        """Return False if the executor is broken and none can be made."""
        return self._make is not None or not self._is_broken

    def next_ended(self, seconds: float | None = None) -> EndedChunk | None:
        """Return the next chunk that ends, blocking; ``None`` if the wait is cancelled, or none ends for ``seconds``.

        Without ``seconds``, those of ``stall``.
        """
        with on_cancel(lambda: self._ended.put(None)):
            try:
                future = self._ended.get(timeout=self._stall if seconds is None else seconds)
            except Empty:
                return None
        if future is None:
            return None
        chunk = self.out.pop(future)
        if future.cancelled():
            return EndedChunk(chunk, None, is_cancelled=True)
        error = future.exception()
        if error is None:
            return EndedChunk(chunk, json.loads(future.result()))
        if isinstance(error, BrokenExecutor):
            self._break()
        return EndedChunk(chunk, None, error_text(error))

    def cancel_waiting(self) -> None:
        """Cancel the chunks that no worker runs."""
        for future in list(self.out):
            future.cancel()

    def close(self) -> None:
        """Cancel what waits. End the processes of an executor that was made here, without waiting for rows under way."""
        self.cancel_waiting()
        if self._make is not None and self._executor is not None:
            self._executor.shutdown(wait=not self.out, cancel_futures=True)

    def _open(self) -> Executor:
        if self._make is not None and (self._executor is None or self._is_broken):
            made = self._make()
            if not isinstance(made, Executor):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
                raise _no_executor(made)
            self._executor, self._is_broken = made, False
        assert self._executor is not None
        return self._executor

    def _break(self) -> None:
        """Wait for the end of a broken pool's processes: until then they may write to the journal."""
        self._is_broken = True
        if self._make is not None and self._executor is not None:
            with suppress(RuntimeError):
                self._executor.shutdown(wait=True, cancel_futures=True)


def _no_executor(given: object) -> ConfigurationError:
    return ConfigurationError(
        f"executor is a PEP 3148 executor or a function that makes one, not {given!r:.80} (starting the run). Pass "
        "executor=lambda: ProcessPoolExecutor(4), or in map_rows 'provider-batch'."
    )
