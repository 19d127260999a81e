"""``HotPotQA`` (Yang et al., 2018, https://arxiv.org/abs/1809.09600): the hard questions, in DSPy's parts."""

from __future__ import annotations

import random
from typing import Any, Literal, cast

from sigwire.core.example import Example
from sigwire.dspy.datasets.dataloader import DataLoader
from sigwire.dspy.datasets.dataset import Dataset
from sigwire.errors import ConfigurationError

__all__ = ["HotPotQA"]

_DETAILS = ("id", "question", "answer", "type", "context")


class HotPotQA(Dataset):
    """Questions with "answer"; three quarters of the official training rows as ``train``, the others as ``dev``.

    ``dev`` and ``test`` (the official validation rows) have "gold_titles", a set. ``keep_details``: "dev_titles" is that, True
    adds all columns to ``train`` and ``dev``, False leaves the titles of ``dev`` out. Without ``unofficial_dev`` there is no
    ``dev``. Other options: see ``Dataset``. Needs the extra ``data`` and a network. Raises ``ConfigurationError`` for
    ``only_hard_examples=False``.

    >>> HotPotQA(only_hard_examples=False)
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: HotPotQA has hard rows only (making it). Load others with DataLoader().from_huggingface.
    """

    def __init__(
        self,
        *options: Any,
        only_hard_examples: bool = True,
        keep_details: bool | Literal["dev_titles"] = "dev_titles",
        unofficial_dev: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(*options, **more)
        if not only_hard_examples:
            raise ConfigurationError(
                "HotPotQA has hard rows only (making it). Load others with DataLoader().from_huggingface."
            )
        loaded = cast("dict[str, list[Example]]", DataLoader().from_huggingface("hotpot_qa", "fullwiki"))
        kept = _DETAILS if keep_details is True else ("question", "answer")
        hard = [_row(row, kept, bool(keep_details)) for row in loaded["train"] if row["level"] == "hard"]
        random.Random(0).shuffle(hard)
        split = len(hard) * 75 // 100
        self._train, self._dev = hard[:split], hard[split:] if unofficial_dev else []
        if keep_details == "dev_titles":
            self._train = [{"question": row["question"], "answer": row["answer"]} for row in self._train]
        self._test = [_row(row, ("id", "question", "answer", "type"), True) for row in loaded["validation"]]


def _row(row: Example, kept: tuple[str, ...], has_titles: bool) -> dict[str, Any]:
    titles = {"gold_titles": set(row["supporting_facts"]["title"])} if has_titles else {}
    return {**{name: row[name] for name in kept}, **titles}
