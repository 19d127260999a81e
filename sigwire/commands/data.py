"""Examples of a file, with the inputs of a program; the names and values of a program's inputs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
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
    from sigwire.data.reading import read_rows

    if limit is not None and limit < 1:
        raise UsageError(f"--limit is a number above 0, not {limit} (reading the arguments).")
    rows = [_typed(row, path, program) for row in islice(read_rows(path), limit)]
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


def _typed(row: Mapping[str, Any], path: str, program: object) -> Mapping[str, Any]:
    """Return a row of CSV with the values of its cells, which are texts; other rows as they are."""
    if not path.lower().endswith((".csv", ".tsv")):
        return row
    return {name: read_value(program, name, cell) for name, cell in row.items()}


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
