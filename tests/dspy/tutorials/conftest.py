"""The programs are run by their test: they import dspy, which is not installed."""

from __future__ import annotations

collect_ignore_glob = ["programs/*"]
