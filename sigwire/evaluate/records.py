"""Records of an evaluation: a file of JSON lines, one line a finished example, and resuming from it.

    {"type": "run", "format": 1, ...}     the header: program, model, devset, metrics, and the fingerprint of what decides them
    {"type": "segment", ...}              the header of a part of a run that was resumed, in front of its records
    {"type": "omitted", "rows": [...]}    earlier records, by id and repeat, that are no part of the devset any more
    {"type": "record", "id": ..., ...}    an example, written when it is finished
    {"type": "end", "status": ..., ...}

A reader ignores unknown types and members, and drops a torn last line. A file may hold several runs; the last one counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, cast

from sigwire.core.json import JsonObject, JsonValue, decode_fields, decoding
from sigwire.core.narrow import is_object
from sigwire.errors import ConfigurationError, StateError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.fingerprint.identity import differences, run_fingerprint
from sigwire.evaluate.plain import Form, plain_value
from sigwire.evaluate.segments import surroundings, warn_of_unknown
from sigwire.files.lines import BrokenLine, LineFile, read_lines
from sigwire.files.spool import Spool
from sigwire.lm.secrets import storable_options
from sigwire.modules.module import Module
from sigwire.modules.predict import default_adapter
from sigwire.modules.tree.walk import Predictor
from sigwire.settings import current
from sigwire.show.card import BoundedRepr

__all__ = [
    "ExampleRecord",
    "FinishedKeys",
    "RecordFile",
    "finished_records",
    "headers_of",
    "job_header",
    "last_records",
    "last_run",
    "program_facts",
    "reading_records",
    "run_header",
    "segment_header",
]

FORMAT = 1
_RETRIED = frozenset({"provider", "metric", "caller"})  # kinds of failures that a resumed run runs again


@dataclass(frozen=True, slots=True)
class ExampleRecord(BoundedRepr):
    """One run on one example. ``index``: its position in the devset; ``repeat``: from 1; ``started``: a time in UTC.

    ``inputs`` and ``labels`` are JSON; media are references. ``kept``: read from the file of an earlier run. ``segment``: the
    part of a resumed run in which the program answered, from 0. ``forms``: the fields of the example that their declared types
    do not read back (``plain.Written``).
    """

    id: str
    index: int
    repeat: int
    inputs: JsonObject
    labels: JsonObject
    cell: Cell = field(default_factory=lambda: Cell(None))
    started: str = ""
    kept: bool = False
    segment: int = 0
    forms: Mapping[str, Form] = field(default_factory=dict[str, Form])

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
    def is_run_again(self) -> bool:
        """A resumed run runs the program again: the provider or the caller failed, or the metric without stored outputs."""
        return _is_retried(self.cell) and not self.is_unscored

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
            **({"example_forms": {**self.forms}} if self.forms else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, kept: bool = True, segment: int = 0) -> Self:
        """Decode the result of ``to_json``. Unknown members are ignored. ``segment``: the part in which the line stands."""
        cell = Cell.from_json(data)
        read: dict[str, Any] = {"segment": segment, **decode_fields(_RecordPlace, data, ignores_unknown=True)}
        forms = read.pop("example_forms", {})
        read["id"] = str(read["id"])
        return cls(**read, cell=cell, kept=kept, forms=forms)

    def line(self, segment: int) -> JsonObject:
        """Return the line of the record in a part of the file: another part is named if the program answered in it."""
        return self.to_json() if self.segment == segment else {**self.to_json(), "segment": self.segment}


@dataclass(frozen=True)
class _RecordPlace:
    """The members of a record that stand beside those of its cell."""

    id: str | int
    index: int
    repeat: int
    inputs: JsonObject
    labels: JsonObject
    started: str = ""
    segment: int = 0
    example_forms: Mapping[str, Form] = field(default_factory=dict[str, Form])


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
        **surroundings(with_git=False),
        "program": {"class": _name_of(program), "state": _digest(_state_of(program))},
        **program_facts(program),
        "devset": {"n": len(ids), "ids": _digest(list(ids))},
        "metrics": list(metrics),
        "fingerprint": run_fingerprint(program, settings.lm, settings.adapter, metrics),
        "repeat": repeat,
        "reduce": reduce,
    }


def program_facts(program: object, lm: object = None) -> JsonObject:
    """Return the facts of a header about a program, beside its fingerprint: models, their seed, the adapter, the instructions.

    ``lm``: the model that all of its predictors are given.
    """
    predictors = program.named_predictors() if isinstance(program, Module) else []
    asked = [(name, each.lm, each.config) for name, each in predictors] or [("", None, {})]
    return {
        **_model_facts({name: _model_of(lm or own or current().lm, config) for name, own, config in asked}),
        "adapter": repr(current().adapter or default_adapter()),
        "texts": {name: str(each.signature.instructions) for name, each in predictors},
    }


def _model_of(lm: Any, config: Mapping[str, Any]) -> JsonObject:
    """Return the name of a model and the options that its requests have."""
    options = {**storable_options(getattr(lm, "kwargs", None) or {}), **storable_options(config)}
    return {
        "model": None if lm is None else str(getattr(lm, "model", type(lm).__name__)),
        "options": {name: value for name, value in options.items() if value is not None},
    }


def _model_facts(models: Mapping[str, JsonObject]) -> JsonObject:
    """Return the models of a program and their seed, from the model of each predictor."""
    first, *others = models.values()
    found: JsonObject = (
        first
        if all(each == first for each in others)
        else {
            "model": ", ".join(dict.fromkeys(str(each["model"]) for each in models.values())),
            "options": {},
            "by_predictor": {**models},
        }
    )
    seeds = [each["options"].get("seed") if is_object(each["options"]) else None for each in models.values()]
    return {"lm": found, "seed": seeds[0] if all(seed == seeds[0] for seed in seeds) else None}


def job_header(job: JsonObject, repeat: int) -> JsonObject:
    """Return the header of a run of a job, whose devset is drawn lazily. ``job``: that of ``Job.to_json``."""
    program, parts = job["program"], _parts_of_state(job["state"])
    lms = {name: part.get("lm") or job["lm"] for name, part in parts.items()} or {"": job["lm"]}
    name: JsonValue = program.get("$program") if is_object(program) else str(program).replace(":", ".")
    return {
        "type": "run",
        "format": FORMAT,
        **surroundings(),
        "program": {"class": name, "state": _digest([program, job["state"], job["adapter"], job["settings"]])},
        **_model_facts({path: _model_of_state(lm) for path, lm in lms.items()}),
        "adapter": _adapter_of_job(job["adapter"]),
        "texts": {path: _instructions_of(part) for path, part in parts.items()},
        "devset": {"n": None, "ids": None},
        "metrics": [str(path).rpartition(":")[2] for path in cast("list[str]", job["metrics"])],
        "repeat": repeat,
        "reduce": "mean",
    }


def finished_records(
    rows: Iterable[JsonObject], header: JsonObject, path: Path, *, resume: object
) -> dict[tuple[str, int], ExampleRecord] | None:
    """Return the records of the last run of a file that a resumed run goes on with; ``None`` if the file needs the new header.

    The caller runs those of ``is_run_again`` again, and scores the outputs of those of ``is_unscored``. Raises
    ``ConfigurationError`` with the names of the differences from the last header, unless ``resume`` is "append" or False; with
    "force" they enter ``header`` as "forced".
    """
    run = last_run(rows)
    if not run or resume is False:
        return None
    last_header = headers_of(run)[-1]
    if not _goes_on(last_header, header, path, resume):
        return None
    with reading_records(path):
        records = last_records(run)
    if not all(record.is_run_again for record in records.values()):
        warn_of_unknown(path.name, last_header, header)
    return records


class FinishedKeys:
    """The rows that a resumed run keeps, as ``finished_records``, for a file that is read line by line: their digests only.

    ``add`` takes each line. ``keys``: the result of ``digest`` for each row that is kept; ``is_empty``: the file has no line.
    ``stored`` returns the record of a row whose metric failed: its outputs are scored again. ``segment``: the number of parts.

    >>> finished = FinishedKeys(lambda row: row["index"])
    >>> row = {"id": "a", "index": 7, "repeat": 1, "inputs": {}, "labels": {}, "score": 1.0}
    >>> for line in ({"type": "run"}, {"type": "record", **row}):
    ...     finished.add(line)
    >>> finished.keys
    {7}
    """

    def __init__(self, digest: Callable[[JsonObject], int]) -> None:
        self.keys, self.is_empty = set[int](), True
        self.segment = 0
        self._digest = digest
        self._header: JsonObject | None = None
        self._unscored = Spool[int]()

    def add(self, row: JsonObject) -> None:
        """Take the next line of the file."""
        self.is_empty, kind = False, row.get("type")
        if kind == "run":
            self._header, self.segment = row, 1
            self.keys.clear()
            self._unscored.clear()
        elif self._header is not None and kind == "segment":
            self._header, self.segment = row, self.segment + 1
        elif self._header is not None and kind == "record":
            self._add_record(row)

    def _add_record(self, row: JsonObject) -> None:
        key, record = self._digest(row), ExampleRecord.from_json(row, segment=self.segment - 1)
        (self.keys.discard if _is_retried(record.cell) else self.keys.add)(key)
        self._unscored.drop(key)
        if record.is_unscored:
            self._unscored.put(key, {**row, "segment": record.segment})

    @property
    def has_stored(self) -> bool:
        """Whether ``stored`` has a record."""
        return len(self._unscored) > 0

    def stored(self, key: int) -> ExampleRecord | None:
        """Return the record of a row whose outputs have no score because the metric failed."""
        return ExampleRecord.from_json(self._unscored.get(key)) if key in self._unscored else None

    def close(self) -> None:
        """Remove the records of rows without a score."""
        self._unscored.close()

    def goes_on(self, header: JsonObject, path: Path) -> bool:
        """Return False if the file has no run. Raises ``ConfigurationError`` if its last one is that of another job."""
        if self._header is None or not _goes_on(self._header, header, path, True):
            return False
        if self.keys or self.has_stored:
            warn_of_unknown(path.name, self._header, header)
        return True


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


def headers_of(run: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the headers of the parts of a run."""
    return [row for row in run if row.get("type") in ("run", "segment")]


