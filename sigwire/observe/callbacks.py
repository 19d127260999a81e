"""Callbacks: call listeners when a module, a model, an adapter or a tool starts and ends.

Watched code, sync or async, runs inside ``watched_call`` and passes its outputs to the value of that context manager.

The listeners are those of the process (``EVERYWHERE``), those of ``settings``, which supplies them through ``listen_to``, and
the ``callbacks`` of the instance. If logging shows records of a kind of call, the listener that logs is added.
Without listeners ``watched_call`` returns one shared object that does nothing. ``ACTIVE_CALL_ID`` is the id of the innermost
watched call; it follows the context into threads and tasks. An error of a listener is a ``RuntimeWarning``.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

from sigwire.core.record import FieldValues
from sigwire.core.tools.hooks import set_tool_call_hook
from sigwire.effects.steps import Steps
from sigwire.errors import warn_user
from sigwire.observe.log_names import LOG_CHECKS

__all__ = [
    "ACTIVE_CALL_ID", "ACTIVE_TOOL_CALL", "EVERYWHERE", "LOG_CHECKS", "BaseCallback", "CallHook", "CallbackLike",
    "listen_to", "watched_call", "watched_steps", "watched_value",
]  # fmt: skip

FieldMap: TypeAlias = Mapping[str, Any]
T = TypeVar("T")

ACTIVE_CALL_ID: ContextVar[str | None] = ContextVar("sigwire_active_call_id", default=None)
"""The id of the innermost watched call; in a start handler, the id of its parent."""
ACTIVE_TOOL_CALL: ContextVar[Any] = ContextVar("sigwire_active_tool_call", default=None)
"""The ``CurrentCall`` of the tool around the running code."""


class BaseCallback:
    """A listener. Override some methods; any object with methods of these names is a listener.

    Each ``on_<kind>_start(call_id, instance, inputs)`` is followed by one ``on_<kind>_end(call_id, outputs, exception)``
    with the same ``call_id``. On failure ``outputs`` is ``None`` and ``exception`` is the raised ``BaseException``.
    Arguments are passed by name. The inputs and outputs of a kind, if they are not those of the call itself:

        lm         request, streamed, prompt; messages and options in OpenAI's form -> a ``Response``
        evaluate   program, devset, metric and the options of the call -> an ``EvaluationResult``
        example    id, index, repeat, metric, and inputs: one run of an evaluation -> a ``Cell``
        compile    the arguments of ``compile`` -> the program

    >>> class Printer(BaseCallback):
    ...     def on_tool_start(self, call_id, instance, inputs):
    ...         print("start", instance, dict(inputs))
    ...
    ...     def on_tool_end(self, call_id, outputs, exception=None):
    ...         print("end", outputs)
    >>> previous = listen_to(lambda: [Printer()])
    >>> with watched_call("tool", "adder", {"a": 1}) as end:
    ...     end(2)
    start adder {'a': 1}
    end 2
    >>> _ = listen_to(previous)
    """

    def read_inputs(self, kind: str, instance: Any, inputs: FieldMap) -> FieldMap:
        """Return the inputs of a call as the handlers of this listener get them. Override it to change their form."""
        return inputs

    def read_outputs(self, kind: str, instance: Any, outputs: Any) -> Any:
        """Return the outputs of a call, ``None`` after a failure, as the handlers of this listener get them."""
        return outputs

    def on_module_start(self, call_id: str, instance: Any, inputs: FieldMap) -> None: ...
    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None: ...
    def on_lm_start(self, call_id: str, instance: Any, inputs: FieldMap) -> None: ...
    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None: ...
    def on_adapter_format_start(self, call_id: str, instance: Any, inputs: FieldMap) -> None: ...
    def on_adapter_format_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None: ...
    def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: FieldMap) -> None: ...
    def on_adapter_parse_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None: ...
    def on_tool_start(self, call_id: str, instance: Any, inputs: FieldMap) -> None: ...
    def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None: ...
    def on_evaluate_start(self, call_id: str, instance: Any, inputs: FieldMap) -> None: ...
    def on_evaluate_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None: ...
    def on_example_start(self, call_id: str, instance: Any, inputs: FieldMap) -> None: ...
    def on_example_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None: ...
    def on_compile_start(self, call_id: str, instance: Any, inputs: FieldMap) -> None: ...
    def on_compile_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None: ...


CallHook: TypeAlias = "AbstractContextManager[Callable[[object], None], None]"
"""The context manager of ``watched_call``. Its value is called with the outputs."""
CallbackLike: TypeAlias = object
"""An object with some methods of ``BaseCallback``."""
ListenerSource: TypeAlias = Callable[[], Sequence[CallbackLike]]
_CallInputs: TypeAlias = "FieldValues | Callable[[], FieldValues]"

EVERYWHERE: list[CallbackLike] = []
"""The listeners for every call of the process, also in contexts with other callbacks."""
_source: ListenerSource = tuple
"""Returns the current listeners. Set by ``settings``, which this room must not import."""


def listen_to(source: ListenerSource) -> ListenerSource:
    """Set the source of listeners. Return the previous source."""
    global _source
    previous, _source = _source, source
    return previous


def watched_call(kind: str, instance: object, inputs: _CallInputs) -> CallHook:
    """Watch a call of a kind: a word of the handlers of ``BaseCallback``.

    ``inputs`` may be a function that returns them; it is called only if there are listeners.
    """
    listeners = _listeners_of(kind, instance)
    return _WatchedCall(kind, instance, inputs, listeners) if listeners else _UNWATCHED


def watched_value(kind: str, instance: object, inputs: _CallInputs, compute: Callable[..., T], *args: Any) -> T:
    """Return ``compute(*args)``, watched; the outputs are its value, or the fields of that."""
    if not (listeners := _listeners_of(kind, instance)):
        return compute(*args)
    with _WatchedCall(kind, instance, inputs, listeners) as end:
        value = compute(*args)
        end(getattr(value, "fields", value))
    return value


def watched_steps(kind: str, instance: object, inputs: _CallInputs, steps: Steps[T]) -> Steps[T]:
    """Return the steps of a call, watched; its value is their value."""
    listeners = _listeners_of(kind, instance)
    return _watched_steps(_WatchedCall(kind, instance, inputs, listeners), steps) if listeners else steps


def _watched_steps(call: CallHook, steps: Steps[T]) -> Steps[T]:
    with call as end:
        value = yield from steps
        end(value)
    return value


def _listeners_of(kind: str, instance: object) -> Sequence[CallbackLike]:
    callbacks: Sequence[CallbackLike] | None = getattr(instance, "callbacks", None)
    common = _source()
    if kind in LOG_CHECKS and LOG_CHECKS[kind]():  # faster than get()
        common = (*common, import_module("sigwire.observe.tracing.logs").LISTENER)
    return (*EVERYWHERE, *common, *(callbacks or ())) if callbacks or common or EVERYWHERE else ()


set_tool_call_hook(partial(watched_call, "tool"))


def _ignore(outputs: object) -> None:
    return None


_UNWATCHED = nullcontext(_ignore)  # one object for all calls without listeners; it has no state


class _CallId(str):
    """The id of a call: ``parent`` is that of the call around it. Streams of one context end in any order."""

    parent: str | None = None
    has_ended = False


class _WatchedCall:
    """One watched call. Handlers are called in order; the active id is set between start and end."""

    __slots__ = ("_id", "_inputs", "_instance", "_kind", "_listeners", "_outputs")

    def __init__(self, kind: str, instance: object, inputs: _CallInputs, listeners: Sequence[CallbackLike]) -> None:
        self._kind, self._instance, self._inputs, self._listeners = kind, instance, inputs, listeners
        self._id = _CallId(uuid.uuid4().hex)
        self._outputs: object = None

    def __enter__(self) -> Callable[[object], None]:
        inputs = self._inputs() if callable(self._inputs) else self._inputs
        self._notify("start", "inputs", inputs, instance=self._instance)
        self._id.parent = ACTIVE_CALL_ID.get()
        ACTIVE_CALL_ID.set(self._id)
        return self._end

    def _end(self, outputs: object) -> None:
        self._outputs = outputs

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._id.has_ended = True
        # set(), not reset(token): an abandoned generator may be closed in another context.
        active = ACTIVE_CALL_ID.get()
        while isinstance(active, _CallId) and active.has_ended:
            active = active.parent
        ACTIVE_CALL_ID.set(active)
        self._notify("end", "outputs", None if error else self._outputs, exception=error)

    def _notify(self, moment: str, name_of_value: str, value: object, **facts: object) -> None:
        name, reader = f"on_{self._kind}_{moment}", f"read_{name_of_value}"
        for listener in self._listeners:
            if (handler := getattr(listener, name, None)) is None:
                continue
            try:
                read = getattr(listener, reader, None)  # a listener is any object with handlers
                given = value if read is None else read(self._kind, self._instance, value)
                handler(call_id=self._id, **{name_of_value: given}, **facts)
            except Exception as error:
                warn_user(
                    f"{type(listener).__name__}.{name} failed and was ignored: {type(error).__name__}: {error}",
                    RuntimeWarning,
                )
