"""Errors of jobs."""

from __future__ import annotations

from sigwire.core.json import JsonObject
from sigwire.errors import ConfigurationError
from sigwire.modules.agents.tool_results import SECRET_TEXT

__all__ = ["JobRefused", "RowEnded", "error_text"]


class JobRefused(ConfigurationError):
    """A worker refused a job, and each other worker would: versions, an import, a key, a fault of the caller.

    ``result``: what is finished, if the driver has a result. The message has the class and the text of the worker's error.
    """

    result: object = None


class RowEnded(Exception):
    """An error ended the run of all rows after the program of this row had answered. ``record``: its record, not scored."""

    def __init__(self, error: Exception, record: JsonObject) -> None:
        super().__init__(error)
        self.error, self.record = error, record


def error_text(error: BaseException) -> str:
    """Return class and text of an error of a worker, without what looks like a secret.

    >>> error_text(ValueError("no answer for key sk-abcdefghijklmnopqrstuvwx"))
    'ValueError: no answer for key ***'
    >>> error_text(ValueError("pass LM('openai/gpt-5-mini', api_key=...)"))
    "ValueError: pass LM('openai/gpt-5-mini', api_key=...)"
    """
    text = SECRET_TEXT.sub(lambda found: f"{found[1] or ''}***", f"{type(error).__name__}: {error}")
    return text[:4_000]
