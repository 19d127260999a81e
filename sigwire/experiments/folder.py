"""The folder of an experiment: its lock, its files, and what is finished in it.

    experiment.json                     the record (``record``)
    experiment.lock                     held by the process that runs
    points/<labels>-s<seed>-<8 hex>/    program.json, search.jsonl (journal), records.jsonl (log), and two cassettes

``program.json`` is written when the search of a point has ended, ``records.jsonl`` ends with its last row: so a point that was
killed at any moment is found again, and what is finished of it is not paid for twice.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sigwire.cassettes.cassette import Cassette, CassetteMode
from sigwire.core.json import JsonObject, dumps
from sigwire.core.narrow import is_object
from sigwire.errors import ConfigurationError, DataError, InputError, StateError
from sigwire.evaluate.figures.stored_run import load_run
from sigwire.evaluate.result import EvaluationResult
from sigwire.experiments.point import AXES, Grid, MeasuredPoint, Point, arm_name
from sigwire.experiments.record import FORMAT, KEYS, check_record, labels_of, text_of
from sigwire.files.lock import HeldFile
from sigwire.files.whole import write_whole
from sigwire.modules.programs.files import write_program
from sigwire.optimizers.reports.report import OptimizationReport

if TYPE_CHECKING:
    from sigwire.experiments.result import ExperimentResult
    from sigwire.modules.module import Module

__all__ = [
    "ExperimentFolder",
    "PointFiles",
    "finished_points",
    "keeps_student",
    "load_experiment",
    "made_result",
    "point_key",
    "points_of",
    "read_record",
    "result_of",
    "searches_of",
    "twins_of",
]

RECORD, LOCK = "experiment.json", "experiment.lock"
_MOST_CHARACTERS = 60


@contextmanager
def writing(path: Path) -> Generator[None]:
    """Make the folder of a file; translate the errors of its disk."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise StateError(
            f"{path} cannot be written: {error.strerror or error} (running an experiment). Free space on its disk, then run "
            "again with the same folder: what is finished is kept."
        ) from error


class PointCassette(Cassette):
    """The cassette of a search or a measurement that goes on: questions whose provider failed are asked again."""

    def __init__(self, path: Path, mode: CassetteMode) -> None:
        super().__init__(path, mode)
        self._options = replace(self._options, asks_again=True)


class PointFiles:
    """The files of a point."""

    def __init__(self, folder: Path, point: Point) -> None:
        self.folder = folder / "points" / point_key(point)
        self.program, self.search = self.folder / "program.json", self.folder / "search.jsonl"
        self.records = self.folder / "records.jsonl"

    def make(self) -> None:
        """Make the folder of the point."""
        with writing(self.program):
            return

    def cassette(self, name: str, mode: CassetteMode = "new") -> PointCassette:
        """Return the cassette of "search" or "test"."""
        return PointCassette(self.folder / f"{name}.cassette.jsonl", mode)

    def save(self, program: Module) -> None:
        """Write the program of a point: whole if its class can be written, else its state, else why there is none."""
        with writing(self.program):
            try:
                write_program(program, self.program)  # a load may refuse its model: no advice for a file of a run
            except StateError as error:
                try:
                    state: JsonObject = {"state": program.dump_state()}
                except (StateError, TypeError, ValueError):
                    state = {}
                write_whole(self.program, dumps({"why_not_whole": str(error), **state}))

    @property
    def has_search(self) -> bool:
        """Whether the search of the point has ended."""
        return self.program.exists() and self.search.exists()

    def report(self) -> OptimizationReport | None:
        """Return the report of the finished search, ``None`` without one."""
        if not self.has_search:
            return None
        try:
            return OptimizationReport.load(self.search)
        except InputError:
            return None

    def measured(self, runs: int, program: object = None) -> EvaluationResult | None:
        """Return the measurement, if all of its runs are finished. ``program``: for the types of its fields."""
        if not self.records.exists() or not self.records.stat().st_size:
            return None
        try:
            found = load_run(self.records, program)
        except DataError:  # its first line was torn, by a kill or a full disk: the measurement starts again
            return None
        is_whole = found.status == "complete" and len(found.records) == runs
        if not is_whole or any(record.is_run_again or record.is_unscored for record in found.records):
            return None
        return EvaluationResult.of(found)


