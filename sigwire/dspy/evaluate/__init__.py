"""The names of ``dspy.evaluate``: ``Evaluate``, metrics and judges. ``sigwire.evaluate.metrics`` has more of them.

evaluate  Evaluate      metrics  metrics of texts      auto_evaluation  metrics that ask a model
"""

from __future__ import annotations

from sigwire.dspy.evaluate import auto_evaluation, metrics
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.metrics.answers import answer_exact_match, answer_passage_match
from sigwire.evaluate.metrics.judges import CompleteAndGrounded, SemanticF1
from sigwire.evaluate.metrics.text import EM, normalize_text
from sigwire.evaluate.result import EvaluationResult

__all__ = [
    "EM", "CompleteAndGrounded", "Evaluate", "EvaluationResult", "SemanticF1", "answer_exact_match",
    "answer_passage_match", "auto_evaluation", "metrics", "normalize_text",
]  # fmt: skip
