"""The loggers of sigwire, and whether they show the calls of a kind. Every call asks; logging is not loaded for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial

__all__ = ["LOGGERS", "is_logged"]

LOGGERS: Mapping[str, tuple[str, int]] = {
    "module": ("sigwire.lm", 10),
    "lm": ("sigwire.lm", 10),
    "tool": ("sigwire.tool", 10),
    "evaluate": ("sigwire.evaluate", 20),
    "compile": ("sigwire.optimize", 20),
}
"""The logger of each kind of call, and the lowest level of its records. A record of a model names the module around it."""

_checks: dict[str, Callable[[], bool]] = {}


def is_logged(kind: str) -> bool:
    """Return True if logging is configured to show the calls of a kind: by ``basicConfig``, ``setLevel`` or otherwise.

    >>> is_logged("lm"), is_logged("adapter_parse")
    (False, False)
    """
    if (check := _checks.get(kind)) is None:
        if kind not in LOGGERS or "logging" not in sys.modules:
            return False
        name, level = LOGGERS[kind]
        check = _checks[kind] = partial(sys.modules["logging"].getLogger(name).isEnabledFor, level)
    return check()
