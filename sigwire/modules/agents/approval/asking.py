"""The question whether a call may run, as an effect: a journal records the answer, so no crash asks twice."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Approve, Tool
from sigwire.effects.loops import block_on, to_thread
from sigwire.errors import InputError
from sigwire.journal.errors import RunError
from sigwire.journal.verdicts import Verdict, read_verdict
from sigwire.modules.agents.tool_results import short_message

__all__ = ["AskApproval", "UserCall", "checked_verdict"]

_NEEDED = "the tool needs approval"
_UNDECIDED = "the approval function left it to a person"


class UserCall:
    """The effect of a call of a user's function, sync or async."""

    __slots__ = ("_argument", "_function")

    nests = True  # the function may run programs

    def __init__(self, function: Callable[[Any], object], argument: object) -> None:
        self._function, self._argument = function, argument

    def run(self) -> object:
        value = self._function(self._argument)
        return block_on(_awaited(value)) if inspect.isawaitable(value) else value

    async def arun(self) -> object:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(self._argument)
        value = await to_thread(self._function, self._argument)
        return await value if inspect.isawaitable(value) else value


async def _awaited(value: Awaitable[object]) -> object:
    return await value


class AskApproval:
    """The effect that decides about a call: by ``approve``, a function, or by a person."""

    __slots__ = ("_approve", "_call", "_tool")

    kind = "approval"
    nests = True

    def __init__(self, call: ToolCall, tool: Tool, approve: Approve) -> None:
        self._call, self._tool, self._approve = call, tool, approve

    def run(self) -> Verdict:
        if isinstance(self._approve, bool):
            return Verdict("ask", _NEEDED)
        try:
            return _verdict_of(UserCall(self._approve, self._call).run())
        except Exception as error:
            return _denial(error)

    async def arun(self) -> Verdict:
        if isinstance(self._approve, bool):
            return Verdict("ask", _NEEDED)
        try:
            return _verdict_of(await UserCall(self._approve, self._call).arun())
        except Exception as error:
            return _denial(error)

    # --- recorded by a journal ---

    def fingerprint(self) -> JsonObject:
        return {"name": self._call.name, "arguments": self._call.arguments}

    def waits(self, value: Verdict) -> bool:
        """Return True if the row of this value waits for a decision."""
        return value.answer == "ask"

    def dump(self, value: Verdict) -> JsonObject:
        return value.to_json()

    def dump_error(self, error: Exception) -> None:
        """Return ``None``: no error of this effect is recorded."""

    def load(self, data: JsonObject) -> KnownVerdict:
        return KnownVerdict(Verdict.from_json(data))

    def settle(self, decision: JsonValue) -> Verdict:
        """Return the verdict of a recorded decision. Raises ``InputError`` for an edit that the tool refuses."""
        return checked_verdict(self._call.name, self._tool, decision)


class KnownVerdict:
    """The effect of a recorded verdict."""

    __slots__ = ("_verdict",)

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def run(self) -> Verdict:
        return self._verdict

    async def arun(self) -> Verdict:
        return self._verdict


def checked_verdict(id: str, tool: Tool, decision: object) -> Verdict:
    """Return the verdict of a decision. Raises ``InputError`` if it is none, or an edit that the tool refuses."""
    verdict = read_verdict(id, decision)
    if verdict.arguments is not None:
        try:
            tool.bind(verdict.arguments)
        except Exception as error:  # the validators of users' types may raise anything
            raise InputError(f"{tool.name} refuses the edited arguments: {error} (deciding about {id}).") from error
    return verdict


def _verdict_of(answer: object) -> Verdict:
    if answer is True:
        return Verdict("approve")
    if answer is None:
        return Verdict("ask", _UNDECIDED)
    if answer is False or isinstance(answer, str):
        return Verdict("deny", answer or "")
    return Verdict(
        "deny", f"the approval function returned a {type(answer).__name__}, not True, False, a reason or None"
    )


def _denial(error: Exception) -> Verdict:
    """Return the denial of an approval function that raised: a call that could not be checked does not run."""
    if isinstance(error, RunError):
        raise error
    return Verdict("deny", f"the approval function raised {short_message(error)}")
