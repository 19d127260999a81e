"""Errors of jobs."""

from __future__ import annotations

from sigwire.errors import ConfigurationError

__all__ = ["JobRefused"]


class JobRefused(ConfigurationError):
    """A worker refused a job, and each other worker would. ``kind``: "versions", "import", "caller" or "raised".

    ``result`` has what is finished, if the driver has a result.
    """

    result: object = None

    def __init__(self, message: str, kind: str = "caller") -> None:
        super().__init__(message)
        self.kind = kind
