"""``load_examples``: examples of a file (JSON lines, JSON, CSV, Parquet) or of a data set of Hugging Face.

Reading a file runs no code and opens no connection. A row that cannot be read is an error with its line; none is skipped.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from reprlib import repr as short
from typing import Any, TextIO, TypeAlias, cast

from sigwire.core.example import Example
from sigwire.core.json import loads
from sigwire.core.narrow import is_items, is_mapping
from sigwire.errors import ConfigurationError, InputError, suggest

__all__ = ["RowSource", "load_examples", "read_rows"]

RowSource: TypeAlias = "str | PathLike[str] | Iterable[Mapping[str, Any]]"
"""A file, or an iterable of rows: a data set of Hugging Face, ``frame.to_dict("records")``, a list of dicts."""

Row: TypeAlias = "Mapping[str, Any]"


def load_examples(
    source: RowSource,
    inputs: Iterable[str] = (),
    *,
    fields: Mapping[str, str] | Sequence[str] | None = None,
    limit: int | None = None,
) -> list[Example]:
    """Return the examples of a file or of rows.

    ``source``: a file (``.jsonl``, ``.ndjson``, ``.json``, ``.csv``, ``.tsv``, ``.parquet``), or an iterable of mappings, such
    as ``datasets.load_dataset(...)["train"]``. ``inputs``: the fields that a program gets; the others are labels. ``fields``:
    the columns to keep, or a mapping of new names to columns. ``limit``: the first rows only. Cells of CSV are texts. Parquet
    needs the extra ``data``.

    Raises ``InputError`` for a missing file or column, a row that cannot be read, and a file without rows;
    ``ConfigurationError`` for an unknown suffix.

    >>> rows = [{"text": "It is late.", "label": "delivery"}]
    >>> load_examples(rows, inputs=["message"], fields={"message": "text", "topic": "label"})
    [Example(message='It is late.', topic='delivery').with_inputs('message')]
    """
    names = dict(fields) if is_mapping(fields) else {name: name for name in fields or ()}
    chosen = list(inputs)
    examples = [Example(_renamed(row, names)) for row in islice(read_rows(source), limit)]
    if not examples:
        raise InputError(f"{_name_of(source)} has no rows (reading examples). Name a file with rows.")
    if stray := [name for name in chosen if not any(name in each for each in examples)]:
        known = list(examples[0].__dict__)
        raise InputError(
            f"No row of {_name_of(source)} has the input {stray[0]!r} (reading examples). "
            f"{suggest(stray[0], known)}The fields are {', '.join(known)}."
        )
    return [Example.with_inputs(each, *chosen) for each in examples] if chosen else examples


def read_rows(source: RowSource) -> Iterator[Row]:
    """Yield the rows of a file or of an iterable as mappings. Raises as ``load_examples`` does."""
    if not isinstance(source, str | PathLike):
        return _checked_rows(source)
    path = Path(source)
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise ConfigurationError(
            f"{path} has a suffix that is not known (reading examples). Use one of {', '.join(_READERS)}, or pass its rows."
        )
    if not path.exists() or path.is_dir():
        raise InputError(
            f"There is no file {str(path)!r} (reading examples in {Path.cwd()}). Pass its path, absolute or from this folder."
        )
    return read(path)


def _renamed(row: Row, names: Mapping[str, str]) -> dict[str, Any]:
    if not names:
        return dict(row)
    missing = next((column for column in names.values() if column not in row), None)
    if missing is not None:
        raise InputError(
            f"A row has no column {missing!r} (reading examples). {suggest(missing, row)}Its columns are {', '.join(row)}."
        )
    return {name: row[column] for name, column in names.items()}


def _checked_rows(rows: Iterable[object]) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        if isinstance(row, Example):
            yield dict(Example.items(row))
        elif is_mapping(row):
            yield row
        else:
            raise InputError(
                f"Row {number} is no mapping but {type(row).__name__} (reading examples). Pass dicts or Examples."
            )


# --- files


def _read_jsonl(path: Path) -> Iterator[Row]:
    with _opened(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _object(_decoded(path, number, line), path, number)


def _read_json(path: Path) -> Iterator[Row]:
    with _opened(path) as file:
        value = _decoded(path, 1, file.read())
    for number, row in enumerate(value if is_items(value) else [value], 1):
        yield _object(row, path, number)


def _decoded(path: Path, line: int, text: str) -> object:
    try:
        return loads(text)
    except ValueError as error:
        raise InputError(f"{path}, line {line} is not JSON: {error} (reading examples). Correct the line.") from error


def _object(value: object, path: Path, number: int) -> Row:
    if is_mapping(value):
        return value
    raise InputError(f"{path}, row {number} is no JSON object: {short(value)} (reading examples). Correct the row.")


def _read_csv(path: Path) -> Iterator[Row]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with _opened(path, newline="") as file:
        reader = csv.DictReader(file, delimiter=delimiter, restkey="")
        for row in reader:
            cells = cast("Mapping[str, Any]", row)
            if "" in cells or None in cells.values():
                raise InputError(
                    f"{path}, line {reader.line_num} has not one cell for each column (reading examples). Correct it."
                )
            yield cells


def _read_parquet(path: Path) -> Iterator[Row]:
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigurationError(
            f'{path} needs pyarrow, which is not installed (reading examples). pip install "sigwire[data]"'
        ) from None
    try:
        for batch in parquet.ParquetFile(path).iter_batches():
            yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as Parquet: {error} (reading examples). Write it again.") from error


@contextmanager
def _opened(path: Path, newline: str | None = None) -> Generator[TextIO]:
    """Open a file as UTF-8, with or without a byte order mark; an error of its text names the file."""
    with path.open(encoding="utf-8-sig", newline=newline) as file:
        try:
            yield file
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8: {error} (reading examples). Convert the file.") from error


_READERS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": _read_parquet,
}


def _name_of(source: object) -> str:
    return fspath(source) if isinstance(source, str | PathLike) else f"The {type(source).__name__} of rows"
