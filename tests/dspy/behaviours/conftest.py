"""The behaviours are run by ``tests/dspy/test_behaviours.py``: they import dspy, which is not installed."""

from __future__ import annotations

collect_ignore_glob = ["*.py"]
