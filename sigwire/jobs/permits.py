"""``permits_of``: the worker's side of a coordinator. Each exchange of a model waits for a permit.

One thread and one connection for a process, while a block is open: the thread sends asks and settlements together, and starts
each permit at its time. Nothing is asked for in advance, so no permit is left at the end of a chunk.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from heapq import heappop, heappush
from http.client import HTTPConnection, HTTPException
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from sigwire.effects.inbox import Empty, Inbox
from sigwire.effects.waiting import join
from sigwire.errors import CallerError, ConfigurationError
from sigwire.jobs.lease_book import LeaseAsk, LeaseReply, Settlement
from sigwire.lm.policy.money.leases import LEAST_SLACK, Lease, LeaseSource
from sigwire.lm.policy.money.sums import Refusal, Sums
from sigwire.lm.policy.waiting import claim

__all__ = ["CoordinatorLost", "Permits", "permits_of"]

_FLUSH_SECONDS = 0.2  # the longest time that a settlement waits for an ask
_REPLY_SECONDS = 30.0
_MOST_KNOWN = 64  # an optimizer makes a coordinator for each evaluation with a budget


class CoordinatorLost(ConfigurationError):
    """The coordinator of a run does not answer, so no permit can be had; nothing was sent. Never retried."""


class _Waiting(NamedTuple):
    ask: LeaseAsk
    future: Future[Lease]


class Permits(LeaseSource):
    """The permits of a coordinator, for the calls of models inside a ``with`` block: that of a chunk, in any thread.

    Several blocks share a thread and a connection; the last one to end sends what is left and closes them. A call raises
    ``BudgetSpent`` if a limit of the run is spent, and ``CoordinatorLost`` if the coordinator is gone.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or not parts.path.strip("/"):
            raise ConfigurationError(
                "The URL of a coordinator is http://HOST:PORT/TOKEN (joining it). Take Coordinator.url."
            )
        self._place, self._path = (parts.hostname, parts.port or 80), parts.path
        self.strict, self.needs_price = ("strict" in parts.fragment, "needs_price" in parts.fragment)
        self.is_paced = "paced" in parts.fragment
        self._lock = threading.Lock()
        self._blocks = 0
        self._session: _PermitSession | None = None

    def __enter__(self) -> Self:
        with self._lock:
            if self._session is None:
                self._session = _PermitSession(self, self._place, self._path)
            self._blocks += 1
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        with self._lock:
            self._blocks -= 1
            session = self._session
            if self._blocks == 0 and session is not None:
                self._session = None
                session.close()

    def lease(self, need: Sums, own: Sequence[int], *, waits: bool, slack: float = LEAST_SLACK) -> Future[Lease]:
        future: Future[Lease] = Future()
        with self._lock:
            if self._session is None or self._session.pid != os.getpid():  # a forked child has no thread
                future.set_exception(_lost("its `with` block has ended"))
            else:
                self._session.inbox.put(_Waiting(LeaseAsk(need, own, waits, slack), future))
        return future

    def settle(self, number: int, charge: Sums, refused: float | None) -> None:
        if (session := self._session) is not None:
            session.inbox.put(Settlement(number, charge, refused))


_known: dict[tuple[int, str], Permits] = {}


def permits_of(url: str) -> Permits:
    """Return the permits of a coordinator, one object for a URL and a process. Opens nothing: its ``with`` block does.

    ``url``: that of ``Coordinator.url``. Raises ``ConfigurationError`` for another form.

    >>> from sigwire.jobs.coordinator import Coordinator
    >>> from sigwire.lm.client import LM
    >>> with Coordinator(calls=2) as coordinator, permits_of(coordinator.url):
    ...     answers = LM("offline/lexical")("What is the capital of France?")
    >>> coordinator.spent.calls
    1
    """
    found = _known.setdefault((os.getpid(), url), Permits(url))
    if len(_known) > _MOST_KNOWN:
        _known.pop(next(iter(_known)), None)
    return found


def _lost(why: object) -> CoordinatorLost:
    return CoordinatorLost(
        f"The coordinator of this run does not answer (asking for a permit; nothing was sent): {why}. If the driver has ended, "
        "start it again with the same output: it goes on. Else check that workers reach its host and port."
    )


