"""Files of examples: JSON lines, a JSON array of objects, or CSV; and the names and values of a program's inputs.

Reading a file runs no code.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sigwire.commands.output import UsageError

if TYPE_CHECKING:
    from sigwire.core.example import Example
    from sigwire.signatures.signature import SignatureMeta

__all__ = ["add_inputs", "input_names", "read_examples", "read_value"]

_ENTRIES = ("forward", "aforward", "steps")


def add_inputs(parser: ArgumentParser) -> None:
    """Add the names of the inputs to a parser."""
    parser.add_argument(
        "--inputs",
        metavar="NAMES",
        help="the input fields of the examples, with commas (default: those of the program)",
    )


def read_examples(path: str, program: object, options: Namespace, limit: int | None = None) -> list[Example]:
    """Return the examples of a file with declared inputs. Raises ``UsageError`` with the line that cannot be read."""
    from sigwire.core.example import Example

    rows = list(islice(_rows(Path(path), program), limit))
    if not rows:
        raise UsageError(f"{path} has no examples (reading the data). Write one JSON object a line.")
    inputs = _inputs(rows, program, options.inputs)
    if not inputs:
        raise UsageError(
            f"The examples of {path} have none of the program's inputs {', '.join(input_names(program))}; their fields "
            f"are {', '.join(rows[0])} (reading the data). Rename the fields, or name the inputs with --inputs."
        )
    return [Example(row).with_inputs(*inputs) for row in rows]


def _inputs(rows: Sequence[Mapping[str, Any]], program: object, given: str | None) -> list[str]:
    """Return the given inputs, else those of the program that an example has."""
    if given:
        return [name.strip() for name in given.split(",")]
    return [name for name in input_names(program) if any(name in row for row in rows)]


def _rows(path: Path, program: object) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a file. Raises ``UsageError`` if one is not an object."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (reading the data): {error}. Convert the file.") from error
    if path.suffix.lower() == ".csv":
        return list(_csv_rows(path, text, program))
    values = _json_values(path, text)
    for number, value in enumerate(values, 1):
        if not isinstance(value, dict):
            raise UsageError(f"Example {number} of {path} is no JSON object: {value!r:.80} (reading the data).")
    return values


def _json_values(path: Path, text: str) -> list[Any]:
    if path.suffix.lower() == ".json":
        value: Any = _decoded(path, 1, text)
        return cast(Any, value) if isinstance(value, list) else [value]
    return [_decoded(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _decoded(path: Path, line: int, text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except ValueError as error:
        raise UsageError(
            f"{path}, line {line} is not JSON: {error} (reading the data). Data files are JSON lines (.jsonl), a JSON array "
            "(.json), or CSV (.csv)."
        ) from error


def _csv_rows(path: Path, text: str, program: object) -> Iterator[Mapping[str, Any]]:
    import csv
    import io

    reader = csv.DictReader(io.StringIO(text, newline=""), restkey="")
    for row in reader:
        if "" in row or None in row.values():
            raise UsageError(f"{path}, line {reader.line_num} has not one cell for each column (reading the data).")
        yield {name: read_value(program, name, cell) for name, cell in row.items()}


# --- the inputs of a program


def input_names(program: object) -> Sequence[str]:
    """Return the names of a program's inputs: of its signature, else of its parameters."""
    import inspect

    signatures = _signatures(program)
    if hasattr(program, "signature"):
        return list(signatures[0].input_fields)
    entry = next((getattr(program, name) for name in _ENTRIES if hasattr(program, name)), program)
    parameters = inspect.signature(cast("Callable[..., object]", entry)).parameters.values()
    names = [each.name for each in parameters if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)]
    # forward(**inputs) has the inputs of its first predictor
    return names or [name for signature in signatures[:1] for name in signature.input_fields]


def read_value(program: object, name: str, text: str) -> object:
    """Return a field's value from its text: JSON, unless the field is text or unknown."""
    field = next((each.fields[name] for each in _signatures(program) if name in each.fields), None)
    if field is None or field.annotation is str:
        return text
    import json

    try:
        return json.loads(text)
    except ValueError:  # a text of a type such as Literal, or one that the call refuses by name
        return text


def _signatures(program: Any) -> Sequence[SignatureMeta]:
    """Return the signatures of a program: its own, or those of its predictors."""
    if hasattr(program, "signature"):
        return [program.signature]
    return [part.signature for part in program.predictors()] if hasattr(program, "predictors") else []
