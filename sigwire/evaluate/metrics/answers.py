"""Metrics of short answers: equal after normalisation, contained in a text, within a tolerance.

``answer_exact_match`` and ``answer_passage_match`` return a bool. ``contains`` and
``within`` make metrics of their options and return a ``Score`` with feedback.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import SupportsFloat, TypeAlias

from sigwire.core.narrow import is_items
from sigwire.errors import ConfigurationError, InputError
from sigwire.evaluate.metrics.reading import read_field, read_text
from sigwire.evaluate.metrics.text import EM, F1, normalize_text
from sigwire.evaluate.scores import Score

__all__ = ["ScoreMetric", "answer_exact_match", "answer_passage_match", "contains", "within"]

ScoreMetric: TypeAlias = "Callable[..., Score]"
"""A metric ``(example, pred, trace=None) -> Score``."""


def answer_exact_match(example: object, pred: object, trace: object = None, frac: float = 1.0) -> bool:
    """Return True if ``pred.answer`` is an answer of the example after normalisation (``normalize_text``).

    ``example.answer`` is a text or a list of texts. With ``frac`` below 1, the best word F1 must be ``frac`` or more. Raises
    ``InputError`` (a ``ValueError``) for another type of answer.

    >>> from sigwire.core.example import Example, Prediction
    >>> answer_exact_match(Example(answer=["Paris", "the city of Paris"]), Prediction(answer="paris."))
    True
    """
    answers = _answers(example, "answer_exact_match")
    answer = read_text(pred, "answer", "answer_exact_match")
    return EM(answer, answers) if frac >= 1.0 else F1(answer, answers) >= frac


def answer_passage_match(example: object, pred: object, trace: object = None) -> bool:
    """Return True if a passage of ``pred.context`` contains an answer of the example, by whole normalised words.

    ``example.answer`` is a text or a list of texts, ``pred.context`` a list of passages or one text. Raises ``InputError`` (a
    ``ValueError``) for other types.

    >>> from sigwire.core.example import Example, Prediction
    >>> answer_passage_match(Example(answer="Gustave Eiffel"), Prediction(context=["Built by Gustave Eiffel."]))
    True
    """
    context = read_field(pred, "context", "answer_passage_match")
    passages = [context] if isinstance(context, str) else context
    if not is_items(passages):
        raise InputError(f"answer_passage_match reads passages from pred.context, not {context!r:.80}.")
    answers = _answers(example, "answer_passage_match")
    return any(_has_words(str(passage), answer) for passage in passages for answer in answers)


def contains(field: str = "answer", expected: str | None = None, *, normalize: bool = True) -> ScoreMetric:
    """Return a metric: 1 if the prediction's text contains the example's.

    ``field`` names the output, ``expected`` the field of the example (by default the same name): a text or a list of texts, of
    which one must be contained. ``normalize=False`` compares characters; otherwise whole words, as ``normalize_text`` has them.

    >>> from sigwire.core.example import Example, Prediction
    >>> metric = contains()
    >>> metric(Example(answer="Paris"), Prediction(answer="It is Paris, of course.")).value
    1.0
    >>> metric(Example(answer="Paris"), Prediction(answer="Parisian")).feedback
    "expected a text that contains 'Paris', got 'Parisian'"
    """
    label = expected or field
    has = _has_words if normalize else str.__contains__

    def contains_metric(example: object, pred: object, trace: object = None) -> Score:
        text, wanted = read_text(pred, field, "contains"), _answers(example, "contains", label)
        if any(has(text, each) for each in wanted):
            return Score(1.0)
        return Score(0.0, f"expected a text that contains {' or '.join(map(repr, wanted))}, got {text!r:.200}")

    contains_metric.__name__ = "contains"
    return contains_metric


def within(
    tolerance: float, *, relative: bool = False, field: str = "answer", expected: str | None = None
) -> ScoreMetric:
    """Return a metric: 1 if the prediction's number differs from the example's by ``tolerance`` or less.

    ``relative=True``: the tolerance is a share of the expected number. A value is a number or a text with one; the last number
    of a text counts, and commas between digits are left out. A prediction without a finite number scores 0; an example without
    one raises ``InputError``.

    >>> from sigwire.core.example import Example, Prediction
    >>> metric = within(0.5)
    >>> metric(Example(answer=1200), Prediction(answer="about 1,200.4 km")).value
    1.0
    >>> metric(Example(answer=1200), Prediction(answer="1201")).feedback
    'expected 1200 ± 0.5, got 1201'
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ConfigurationError(f"within() takes a tolerance of 0 or more, not {tolerance!r}.")
    label = expected or field

    def within_metric(example: object, pred: object, trace: object = None) -> Score:
        gold = read_field(example, label, "within")
        wanted, given = _number(gold), _number(read_field(pred, field, "within"))
        if wanted is None:
            raise InputError(f"The metric within reads a number from {label!r} of the example, not {gold!r:.80}.")
        bound = abs(wanted) * tolerance if relative else tolerance
        if given is not None and (abs(given - wanted) <= bound or math.isclose(abs(given - wanted), bound)):
            return Score(1.0)
        shown = "no number" if given is None else f"{given:g}"
        return Score(0.0, f"expected {wanted:g} ± {bound:g}, got {shown}")

    within_metric.__name__ = "within"
    return within_metric


def _answers(example: object, metric: str, field: str = "answer") -> Sequence[str]:
    answer = read_field(example, field, metric)
    answers = [answer] if isinstance(answer, str) else answer
    if not is_items(answers) or not answers or not all(isinstance(each, str) for each in answers):
        raise InputError(f"{metric} reads a text or a list of texts from example.{field}, not {answer!r:.80}.")
    return answers


def _has_words(text: str, words: str) -> bool:
    """Return True if the normalised words stand in the normalised text, one after the other. No words are in no text."""
    wanted = normalize_text(words)
    return bool(wanted) and f" {wanted} " in f" {normalize_text(text)} "


_NUMBER = re.compile(r"[-+]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")


def _number(value: object) -> float | None:
    """Return the finite number of a value, the last one of a text, or ``None``."""
    if isinstance(value, str):
        found = _NUMBER.findall(value)
        value = float(found[-1].replace(",", "")) if found else None
    elif value is not None and not isinstance(value, bool) and isinstance(value, SupportsFloat):
        value = float(value)
    return value if isinstance(value, float) and math.isfinite(value) else None
