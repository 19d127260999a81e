"""``BatchLM``: a language model whose requests wait for one another and travel in batches of the provider."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from weakref import WeakValueDictionary

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import Steps
from sigwire.effects.waiting import result_of
from sigwire.errors import ConfigurationError, LMUnexpectedError, StateError
from sigwire.keywords import ChecksKeywords
from sigwire.lm.base import BaseLM
from sigwire.lm.batch.backend import BatchBackend
from sigwire.lm.batch.options import BATCH_CLOCK, BatchClock, BatchOptions
from sigwire.lm.batch.queue import BatchQueue
from sigwire.lm.batch.sending import BatchRefused
from sigwire.lm.batch.store import StoredBatch
from sigwire.lm.client import LM
from sigwire.lm.policy.cache.choice import choice_of, with_settings
from sigwire.lm.policy.call import NO_HASTE, Call, Exchange, Haste, through
from sigwire.lm.providers.registry import find_provider

if TYPE_CHECKING:
    from sigwire.lm.policy.limits.limiter import Limiter

__all__ = ["BatchLM", "WaveWidth"]


class BatchLM(ChecksKeywords, LM):
    """An ``LM`` whose requests travel in batches of the provider: half the price, answers within a day.

    ``lm``: the model, an ``LM`` or its name; its options, key and base URL are kept, its limiter and timeout are not. The
    provider is one with a batch API: Anthropic, Gemini, OpenAI. ``store``: the file (SQLite) of what was sent and answered. A
    program that runs again with the same file continues: an answered request is not sent again, one under way is polled.

    A request parks until no new one has come for ``quiet`` seconds (2), the first has waited ``max_wait`` seconds (60), or
    ``size`` lines wait (10,000, and at most the provider's limit). Then one batch is sent, so an agent of 5 turns takes 5
    batches, for any number of examples. The state of a batch is polled after ``poll[0]`` seconds (10), then ever more rarely,
    at least each ``poll[1]`` seconds (300).

    ``rest``: what the provider did not run in time goes into the next "batch", or "now" through the ordinary API at its price.
    ``on_doubt``: "ask" raises ``BatchInDoubt`` if several batches of the provider could be one whose creation was interrupted;
    "resend" sends its lines again. ``settle``: seconds for which the list of batches, and the results of one, are read again
    if they lack what was sent, before it is sent again (``poll[1]``: no provider documents when its list is complete).
    ``deadline``: seconds that a request waits before it raises ``LMTimeoutError``; what was sent stays in the store.
    ``width``: how many examples an ``Evaluate`` runs at once, if it has no ``num_threads``.

    A request that was perhaps paid and has no answer is sent a second time at most. After that, and if the provider has no
    results of a batch any more, it raises ``LMUnexpectedError``, also in later runs: ``batches(again=True)`` frees it.

    ``fresh=True`` passes the cache of responses, not the store; ``rollout_id`` asks for another sample. Streams are emitted
    whole. Fallbacks are asked when a line fails for good; a fallback given as a name travels in batches too. A saved program
    has the plain model. Raises ``ConfigurationError`` for a provider without a batch API, and in calls if another process uses
    the store.

    Sources: platform.claude.com/docs/en/build-with-claude/batch-processing, platform.openai.com/docs/guides/batch,
    ai.google.dev/gemini-api/docs/batch-api.

    >>> lm = BatchLM("anthropic/claude-haiku-4-5", store="runs/labels.batch")
    >>> lm.model
    'anthropic/claude-haiku-4-5'
    """

    _queue: BatchQueue
    _backend: BatchBackend

    def __init__(
        self,
        lm: LM | str,
        store: str | Path | None = None,
        *,
        size: int = 10_000,
        quiet: float = 2.0,
        max_wait: float = 60.0,
        poll: tuple[float, float] = (10.0, 300.0),
        rest: Literal["batch", "now"] = "batch",
        on_doubt: Literal["ask", "resend"] = "ask",
        deadline: float | None = None,
        width: int = 1_000,
        settle: float | None = None,
        clock: BatchClock = BATCH_CLOCK,
    ) -> None:
        source = LM(lm) if isinstance(lm, str) else lm
        if not isinstance(source, LM) or source._overrides:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError(
                f"A BatchLM is made of an LM without forward or __call__ of its own, not {type(lm).__name__} (making it)."
            )
        if store is None:
            raise ConfigurationError(
                "A BatchLM needs a file for what was sent and answered (making it). Pass store='runs/name.batch'."
            )
        options = BatchOptions(Path(store), size, quiet, max_wait, poll, rest, on_doubt, deadline, width, settle, clock)
        self.__dict__.update(source.copy().__dict__)
        self._queue = BatchQueue(options)
        self._connect()

    @property
    def queue(self) -> BatchQueue:
        """The parked requests; copies of the model share it."""
        return self._queue

    def batches(self, *, cancel: bool = False, again: bool = False) -> list[StoredBatch]:
        """Poll the batches of the store once, keep the results of those that ended, and return all, the oldest first.

        For a look at a run from another script, when no program waits. ``cancel``: cancel those that run; lines that did not
        run yet are sent again if a program asks. ``again``: ask again for results that the provider did not have, and
        forget what stays lost: it is sent, and paid, again if a program asks. Raises ``LMError`` if the provider refuses or
        does not answer, after all batches were polled.
        """
        account, now = self._backend.account(), self._queue.options.clock.now
        try:
            return result_of(
                self._queue.call(lambda driver: driver.poll_all(account, now(), cancel=cancel, again=again))
            )
        except BatchRefused as error:
            raise LMUnexpectedError(
                f"The provider refused to show or cancel a batch (polling {self._queue.options.store}): {error}.",
                status=error.reply.status,
            ) from error

    def _connect(self) -> None:
        super()._connect()
        row, name = find_provider(self.model)
        self._backend = BatchBackend(
            row, name, self._connection, self.capabilities, self.model, self._queue, self._price
        )
        self._limiter = cast("Limiter", WaveWidth(self._queue.options.width))
        self._total = None
        self._load_fallbacks(None)

    def _own_steps(self, request: Request, streamed: bool, haste: Haste = NO_HASTE) -> Steps[Response]:
        call, given = self._call(request, streamed)
        call.hurry(haste)
        choice = given or choice_of(self.cache)
        sample = with_settings(choice)[1]
        return through(self._outer_layers(choice), call, partial(self._answer_sample, call, sample))

    def _answer_sample(self, call: Call, sample: object) -> Steps[Response]:
        call.layers = self._layers()
        return self._backend.for_sample(sample).answer(call)

    # --- copies and state

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_queue": self._queue.options}

    def __setstate__(self, state: dict[str, object]) -> None:
        super().__setstate__({**state, "_queue": BatchQueue(cast(BatchOptions, state["_queue"]))})

    def dump_state(self) -> JsonObject:
        """Return the state of the plain model, as JSON."""
        return {**super().dump_state(), "class": f"{LM.__module__}.{LM.__qualname__}"}

    def shared_state(self) -> JsonObject:
        """Return a state from which ``load_state`` returns this model, in this process."""
        _shared[id(self)] = self
        return {"class": f"{BatchLM.__module__}.{BatchLM.__qualname__}", "model": self.model, "shared": id(self)}

    @classmethod
    def load_state(cls, state: Mapping[str, object], *, allow_unsafe_lm_state: bool = False) -> BaseLM:
        """Return the model of ``shared_state``. Raises ``StateError`` in another process."""
        lm = _shared.get(cast(int, state.get("shared")))
        if lm is None:
            raise StateError(
                "A BatchLM is used in the process that made it (loading its state). Save the plain LM, or use BatchExecutor."
            )
        return lm


_shared: WeakValueDictionary[int, BatchLM] = WeakValueDictionary()


class WaveWidth:
    """The layer in place of a limiter: requests that wait for one another are not held back. ``suggested`` is for Evaluate."""

    def __init__(self, width: int) -> None:
        self._width = width

    def around(self, call: Call, inner: Exchange[Any]) -> Steps[Any]:
        return inner()

    def suggested(self) -> int:
        """Return how many programs at once are of use."""
        return self._width
