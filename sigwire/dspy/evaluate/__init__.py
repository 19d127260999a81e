"""The names of ``dspy.evaluate``: metrics and judges. ``sigwire.evaluate.metrics`` has more of them."""

from __future__ import annotations

from sigwire.dspy.evaluate import metrics
from sigwire.evaluate.metrics import (
    EM,
    CompleteAndGrounded,
    SemanticF1,
    answer_exact_match,
    answer_passage_match,
    normalize_text,
)

__all__ = [
    "EM", "CompleteAndGrounded", "SemanticF1", "answer_exact_match", "answer_passage_match", "metrics", "normalize_text",
]  # fmt: skip
