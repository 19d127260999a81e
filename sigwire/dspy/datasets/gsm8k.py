"""``GSM8K`` (Cobbe et al., 2021, https://arxiv.org/abs/2110.14168) in DSPy's parts, and its metric."""

from __future__ import annotations

import random
import re
from typing import cast

from sigwire.core.example import Example
from sigwire.core.record import Record
from sigwire.dspy.datasets.dataloader import DataLoader

__all__ = ["GSM8K", "gsm8k_metric", "parse_integer_answer"]


class GSM8K:
    """Questions with "gold_reasoning" and "answer": 200 rows as ``train``, 300 as ``dev``, the test rows as ``test``.

    Needs the extra ``data`` and a network.
    """

    def __init__(self) -> None:
        loaded = cast("dict[str, list[Example]]", DataLoader().from_huggingface("gsm8k", "main"))
        parts = {name: [_example(row) for row in loaded[name]] for name in ("train", "test")}
        for rows in parts.values():
            random.Random(0).shuffle(rows)
        self.train, self.dev, self.test = parts["train"][:200], parts["train"][200:500], parts["test"]


def _example(row: Example) -> Example:
    reasoning, _, answer = str(row["answer"]).rpartition("####")
    made = Example(
        question=row["question"], gold_reasoning=" ".join(reasoning.split()), answer=answer.strip().replace(",", "")
    )
    return made.with_inputs("question")


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
