"""Read the fields that a metric compares, from an example or a prediction, with errors that name the metric."""

from __future__ import annotations

from typing import Any

from sigwire.core.narrow import is_mapping
from sigwire.core.record import Record, list_fields
from sigwire.errors import InputError

__all__ = ["read_field", "read_text"]


def read_field(record: object, name: str, metric: str) -> Any:
    """Return a field of an example, a prediction, a mapping or another object. Raises ``InputError`` if it has none.

    >>> read_field({"answer": "4"}, "answer", "exact")
    '4'
    """
    if isinstance(record, Record) or is_mapping(record):
        if name in record:
            return record[name]
    elif hasattr(record, name):
        return getattr(record, name)
    known = list_fields(record) if isinstance(record, Record) else "it is none of its fields"
    raise InputError(f"The metric {metric} reads {name!r} of the {type(record).__name__.lower()}; {known}.")


def read_text(record: object, name: str, metric: str) -> str:
    """Return a field as text: ``str`` of a value that is no text, and "" for ``None``."""
    value = read_field(record, name, metric)
    return "" if value is None else str(value)
