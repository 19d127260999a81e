"""``Package``: a package that a test imports when it reads a name of it."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["Package"]


class Package:
    """An official package, imported by the first test that reads a name of it; the test is skipped if it is not installed.

    An import at the head of a test file loads thousands of models in each process that collects the tests.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("_", "pytest")):  # pytest looks for marks and wrapped functions while it collects
            raise AttributeError(name)
        reason = f"the official {self._name} package is not installed"
        return getattr(pytest.importorskip(self._name, reason=reason), name)
