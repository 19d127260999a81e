"""The values of the axes of an experiment: what each option may be, and what does not fit together, refused before any call.

Every axis is a mapping of labels; an axis that is not given has the one label ``default`` (``none`` for optimizers).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from sigwire.core.narrow import is_mapping
from sigwire.data.splitting import DataSplit, leaked
from sigwire.errors import ConfigurationError, InputError, SigwireError, suggest
from sigwire.evaluate.examples import check_devset, check_program
from sigwire.experiments.point import AXES, SEPARATOR, Grid, arm_name
from sigwire.modules.module import Module
from sigwire.optimizers.optimizer import Optimizer
from sigwire.settings import current

__all__ = ["OPTION_OF", "Search", "check_grid", "checked_seeds", "labelled_values", "set_models"]

OPTION_OF = {
    "program": "programs", "dataset": "datasets", "model": "models", "adapter": "adapters", "options": "options",
    "wording": "wordings", "optimizer": "optimizers",
}  # fmt: skip
"""The option of each axis."""


@dataclass(frozen=True, slots=True)
class Search:
    """An optimizer of the grid. ``options``: those of ``compile``; ``teacher``: one of them."""

    optimizer: Optimizer
    options: Mapping[str, Any]
    teacher: Module | None = None


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


def labelled_values(name: str, value: object) -> dict[str, Any]:
    """Return the labels of an axis with their values: programs and optimizers are copied. ``name``: the option."""
    make, values = _MADE.get(name), _labelled(name, value)
    return values if make is None else {label: make(label, each) for label, each in values.items()}


def _labelled(name: str, value: object) -> dict[str, Any]:
    if value is None:
        return {"none" if name == "optimizers" else "default": None}
    if _ALONE[name](value):
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


def checked_seeds(given: object) -> tuple[int, ...]:
    """Return the seeds, distinct whole numbers; one may stand alone."""
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


def _copied(label: str, program: Any) -> Any:
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


_MADE: Mapping[str, Callable[[str, Any], Any]] = {"programs": _copied, "optimizers": _search_of}


def set_models(program: Module, model: Any) -> None:
    """Set the model of all predictors of a program, or those of some by their names."""
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


def check_grid(experiment: Grid) -> None:
    """Raise ``ConfigurationError`` or ``InputError`` for what cannot be run."""
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


def _checked_program(experiment: Grid, arm: Mapping[str, str]) -> object:
    """Return the program of an arm. Raises ``ConfigurationError`` with the labels that do not fit each other."""
    program = experiment.programs[arm["program"]]
    check_program(program)
    parts = {option: getattr(experiment, option)[arm[axis]] for axis, option in OPTION_OF.items()}
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


def _check_arm(experiment: Grid, arm: Mapping[str, str], program: object) -> None:
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
