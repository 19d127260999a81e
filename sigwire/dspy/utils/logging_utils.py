"""The level of log records: ``disable_logging`` and ``enable_logging`` for those of sigwire, two functions for LiteLLM's."""

from __future__ import annotations

import logging

__all__ = ["disable_litellm_logging", "disable_logging", "enable_litellm_logging", "enable_logging"]

_SILENT = logging.CRITICAL + 1


def disable_logging() -> None:
    """Drop the log records of sigwire and of DSPy's loggers; warnings are no log records, and stay.

    >>> disable_logging()
    >>> logging.getLogger("sigwire.lm").isEnabledFor(logging.ERROR)
    False
    >>> enable_logging()
    """
    _set_level(_SILENT)


def enable_logging() -> None:
    """Undo ``disable_logging``."""
    _set_level(logging.NOTSET)


def _set_level(level: int) -> None:
    for name in ("sigwire", "dspy"):
        logging.getLogger(name).setLevel(level)


def disable_litellm_logging() -> None:
    """Drop the log records of LiteLLM, which an ``LM("litellm/...")`` may make."""
    logging.getLogger("LiteLLM").setLevel(_SILENT)


def enable_litellm_logging() -> None:
    """Undo ``disable_litellm_logging``."""
    logging.getLogger("LiteLLM").setLevel(logging.NOTSET)
