"""``asyncify`` and ``syncify``. Every module has both forms already; these are for scripts that call them by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from types import MethodType
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from sigwire.dspy.modules import Module
from sigwire.dspy.settings import settings
from sigwire.effects.loops import block_on, to_thread

__all__ = ["AsyncLimiter", "asyncify", "get_limiter", "syncify"]

P = ParamSpec("P")
T = TypeVar("T")

_limits: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[int, asyncio.Semaphore]] = WeakKeyDictionary()


def asyncify(program: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return an async function that runs a program in a thread, in the caller's settings.

    At most ``settings.async_max_workers`` programs run at once. ``await program.acall(...)`` needs no thread.

    >>> asyncio.run(asyncify(max)(1, 2))
    2
    """

    @wraps(program, updated=())
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        async with _limit():
            return await to_thread(program, *args, **kwargs)

    return run


class AsyncLimiter:
    """The limit of ``asyncify``. ``total_tokens``: how many programs run at once.

    >>> get_limiter().total_tokens
    8
    """

    @property
    def total_tokens(self) -> int:
        return int(settings.async_max_workers)


_limiter = AsyncLimiter()


def get_limiter() -> AsyncLimiter:
    """Return the limit, the same object in each context."""
    return _limiter


def _limit() -> asyncio.Semaphore:
    """Return the limit of the running loop; a changed setting starts a new one."""
    loop, most = asyncio.get_running_loop(), settings.async_max_workers
    if _limits.get(loop, (0, None))[0] != most:
        _limits[loop] = most, asyncio.Semaphore(most)
    return _limits[loop][1]


def syncify(program: Any, in_place: bool = True) -> Any:
    """Give a module with ``aforward`` a ``forward`` that waits for it; ``in_place=False`` returns a module around it.

    >>> class Double(Module):
    ...     async def aforward(self, n):
    ...         return 2 * n
    >>> syncify(Double())(n=2), syncify(Double(), in_place=False).forward(n=3)
    (4, 6)
    """
    if not in_place:
        return Awaiting(program)
    program.forward = MethodType(_forward, program)
    return program


def _forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    return block_on(self.aforward(*args, **kwargs))


class Awaiting(Module):
    """A module that waits for another."""

    def __init__(self, program: Any) -> None:
        super().__init__()
        self.program = program

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""
        return _forward(self.program, *args, **kwargs)
