"""``ExperimentOptions``: the declaration of a grid, checked before any call.

Every axis is a mapping of labels; an axis that is not given has the one label ``default`` (``none`` for optimizers). The
programs are copied when the experiment is declared, models are shared. What a point runs is made by ``program_of``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Self, cast

from sigwire.core.narrow import is_mapping
from sigwire.data.splitting import DataSplit, leaked
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, InputError, SigwireError, suggest
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.examples import check_devset, check_program
from sigwire.evaluate.metric_plan import MetricPlan, Metrics
from sigwire.experiments.point import AXES, SEPARATOR, Point, arm_name
from sigwire.keywords import ChecksKeywords
from sigwire.modules.module import Module
from sigwire.optimizers.candidate import Candidate, applied
from sigwire.optimizers.optimizer import Optimizer
from sigwire.settings import current

if TYPE_CHECKING:
    from sigwire.adapters.base import Adapter

__all__ = ["ExperimentOptions", "Search"]

_OPTION_OF = {
    "program": "programs", "dataset": "datasets", "model": "models", "adapter": "adapters", "options": "options",
    "wording": "wordings", "optimizer": "optimizers",
}  # fmt: skip
_MEASURING = ("repeat", "cluster", "interval", "failure_score", "timeout")


@dataclass(frozen=True, slots=True)
class Search:
    """An optimizer of the grid. ``options``: those of ``compile``; ``teacher``: one of them."""

    optimizer: Optimizer
    options: Mapping[str, Any]
    teacher: Module | None = None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExperimentOptions(ChecksKeywords):
    """The options of an experiment, checked, and its grid. ``Experiment`` has their meanings."""

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
        self._set("seeds", _checked_seeds(self.seeds))
        for name, is_one in _ALONE.items():
            self._set(name, _labelled(name, getattr(self, name), is_one))
        self._set("programs", {name: _copied(each) for name, each in self.programs.items()})
        self._set("optimizers", {name: _search_of(name, each) for name, each in self.optimizers.items()})
        if self.where is not None and not callable(self.where):
            raise ConfigurationError(
                f"where is a function of a dict {{axis: label}}, not {self.where!r:.80} (declaring an experiment)."
            )
        _check(self)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    # --- the grid

    @cached_property
    def axes(self) -> Mapping[str, tuple[str, ...]]:
        """The labels of each axis but the seed."""
        return {axis: tuple(getattr(self, option)) for axis, option in _OPTION_OF.items()}

    @cached_property
    def arms(self) -> tuple[Mapping[str, str], ...]:
        """The labels of each arm, {axis: label}, without those that ``where`` leaves out."""
        found = [dict(zip(AXES, labels, strict=True)) for labels in product(*(self.axes[axis] for axis in AXES))]
        return tuple(arm for arm in found if self.where is None or self.where(dict(arm)))

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """The points in the order in which they start: seed by seed, arms without a search first."""
        order = sorted(self.arms, key=lambda arm: self.optimizers[arm["optimizer"]] is not None)
        names = {id(arm): arm_name(self.axes, arm) for arm in order}
        return tuple(Point(arm, names[id(arm)], seed) for seed in cast("tuple[int, ...]", self.seeds) for arm in order)

    def program_of(self, labels: Mapping[str, str]) -> Any:
        """Return the program of an arm before a search: a copy with its models, options and wording; a function as it is."""
        program, model = self.programs[labels["program"]], self.models[labels["model"]]
        options, wording = self.options[labels["options"]] if self.options else None, self.wordings[labels["wording"]]
        if isinstance(program, Module):
            program = program.deepcopy()
            _set_models(program, model)
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

    def __repr__(self) -> str:
        sizes = [f"{len(labels)} {_OPTION_OF[axis]}" for axis, labels in self.axes.items() if len(labels) > 1]
        seeds = len(cast("tuple[int, ...]", self.seeds))
        return f"Experiment({', '.join([*sizes, f'{seeds} seed' + 's' * (seeds != 1)])}: {len(self.points)} points)"


# --- the values of the axes


def _is_options(value: object) -> bool:
    """Return True for the options of one label, which are no mapping of labels to options."""
    return is_mapping(value) and not all(each is None or is_mapping(each) for each in value.values())


def _is_wording(value: object) -> bool:
    """Return True for one wording: a function, or texts by slot."""
    return callable(value) or (is_mapping(value) and any(isinstance(each, str) for each in value.values()))


_ALONE: Mapping[str, Callable[[object], bool]] = {
    "programs": lambda value: isinstance(value, Module) or callable(value),
    "datasets": lambda value: isinstance(value, DataSplit),
    "models": lambda value: not is_mapping(value),
    "adapters": lambda value: not is_mapping(value),
    "options": _is_options,
    "wordings": _is_wording,
    "optimizers": lambda value: not is_mapping(value),
}
"""The axes by option, and whether a value stands alone, without a label."""


def _labelled(name: str, value: object, is_one: Callable[[object], bool]) -> dict[str, Any]:
    """Return the labels of an axis with their values."""
    if value is None:
        return {"none" if name == "optimizers" else "default": None}
    if is_one(value):
        return {"default": value}
    if not is_mapping(value):
        raise ConfigurationError(
            f"{name} of an Experiment is a dict of labels, not {value!r:.80} (declaring it). Write {name}={{'name': ...}}."
        )
    if not value:
        raise ConfigurationError(
            f"{name} of an Experiment has no label (declaring it): the grid would be empty. Leave {name} out, or add a label."
        )
    for label in value:
        _check_label(name, label)
    return {str(label): each for label, each in value.items()}


def _check_label(name: str, label: object) -> None:
    if not isinstance(label, str) or not label.strip() or SEPARATOR in label or len(label.splitlines()) != 1:
        raise ConfigurationError(
            f"{label!r:.80} is no label of {name} (declaring an experiment): a label is a text of one line, without "
            f"{SEPARATOR!r}, which joins the labels of an arm. Rename it."
        )


def _checked_seeds(given: object) -> tuple[int, ...]:
    try:
        seeds = tuple(cast("Iterable[Any]", given))
    except TypeError:
        seeds = (cast(Any, given),)
    odd = next((seed for seed in seeds if type(seed) is not int), None)
    if odd is not None or not seeds:
        raise ConfigurationError(
            f"seeds of an Experiment are whole numbers such as range(5), not {odd if seeds else given!r:.80} (declaring it)."
        )
    if (twice := next((seed for seed in seeds if seeds.count(seed) > 1), None)) is not None:
        raise ConfigurationError(
            f"The seed {twice} is there twice (declaring an experiment): it would count one run as two. Write each once."
        )
    return seeds


def _copied(program: Any) -> Any:
    return program.deepcopy() if isinstance(program, Module) else program


def _search_of(label: str, given: Any) -> Search | None:
    """Return the optimizer of a label with its options of ``compile``."""
    optimizer: Any = given
    options: Any = {}
    pair: Sequence[Any] = given if given.__class__ is tuple else ()
    if len(pair) == 2:
        optimizer, options = pair
    if optimizer is None:
        return None
    if not isinstance(optimizer, Optimizer) or not is_mapping(options):
        raise ConfigurationError(
            f"optimizers[{label!r}] is an optimizer, None, or (optimizer, {{options of compile}}), not {given!r:.80} "
            "(declaring an experiment). Write GEPA(metric)."
        )
    rest: dict[str, Any] = dict(options)
    for name in ("trainset", "valset", "testset", "seed"):
        if name in rest:
            raise ConfigurationError(
                f"optimizers[{label!r}] has the option {name} (declaring an experiment). Rows are those of datasets=, and "
                "seeds those of seeds=: leave it out."
            )
    return Search(copy.copy(optimizer), rest, rest.pop("teacher", None))


def _set_models(program: Module, model: Any) -> None:
    if model is None:
        return
    if not is_mapping(model):
        program.set_lm(model)
        return
    predictors = dict(program.named_predictors())
    if unknown := sorted(str(name) for name in model if name not in predictors):
        raise ConfigurationError(
            f"{type(program).__name__} has no predictor {unknown[0]!r} (setting its model). {suggest(unknown[0], predictors)}"
            f"Its predictors are {', '.join(predictors)}."
        )
    for name, lm in model.items():
        predictors[name].lm = lm


# --- what is refused


def _check(experiment: ExperimentOptions) -> None:
    for label, split in experiment.datasets.items():
        _check_split(label, split)
    if not experiment.arms:
        raise ConfigurationError(
            "where leaves no arm (declaring an experiment). It gets {axis: label} and returns True for an arm that is run; the "
            f"axes are {', '.join(AXES)}."
        )
    programs: dict[tuple[str, ...], object] = {}
    for arm in experiment.arms:
        key = tuple(arm[axis] for axis in ("program", "model", "options", "wording"))
        if key not in programs:
            programs[key] = _checked_program(experiment, arm)
        _check_arm(experiment, arm, programs[key])


def _check_split(label: str, split: object) -> None:
    if not isinstance(split, DataSplit):
        raise ConfigurationError(
            f"datasets[{label!r}] is a DataSplit, not {type(split).__name__} (declaring an experiment). Write "
            "split_examples(rows), or DataSplit(train, dev, test)."
        )
    if not split.test:
        raise InputError(
            f"datasets[{label!r}] has no test rows (declaring an experiment): nothing could be measured. Give it some."
        )
    if found := leaked((*split.train, *split.dev), split.test):
        raise InputError(
            f"{len(found)} of {len(split.test)} test rows of datasets[{label!r}] are training rows too, the first at position "
            f"{found[0]}{_id_of(split.test[found[0]])} (declaring an experiment): the measurement would flatter searches. "
            "split_examples(rows) keeps equal rows in one part."
        )


def _id_of(example: Any) -> str:
    return f" (id {example['id']!r:.40})" if "id" in example else ""


def _checked_program(experiment: ExperimentOptions, arm: Mapping[str, str]) -> object:
    """Return the program of an arm. Raises ``ConfigurationError`` with the labels that do not fit each other."""
    program = experiment.programs[arm["program"]]
    check_program(program)
    parts = {option: getattr(experiment, option)[arm[axis]] for axis, option in _OPTION_OF.items()}
    if not isinstance(program, Module):
        for option in ("options", "wordings", "models"):
            if is_mapping(parts[option]) and parts[option]:
                raise ConfigurationError(
                    f"programs[{arm['program']!r}] is a function, so {option} cannot change a part of it (declaring an "
                    "experiment). Make it a Module, or leave the arm out with where=."
                )
    stage = f"declaring the arm {arm_name(experiment.axes, arm)!r}"
    try:
        made = experiment.program_of(arm)
    except SigwireError as error:
        raise ConfigurationError(f"An arm cannot be made ({stage}): {error}") from error
    check_program(made)
    if isinstance(made, Module) and (options := parts["options"]):
        for _, predictor in made.named_predictors():
            check: Any = getattr(predictor.lm or current().lm, "check_options", None)
            if check is not None:
                check(options, stage)
    return made


def _check_arm(experiment: ExperimentOptions, arm: Mapping[str, str], program: object) -> None:
    split, search = experiment.datasets[arm["dataset"]], experiment.optimizers[arm["optimizer"]]
    name = f"test of datasets[{arm['dataset']!r}]"
    check_devset(split.test, program, name)
    experiment.evaluate(arm)  # checks its options
    if search is None:
        return
    label = f"optimizers[{arm['optimizer']!r}]"
    if not isinstance(program, Module):
        raise ConfigurationError(
            f"programs[{arm['program']!r}] is a function, which {label} cannot compile (declaring an experiment). Make it a "
            "Module, or leave the arm out with where=."
        )
    if not split.train:
        raise InputError(
            f"datasets[{arm['dataset']!r}] has no train rows, and {label} searches on them (declaring an experiment). Give it "
            "some, or leave the arm out with where=."
        )
    check_devset(split.train, program, f"train of datasets[{arm['dataset']!r}]")
    if split.dev:
        check_devset(split.dev, program, f"dev of datasets[{arm['dataset']!r}]")
    optimizer: Optimizer = search.optimizer
    type(optimizer).check_options(optimizer, program, search.options)
