"""The tool call that is running, for the tool's code: ``current_call()``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from types import TracebackType
from typing import Any, Self

from sigwire.core.tools.calls import ToolCall
from sigwire.effects.performing import current_frame
from sigwire.observe.callbacks import ACTIVE_TOOL_CALL
from sigwire.observe.place import running
from sigwire.observe.reports import CallNode
from sigwire.settings import current

__all__ = ["CurrentCall", "current_call", "depth_problem"]


class CurrentCall:
    """A running call of a model. As a context manager, the call that ``current_call`` returns inside the block.

    ``outer`` is the call around it. ``decided``: the results of agents that this call ran after decisions of a person, by
    their places; a resumed call gets them again. ``node`` collects the programs that run in the call.
    """

    __slots__ = ("_call", "_counts", "_example", "_frame", "_key", "decided", "node", "outer", "within")
    outer: CurrentCall | None
    node: CallNode

    def __init__(self, call: ToolCall | None) -> None:
        self._call, self._frame, self._key, self.outer = call, current_frame(), "", None
        self.within = "" if call is None else call.id
        """The ids of the calls around, and that of this call, outermost first: ``call_0/call_1``."""
        self._example = running.get().example
        self._counts: dict[str, count[int]] = {}
        self.decided: dict[str, Any] = {}

    @property
    def id(self) -> str:
        """The id of the call; empty if no model called it."""
        return self._call.id if self._call is not None else ""

    @property
    def name(self) -> str:
        """The name of the tool; empty if no model called it."""
        return self._call.name if self._call is not None else ""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the model."""
        return (self._call and self._call.arguments) or {}

    @property
    def run(self) -> str:
        """The name of the recorded run; empty without a ``Journal``."""
        return self._frame.run if self._frame is not None else ""

    @property
    def place(self) -> str:
        """The place of the call in the recorded run; empty without a ``Journal``."""
        return self._frame.path if self._frame is not None else ""

    @property
    def idempotency_key(self) -> str:
        """32 hex digits for a service that does work once per key. The same when the call runs again after a crash.

        Made of run, place, name and arguments; random if no run is recorded.
        """
        if not self._key:
            self._key = self._make_key()
        return self._key

    def begin_run(self, kind: str) -> str:
        """Return the place of an agent's run that begins: its number among the runs of its kind in this call.

        Runs of a batch are counted for each example, because their threads start in any order.
        """
        example = running.get().example
        key = kind if example == self._example else f"{kind}[{example}]"
        return f"{key}.{next(self._counts.setdefault(key, count()))}"

    def _make_key(self) -> str:
        if not self.run:
            from uuid import uuid4

            return uuid4().hex
        import json
        from hashlib import sha256

        text = json.dumps([self.run, self.place, self.name, self.arguments], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:32]

    def __enter__(self) -> Self:
        self.outer = outer = ACTIVE_TOOL_CALL.get()
        if outer is not None and outer.within:
            self.within = f"{outer.within}/{self.id}"
        ACTIVE_TOOL_CALL.set(self)
        self.node = CallNode("tool", self.name, call=self.within)
        self.node.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.node.__exit__(kind, error, trace)
        ACTIVE_TOOL_CALL.set(self.outer)


def depth_problem() -> str:
    """Return why one more call of a tool must not run here, "" if it may (the setting ``max_depth``)."""
    if (call := ACTIVE_TOOL_CALL.get()) is None:  # at least one call is allowed
        return ""
    depth, most = 0, current().max_depth
    while call is not None:
        call, depth = call.outer, depth + 1
    if depth < most:
        return ""
    return (
        f"The call was not run: calls of tools are nested {depth} deep, which is the limit (max_depth). Do without it."
    )


def current_call() -> CurrentCall:
    """Return the running call of the tool whose code calls this; an empty one if no model called the tool.

    >>> current_call().name
    ''
    """
    return ACTIVE_TOOL_CALL.get() or CurrentCall(None)
