"""The decisions of batches: which lines wait, when a batch is sent, what its status means, and what is in doubt.

One thread calls ``step`` again and again; between two steps it waits for ``next_time``. The clock is an argument.

    asked ─▶ parked ─▶ intent committed ─▶ created ─▶ polled ─▶ results stored ─▶ callers get their replies
               ▲                │ no reply: listed for a while, and found            │ expired, or lost once
               └────────────────┴─ or parked again, and cancelled if it appears ─────┘

What may have been paid is sent a second time at most. Before that the provider has time to show it: the list, the results and
each line of them are read again for ``settle`` seconds. A second loss, and results that are gone, are errors that the store
keeps.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sigwire.core.json import dumps
from sigwire.errors import ConfigurationError, LMError, LMTimeoutError, LMUnexpectedError
from sigwire.lm.batch.options import BatchOptions
from sigwire.lm.batch.outcome import is_final, outcome_of
from sigwire.lm.batch.sending import (
    PAID,
    REPEATED,
    AskedLine,
    BatchGroup,
    BatchNotSent,
    BatchRefused,
    BatchUnreadable,
    LineFuture,
    ParkedLine,
    perform,
)
from sigwire.lm.batch.store import LOST, BatchStore, StoredBatch
from sigwire.lm.codecs.batches.shared import BatchListing, BatchStatus, LineResult, blamed_lines
from sigwire.lm.http.errors import TooLongError
from sigwire.lm.http.messages import HttpReply
from sigwire.observe.tracing.logs import log_milestone

__all__ = ["BatchDriver", "BatchInDoubt"]

_MAY_PASS = frozenset({408, 409, 425, 429})
_NOT_FOUND = frozenset({404, 410})
_ENDED_ALREADY = frozenset({400, 404, 409, 410})  # answers to a cancellation
_NAMES_LINES = frozenset({400, 422})  # a refusal of the lines, not of the key or the size
_A_LIMIT = re.compile(r"too (?:large|many|big)|limit|quota|exceed|enqueued", re.IGNORECASE)
_A_QUEUE = re.compile(r"enqueued|queue|token.limit|quota", re.IGNORECASE)
_SKEW_SECONDS = 120.0  # between the clock of the provider and that of this machine
_WINDOW_SECONDS = 86_400.0  # in which each of the providers ends a batch
_MOST_BATCHES = 3  # in a run, that a line is in and that do not run it
_MOST_DOUBTS = 2  # in a run, creations of a line that have no reply and are not listed
_MOST_REFUSALS = 4  # creations in a row that are refused without a reason: the fault is that of all lines
_MOST_FAILURES = 5  # in a row of one batch: replies that cannot be read, requests that cannot be made


class BatchInDoubt(ConfigurationError):
    """A batch may have been created, and the provider lists several that it could be."""


@dataclass(slots=True)
class _OpenBatch:
    """A batch without results. ``asked``: a line of it that a caller waits for; without one it is not polled.

    ``since``: the time from which the provider does not show it, or some of its results. ``others``: names of batches that
    were taken for it. ``failures``: the last requests in a row without a readable reply.
    """

    row: StoredBatch
    asked: AskedLine | None
    due: float
    wait: float
    since: float | None = None
    others: set[str] = field(default_factory=set[str])
    failures: int = 0

    @property
    def is_orphan(self) -> bool:
        return self.row.state == "orphan"


class BatchDriver:
    """Lines and batches of one store. For one thread."""

    def __init__(self, store: BatchStore, options: BatchOptions, now: float) -> None:
        self._store, self._options = store, options
        self._sizes: dict[BatchGroup, int] = {}  # below that of the options, after a refusal
        self._refusals: dict[tuple[str, ...], int] = {}  # by account: in a row, without a reason
        self._lines: dict[str, ParkedLine] = {}
        self._parked: dict[BatchGroup, list[str]] = {}
        self._last_asked: dict[BatchGroup, float] = {}
        self._held: dict[tuple[str, ...], float] = {}  # by account: no creation before this time
        first, doubts = options.poll[0], store.doubts()
        self._open = {
            row.number: _OpenBatch(row, None, now, first, doubts.get(row.number))
            for row in store.batches()
            if row.state in ("intent", "running", "orphan")
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
                if stored.status == LOST:
                    line.fail(_lost((stored.answer or b"").decode()))
                else:
                    line.deliver(HttpReply(stored.status, REPEATED, stored.answer or b""))
                return
            self._lines[id] = line
            if stored is None:  # a line without an answer is in an open batch
                self._park(line, now)
            else:
                line.batch = stored.batch
                self._open[stored.batch].asked = asked
            for batch in self._of_account(asked.group):
                batch.asked = batch.asked or (asked if batch.is_orphan else None)
        line.futures.append(future)

    def keep(self, id: str, reply: HttpReply) -> None:
        """Store the reply of a line that was sent alone."""
        if is_final(reply.status):
            self._store.keep(id, reply.status, reply.body)

    def poll_all(
        self, account: AskedLine, now: float, *, cancel: bool = False, again: bool = False
    ) -> list[StoredBatch]:
        """Poll, or first cancel, the batches of an account, those in doubt, too; return all of the store.

        ``again``: poll those that are lost again, and forget what stays lost. Each batch is polled whatever becomes of the
        others; then the first error is raised: ``BatchRefused``, ``LMError``, or that of a key function.
        """
        forgotten = self._reopen(account, now) if again else set[int]()
        errors: list[Exception] = []
        for batch in self._of_account(account.group):
            try:
                if batch.row.name is None:
                    self._settle(batch, account, now)
                if batch.row.name is not None and cancel:
                    self._cancel(batch.row.name, account)
                if batch.row.name is not None and batch.row.number in self._open:
                    self._update(batch, account, now)
            except BatchRefused as error:
                if batch.row.number in forgotten and error.reply.status in _NOT_FOUND:
                    self._end(batch, "failed")
                    self._send_again(batch.row.number, now)
                else:
                    errors.append(error)
            except (LMError, BatchNotSent) as error:
                errors.append(error.reason if isinstance(error, BatchNotSent) else error)
        if errors:
            raise errors[0]
        return self._store.batches()

    def _reopen(self, account: AskedLine, now: float) -> set[int]:
        rows = self._store.reopen_lost(*account.group[:2])
        found = {row.number: row for row in rows if row.number not in self._open}
        self._open.update({number: _OpenBatch(row, None, now, 0.0) for number, row in found.items()})
        return set(found)

    def _cancel(self, name: str, asked: AskedLine) -> None:
        try:
            perform(asked.wire.cancel(name), asked)
        except BatchRefused as error:
            if error.reply.status not in _ENDED_ALREADY:
                raise

    def _of_account(self, group: BatchGroup) -> list[_OpenBatch]:
        return [batch for batch in self._open.values() if batch.row[1:3] == group[:2]]

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
                self._poll(batch, batch.asked, now)
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
        if all_wait or len(ids) >= min(self._size(group), first.asked.wire.LIMITS.lines):
            return held
        return max(held, min(self._last_asked[group] + options.quiet, first.since + options.max_wait))

    def _size(self, group: BatchGroup) -> int:
        return self._sizes.get(group, self._options.size)

    def _is_in_doubt(self, group: BatchGroup) -> bool:
        """Return True if a batch of the same account may have been created: creates are serial."""
        waited = [batch.row for batch in self._of_account(group) if batch.asked is not None]
        return any(row.state == "intent" for row in waited)

    # --- one batch

    def _create(self, group: BatchGroup, now: float) -> None:
        ids = sorted(self._next_lines(group))  # as the store returns them: a refusal names a line by its place
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
            if error.reply.status < 500 and error.reply.status != 408:  # a gateway's time-out is no refusal
                named = blamed_lines(error.reply.body.decode("utf-8", "replace"))
                self._refuse(batch, error.reply, dict.fromkeys(named, error.reply), now, isolates=True)
        except LMError as error:
            if _was_not_sent(error):
                self._end(batch, "failed")
                for id in ids:
                    self._lines.pop(id).fail(error)
        except BatchNotSent as error:
            self._end(batch, "failed")
            for line in self._take_lines(row.number):
                line.fail(error.reason)
        else:
            self._refusals.pop(group[:2], None)
            self._set_created(batch, name)

    def _next_lines(self, group: BatchGroup) -> Sequence[str]:
        """Return the first parked lines that fit into one batch."""
        ids = self._parked[group]
        limits, room = self._lines[ids[0]].asked.wire.LIMITS, 0
        for count, id in enumerate(ids):
            room += len(self._lines[id].asked.line.body) + 300
            if count and (count >= min(self._size(group), limits.lines) or room > limits.bytes):
                return ids[:count]
        return ids

    def _set_created(self, batch: _OpenBatch, name: str) -> None:
        self._store.set_created(batch.row.number, name)
        self._end_doubt(batch)
        batch.row = batch.row._replace(name=name, state="running")
        _log(batch.row, f"is created with {batch.row.lines} lines")

    def _poll(self, batch: _OpenBatch, asked: AskedLine, now: float) -> None:
        """Look for a batch in doubt, or update one. What may pass is tried later, any other error is that of its callers."""
        try:
            (self._settle if batch.row.name is None else self._update)(batch, asked, now)
            batch.failures = 0
        except BatchRefused as error:
            status = error.reply.status
            if status >= 500 or status in _MAY_PASS or (batch.row.name is not None and status in _NOT_FOUND):
                self._put_off(batch, now)
                return
            batch.asked = None  # the batch stays in the store, and the next ask polls it again
            for line in self._take_lines(batch.row.number):
                line.deliver(error.reply)
        except (LMError, BatchNotSent) as error:
            may_pass = isinstance(error, BatchNotSent) or error.retryable
            batch.failures += isinstance(error, (BatchUnreadable, BatchNotSent))
            if may_pass and batch.failures < _MOST_FAILURES:
                self._put_off(batch, now)
                return
            batch.asked, batch.failures = None, 0
            for line in self._take_lines(batch.row.number):
                line.fail(error.reason if isinstance(error, BatchNotSent) else error)

    def _has_settled(self, batch: _OpenBatch, now: float) -> bool:
        """Return True if the provider had time enough to show what it does not show."""
        if batch.since is None:
            batch.since = self._store.set_in_doubt(batch.row.number, now)
        return now - batch.since >= self._options.settling

    def _end_doubt(self, batch: _OpenBatch) -> None:
        if batch.since is not None:
            self._store.end_doubt(batch.row.number)
            batch.since = None

    def _settle(self, batch: _OpenBatch, asked: AskedLine, now: float) -> None:
        """Find a batch that may have been created among the listed ones. Raises ``BatchRefused`` and ``LMError``.

        If it is not there after some time, its lines are parked again. It is looked for as long as it could run, because the
        list may be late: it is cancelled then.
        """
        row = batch.row
        if batch.is_orphan and now >= row.created + _WINDOW_SECONDS:
            self._end(batch, "failed")
            return
        listed = perform(asked.wire.listed(row.created - _SKEW_SECONDS), asked)
        found = self._candidates(batch, listed, asked.wire.LIMITS.has_marks)
        if batch.is_orphan:
            self._end_orphan(batch, found, asked, now)
        elif len(found) == 1:  # a wrong one costs time and no money: it has no result for these lines
            self._set_created(batch, found[0])
        elif found and self._options.on_doubt == "ask":
            error = BatchInDoubt(
                f"A batch of {row.lines} lines may have been created twice (starting {self._options.store}): "
                f'{", ".join(found)} could be it. Cancel those that are not yours, or pass on_doubt="resend".'
            )
            for line in self._take_lines(row.number):
                line.fail(error)
            batch.asked = None
        elif found:  # on_doubt="resend"
            self._end(batch, "failed")
            self._send_again(row.number, now, in_doubt=True)
        elif self._has_settled(batch, now):
            self._store.finish(row.number, "orphan")
            batch.row = row._replace(state="orphan")
            _log(row, f"of {row.lines} lines had no reply to its creation and is not listed: its lines are sent again")
            self._send_again(row.number, now, in_doubt=True)
            self._put_off(batch, now)
        else:
            self._put_off(batch, now)

    def _end_orphan(self, batch: _OpenBatch, found: Sequence[str], asked: AskedLine, now: float) -> None:
        """Cancel a batch that appeared after its lines were sent again, if it is sure to be this one."""
        row = batch.row
        if not found:
            self._put_off(batch, now)
        elif asked.wire.LIMITS.has_marks:
            self._cancel(found[0], asked)
            self._end(batch, "ended", name=found[0])
            _log(row, f"appeared as {found[0]} after its lines were sent again, and is cancelled")
        else:
            self._end(batch, "failed")
            _log(
                row,
                f"had no reply to its creation, its lines were sent again, and {', '.join(found)} could be it: cancel it if no "
                "other program created it, its lines are paid twice",
            )

    def _candidates(self, batch: _OpenBatch, listed: Sequence[BatchListing], has_marks: bool) -> list[str]:
        """Return the listed batches that a batch in doubt could be: by its mark, or by time and size."""
        row = batch.row
        if has_marks:
            return [each.name for each in listed if each.mark == row.mark][:1]
        known = batch.others | {each.name for each in self._store.batches() if each.name is not None}
        new = [each for each in listed if each.total == row.lines and each.name not in known]
        return [each.name for each in new if (each.created or 0.0) >= row.created - _SKEW_SECONDS]

    def _update(self, batch: _OpenBatch, asked: AskedLine, now: float) -> None:
        """Ask for the state of a batch, and for its results if it ended. Raises ``BatchRefused`` and ``LMError``."""
        name = batch.row.name or ""
        try:
            status = perform(asked.wire.status(name), asked)
            results = perform(asked.wire.results(name, status), asked) if status.state == "ended" else []
        except BatchRefused as error:
            if error.reply.status not in _NOT_FOUND or not self._has_settled(batch, now):
                raise
            self._lose(batch, error.reply)
            return
        if status.state == "running":
            self._end_doubt(batch)
            self._put_off(batch, now)
        elif status.state == "failed":
            faults = {place: _refusal(text) for place, text in status.faults.items()}
            self._refuse(batch, _refusal(f"The batch failed: {status.detail}"), faults, now)
        elif self._is_another(batch, asked, results):
            batch.others.add(name)
            self._store.unname(batch.row.number)
            batch.row = batch.row._replace(name=None, state="intent")
            self._put_off(batch, now)
        else:
            self._finish(batch, status, results, now)

    def _is_another(self, batch: _OpenBatch, asked: AskedLine, results: Sequence[LineResult]) -> bool:
        """Return True if a batch that was found by time and size has results, and none of these lines."""
        if asked.wire.LIMITS.has_marks or batch.since is not None:
            return False
        return bool(results) and not self._store.lines_of(batch.row.number).keys() & {each.id for each in results}

    def _put_off(self, batch: _OpenBatch, now: float) -> None:
        batch.due = now + batch.wait * random.uniform(0.8, 1.2)
        batch.wait = min(batch.wait * 1.5, max(self._options.poll))

    def _finish(self, batch: _OpenBatch, status: BatchStatus, results: Sequence[LineResult], now: float) -> None:
        """Store and deliver the results of an ended batch. What is not among them is read again, then sent a second time."""
        row = batch.row
        outcome = outcome_of(
            [id for id, done in self._store.lines_of(row.number).items() if done is None], status, results
        )
        is_open = bool(outcome.lost) and not self._has_settled(batch, now)
        lost = {} if is_open else outcome.lost
        errors = {id: self._lost_text(row, lost[id]) for id in self._store.missed(lost)}
        if is_open:
            passing = [id for id, code, _ in outcome.answers if not is_final(code)]
            self._store.keep_results(row.number, outcome.final, [*outcome.unsent, *passing])
            self._put_off(batch, now)
        else:
            kept = [(id, LOST, text.encode("utf-8", "replace")) for id, text in errors.items()]
            self._end(batch, "ended", [*outcome.final, *kept], lost.keys() - errors.keys())
        _log(row, f"ended with {len(outcome.answers)} results for {row.lines} lines")
        for id, code, body in outcome.answers:
            for line in self._take_lines(row.number, {id}):
                line.deliver(HttpReply(code, PAID, body))
        for id, text in errors.items():
            for line in self._take_lines(row.number, {id}):
                line.fail(_lost(text))
        unanswered = {*outcome.unsent, *lost}
        if self._options.rest == "now":
            for line in self._take_lines(row.number, unanswered):
                line.deliver(None)
        self._send_again(row.number, now, unanswered)

    def _lost_text(self, row: StoredBatch, reason: str) -> str:
        return (
            f"Two batches gave no answer to a request that was perhaps paid twice: {reason} (collecting batch {row.name} for "
            f"{self._options.store}). To pay for it again, call batches(again=True) of the model, or run `sigwire batch "
            "--again`, then the program."
        )

    def _lose(self, batch: _OpenBatch, reply: HttpReply) -> None:
        """End a batch whose results the provider has no more: an error of its lines, which the store keeps."""
        row = batch.row
        text = (
            f"The provider has no results of batch {row.name} of {row.lines} lines: status {reply.status} (collecting it for "
            f"{self._options.store}). They may have expired, or belong to another key. To ask for them again, and to pay again "
            "for what stays lost, call batches(again=True) of the model, or run `sigwire batch --again`, then the program."
        )
        waiting = [id for id, done in self._store.lines_of(row.number).items() if done is None]
        self._end(batch, "lost", [(id, LOST, text.encode()) for id in waiting])
        _log(row, f"has no results any more: status {reply.status}")
        for line in self._take_lines(row.number):
            line.fail(_lost(text))

    def _refuse(
        self,
        batch: _OpenBatch,
        reply: HttpReply,
        faults: Mapping[int, HttpReply],
        now: float,
        *,
        isolates: bool = False,
    ) -> None:
        """End a batch that the provider refused: its lines get the reply, or those without a fault go into other batches.

        ``faults``: the replies of lines that the provider names, by their places: the other lines are sent again. A limit of
        what is under way passes when another batch ends; any other one asks for batches of half the size. ``isolates``: a
        refusal without a reason is taken for that of one line, and half the size isolates it, until too many are refused.
        """
        text, row = reply.body.decode("utf-8", "replace"), batch.row
        account, names_lines = row[1:3], reply.status in _NAMES_LINES
        ids = list(self._store.lines_of(row.number))
        named = {ids[place]: fault for place, fault in faults.items() if place < len(ids)}
        groups = {self._lines[id].asked.group for id in ids if id in self._lines}
        self._end(batch, "failed")
        _log(row, f"of {row.lines} lines is refused with status {reply.status}")
        if named and names_lines:
            for id, fault in named.items():
                for line in self._take_lines(row.number, {id}):
                    line.deliver(fault)
            self._send_again(row.number, now)
            return
        is_limit = reply.status == 413 or _A_LIMIT.search(text) is not None
        if names_lines and not is_limit:
            self._refusals[account] = self._refusals.get(account, 0) + 1
            isolates = isolates and self._refusals[account] < _MOST_REFUSALS
        if row.lines > 1 and (is_limit or (isolates and names_lines)):
            others = [each for each in self._open.values() if each.row[1:3] == account and not each.is_orphan]
            if others and is_limit and (reply.status == 429 or _A_QUEUE.search(text)):
                self._held[account] = now + self._options.poll[0]
                for each in others:  # those of earlier runs end, too, if they are polled
                    each.asked = each.asked or batch.asked
            else:
                self._sizes.update({group: max(1, row.lines // 2) for group in groups})
            self._park_again(row.number, now)
            return
        for group in groups:  # it was the fault of these lines, not of their number
            self._sizes.pop(group, None)
        for line in self._take_lines(batch.row.number):
            line.deliver(reply)

    def _end(
        self,
        batch: _OpenBatch,
        state: str,
        answers: Sequence[tuple[str, int, bytes]] = (),
        missed: Collection[str] = (),
        name: str | None = None,
    ) -> None:
        self._store.finish(batch.row.number, state, answers, missed, name)
        del self._open[batch.row.number]

    def _take_lines(self, number: int, ids: Collection[str] | None = None) -> list[ParkedLine]:
        """Remove the lines of a batch, or those of them that are ``ids``, and return them."""
        named = list(self._lines) if ids is None else ids
        found = [id for id in named if id in self._lines and self._lines[id].batch == number]
        return [self._lines.pop(id) for id in found]

    def _send_again(
        self, number: int, now: float, ids: Collection[str] | None = None, *, in_doubt: bool = False
    ) -> None:
        """Park lines of a batch again. A line that no batch runs, or that stays in doubt, fails: the next run tries again."""
        for line in self._take_lines(number, ids):
            line.sent, line.doubts = line.sent + 1, line.doubts + in_doubt
            if line.sent < _MOST_BATCHES and line.doubts < _MOST_DOUBTS:
                self._lines[line.asked.line.id] = line
                self._park(line, now)
                continue
            text = (
                f"{line.sent} batches brought no answer to a request: each expired, was cancelled or refused, or had no reply "
                f"(sending it for {self._options.store}). Run the program again to send it again."
            )
            line.fail(_lost(text))

    def _park_again(self, number: int, now: float) -> None:
        for line in self._lines.values():
            if line.batch == number:
                self._park(line, now)


def _log(row: StoredBatch, text: str) -> None:
    log_milestone(
        "batch", f"{row.provider}: batch {row.name or row.number} {text}", provider=row.provider, lines=row.lines
    )


def _refusal(text: str) -> HttpReply:
    return HttpReply(
        400, {}, dumps({"error": {"message": text, "type": "invalid_request_error"}}).encode("utf-8", "replace")
    )


def _lost(text: str) -> LMUnexpectedError:
    return LMUnexpectedError(text)


def _was_not_sent(error: LMError) -> bool:
    """Return True if no byte of the request reached the provider: no key, no connection."""
    if isinstance(error.__cause__, TooLongError):
        return False
    return not error.retryable or isinstance(error.__cause__, ConnectionRefusedError)
