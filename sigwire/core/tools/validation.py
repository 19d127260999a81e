"""Validate arguments with pydantic: booleans are no numbers, and a model can act on the errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any, TypeAlias, cast

from sigwire.core.record import FieldValues
from sigwire.core.schema import shorten
from sigwire.errors import InputError

__all__ = ["Validate", "describe_argument_errors", "refuse_booleans"]

Validate: TypeAlias = Callable[[FieldValues], dict[str, Any]]

_MOST_PROBLEMS = 8
_LONGEST_ECHO = 60
_LONGEST_LIST = 600


def refuse_booleans(validator: Any) -> Validate:
    """Return pydantic's validation without its conversion of ``true`` and ``false`` to numbers.

    Strict validation names each boolean where another type is declared; its other errors are conversions that are allowed.
    """
    validate, validate_json = validator.validate_python, validator.validate_json

    def validate_all(arguments: FieldValues) -> dict[str, Any]:
        values: dict[str, Any] = validate(arguments)
        if _changes_boolean(arguments, values):
            try:
                validate_json(json.dumps(arguments), strict=True)
            except (TypeError, ValueError) as error:
                errors: list[Any] = cast(Any, error).errors(include_url=False) if hasattr(error, "errors") else []
                if wrong := [each for each in errors if type(each.get("input")) is bool]:
                    raise InputError("; ".join(map(_error_line, wrong[:_MOST_PROBLEMS]))) from None
        return values

    return validate_all


def _changes_boolean(given: Any, value: Any) -> bool:
    """Return True if a boolean may have become another value, ``True`` as well if that cannot be seen."""
    if given is True or given is False:
        return value is not given
    kind = given.__class__
    if kind is dict:
        values = value if value.__class__ is dict else getattr(value, "__dict__", {})
        for key, item in given.items():
            if _changes_boolean(item, values.get(key)):
                return True
    elif kind is list:
        same = value.__class__ in (list, tuple) and len(value) == len(given)
        return any(map(_changes_boolean, given, value if same else repeat(None)))
    return False


def describe_argument_errors(error: ValueError, known: Iterable[str] = ()) -> str:
    """Describe pydantic's validation errors to the model. ``known`` are the names of the arguments.

    >>> describe_argument_errors(ValueError("no such day"))
    'no such day'
    """
    errors: list[Any] = cast(Any, error).errors(include_url=False) if hasattr(error, "errors") else []
    if not errors:
        return shorten(str(error))
    lines = [_error_line(each) for each in errors[:_MOST_PROBLEMS]]
    if len(errors) > _MOST_PROBLEMS:
        lines.append(f"and {len(errors) - _MOST_PROBLEMS} more problems")
    if any(each["type"] == "extra_forbidden" and len(each["loc"]) == 1 for each in errors):
        names = shorten(", ".join(known), _LONGEST_LIST)
        lines.append(f"the arguments are: {names}" if names else "this tool takes no arguments")
    return "; ".join(lines)


def _error_line(error: Mapping[str, Any]) -> str:
    path = ".".join(shorten(str(step)) for step in error["loc"])
    text = (
        _MESSAGES.get(error["type"])
        or f"{shorten(error['msg'])} (got {shorten(repr(error.get('input')), _LONGEST_ECHO)})"
    )
    return f"{path}: {text}" if path else text


_MESSAGES: Mapping[str, str] = {
    "missing": "this argument is required",
    "extra_forbidden": "there is no such argument",
    "unexpected_keyword_argument": "there is no such argument",
    "dict_type": "a JSON object is needed",
}
