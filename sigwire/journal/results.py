"""Results and inputs of programs as JSON, and back to their types by the signature of the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.example import Prediction
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.record import is_same, plain_of, to_plain
from sigwire.errors import InputError, StateError

__all__ = ["dump_inputs", "dump_result", "load_inputs", "load_result"]


def dump_inputs(inputs: Mapping[str, object], program: object = None) -> JsonObject:
    """Return inputs as JSON, those that ``program`` declares by their types.

    Raises ``InputError`` for an input without a JSON form.
    """
    spec = _spec_of(program)
    plain: JsonObject = {}
    for name, value in inputs.items():
        try:
            plain[name] = (plain_of if spec is None else spec.dump)({name: value})[name]
            if not _reads_back(spec, name, value, plain[name]):
                raise ValueError(f"its type writes {value!r:.60} as the JSON of another value.")
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"The input {name!r} cannot be recorded: {error} (starting the run). Pass data, and make clients and models "
                "part of the program."
            ) from error
    return plain


def _spec_of(program: object) -> Any:
    """Return the fields that the signature of a program declares, ``None`` without one."""
    return getattr(getattr(program, "signature", None), "spec", None)


def _reads_back(spec: Any, name: str, value: object, plain: JsonValue) -> bool:
    """Return True if the JSON of an input is read as the input, or is the input."""
    field = None if spec is None else spec.by_name.get(name)
    if field is None or field.role == "tools" or field.is_untyped or is_same(value, plain):
        return True
    return is_same(_loaded(spec, name, plain), value)


def load_inputs(program: object, plain: JsonObject) -> dict[str, Any]:
    """Return recorded inputs with the types that the signature of the program declares; JSON that does not fit is unchanged."""
    spec = _spec_of(program)
    return {name: _loaded(spec, name, value) for name, value in plain.items()}


def _loaded(spec: Any, name: str, plain: JsonValue) -> Any:
    try:
        return plain if spec is None else spec.load({name: plain})[name]
    except Exception:  # a validator of the user may raise anything
        return plain


def dump_result(program: object, value: object) -> JsonObject | None:
    """Return a result as JSON; ``None`` if its JSON does not give an equal result. Such a run is replayed instead."""
    try:
        data: JsonObject
        data = {"prediction": value.to_json()} if isinstance(value, Prediction) else {"value": to_plain(value)}
        return data if is_same(load_result(program, data), value) else None
    except (ValueError, TypeError, RecursionError):
        return None


def load_result(program: object, data: Mapping[str, Any]) -> Any:
    """Return the result of ``dump_result``. A program with ``load_result`` decodes its predictions itself."""
    try:
        if "prediction" not in data:
            return data["value"]
        load = getattr(program, "load_result", None)
        if load is not None:
            return load(data["prediction"])
        return Prediction.from_json(data["prediction"], signature=getattr(program, "signature", None))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise StateError(
            f"The recorded result does not fit {type(program).__name__}: {error} (reading the journal). Use the program that "
            "made the run."
        ) from error
