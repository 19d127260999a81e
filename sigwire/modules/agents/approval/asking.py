"""The question whether a call may run, as an effect: a journal records the answer, so no crash asks twice."""

from __future__ import annotations

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Approve, Tool
from sigwire.effects.steps import arun, run
from sigwire.errors import ends_run
from sigwire.journal.verdicts import CallVerdict, check_edit, read_verdict
from sigwire.modules.agents.tool_results import short_message
from sigwire.modules.calling import called_steps

__all__ = ["AskApproval", "checked_verdict"]

_NEEDED = "the tool needs approval"
_UNDECIDED = "the approval function left it to a person"


class AskApproval:
    """The effect that decides about a call: by ``approve``, a function, or by a person."""

    __slots__ = ("_approve", "_call", "_tool")

    kind = "approval"
    nests = True

    def __init__(self, call: ToolCall, tool: Tool, approve: Approve) -> None:
        self._call, self._tool, self._approve = call, tool, approve

    def run(self) -> CallVerdict:
        if isinstance(self._approve, bool):
            return CallVerdict("ask", _NEEDED)
        try:
            return self.verdict_of(run(called_steps(self._approve, [self._call], {})))
        except Exception as error:
            return self.verdict_of_error(error)

    async def arun(self) -> CallVerdict:
        if isinstance(self._approve, bool):
            return CallVerdict("ask", _NEEDED)
        try:
            return self.verdict_of(await arun(called_steps(self._approve, [self._call], {})))
        except Exception as error:
            return self.verdict_of_error(error)

    def verdict_of(self, answer: object) -> CallVerdict:
        """Return the verdict of an answer of the function."""
        return _verdict_of(answer)

    def verdict_of_error(self, error: Exception) -> CallVerdict:
        """Return the denial of a function that raised: a call that could not be checked does not run."""
        if ends_run(error):
            raise error
        return CallVerdict("deny", f"the approval function raised {short_message(error)}")

    # --- recorded by a journal ---

    def fingerprint(self) -> JsonObject:
        return {"name": self._call.name, "arguments": self._call.arguments}

    def waits(self, value: CallVerdict) -> bool:
        """Return True if the row of this value waits for a decision."""
        return value.answer == "ask"

    def dump(self, value: CallVerdict) -> JsonObject:
        """Return a verdict as JSON; with the schema of the arguments if a decision may edit them later."""
        data = value.to_json()
        return {**data, "parameters": self._tool.parameters} if self.waits(value) else data

    def dump_error(self, error: Exception) -> None:
        """Return ``None``: no error of this effect is recorded."""

    def load(self, data: JsonObject) -> KnownVerdict:
        known = {name: value for name, value in data.items() if name != "parameters"}
        return KnownVerdict(CallVerdict.from_json(known))

    def settle(self, decision: JsonValue) -> CallVerdict:
        """Return the verdict of a recorded decision. Raises ``InputError`` for an edit that the tool refuses."""
        return checked_verdict(self._call.name, self._tool, decision)


class KnownVerdict:
    """The effect of a recorded verdict."""

    __slots__ = ("_verdict",)

    def __init__(self, verdict: CallVerdict) -> None:
        self._verdict = verdict

    def run(self) -> CallVerdict:
        return self._verdict

    async def arun(self) -> CallVerdict:
        return self._verdict


def checked_verdict(id: str, tool: Tool, decision: object) -> CallVerdict:
    """Return the verdict of a decision. Raises ``InputError`` if it is none, or an edit that the tool refuses."""
    return check_edit(id, tool.name, tool.bind, read_verdict(id, decision))


def _verdict_of(answer: object) -> CallVerdict:
    if answer is True:
        return CallVerdict("approve")
    if answer is None:
        return CallVerdict("ask", _UNDECIDED)
    if answer is False or isinstance(answer, str):
        return CallVerdict("deny", answer or "")
    return CallVerdict(
        "deny", f"the approval function returned {type(answer).__name__}, not True, False, a reason or None"
    )
