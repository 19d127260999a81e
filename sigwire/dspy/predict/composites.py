"""Modules around modules with DSPy's behaviour, as a ``Parallel`` in a ``Parallel`` and a ``Refine`` without advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from sigwire.core.example import Completions, Prediction
from sigwire.dspy.modules import Module as DspyModule
from sigwire.dspy.modules import options_with_effect
from sigwire.dspy.settings import context, settings
from sigwire.effects.steps import Steps
from sigwire.errors import InputError, ModelError, warn_user
from sigwire.modules import parallel
from sigwire.modules.batch import BatchFailures, BatchResults
from sigwire.modules.calling import called_steps
from sigwire.modules.module import Module
from sigwire.modules.sampling import best_of_n, multi_chain, refine
from sigwire.modules.sampling.best_of_n import SampledRun
from sigwire.observe.usage import UsageTracker

__all__ = ["BestOfN", "MultiChainComparison", "Parallel", "Refine"]


class BestOfN(DspyModule, best_of_n.BestOfN):
    """``sigwire.BestOfN`` with DSPy's methods."""


class MultiChainComparison(DspyModule, multi_chain.MultiChainComparison):
    """``sigwire.MultiChainComparison``; a completion without the last output is an ``InputError`` that is a ``KeyError``."""

    def steps(
        self, completions: Prediction | Completions | Iterable[Mapping[str, Any]], **inputs: object
    ) -> Steps[Prediction]:
        """Return the steps of one call."""
        found = list[Any](completions.completions if isinstance(completions, Prediction) else completions)
        last = self._outputs[-1].name
        if len(found) == self.M and any(last not in completion for completion in found):
            raise _MissingOutput(
                f"A completion has no {last!r} (MultiChainComparison). Pass answers to the same question."
            )
        return super().steps(found, **inputs)


class _MissingOutput(InputError, KeyError):
    __str__ = Exception.__str__  # KeyError would show the message as a quoted key


class Parallel(DspyModule, parallel.Parallel):
    """``sigwire.Parallel``; the inputs of a ``Parallel`` among the programs are its list of pairs.

    If there is a ``settings.usage_tracker``, each call has one of its own; requests count in both. No bar is shown, errors
    keep their traceback, and nothing is run twice: ``provide_traceback`` and ``disable_progress_bar`` have no effect,
    ``timeout`` and ``straggler_limit`` are a warning.

    >>> inner, double = Parallel(), lambda n: 2 * n
    >>> Parallel(num_threads=2)([(double, {"n": 1}), (inner, [(double, {"n": 2}), (double, {"n": 3})])])
    [2, [4, 6]]
    """

    def __init__(
        self,
        num_threads: int | None = None,
        max_errors: int | None = None,
        access_examples: bool = True,
        return_failed_examples: bool = False,
        provide_traceback: bool | None = None,
        disable_progress_bar: bool = False,
        timeout: float | None = None,
        straggler_limit: int | None = None,
        *,
        callbacks: Sequence[object] | None = None,
    ) -> None:
        parallel.Parallel.__init__(
            self, num_threads, max_errors, access_examples, return_failed_examples, callbacks=callbacks
        )
        self.provide_traceback, self.disable_progress_bar = provide_traceback, disable_progress_bar
        self.timeout, self.straggler_limit = timeout, straggler_limit
        options_with_effect("Parallel", {"timeout": timeout, "straggler_limit": straggler_limit})

    def steps(
        self, exec_pairs: Iterable[parallel.ProgramCall], num_threads: int | None = None
    ) -> Steps[BatchResults | BatchFailures]:
        """Return the steps of one call."""
        pairs: list[Any] = [
            (program, (given,))
            if isinstance(program, parallel.Parallel) and isinstance(given, list)
            else (program, given)
            for program, given in exec_pairs
        ]
        if settings.usage_tracker is not None:
            pairs = [(_Counted(program), given) for program, given in pairs]
        return super().steps(pairs, num_threads)


class _Counted(Module):
    """A program with a ``settings.usage_tracker`` of its own. No listener sees this module around it."""

    fixed_methods: ClassVar[Mapping[str, str]] = {}

    def __init__(self, program: Callable[..., Any]) -> None:
        self._program = program

    def call_steps(self, *args: object, **kwargs: object) -> Steps[Any]:
        with context(usage_tracker=UsageTracker()):
            return (yield from called_steps(self._program, args, kwargs))


class Refine(DspyModule, refine.Refine):
    """``sigwire.Refine``; if the model's advice cannot be read, the next run has none, and a warning has the reason."""

    def next_program(self, program: Module, found: SampledRun, inputs: Mapping[str, object]) -> Steps[Module]:
        """Return the program of the next run; without advice it is that of the run before."""
        try:
            return (yield from super().next_program(program, found, inputs))
        except ModelError as error:
            warn_user(f"The advice cannot be read, and the next run is without it (Refine): {error!s:.200}")
            return program
