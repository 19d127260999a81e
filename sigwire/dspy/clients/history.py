"""``GLOBAL_HISTORY``: the entries of the calls of all models, as a list of DSPy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import SupportsIndex, overload

from sigwire.core.json import JsonObject
from sigwire.core.record import FieldValue
from sigwire.lm.preview.call_log import LOGS

__all__ = ["GLOBAL_HISTORY"]


class _AllEntries(list[FieldValue]):
    """Read at each use from the logs of the models that live; ``clear`` hides the calls before it."""

    def __init__(self) -> None:
        super().__init__()
        self._since = 0.0

    def _entries(self) -> list[JsonObject]:
        records = sorted((each for log in list(LOGS) for each in log.records), key=lambda each: each.time)
        return [each.entry() for each in records if each.error is None and each.time > self._since]

    def clear(self) -> None:
        self._since = time.time()

    def __len__(self) -> int:
        return len(self._entries())

    def __iter__(self) -> Iterator[FieldValue]:
        return iter(self._entries())

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> FieldValue: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[FieldValue]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> FieldValue:
        return self._entries()[index]

    def __repr__(self) -> str:
        return repr(self._entries())


GLOBAL_HISTORY = _AllEntries()
"""The entries of the calls of all models, oldest first. Each model keeps its last 50 calls; a model that is gone keeps none."""
