"""Progress of an evaluation."""

from __future__ import annotations

from sigwire.evaluate.cell import Cell

__all__ = ["progress_reporter"]


class _Silent:
    def update(self, cell: Cell) -> None:
        """Count a finished run."""

    def close(self, status: str) -> None:
        """End."""


def progress_reporter(mode: object, total: int, metric_name: str) -> _Silent:
    """Return a reporter of progress."""
    return _Silent()
