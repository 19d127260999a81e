"""Call a program with each of many inputs, several calls at once: the runner of ``batch`` and of evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from sigwire.core.example import Example
from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, InputError
from sigwire.settings import current

__all__ = ["BatchExamples", "BatchFailures", "BatchResults", "batch_steps", "split_failures"]

T = TypeVar("T")

BatchExamples: TypeAlias = "Iterable[Example | Mapping[str, object]]"
BatchResults: TypeAlias = "list[Any]"
BatchFailures: TypeAlias = "tuple[BatchResults, list[Any], list[Exception]]"
"""Results with ``None`` for failures, the failed examples, their errors."""


def batch_steps(
    call: Callable[..., Steps[T]], examples: BatchExamples, limit: int | None, *, owner: str, keep_errors: bool
) -> Steps[list[T | Exception]]:
    """Call with the inputs of each example, at most ``limit`` calls at once; return the results in order.

    Without a limit, the setting ``num_threads`` applies. ``owner`` names the program in errors. ``keep_errors`` returns each
    error as a result; otherwise the first error is raised and calls that have not started are dropped.
    """
    if limit is not None and limit < 1:
        raise ConfigurationError(f"num_threads is a number above 0, not {limit} (a batch of {owner}).")
    calls = [_one_call(call, _inputs_of(example), keep_errors) for example in examples]
    if not calls:
        return []
    results: list[T | Exception] = yield Gather(calls, limit=limit or current().num_threads)
    return results


def _one_call(call: Callable[..., Steps[T]], inputs: Mapping[str, object], keep_errors: bool) -> Steps[T | Exception]:
    try:
        return (yield from call(**inputs))
    except Exception as error:
        if not keep_errors:
            raise
        return error


def _inputs_of(example: Example | Mapping[str, object]) -> dict[str, object]:
    if isinstance(example, Example):
        return dict(example.inputs().items())
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
