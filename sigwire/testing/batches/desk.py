"""The batches of a fake provider: how long they take, which lines expire, which replies are lost.

A line is answered when its batch ends, as if it had been sent alone: by the same script, and recorded among the requests with
the header ``x-fake-batch``. A batch ends at its time, whether it is polled or not: its lines are paid.
"""

from __future__ import annotations

import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.testing.answers import Delivered, Fault
from sigwire.testing.server import ServerReply
from sigwire.testing.wire import FakeWire, ReceivedRequest, Rejected

__all__ = ["BatchDesk", "BatchEndpoints", "BatchPlan", "FakeBatch", "FakeLine", "LineAnswer", "as_reply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """How a fake provider runs batches.

    ``seconds`` from creation to end, by ``clock`` (seconds since 1970). ``expire``: so many lines never run, the last ones of
    the first batch. ``lose``: so many creations succeed, and their replies are lost. ``lag``: seconds after which a batch is in
    the list of batches. A batch of more than ``most`` lines is
    refused, and one with which more than ``queue`` lines would be under way. Results come in another order than the lines, by
    ``seed``.

    >>> BatchPlan(seconds=60, expire=2).expire
    2
    """

    seconds: float = 0.0
    expire: int = 0
    lose: int = 0
    lag: float = 0.0
    most: int | None = None
    queue: int | None = None
    seed: int = 0
    clock: Callable[[], float] = time.time


class FakeLine(NamedTuple):
    """A line of a batch: its id, the path of the ordinary request and its body."""

    id: str
    path: str
    body: JsonValue


class LineAnswer(NamedTuple):
    """The answer of a line; ``status`` 0 if it never ran."""

    id: str
    status: int
    body: JsonValue = None


@dataclass(slots=True)
class FakeBatch:
    """A batch. ``answers`` is ``None`` until it ends; ``facts`` are those of its creator."""

    id: str
    lines: Sequence[FakeLine]
    headers: Mapping[str, str]
    created: float
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    cancelled: bool = False
    answers: list[LineAnswer] | None = None

    def count(self, *kinds: str) -> int:
        """Return the number of lines that are waiting, done, failed or expired."""
        if self.answers is None:
            return len(self.lines) if "waiting" in kinds else 0
        found = ["expired" if not each.status else "done" if each.status < 300 else "failed" for each in self.answers]
        return sum(kind in kinds for kind in found)


class BatchEndpoints(ABC):
    """The endpoints of one provider. ``routes``: method, pattern of the path, name of the method that answers."""

    wire: ClassVar[FakeWire]
    key_header: ClassVar[str]
    routes: ClassVar[Sequence[tuple[str, str, str]]]

    def reply(self, desk: BatchDesk, exchange: ReceivedRequest) -> ServerReply:
        """Answer a request. Raises ``Rejected``."""
        for method, pattern, name in self.routes:
            if method == exchange.method and (place := re.fullmatch(pattern, exchange.path)):
                answer: Callable[..., ServerReply] = getattr(self, name)
                return answer(desk, exchange, *place.groups())
        raise Rejected(Fault("not_found", f"The fake provider does not serve {exchange.method} {exchange.path}."))

    def serves(self, path: str) -> bool:
        """Return True if a path is one of the endpoints."""
        return any(re.fullmatch(pattern, path) for _, pattern, _ in self.routes)

    @abstractmethod
    def shown(self, desk: BatchDesk, batch: FakeBatch) -> JsonObject:
        """Return a batch as JSON."""

    def created(self, desk: BatchDesk, batch: FakeBatch) -> ServerReply:
        """Answer the creation of a batch, unless the reply is lost."""
        reply = as_reply(self.shown(desk, batch))
        return ServerReply(200, delivery=Delivered(stop="head")) if desk.loses_reply() else reply

    def status(self, desk: BatchDesk, exchange: ReceivedRequest, id: str) -> ServerReply:
        """Answer with the state of a batch, which ends if it is time."""
        return as_reply(self.shown(desk, desk.find(id)))

    def cancel(self, desk: BatchDesk, exchange: ReceivedRequest, id: str) -> ServerReply:
        """Cancel a batch that has not ended."""
        batch = desk.find(id)
        batch.cancelled = batch.answers is None
        return as_reply(self.shown(desk, batch))


class BatchDesk:
    """The batches of one provider, at the address ``run``."""

    def __init__(self, plan: BatchPlan, endpoints: Sequence[BatchEndpoints], run: str) -> None:
        self.plan, self.run = plan, run
        self.files: dict[str, bytes] = {}
        self._endpoints = endpoints
        self._batches: dict[str, FakeBatch] = {}
        self._expire, self._lose = plan.expire, plan.lose
        self._lock = threading.RLock()
        self._answer: Callable[[ReceivedRequest], ServerReply] | None = None

    def endpoints(self, exchange: ReceivedRequest) -> BatchEndpoints | None:
        """Return the endpoints of a request. Two providers share a path: the header of the key decides."""
        serving = [each for each in self._endpoints if each.serves(exchange.path)]
        return next((each for each in serving if each.key_header in exchange.headers), next(iter(serving), None))

    def reply(
        self, endpoints: BatchEndpoints, exchange: ReceivedRequest, answer: Callable[[ReceivedRequest], ServerReply]
    ) -> ServerReply:
        """Answer a request to a batch API; ``answer`` answers a line."""
        with self._lock:
            self._answer = answer
            self.run_due()
            return endpoints.reply(self, exchange)

    def run_due(self) -> None:
        """End the batches whose time has come: the provider does not wait for a poll."""
        with self._lock:
            for id in self._batches:
                self.find(id)

    def create(self, lines: Sequence[FakeLine], exchange: ReceivedRequest, prefix: str, **facts: object) -> FakeBatch:
        """Make a batch. Raises ``Rejected`` if it is too large, empty, or has an id twice."""
        if self.plan.most is not None and len(lines) > self.plan.most:
            raise Rejected(Fault("too_large", f"The batch has {len(lines)} requests; the limit is {self.plan.most}."))
        waiting = sum(len(each.lines) for each in self._batches.values() if each.answers is None)
        if self.plan.queue is not None and waiting + len(lines) > self.plan.queue:
            raise Rejected(Fault("rate_limit", f"Enqueued request limit reached; the limit is {self.plan.queue}."))
        if not lines or len({line.id for line in lines}) < len(lines):
            raise Rejected(Fault("bad_request", "A batch has one request or more, each with an id of its own."))
        batch = FakeBatch(f"{prefix}{len(self._batches) + 1}", lines, exchange.headers, self.plan.clock(), facts)
        self._batches[batch.id] = batch
        return batch

    def loses_reply(self) -> bool:
        """Return True if the reply of this creation is lost."""
        self._lose -= 1
        return self._lose >= 0

    def find(self, id: str) -> FakeBatch:
        """Return a batch; it ends if it is time. Raises ``Rejected`` if there is none."""
        batch = self._batches.get(id)
        if batch is None:
            raise Rejected(Fault("not_found", f"No batch {id}."))
        is_over = self.plan.clock() >= batch.created + self.plan.seconds
        if batch.answers is None and (is_over or batch.cancelled):
            batch.answers = self._run(batch)
        return batch

    def listed(self, prefix: str, most: str = "", after: str = "") -> tuple[list[FakeBatch], bool]:
        """Return a page of the batches of one provider, the newest first, and whether there are more.

        ``most``: how many, 20 if it is empty. ``after``: the name of the last one of the page before.
        """
        shown = self.plan.clock() - self.plan.lag
        ids = [id for id in reversed(self._batches) if id.startswith(prefix) and self._batches[id].created <= shown]
        start = ids.index(after) + 1 if after else 0
        end = start + int(most or 20)
        return [self.find(id) for id in ids[start:end]], end < len(ids)

    def _run(self, batch: FakeBatch) -> list[LineAnswer]:
        expired = len(batch.lines) if batch.cancelled else min(self._expire, len(batch.lines))
        self._expire -= 0 if batch.cancelled else expired
        rest = len(batch.lines) - expired
        answers = [self._answer_line(batch, line) for line in batch.lines[:rest]]
        answers += [LineAnswer(line.id, 0) for line in batch.lines[rest:]]
        random.Random(self.plan.seed).shuffle(answers)
        return answers

    def _answer_line(self, batch: FakeBatch, line: FakeLine) -> LineAnswer:
        assert self._answer is not None, "a request came before"
        headers = {**batch.headers, "x-fake-batch": batch.id}
        reply = self._answer(ReceivedRequest("POST", line.path, {}, headers, dumps(line.body).encode()))
        return LineAnswer(line.id, reply.status, loads(reply.body))


def as_reply(value: JsonValue) -> ServerReply:
    """Return the reply of a JSON value."""
    return ServerReply(200, dumps(value).encode())
