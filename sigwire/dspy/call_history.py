"""``GLOBAL_HISTORY``, the entries of the calls of all models as a list of DSPy, and ``inspect_history``, which prints them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import SupportsIndex, TextIO, overload

from sigwire.core.json import JsonObject
from sigwire.core.record import FieldValue
from sigwire.lm.base import LanguageModel
from sigwire.lm.preview.call_log import LOGS, CallRecord
from sigwire.lm.preview.printing import HistoryFormat, print_calls
from sigwire.modules.preview import history as core

__all__ = ["GLOBAL_HISTORY", "inspect_history"]


class _AllEntries(list[FieldValue]):
    """Read at each use from the logs of the models that live; ``clear`` hides the calls before it."""

    def __init__(self) -> None:
        super().__init__()
        self._since = 0.0

    def records(self) -> list[CallRecord]:
        """Return the calls, failed ones included."""
        records = (each for log in list(LOGS) for each in log.records if each.time > self._since)
        return sorted(records, key=lambda each: each.time)

    def _entries(self) -> list[JsonObject]:
        return [each.entry() for each in self.records() if each.error is None]

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
"""The entries of the calls of all models, oldest first.

A model of the door keeps 10,000 calls, or ``max_history_size``; a model that is gone keeps none.
"""


def inspect_history(
    n: int = 1, file: TextIO | None = None, *, format: HistoryFormat = "text", lm: LanguageModel | None = None
) -> None:
    """Print the last ``n`` requests and responses of all models, as DSPy does, configured or not; or those of ``lm``.

    ``format`` "wire", and ``lm``, are those of ``sigwire.inspect_history``, which prints the configured model's calls.

    >>> from sigwire.lm.fake import FakeLM
    >>> lm = FakeLM(["Hello!"])
    >>> _ = lm("Hi")
    >>> inspect_history()
    <BLANKLINE>
    ...Hi...Hello!...
    """
    if lm is not None or format == "wire":
        core.inspect_history(n, file, format=format, lm=lm)
    else:
        print_calls(GLOBAL_HISTORY.records()[-n:] if n > 0 else [], file, format)
