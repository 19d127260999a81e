"""A change of a history, as data: ``Loss``; and the error of a change that drops content."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from sigwire.core.json import Value
from sigwire.core.messages import Message
from sigwire.errors import UnsupportedFeature

__all__ = ["HistoryLoss", "Loss", "Losses", "PartLoss", "Severity", "Turn", "refuse_losses"]

Severity: TypeAlias = Literal["none", "form", "content"]


@dataclass(frozen=True, slots=True)
class Loss(Value):
    """A change of a history for one provider.

    ``message``: the number of the message in the given history, from 0. ``part``: the number of the part in it, ``None`` if
    the change is of the turn. ``what``: "thinking", "opaque", "media", "detail", "filename", "result_media", "tool_results",
    "call_id", "system", "messages" or "text". ``why``: the change and its reason, as a sentence. ``severity``: "none" if the
    model reads the same (a renamed id, joined neighbours), "form" if it reads the same content in another form or place, or
    without its label (the name of a file), "content" if content is missing.

    >>> Loss(2, None, "tool_results", "The call 'a' of 'f' has no result.", "form").severity
    'form'
    """

    message: int
    part: int | None
    what: str
    why: str
    severity: Severity


Losses: TypeAlias = tuple[Loss, ...]
"""Every change of a history, and nothing else."""


Turn: TypeAlias = tuple[int, Message]
"""A message and its number in the given history; that of the first message if several became one."""


class PartLoss(NamedTuple):
    """A change of a turn, without the number of its message."""

    part: int | None
    what: str
    why: str
    severity: Severity


class HistoryLoss(UnsupportedFeature):
    """A provider cannot take all content of a history, and the caller demands all of it (``strict``). Nothing was sent.

    Attribute: ``losses``, those of severity "content".
    """

    def __init__(self, losses: Iterable[Loss]) -> None:
        self.losses = tuple(losses)
        first, more = self.losses[0], len(self.losses) - 1
        rest = f" and {more} more" if more else ""
        super().__init__(
            f"The history would lose content (encoding the request): message {first.message}: {first.why}{rest}. "
            "Remove that content, use the model that made it, or leave strict out."
        )

    def __reduce__(self) -> tuple[type[HistoryLoss], tuple[Losses]]:
        return type(self), (self.losses,)


def refuse_losses(losses: Iterable[Loss]) -> None:
    """Raise ``HistoryLoss`` if content is lost."""
    if content := [loss for loss in losses if loss.severity == "content"]:
        raise HistoryLoss(content)
