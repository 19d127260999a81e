"""The names of ``dspy.experimental``: documents as inputs, citations of them as an output, a client of System One."""

from __future__ import annotations

from sigwire.dspy.missing import advise
from sigwire.dspy.types import Citations, Document
from sigwire.dspy.typesafe import TypeSafe

__all__ = ["Citations", "Document", "TypeSafe"]

advise(__name__)
