"""Work that an awaited call does in a thread, and a blocking call where it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sigwire.effects.loops import to_thread
from sigwire.effects.steps import FunctionEffect, Steps

__all__ = ["in_thread"]

T = TypeVar("T")


def in_thread(function: Callable[[], T]) -> Steps[T]:
    """Return the result of a function. It must not depend on the thread that runs it."""
    result: T = yield FunctionEffect(function, partial(to_thread, function))
    return result
