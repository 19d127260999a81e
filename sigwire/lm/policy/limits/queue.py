"""The queue of a limiter: calls of a user first, then the calls of batches, which take turns.

Not locked: the limiter's lock is held around each method. A call that leaves is a flag; ``pop`` skips it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from sigwire.lm.policy.limits.runs import Run

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["LONGEST_TURN", "CallQueue", "Ticket"]

LONGEST_TURN = 30.0
"""Seconds after which a call of a batch competes with calls of a user: they are served alternately."""


class Ticket:
    """The way of one exchange through a limiter: queued, then holder of a slot.

    ``thread`` and ``task`` are those of the caller; ``task`` only if it streams. ``reads_since``: the time since which the
    reader of a stream has events, ``None`` while the exchange itself waits. ``counted``: whether the slot is counted.
    """

    # Defaults of the class: most tickets never wait, and making one is part of the cost of each call.
    sent = queued_at = 0.0
    future: Future[None] | None = None
    is_queued = counted = False
    reads_since: float | None = None
    task: object = None
    tokens: tuple[float, float] | None = None  # the estimate: input, output
    taken: Mapping[str, float] | None = None  # by bucket: all units taken, this exchange's last

    def __init__(self, started: float, thread: int) -> None:
        self.started, self.thread = started, thread


_Heap: TypeAlias = "list[tuple[float, float, int, Ticket]]"


class CallQueue:
    """Tickets in the order in which they are served.

    Calls of a user are ordered by the start of their call. A ticket of a run has a start tag (start-time fair queueing): the
    finish tag of the run's ticket before, or the tag served last if the run had none waiting. So each run gets its share of
    tokens, however many calls it has.
    """

    def __init__(self) -> None:
        self._first: _Heap = []
        self._batch: _Heap = []
        self._oldest: deque[Ticket] = deque()  # tickets of runs in the order of arrival
        self._finish: WeakKeyDictionary[Run, float] = WeakKeyDictionary()
        self._now_served, self._number, self._old_turn = 0.0, count(), True
        self.waiting: dict[Ticket, None] = {}

    def __len__(self) -> int:
        return len(self.waiting)

    def push(self, ticket: Ticket, run: Run | None, tokens: float, *, again: bool = False) -> None:
        """Add a ticket. ``again``: its call was served before, keeps its place, and is not charged to its run."""
        ticket.is_queued = True
        self.waiting[ticket] = None
        if run is None:
            heappush(self._first, (0.0, ticket.started, next(self._number), ticket))
            return
        tag = self._now_served
        if not again:
            tag = max(tag, self._finish.get(run, 0.0))
            self._finish[run] = tag + max(tokens, 1.0) / run.weight
        heappush(self._batch, (tag, ticket.started, next(self._number), ticket))
        self._oldest.append(ticket)

    def remove(self, ticket: Ticket) -> None:
        """Take a ticket out of the queue."""
        if ticket.is_queued:
            ticket.is_queued = False
            del self.waiting[ticket]

    def peek(self, now: float) -> Ticket | None:
        """Return the ticket that is served next."""
        first = _head(self._first)
        batch = _head(self._batch)
        while self._oldest and not self._oldest[0].is_queued:
            self._oldest.popleft()
        if first is not None and self._oldest and self._old_turn and now >= self._oldest[0].queued_at + LONGEST_TURN:
            return self._oldest[0]
        return first if first is not None else batch

    def pop(self, ticket: Ticket) -> None:
        """Serve the ticket that ``peek`` returned."""
        self._old_turn = bool(self._first) and self._first[0][3] is ticket
        if self._batch and self._batch[0][3] is ticket:
            self._now_served = max(self._now_served, self._batch[0][0])
        self.remove(ticket)


def _head(heap: _Heap) -> Ticket | None:
    while heap and not heap[0][3].is_queued:
        heappop(heap)
    return heap[0][3] if heap else None