def point_key(point: Point) -> str:
    """Return the name of the folder of a point. Labels that are added to an axis do not change it.

    >>> labels = dict.fromkeys(AXES, "default") | {"program": "cot", "optimizer": "GEPA 2"}
    >>> point_key(Point(labels, "cot", 3)).rpartition("-")[0]
    'cot-gepa-2-s3'
    """
    labels = [point.labels[axis] for axis in AXES]
    parts = [re.sub(r"[^a-z0-9]+", "-", each.lower()).strip("-") for each in labels if each not in ("default", "none")]
    text = "-".join(filter(None, parts))[:_MOST_CHARACTERS].strip("-") or "default"
    return f"{text}-s{point.seed}-{sha256(dumps([*labels, point.seed]).encode()).hexdigest()[:8]}"


def finished_points(folder: Path, experiment: Grid) -> dict[str, MeasuredPoint]:
    """Return the finished points of an experiment in a folder, by key."""
    runs = {label: experiment.repeat * len(split.test) for label, split in experiment.datasets.items()}
    return stored_points(folder, experiment.points, searches_of(experiment), runs)


def searches_of(experiment: Grid) -> list[str]:
    """Return the labels of the optimizers that search."""
    return [label for label, search in experiment.optimizers.items() if search is not None]


def stored_points(
    folder: Path, points: Sequence[Point], searches: Collection[str], runs: Mapping[str, int]
) -> dict[str, MeasuredPoint]:
    """Return the finished points of a folder, by key. ``runs``: of a measurement, by data set.

    ``searches``: the labels of optimizers. A search that kept its student has the measurement of the arm without one.
    """
    found: dict[str, MeasuredPoint] = {}
    twins = twins_of(points, searches)
    for point in sorted(points, key=lambda each: each.labels["optimizer"] in searches):
        files, is_search = PointFiles(folder, point), point.labels["optimizer"] in searches
        try:
            report = files.report() if is_search else None
            if is_search and report is None:
                continue
            evaluation = files.measured(runs[point.labels["dataset"]])
        except ConfigurationError as error:
            raise ConfigurationError(f"A point cannot be read (in {files.folder}): {error}") from error
        if evaluation is not None:
            found[point_key(point)] = MeasuredPoint(point, evaluation, report, files.folder)
        elif report is not None and keeps_student(report) and (twin := found.get(twins.get(point_key(point), ""))):
            found[point_key(point)] = MeasuredPoint(point, twin.evaluation, report, files.folder, shared=True)
    return found


def twins_of(points: Sequence[Point], searches: Collection[str]) -> dict[str, str]:
    """Return for each point with a search the one without that differs from it in nothing else, if there is one, by key."""

    def rest(point: Point) -> tuple[object, ...]:
        return (point.seed, *(point.labels[axis] for axis in AXES if axis != "optimizer"))

    plain = {rest(point): point_key(point) for point in reversed(points) if point.labels["optimizer"] not in searches}
    found = {point_key(point): plain.get(rest(point)) for point in points if point.labels["optimizer"] in searches}
    return {key: twin for key, twin in found.items() if twin is not None}


def keeps_student(report: OptimizationReport) -> bool:
    """Return True if the program of a search is its student."""
    return report.winner.digest == report.baseline.digest


