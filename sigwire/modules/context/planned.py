"""The folds that a previewed call would make: a preview asks for no summary and folds nothing."""

from __future__ import annotations

from contextvars import ContextVar

from sigwire.core.fold import Fold

__all__ = ["planned_folds"]

planned_folds: ContextVar[list[Fold] | None] = ContextVar("sigwire_planned_folds", default=None)
"""The list that a preview reads; ``None`` for a call that is made."""
