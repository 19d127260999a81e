"""The calls of a chaos run: threads and tasks at once, whole and streamed, on one model of each wire."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sigwire.core.events import StreamEvent, collect
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import LMError
from sigwire.lm.client import LM
from sigwire.lm.policy.retry import RetryPolicy
from tests.chaos.plan import WIRES, Plan, mode_of, prompt, text_of, wire_of
from tests.patience import PATIENCE

__all__ = ["RETRIES", "Run", "make_models"]

RETRIES = 3
THREADS, TASKS = 12, 24
MODELS = {"openai-responses": "openai/m", "gemini": "gemini/gemini-3-flash"}


class QuickClock:
    """A clock on which a wait takes a twentieth of its seconds."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 20)

    async def asleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 20)


def make_models(urls: Mapping[str, str], **options: Any) -> dict[str, LM]:
    """Return a model of each wire, which retries on a quick clock."""
    retry = RetryPolicy(RETRIES, clock=QuickClock())
    given = {"retry": retry, "cache": True, **options}
    responses = {"openai-responses": {"wire": "responses"}}
    return {
        wire: LM(
            MODELS.get(wire, f"{wire}/m"),
            base_url=urls[wire],
            api_key=f"key of {wire}",
            **{**given, **responses.get(wire, {})},
        )
        for wire in WIRES
    }


class Run:
    """Makes calls and compares each with the plan; ``problems`` has a line for each that differs.

    ``logged``, ``redials`` and ``refused``: by call, the exchanges in its log. They are arrays, because the test measures
    what grows.
    """

    def __init__(self, plan: Plan, models: Mapping[str, LM], calls: int) -> None:
        self.plan, self.models = plan, models
        self.problems: list[str] = []
        self.failed = self.answered = self.hits = 0
        self.logged, self.redials, self.refused = bytearray(calls), bytearray(calls), bytearray(calls)
        self._lock = threading.Lock()

    def make(self, numbers: Sequence[int]) -> None:
        """Make the calls, in their modes, at once."""
        tasks = self._tasks([number for number in numbers if "task" in mode_of(number)])
        loop = threading.Thread(target=contextvars.copy_context().run, args=(asyncio.run, tasks))
        loop.start()
        with ThreadPoolExecutor(THREADS) as pool:
            for number in numbers:
                if "thread" in mode_of(number):
                    pool.submit(contextvars.copy_context().run, self._in_thread, number)
        loop.join()

    def _in_thread(self, number: int) -> None:
        model, request = self._call(number)
        try:
            if "stream" in mode_of(number):
                events: list[StreamEvent] = []
                self._compare(number, _drained(model.stream(request), events), _joined(events))
            else:
                self._compare(number, model.respond(request), None)
        except Exception as error:
            self._compare_error(number, error)

    async def _tasks(self, numbers: Iterable[int]) -> None:
        waiting = iter(numbers)

        async def work() -> None:
            for number in waiting:
                await self._in_task(number)

        await asyncio.gather(*(work() for _ in range(TASKS)))

    async def _in_task(self, number: int) -> None:
        model, request = self._call(number)
        try:
            if "stream" in mode_of(number):
                events = [event async for event in model.astream(request)]
                self._compare(number, collect(events), _joined(events))
            else:
                self._compare(number, await model.arespond(request), None)
        except Exception as error:
            self._compare_error(number, error)

    def _call(self, number: int) -> tuple[LM, Request]:
        return self.models[wire_of(number)], Request((Message.user(prompt(number)),))

    # --- what must hold

    def _compare(self, number: int, response: Response, streamed: str | None) -> None:
        text, outcome = response.choices[0].text, self.plan.expected(number, RETRIES).outcome
        if not response.attempts:  # a hit: the events of an awaited stream have its log, and no mark
            with self._lock:
                self.hits += 1
        else:
            self._log(number, response.attempts, "answered")
        if text != text_of(number) or (streamed is not None and streamed != text):
            self._report(number, f"wrong answer {text!r}, streamed as {streamed!r}")
        elif outcome == "final":
            self._report(number, "answered where the plan has a final failure")
        elif response.attempts and response.attempts[-1].error is not None:
            self._report(number, f"the last attempt of an answer is a failure: {response.attempts}")

    def _compare_error(self, number: int, error: Exception) -> None:
        if not isinstance(error, LMError):
            self._report(number, f"untyped error {error!r}")
            return
        outcome = self.plan.expected(number, RETRIES).outcome
        self._log(number, error.attempts, "failed")
        if outcome == "good":
            self._report(number, f"lost: {error!r}, attempts {[(a.purpose, a.error) for a in error.attempts]}")
        elif not error.attempts or error.attempts[-1].error != error.code:
            self._report(number, f"the attempts do not end with the error: {error!r}, {error.attempts}")
        elif error.partial is not None and not text_of(number).startswith(error.partial.choices[0].text):
            self._report(number, f"partial answer of another call: {error.partial}")

    def _log(self, number: int, attempts: Sequence[Any], ended: str) -> None:
        # A request above the rate limit is refused before the plan.
        self.refused[number] = sum(attempt.error == "rate_limit" for attempt in attempts)
        self.logged[number] = max(len(attempts) - self.refused[number], 1)
        self.redials[number] = sum(attempt.purpose == "redial" for attempt in attempts)
        with self._lock:
            setattr(self, ended, getattr(self, ended) + 1)

    def _report(self, number: int, what: str) -> None:
        self.problems.append(f"{self.plan.story(number)}: {what}")

    def compare_exchanges(self, made: Mapping[int, int]) -> None:
        """Compare the log of each call with the exchanges that reached the provider."""
        for number, (logged, redials) in enumerate(zip(self.logged, self.redials, strict=True)):
            expected, arrived = self.plan.expected(number, RETRIES), made.get(number, 0)
            # A request on a connection that the provider has closed is logged and does not arrive.
            if not logged - redials <= arrived <= logged:
                self._report(number, f"{arrived} exchanges arrived, {logged} are logged, {redials} of them redials")
            elif expected.outcome is not None and arrived != expected.exchanges:
                self._report(number, f"{arrived} exchanges arrived, {expected.exchanges} are planned")


def _drained(stream: Generator[StreamEvent, None, Response], events: list[StreamEvent]) -> Response:
    """Append the events of a stream to a list; return its response."""
    while True:
        try:
            events.append(next(stream))
        except StopIteration as end:
            return end.value


def _joined(events: Sequence[StreamEvent]) -> str:
    return "".join(event.text for event in events if event.kind == "text_delta")


def wait_until(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Return True as soon as the condition holds, False if it does not within ``seconds``."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
