"""``Dataset``: the base of data sets with the rows ``_train``, ``_dev`` and ``_test``."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from sigwire.core.example import Example
from sigwire.core.record import FieldValues
from sigwire.keywords import ChecksKeywords

__all__ = ["Dataset"]


class Dataset(ChecksKeywords):
    """Rows as examples, shuffled by a seed and cut to a size; a subclass sets the rows.

    >>> class Colors(Dataset):
    ...     def __init__(self, **options):
    ...         super().__init__(**options)
    ...         self._train = [{"name": "red"}, {"name": "blue"}]
    >>> [sorted(each.inputs().keys()) for each in Colors(train_size=1, input_keys=["name"]).train]
    [['name']]
    """

    _train: Iterable[FieldValues] = ()
    _dev: Iterable[FieldValues] = ()
    _test: Iterable[FieldValues] = ()
    do_shuffle = True

    def __init__(
        self,
        train_seed: int = 0,
        train_size: int | None = None,
        eval_seed: int = 0,
        dev_size: int | None = None,
        test_size: int | None = None,
        input_keys: Sequence[str] | None = None,
    ) -> None:
        self.input_keys = list(input_keys or ())
        self.name = type(self).__name__
        self._seeds = {"train": train_seed, "dev": eval_seed, "test": eval_seed}
        self._sizes = {"train": train_size, "dev": dev_size, "test": test_size}
        self._parts: dict[str, list[Example]] = {}

    @property
    def train(self) -> list[Example]:
        """The examples for training."""
        return self._part("train", self._train)

    @property
    def dev(self) -> list[Example]:
        """The examples for development."""
        return self._part("dev", self._dev)

    @property
    def test(self) -> list[Example]:
        """The examples for the test at the end."""
        return self._part("test", self._test)

    def _part(self, part: str, rows: Iterable[FieldValues]) -> list[Example]:
        if part not in self._parts:
            chosen = list(rows)
            if self.do_shuffle:
                random.Random(self._seeds[part]).shuffle(chosen)
            examples = [Example(row, dspy_split=part) for row in chosen[: self._sizes[part]]]
            self._parts[part] = [each.with_inputs(*self.input_keys) if self.input_keys else each for each in examples]
        return self._parts[part]
