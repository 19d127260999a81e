"""``Experiment``: declare a grid, plan it, run it, and go on with it. The work is ``planning``'s and ``running``'s.

The programs are copied when the experiment is declared, models are shared. What a point runs is made by ``program_of``. One
generator, ``Experiment.steps``, serves ``run``, ``arun`` and the streams.
"""

from __future__ import annotations

import copy
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, Self, TypeAlias, Unpack, cast

from sigwire.core.events import Finished
from sigwire.core.narrow import is_mapping
from sigwire.effects.emitting import Returned, astream, stream
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.metric_plan import MetricPlan, Metrics
from sigwire.experiments.declaration import OPTION_OF, Search, check_grid, checked_seeds, labelled_values, set_models
from sigwire.experiments.point import AXES, Point, arm_name
from sigwire.keywords import ChecksKeywords, check_keywords
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate, applied
from sigwire.settings import current

if TYPE_CHECKING:
    from sigwire.adapters.base import Adapter
    from sigwire.experiments.planning import ExperimentPlan
    from sigwire.experiments.result import ExperimentResult
    from sigwire.experiments.running import PointDone, RunOptions

__all__ = ["Experiment"]

FilePath: TypeAlias = "str | os.PathLike[str]"
_MEASURING = ("repeat", "cluster", "interval", "failure_score", "timeout")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Experiment(ChecksKeywords):
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

    programs: Any
    datasets: Any
    metric: Metrics
    models: Any = None
    adapters: Mapping[str, Adapter] | Adapter | None = None
    options: Mapping[str, Any] | None = None
    wordings: Any = None
    optimizers: Any = None
    seeds: Iterable[int] = (0,)
    where: Callable[[dict[str, str]], object] | None = None
    repeat: int = 1
    cluster: str | None = None
    interval: float = 0.95
    failure_score: float = 0.0
    timeout: float | None = None
    metrics: tuple[str, ...] = field(init=False)
    """The names of the metrics, the headline first."""
    source: str | None = field(default=None, init=False)
    """``module:name`` of the experiment, if the command line loaded it."""
    axes: Mapping[str, tuple[str, ...]] = field(init=False)
    """The labels of each axis but the seed."""
    arms: tuple[Mapping[str, str], ...] = field(init=False)
    """The labels of each arm, {axis: label}, without those that ``where`` leaves out."""
    points: tuple[Point, ...] = field(init=False)
    """The points in the order in which they start: seed by seed, arms without a search first."""

    def __new__(cls, *args: object, **kwargs: Any) -> Self:
        if args:
            raise ConfigurationError(
                "Experiment takes its options by name (declaring it). Write Experiment(programs=..., datasets=..., metric=...)."
            )
        for name in ("programs", "datasets", "metric"):
            if kwargs and name not in kwargs and kwargs.keys() <= {*cls.__dataclass_fields__}:
                raise ConfigurationError(f"Experiment needs {name} (declaring it). Write Experiment({name}=...).")
        return super().__new__(cls, **kwargs)

    def __post_init__(self) -> None:
        self._set("metrics", MetricPlan(self.metric).names)
        self._set("metric", self.metric if callable(self.metric) else tuple(self.metric))
        self._set("seeds", checked_seeds(self.seeds))
        for name in OPTION_OF.values():
            self._set(name, labelled_values(name, getattr(self, name)))
        if self.where is not None and not callable(self.where):
            raise ConfigurationError(
                f"where is a function of a dict {{axis: label}}, not {self.where!r:.80} (declaring an experiment)."
            )
        self._set("axes", {axis: tuple(getattr(self, option)) for axis, option in OPTION_OF.items()})
        found = [dict(zip(AXES, labels, strict=True)) for labels in product(*(self.axes[axis] for axis in AXES))]
        self._set("arms", tuple(arm for arm in found if self.where is None or self.where(dict(arm))))
        self._set("points", tuple(self._points()))
        check_grid(self)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _points(self) -> Iterator[Point]:
        order = sorted(self.arms, key=lambda arm: self.optimizers[arm["optimizer"]] is not None)
        names = [arm_name(self.axes, arm) for arm in order]
        for seed in self.seeds:
            yield from (Point(arm, name, seed) for arm, name in zip(order, names, strict=True))

    # --- the work of a point

    def program_of(self, labels: Mapping[str, str]) -> Any:
        """Return the program of an arm before a search: a copy with its models, options and wording; a function as it is."""
        program, model = self.programs[labels["program"]], self.models[labels["model"]]
        options, wording = self.options[labels["options"]] if self.options else None, self.wordings[labels["wording"]]
        if isinstance(program, Module):
            program = program.deepcopy()
            set_models(program, model)
            texts = wording if is_mapping(wording) else None
            if texts or options:
                program = applied(program, Candidate(texts=dict(texts or {}), lm_options=dict(options or {})))
        return wording(program) if callable(wording) else program

    def settings_of(self, point: Point) -> dict[str, Any]:
        """Return the settings in which a point runs: its adapter, its sample of the cache, and perhaps its model."""
        labels, found = point.labels, dict[str, Any]()
        model, adapter = self.models[labels["model"]], self.adapters[labels["adapter"]]  # type: ignore[index]
        is_function = not isinstance(self.programs[labels["program"]], Module)
        if model is not None and not is_mapping(model) and (is_function or current().lm is None):
            found["lm"] = model
        if adapter is not None:
            found["adapter"] = adapter
        if point.seed:
            outer = current().rollout_id
            found["rollout_id"] = point.seed if outer is None else f"{outer}/{point.seed}"
        return found

    def search_steps(self, point: Point, program: Module, num_threads: int | None = None, **options: Any) -> Steps[Any]:
        """Return the steps of the search of a point, by a copy of its optimizer with its seed. ``options``: of the search."""
        search: Search = self.optimizers[point.labels["optimizer"]]
        split, optimizer = self.datasets[point.labels["dataset"]], copy.copy(search.optimizer)
        given: Any = {**optimizer.search, **options, "seed": point.seed, "progress": False}
        optimizer.search, optimizer.num_threads = given, num_threads or optimizer.num_threads
        return optimizer.compile_steps(program, split.train, search.teacher, split.dev or None, None, search.options)

    def evaluate(self, labels: Mapping[str, str], **options: Any) -> Evaluate:
        """Return the measurement of an arm."""
        test = self.datasets[labels["dataset"]].test
        measuring: dict[str, Any] = {name: getattr(self, name) for name in _MEASURING}
        given: dict[str, Any] = {"max_errors": "provider", "progress": False, "provide_traceback": False, **options}
        return Evaluate(devset=test, metric=self.metric, **measuring, **given)

    # --- planning and running

    def plan(self, folder: FilePath | None = None) -> ExperimentPlan:
        """Return what a run may cost: points, calls and money. No call is made and no file is written.

        ``folder``: of an earlier run; only what it lacks counts.
        """
        from sigwire.experiments.planning import plan_of

        return plan_of(self, folder)

    def run(self, folder: FilePath, **options: Unpack[RunOptions]) -> ExperimentResult:
        """Run the points that a folder lacks, blocking, and return the result of all. ``RunOptions`` has the options.

        Raises ``ConfigurationError``, before anything is written, if the folder is of another experiment, is in use, or if a
        metric, row, program, model or option has changed under its label. An error of the caller, and a provider that fails
        for long, end the run after the points under way; they have a ``result``, as ``EvaluationInterrupted`` (Ctrl-C) has.
        """
        return run(self.steps(folder, **options))

    async def arun(self, folder: FilePath, **options: Unpack[RunOptions]) -> ExperimentResult:
        """``run``, awaited. If it is cancelled, the ``CancelledError`` has a ``result``."""
        return await arun(self.steps(folder, **options))

    def stream(
        self, folder: FilePath, **options: Unpack[RunOptions]
    ) -> Generator[PointDone | Finished, None, ExperimentResult]:
        """``run``, with a ``PointDone`` for each point in the order of completion; the last event is ``Finished``."""
        return _streamed(self.steps(folder, **options))

    def astream(self, folder: FilePath, **options: Unpack[RunOptions]) -> AsyncGenerator[PointDone | Finished, None]:
        """``stream``, awaited."""
        return _streamed_async(self.steps(folder, **options))

    def steps(self, folder: FilePath, **options: Unpack[RunOptions]) -> Steps[ExperimentResult]:
        """Return the steps of ``run``, which emit ``PointDone`` events and those of the measurements."""
        from sigwire.experiments.running import ExperimentRun

        check_keywords("Experiment.run", ExperimentRun.__init__, options)
        return ExperimentRun(self, folder, **options).steps()

    def __repr__(self) -> str:
        sizes = [f"{len(labels)} {OPTION_OF[axis]}" for axis, labels in self.axes.items() if len(labels) > 1]
        seeds = len(cast("tuple[int, ...]", self.seeds))
        return f"Experiment({', '.join([*sizes, f'{seeds} seed' + 's' * (seeds != 1)])}: {len(self.points)} points)"


def _streamed(steps: Steps[ExperimentResult]) -> Generator[PointDone | Finished, None, ExperimentResult]:
    from sigwire.experiments.running import PointDone

    events = stream(steps)
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


async def _streamed_async(steps: Steps[ExperimentResult]) -> AsyncGenerator[PointDone | Finished, None]:
    from sigwire.experiments.running import PointDone

    async with aclosing(astream(steps)) as events:
        async for event in events:
            if type(event) is Returned:
                yield Finished(cast("Returned[object]", event).value)
            elif isinstance(event, PointDone):
                yield event
