"""The names of ``dspy.utils.callback``: ``BaseCallback``, and ``with_callbacks`` for methods of your own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from sigwire.adapters.base import Adapter
from sigwire.core.tools.tool import Tool
from sigwire.evaluate.evaluation import Evaluate
from sigwire.lm.base import BaseLM
from sigwire.observe.callbacks import ACTIVE_CALL_ID, BaseCallback, watched_call
from sigwire.optimizers.teleprompter import Teleprompter

__all__ = ["ACTIVE_CALL_ID", "BaseCallback", "with_callbacks"]

F = TypeVar("F", bound=Callable[..., Any])

_KINDS: Mapping[type, str] = {BaseLM: "lm", Tool: "tool", Evaluate: "evaluate", Teleprompter: "compile"}
_INTERPRETER = ("tools", "start", "execute", "shutdown")  # the protocol ``CodeInterpreter``
_OPERATIONS: Mapping[str, str] = {
    "start": "startup", "execute": "execute", "invoke_tool": "tool_call", "shutdown": "shutdown",
}  # fmt: skip


def with_callbacks(method: F) -> F:
    """Return the method with its calls shown to the listeners, under the kind of its object (``module`` by default).

    ``start``, ``execute``, ``invoke_tool`` and ``shutdown`` of an interpreter are ``on_interpreter_startup_start``,
    ``..._execute_...``, ``..._tool_call_...`` and ``..._shutdown_...``.

    >>> class Search:
    ...     callbacks = None
    ...     @with_callbacks
    ...     def find(self, query):
    ...         return query.upper()
    >>> Search().find("tea")
    'TEA'
    """
    parameters = inspect.signature(method)

    def watched(instance: object, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        def inputs() -> dict[str, object]:
            bound = parameters.bind(instance, *args, **kwargs)
            bound.apply_defaults()
            return dict(list(bound.arguments.items())[1:])

        return watched_call(_kind_of(instance, method.__name__), instance, inputs)

    @wraps(method)
    def call(self: object, *args: object, **kwargs: object) -> object:
        with watched(self, args, kwargs) as end:
            end(outputs := method(self, *args, **kwargs))
        return outputs

    @wraps(method)
    async def acall(self: object, *args: object, **kwargs: object) -> object:
        with watched(self, args, kwargs) as end:
            end(outputs := await method(self, *args, **kwargs))
        return outputs

    return cast("F", acall if inspect.iscoroutinefunction(method) else call)


def _kind_of(instance: object, name: str) -> str:
    if isinstance(instance, Adapter):
        return "adapter_format" if name == "format" else "adapter_parse"
    if name in _OPERATIONS and all(hasattr(instance, part) for part in _INTERPRETER):
        return f"interpreter_{_OPERATIONS[name]}"
    return next((kind for owner, kind in _KINDS.items() if isinstance(instance, owner)), "module")