class _PermitSession:
    """The thread of the open blocks, its connection, and what waits."""

    def __init__(self, source: Permits, place: tuple[str, int], path: str) -> None:
        self.inbox: Inbox[_Waiting | Settlement | None] = Inbox()
        self._source, self._path, self.pid = source, path, os.getpid()
        self._connection = HTTPConnection(*place, timeout=_REPLY_SECONDS)
        self._waiting: deque[_Waiting] = deque()
        self._settled: list[Settlement] = []
        self._granted: list[tuple[float, int, float, Future[Lease]]] = []  # a heap: the next start first
        self._ask_at = self._flush_at = math.inf
        self._is_open = True
        self._thread = threading.Thread(target=self._serve, name="sigwire-permits", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send what is settled, and end the thread. Calls that wait are refused."""
        self.inbox.put(None)
        join(self._thread, _REPLY_SECONDS)

    def _serve(self) -> None:
        while self._is_open:
            self._receive()
            now = time.monotonic()
            self._start_granted(now)
            if now >= min(self._ask_at, self._flush_at) or not self._is_open:
                self._exchange()
        self._connection.close()
        for granted in self._granted:
            self._refuse(granted[3], _lost("its `with` block has ended"))

    def _receive(self) -> None:
        """Wait until there is something to do, and take what has come until then."""
        due = min(self._ask_at, self._flush_at, self._granted[0][0] if self._granted else math.inf)
        timeout = None if due == math.inf else max(0.0, due - time.monotonic())
        try:
            self._take(self.inbox.get(timeout=timeout))
            while True:
                self._take(self.inbox.get_nowait())
        except Empty:
            return

    def _take(self, message: _Waiting | Settlement | None) -> None:
        now = time.monotonic()
        if message is None:
            self._is_open = False
        elif isinstance(message, Settlement):
            self._settled.append(message)
            self._flush_at = min(self._flush_at, now + _FLUSH_SECONDS)
        else:
            if not self._waiting:
                self._ask_at = now
            self._waiting.append(message)

    def _start_granted(self, now: float) -> None:
        while self._granted and self._granted[0][0] <= now:
            _, number, last, future = heappop(self._granted)
            if claim(future):
                future.set_result(Lease(self._source, number, last))
            else:
                self._take(Settlement(number, Sums()))

    def _exchange(self) -> None:
        """Send asks and settlements, and take the answers."""
        self._waiting = deque(each for each in self._waiting if not each.future.cancelled())
        asks = [each.ask for each in self._waiting] if self._is_open else []
        settled, self._settled = self._settled, []
        self._ask_at = self._flush_at = math.inf
        if not asks and not settled:
            return
        asked = time.monotonic()
        try:
            reply = self._post(json.dumps({"asks": asks, "settled": settled}).encode())
        except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
            for each in self._waiting:
                self._refuse(each.future, _lost(error))
            self._waiting.clear()
            return
        self._deliver(reply, asked)

    def _deliver(self, reply: LeaseReply, asked: float) -> None:
        """Grant or refuse the first asks, as the coordinator answered them.

        Its start is between that from ``asked`` and that from now: a permit is used after the later, and up to its slack after
        the earlier one.
        """
        now = time.monotonic()
        for answer in reply.answers:
            ask, future = self._waiting.popleft()
            if isinstance(answer, Refusal):
                self._refuse(future, answer.error())
            else:
                last = asked + answer[1] + ask.slack if self._source.is_paced else math.inf
                heappush(self._granted, (now + answer[1], answer[0], last, future))
        if self._waiting:
            self._ask_at = now + (reply.again or 0.0)

    def _refuse(self, future: Future[Lease], error: CallerError) -> None:
        if claim(future):
            future.set_exception(error)

    def _post(self, body: bytes) -> LeaseReply:
        """Send one message; on a kept connection that has ended, again on a new one."""
        is_kept = self._connection.sock is not None
        try:
            return self._answered(body)
        except (ConnectionError, HTTPException):
            self._connection.close()
            if not is_kept:
                raise
            return self._answered(body)

    def _answered(self, body: bytes) -> LeaseReply:
        self._connection.request("POST", self._path, body)
        reply = self._connection.getresponse()
        text = reply.read()
        if reply.status != 200:
            raise HTTPException(f"status {reply.status}")
        message = json.loads(text)
        answers = [Refusal(*each) if len(each) > 2 else (each[0], each[1]) for each in message["answers"]]
        return LeaseReply(answers, message["again"])
