"""The call of a tool's handler, blocking or awaited. A module is awaited by its ``acall``: no thread waits for it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from sigwire.core.tools.inspection import in_partials, is_async_function
from sigwire.core.tools.module_tool import module_of
from sigwire.effects.loops import to_thread

if TYPE_CHECKING:
    from sigwire.core.tools.function import BoundArguments
    from sigwire.core.tools.inspection import UserFunction

__all__ = ["awaited_call", "call_awaited"]


def awaited_call(handler: UserFunction, bound: BoundArguments) -> Awaitable[Any] | None:
    """Start the call of an async function or of a module, and return what to await; ``None`` for a blocking function."""
    awaits: UserFunction = handler
    if not is_async_function(handler):
        if (module := module_of(handler)) is None:
            return None
        awaits = in_partials(handler, module.acall)
    waiting: Awaitable[Any] = awaits(*bound.args, **bound.kwargs)
    return waiting


async def call_awaited(handler: UserFunction, bound: BoundArguments) -> Any:
    """Call a handler, awaited. A blocking function runs in a thread."""
    if (waiting := awaited_call(handler, bound)) is not None:
        return await waiting
    result = await to_thread(handler, *bound.args, **bound.kwargs)
    return await result if inspect.isawaitable(result) else result
