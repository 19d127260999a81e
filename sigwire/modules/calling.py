"""Call what a user gave: a module, a function, an async function; in steps, so that all drivers perform it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from sigwire.core.tools.inspection import is_async_function
from sigwire.effects.emitting import stream_queue
from sigwire.effects.loops import block_on_result, to_thread
from sigwire.effects.steps import Steps
from sigwire.modules.module import Module

__all__ = ["called_steps", "whole_call"]


def called_steps(function: object, args: Sequence[object], kwargs: Mapping[str, object]) -> Steps[Any]:
    """Return the steps that call a module, or a function, sync or async. Awaited, a sync function runs in a thread.

    >>> from sigwire.effects.steps import run
    >>> run(called_steps(max, [1, 2], {}))
    2
    """
    if isinstance(function, Module):
        return (yield from function.call_steps(*args, **kwargs))
    return (yield _UserCall(partial(cast("Callable[..., Any]", function), *args, **kwargs)))


def whole_call(program: Module, args: Sequence[object], inputs: Mapping[str, object]) -> Steps[Any]:
    """Return the steps of a call that is not streamed, for ``Gather``: it runs them in a context of their own."""
    stream_queue.set(None)
    return (yield from program.call_steps(*args, **inputs))


class _UserCall:
    """An effect: call a function of the user."""

    __slots__ = ("_call",)

    nests = True

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call

    def run(self) -> object:
        return block_on_result(self._call())

    async def arun(self) -> object:
        result = self._call() if is_async_function(self._call) else await to_thread(self._call)
        return await result if inspect.isawaitable(result) else result
