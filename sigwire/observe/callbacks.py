"""Callbacks: tell listeners when a module, a model, an adapter or a tool starts and ends.

Code that is watched writes one line, sync or async alike:

    with call("lm", self, {"request": request}) as end:
        response = ...            # or: response = await ...
        end(response)

Listeners are the instance's own ``callbacks`` plus the ones in effect at that moment, which ``settings`` supplies
through ``listen_to``. Without listeners ``call`` returns one shared object that does nothing. ``ACTIVE_CALL_ID``
names the innermost watched call, so that ancestry follows threads and tasks wherever the context goes.

A listener's fault never becomes the program's fault: it is a ``RuntimeWarning``.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from types import TracebackType
from typing import Any, Protocol

from sigwire.core.tools.hooks import set_tool_call_hook

__all__ = ["ACTIVE_CALL_ID", "BaseCallback", "CallHook", "listen_to", "watched_call"]

ACTIVE_CALL_ID: ContextVar[str | None] = ContextVar("sigwire_active_call_id", default=None)
"""The id of the innermost watched call; while a start handler runs, that of its parent."""


class BaseCallback:
    """Something that listens. Override what you need; any object with methods of these names will do.

    Each ``on_<kind>_start(call_id, instance, inputs)`` is followed by one ``on_<kind>_end(call_id, outputs,
    exception)`` with the same ``call_id``. On failure ``outputs`` is ``None`` and ``exception`` is what was raised
    (``BaseException`` included). All of them are passed by name.

    >>> class TypeScope(BaseCallback):
    ...     def on_tool_start(self, call_id, instance, inputs):
    ...         print("start", instance, dict(inputs))
    ...
    ...     def on_tool_end(self, call_id, outputs, exception=None):
    ...         print("end", outputs)
    >>> stop = listen_to(lambda: [TypeScope()])
    >>> with call("tool", "adder", {"a": 1}) as end:
    ...     end(2)
    start adder {'a': 1}
    end 2
    >>> _ = listen_to(stop)
    """

    def on_module_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """A module's call begins."""

    def on_module_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """A module's call is over."""

    def on_lm_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """A language model is asked."""

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """A language model answered or failed."""

    def on_adapter_format_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """Inputs are about to become a request."""

    def on_adapter_format_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """Inputs became a request."""

    def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """An answer is about to be read."""

    def on_adapter_parse_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """An answer was read."""

    def on_tool_start(self, call_id: str, instance: Any, inputs: Mapping[str, Any]) -> None:
        """A tool begins to run."""

    def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        """A tool is done."""


class CallHook(Protocol):
    """What ``call`` gives: a context manager whose value takes the outputs."""

    def __enter__(self) -> Callable[[Any], None]: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


_source: Callable[[], Sequence[Any]] = tuple
"""Gives the listeners in effect. Settings puts itself here; below it nobody needs to know settings."""


def listen_to(source: Callable[[], Sequence[Any]]) -> Callable[[], Sequence[Any]]:
    """Take the listeners from ``source`` from now on; gives the source before it."""
    global _source
    before, _source = _source, source
    return before


def watched_call(kind: str, instance: Any, inputs: Mapping[str, Any] | Callable[[], Mapping[str, Any]]) -> CallHook:
    """Watch a call of the given kind ("module", "lm", "adapter_format", "adapter_parse", "tool").

    ``inputs`` may be a function that makes them; it runs only if somebody listens.
    """
    own = getattr(instance, "callbacks", None)
    common = _source()
    if not own and not common:
        return _UNWATCHED
    return _Watched(kind, instance, inputs, (*common, *(own or ())))


set_tool_call_hook(partial(watched_call, "tool"))


class _Unwatched:
    """Nobody listens. One object for all such calls; it has no state."""

    __slots__ = ()

    def __enter__(self) -> Callable[[Any], None]:
        return _ignore

    def __exit__(self, *error: object) -> None:
        return None


def _ignore(outputs: Any) -> None:
    return None


_UNWATCHED = _Unwatched()


class _Watched:
    """One watched call. Handlers run in order; the active id is set between start and end."""

    __slots__ = ("_id", "_inputs", "_instance", "_kind", "_listeners", "_outputs", "_parent")

    def __init__(self, kind: str, instance: Any, inputs: Any, listeners: Sequence[Any]) -> None:
        self._kind, self._instance, self._listeners = kind, instance, listeners
        self._inputs: Any = inputs
        self._id = uuid.uuid4().hex
        self._parent: str | None = None
        self._outputs: Any = None

    def __enter__(self) -> Callable[[Any], None]:
        inputs = self._inputs() if callable(self._inputs) else self._inputs
        self._tell("start", instance=self._instance, inputs=inputs)
        self._parent = ACTIVE_CALL_ID.get()
        ACTIVE_CALL_ID.set(self._id)
        return self._end

    def _end(self, outputs: Any) -> None:
        self._outputs = outputs

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # A plain set, not a token: an abandoned generator may be closed in another context than it began in.
        ACTIVE_CALL_ID.set(self._parent)
        self._tell("end", outputs=None if error else self._outputs, exception=error)

    def _tell(self, moment: str, **facts: Any) -> None:
        name = f"on_{self._kind}_{moment}"
        for listener in self._listeners:
            handler = getattr(listener, name, None)
            if handler is None:
                continue
            try:
                handler(call_id=self._id, **facts)
            except Exception as fault:
                warnings.warn(
                    f"{type(listener).__name__}.{name} failed and was ignored: {type(fault).__name__}: {fault}",
                    RuntimeWarning,
                    stacklevel=3,
                )
