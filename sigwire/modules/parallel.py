"""``Parallel``: call several programs, each with its inputs, at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from sigwire.core.example import Example
from sigwire.core.narrow import is_items, is_mapping
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, warn_user
from sigwire.keywords import check_whole
from sigwire.modules.batch import BatchFailures, BatchResults, batch_steps, check_timeout, split_failures, timed_call
from sigwire.modules.calling import called_steps
from sigwire.modules.module import StepsModule

__all__ = ["Parallel", "ProgramCall"]

ProgramCall: TypeAlias = "tuple[Callable[..., Any], Example | Mapping[str, Any] | tuple[Any, ...] | list[Any]]"
"""A program (or function), and its inputs: an ``Example``, keywords, or positional arguments."""


class Parallel(StepsModule):
    """Call pairs of a program and its inputs, at most ``num_threads`` at once; return the results in order.

    ``num_threads``: default: the setting. The result of a failed call is ``None``, and a warning names the first error; with
    ``return_failed_examples=True`` the result is (results, failed inputs, errors). More than ``max_errors`` failures end the
    run with the last error; ``BatchRun.of(error)`` has what is finished. ``access_examples=False`` passes an ``Example`` whole
    instead of its inputs. ``timeout``: seconds of one call, which fails with a ``TimeoutError`` after them; code that blocks is
    left behind in its thread. Calls inherit settings, budgets and limits.

    >>> double, shout = (lambda n: 2 * n), (lambda text: text.upper())
    >>> Parallel(num_threads=2)([(double, {"n": 4}), (shout, ("hi",))])
    [8, 'HI']
    """

    def __init__(
        self,
        num_threads: int | None = None,
        max_errors: int | None = None,
        access_examples: bool = True,
        return_failed_examples: bool = False,
        *,
        timeout: float | None = None,
        callbacks: Sequence[object] | None = None,
    ) -> None:
        super().__init__(callbacks)
        check_timeout(timeout, "Parallel")
        check_whole("num_threads", num_threads, "making a Parallel", of="threads", least=1, optional=True)
        check_whole("max_errors", max_errors, "making a Parallel", of="failures", optional=True)
        self.num_threads, self.max_errors, self.timeout = num_threads, max_errors, timeout
        self.access_examples, self.return_failed_examples = access_examples, return_failed_examples

    def steps(
        self, exec_pairs: Iterable[ProgramCall], num_threads: int | None = None
    ) -> Steps[BatchResults | BatchFailures]:
        """Return the steps of one call, without callbacks and call records of this module."""
        pairs = list(exec_pairs)
        errors: list[Exception] = []

        def call(program: Any, given: Any) -> Steps[Any]:
            try:
                steps = called_steps(program, *self._arguments(given))
                return (yield from (steps if self.timeout is None else timed_call(steps, self.timeout, "Parallel")))
            except Exception as error:
                errors.append(error)
                if self.max_errors is not None and len(errors) > self.max_errors:
                    raise
                return error

        found: list[Any] = yield from batch_steps(
            call,
            [{"program": program, "given": given} for program, given in pairs],
            num_threads or self.num_threads,
            owner="Parallel",
            keep_errors=False,
            on_error=_ignore,
        )
        results, failed, failures = split_failures([given for _, given in pairs], found)
        if self.return_failed_examples:
            return results, failed, failures
        if failures:
            warn_user(
                f"{len(failures)} of {len(pairs)} calls failed, and their results are None; the first with "
                f"{type(failures[0]).__name__}: {failures[0]}. Parallel(return_failed_examples=True) returns the errors.",
                RuntimeWarning,
            )
        return results

    def _arguments(self, given: object) -> tuple[Sequence[object], Mapping[str, object]]:
        if isinstance(given, Example):
            return ((), dict(Example.items(Example.inputs(given)))) if self.access_examples else ((given,), {})
        if is_mapping(given):
            return (), given
        if is_items(given):
            return given, {}
        raise ConfigurationError(
            f"The inputs of a program are an Example, a dict, a tuple or a list, not {type(given).__name__} (Parallel)."
        )


def _ignore(error: Exception, example: int) -> None:
    return None
