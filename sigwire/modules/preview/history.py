"""``sigwire.history`` and ``inspect_history``: the last calls of models, as values and printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

from sigwire.errors import ConfigurationError
from sigwire.lm.base import LanguageModel
from sigwire.lm.preview.call_log import LOGS, CallLog, CallRecord
from sigwire.lm.preview.model_call import ModelCall
from sigwire.lm.preview.printing import HistoryFormat, print_calls
from sigwire.modules.ask import resolve_lm
from sigwire.settings import current

__all__ = ["history", "inspect_history"]


def history(n: int = 1, *, lm: LanguageModel | None = None) -> list[ModelCall]:
    """Return the last ``n`` calls of all models, failed ones included, oldest first. ``lm``: those of one model.

    Each model keeps its last 50 calls (``lm.history_size``), or ``max_history_size``; a model that is gone keeps none.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> lm = FakeLM([{"answer": "4"}])
    >>> _ = Predict("question -> answer", lm=lm)(question="2+2?")
    >>> (call,) = history(lm=lm)
    >>> call.path, call.request.messages[-1].role, call.error
    ('self', 'user', None)
    """
    return [ModelCall.of(record) for record in _last_records(_all_logs() if lm is None else [_log_of(lm)], n)]


def inspect_history(
    n: int = 1, file: TextIO | None = None, *, format: HistoryFormat = "text", lm: LanguageModel | None = None
) -> None:
    """Print the last ``n`` requests and responses of the configured model, to the terminal or to ``file``.

    If no model is configured or that model has no calls, because modules have models of their own: the calls of all models.
    ``format``: "text" for people, "wire" for the JSON of the provider, "json" for a line a call. ``lm``: another model. Models
    and modules have a method of this name. Raises ``ConfigurationError`` if the model records no history.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.settings import context
    >>> lm = FakeLM(["Hello!"])
    >>> with context(lm=lm):
    ...     _ = lm("Hi")
    ...     inspect_history()
    <BLANKLINE>
    ...Hi...Hello!...
    """
    if lm is None and ((configured := current().lm) is None or not _log_of(configured).records):
        print_calls(_last_records(_all_logs(), n), file, format)
        return
    model = resolve_lm(lm, "inspect_history")
    _log_of(model)
    show: Any = model
    show.inspect_history(n, file, format=format)


def _last_records(logs: Iterable[CallLog], n: int) -> list[CallRecord]:
    records = sorted((record for log in logs for record in log.records), key=lambda record: record.time)
    return records[-n:] if n > 0 else []


def _log_of(lm: LanguageModel) -> CallLog:
    log = getattr(lm, "history", None)
    if not isinstance(log, CallLog):
        raise ConfigurationError(
            f"The model {lm.model!r} records no history (inspect_history). Subclass BaseLM, or set max_history_size and call "
            "module.inspect_history()."
        )
    return log


def _all_logs() -> list[CallLog]:
    while True:
        try:
            return list(LOGS)
        except RuntimeError:  # another thread made a model during the iteration
            continue
