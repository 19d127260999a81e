"""``reproduce``: run an experiment again from its files, with the recorded answers or with new ones, and compare.

With the recorded answers, searches and measurements run as they did, without journal and log: only the answers are old. A point
is the same if its search finds the same winner, and its measurement has the same outputs and scores. With new answers the whole
experiment runs into another folder, and arms are compared with theirs by rows and seeds.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigwire.cassettes.errors import CassetteMiss
from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_object
from sigwire.effects.steps import run
from sigwire.errors import ConfigurationError
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.running.run import EvaluationAborted
from sigwire.experiments.comparing import compare_arms
from sigwire.experiments.experiment import Experiment
from sigwire.experiments.folder import PointFiles, load_experiment, read_record
from sigwire.experiments.point import MeasuredPoint
from sigwire.experiments.record import changes_of, environment, record_of
from sigwire.jobs.paths import load_path
from sigwire.settings import context
from sigwire.show.card import BoundedRepr
from sigwire.show.cleaning import inline
from sigwire.show.numbers import count

if TYPE_CHECKING:
    from sigwire.evaluate.comparison import Comparison
    from sigwire.experiments.result import ExperimentResult

__all__ = ["Reproduction", "reproduce"]

_MOST_NAMED = 3
_MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Reproduction(BoundedRepr):
    """The outcome of running an experiment again: ``reproduce``.

    ``ok``: nothing differs. ``same``: the points, or with new answers the arms, that are; ``differs``: sentences about the
    others, with rows, the winner or the missing cassette; ``changed``: what differs between the record and this process.
    ``comparison``: of the arms, with new answers; ``smallest``: the smallest difference that it could show.

    >>> print(Reproduction(("cot, seed 0",), (), ("sigwire was 0.1, is 0.2",)))
    the same: 1 point
    changed since: sigwire was 0.1, is 0.2
    """

    same: tuple[str, ...]
    differs: tuple[str, ...]
    changed: tuple[str, ...]
    comparison: Comparison | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return not self.differs

    @property
    def smallest(self) -> float | None:
        """The smallest difference of an arm that the comparison shows in four of five cases; ``None`` if nothing varies."""
        found = [] if self.comparison is None else [each.difference.smallest for each in self.comparison.differences]
        return max((each for each in found if each is not None), default=None)

    def __str__(self) -> str:
        name = "point" if self.comparison is None else "arm"
        lines = [f"the same: {count(len(self.same), name)}", *(f"differs: {each}" for each in self.differs)]
        if self.smallest is not None:
            lines.append(f"differences of {self.smallest:.3f} or more would be shown")
        return "\n".join([*lines, *(f"changed since: {each}" for each in self.changed)])


def reproduce(
    folder: str | os.PathLike[str],
    experiment: Experiment | None = None,
    *,
    live: bool = False,
    out: str | os.PathLike[str] | None = None,
) -> Reproduction:
    """Run the finished points of a folder again and compare. No call is made, unless ``live``.

    ``experiment``: the declaration; default: the one that the record names, if the command line ran it. ``live``: ask the
    models again (no stored answer is read), into the folder ``out``; arms are then the same if no difference is shown, by rows
    and seeds, with Holm's adjustment. Raises ``ConfigurationError`` without a declaration, or if the folder has no experiment.
    """
    result = load_experiment(folder)
    record: Mapping[str, Any] = result.record or {}
    if experiment is None:
        experiment = _declared(record, folder)
    changed = (*changes_of(record, record_of(experiment)), *_moved(record))
    if live:
        return _live(result, experiment, out, changed)
    same: list[str] = []
    differs: list[str] = []
    for measured in result.measured:
        name = f"{measured.point.arm}, seed {measured.point.seed}"
        found = _difference(Path(folder), experiment, measured)
        if found is None:
            same.append(name)
        else:
            differs.append(f"{name}: {found}")
    return Reproduction(tuple(same), tuple(differs), changed)


def _declared(record: Mapping[str, Any], folder: object) -> Experiment:
    source = record.get("source")
    if source is None:
        raise ConfigurationError(
            f"The record of {folder} names no declaration (reproducing it): it was not run from the command line. Write "
            "reproduce(folder, experiment)."
        )
    try:
        found = load_path(str(source))
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"{source}, which the record of {folder} names, cannot be imported (reproducing it): {error}. Run in the folder of "
            "the module, or write reproduce(folder, experiment)."
        ) from error
    if not isinstance(found, Experiment):
        raise ConfigurationError(
            f"{source} is no Experiment but a {type(found).__name__} (reproducing {folder}). Write "
            "reproduce(folder, experiment)."
        )
    return found


def _moved(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs of the environment from those of the runs, each once, the last run first."""
    here = environment()
    yield from dict.fromkeys(phrase for each in reversed(record["environments"]) for phrase in _differences(each, here))


def _differences(old: JsonObject, new: JsonObject) -> Iterator[str]:
    for name in ("sigwire", "python", "platform"):
        if old.get(name) != new.get(name):
            yield f"{name} was {old.get(name)}, is {new.get(name)}"
    before, now = (_versions(each) for each in (old, new))
    packages = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name) and name != "sigwire"]
    if packages:
        more = f" and {len(packages) - _MOST_NAMED} more" if len(packages) > _MOST_NAMED else ""
        yield f"versions of packages: {', '.join(packages[:_MOST_NAMED])}{more}"
    git, here = old.get("git"), new.get("git")
    if is_object(git) and is_object(here):
        for name in ("commit", "difference"):
            if git.get(name) != here.get(name):
                yield f"{name} of the repository was {_short(git.get(name))}, is {_short(here.get(name))}"


def _short(value: object) -> str:
    return "none" if value is None else str(value)[:10]


