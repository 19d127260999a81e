"""``Driver``: sends chunks until each row has a record, and finds the rows that kill their worker.

When a worker is lost, the journal of its chunk sorts its rows, read here or by the worker that the engine gave the chunk to
again: finished ones have a record, those that never started are sent again, and those that were under way are suspects.
Suspects are sent one at a time behind all other rows. A suspect whose worker is lost again is sent again, with nothing else in
any worker: a broken process pool loses innocent rows beside a poisoned one, so only that is proof. A row that is lost then
becomes a failure of the worker.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from secrets import token_hex
from typing import Literal, Protocol, TypeAlias, cast

from sigwire.core.json import JsonObject
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.jobs.errors import JobRefused
from sigwire.jobs.journal import BlockState, RowKey, digest_of, key_of, read_block, remove_block, size_of, stop_block
from sigwire.jobs.submissions import Chunk, EndedChunk, Submissions

__all__ = ["Driver", "DriverStatus", "RecordSink", "chunk_size", "chunks_of"]

DriverStatus: TypeAlias = Literal["complete", "budget", "refused", "stalled", "engine-lost", "stopped"]
_IDLE_ROUNDS = 3  # losses without a started row, in rounds of all chunks that are out
_HINT = "See the output of a worker: an import, its memory, or a script of a spawned pool without if __name__ == '__main__'."
_MOST_ROWS, _LEAST_CHUNKS = 250, 4
_MOST_FINISHED = 8  # blocks whose records are not yet synced


class RecordSink(Protocol):
    """Where the driver puts records."""

    def keep(self, record: JsonObject) -> Steps[None]:
        """Write a record."""
        ...

    def give_up(self, row: JsonObject) -> Steps[None]:
        """Write the record of a row whose worker was lost with nothing else under way."""
        ...

    def sync(self) -> None:
        """Return when the records are on disk."""
        ...

    def is_over(self) -> bool:
        """Return True if no more records are wanted."""
        ...


def chunks_of(rows: Iterable[tuple[str, JsonObject]], size: int) -> Iterator[Chunk]:
    """Yield chunks of rows of one job, which are drawn as chunks are asked for. ``rows``: the text of its job, and the row.

    >>> [len(chunk.rows) for chunk in chunks_of([("job", {"id": "1"}), ("other", {"id": "2"}), ("job", {"id": "3"})], 2)]
    [2, 1]
    """
    parts: dict[str, list[JsonObject]] = {}
    for job_text, row in rows:
        part = parts.setdefault(job_text, [])
        part.append(row)
        if len(part) == size:
            yield Chunk(job_text, _new_block(), tuple(parts.pop(job_text)))
    for job_text, part in parts.items():
        yield Chunk(job_text, _new_block(), tuple(part))


def chunk_size(rows: int, in_flight: int, concurrency: int) -> int:
    """Return the size of chunks for a known number of rows: several chunks, with enough rows for each process.

    >>> chunk_size(200, in_flight=8, concurrency=8), chunk_size(200, in_flight=64, concurrency=64), chunk_size(3, 8, 8)
    (25, 50, 1)
    """
    return max(1, min(_MOST_ROWS, max(ceil(rows / in_flight), min(concurrency, ceil(rows / _LEAST_CHUNKS)))))


def _new_block() -> str:
    return token_hex(8)


class Driver:
    """One run of chunks. ``journal``: the folder of its blocks.

    ``lost``: chunks whose worker was lost. ``duplicates``: records of rows that had one; the first counts. ``detail``: why the
    run ended, if it is not complete.
    """

    def __init__(self, chunks: Iterable[Chunk], submissions: Submissions, sink: RecordSink, journal: Path) -> None:
        self._fresh, self._submissions, self._sink, self._journal = iter(chunks), submissions, sink, journal
        self._waiting = (deque[Chunk](), deque[Chunk](), deque[Chunk]())  # by level
        self._done = set[int]()  # digests: a run may have many rows
        self._open: dict[str, int] = {}  # rows without a record, by block
        self._finished: list[str] = []
        self._idle, self._has_worked, self._written = 0, False, 0
        self.status: DriverStatus = "complete"
        self.detail = ""
        self.lost = self.duplicates = 0

    def steps(self) -> Steps[None]:
        """Run all chunks. Raises ``JobRefused`` if a worker refuses the job."""
        submissions = self._submissions
        try:
            self._fill()
            while submissions.out:
                ended = yield FunctionEffect(submissions.next_ended, partial(to_thread, submissions.next_ended))
                if ended is None:
                    if self._is_written():
                        continue
                    self._end("stalled", "No row ended in time. See whether the engine has workers, or raise stall=.")
                    break
                yield from self._settle(ended)
                if self.status in ("engine-lost", "stopped"):
                    break
                self._fill()
            if self.status != "stopped":  # then no more records are wanted
                yield from self._salvage()
        finally:
            submissions.cancel_waiting()
            self._close_blocks()
        if self.status == "refused":
            raise JobRefused(self.detail)

    def let_end(self, seconds: float, note: Callable[[int], object]) -> Steps[None]:
        """After an interrupt of ``steps``: let no row start, wait for those in flight, and keep what is finished.

        ``note`` gets the number of rows that started and have no record. Blocks for ``seconds`` at most; the rest is in the
        journals, as after a killed driver.
        """
        submissions, ends = self._submissions, time.monotonic() + seconds
        try:
            for block in self._open:
                stop_block(self._journal / block)
            states = [read_block(self._journal / block) for block in self._open]
            if rows := sum(len(state.started - state.done.keys()) for state in states):
                note(rows)
            while submissions.out:
                left = max(0.0, ends - time.monotonic())
                ended = submissions.next_ended(left)
                if ended is None and not left:  # those that ended in time are kept, however late they are read
                    break
                if ended is not None and ended.answer is not None:
                    yield from self._keep(ended.chunk, cast("list[JsonObject]", ended.answer["records"]))
        finally:
            yield from self._salvage()
            self._close_blocks()

    def _is_written(self) -> bool:
        """Return True if a worker wrote to the journal since the last call: a slow rate may hold a chunk for long."""
        before, self._written = self._written, size_of(self._journal)
        return self._written != before

    # --- sending

    def _fill(self) -> None:
        submissions = self._submissions
        while self.status == "complete" and submissions.has_room() and (chunk := self._next()) is not None:
            self._open.setdefault(chunk.block, len(chunk.rows))
            if not submissions.submit(chunk):
                self._waiting[chunk.level].appendleft(chunk)
                if not submissions.can_go_on():
                    self._end(
                        "engine-lost", "The executor is broken. Pass executor=lambda: ..., which makes a new one."
                    )

    def _next(self) -> Chunk | None:
        sound, suspects, alone = self._waiting
        if sound:
            return sound.popleft()
        if (chunk := next(self._fresh, None)) is not None:
            return chunk
        levels = {chunk.level for chunk in self._submissions.out.values()}
        if suspects and 0 not in levels:
            return suspects.popleft()
        return alone.popleft() if alone and not levels else None

    # --- what comes back

    def _settle(self, ended: EndedChunk) -> Steps[None]:
        chunk, answer = ended.chunk, ended.answer
        if ended.is_cancelled:
            self._end("engine-lost", "The engine cancelled the chunks, as when its scheduler ends.")
        elif answer is None:
            yield from self._lose(ended)
        else:
            yield from self._keep(chunk, cast("list[JsonObject]", answer["records"]))
            if lost := {(str(name), repeat) for name, repeat in cast("list[RowKey]", answer.get("lost", ()))}:
                self.lost, self._idle = self.lost + 1, 0
                yield from self._send_again(chunk, lost)
            self._check_answer(chunk, lost, cast("JsonObject | None", answer.get("refused")))
        if self._sink.is_over():
            self._end("stopped", "")
        if len(self._finished) > _MOST_FINISHED:
            self._close_blocks()

    def _check_answer(self, chunk: Chunk, lost: Set[RowKey], refused: JsonObject | None) -> None:
        missing = () if lost else self._missing(chunk)
        if refused is not None:
            self._end("budget" if refused["kind"] == "budget" else "refused", str(refused["message"]))
        elif missing:
            self._count_idle("a worker returned a chunk without its records")
            self._waiting[chunk.level].append(replace(chunk, rows=missing))

    def _lose(self, ended: EndedChunk) -> Steps[None]:
        chunk, state = ended.chunk, read_block(self._journal / ended.chunk.block)
        self.lost += 1
        yield from self._keep(chunk, _finished(chunk, state))
        if state.started:
            self._idle = 0
        else:
            self._count_idle(ended.error)
        began = {key_of(row) for row in chunk.rows} if self._is_blind() else state.started
        yield from self._send_again(chunk, began)

    def _send_again(self, chunk: Chunk, began: Set[RowKey]) -> Steps[None]:
        """Send the rows of a lost worker that have no record: those that ``began`` are suspects."""
        missing = self._missing(chunk)
        if sound := tuple(row for row in missing if key_of(row) not in began):
            self._waiting[chunk.level].append(replace(chunk, rows=sound))
        for row in missing:
            if key_of(row) in began:
                yield from self._suspect(chunk, row)

    def _count_idle(self, error: str) -> None:
        """Count a chunk that brought nothing, and end the run after too many of them in a row."""
        self._idle += 1
        if self._idle > _IDLE_ROUNDS * self._submissions.in_flight:
            self._end("engine-lost", f"Workers end before their first row. {_HINT} The last: {error}")

    def _is_blind(self) -> bool:
        """Return True if workers write their journals to a folder that is not this one."""
        return self._has_worked and not (self._journal.is_dir() and any(self._journal.iterdir()))

    def _suspect(self, chunk: Chunk, row: JsonObject) -> Steps[None]:
        """Send a row that was under way again, alone; after the last round give it up."""
        if chunk.level == 2:
            yield from self._sink.give_up(row)
        else:
            # A block of its own: its journal has the starts of this level only.
            self._waiting[chunk.level + 1].append(Chunk(chunk.job, _new_block(), (row,), chunk.level + 1))
        self._count(chunk.block, 1)

    def _keep(self, chunk: Chunk, records: Sequence[JsonObject]) -> Steps[None]:
        for record in records:
            if (digest := digest_of(record)) in self._done:
                self.duplicates += 1
                continue
            self._done.add(digest)
            self._idle, self._has_worked = 0, True
            yield from self._sink.keep(record)
            self._count(chunk.block, 1)

    def _missing(self, chunk: Chunk) -> tuple[JsonObject, ...]:
        return tuple(row for row in chunk.rows if digest_of(row) not in self._done)

    # --- blocks

    def _count(self, block: str, rows: int) -> None:
        self._open[block] -= rows
        if self._open[block] == 0:
            del self._open[block]
            self._finished.append(block)

    def _salvage(self) -> Steps[None]:
        """Keep what the journals of chunks that did not come back have."""
        for block in [*self._open]:
            for record in read_block(self._journal / block).done.values():
                if (digest := digest_of(record)) not in self._done:
                    self._done.add(digest)
                    yield from self._sink.keep(record)

    def _close_blocks(self) -> None:
        """Remove the journals of finished blocks; their records are on disk then."""
        self._sink.sync()
        for block in self._finished:
            remove_block(self._journal / block)
        self._finished.clear()
        if not self._open:
            with suppress(OSError):  # there is none, or a late worker writes to it
                self._journal.rmdir()

    def _end(self, status: DriverStatus, detail: str) -> None:
        if self.status == "complete":
            self.status, self.detail = status, detail
            if status != "budget":  # each chunk returns its paid rows, then ends; engines cancel also chunks that run
                self._submissions.cancel_waiting()


def _finished(chunk: Chunk, state: BlockState) -> list[JsonObject]:
    return [state.done[key] for key in map(key_of, chunk.rows) if key in state.done]
