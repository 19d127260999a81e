"""Records of an evaluation: a file of JSON lines, one line a finished example, and resuming from it.

    {"type": "run", "format": 1, ...}     the header: program, model, devset, metrics, and the fingerprint of what decides them
    {"type": "segment", ...}              the header of a run that was resumed, in front of its records
    {"type": "record", "id": ..., ...}    an example, written when it is finished
    {"type": "end", "status": ..., ...}

A reader ignores unknown types and members, and drops a torn last line. A file may hold several runs; the last one counts.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, cast

from sigwire.core.json import JsonObject, JsonValue, decode_fields, decoding
from sigwire.core.lazy import version
from sigwire.core.narrow import is_object
from sigwire.errors import ConfigurationError, StateError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.fingerprint.identity import differences, run_fingerprint
from sigwire.evaluate.fingerprint.reading import package_version
from sigwire.evaluate.plain import plain_value
from sigwire.files.lines import BrokenLine, LineFile, read_lines
from sigwire.lm.secrets import storable_options
from sigwire.modules.module import Module
from sigwire.modules.tree.walk import Predictor
from sigwire.settings import current

__all__ = [
    "ExampleRecord",
    "FinishedKeys",
    "RecordFile",
    "finished_records",
    "job_header",
    "last_run",
    "reading_records",
    "run_header",
    "segment_header",
    "utc_now",
]

FORMAT = 1
_RETRIED = frozenset({"provider", "metric", "caller"})  # kinds of failures that a resumed run runs again


@dataclass(frozen=True, slots=True)
class ExampleRecord:
    """One run on one example. ``index``: its position in the devset; ``repeat``: from 1; ``started``: a time in UTC.

    ``inputs`` and ``labels`` are JSON; media are references. ``kept``: read from the file of an earlier run.
    """

    id: str
    index: int
    repeat: int
    inputs: JsonObject
    labels: JsonObject
    cell: Cell = field(default_factory=lambda: Cell(None))
    started: str = ""
    kept: bool = False

    @property
    def outputs(self) -> JsonObject | None:
        """The outputs of the program, ``None`` if it failed."""
        return self.cell.outputs

    @property
    def score(self) -> float | None:
        """The score, ``None`` if there is none."""
        return self.cell.score

    @property
    def is_unscored(self) -> bool:
        """The program answered, and the metric failed."""
        return self.cell.outputs is not None and self.cell.failure is not None and self.cell.failure.kind == "metric"

    @property
    def feedback(self) -> str:
        """The feedback of the metric."""
        return self.cell.feedback

    def to_json(self) -> JsonObject:
        """Return the record as the JSON of its line; the members of the cell stand beside those of the record."""
        place: JsonObject = {"type": "record", "id": self.id, "index": self.index, "repeat": self.repeat}
        return {
            **place,
            "inputs": self.inputs,
            "labels": self.labels,
            **self.cell.to_json(),
            "started": self.started,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, kept: bool = True) -> Self:
        """Decode the result of ``to_json``. Unknown members are ignored."""
        cell = Cell.from_json(data)
        read = decode_fields(_RecordPlace, data, ignores_unknown=True)
        return cls(**{**read, "id": str(read["id"])}, cell=cell, kept=kept)


@dataclass(frozen=True)
class _RecordPlace:
    """The members of a record that stand beside those of its cell."""

    id: str | int
    index: int
    repeat: int
    inputs: JsonObject
    labels: JsonObject
    started: str = ""


class RecordFile:
    """A file of JSON lines that one writer appends to (``sigwire/files/lines.py``). ``rows``: those it had when it was opened.

    ``visit`` is given them one at a time instead: a file may be larger than the memory.
    ``append`` is thread-safe. Raises ``ConfigurationError`` if another writer has the file open.
    """

    def __init__(self, path: str | os.PathLike[str], visit: Callable[[JsonObject], object] | None = None) -> None:
        self.path = Path(path)

        def take(row: object) -> None:
            if is_object(row):
                (visit or self.rows.append)(row)

        self.rows: list[JsonObject] = []
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = LineFile(self.path, drops_last=True, visit=take)
        except BlockingIOError:
            raise ConfigurationError(
                f"{self.path.name} is open in another evaluation or search (opening it). Wait for its end, or name another "
                "file."
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} is no file that can be written (opening records): {error.strerror}. Pass another path."
            ) from error
        except BrokenLine as error:
            raise _broken_line(self.path, error) from error

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> list[JsonObject]:
        """Return the rows of a file without opening it for writing; a torn last line is dropped.

        Raises ``ConfigurationError`` if there is no such file.
        """
        try:
            return [row for row in read_lines(Path(path), drops_last=True) if is_object(row)]
        except OSError as error:
            raise ConfigurationError(
                f"{os.fspath(path)!r} is no file that can be read (reading records in {Path.cwd()}): {error.strerror}. Pass "
                "the path of a log, absolute or from this folder."
            ) from error
        except BrokenLine as error:
            raise _broken_line(Path(path), error) from error

    def append(self, row: Mapping[str, JsonValue]) -> None:
        """Write one row. Does nothing after ``close``: a late thread of an interrupted run may call it."""
        self._file.append(_text(row))

    def sync(self) -> None:
        """Return when all rows are on disk."""
        self._file.sync()

    def close(self) -> None:
        """Sync and close the file."""
        self._file.close()


def _text(row: Mapping[str, JsonValue]) -> str:
    try:
        return json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return _text(cast(JsonObject, plain_value(row)))


def _broken_line(path: Path, error: BrokenLine) -> ConfigurationError:
    return ConfigurationError(
        f"Line {error.number} of {path.name} is no JSON (reading it): {error.why}. Repair it, or name another file."
    )


@contextmanager
def reading_records(path: str | os.PathLike[str]) -> Generator[None]:
    """Inside the block, a line of another shape is a ``StateError`` with the name of the file."""
    try:
        with decoding("a record"):
            yield
    except StateError as error:
        raise StateError(
            f"{os.fspath(path)} has a line that no evaluation wrote: {error} Repair the line, or name another file."
        ) from error


# --- headers and resuming


def run_header(
    program: object, ids: Sequence[str], metrics: Mapping[str, object], repeat: int, reduce: str
) -> JsonObject:
    """Return the header of a run: what decides its records, without secrets. The state is that of ``dump_state``."""
    settings = current()
    return {
        "type": "run",
        "format": FORMAT,
        "sigwire": version(),
        "started": utc_now(),
        "program": {"class": _name_of(program), "state": _digest(_state_of(program))},
        "lm": _model_of(program),
        "devset": {"n": len(ids), "ids": _digest(list(ids))},
        "metrics": list(metrics),
        "fingerprint": run_fingerprint(program, settings.lm, settings.adapter, metrics),
        "adapter": None if settings.adapter is None else repr(settings.adapter),
        "texts": _texts_of(program),
        "python": platform.python_version(),
        "packages": {name: package_version(name) for name in _DECIDING},
        "repeat": repeat,
        "reduce": reduce,
    }


def job_header(job: JsonObject, repeat: int) -> JsonObject:
    """Return the header of a run of a job, whose devset is drawn lazily. ``job``: that of ``Job.to_json``."""
    program, lm = job["program"], job["lm"]
    model: JsonObject = {"model": lm}
    if is_object(lm):
        model = {name: value for name, value in lm.items() if name not in _REACHING}
    name: JsonValue = program.get("$program") if is_object(program) else str(program).replace(":", ".")
    return {
        "type": "run",
        "format": FORMAT,
        "sigwire": version(),
        "started": utc_now(),
        "program": {"class": name, "state": _digest([program, job["state"], job["adapter"], job["settings"]])},
        "lm": {"model": model.pop("model", None), "options": model},
        "devset": {"n": None, "ids": None},
        "metrics": [str(path).rpartition(":")[2] for path in cast("list[str]", job["metrics"])],
        "repeat": repeat,
        "reduce": "mean",
    }


def finished_records(
    rows: Iterable[JsonObject], header: JsonObject, path: Path, *, resume: object, unscored: bool = False
) -> dict[tuple[str, int], ExampleRecord] | None:
    """Return the records of the last run of a file that a resumed run keeps; ``None`` if the file needs the new header.

    A record with a failure of the provider is run again, and with one of the metric unless ``unscored``: the caller scores its
    outputs. Raises ``ConfigurationError`` with the names of the
    differences from the last header, unless ``resume`` is "append" or False; with "force" they enter ``header`` as "forced".
    """
    run = last_run(rows)
    if not run or resume is False:
        return None
    last_header = next(row for row in reversed(run) if row.get("type") in ("run", "segment"))
    if not _goes_on(last_header, header, path, resume):
        return None
    with reading_records(path):
        records = [ExampleRecord.from_json(row) for row in run if row.get("type") == "record"]
    last = {(record.id, record.repeat): record for record in records}
    return {
        key: record for key, record in last.items() if not _is_retried(record.cell) or (unscored and record.is_unscored)
    }


class FinishedKeys:
    """The rows that a resumed run keeps, as ``finished_records``, for a file that is read line by line: their digests only.

    ``add`` takes each line. ``keys``: the result of ``digest`` for each row that is kept; ``is_empty``: the file has no line.

    >>> finished = FinishedKeys(lambda row: row["index"])
    >>> for line in ({"type": "run"}, {"type": "record", "index": 7, "score": None}):
    ...     finished.add(line)
    >>> finished.keys
    {7}
    """

    def __init__(self, digest: Callable[[JsonObject], int]) -> None:
        self.keys, self.is_empty = set[int](), True
        self._digest = digest
        self._header: JsonObject | None = None

    def add(self, row: JsonObject) -> None:
        """Take the next line of the file."""
        self.is_empty, kind = False, row.get("type")
        if kind == "run":
            self._header = row
            self.keys.clear()
        elif self._header is not None and kind == "segment":
            self._header = row
        elif self._header is not None and kind == "record":
            (self.keys.discard if _is_retried(Cell.from_json(row)) else self.keys.add)(self._digest(row))

    def goes_on(self, header: JsonObject, path: Path) -> bool:
        """Return False if the file has no run. Raises ``ConfigurationError`` if its last one is that of another job."""
        return self._header is not None and _goes_on(self._header, header, path, True)


def _goes_on(last_header: JsonObject, header: JsonObject, path: Path, resume: object) -> bool:
    """Return True if the run of ``header`` keeps records of the run of ``last_header``."""
    if found := _differences(last_header, header):
        if resume == "append":
            return False
        if resume != "force":
            raise ConfigurationError(
                f"{path.name} has the records of another run: {'; '.join(found)} (opening the log). Pass another log=, "
                'resume="append" to add this run to the file, or resume="force" to keep its records all the same.'
            )
        header["forced"] = [*found]
    return True


def _is_retried(cell: Cell) -> bool:
    return cell.failure is not None and cell.failure.kind in _RETRIED


def last_run(rows: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the header of the last run and the rows behind it."""
    run: list[JsonObject] = []
    for row in rows:
        if row.get("type") == "run":
            run = [row]
        elif run:
            run.append(row)
    return run


