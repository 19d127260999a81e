"""``PromptCacheWatch``: breaks of the provider's prompt cache during a run. Counts are compared; requests only of a suspect.

The records of the calls are those of ``lm.history``: nothing is kept for it but the latest one of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sigwire.core.response import Response
from sigwire.settings import current

if TYPE_CHECKING:
    from sigwire.lm.preview.cache_health import CacheBreak
    from sigwire.lm.preview.call_log import CallRecord

__all__ = ["PromptCacheWatch"]

_LEAST = 2_000  # tokens: fewer are no break


class PromptCacheWatch:
    """The requests of a run, one after the other. ``breaks`` are those that were found."""

    __slots__ = ("_count", "_is_settled", "_latest", "breaks")

    def __init__(self) -> None:
        self.breaks: list[CacheBreak] = []
        self._latest: CallRecord | None = None
        self._count, self._is_settled = 0, True

    def add(self, response: Response, asker: Any, warn: Callable[[Any], object]) -> None:
        """Add an answer of ``asker``. ``warn`` gets the warning of an unplanned break, once until the cache is used."""
        usage, number = response.usage, self._count
        self._count += 1
        if usage.cached_tokens is None or (usage.input_tokens or 0) < _LEAST or response.cache == "hit":
            return
        if (record := _record_of(response, asker)) is None:
            return
        before, self._latest = self._latest or _before(record, asker), record
        if before is None:
            return
        known = before.response.usage
        established = (known.cached_tokens or 0) + (known.cache_write_tokens or 0)
        if established and established - usage.cached_tokens < _LEAST:
            self._is_settled = True
            return
        from sigwire.lm.preview.cache_health import UNPLANNED, find_break, warning_of  # only of a suspect

        if (found := find_break([before], record, number)) is None:
            self._is_settled = True
            return
        self.breaks.append(found)
        if found.why in UNPLANNED and self._is_settled:
            self._is_settled = False
            warn(warning_of(found))


def _record_of(response: Response, asker: Any) -> CallRecord | None:
    """Return the record of an answer, which is among the latest of its model."""
    return next((each for each in _records(asker) if each.response.usage is response.usage), None)


def _before(record: CallRecord, asker: Any) -> CallRecord | None:
    """Return the record before the first one of a run: of an earlier run of the conversation, if it is one."""
    records = iter(_records(asker))
    return next((each for each in records if each is record), None) and next(records, None)


def _records(asker: Any) -> list[CallRecord]:
    """Return the kept calls of a predictor, the latest first."""
    lm = getattr(asker, "lm", None) or current().lm
    records: list[CallRecord] = getattr(getattr(lm, "history", None), "records", [])
    return [each for each in reversed(records) if each.asker is asker and each.error is None]
