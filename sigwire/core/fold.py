"""``Fold``: the turns of a conversation that are left out of what is sent, and the summary in their place."""

from __future__ import annotations

from dataclasses import dataclass

from sigwire.core.json import Value

__all__ = ["Fold"]


@dataclass(frozen=True, slots=True)
class Fold(Value):
    """The turns that a request leaves out. The conversation keeps them; the latest fold decides what is sent.

    The turns before ``upto`` are left out; tool results before ``cleared`` are sent as references. ``summary`` stands in their
    place. ``why``: "window", "refused" or "tools" (the tools of the conversation changed). ``tokens_before`` and
    ``tokens_after`` are estimates of the request. ``search`` and ``reader`` name the tools that find what is left out, empty
    if there are none.

    >>> fold = Fold(42, summary="Ada asked for the price.", tokens_before=6820, tokens_after=1590)
    >>> Fold.from_json(fold.to_json()) == fold
    True
    """

    upto: int
    cleared: int = 0
    summary: str = ""
    why: str = "window"
    tokens_before: int = 0
    tokens_after: int = 0
    search: str = ""
    reader: str = ""
