"""Rows: examples as JSON for a worker, with what their records show."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.record import FieldValue, is_same
from sigwire.errors import InputError
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.examples import split_fields
from sigwire.evaluate.plain import plain_fields, written_fields
from sigwire.evaluate.records import ExampleRecord
from sigwire.evaluate.segments import utc_now
from sigwire.modules.field_types import NO_TYPES, FieldTypes, dumped_fields, types_of

__all__ = ["ENDED", "as_example", "example_of", "is_record_of", "record_of", "row_of"]


ENDED = "ended"
"""The member of a worker's record whose scoring ended the run of all rows."""


def as_example(given: object, name: str) -> Example:
    """Return the example of a value that a user gave: itself, or one whose inputs are all fields of a mapping."""
    if not isinstance(given, Example | Mapping):
        raise InputError(f"{name} is no Example and no mapping but {type(given).__name__} (drawing rows).")
    if isinstance(given, Example):
        return given
    fields = cast("Mapping[str, object]", given)
    return Example(fields).with_inputs(*fields)


def row_of(example: Example, own: str, index: int, repeat: int, types: FieldTypes = NO_TYPES) -> JsonObject:
    """Return the row of an example. ``own``: its id; ``types``: the fields that the program declares.

    Raises ``InputError`` for a value without a JSON form.

    ``typed`` has the fields that are not JSON, such as an image, whose record is a reference.

    >>> row_of(Example(question="2+2?", tags=("a",)).with_inputs("question"), "7", 0, 1)["typed"]
    {'fields': {'tags': ['a']}}
    """
    inputs, labels = (written_fields(part, types) for part in split_fields(example))
    shown, forms = {**inputs.plain, **labels.plain}, {**inputs.forms, **labels.forms}
    try:
        typed = {name: value for name, value in example.__dict__.items() if not _is_json(value, shown.get(name))}
        row: JsonObject = {"id": own, "index": index, "repeat": repeat, "inputs": inputs.plain, "labels": labels.plain}
        if forms:
            row["example_forms"] = {**forms}
        return {**row, "typed": Example(_sent(typed, types)).to_json()} if typed else row
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"The row {own} cannot be sent to a worker: {error} (drawing rows). Give the type a serializer and a validator, or "
            "pass data."
        ) from error


def _sent(fields: dict[str, FieldValue], types: FieldTypes) -> dict[str, object]:
    """Return the fields with the declared ones as JSON. Raises ``ValueError`` for one that a worker would not read equal."""
    sent = dumped_fields(fields, types)
    for name, plain in sent.items():
        if plain is fields[name] or types[name].is_untyped:
            continue
        if not types[name].reads_back(fields[name], cast(JsonValue, plain)):
            raise ValueError(f"the field {name!r} would be read as another value than {fields[name]!r:.60}")
    return sent


def _is_json(value: object, shown: object) -> bool:
    return value is shown or (type(value) is type(shown) and is_same(value, shown))


def example_of(row: JsonObject, program: object) -> Example:
    """Return the example of a row. Typed fields get the types that the signature of the program declares."""
    inputs, labels = cast(JsonObject, row["inputs"]), cast(JsonObject, row["labels"])
    values: dict[str, Any] = {**inputs, **labels}
    if "typed" in row:
        data = cast(JsonObject, row["typed"])
        fields = types_of(program)
        has_type = cast(JsonObject, data.get("types") or {})  # tool calls and messages
        for name, value in Example.from_json(data).__dict__.items():
            values[name] = value
            if name in fields and name not in has_type:
                with suppress(ValueError):  # then the program gets the plain value
                    values[name] = fields[name].load(value)
    return Example(values).with_inputs(*inputs)


def record_of(row: JsonObject, cell: Cell, started: str = "") -> JsonObject:
    """Return the record of a row as JSON. ``started``: now, by default."""
    record = ExampleRecord.from_json({**row, "score": None, "started": started or utc_now()}, kept=False)
    line = replace(record, cell=cell).to_json()
    return {**line, "segment": row["segment"]} if "segment" in row else line


def is_record_of(record: ExampleRecord, example: Example, types: FieldTypes) -> bool:
    """Return True if a record is of this example, and not of another with its id."""
    inputs, labels = (plain_fields(part, types) for part in split_fields(example))
    return (record.inputs, record.labels) == (inputs, labels)
