"""``ToolRun``: a finished call of a tool, and ``RunRecorder``, which receives them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from sigwire.core.json import Value
from sigwire.core.report import CallReport
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.observe.reports import add_entry

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

    def with_report(self, report: CallReport | None) -> ToolRun:
        """Return the run with the report of the programs in it."""
        return self if report is None else replace(self, report=report)

    def add_report(self) -> None:
        """Add the report to the running call, for a run that is not made now."""
        add_entry(self.report)

    def kept(self) -> ToolRun:
        """Return this run of before its agent was resumed, and add its warning to the run that goes on."""
        add_entry(self.warning)
        return self


class RunRecorder(Protocol):
    """Receives each finished ``ToolRun``; called from several threads. A list works."""

    def append(self, done: ToolRun, /) -> None: ...
