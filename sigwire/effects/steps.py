"""Steps: generators that yield effects, and the drivers that run them.

*Steps* are a generator that decides and does no I/O. To wait for something, steps yield an *effect*: an object whose ``run()``
blocks and whose ``arun()`` awaits. A *driver* performs each effect and sends its value, or throws its exception, at the yield:

    def steps():                          run(steps())          blocks; also allowed inside a running event loop
        answer = yield Ask(lm, request)   await arun(steps())   awaits; cancellation is raised at the yield
        return answer.text.upper()

So each loop of the library is written once. Steps call steps with ``yield from``; ``gather`` runs several at once; ``emitting``
has the drivers that stream; ``loops`` has the bridges between blocking and awaiting.

An interrupt (``KeyboardInterrupt``, ``SystemExit``) is never swallowed, and never waits for threads that cannot be stopped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from sigwire.effects.cancellation import CancelScope, CoroutineOf, current_scope, run_cancellable

__all__ = ["Effect", "FunctionEffect", "Steps", "arun", "drive_unscoped", "run"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Effect(Protocol[T_co]):
    """A wait that steps yield. Both methods return the same value or raise the same error."""

    def run(self) -> T_co: ...

    async def arun(self) -> T_co: ...


Steps: TypeAlias = Generator[Effect[Any], Any, T]


def run(steps: Steps[T]) -> T:
    """Run steps, blocking. Works in any thread, also inside a running event loop.

    >>> def double(text: str) -> Steps[str]:
    ...     return text * 2
    ...     yield
    >>> run(double("ab"))
    'abab'
    """
    try:
        effect = steps.send(None)
        while True:
            try:
                value = effect.run()
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result


def arun(steps: Steps[T]) -> CoroutineOf[T]:
    """Run steps on the running event loop. Cancelling the task raises ``CancelledError`` at their yield.

    If another thread cancels the current scope, the steps are cancelled and ``StreamCancelled`` is raised. So a user's
    ``asyncio.run`` inside a streamed program ends with the stream.
    """
    scope = current_scope()
    return drive_unscoped(steps) if scope is None else _run_in_scope(scope, steps)


async def _run_in_scope(scope: CancelScope, steps: Steps[T]) -> T:
    return await run_cancellable(scope, drive_unscoped(steps))


async def drive_unscoped(steps: Steps[T]) -> T:
    """``arun`` without the cancel scope of the context."""
    try:
        effect = steps.send(None)
        while True:
            try:
                value = await effect.arun()
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(value)
    except StopIteration as stop:
        return cast(T, stop.value)


class FunctionEffect(Generic[T]):
    """An effect made of two functions: one that blocks, one that awaits.

    >>> import asyncio
    >>> async def awaited() -> str:
    ...     return "done"
    >>> effect = FunctionEffect(lambda: "done", awaited)
    >>> effect.run(), asyncio.run(effect.arun())
    ('done', 'done')
    """

    __slots__ = ("_awaited", "_blocking")

    def __init__(self, blocking: Callable[[], T], awaited: Callable[[], Awaitable[T]]) -> None:
        self._blocking, self._awaited = blocking, awaited

    def run(self) -> T:
        return self._blocking()

    async def arun(self) -> T:
        return await self._awaited()
