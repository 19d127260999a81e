"""``CallRules``, the approval and limits of an agent's calls, and ``CallCounts``, what a run has used of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Approve, Tool
from sigwire.errors import ConfigurationError
from sigwire.journal.packing import digest_of
from sigwire.modules.agents.tool_run import ToolRun

__all__ = ["CallCounts", "CallRules", "LimitReason"]

LimitReason: TypeAlias = Literal["limit", "repeat"]
_MOST_REFUSALS = 2


@dataclass(frozen=True, slots=True)
class CallRules:
    """Rules for the calls of a run: ``approve`` for tools without one; ``None``: no limit."""

    approve: Approve | None = None
    max_calls: int | None = None
    max_repeats: int | None = None

    def checked(self, where: str) -> CallRules:
        """Return the rules. Raises ``ConfigurationError`` for a value that is no rule."""
        if not (self.approve is None or callable(self.approve) or isinstance(self.approve, bool)):  # pyright: ignore[reportUnnecessaryIsInstance]  # a text, by mistake
            raise ConfigurationError(f"approve is True, False or a function, not {self.approve!r:.80} ({where}).")
        for name, limit in {"max_calls": self.max_calls, "max_repeats": self.max_repeats}.items():
            if limit is not None and (type(limit) is not int or limit < 1):
                raise ConfigurationError(f"{name} is a number of calls, 1 or more, not {limit!r:.80} ({where}).")
        return self


class CallCounts:
    """The calls that a run has made, and the reason to end it, if there is one."""

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        data = data or {}
        self._used: Counter[str] = Counter(data.get("used", {}))
        self._repeats: dict[str, tuple[str, int]] = {key: (last, n) for key, last, n in data.get("repeats", ())}
        self._repeated = ""
        self._refusals = int(data.get("refusals", 0))
        self.end: tuple[LimitReason, str] | None = tuple(data["end"]) if data.get("end") else None

    def to_json(self) -> JsonObject:
        """Return the counts as JSON."""
        return {
            "used": dict(self._used),
            "repeats": [[key, last, number] for key, (last, number) in self._repeats.items()],
            "refusals": self._refusals,
            "end": self.end and list(self.end),
        }

    def refusal(self, call: ToolCall, tool: Tool, rules: CallRules, planned: Counter[str]) -> str:
        """Return why a call must not run, "" if it may. ``planned``: the calls of this turn that may."""
        used = self._used
        if rules.max_calls is not None and used.total() + planned.total() >= rules.max_calls:
            self.end = ("limit", f"{rules.max_calls} tool calls were used up")
            return f"The limit of {rules.max_calls} tool calls is reached."
        if tool.max_calls is not None and used[tool.name] + planned[tool.name] >= tool.max_calls:
            return f"The limit of {tool.max_calls} calls of {tool.name} is reached. Continue without it."
        most = None if tool.repeat else rules.max_repeats
        if most is None or self._repeats.get(_key(call), ("", 0))[1] < most:
            return ""
        self._repeated = tool.name
        return f"This call gave the same result {most} times, and is not run again. Do something else."

    def end_turn(self) -> None:
        """Count a turn with a refused repetition; the second ends the run."""
        self._refusals += bool(self._repeated)
        if self._repeated and self._refusals >= _MOST_REFUSALS and self.end is None:
            self.end = ("repeat", f"the model repeated a call of {self._repeated} that always gave the same result")
        self._repeated = ""

    def add(self, runs: list[ToolRun], rules: CallRules) -> None:
        """Count calls that ran."""
        self._used.update(done.call.name for done in runs)
        if rules.max_repeats is None:
            return
        for done in runs:
            key, found = _key(done.call), _digest(done.result)
            last, number = self._repeats.get(key, ("", 0))
            self._repeats[key] = (found, number + 1 if last == found else 1)


def _key(call: ToolCall) -> str:
    return digest_of([call.name, call.arguments])


def _digest(result: ToolResult) -> str:
    return digest_of([result.content, result.is_error, [part.to_json() for part in result.media]])
