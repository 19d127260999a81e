"""The names of ``dspy.experimental``: documents as inputs, and citations of them as an output."""

from __future__ import annotations

from sigwire.dspy.missing import advise
from sigwire.dspy.types import Citations, Document

__all__ = ["Citations", "Document"]

advise(__name__)
