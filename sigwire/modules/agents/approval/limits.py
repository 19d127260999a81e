"""``CallRules``, the approval and limits of an agent's calls, and ``CallCounts``, what a run has used of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from reprlib import repr as short
from typing import Any, Literal, TypeAlias, cast, get_args

from sigwire.core.json import JsonObject, decode_fields
from sigwire.core.record import is_same
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Approve, Tool
from sigwire.errors import ConfigurationError
from sigwire.journal.packing import digest_of
from sigwire.keywords import check_whole
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.show.numbers import count

__all__ = ["CallCounts", "CallRules", "LimitReason", "check_turns"]

LimitReason: TypeAlias = Literal["limit", "repeat"]
_MOST_REFUSALS = 2


def check_turns(given: Any) -> int:
    """Return ``max_iters`` of an agent. Raises ``ConfigurationError`` for another value than a number of turns."""
    check_whole("max_iters", given, "making an agent", of="turns")
    return int(given)


@dataclass(frozen=True, slots=True)
class CallRules:
    """Rules for the calls of a run: ``approve`` for tools without one; ``None``: no limit."""

    approve: Approve | None = None
    max_calls: int | None = None
    max_repeats: int | None = None

    def checked(self, where: str) -> CallRules:
        """Return the rules. Raises ``ConfigurationError`` for a value that is no rule."""
        if not (self.approve is None or callable(self.approve) or isinstance(self.approve, bool)):  # pyright: ignore[reportUnnecessaryIsInstance]  # a text, by mistake
            raise ConfigurationError(
                f"approve is True, False or a function, not {short(self.approve)} ({where}). Pass one of these."
            )
        for name, limit in {"max_calls": self.max_calls, "max_repeats": self.max_repeats}.items():
            check_whole(name, limit, where, of="calls", least=1, optional=True)
        return self


@dataclass(frozen=True)
class _Saved:
    """The JSON of ``CallCounts``."""

    used: Mapping[str, int] = field(default_factory=dict[str, int])
    repeats: tuple[Any, ...] = ()
    refusals: int = 0
    end: tuple[str, ...] | None = None


_NOTHING = _Saved()


class CallCounts:
    """The calls that a run has made, and the reason to end it, if there is one."""

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        saved = _Saved(**decode_fields(_Saved, data)) if data else _NOTHING
        self._used: Counter[str] = Counter(saved.used)
        self._repeats: dict[str, tuple[ToolResult | str, int]] = {  # by call: the last result or its digest, how often
            str(key): (str(last), int(n)) for key, last, n in saved.repeats
        }
        self._repeated = self._exhausted = ""
        self._refusals = saved.refusals
        self._idle = 0  # not saved: a turn whose calls wait is not idle
        self.end: tuple[LimitReason, str] | None = None
        if saved.end:
            reason, why = saved.end
            if reason not in (known := get_args(LimitReason)):
                raise ValueError(f"a run ends for one of {', '.join(known)}, not {reason!r:.80}")
            self.end = cast(LimitReason, reason), why

    def to_json(self) -> JsonObject:
        """Return the counts as JSON."""
        return {
            "used": dict(self._used),
            "repeats": [[key, _digest(last), number] for key, (last, number) in self._repeats.items()],
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
            self._exhausted = tool.name
            return f"The limit of {count(tool.max_calls, 'call')} of {tool.name} is reached. Continue without it."
        most = None if tool.repeat else rules.max_repeats
        if most is None or used[call.name] < most or self._repeats.get(_key(call), ("", 0))[1] < most:
            return ""
        self._repeated = tool.name
        return f"This call gave the same result {most} times, and is not run again. Do something else."

    def end_turn(self, planned: Counter[str]) -> None:
        """Count a turn with a refused repetition; the second ends the run. ``planned``: the calls of the turn that may run.

        A turn that only calls tools without calls left is idle; the second in a row ends the run, because each is paid.
        """
        self._idle = 0 if planned else self._idle + bool(self._exhausted)
        if self._exhausted and self._idle >= _MOST_REFUSALS and self.end is None:
            self.end = ("limit", f"the model called {self._exhausted} {self._idle} turns after its calls were used up")
        self._exhausted = ""
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
            key = _key(done.call)
            last, number = self._repeats.get(key, ("", 0))
            self._repeats[key] = (done.result, number + 1 if number and _is_same(last, done.result) else 1)


def _key(call: ToolCall) -> str:
    return digest_of([call.name, call.arguments])


def _is_same(last: ToolResult | str, found: ToolResult) -> bool:
    if isinstance(last, str):
        return last == _digest(found)
    return is_same((last.content, last.is_error, last.media), (found.content, found.is_error, found.media))


def _digest(result: ToolResult | str) -> str:
    if isinstance(result, str):
        return result
    return digest_of([result.content, result.is_error, [part.to_json() for part in result.media]])
