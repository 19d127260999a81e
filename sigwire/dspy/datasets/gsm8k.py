"""The metric of GSM8K (Cobbe et al., 2021, https://arxiv.org/abs/2110.14168): the last number of both answers."""

from __future__ import annotations

import re

from sigwire.core.record import Record

__all__ = ["gsm8k_metric", "parse_integer_answer"]


def gsm8k_metric(gold: Record, pred: Record, trace: object = None) -> bool:
    """Return True if the answers end in the same whole number.

    >>> from sigwire.core.example import Example, Prediction
    >>> gsm8k_metric(Example(answer="42"), Prediction(answer="It is $42.00"))
    True
    """
    return parse_integer_answer(str(gold["answer"])) == parse_integer_answer(str(pred["answer"]))


def parse_integer_answer(answer: str, only_first_line: bool = True) -> int:
    """Return the last word with a digit as a whole number, without its decimals; 0 if there is none.

    >>> parse_integer_answer("about 1,200.50 metres"), parse_integer_answer("none")
    (1200, 0)
    """
    text = answer.strip().partition("\n")[0] if only_first_line else answer
    words = [word for word in text.split() if re.search(r"\d", word)]
    digits = re.sub(r"\D", "", words[-1].split(".")[0]) if words else ""
    return int(digits or 0)
