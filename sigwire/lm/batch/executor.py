"""``BatchExecutor``: an executor of ``map_rows`` that runs all rows in this process, with a ``BatchLM`` as their model."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import ParamSpec, TypeVar, cast

from sigwire.effects.waiting import join
from sigwire.errors import ConfigurationError
from sigwire.lm.batch.model import BatchLM
from sigwire.lm.client import LM

__all__ = ["BatchExecutor"]

P = ParamSpec("P")
T = TypeVar("T")


class BatchExecutor(Executor):
    """An executor for ``map_rows(job, rows, out, executor=...)``: rows are tasks of one event loop, requests lines of batches.

    ``lm``: the model of the job in place of its own. Predictors with a model of their own keep it. A wave holds the rows of all
    chunks that are out: ``chunk`` times ``in_flight``, 16,000 by default. ``stall`` of ``map_rows`` is longer than a batch
    takes: 172,800 seconds are two days.

    >>> with BatchExecutor(BatchLM("anthropic/claude-haiku-4-5", "runs/rows.batch")) as executor:
    ...     executor.submit(len, "abc").result()
    3
    """

    def __init__(self, lm: BatchLM) -> None:
        self._lm = lm
        self._threads: list[Thread] = []

    @classmethod
    def for_file(cls, out: Path, lm: object) -> BatchExecutor:
        """Return the executor for the model of a job; the store of one that is no ``BatchLM`` is ``<out>.batch``."""
        if isinstance(lm, BatchLM):
            return cls(lm)
        if isinstance(lm, LM) or (isinstance(lm, str) and "/" in lm):
            return cls(BatchLM(lm, f"{out}.batch"))
        raise ConfigurationError(
            f"Provider batches need a job with lm=LM(...), not {lm!r:.80} (starting map_rows). Write Job(..., "
            "lm='provider/model')."
        )

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function in a thread of its own. The text of a job, if there is one, gets the model."""
        future: Future[T] = Future()
        texts = [self._with_model(value) for value in args]

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(cast("Callable[..., T]", fn)(*texts, **kwargs))
            except BaseException as error:
                future.set_exception(error)

        # A daemon: a chunk that waits for a batch must not hold the exit of the process.
        self._threads.append(Thread(target=work, name="sigwire-batch-rows", daemon=True))
        self._threads[-1].start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the chunks that run."""
        for thread in self._threads if wait else ():
            join(thread)

    def _with_model(self, value: object) -> object:
        """Return the text of a job with the model, and room for all rows at once; any other value as it is."""
        job: object = None
        with suppress(ValueError):
            job = json.loads(value) if isinstance(value, str) else None
        if not isinstance(job, dict) or not {"program", "lm", "concurrency"} <= job.keys():
            return value
        return json.dumps({**job, "lm": self._lm.shared_state(), "concurrency": 1_000_000})
