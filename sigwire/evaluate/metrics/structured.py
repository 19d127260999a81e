"""Metrics of structured outputs: equal JSON, and JSON that fits a schema. Both return a ``Score`` with feedback.

A text is read as JSON; other values (lists, pydantic models, dates) are compared by their JSON form.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from itertools import zip_longest
from typing import Any

from sigwire.core.json import JsonValue, loads
from sigwire.core.narrow import is_array, is_object
from sigwire.core.record import to_plain
from sigwire.core.schema import TypeExpression, schema_of, validator
from sigwire.errors import InputError
from sigwire.evaluate.metrics.answers import ScoreMetric
from sigwire.evaluate.metrics.reading import read_field
from sigwire.evaluate.scores import Score

__all__ = ["differences", "json_match", "matches_schema"]

_MAX_SHOWN = 5


def json_match(
    field: str = "answer", expected: str | None = None, *, ignore: Collection[str] = (), tolerance: float = 0.0
) -> ScoreMetric:
    """Return a metric: 1 if the output and the example's value are equal as JSON.

    Objects compare without order, arrays in order; numbers may differ by ``tolerance``, and a bool is no number. Members of
    objects with a name in ``ignore`` are left out. ``field`` names the output, ``expected`` the field of the example (by
    default the same name). The feedback lists the paths that differ; the subscore ``scalars`` is the share of the expected
    scalars that the output has. An output that is no JSON scores 0; an example's text that is no JSON raises ``InputError``.

    >>> from sigwire.core.example import Example, Prediction
    >>> score = json_match()(Example(answer={"n": 1, "at": "x"}), Prediction(answer='{"n": 2, "at": "x"}'))
    >>> score.value, score.feedback, dict(score.subscores)
    (0.0, 'n: expected 1, got 2', {'scalars': 0.5})
    """
    label = expected or field

    def json_match_metric(example: object, pred: object, trace: object = None) -> Score:
        gold, answer = read_field(example, label, "json_match"), read_field(pred, field, "json_match")
        try:
            wanted = _json_of(gold)
        except ValueError as error:
            raise InputError(f"The metric json_match reads JSON from {label!r} of the example: {error}") from error
        try:
            given = _json_of(answer)
        except ValueError as error:
            return Score(0.0, f"{field} is not JSON: {error}", {"scalars": 0.0})
        found = list(differences(wanted, given, ignore=ignore, tolerance=tolerance))
        missed = sum(lost for _, lost in found)
        shown = [text for text, _ in found[:_MAX_SHOWN]]
        more = [f"and {len(found) - _MAX_SHOWN} more"] if len(found) > _MAX_SHOWN else []
        return Score(float(not found), "; ".join(shown + more), {"scalars": 1 - missed / _scalars(wanted, ignore)})

    json_match_metric.__name__ = "json_match"
    return json_match_metric


def matches_schema(schema: TypeExpression | dict[str, Any], field: str = "answer") -> ScoreMetric:
    """Return a metric: 1 if the output fits a JSON Schema, or the schema of a Python type.

    The feedback lists the problems. An output that is no JSON scores 0.

    >>> from sigwire.core.example import Example, Prediction
    >>> metric = matches_schema({"type": "object", "properties": {"n": {"type": "integer"}}})
    >>> metric(Example(), Prediction(answer='{"n": "one"}')).feedback
    "n: must be an integer, not 'one'"
    >>> matches_schema(list[int])(Example(), Prediction(answer=[1, 2])).value
    1.0
    """
    problems_of = validator(schema if is_object(schema) else schema_of(schema))

    def matches_schema_metric(example: object, pred: object, trace: object = None) -> Score:
        given = read_field(pred, field, "matches_schema")
        try:
            problems = problems_of(_json_of(given))
        except ValueError as error:
            problems = [f"{field} is not JSON: {error}"]
        return Score(float(not problems), "; ".join(problems[:_MAX_SHOWN]))

    matches_schema_metric.__name__ = "matches_schema"
    return matches_schema_metric


def differences(
    wanted: JsonValue, given: JsonValue, *, path: str = "", ignore: Collection[str] = (), tolerance: float = 0.0
) -> Iterator[tuple[str, int]]:
    """Yield each difference of two JSON values: a text with its path, and how many expected scalars it loses.

    >>> list(differences({"a": [1, 2]}, {"a": [1], "b": True}))
    [('a[1]: expected 2, got nothing', 1), ('b: expected nothing, got True', 0)]
    """
    pairs = _members(wanted, given, path)
    for inner, name, mine, other in pairs or ():
        if name not in ignore:
            yield from differences(mine, other, path=inner, ignore=ignore, tolerance=tolerance)
    if pairs is None and not _is_equal(wanted, given, tolerance):
        lost = 0 if wanted is _NOTHING else _scalars(wanted, ignore)
        yield f"{path + ': ' if path else ''}expected {_shown(wanted)}, got {_shown(given)}", lost


def _members(wanted: JsonValue, given: JsonValue, path: str) -> list[tuple[str, str | int, Any, Any]] | None:
    """Return path, name or index, and both values of each member of two objects or two arrays; ``None`` for other values."""
    if is_object(wanted) and is_object(given):
        names = {**wanted, **given}
        prefix = f"{path}." if path else ""
        return [(prefix + name, name, wanted.get(name, _NOTHING), given.get(name, _NOTHING)) for name in names]
    if is_array(wanted) and is_array(given):
        both = zip_longest(wanted, given, fillvalue=_NOTHING)
        return [(f"{path}[{at}]", at, *pair) for at, pair in enumerate(both)]
    return None


_NOTHING: Any = object()


def _shown(value: object) -> str:
    return "nothing" if value is _NOTHING else f"{value!r:.80}"


def _is_equal(wanted: object, given: object, tolerance: float) -> bool:
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, (int, float)) and isinstance(given, (int, float)):
        return wanted == given or (math.isfinite(tolerance) and abs(wanted - given) <= tolerance)
    return wanted == given


def _scalars(value: JsonValue, ignore: Collection[str]) -> int:
    """Return the number of scalars; an empty object or array counts as one."""
    if is_object(value):
        return sum(_scalars(item, ignore) for key, item in value.items() if key not in ignore) or 1
    if is_array(value):
        return sum(_scalars(item, ignore) for item in value) or 1
    return 1


def _json_of(value: object) -> JsonValue:
    plain: JsonValue = loads(value) if isinstance(value, str) else to_plain(value)
    return plain
