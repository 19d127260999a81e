"""``DataLoader``: examples of files and of data sets of Hugging Face, by ``sigwire.load_examples``."""

from __future__ import annotations

import random
from collections.abc import Sequence
from importlib import import_module
from os import PathLike
from typing import Protocol

from sigwire.core.example import Example
from sigwire.core.record import FieldValue, FieldValues
from sigwire.data.reading import load_examples
from sigwire.errors import InputError

__all__ = ["DataFrame", "DataLoader"]


class DataFrame(Protocol):
    """A data frame of pandas."""

    def to_dict(self, orient: str, /) -> list[FieldValues]:
        """Return the rows, for ``orient="records"``."""
        ...


class DataLoader:
    """Load examples; ``fields``: the columns to keep, ``input_keys``: the inputs of a program.

    >>> loader = DataLoader()
    >>> parts = loader.train_test_split([Example(n=n) for n in range(4)], train_size=0.75, random_state=1)
    >>> len(parts["train"]), len(parts["test"])
    (3, 1)
    """

    def from_csv(
        self, file_path: str | PathLike[str], fields: Sequence[str] | None = None, input_keys: Sequence[str] = ()
    ) -> list[Example]:
        """Return the examples of a file (CSV, JSON, JSON lines, Parquet). Raises what ``load_examples`` raises."""
        return load_examples(file_path, input_keys, fields=fields)

    from_json = from_parquet = from_csv

    def from_pandas(
        self, df: DataFrame, fields: Sequence[str] | None = None, input_keys: Sequence[str] = ()
    ) -> list[Example]:
        """Return the examples of a data frame."""
        return load_examples(df.to_dict("records"), input_keys, fields=fields)

    def from_huggingface(
        self,
        dataset_name: str,
        *args: object,
        input_keys: Sequence[str] = (),
        fields: Sequence[str] | None = None,
        **kwargs: object,
    ) -> list[Example] | dict[str, list[Example]]:
        """Return the examples of a data set by its name, in a dict by split if it has splits. Needs the extra ``data``."""
        found: FieldValue = import_module("datasets").load_dataset(dataset_name, *args, **kwargs)
        if not hasattr(found, "keys"):
            return load_examples(found, input_keys, fields=fields)
        return {name: load_examples(found[name], input_keys, fields=fields) for name in found}

    def sample(self, dataset: list[Example], n: int) -> list[Example]:
        """Return ``n`` of the examples, chosen by chance."""
        return random.sample(dataset, n)

    def train_test_split(
        self,
        dataset: Sequence[Example],
        train_size: float = 0.75,
        test_size: float | None = None,
        random_state: int | None = None,
    ) -> dict[str, list[Example]]:
        """Return the parts "train" and "test", shuffled. A size is a share below 1, or a number of examples.

        Raises ``InputError`` for other sizes, and for sizes that are more than all examples.
        """
        shuffled = list(dataset)
        random.Random(random_state).shuffle(shuffled)
        first = _count(train_size, len(shuffled))
        second = len(shuffled) - first if test_size is None else _count(test_size, len(shuffled))
        if first + second > len(shuffled):
            raise InputError(
                f"The parts have {first + second} examples, and the data set has {len(shuffled)} (splitting)."
            )
        return {"train": shuffled[:first], "test": shuffled[first : first + second]}


def _count(size: float, whole: int) -> int:
    if isinstance(size, float) and 0 < size < 1:
        return int(whole * size)
    if isinstance(size, int) and size >= 0:
        return size
    raise InputError(f"A size is a share below 1 or a number of examples, not {size!r} (splitting). Pass 0.75 or 100.")
