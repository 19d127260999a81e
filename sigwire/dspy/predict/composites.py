"""Modules around modules with DSPy's behaviour: a ``Parallel`` in a ``Parallel``, ``Refine`` without advice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sigwire.dspy.modules import Module as DspyModule
from sigwire.effects.steps import Steps
from sigwire.errors import ModelError, warn_user
from sigwire.modules import parallel
from sigwire.modules.batch import BatchFailures, BatchResults
from sigwire.modules.module import Module
from sigwire.modules.sampling import refine
from sigwire.modules.sampling.best_of_n import SampledRun

__all__ = ["Parallel", "Refine"]


class Parallel(DspyModule, parallel.Parallel):
    """``sigwire.Parallel``; the inputs of a ``Parallel`` among the programs are its list of pairs.

    >>> inner, double = Parallel(), lambda n: 2 * n
    >>> Parallel(num_threads=2)([(double, {"n": 1}), (inner, [(double, {"n": 2}), (double, {"n": 3})])])
    [2, [4, 6]]
    """

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
        return super().steps(pairs, num_threads)


class Refine(DspyModule, refine.Refine):
    """``sigwire.Refine``; if the model's advice cannot be read, the next run has none, and a warning has the reason."""

    def _next_program(self, program: Module, found: SampledRun, inputs: Mapping[str, object]) -> Steps[Module]:
        try:
            return (yield from super()._next_program(program, found, inputs))
        except ModelError as error:
            warn_user(f"The advice cannot be read, and the next run is without it (Refine): {error!s:.200}")
            return program