def _versions(found: Mapping[str, Any]) -> dict[str, str]:
    packages = found.get("packages")
    listed: list[str] = packages.get("list", []) if is_object(packages) else []
    return {name: version for name, _, version in (str(each).partition("==") for each in listed)}


# --- with the recorded answers


def _difference(folder: Path, experiment: Experiment, measured: MeasuredPoint) -> str | None:
    """Run a point with its recorded answers; return what differs from its records, ``None`` if nothing does."""
    point, files = measured.point, PointFiles(folder, measured.point)
    known = experiment.axes
    if missing := [f"{axis} `{label}`" for axis, label in point.labels.items() if label not in known[axis]]:
        return f"the declaration has no {', '.join(missing)}"
    needed = ["search"] * (measured.search is not None) + ["test"] * (not measured.shared)
    for name in needed:
        if not (path := files.cassette(name).path).exists():
            return f"{path.name} is missing: the answers cannot be replayed"
    with context(**experiment.settings_of(point)), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of lines that a changed run does not use: what differs is named
        try:
            return _replayed(experiment, measured, files)
        except CassetteMiss as miss:
            return _missed(miss)


def _replayed(experiment: Experiment, measured: MeasuredPoint, files: PointFiles) -> str | None:
    labels = measured.point.labels
    program = experiment.program_of(labels)
    if experiment.optimizers[labels["optimizer"]] is not None and measured.search is not None:
        with files.cassette("search", "replay"):
            program = run(experiment.search_steps(measured.point, program, journal=None))
        if program.optimization.winner != measured.search.winner:
            changes = program.optimization.winner.changes(measured.search.winner)
            return f"the winner of the search differs in {_parts(changes)}"
    if measured.shared:
        return None
    try:
        with files.cassette("test", "replay"):
            found = run(experiment.evaluate(labels).steps(program))
    except EvaluationAborted as error:
        partial = error.result
        rows = "" if partial is None else _different_rows(measured.evaluation, partial, only=partial)
        if isinstance(error.__cause__, CassetteMiss):
            return "; ".join(filter(None, (_missed(error.__cause__), rows)))
        return inline(str(error), _MOST_CHARACTERS)
    return _different_rows(measured.evaluation, found) or None


def _parts(changes: JsonObject) -> str:
    names = [f"{part} {name}" for part, found in changes.items() for name in (found if is_object(found) else {})]
    return ", ".join(names[:_MOST_NAMED]) or "its parts"


def _missed(miss: CassetteMiss) -> str:
    place = getattr(miss, "where", None)
    row = getattr(place, "example", None)
    what = str(miss).partition("(replaying")[0].partition(" has no line for this: ")[2].strip()
    text = (
        f"a question was not recorded: {inline(what, _MOST_CHARACTERS)}"
        if what
        else inline(str(miss), _MOST_CHARACTERS)
    )
    return f"row {row}: {text}" if row is not None else text


def _different_rows(old: EvaluationResult, new: EvaluationResult, only: EvaluationResult | None = None) -> str:
    """Return which rows have other outputs or scores, as a phrase; "" if none has. ``only``: compare its rows alone."""
    before, now = (_by_key(each) for each in (old, new))
    keys = [key for key in before if only is None or key in now]
    outputs = [key for key in keys if key not in now or before[key].outputs != now[key].outputs]
    rest = [key for key in keys if key not in outputs]
    scores = [key for key in rest if _scores(before[key]) != _scores(now[key])]
    found = [
        f"other {what} in {count(len(different), 'row')}, {_rows_text(different)}"
        for what, different in (("outputs", outputs), ("scores", scores))
        if different
    ]
    return "; ".join(found)


def _scores(record: ExampleRecord) -> tuple[float | None, dict[str, float]]:
    return record.score, dict(record.cell.subscores)


def _by_key(result: EvaluationResult) -> dict[tuple[str, int], ExampleRecord]:
    return {(record.id, record.repeat): record for record in result.records}


def _rows_text(keys: list[tuple[str, int]]) -> str:
    names = [name if repeat == 1 else f"{name} (repeat {repeat})" for name, repeat in keys[:_MOST_NAMED]]
    return ", ".join(names) + (" …" if len(keys) > _MOST_NAMED else "")


# --- with new answers


def _live(
    result: ExperimentResult, experiment: Experiment, out: str | os.PathLike[str] | None, changed: tuple[str, ...]
) -> Reproduction:
    if out is None:
        raise ConfigurationError(
            "live=True runs the whole experiment, and needs a folder for it (reproducing). Write reproduce(folder, "
            'experiment, live=True, out="runs/again").'
        )
    is_same = result.folder is not None and Path(out).resolve() == result.folder.resolve()
    runs, others = ((found or {}).get("environments") for found in (result.record, read_record(Path(out))))
    if is_same or (runs and runs == others):
        raise ConfigurationError(
            f"out={os.fspath(out)!r} is the folder that is reproduced{'' if is_same else ', or a copy of it'} (reproducing): "
            "its answers would be compared with themselves. Name another folder."
        )
    with context(fresh=True):
        again = experiment.run(out)
    names = [name for name in result.arms if name in again.arms]
    pairs = [(result.arms[name], replace(again.arms[name], name=f"{name} again")) for name in names]
    missing = tuple(f"{name}: not measured again" for name in result.arms if name not in again.arms)
    if not pairs:
        return Reproduction((), missing or ("no arm was measured",), changed)
    comparison = compare_arms(pairs, [name for name in result.metrics if name in again.metrics])
    shown = [each for each in comparison.all if each.is_shown]
    differs = {each.baseline: f"{each.metric}: {each.sentence}" for each in reversed(shown)}
    same = tuple(name for name in names if name not in differs)
    return Reproduction(same, (*differs.values(), *missing), changed, comparison)
