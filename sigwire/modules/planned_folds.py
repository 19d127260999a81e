"""The folds that a previewed call would make: a preview asks for no summary and folds nothing."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from sigwire.core.fold import Fold

__all__ = ["planned_folds", "planning"]

planned_folds: ContextVar[list[Fold] | None] = ContextVar("sigwire_planned_folds", default=None)
"""The list that a preview reads; ``None`` for a call that is made."""


@contextmanager
def planning() -> Generator[None]:
    """Inside the block, conversations are not folded; their folds are planned."""
    token = planned_folds.set([])
    try:
        yield
    finally:
        planned_folds.reset(token)
