"""Leaving: who stops waiting wakes what still works for them elsewhere.

What a program waits for may be at work in another thread, or on another event loop, where nothing reaches it. A ``CancelScope`` is
whoever it works for; the threads and tasks that are begun for somebody have theirs in their context.

    with on_leave(abort): ...       before waiting: ``abort`` is called when the scope is left, by whoever leaves it
    scope.leave()                   wakes what waits, here and in the scopes within; who comes later hears ``StreamCancelled``

This file only passes it on: bridges between threads and loops (``steps``), streams and sockets say what waking means.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

__all__ = [
    "CANCEL_GRACE_SECONDS",
    "CancelScope",
    "StreamCancelled",
    "current_scope",
    "merge_partial",
    "on_cancel",
    "set_scope",
]

CANCEL_GRACE_SECONDS = 1.0  # seconds: how long who leaves waits for what was woken to put away what it holds


class StreamCancelled(BaseException):
    """Raised in a program that nobody listens to any more, or waits for. Programs clean up and let it pass."""

    def __init__(self, message: str = "the stream was left before its end") -> None:
        super().__init__(message)


def merge_partial(error: BaseException, *failures: BaseException | None) -> None:
    """Put on an exception what programs that were given up for it had put on theirs: what was said and done so far.

    An ``Exception`` among them failed by itself, and tells nothing here. What the exception has already stays.

    >>> inner, outer = StreamCancelled(), StreamCancelled()
    >>> inner.partial = "so far"
    >>> learn(outer, inner, None)
    >>> outer.partial
    'so far'
    """
    for failure in failures:
        if failure is not None and not isinstance(failure, Exception):
            for name, value in vars(failure).items():
                error.__dict__.setdefault(name, value)


class CancelScope:
    """Somebody for whom work is done, until they leave."""

    __slots__ = ("_aborts", "cancelled")

    def __init__(self) -> None:
        self.cancelled = False
        self._aborts: list[Callable[[], object]] = []

    def cancel(self) -> bool:
        """Wake what waits; whether anything did."""
        self.cancelled = True
        aborts, self._aborts = self._aborts, []
        woke = [abort() is not False for abort in aborts]  # all of them
        return any(woke)

    @contextmanager
    def on_cancel(self, abort: Callable[[], object]) -> Generator[None]:
        """While inside, leaving calls ``abort``. Raises ``StreamCancelled`` where they have left already."""
        self._aborts.append(abort)  # first this, then the look: whoever leaves in between finds it
        try:
            if self.cancelled:
                raise StreamCancelled
            yield
        finally:
            with suppress(ValueError):
                self._aborts.remove(abort)


_scope: ContextVar[CancelScope | None] = ContextVar("sigwire_scope", default=None)


def current_scope() -> CancelScope | None:
    """Whose work this is; ``None`` where whoever waits for it waits right here."""
    return _scope.get()


def set_scope(scope: CancelScope) -> None:
    """What follows in this context is done for ``scope``."""
    _scope.set(scope)


@contextmanager
def on_cancel(abort: Callable[[], object]) -> Generator[None]:
    """While inside: when those for whom this is done leave, ``abort`` is called there. Raises ``StreamCancelled`` if they have left.

    >>> scope, woken = CancelScope(), []
    >>> with scope.watching(lambda: woken.append("up")):
    ...     scope.leave()
    True
    >>> woken
    ['up']
    """
    scope = _scope.get()
    if scope is None:
        yield
        return
    with scope.on_cancel(abort):
        yield
