"""Metrics: functions and modules that score a prediction against its example.

text        words of two texts: EM, F1         tool_calls  made calls against expected calls
answers     short answers, numbers             bfcl        the Berkeley Function Calling Leaderboard
structured  JSON, schemas                      judges      SemanticF1, CompleteAndGrounded
verdicts    votes and pairs of judges          kappa       how far a judge agrees with people
reading     the fields that a metric reads
"""

from __future__ import annotations

from sigwire.core.lazy import names_of_table

__all__, __getattr__ = names_of_table(__name__, kappa="Agreement")
