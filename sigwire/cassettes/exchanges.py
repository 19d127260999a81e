"""``Exchange``: what a line of a cassette has of an effect. The lines of tool runs, of approvals, and of time and chance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, cast

from sigwire.core.json import JsonObject
from sigwire.core.report import CallReport
from sigwire.effects.performing import Recordable
from sigwire.effects.steps import Effect, Steps
from sigwire.observe.usage import record_report

__all__ = ["Exchange", "ReadingExchange", "ToolExchange"]

Write: TypeAlias = Callable[[JsonObject], None]


class Exchange(Protocol):
    """An effect and its line. ``head`` is the first name of the line."""

    @property
    def head(self) -> str: ...

    def question(self) -> JsonObject: ...

    def record(self, write: Write) -> Steps[object]: ...

    def replay(self, data: Mapping[str, Any], miss: Callable[[], Exception]) -> Effect[object]: ...


class ToolExchange:
    """A tool run. Its line has no id: equal calls of a turn may run in any order, and each keeps its own id."""

    head = "tool"

    def __init__(self, effect: Recordable[object]) -> None:
        self._effect = effect

    def question(self) -> JsonObject:
        """Return name and arguments."""
        return self._effect.fingerprint()

    def record(self, write: Write) -> Steps[object]:
        """Run the tool, and write its result."""
        value = yield self._effect
        data = cast("dict[str, dict[str, Any]]", self._effect.dump(value))
        result, shown = ({name: data[each][name] for name in data[each] if name not in _CALL} for each in _RESULTS)
        line: JsonObject = {"result": result}
        if shown != result:
            line["shown"] = shown
        line.update({name: data[name] for name in _KEPT if name in data})
        write(line)
        return value

    def replay(self, data: Mapping[str, Any], miss: Callable[[], Exception]) -> Effect[object]:
        """Return the effect that gives the recorded result to the present call."""
        effect = cast("Any", self._effect)
        run = effect.dump(effect.settle({"result": ""}))
        call = {name: run["result"][name] for name in _CALL}
        run["result"] = {**call, **data["result"]}
        run["shown"] = {**call, **data.get("shown", data["result"])}
        run.update({name: data[name] for name in _KEPT if name in data})
        if "report" in data:  # a replay counts as the recorded run did
            record_report(CallReport.from_json(data["report"]))
        return self._effect.load(run)


_RESULTS = ("result", "shown")
_KEPT = ("warning", "report")
_CALL = ("id", "name", "type")


class ReadingExchange:
    """A value that the program reads from outside: time and chance of ``sigwire.durable``, the verdict about a tool call."""

    def __init__(self, effect: Recordable[object]) -> None:
        self._effect = effect
        self.head = "approval" if effect.kind == "approval" else "durable"

    def question(self) -> JsonObject:
        """Return the name of the value; of an approval the call."""
        return {"name": self._effect.kind, **self._effect.fingerprint()}

    def record(self, write: Write) -> Steps[object]:
        """Read the value, and write it."""
        value = yield self._effect
        write({"value": self._effect.dump(value)})
        return value

    def replay(self, data: Mapping[str, Any], miss: Callable[[], Exception]) -> Effect[object]:
        """Return the effect that gives the recorded value."""
        return self._effect.load(data["value"])
