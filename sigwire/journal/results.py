"""Results and inputs of programs as JSON, and back to their types by the signature of the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.example import Prediction
from sigwire.core.json import JsonObject
from sigwire.core.record import to_plain
from sigwire.errors import InputError, StateError

__all__ = ["dump_inputs", "dump_result", "load_inputs", "load_result"]


def dump_inputs(inputs: Mapping[str, object], program: object = None) -> JsonObject:
    """Return inputs as JSON, those that ``program`` declares by their types.

    Raises ``InputError`` for an input without a JSON form.
    """
    signature: Any = getattr(program, "signature", None)
    known: Mapping[str, Any] = {} if signature is None else signature.spec.by_name
    plain: JsonObject = {}
    for name, value in inputs.items():
        try:
            plain[name] = known[name].dump(value) if name in known else to_plain(value)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"The input {name!r} cannot be recorded: {error} (starting the run). Pass data, and make clients and models "
                "part of the program."
            ) from error
    return plain


def load_inputs(program: object, plain: JsonObject) -> dict[str, Any]:
    """Return recorded inputs with the types that the signature of the program declares."""
    signature: Any = getattr(program, "signature", None)
    return dict(plain) if signature is None else signature.spec.load(plain)


def dump_result(program: object, value: object) -> JsonObject | None:
    """Return a result as JSON; ``None`` if its JSON does not give an equal result. Such a run is replayed instead."""
    try:
        data: JsonObject
        data = {"prediction": value.to_json()} if isinstance(value, Prediction) else {"value": to_plain(value)}
        return data if load_result(program, data) == value else None
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
