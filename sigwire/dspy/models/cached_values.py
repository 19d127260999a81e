"""Values in ``dspy.cache``, as answers: JSON, and dataclasses and pydantic models by the name of their class.

A class is never imported by its name in the cache. Known are those of values that this process has stored, and the
``safe_types`` of a cache; a stored value of another class is a miss.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from sigwire.core.narrow import is_sequence
from sigwire.core.response import Choice, Response
from sigwire.dspy.models.answers import decode_answer
from sigwire.errors import SigwireError
from sigwire.lm.openai_dicts import get

__all__ = ["MET_CLASSES", "decode_value", "encode_value", "path_of_class"]

MET_CLASSES: dict[str, type] = {}
"""The classes of values that this process has stored, by their paths."""

_VALUE = (
    "value of request_cache"  # the ``id`` of an answer whose text is the JSON of a value; of a class: with its path
)


def path_of_class(cls: type) -> str:
    """Return the module and name of a class.

    >>> path_of_class(Response)
    'sigwire.core.response.Response'
    """
    return f"{cls.__module__}.{cls.__qualname__}"


def encode_value(value: object) -> Response | None:
    """Return the answer that holds a value; a model's answer is a ``Response``. ``None``: the value cannot be stored.

    >>> encode_value({"a": 1}).choices[0].text
    '{"a": 1}'
    >>> encode_value((1, 2))  # would come back as a list
    """
    if isinstance(value, Response):
        return value
    with suppress(RecursionError, TypeError, ValueError):
        text = json.dumps(value)
        return Response((Choice(text),), id=_VALUE) if json.loads(text) == value else None
    with suppress(SigwireError):
        if _is_answer(value):
            return decode_answer(value)
    if isinstance(value, type) or not (is_dataclass(value) or isinstance(value, BaseModel)):
        return None
    with suppress(Exception):  # code of the class runs; what does not come back as it was is not stored
        adapter = TypeAdapter[Any](type(value))
        text = adapter.dump_json(value).decode()
        if adapter.validate_json(text) != value:
            return None
        MET_CLASSES[path_of_class(type(value))] = type(value)
        return Response((Choice(text),), id=f"{_VALUE}: {path_of_class(type(value))}")
    return None


def _is_answer(value: object) -> bool:
    """Return True for an object in the form of OpenAI's answers."""
    choices = get(value, "choices")
    items = choices if is_sequence(choices) else ()
    return bool(items) and all(get(item, "message", get(item, "text")) is not None for item in items)


def decode_value(found: Response, classes: Mapping[str, type]) -> Any:
    """Return the value of an answer. Raises ``LookupError`` if its class is unknown, or does not take it any more.

    A hit costs nothing: the ``usage`` of a value is empty.

    >>> decode_value(encode_value(["a"]), {})
    ['a']
    """
    kind, _, path = (found.id or "").partition(": ")
    if kind != _VALUE:
        return found
    text = found.choices[0].text
    if not path:
        return json.loads(text)
    try:
        value = TypeAdapter[Any](classes[path]).validate_json(text)
    except Exception as error:
        raise LookupError(f"{path} has changed: {error}") from error
    if isinstance(getattr(value, "usage", None), Mapping):
        with suppress(AttributeError, TypeError, ValueError):  # frozen
            value.usage = {}
    return value
