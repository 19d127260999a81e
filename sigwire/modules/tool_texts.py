"""The tools of one call with the texts of its predictor: ``predict.tool_texts``.

The request has the texts and aliases of the predictor. Tools, predictions, events, histories and demos keep the true names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sigwire.core.messages import Message
from sigwire.core.narrow import is_mapping
from sigwire.core.record import FieldValues
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.choice import read_tool_choice
from sigwire.core.tools.names import NameRules
from sigwire.core.tools.texts import ToolText
from sigwire.errors import ToolDefinitionError

if TYPE_CHECKING:
    from sigwire.adapters.plan import Plan
    from sigwire.core.events import ProgramEvent, StreamEvent
    from sigwire.modules.program_stream import EventReader

__all__ = ["ToolOverlay", "alias_problem"]

_RESERVED = frozenset({"finish", "submit", "submit_answer", "submit_final_answer"})
_RULES = NameRules()


class ToolOverlay:
    """The tools of one call as ``texts`` describe them, by true name. A text for a tool that is not offered is ignored.

    Raises ``ToolDefinitionError`` for texts that do not fit their tool, and for aliases that are reserved or in use.
    """

    def __init__(self, texts: Mapping[str, ToolText], plan: Plan, inputs: FieldValues) -> None:
        tools = plan.tools_of(inputs)
        self.tools = tuple(tool.described(texts[tool.name]) if tool.name in texts else tool for tool in tools)
        self._aliases = _aliases_of([(tool.name, view.name) for tool, view in zip(tools, self.tools, strict=True)])
        self._true_names = {alias: name for name, alias in self._aliases.items()}
        self._plan, self._spec = plan, plan.spec

    def format(self, inputs: FieldValues, demos: Sequence[object], options: Mapping[str, Any] | None) -> Request:
        """Return the request of the call."""
        spec, inputs = self._spec, dict[str, Any](inputs)
        if spec.tools_field is not None:
            inputs[spec.tools_field.name] = self.tools
        if self._aliases:
            demos, options = [self._with_aliases(demo) for demo in demos], self._options(options)
            name = spec.history_field.name if spec.history_field is not None else ""
            if history := inputs.get(name):
                inputs[name] = [self._with_aliases(turn) for turn in getattr(history, "messages", history)]
        return self._plan.format(inputs, demos, options)

    def _options(self, options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        choice = read_tool_choice((options or {}).get("tool_choice"))
        if choice is None:
            return options
        allowed = tuple(self._aliases.get(name, name) for name in choice.allowed)
        return {**(options or {}), "tool_choice": replace(choice, allowed=allowed)}

    def _with_aliases(self, turn: object) -> object:
        """Return a demo or a turn with aliases in its calls and results."""
        from sigwire.adapters.prompts.turns import RESULT_NAMES, read_calls_value, read_results

        if isinstance(turn, Message):
            return replace(turn, parts=_renamed(turn.parts, self._aliases))
        fields: dict[str, object] = dict(turn if is_mapping(turn) else vars(turn))
        name = self._spec.calls_field.name if self._spec.calls_field else None
        if name is not None and fields.get(name):
            calls = read_calls_value(fields[name])
            fields[name] = ToolCalls(_renamed(calls, self._aliases), calls.text)
        if results := _renamed(read_results(fields), self._aliases):
            fields = {key: value for key, value in fields.items() if key not in RESULT_NAMES}
            fields[min(RESULT_NAMES, key=len)] = results
        return fields

    def response(self, response: Response) -> Response:
        """Return the response with the true names in its calls."""
        if not any(choice.tool_calls for choice in response.choices):
            return response
        return replace(response, choices=tuple(map(self._choice, response.choices)))

    def _choice(self, choice: Choice) -> Choice:
        names = self._true_names
        return replace(choice, tool_calls=_renamed(choice.tool_calls, names), parts=_renamed(choice.parts, names))

    def fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a prediction with the true names in its calls."""
        return {
            name: ToolCalls(_renamed(value, self._true_names), value.text) if isinstance(value, ToolCalls) else value
            for name, value in fields.items()
        }

    def reader(self, reader: EventReader) -> EventReader:
        """Return a reader that emits the events of another reader with the true names."""
        return _TrueNameReader(reader, self._true_names) if self._true_names else reader


class _TrueNameReader:
    """A reader of events whose calls have the true names."""

    def __init__(self, reader: EventReader, names: Mapping[str, str]) -> None:
        self._reader, self._names = reader, names

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        return map(self._renamed_event, self._reader.feed(event))

    def close(self) -> Iterable[ProgramEvent]:
        return map(self._renamed_event, self._reader.close())

    def _renamed_event(self, event: ProgramEvent) -> ProgramEvent:
        from sigwire.core.events import ToolCallEnd, ToolCallStart  # only streams need events

        if isinstance(event, ToolCallStart):
            return replace(event, name=self._names.get(event.name, event.name))
        return replace(event, call=_renamed((event.call,), self._names)[0]) if isinstance(event, ToolCallEnd) else event


def _renamed(parts: Iterable[Any], names: Mapping[str, str]) -> tuple[Any, ...]:
    """Return parts with other names in calls and results."""
    return tuple(
        replace(part, name=names[part.name])
        if isinstance(part, (ToolCall, ToolResult)) and part.name in names
        else part
        for part in parts
    )


def _aliases_of(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the aliases by true name; the pairs have both names of every tool."""
    aliases = {name: alias for name, alias in pairs if name != alias}
    for name, alias in aliases.items():
        others = {other.casefold() for pair in pairs for other in pair if pair[0] != name}
        problem = f"another tool is called {alias!r}" if alias.casefold() in others else alias_problem(alias)
        if problem is not None:
            raise ToolDefinitionError(f"The alias of the tool {name!r} cannot be used: {problem}.")
    return aliases


def alias_problem(alias: str) -> str | None:
    """Return the problem of an alias, ``None`` if every provider accepts the name.

    >>> alias_problem("submit"), alias_problem("web search"), alias_problem("web_search")
    ("'submit' is reserved", "'web search' is not a name that every provider accepts", None)
    """
    if alias.casefold() in _RESERVED:
        return f"{alias!r} is reserved"
    is_valid = bool(alias) and _RULES.candidate(alias) == alias
    return None if is_valid else f"{alias!r} is not a name that every provider accepts"
