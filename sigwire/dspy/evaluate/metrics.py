"""The names of ``dspy.evaluate.metrics``."""

from __future__ import annotations

from sigwire.evaluate.metrics.answers import answer_exact_match, answer_passage_match
from sigwire.evaluate.metrics.text import (
    EM,
    F1,
    HotPotF1,
    em_score,
    f1_score,
    hotpot_f1_score,
    normalize_text,
    precision_score,
)

__all__ = [
    "EM", "F1", "HotPotF1", "answer_exact_match", "answer_passage_match", "em_score", "f1_score", "hotpot_f1_score",
    "normalize_text", "precision_score",
]  # fmt: skip
