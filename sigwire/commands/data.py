"""Files of examples: JSON lines, a JSON array of objects, or CSV. Reading one runs no code."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigwire.commands.programs import input_names, read_value
from sigwire.commands.status import UsageError

if TYPE_CHECKING:
    from sigwire.core.example import Example

__all__ = ["add_inputs", "read_examples"]


def add_inputs(parser: Any) -> None:
    """Add the names of the inputs to a parser."""
    parser.add_argument(
        "--inputs", metavar="NAMES", help="the input fields of the examples, with commas (default: those of the program)"
    )


def read_examples(path: str, program: object, options: Any, limit: int | None = None) -> list[Example]:
    """Return the examples of a file with declared inputs. Raises ``UsageError`` with the line that cannot be read."""
    from sigwire.core.example import Example

    rows = list(islice(_rows(Path(path), program), limit))
    if not rows:
        raise UsageError(f"{path} has no examples (reading the data). Write one JSON object a line.")
    named = [name.strip() for name in options.inputs.split(",")] if options.inputs else input_names(program)
    inputs = [name for name in named if options.inputs or any(name in row for row in rows)]
    if not inputs:
        raise UsageError(
            f"The examples of {path} have none of the program's inputs {', '.join(named) or '(it names none)'}; their fields "
            f"are {', '.join(rows[0])} (reading the data). Rename the fields, or name the inputs with --inputs."
        )
    return [Example(row).with_inputs(*inputs) for row in rows]


def _rows(path: Path, program: object) -> Sequence[Mapping[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (reading the data): {error}. Convert the file.") from error
    kind = path.suffix.lower()
    if kind == ".csv":
        return list(_csv_rows(path, text, program))
    lines = [(1, text)] if kind == ".json" else list(enumerate(text.split("\n"), 1))
    values = [_object(path, number, line) for number, line in lines if line.strip()]
    if kind == ".json" and isinstance(values[0] if values else None, list):
        values = values[0]
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise UsageError(f"Example {number} of {path} is no JSON object: {value!r:.80} (reading the data).")
    return values


def _object(path: Path, line: int, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(
            f"{path}, line {line} is not JSON: {error} (reading the data). Data files are JSON lines (.jsonl), a JSON array "
            "(.json), or CSV (.csv)."
        ) from error


def _csv_rows(path: Path, text: str, program: object) -> Iterator[Mapping[str, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="")
    for row in reader:
        if "" in row or None in row.values():
            raise UsageError(f"{path}, line {reader.line_num} has not one cell for each column (reading the data).")
        yield {name: read_value(program, name, cell) for name, cell in row.items()}
