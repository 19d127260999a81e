"""``Score``: the value of a metric, read from all that a metric may return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import SupportsFloat, cast

from sigwire.core.json import Value
from sigwire.core.narrow import is_mapping
from sigwire.core.record import Record
from sigwire.errors import CallerError

__all__ = ["MetricError", "Score", "read_score"]


class MetricError(CallerError):
    """A metric returned no score: ``None``, NaN, infinity or a text."""


@dataclass(frozen=True, slots=True)
class Score(Value):
    """The score of one prediction. ``value`` is finite; ``feedback`` is a text for people and optimizers.

    ``subscores``: further numbers by name. If a metric returns several scores, each of these is a subscore as well.

    >>> Score(0.5, feedback="half right").to_json()
    {'value': 0.5, 'feedback': 'half right'}
    """

    value: float
    feedback: str = ""
    subscores: Mapping[str, float] = field(default_factory=dict[str, float])


def read_score(result: object) -> Score:
    """Return the score that a metric returned: a number, a bool, a ``Score``, a ``Prediction(score=, feedback=, subscores=)``
    or a dict with ``score``, whose further numbers are subscores. A dict without ``score`` has several metrics by name; the
    first is the headline.

    Raises ``MetricError`` for ``None``, NaN, infinity, a text and other values.

    >>> read_score(True), read_score({"score": 0.5, "feedback": "half"}).feedback, read_score(Score(False)).value
    (Score(value=1.0, feedback='', subscores={}), 'half', 0.0)
    >>> read_score({"score": 0.5, "topic": 1.0}).subscores
    {'topic': 1.0}
    >>> read_score({"exact": False, "f1": 0.5})
    Score(value=0.0, feedback='', subscores={'exact': 0.0, 'f1': 0.5})
    >>> read_score(None)
    Traceback (most recent call last):
    sigwire.evaluate.scores.MetricError: The metric returned None (scoring). Return a number, a bool, or Score(value, ...
    """
    if isinstance(result, Score):
        value = _number(result.value)
        parts = {name: _number(part) for name, part in result.subscores.items()}
        return (
            Score(value, result.feedback, parts)
            if type(result) is Score
            else replace(result, value=value, subscores=parts)
        )
    fields = result.__dict__ if isinstance(result, Record) else result
    return _score_of(cast("Mapping[str, object]", fields)) if is_mapping(fields) else Score(_number(result))


def _score_of(fields: Mapping[str, object]) -> Score:
    if "score" not in fields:
        return _several_scores(fields)
    feedback = fields.get("feedback")
    parts: object = fields.get("subscores") or fields.get("objective_scores") or {}
    if not is_mapping(parts):
        raise MetricError(f"The metric returned subscores of the type {type(parts).__name__} (scoring). Return a dict.")
    more = {
        name: value for name, value in fields.items() if name not in _SCORE_KEYS and isinstance(value, (int, float))
    }
    return Score(
        _number(fields["score"]),
        feedback="" if feedback is None else str(feedback),
        subscores={str(name): _number(value) for name, value in (more | dict(parts)).items()},
    )


_SCORE_KEYS = frozenset({"score", "feedback", "subscores", "objective_scores"})


def _several_scores(fields: Mapping[str, object]) -> Score:
    if not fields:
        raise MetricError("The metric returned an empty dict (scoring). Name at least one score in it.")
    scores = {name: read_score(value) for name, value in fields.items()}
    headline = next(iter(scores.values()))
    return replace(headline, subscores={name: score.value for name, score in scores.items()})


def _number(value: object) -> float:
    if type(value) in (bool, int) or (type(value) is float and math.isfinite(value)):
        return float(cast(float, value))
    if not isinstance(value, (str, bytes)) and isinstance(value, SupportsFloat):  # this check is slow
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise MetricError(
        f"The metric returned {value!r:.80} (scoring). Return a number, a bool, or Score(value, feedback=...)."
    )
