"""Call a program with each of many inputs, several calls at once: the runner of ``batch`` and of evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sigwire.core.example import Example
from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, InputError
from sigwire.lm.policy.deadlines import is_limit
from sigwire.lm.policy.limits.runs import Run, current_run
from sigwire.modules.call_limit import CallTimeout, timed_steps
from sigwire.observe.place import enter
from sigwire.settings import current
from sigwire.show.card import BoundedRepr

__all__ = [
    "BatchExamples", "BatchFailures", "BatchResults", "BatchRun", "FailedExample", "batch_steps",
    "check_timeout", "in_run", "split_failures", "timed_call",
]  # fmt: skip

T = TypeVar("T")

BatchExamples: TypeAlias = "Iterable[Example | Mapping[str, object]]"
BatchResults: TypeAlias = "list[Any]"
BatchFailures: TypeAlias = "tuple[BatchResults, list[Any], list[Exception]]"
"""Results with ``None`` for failures, the failed examples, their errors."""


@dataclass(frozen=True, slots=True)
class FailedExample(BoundedRepr):
    """A failed call of a batch: its position in the batch, its inputs, its error."""

    index: int
    inputs: Mapping[str, object]
    error: Exception


@dataclass(frozen=True, slots=True)
class BatchRun(BoundedRepr):
    """The finished calls of a batch that an error or an interrupt ended: ``BatchRun.of(error)``.

    ``results`` has the values by position in the batch, in order. ``failures`` are in order too; the first is usually the error
    that was raised.
    """

    results: Mapping[int, Any]
    failures: tuple[FailedExample, ...] = ()

    @classmethod
    def of(cls, error: BaseException) -> BatchRun:
        """Return the run of an exception, or of the exception before it. Raises ``InputError`` if there is none.

        ``asyncio.run`` and ``asyncio.wait_for`` raise a new exception after the ``CancelledError`` that has the run.
        """
        found: BaseException | None = error
        while found is not None:
            if isinstance(batch := getattr(found, "batch", None), cls):
                return batch
            found = found.__cause__ or found.__context__
        raise InputError(f"This {type(error).__name__} does not come from a batch.")


def in_run(run: Run, program: object = None, name: int | str | None = None) -> None:
    """Set the run of this context, a copy in which ``Gather`` runs steps. ``name``: the example in the place of errors."""
    current_run.set(run)
    if name is not None:
        enter(program, name)


def batch_steps(
    call: Callable[..., Steps[T]],
    examples: BatchExamples,
    limit: int | None,
    *,
    owner: str,
    keep_errors: bool,
    on_error: Callable[..., None],
    timeout: float | None = None,
) -> Steps[list[T | Exception]]:
    """Call with the inputs of each example, at most ``limit`` calls at once; return the results in order.

    Without a limit, the setting ``num_threads`` applies. ``owner`` names the program in errors. ``keep_errors`` returns each
    error as a result; otherwise the first error is raised and calls that have not started are dropped. A raised error or
    interrupt has the attribute ``batch``, a ``BatchRun``. ``on_error(error, example=position)`` is called for each error.
    ``timeout``: seconds of one call, from its start; a call that takes longer raises ``CallTimeout``.
    """
    if limit is not None and limit < 1:
        raise ConfigurationError(f"num_threads is a number above 0, not {limit} (a batch of {owner}).")
    check_timeout(timeout, owner)
    inputs = [_inputs_of(example) for example in examples]
    done: dict[int, T] = {}
    failed: dict[int, Exception] = {}
    run = Run()

    def one_call(index: int) -> Steps[T | Exception]:
        in_run(run, getattr(call, "__self__", None), index)
        try:
            steps = call(**inputs[index])
            done[index] = value = yield from (steps if timeout is None else timed_call(steps, timeout, owner))
        except Exception as error:
            failed[index] = error
            on_error(error, example=index)
            if not keep_errors:
                raise
            return error
        return value

    if not inputs:
        return []
    calls = [one_call(index) for index in range(len(inputs))]
    try:
        results: list[T | Exception] = yield Gather(calls, limit=limit or current().num_threads)
    except BaseException as error:  # interrupts too; after an interrupt, threads may add more
        failures = [FailedExample(index, inputs[index], fault) for index, fault in sorted(failed.copy().items())]
        with suppress(Exception):  # a user's exception class may refuse attributes
            setattr(error, "batch", BatchRun(dict(sorted(done.copy().items())), tuple(failures)))  # noqa: B010
        raise
    return results


def check_timeout(timeout: object, owner: str) -> None:
    """Raise ``ConfigurationError`` for a time limit that is no number of seconds."""
    if timeout is not None and not is_limit(timeout):
        raise ConfigurationError(
            f"timeout is a number of seconds above 0, or None; not {timeout!r:.80} (a batch of {owner}). Write timeout=60."
        )


def timed_call(steps: Steps[T], timeout: float, owner: str) -> Steps[T]:
    """Run the steps of a call for at most ``timeout`` seconds. Raises ``CallTimeout``."""
    text = f"A call took longer than {timeout:g} seconds (a batch of {owner}). Raise timeout=, or shorten the call."
    return timed_steps(steps, timeout, partial(CallTimeout, text))


def _inputs_of(example: Example | Mapping[str, object]) -> dict[str, object]:
    if isinstance(example, Example):
        return dict(Example.items(Example.inputs(example)))  # a field may have the name of a method
    if isinstance(example, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may pass any object
        return dict(example)
    raise InputError(f"batch takes Examples with inputs, or dicts of inputs; not {type(example).__name__}.")


def split_failures(examples: Sequence[object], results: Sequence[object]) -> BatchFailures:
    """Return the results with ``None`` for failures, the failed examples, and their errors."""
    failed = [
        (example, result) for example, result in zip(examples, results, strict=True) if isinstance(result, Exception)
    ]
    good = [None if isinstance(result, Exception) else result for result in results]
    return good, [example for example, _ in failed], [error for _, error in failed]
