"""Scores of one text against another, by normalised words: pure functions, without examples and predictions.

The normalisation and the two scores are those of SQuAD (Rajpurkar et al. 2016, arXiv 1606.05250); the rule for "yes", "no" and
"noanswer" is that of HotpotQA (Yang et al. 2018, arXiv 1809.09600). Every score is between 0 and 1.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence

from sigwire.core.narrow import is_items
from sigwire.errors import InputError

__all__ = [
    "EM", "F1", "HotPotF1", "em_score", "f1_score", "hotpot_f1_score", "normalize_text", "precision_score",
]  # fmt: skip

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_CLOSED_ANSWERS = frozenset({"yes", "no", "noanswer"})


def normalize_text(s: str) -> str:
    """Return the text in NFD, in lower case, without punctuation and English articles, with single spaces.

    Normalising twice changes nothing.

    >>> normalize_text("The  Eiffel-Tower, a landmark!")
    'eiffeltower landmark'
    """
    plain = _decomposed(_decomposed(s).lower()).translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", _decomposed(plain)).split())  # marks that became neighbours are sorted again


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def EM(prediction: str, answers_list: Sequence[str]) -> bool:  # noqa: N802
    """Return True if the text equals one of the answers after normalisation. Raises ``InputError`` if there are none.

    >>> EM("The Eiffel Tower.", ["Louvre", "eiffel tower"])
    True
    """
    return max(em_score(prediction, answer) for answer in _answers(answers_list))


def F1(prediction: str, answers_list: Sequence[str]) -> float:  # noqa: N802
    """Return the highest ``f1_score`` of the text against an answer. Raises ``InputError`` if there are none.

    >>> F1("Eiffel Tower in Paris", ["Louvre", "Eiffel Tower"])
    0.6666666666666666
    """
    return _best(f1_score, prediction, answers_list)


def HotPotF1(prediction: str, answers_list: Sequence[str]) -> float:  # noqa: N802
    """Return the highest ``hotpot_f1_score`` of the text against an answer. Raises ``InputError`` if there are none.

    >>> HotPotF1("no idea", ["no"])
    0.0
    """
    return _best(hotpot_f1_score, prediction, answers_list)


def em_score(prediction: str, ground_truth: str) -> bool:
    """Return True if both texts are equal after normalisation."""
    return normalize_text(prediction) == normalize_text(ground_truth)


def f1_score(prediction: str, ground_truth: str) -> float:
    """Return the F1 of the words that both texts have, repeated words counted; 0 if they share no word.

    >>> f1_score("a red house", "the red car")
    0.5
    """
    precision, recall = _overlap(prediction, ground_truth)
    return 2 * precision * recall / (precision + recall) if precision else 0.0


def hotpot_f1_score(prediction: str, ground_truth: str) -> float:
    """Return ``f1_score``, but 0 if one text is "yes", "no" or "noanswer" and the other text is different.

    >>> hotpot_f1_score("yes", "Yes."), hotpot_f1_score("yes indeed", "yes")
    (1.0, 0.0)
    """
    texts = {normalize_text(prediction), normalize_text(ground_truth)}
    return 0.0 if len(texts) > 1 and texts & _CLOSED_ANSWERS else f1_score(prediction, ground_truth)


def precision_score(prediction: str, ground_truth: str) -> float:
    """Return the share of the prediction's words that the ground truth has; 0 if it has none.

    >>> precision_score("red house", "a red car")
    0.5
    """
    return _overlap(prediction, ground_truth)[0]


def _overlap(prediction: str, ground_truth: str) -> tuple[float, float]:
    """Return the share of common words in the prediction, and in the ground truth."""
    words, wanted = normalize_text(prediction).split(), normalize_text(ground_truth).split()
    common = (Counter(words) & Counter(wanted)).total()
    return (common / len(words), common / len(wanted)) if common else (0.0, 0.0)


def _best(score: Callable[[str, str], float], prediction: str, answers: Sequence[str]) -> float:
    return max(score(prediction, answer) for answer in _answers(answers))


def _answers(answers: object) -> Sequence[str]:
    if not is_items(answers) or not answers:
        raise InputError(f"The accepted answers are a list with at least one text, not {answers!r:.80}.")
    return answers
