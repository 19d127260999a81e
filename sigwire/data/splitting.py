"""``split_examples``: seeded parts of a data set without leakage; ``duplicates``, ``leaked``: equal examples in sets.

Two examples are equal if their inputs are, with case, blanks and Unicode forms made equal: for a program they are the
same, so one in training and one in test measures memory.
"""

from __future__ import annotations

import random
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from sigwire.core.example import Example
from sigwire.core.json import JsonValue, dumps
from sigwire.core.record import to_plain
from sigwire.errors import ConfigurationError, InputError, warn_user
from sigwire.show.card import BoundedRepr

__all__ = ["DataSplit", "duplicates", "leaked", "split_examples"]


@dataclass(frozen=True, slots=True)
class DataSplit(BoundedRepr):
    """The parts of a data set. ``duplicates``: how many examples are equal to an earlier one; they are in its part."""

    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]
    duplicates: int = 0


def split_examples(
    examples: Iterable[Example],
    *,
    train: float = 0.4,
    dev: float = 0.3,
    test: float = 0.3,
    seed: int = 0,
    by: str | Callable[[Example], object] | None = None,
    drop_duplicates: bool = False,
) -> DataSplit:
    """Split examples into three parts, the same for a seed on every machine.

    ``train``, ``dev``, ``test``: shares of the examples, 1.0 together. Equal examples are in one part, and so are those with
    one value of ``by`` (a field such as the customer, or a function), so a part may be a little larger than its share.
    ``drop_duplicates`` keeps the first of equal examples; otherwise a warning states their number. The parts keep the order.

    Raises ``ConfigurationError`` for shares that are not 1.0 together, ``InputError`` for no examples.

    >>> rows = [Example(question=f"{n}+{n}?", answer=2 * n).with_inputs("question") for n in range(10)]
    >>> parts = split_examples(rows, seed=1)
    >>> len(parts.train), len(parts.dev), len(parts.test)
    (4, 3, 3)
    """
    shares = (train, dev, test)
    if min(shares) < 0 or abs(sum(shares) - 1.0) > 1e-9:
        raise ConfigurationError(f"The shares of a split are 1.0 together, not {sum(shares):g} (splitting).")
    rows = list(examples)
    if not rows:
        raise InputError("There are no examples to split.")
    repeated = set(duplicates(rows))
    if drop_duplicates:
        rows = [row for at, row in enumerate(rows) if at not in repeated]
    elif repeated:
        warn_user(
            f"{len(repeated)} of {len(rows)} examples have inputs equal to an earlier one (splitting); they are in its part. "
            "drop_duplicates=True removes them."
        )
    bounds = (train * len(rows), (train + dev) * len(rows), float("inf"))
    parts: list[list[int]] = [[], [], []]
    taken = 0
    for group in _shuffled(_groups(rows, by), seed):
        part = next(at for at, bound in enumerate(bounds) if taken + len(group) / 2 < bound + 1e-9 and shares[at] > 0)
        parts[part] += group
        taken += len(group)
    first, second, third = (tuple(rows[at] for at in sorted(part)) for part in parts)
    return DataSplit(first, second, third, len(repeated))


def duplicates(examples: Sequence[Example]) -> list[int]:
    """Return the positions of the examples whose inputs are equal to those of an earlier one.

    >>> duplicates([Example(question="2+2?"), Example(question="3+3?"), Example(question=" 2+2? ")])
    [2]
    """
    seen = set[str]()
    found: list[int] = []
    for at, example in enumerate(examples):
        key = _key(example)
        if key in seen:
            found.append(at)
        seen.add(key)
    return found


def leaked(training: Iterable[Example], held_out: Sequence[Example]) -> list[int]:
    """Return the positions of the held-out examples whose inputs are in the training set as well.

    >>> leaked([Example(question="2+2?")], [Example(question="3+3?"), Example(question="2+2?")])
    [1]
    """
    known = {_key(example) for example in training}
    return [at for at, example in enumerate(held_out) if _key(example) in known]


def _key(example: Example) -> str:
    """Return the inputs of an example in a form that equal ones share; all fields if it declares no inputs."""
    fields = example if cast(Any, example)._input_keys is None else Example.inputs(example)
    return dumps([[name, _plain(value)] for name, value in sorted(Example.items(fields))])


def _plain(value: object) -> JsonValue:
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFKC", value).casefold().split())
    plain: JsonValue = to_plain(value)
    return plain


def _groups(rows: Sequence[Example], by: str | Callable[[Example], object] | None) -> list[list[int]]:
    """Return the positions that belong together: linked by equal inputs or by one value of ``by``."""
    group_of: dict[object, int] = {}
    parent = list(range(len(rows)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    for at, row in enumerate(rows):
        marks: list[object] = [("inputs", _key(row))]
        if by is not None:
            marks.append(("by", dumps(to_plain(by(row) if callable(by) else row[by]))))
        for mark in marks:
            parent[root(at)] = root(group_of.setdefault(mark, at))
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for at in range(len(rows)):
        groups[root(at)].append(at)
    return list(groups.values())


def _shuffled(groups: list[list[int]], seed: int) -> list[list[int]]:
    """Return the groups in a seeded order, larger ones not all at the end."""
    order = random.Random(sha256(f"sigwire split {seed}".encode()).digest())
    order.shuffle(groups)
    return groups
