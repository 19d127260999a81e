"""``ToolRun``: a finished call of a tool, and ``RunRecorder``, which receives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sigwire.core.json import Value
from sigwire.core.report import CallReport
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolCall, ToolResult

__all__ = ["RunRecorder", "ToolRun"]


@dataclass(frozen=True, slots=True)
class ToolRun(Value):
    """A finished call. ``result`` is complete, ``shown`` is what the model sees of it, ``seconds`` is the run time.

    ``warning``: the exception of the tool, with file and line. ``report``: of the programs that ran in the tool, if any.
    """

    call: ToolCall
    result: ToolResult
    shown: ToolResult
    seconds: float = 0.0
    warning: LMWarning | None = None
    report: CallReport | None = None


class RunRecorder(Protocol):
    """Receives each finished ``ToolRun``; called from several threads. A list works."""

    def append(self, done: ToolRun, /) -> None: ...
