"""The decisions of batches: which lines wait, when a batch is sent, what its status means, and what is in doubt.

One thread calls ``step`` again and again; between two steps it waits for ``next_time``. The clock is an argument.

    asked ─▶ parked ─▶ intent committed ─▶ created ─▶ polled ─▶ results stored ─▶ callers get their replies
               ▲                │ no reply: listed, and found or parked again        │ expired
               └────────────────┴────────────────────────────────────────────────────┘
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sigwire.core.json import dumps
from sigwire.errors import ConfigurationError, LMError, LMTimeoutError
from sigwire.lm.batch.options import BatchOptions
from sigwire.lm.batch.sending import (
    PAID,
    REPEATED,
    AskedLine,
    BatchGroup,
    BatchRefused,
    LineFuture,
    ParkedLine,
    perform,
)
from sigwire.lm.batch.store import BatchStore, StoredBatch
from sigwire.lm.codecs.batches.shared import BatchListing, BatchStatus, LineResult
from sigwire.lm.http.messages import HttpReply
from sigwire.observe.tracing.logs import log_milestone

__all__ = ["BatchDriver", "BatchInDoubt"]

_FINAL = frozenset({400, 404, 413, 422})  # statuses of a line that a repetition would have again
_MAY_PASS = frozenset({408, 409, 425, 429})
_A_LIMIT = re.compile(r"too (?:large|many|big)|limit|quota|exceed|enqueued", re.IGNORECASE)
_A_QUEUE = re.compile(r"enqueued|queue|token.limit|quota", re.IGNORECASE)
_SKEW_SECONDS = 120.0  # between the clock of the provider and that of this machine


class BatchInDoubt(ConfigurationError):
    """A batch may have been created, and the provider lists several that it could be."""


@dataclass(slots=True)
class _OpenBatch:
    """A batch without results. ``asked``: a line of it that a caller waits for; without one it is not polled."""

    row: StoredBatch
    asked: AskedLine | None
    due: float
    wait: float


class BatchDriver:
    """Lines and batches of one store. For one thread."""

    def __init__(self, store: BatchStore, options: BatchOptions, now: float) -> None:
        self._store, self._options = store, options
        self._size: float = options.size
        self._lines: dict[str, ParkedLine] = {}
        self._parked: dict[BatchGroup, list[str]] = {}
        self._last_asked: dict[BatchGroup, float] = {}
        self._held: dict[tuple[str, ...], float] = {}  # by account: no creation before this time
        first = options.poll[0]
        self._open = {
            row.number: _OpenBatch(row, None, now, first)
            for row in store.batches()
            if row.state in ("intent", "running")
        }

    # --- what callers wait for

    @property
    def awaited(self) -> int:
        """The number of lines that callers wait for."""
        return len(self._lines)

    def ask(self, asked: AskedLine, future: LineFuture, now: float) -> None:
        """Answer from the store, wait for the batch that has the line, or park it."""
        id = asked.line.id
        line = self._lines.get(id)
        if line is None:
            stored = self._store.find(id)
            line = ParkedLine(asked, now)
            if stored is not None and stored.status is not None:
                line.futures.append(future)
                line.deliver(HttpReply(stored.status, REPEATED, stored.answer or b""))
                return
            self._lines[id] = line
            if stored is None:  # a line without an answer is in an open batch
                self._park(line, now)
            else:
                line.batch = stored.batch
                self._open[stored.batch].asked = asked
        line.futures.append(future)

    def keep(self, id: str, reply: HttpReply) -> None:
        """Store the reply of a line that was sent alone."""
        if _is_final(reply.status):
            self._store.keep(id, reply.status, reply.body)

    def poll_all(self, account: AskedLine, now: float, *, cancel: bool = False) -> list[StoredBatch]:
        """Poll, or first cancel, the batches of an account that run; return all of the store. Raises as ``_update``."""
        for batch in list(self._open.values()):
            if (batch.row.provider, batch.row.base) == account.group[:2] and batch.row.name is not None:
                if cancel:
                    perform(account.wire.cancel(batch.row.name), account)
                self._update(batch, account, now)
        return self._store.batches()

    def fail_all(self, error: Exception) -> None:
        """Raise an error in all callers."""
        for line in self._lines.values():
            line.fail(error)
        self._lines.clear()

    def _park(self, line: ParkedLine, now: float) -> None:
        group = line.asked.group
        line.batch = None
        self._parked.setdefault(group, []).append(line.asked.line.id)
        self._last_asked[group] = now

    # --- one step

    def step(self, now: float, all_wait: bool) -> None:
        """Do what is due. ``all_wait``: no program can go on before an answer arrives."""
        self._forget(now)
        for batch in list(self._open.values()):
            if batch.asked is not None and batch.due <= now:
                (self._settle if batch.row.name is None else self._poll)(batch, batch.asked, now)
        for group in list(self._parked):
            if now >= self._flush_time(group, all_wait) and not self._is_in_doubt(group):
                self._create(group, now)

    def next_time(self, all_wait: bool) -> float:
        """Return when the next step is due; infinity if only an ask can change something."""
        polls = [batch.due for batch in self._open.values() if batch.asked is not None]
        flushes = [self._flush_time(group, all_wait) for group in self._parked if not self._is_in_doubt(group)]
        limit = self._options.deadline
        ends = [line.since + limit for line in self._lines.values()] if limit is not None else []
        return min((*polls, *flushes, *ends), default=math.inf)

    def _forget(self, now: float) -> None:
        """Drop the lines that no caller waits for, and fail those past their deadline."""
        limit = self._options.deadline
        for id, line in list(self._lines.items()):
            if limit is not None and now >= line.since + limit:
                error = LMTimeoutError(
                    f"No batch answered within {limit:g} seconds (deadline of the BatchLM). What was sent stays in "
                    f"{self._options.store}: run the program again to collect it."
                )
                error.retryable = False
                line.fail(error)
            if not line.is_awaited:
                del self._lines[id]
                if line.batch is None:
                    self._unpark(line.asked.group, {id})

    def _unpark(self, group: BatchGroup, ids: set[str]) -> None:
        self._parked[group] = rest = [id for id in self._parked[group] if id not in ids]
        if not rest:
            del self._parked[group]

    def _flush_time(self, group: BatchGroup, all_wait: bool) -> float:
        ids, options = self._parked[group], self._options
        first = self._lines[ids[0]]
        held = self._held.get(group[:2], -math.inf)
        if all_wait or len(ids) >= min(self._size, first.asked.wire.LIMITS.lines):
            return held
        return max(held, min(self._last_asked[group] + options.quiet, first.since + options.max_wait))

    def _is_in_doubt(self, group: BatchGroup) -> bool:
        """Return True if a batch of the same account may have been created: creates are serial."""
        rows = [batch.row for batch in self._open.values() if batch.asked is not None]
        return any(row.name is None and (row.provider, row.base) == group[:2] for row in rows)

    # --- one batch

    def _create(self, group: BatchGroup, now: float) -> None:
        ids = self._next_lines(group)
        self._unpark(group, set(ids))
        asked = self._lines[ids[0]].asked
        row = self._store.intend(group.provider, group.base, now, ids)
        for id in ids:
            self._lines[id].batch = row.number
        first = self._options.poll[0]
        batch = self._open[row.number] = _OpenBatch(row, asked, now + first, first)
        try:
            name = perform(asked.wire.create([self._lines[id].asked.line for id in ids], row.mark), asked)
        except BatchRefused as error:
            if error.reply.status < 500:
                self._refuse(batch, error.reply, now)
        except LMError as error:
            if _was_not_sent(error):
                self._end(batch, "failed")
                for id in ids:
                    self._lines.pop(id).fail(error)
        else:
            self._set_created(batch, name)

    def _next_lines(self, group: BatchGroup) -> Sequence[str]:
        """Return the first parked lines that fit into one batch."""
        ids = self._parked[group]
        limits, room = self._lines[ids[0]].asked.wire.LIMITS, 0
        for count, id in enumerate(ids):
            room += len(self._lines[id].asked.line.body) + 300
            if count and (count >= min(self._size, limits.lines) or room > limits.bytes):
                return ids[:count]
        return ids

    def _set_created(self, batch: _OpenBatch, name: str) -> None:
        self._store.set_created(batch.row.number, name)
        batch.row = batch.row._replace(name=name, state="running")
        _log(batch.row, f"is created with {batch.row.lines} lines")

    def _settle(self, batch: _OpenBatch, asked: AskedLine, now: float) -> None:
        """Find a batch that may have been created among the listed ones. It is not there: its lines are parked again."""
        try:
            listed = perform(asked.wire.listed(), asked)
        except (BatchRefused, LMError):
            self._put_off(batch, now)
            return
        found = self._candidates(batch.row, listed)
        if len(found) == 1:  # a wrong one costs time and no money: it has no result for these lines
            self._set_created(batch, found[0])
        elif not found or self._options.on_doubt == "resend":
            self._end(batch, "failed")
            self._park_again(batch.row.number, now)
        else:
            error = BatchInDoubt(
                f"A batch of {batch.row.lines} lines may have been created twice (starting {self._options.store}): "
                f'{", ".join(found)} could be it. Cancel those that are not yours, or pass on_doubt="resend".'
            )
            for line in self._take_lines(batch.row.number):
                line.fail(error)
            batch.asked = None

    def _candidates(self, row: StoredBatch, listed: Sequence[BatchListing]) -> list[str]:
        """Return the listed batches that a batch in doubt could be: by its mark, or by time and size."""
        marks = {each.mark: each.name for each in listed if each.mark is not None}
        return self._similar(row, listed) if not marks else [marks[row.mark]] if row.mark in marks else []

    def _similar(self, row: StoredBatch, listed: Sequence[BatchListing]) -> list[str]:
        known, earliest = {each.name for each in self._store.batches()}, row.created - _SKEW_SECONDS
        new = [each for each in listed if each.total == row.lines and (each.created or 0.0) >= earliest]
        return [each.name for each in new if each.name not in known]

    def _poll(self, batch: _OpenBatch, asked: AskedLine, now: float) -> None:
        try:
            self._update(batch, asked, now)
        except BatchRefused as error:
            if error.reply.status >= 500 or error.reply.status in _MAY_PASS:
                self._put_off(batch, now)
                return
            batch.asked = None  # the batch stays in the store, and the next ask polls it again
            for line in self._take_lines(batch.row.number):
                line.deliver(error.reply)
        except LMError:
            self._put_off(batch, now)

    def _update(self, batch: _OpenBatch, asked: AskedLine, now: float) -> None:
        """Ask for the state of a batch, and for its results if it ended. Raises ``BatchRefused`` and ``LMError``."""
        name = batch.row.name or ""
        status = perform(asked.wire.status(name), asked)
        results = perform(asked.wire.results(name, status), asked) if status.state == "ended" else []
        self._apply(batch, status, results, now)

    def _apply(self, batch: _OpenBatch, status: BatchStatus, results: Sequence[LineResult], now: float) -> None:
        if status.state == "running":
            self._put_off(batch, now)
        elif status.state == "failed":
            error = {"error": {"message": f"The batch failed: {status.detail}", "type": "invalid_request_error"}}
            self._refuse(batch, HttpReply(400, {}, dumps(error).encode()), now)
        else:
            self._finish(batch, results, now)

    def _put_off(self, batch: _OpenBatch, now: float) -> None:
        batch.due = now + batch.wait * random.uniform(0.8, 1.2)
        batch.wait = min(batch.wait * 1.5, max(self._options.poll))

    def _finish(self, batch: _OpenBatch, results: Sequence[LineResult], now: float) -> None:
        """Store the results of an ended batch, deliver them, and park what has none again."""
        done = [(each.id, each.status, dumps(each.body).encode()) for each in results if each.status is not None]
        self._end(batch, "ended", [each for each in done if _is_final(each[1])])
        _log(batch.row, f"ended with {len(done)} results for {batch.row.lines} lines")
        for id, status, body in done:
            if (line := self._lines.get(id)) is not None and line.batch == batch.row.number:
                del self._lines[id]
                line.deliver(HttpReply(status, PAID, body))
        if self._options.rest == "now":
            for line in self._take_lines(batch.row.number):
                line.deliver(None)
        self._park_again(batch.row.number, now)

    def _refuse(self, batch: _OpenBatch, reply: HttpReply, now: float) -> None:
        """End a batch that the provider refused: its lines get the reply, or if a limit was met other batches.

        A limit of what is under way passes when another batch ends; any other one asks for batches of half the size.
        """
        text, row = reply.body.decode("utf-8", "replace"), batch.row
        self._end(batch, "failed")
        _log(row, f"of {row.lines} lines is refused with status {reply.status}")
        if row.lines > 1 and (reply.status == 413 or _A_LIMIT.search(text)):
            others = [each.row[1:3] for each in self._open.values()]
            if row[1:3] in others and (reply.status == 429 or _A_QUEUE.search(text)):
                self._held[row[1:3]] = now + self._options.poll[0]
            else:
                self._size = max(1, row.lines // 2)
            self._park_again(row.number, now)
            return
        for line in self._take_lines(batch.row.number):
            line.deliver(reply)

    def _end(self, batch: _OpenBatch, state: str, answers: Sequence[tuple[str, int, bytes]] = ()) -> None:
        self._store.finish(batch.row.number, state, answers)
        del self._open[batch.row.number]

    def _take_lines(self, number: int) -> list[ParkedLine]:
        ids = [id for id, line in self._lines.items() if line.batch == number]
        return [self._lines.pop(id) for id in ids]

    def _park_again(self, number: int, now: float) -> None:
        for line in self._lines.values():
            if line.batch == number:
                self._park(line, now)


def _log(row: StoredBatch, text: str) -> None:
    log_milestone(
        "batch", f"{row.provider}: batch {row.name or row.number} {text}", provider=row.provider, lines=row.lines
    )


def _is_final(status: int) -> bool:
    return 200 <= status < 300 or status in _FINAL


def _was_not_sent(error: LMError) -> bool:
    """Return True if no byte of the request reached the provider: no key, no connection."""
    return not error.retryable or isinstance(error.__cause__, ConnectionRefusedError)
