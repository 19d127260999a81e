"""Metrics: functions and modules that score a prediction against its example.

text        words of two texts: EM, F1         tool_calls  made calls against expected calls
answers     short answers, numbers             bfcl        the Berkeley Function Calling Leaderboard
structured  JSON, schemas                      judges      SemanticF1, CompleteAndGrounded
verdicts    votes and pairs of judges          kappa       how far a judge agrees with people
reading     the fields that a metric reads
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.evaluate.metrics.answers import answer_exact_match, answer_passage_match, contains, within
    from sigwire.evaluate.metrics.bfcl import bfcl_match, load_bfcl
    from sigwire.evaluate.metrics.judges import CompleteAndGrounded, JudgeError, SemanticF1
    from sigwire.evaluate.metrics.kappa import Agreement, agreement
    from sigwire.evaluate.metrics.structured import json_match, matches_schema
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
    from sigwire.evaluate.metrics.tool_calls import tool_call_match
    from sigwire.evaluate.metrics.verdicts import majority_judge, pairwise_judge

__all__ = [
    "EM", "F1", "Agreement", "CompleteAndGrounded", "HotPotF1", "JudgeError", "SemanticF1", "agreement",
    "answer_exact_match", "answer_passage_match", "bfcl_match", "contains", "em_score", "f1_score", "hotpot_f1_score",
    "json_match", "load_bfcl", "majority_judge", "matches_schema", "normalize_text", "pairwise_judge",
    "precision_score", "tool_call_match", "within",
]  # fmt: skip

__getattr__ = lazy_names(
    __name__,
    answers="answer_exact_match answer_passage_match contains within",
    bfcl="bfcl_match load_bfcl",
    judges="CompleteAndGrounded JudgeError SemanticF1",
    kappa="Agreement agreement",
    structured="json_match matches_schema",
    text="EM F1 HotPotF1 em_score f1_score hotpot_f1_score normalize_text precision_score",
    tool_calls="tool_call_match",
    verdicts="majority_judge pairwise_judge",
)
