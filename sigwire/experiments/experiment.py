"""``Experiment``: plan a grid, run it, and go on with it. The work is ``planning``'s and ``running``'s.

One generator, ``Experiment.steps``, serves ``run``, ``arun`` and the streams.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from sigwire.core.events import Finished
from sigwire.effects.emitting import Returned, astream, stream
from sigwire.effects.steps import Steps, arun, run
from sigwire.experiments.declaration import ExperimentOptions

if TYPE_CHECKING:
    from sigwire.experiments.planning import ExperimentPlan
    from sigwire.experiments.result import ExperimentResult
    from sigwire.experiments.running import PointDone
    from sigwire.jobs.submissions import ExecutorLike
    from sigwire.lm.policy.money.budget import Budget

__all__ = ["Experiment"]

FilePath: TypeAlias = "str | os.PathLike[str]"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Experiment(ExperimentOptions):
    """A grid of programs, data sets, models, adapters, options, wordings, optimizers and seeds, as one object.

    A *point* is one label of each axis at a seed: the program is compiled by the optimizer on the ``train`` and ``dev`` rows of
    the data set, and measured on the ``test`` rows, which no search sees. ``plan`` counts calls and money, ``run`` runs what a
    folder lacks. The objects of the caller do not change.

    ``programs``: label -> module or function. ``datasets``: label -> ``DataSplit``; without ``dev`` an optimizer sets half of
    ``train`` apart. One program, data set, model, adapter or optimizer may stand alone: its label is ``default``.
    ``metric``: as of ``Evaluate``. ``models``: label -> model of all predictors, or -> {predictor: model}; default: those of
    the program. If the settings have no model, that of the point writes for its optimizer. ``adapters``: label -> adapter, of
    the program and of the search. ``options``: label -> options of requests. ``wordings``: label -> {slot: text}, or a
    function that gets a copy of the program and returns a program. ``optimizers``: label -> optimizer, ``None``, or
    ``(optimizer, {options of compile})``; a copy of it gets the seed and a journal. ``seeds``: whole numbers: the seed of the
    search, and the sample of the cache that search and measurement ask for (0: the common one). ``where``: a function of
    {axis: label}; an arm for which it returns False is left out. ``repeat``, ``cluster``, ``interval``, ``failure_score`` and
    ``timeout``: of the measurement, as of ``Evaluate``.

    Raises ``ConfigurationError`` or ``InputError``, before any call, for what cannot be run.

    >>> from sigwire.core.example import Example
    >>> from sigwire.data.splitting import DataSplit
    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.chain_of_thought import ChainOfThought
    >>> from sigwire.modules.predict import Predict
    >>> rows = [Example(question=f"{n}+{n}?", answer=str(2 * n)).with_inputs("question") for n in range(6)]
    >>> def exact(example, prediction):
    ...     return example.answer == prediction.answer
    >>> experiment = Experiment(
    ...     programs={"short": Predict("question -> answer"), "long": ChainOfThought("question -> answer")},
    ...     models={"right": FakeLM(lambda request: {"answer": "2"}), "wrong": FakeLM(lambda request: {"answer": "?"})},
    ...     datasets=DataSplit((), (), tuple(rows)),
    ...     metric=exact,
    ... )
    >>> [point.arm for point in experiment.points]
    ['short · right', 'short · wrong', 'long · right', 'long · wrong']
    >>> print(experiment.plan().calls)
    24
    """

    def plan(self, folder: FilePath | None = None) -> ExperimentPlan:
        """Return what a run may cost: points, calls and money. No call is made and no file is written.

        ``folder``: of an earlier run; only what it lacks counts.
        """
        from sigwire.experiments.planning import plan_of

        return plan_of(self, folder)

    def run(
        self,
        folder: FilePath,
        *,
        budget: Budget | None = None,
        parallel: int = 1,
        num_threads: int | None = None,
        executor: ExecutorLike | None = None,
        cassettes: bool = True,
        progress: object = "auto",
    ) -> ExperimentResult:
        """Run the points that a folder lacks, blocking, and return the result of all.

        ``budget``: around everything; budgets of optimizers nest in it. If it is spent, nothing is raised: ``status`` is
        "partial", and the same call goes on. ``parallel``: points at once; ``num_threads``: rows at once in each.
        ``executor``: of the rows, as of ``Evaluate``; points have no cassettes then. ``cassettes``: record the traffic of each
        point, for ``reproduce``.

        Raises ``ConfigurationError``, before anything is written, if the folder is of another experiment, is in use, or if a
        metric, row, program, model or option has changed under its label. An error of the caller, and a provider that fails
        for long, end the run after the points under way; they have a ``result``, as ``EvaluationInterrupted`` (Ctrl-C) has.
        """
        given = _given(budget, parallel, num_threads, executor, cassettes, progress)
        return run(self.steps(folder, **given))

    async def arun(
        self,
        folder: FilePath,
        *,
        budget: Budget | None = None,
        parallel: int = 1,
        num_threads: int | None = None,
        executor: ExecutorLike | None = None,
        cassettes: bool = True,
        progress: object = "auto",
    ) -> ExperimentResult:
        """``run``, awaited. If it is cancelled, the ``CancelledError`` has a ``result``."""
        given = _given(budget, parallel, num_threads, executor, cassettes, progress)
        return await arun(self.steps(folder, **given))

    def stream(
        self,
        folder: FilePath,
        *,
        budget: Budget | None = None,
        parallel: int = 1,
        num_threads: int | None = None,
        executor: ExecutorLike | None = None,
        cassettes: bool = True,
        progress: object = "auto",
    ) -> Generator[PointDone | Finished, None, ExperimentResult]:
        """``run``, with a ``PointDone`` for each point in the order of completion; the last event is ``Finished``."""
        from sigwire.experiments.running import PointDone

        given = _given(budget, parallel, num_threads, executor, cassettes, progress)
        events = stream(self.steps(folder, **given))
        try:
            while True:
                event = next(events)
                if isinstance(event, PointDone):
                    yield event
        except StopIteration as stop:
            result: ExperimentResult = stop.value
        finally:
            events.close()
        yield Finished(result)
        return result

    async def astream(
        self,
        folder: FilePath,
        *,
        budget: Budget | None = None,
        parallel: int = 1,
        num_threads: int | None = None,
        executor: ExecutorLike | None = None,
        cassettes: bool = True,
        progress: object = "auto",
    ) -> AsyncGenerator[PointDone | Finished, None]:
        """``stream``, awaited."""
        from sigwire.experiments.running import PointDone

        given = _given(budget, parallel, num_threads, executor, cassettes, progress)
        async with aclosing(astream(self.steps(folder, **given))) as events:
            async for event in events:
                if type(event) is Returned:
                    yield Finished(cast("Returned[object]", event).value)
                elif isinstance(event, PointDone):
                    yield event

    def steps(self, folder: FilePath, **options: Any) -> Steps[ExperimentResult]:
        """Return the steps of ``run``, which emit ``PointDone`` events and those of the measurements."""
        from sigwire.experiments.running import ExperimentRun

        return ExperimentRun(self, folder, **options).steps()


def _given(
    budget: object, parallel: int, num_threads: int | None, executor: object, cassettes: bool, progress: object
) -> dict[str, Any]:
    return {
        "budget": budget,
        "parallel": parallel,
        "num_threads": num_threads,
        "executor": executor,
        "cassettes": cassettes,
        "progress": progress,
    }
