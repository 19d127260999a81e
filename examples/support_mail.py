"""The data of an optimization example: 168 support messages (`support_mail.tsv`), each with its topic and its order.

They were written for these examples, each once; ``split`` refuses two messages that share most of their words.
"""

from __future__ import annotations

import csv
import random
import re
from pathlib import Path

from sigwire import Example

__all__ = ["examples", "refuse_duplicates", "split"]


def examples() -> list[Example]:
    """Return all messages, with the number of the order or 0."""
    rows: list[Example] = []
    with Path(__file__).with_suffix(".tsv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file, delimiter="\t"):
            order = re.search(r"\b\d{4}\b", line["message"])
            row = Example(message=line["message"], topic=line["topic"], order=int(order.group()) if order else 0)
            rows.append(row.with_inputs("message"))
    return rows


def split(seed: int = 0) -> tuple[list[Example], list[Example], list[Example]]:
    """Return 60 messages for training, 48 for validation and 60 for the test, of each topic alike.

    >>> [len(part) for part in split()]
    [60, 48, 60]
    """
    rows = examples()
    refuse_duplicates([row.message for row in rows])
    source = random.Random(seed)
    train: list[Example] = []
    val: list[Example] = []
    test: list[Example] = []
    for topic in dict.fromkeys(row.topic for row in rows):
        own = [row for row in rows if row.topic == topic]
        source.shuffle(own)
        train += own[:10]
        val += own[10:18]
        test += own[18:]
    for part in (train, val, test):
        source.shuffle(part)
    return train, val, test


def refuse_duplicates(texts: list[str]) -> None:
    """Raise ``ValueError`` if two texts share most of their words."""
    words = [frozenset(re.findall(r"[a-z]+", text.lower())) for text in texts]
    for at, first in enumerate(words):
        for second in words[:at]:
            if len(first & second) / len(first | second) > 0.6:
                raise ValueError(f"two texts are nearly equal: {texts[at]}")
