"""The tool call that is running, for the tool's code: ``current_call()``."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from sigwire.core.tools.calls import ToolCall
from sigwire.effects.performing import current_frame

__all__ = ["CurrentCall", "current_call", "running_call"]


class CurrentCall:
    """A running call of a model: the name of the tool, the arguments, and the place of the call in a recorded run.

    ``run`` and ``place`` are empty outside a run that a ``Journal`` records.
    """

    __slots__ = ("_key", "arguments", "name", "place", "run")

    def __init__(self, name: str, arguments: Mapping[str, Any], run: str, place: str) -> None:
        self.name, self.arguments, self.run, self.place = name, arguments, run, place
        self._key = ""

    @property
    def idempotency_key(self) -> str:
        """32 hex digits for a service that does work once per key. The same when the call runs again after a crash.

        Made of run, place, name and arguments; random if no run is recorded.
        """
        if not self._key:
            self._key = self._make_key()
        return self._key

    def _make_key(self) -> str:
        if not self.run:
            from uuid import uuid4

            return uuid4().hex
        import json
        from hashlib import sha256

        text = json.dumps([self.run, self.place, self.name, self.arguments], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:32]


def current_call() -> CurrentCall:
    """Return the running call of the tool whose code calls this; an empty one if no model called the tool.

    >>> current_call().name
    ''
    """
    return _current.get() or CurrentCall("", {}, "", "")


_current: ContextVar[CurrentCall | None] = ContextVar("sigwire_running_call", default=None)


class running_call:  # noqa: N801  # a context manager; a generator would cost each call twice as much
    """Inside the block, ``current_call`` returns this call."""

    __slots__ = ("_before", "_call")
    _before: CurrentCall | None

    def __init__(self, call: ToolCall) -> None:
        frame = current_frame()
        run, place = ("", "") if frame is None else (frame.run, frame.path)
        self._call = CurrentCall(call.name, call.arguments or {}, run, place)

    def __enter__(self) -> None:
        self._before = _current.get()
        _current.set(self._call)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.set(self._before)
