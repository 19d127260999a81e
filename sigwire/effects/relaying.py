"""``relayed``: steps whose emitted events are changed on their way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sigwire.effects.emitting import Emit
from sigwire.effects.steps import Steps

__all__ = ["relayed"]

T = TypeVar("T")


def relayed(steps: Steps[T], change: Callable[[Emit], Emit | None]) -> Steps[T]:
    """Run steps, and emit what ``change`` returns for each emission; ``None`` emits nothing. An error of it is raised there.

    >>> from sigwire.effects.steps import run
    >>> def answer() -> Steps[int]:
    ...     yield Emit("a", "b")
    ...     return 4
    >>> run(relayed(answer(), lambda emit: print(emit.events)))
    ('a', 'b')
    4
    """
    try:
        effect: Any = steps.send(None)
        while True:
            try:
                passed = change(effect) if type(effect) is Emit else effect
                value = None if passed is None else (yield passed)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(value)
    except StopIteration as stop:
        return cast(T, stop.value)
