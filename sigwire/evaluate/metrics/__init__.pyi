# isort: skip_file
# Made by python docs/tables.py from the table of names in sigwire/__init__.py.

# Names
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
    "EM",
    "F1",
    "Agreement",
    "CompleteAndGrounded",
    "HotPotF1",
    "JudgeError",
    "SemanticF1",
    "agreement",
    "answer_exact_match",
    "answer_passage_match",
    "bfcl_match",
    "contains",
    "em_score",
    "f1_score",
    "hotpot_f1_score",
    "json_match",
    "load_bfcl",
    "majority_judge",
    "matches_schema",
    "normalize_text",
    "pairwise_judge",
    "precision_score",
    "tool_call_match",
    "within",
]