def segment_header(header: Mapping[str, JsonValue]) -> JsonObject:
    """Return the line of a run that goes on with the records of ``header``'s file: under another commit, with more examples."""
    return {**header, "type": "segment"}


def _differences(old: JsonObject, new: JsonObject) -> list[str]:
    """Return what decides records and differs; the devset may grow. Files of earlier versions have no fingerprint."""
    before, after = old.get("fingerprint"), new.get("fingerprint")
    found: list[str] = []
    names: tuple[str, ...] = ("format", "program", "lm", "metrics")
    if is_object(before) and is_object(after):
        names, found = ("format", "metrics"), differences(before, after)
    return [*[f"{path} differs" for path in _differing(names, old, new)], *found]


def _differing(names: Iterable[str], old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return the paths of the first members that differ."""
    found: list[str] = []
    for name in names:
        one, other = old.get(name), new.get(name)
        if one == other:
            continue
        if is_object(one) and is_object(other):
            found.append(f"{name}.{next(key for key in {**one, **other} if one.get(key) != other.get(key))}")
        else:
            found.append(name)
    return found


def _name_of(program: object) -> str:
    cls = program if hasattr(program, "__qualname__") else type(program)
    return f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', '')}"


def _state_of(program: object) -> JsonValue:
    """Return what decides the answers: the state without traces, and of each model its name and options."""
    if not isinstance(program, Module):
        return None
    try:
        state: JsonObject = program.dump_state()
    except Exception:  # a demo without a JSON form
        return None
    parts: JsonObject = {"self": state} if isinstance(program, Predictor) else state
    configs = {name: storable_options(predictor.config) for name, predictor in program.named_predictors()}
    return [{name: _deciding_parts(part) for name, part in parts.items()}, plain_value(configs)]


def _deciding_parts(part: JsonValue) -> JsonValue:
    if not is_object(part):
        return part
    kept = {name: value for name, value in part.items() if name not in ("lm", "traces", "train")}
    lm = part.get("lm")
    model = {name: value for name, value in lm.items() if name not in _REACHING} if is_object(lm) else None
    return {**kept, "lm": model}


_REACHING = frozenset("api_key base_url cache class headers limit num_retries price retry timeout transport".split())
"""Settings of a model that may change between a run and its resumption."""


def _model_of(program: object) -> JsonObject:
    lm: Any = None
    with suppress(ConfigurationError):  # predictors with different models: their states have them
        lm = program.get_lm() if isinstance(program, Module) else None
    lm = lm or current().lm
    options = storable_options(getattr(lm, "kwargs", None) or {})
    return {
        "model": None if lm is None else str(getattr(lm, "model", type(lm).__name__)),
        "options": {name: value for name, value in options.items() if value is not None},
    }


_DECIDING = ("pydantic", "jsonschema")  # those whose version can change an answer


def _texts_of(program: object) -> JsonObject:
    """Return the instructions of the predictors of a program, as the model reads them."""
    if not isinstance(program, Module):
        return {}
    return {name: str(predictor.signature.instructions) for name, predictor in program.named_predictors()}


def _digest(value: object) -> str:
    text = json.dumps(plain_value(value), sort_keys=True, separators=(",", ":"))
    return f"sha256:{sha256(text.encode()).hexdigest()[:32]}"


def utc_now() -> str:
    """Return the time in UTC, to the millisecond."""
    seconds = time.time()
    return f"{_second_text(int(seconds))}.{int(seconds % 1 * 1000):03d}Z"


@lru_cache(maxsize=1)
def _second_text(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
