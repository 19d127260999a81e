"""The names of ``dspy.utils.callback``: ``BaseCallback``, and ``with_callbacks`` for methods of your own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from sigwire.adapters.base import Adapter
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.tool import Tool
from sigwire.evaluate.evaluation import Evaluate
from sigwire.lm.base import BaseLM
from sigwire.lm.openai_dicts import encode_call, encode_outputs
from sigwire.modules.module import Module
from sigwire.observe import callbacks
from sigwire.observe.callbacks import ACTIVE_CALL_ID, watched_call
from sigwire.optimizers.teleprompter import Teleprompter

__all__ = ["ACTIVE_CALL_ID", "BaseCallback", "with_callbacks"]

F = TypeVar("F", bound=Callable[..., Any])

_KINDS: Mapping[type, str] = {BaseLM: "lm", Tool: "tool", Evaluate: "evaluate", Teleprompter: "compile"}
_INTERPRETER = ("tools", "start", "execute", "shutdown")  # the protocol ``CodeInterpreter``
_OPERATIONS: Mapping[str, str] = {
    "start": "startup", "execute": "execute", "invoke_tool": "tool_call", "shutdown": "shutdown",
}  # fmt: skip


class BaseCallback(callbacks.BaseCallback):
    """``sigwire.BaseCallback`` whose handlers get inputs and outputs in DSPy's forms.

        module         args, kwargs                       -> the outputs
        tool           kwargs                             -> the outputs
        lm             prompt, messages, kwargs           -> the list that ``lm(...)`` returns
        adapter_format signature, demos, inputs           -> messages of OpenAI's form
        adapter_parse  signature, completion (a text)     -> the fields

    All arguments of a module are in ``kwargs``, also positional ones.

    >>> from sigwire.dspy.lm import DummyLM
    >>> class Printer(BaseCallback):
    ...     def on_lm_start(self, call_id, instance, inputs):
    ...         print(inputs["prompt"], inputs["kwargs"])
    ...
    ...     def on_lm_end(self, call_id, outputs, exception=None):
    ...         print(outputs)
    >>> DummyLM(["Hello!"], callbacks=[Printer()])("Hi", temperature=0.5)
    Hi {'temperature': 0.5}
    ['Hello!']
    ['Hello!']
    """

    def read_inputs(self, kind: str, instance: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the inputs of a call in DSPy's form; those of a method with ``with_callbacks`` are in it already."""
        if isinstance(inputs, _Bound):
            return inputs
        if kind == "lm" and isinstance(inputs.get("request"), Request):
            kwargs = {name: value for name, value in inputs.items() if name not in _OF_REQUESTS}
            prompt = inputs["prompt"]
            return {"prompt": prompt, "messages": inputs["messages"] if prompt is None else None, "kwargs": kwargs}
        if kind == "module" and isinstance(instance, Module):
            return {"args": (), "kwargs": {**inputs}}
        if kind == "tool" and isinstance(instance, Tool):
            return {"kwargs": {**inputs}}
        if kind == "adapter_parse" and isinstance(choice := inputs.get("choice"), Choice):
            return {"signature": inputs["signature"], "completion": choice.text}
        return inputs

    def read_outputs(self, kind: str, instance: Any, outputs: Any) -> Any:
        """Return the outputs of a call in DSPy's form."""
        if isinstance(outputs, Response):
            return encode_outputs(outputs)
        return encode_call(outputs)[0] if isinstance(outputs, Request) else outputs


class _Bound(dict[str, object]):
    """The arguments of a method, by its parameters."""


_OF_REQUESTS = ("request", "streamed", "prompt", "messages")


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
            return _Bound(list(bound.arguments.items())[1:])

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