class ExperimentFolder:
    """The folder of an experiment under way, which no other process can use. ``record``: what stands in it.

    Raises ``ConfigurationError``, before anything is written, if it is in use or of another experiment. A folder that is not
    there is made; its lock is all that a refused run leaves.
    """

    def __init__(self, path: str | os.PathLike[str], record: JsonObject) -> None:
        self.path = Path(path)
        old = read_record(self.path)
        if old is not None:
            check_record(old, record, str(self.path))
        elif self.path.exists() and (not self.path.is_dir() or any(each.name != LOCK for each in self.path.iterdir())):
            raise ConfigurationError(
                f"{self.path} is no folder of an experiment (opening it): it has other files. Name a folder that is empty, or "
                "one that is not there."
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = HeldFile(self.path / LOCK)
        except BlockingIOError:
            raise ConfigurationError(
                f"{self.path} is in use by another run of the experiment (opening the folder). Wait for its end, or name "
                "another folder."
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be written (opening the folder of an experiment): {error.strerror}. Name another folder."
            ) from error
        try:  # another run may have ended between the first look and the lock
            self.record = read_record(self.path)
            if self.record is not None and self.record != old:
                check_record(self.record, record, str(self.path))
        except BaseException:
            self.close()
            raise

    def write(self, record: JsonObject) -> None:
        """Replace the record. Raises ``StateError`` if it cannot be written; the old one is whole then."""
        with writing(self.path / RECORD):
            write_whole(self.path / RECORD, text_of(record))
        self.record = record

    def close(self) -> None:
        """Free the folder."""
        self._lock.close()


def read_record(folder: Path) -> JsonObject | None:
    """Return the record of a folder; ``None`` if there is none. Raises ``ConfigurationError`` for a file that is no record."""
    path = folder / RECORD
    try:
        data: object = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{path} is no record of an experiment (reading it): {error}. Name another folder."
        ) from error
    if not is_object(data) or data.get("type") != "experiment":
        raise ConfigurationError(f"{path} is no record of an experiment (reading it). Name another folder.")
    if data.get("format") == FORMAT and (lacking := ", ".join(name for name in KEYS if name not in data)):
        raise ConfigurationError(
            f"{path} is no whole record of an experiment: it lacks {lacking} (reading it). Restore the file, or name another "
            "folder."
        )
    return data


def load_experiment(folder: str | os.PathLike[str]) -> ExperimentResult:
    """Return the result of the experiment in a folder, as its ``run`` did. No model is called, and no program is needed.

    Values of examples and predictions are JSON data, as of ``load_records``. Raises ``ConfigurationError`` if the folder has no
    experiment.
    """
    path = Path(folder)
    record = read_record(path)
    if record is None:
        raise ConfigurationError(
            f"{os.fspath(folder)!r} has no experiment (loading it in {Path.cwd()}): there is no {RECORD}. Pass the folder of a "
            "run, absolute or from this folder."
        )
    return result_of(path, record)


def result_of(path: Path, record: Mapping[str, Any]) -> ExperimentResult:
    """Return the result of a folder by its record."""
    check_record(record, record, str(path))
    points = points_of(record)
    searches = [label for label, parts in record["fingerprint"]["labels"]["optimizer"].items() if parts]
    repeat = int(record["options"]["repeat"])
    runs = {label: repeat * int(data["test"]["n"]) for label, data in record["data"].items()}
    return made_result(path, record, points, stored_points(path, points, searches, runs))


def points_of(record: Mapping[str, Any]) -> tuple[Point, ...]:
    """Return the points of a record."""
    axes = labels_of(record)
    arms = [dict(zip(AXES, map(str, labels), strict=True)) for labels in record["arms"]]
    return tuple(Point(arm, arm_name(axes, arm), int(seed)) for seed in record["seeds"] for arm in arms)


def made_result(
    path: Path, record: Mapping[str, Any], points: Sequence[Point], found: Mapping[str, MeasuredPoint]
) -> ExperimentResult:
    """Return the result of some points of a record."""
    from sigwire.experiments.result import ExperimentResult  # plans do not need it

    keys = [point_key(point) for point in points]
    missing = [point for key, point in zip(keys, points, strict=True) if key not in found]
    return ExperimentResult(
        labels_of(record),
        tuple(record["seeds"]),
        [found[key] for key in keys if key in found],
        metrics=tuple(dict.fromkeys(name for each in found.values() for name in each.evaluation.metrics))
        or tuple(record["metrics"]),
        missing=missing,
        status="partial" if missing else "complete",
        folder=path,
        record=cast("JsonObject", dict(record)),
        confidence=float(record["options"]["interval"]),
    )
