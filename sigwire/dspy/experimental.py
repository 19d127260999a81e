"""The names of ``dspy.experimental``: documents as inputs, citations and decisions as outputs, ``ReAnchor``, ``TypeSafe``."""

from __future__ import annotations

from sigwire.dspy.decisions.values import Choice, Noul, Score
from sigwire.dspy.missing import advise
from sigwire.dspy.optimizers.reanchor import ReAnchor
from sigwire.dspy.types import Citations, Document
from sigwire.dspy.typesafe import TypeSafe

__all__ = ["Choice", "Citations", "Document", "Noul", "ReAnchor", "Score", "TypeSafe"]

advise(__name__)
