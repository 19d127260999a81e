"""The names of ``dspy.evaluate.evaluate``."""

from __future__ import annotations

from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.result import EvaluationResult

__all__ = ["Evaluate", "EvaluationResult"]