def last_records(run: Iterable[JsonObject], *, omitted: bool = True) -> dict[tuple[str, int], ExampleRecord]:
    """Return the last record of each example and repeat in the rows of a run; ``omitted``: also of those that it left out."""
    found: dict[tuple[str, int], ExampleRecord] = {}
    lost = set[tuple[str, int]]()
    part = -1
    for row in run:
        kind = row.get("type")
        if kind in ("run", "segment"):
            part, lost = part + 1, set[tuple[str, int]]()
        elif kind == "omitted":
            left = cast("list[Any]", row["rows"])
            lost = {(str(own), int(repeat)) for own, repeat in left}
        elif kind == "record":
            record = ExampleRecord.from_json(row, segment=part)
            key = record.id, record.repeat
            found[key] = record
            lost.discard(key)  # another example has the id of one that was left out
    for key in () if omitted else lost:
        found.pop(key, None)
    return found


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


def _parts_of_state(state: JsonValue) -> dict[str, JsonObject]:
    """Return the parts of the state of a program that are predictors."""
    parts: JsonObject = {} if not is_object(state) else {"self": state} if "signature" in state else state
    return {name: part for name, part in parts.items() if is_object(part) and "signature" in part}


def _adapter_of_job(adapter: JsonValue) -> str:
    """Return the adapter of a job as text: a path, or the class with its options."""
    if not is_object(adapter):
        return repr(default_adapter()) if adapter is None else str(adapter)
    options = adapter.get("options")
    shown = [f"{name}={value!r}" for name, value in options.items()] if is_object(options) else []
    return f"{adapter.get('class')}({', '.join(shown)})"


def _instructions_of(part: JsonObject) -> JsonValue:
    signature = part["signature"]
    return signature.get("instructions") if is_object(signature) else None


def _model_of_state(lm: JsonValue) -> JsonObject:
    if not is_object(lm):
        return {"model": lm, "options": {}}
    options = {name: value for name, value in lm.items() if name not in _REACHING and name != "model"}
    return {"model": lm.get("model"), "options": options}


def _digest(value: object) -> str:
    text = json.dumps(plain_value(value), sort_keys=True, separators=(",", ":"))
    return f"sha256:{sha256(text.encode()).hexdigest()[:32]}"
