"""The names of ``dspy.evaluate.auto_evaluation``: metrics that ask a model."""

from __future__ import annotations

from sigwire.evaluate.metrics.judges import CompleteAndGrounded, SemanticF1

__all__ = ["CompleteAndGrounded", "SemanticF1"]
