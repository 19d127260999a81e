"""Executors that lose, repeat and refuse chunks, in this process, and what the tests of jobs share."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from sigwire import LM, Example
from sigwire.core.request import Request
from sigwire.jobs.job import Job
from sigwire.testing import FakeProvider
from tests.jobs import app

__all__ = ["InlineExecutor", "answer_text", "job_of", "pool", "questions"]


class InlineExecutor(Executor):
    """Runs a chunk when it is submitted. ``change`` gets the answer and returns another one, or raises."""

    def __init__(self, change: Callable[[int, dict[str, Any]], object] | None = None) -> None:
        self.submitted: list[dict[str, Any]] = []
        self._change = change

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.submitted.append(json.loads(args[1]))
        future: Future[Any] = Future()
        try:
            answer = fn(*args, **kwargs)
            if self._change is not None:
                answer = json.dumps(self._change(len(self.submitted), json.loads(answer)))
            future.set_result(answer)
        except BaseException as error:
            future.set_exception(error)
        return future


def answer_text(request: Request) -> str:
    """Answer "number 7" by 7 modulo 4."""
    number = int(request.messages[-1].text.split("number ")[1].split()[0])
    return f"[[ ## answer ## ]]\n{number % 4}\n\n[[ ## completed ## ]]"


def questions(count: int, odd: dict[int, str] | None = None) -> list[Example]:
    """Return examples; ``odd`` adds words to questions."""
    texts = [f"number {n} {(odd or {}).get(n, '')}".strip() for n in range(count)]
    return [Example(question=text, answer=str(n % 3)).with_inputs("question") for n, text in enumerate(texts)]


def job_of(provider: FakeProvider, **options: Any) -> Job:
    """Return the job of ``app.Answer`` with the model of a provider; the workers have the key."""
    lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), limit=False, num_retries=0)
    return Job.of(app.Answer(), app.exact, lm=lm, key="tests.jobs.app:key", **options)


def pool(workers: int = 2) -> ProcessPoolExecutor:
    """Return a pool whose processes share nothing with this one."""
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
