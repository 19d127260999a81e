"""Past turns as DSPy sends them: a call without a result is left out, because providers refuse it."""

from __future__ import annotations

from typing import TypeVar

from sigwire.adapters.plan import Plan
from sigwire.adapters.prompts.turns import RESULT_NAMES, TurnWriter, read_calls_value, read_results
from sigwire.core.messages import Message
from sigwire.core.record import FieldValues
from sigwire.core.tools.calls import ToolCalls
from sigwire.errors import warn_user

__all__ = ["with_answered_calls"]

P = TypeVar("P", bound=Plan)


def with_answered_calls(plan: P) -> P:
    """Return the plan; its histories leave out calls without results, with a warning, if the model takes calls natively."""
    history = plan.parts.history
    turns = history._turns  # pyright: ignore[reportPrivateUsage]
    if turns.native and turns.calls_name is not None:
        history._turns = _AnsweredTurns(turns.layout, turns.calls_name, turns.native, turns.style)  # pyright: ignore[reportPrivateUsage]
    return plan


class _AnsweredTurns(TurnWriter):
    """Writes the calls of a turn that have a result by their id."""

    __slots__ = ()

    def turn(self, values: FieldValues, before: str = "", after: str = "", prefix: str = "") -> tuple[Message, ...]:
        name, results = str(self.calls_name), list(read_results(values))
        calls, answered = read_calls_value(values.get(name)), {result.id for result in results}
        kept = [call for call in calls if call.id in answered]
        if len(kept) < len(calls):
            missing = next(call.name for call in calls if call.id not in answered)
            warn_user(f"The call of {missing!r} in the history has no result, and is left out of the request.")
            ids = {call.id for call in kept}
            values = {key: value for key, value in values.items() if key not in RESULT_NAMES}
            values |= {name: ToolCalls(kept, calls.text), "tool_results": [each for each in results if each.id in ids]}
        return super().turn(values, before, after, prefix)
