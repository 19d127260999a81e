"""Cancel scopes that reach across threads and event loops.

Steps may wait in another thread or on another event loop, where the cancellation of a task does not arrive. The context of such
a thread or task holds a ``CancelScope``.

A wait runs inside ``on_cancel(wake)``: cancelling the scope calls ``wake``, in the cancelling thread; later waits raise
``StreamCancelled``. Each kind of wait has its own callback: bridges between threads and loops, streams, sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "CANCEL_GRACE_SECONDS", "INTERRUPT_GRACE_SECONDS", "CancelScope", "CoroutineOf", "StreamCancelled", "current_scope",
    "merge_partial", "on_cancel", "run_cancellable", "set_scope",
]  # fmt: skip

T = TypeVar("T")
CoroutineOf: TypeAlias = Coroutine[Any, Any, T]

CANCEL_GRACE_SECONDS = 1.0  # seconds: a cancelling caller waits this long for woken threads to release their resources
INTERRUPT_GRACE_SECONDS = 10.0  # seconds: after a first interrupt, rows in flight may end


class StreamCancelled(BaseException):
    """Raised at the yield of steps whose consumer stopped early. Steps release their resources and let it propagate."""

    def __init__(self, message: str = "the stream was closed before its end") -> None:
        super().__init__(message)


def merge_partial(error: BaseException, *failures: BaseException | None) -> None:
    """Copy the attributes of cancelled steps' exceptions (partial response, finished turns) to ``error``.

    Attributes that ``error`` has are kept. An ``Exception`` among the failures is skipped: it is an error, not a cancellation.

    >>> inner, outer = StreamCancelled(), StreamCancelled()
    >>> inner.partial = "Par"
    >>> merge_partial(outer, inner, None)
    >>> outer.partial
    'Par'
    """
    for failure in failures:
        if failure is not None and not isinstance(failure, Exception):
            for name, value in vars(failure).items():
                error.__dict__.setdefault(name, value)


class CancelScope:
    """Waits that are cancelled together.

    >>> scope, woken = CancelScope(), []
    >>> with scope.on_cancel(lambda: woken.append("up")):
    ...     scope.cancel()
    True
    >>> woken
    ['up']
    """

    __slots__ = ("callbacks", "cancelled")

    def __init__(self) -> None:
        self.cancelled = False
        self.callbacks: list[Callable[[], object]] = []

    def cancel(self) -> bool:
        """Call every callback. Return True if one of them returned something else than False."""
        self.cancelled = True
        callbacks, self.callbacks = self.callbacks, []
        woke = [callback() is not False for callback in callbacks]  # a list: any() alone would stop at the first
        return any(woke)

    def on_cancel(self, callback: Callable[[], object]) -> AbstractContextManager[None]:
        """Inside the block, ``cancel`` calls ``callback``. Raises ``StreamCancelled`` if the scope is cancelled already."""
        return _CallbackBlock(self, callback)


class _CallbackBlock:  # a generator would take three times as long, around each wait
    __slots__ = ("_callback", "_scope")

    def __init__(self, scope: CancelScope, callback: Callable[[], object]) -> None:
        self._scope, self._callback = scope, callback

    def __enter__(self) -> None:
        self._scope.callbacks.append(self._callback)  # before the check: a concurrent cancel() must find it
        if self._scope.cancelled:
            self.__exit__()
            raise StreamCancelled

    def __exit__(self, *_: object) -> None:
        if self._callback in (callbacks := self._scope.callbacks):
            callbacks.remove(self._callback)


_scope: ContextVar[CancelScope | None] = ContextVar("sigwire_scope", default=None)


current_scope: Callable[[], CancelScope | None] = _scope.get
"""Return the cancel scope of the current context, ``None`` if the caller waits in this thread and task itself."""
set_scope: Callable[[CancelScope], object] = _scope.set
"""Set the cancel scope of the current context."""
_NO_SCOPE = nullcontext()


def on_cancel(callback: Callable[[], object]) -> AbstractContextManager[None]:
    """``CancelScope.on_cancel`` of the current scope. Without a scope the block runs as it is."""
    scope = _scope.get()
    return _NO_SCOPE if scope is None else scope.on_cancel(callback)


async def run_cancellable(scope: CancelScope, coroutine: CoroutineOf[T]) -> T:
    """Await a coroutine. If another thread cancels the scope, the coroutine is cancelled and ``StreamCancelled`` raised.

    A task that is being cancelled already is not cancelled again: its cleanup must not be interrupted.
    """
    import asyncio

    loop, task = asyncio.get_running_loop(), cast("asyncio.Task[T]", asyncio.current_task())
    is_waiting, was_cancelled = True, False

    def cancel() -> None:
        nonlocal was_cancelled
        if is_waiting and not task.cancelling():
            was_cancelled = task.cancel()

    def cancel_from_any_thread() -> None:
        with suppress(RuntimeError):  # the loop is closed, and the coroutine with it
            loop.call_soon_threadsafe(cancel)

    try:
        with scope.on_cancel(cancel_from_any_thread):
            return await coroutine
    except asyncio.CancelledError as error:
        if not was_cancelled:
            raise
        task.uncancel()
        cancelled = StreamCancelled()
        merge_partial(cancelled, error)
        raise cancelled from None
    finally:
        is_waiting = False
        coroutine.close()  # on_cancel may have raised before the first await
