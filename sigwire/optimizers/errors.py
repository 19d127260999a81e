"""Errors of a search that ended before its end, or whose rule does not search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from sigwire.errors import CallerError, LMError

__all__ = ["OptimizationInterrupted", "RuleError", "SearchPaused"]


class SearchPaused(LMError):
    """The provider failed so often that the search stopped. Nothing is lost: with a journal, the same call resumes it."""

    @classmethod
    def after(cls, failures: Sequence[str]) -> Self:
        """Return the error after failures of the provider, given as texts."""
        last = failures[-1] if failures else "no answer"
        return cls(
            f"The provider failed {len(failures)} times, the last time with {last[:300]}. Finished runs are kept, and "
            "no score counts a failure. Compile again with the same journal= to resume."
        )


class RuleError(CallerError, TypeError):
    """The ``rule`` of an optimizer is no generator of effects that returns a candidate."""


class OptimizationInterrupted(KeyboardInterrupt):
    """A search was interrupted; a journal resumes it. ``program``: the best program until then; ``report``: its report."""

    def __init__(self, message: str, program: Any = None, report: Any = None) -> None:
        self.program, self.report = program, report
        super().__init__(message)

    @classmethod
    def after(cls, program: Any, report: Any, journal: object) -> Self:
        """Return the exception of an interrupted search."""
        hint = (
            "Compile again with the same journal= to resume." if journal else "Without journal= it cannot be resumed."
        )
        return cls(
            f"The search was interrupted after {report.spent.runs} runs. The best program until then is the attribute program "
            f"of this exception. {hint}",
            program,
            report,
        )
