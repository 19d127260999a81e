"""``MATH`` (Hendrycks et al., 2021, https://arxiv.org/abs/2103.03874): one subject, in DSPy's parts and with its metric."""

from __future__ import annotations

import random
import re
from importlib import import_module
from typing import cast

from sigwire.core.example import Example
from sigwire.core.record import Record
from sigwire.dspy.datasets.dataloader import DataLoader
from sigwire.errors import ConfigurationError

__all__ = ["MATH", "extract_answer"]


class MATH:
    """The test rows of a subject ("algebra"), shuffled: at most 350 as ``train``, as many as ``dev``, the others as ``test``.

    Needs the extra ``data`` and a network; the metric needs the package math_equivalence.
    """

    def __init__(self, subset: str) -> None:
        loaded = DataLoader().from_huggingface("DigitalLearningGmbH/MATH-lighteval", subset)
        rows = [_example(row) for row in cast("dict[str, list[Example]]", loaded)["test"]]
        random.Random(0).shuffle(rows)
        size = min(350, len(rows) // 3)
        self.train, self.dev, self.test = rows[:size], rows[size : 2 * size], rows[2 * size :]

    def metric(self, example: Record, pred: Record, trace: object = None) -> bool:
        """Return True if the answers are the same formula. Raises ``ConfigurationError`` without math_equivalence."""
        try:
            same = import_module("math_equivalence").is_equiv
        except ImportError as error:
            raise ConfigurationError(
                "MATH's metric needs math_equivalence (comparing answers). Install it, or compare answers by your own metric."
            ) from error
        return bool(same(example["answer"], pred["answer"]))


def _example(row: Example) -> Example:
    solution = str(row["solution"])
    made = Example(question=row["problem"], reasoning=solution, answer=extract_answer(solution))
    return made.with_inputs("question")


def extract_answer(text: str) -> str | None:
    r"""Return what stands in the first ``\boxed{...}``, without texts and thin spaces; ``None`` if there is no box.

    >>> extract_answer(r"So it is $\boxed{\frac{1}{2}\text{ cm}}$."), extract_answer("none")
    ('\\frac{1}{2}', None)
    """
    _, box, rest = text.partition(r"\boxed{")
    depth, length = 1, 0
    while length < len(rest) and (depth := depth + {"{": 1, "}": -1}.get(rest[length], 0)):
        length += 1
    return re.sub(r"\\text\{[^}]*\}|\\!", "", rest[:length]).strip() if box else None
