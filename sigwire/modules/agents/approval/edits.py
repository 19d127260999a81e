"""Edited calls in a conversation: the model sees the call that ran."""

from __future__ import annotations

from collections.abc import Sequence

from sigwire.core.messages import Message, Part
from sigwire.core.tools.calls import ToolCall
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.signatures.types.history import History

__all__ = ["with_calls_that_ran"]


def with_calls_that_ran(history: History, runs: Sequence[ToolRun]) -> History:
    """Return the history with the calls of its last message as they ran; the same object if none was edited."""
    last = history.messages[-1] if history.messages else None
    if not isinstance(last, Message):
        return history
    ran = {done.call.id: done.call for done in runs}
    if all(ran.get(call.id, call).arguments == call.arguments for call in last.tool_calls):
        return history
    parts: tuple[Part, ...] = tuple(
        ran.get(part.id, part) if isinstance(part, ToolCall) else part for part in last.parts
    )
    return History([*history.messages[:-1], Message(last.role, parts)])
