"""The loggers of sigwire, and whether they show the calls of a kind. Every call asks, so that no configuration is missed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial

__all__ = ["LOG_CHECKS"]

_LOGGERS: Mapping[str, tuple[str, int]] = {
    "module": ("sigwire.lm", 10),
    "lm": ("sigwire.lm", 10),
    "tool": ("sigwire.tool", 10),
    "evaluate": ("sigwire.evaluate", 30),
    "example": ("sigwire.evaluate", 10),
    "compile": ("sigwire.optimize", 20),
    "hit": ("sigwire.cache", 10),
}
"""The logger of each kind of call, and the lowest level of its records. A record of a model names the module around it."""


def _ask_if_loaded(kind: str) -> bool:
    if "logging" not in sys.modules:  # nothing configured it, and no call loads it
        return False
    name, level = _LOGGERS[kind]
    LOG_CHECKS[kind] = partial(sys.modules["logging"].getLogger(name).isEnabledFor, level)
    return LOG_CHECKS[kind]()


LOG_CHECKS: dict[str, Callable[[], bool]] = {kind: partial(_ask_if_loaded, kind) for kind in _LOGGERS}
"""By kind, a function that returns True if logging shows such calls, by ``basicConfig``, ``setLevel`` or otherwise (50 ns)."""
