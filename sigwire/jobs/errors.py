"""Errors of jobs."""

from __future__ import annotations

from sigwire.errors import ConfigurationError

__all__ = ["JobRefused"]


class JobRefused(ConfigurationError):
    """A worker refused a job, and each other worker would: versions, an import, a key, a fault of the caller.

    ``result``: what is finished, if the driver has a result. The message has the class and the text of the worker's error.
    """

    result: object = None
