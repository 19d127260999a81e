"""``ToolSearch``: of many tools, a run offers those that fit, and the model searches the others.

    the provider searches    all tools in every request, deferred but for ``Tool(defer=False)``, and the provider's own tool
    ``find_tools``           the tools with ``defer=False``, those that the earlier conversation called, the best for the
                             inputs; and behind them, from the next turn on, what a search found or the model called by name

Offered tools are a function of the inputs and the conversation, so nothing of them is recorded or saved. A tool that was
offered once stays, in its place: a discovery moves the prefix of the requests once. If a provider refuses its own search (an
old model, a proxy), the run goes on with ``find_tools`` and a warning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.core.tools.texts import ToolText
from sigwire.core.tools.tool import Tool
from sigwire.effects.loops import to_thread
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import LMError, LMInvalidRequestError, UnsupportedFeature
from sigwire.modules.agents.tool_catalog import SearchedTools, Vectorizer, catalog_of, fitting
from sigwire.modules.nearest import fields_text
from sigwire.observe.usage import record_warnings
from sigwire.signatures.types.history import AnyTurn, Turn

if TYPE_CHECKING:
    from sigwire.core.example import Prediction
    from sigwire.lm.base import LanguageModel
    from sigwire.modules.agents.run_state import RunState

__all__ = ["ToolSearch", "provider_search", "search_for"]

_FOUND, _MOST_FOUND = 5, 20  # tools of one search
_LONGEST_QUERY = 20_000  # characters of the inputs
_LARGEST_RESULT = 1_000_000  # characters: a schema must not be cut
_NAMES = ("find_tools", "find_more_tools", "search_for_tools")
_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What the tool must do, in a few words."},
        "count": {"type": "integer", "description": "The most tools to return."},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_REFUSED = re.compile(r"defer_loading|tool[_ ]search|tool[_ ]reference|does not support tool types", re.IGNORECASE)


def search_for(
    state: RunState,
    option: object,
    agent: Any,
    count: int,
    room: int | None,
    model: LanguageModel | None,
) -> ToolSearch:
    """Return the search of a run of an agent with ``tool_search=option``.

    ``count`` and ``room``: tools that are sent first, and tokens for their schemas. ``model``: ``None`` if its provider must
    not search.
    """
    vectorizer, submit = cast("Vectorizer", option) if callable(option) else None, [*agent.tools.values()][-1]
    return ToolSearch(state, agent.react.tool_texts, submit, count, room, vectorizer, provider_search(model))


def provider_search(lm: object) -> Tool | None:
    """Return the provider's tool that searches deferred tools; ``None`` if the model or its wire has none.

    A model with fallbacks has none: another provider may get the request.
    """
    find: Callable[[Request], Any] | None = getattr(getattr(lm, "_backend", None), "target_of", None)
    if find is None or getattr(lm, "_fallbacks", None):
        return None
    target = find(Request(tools=({"type": "function", "function": {"name": "f"}},)))
    known: tuple[str, JsonObject] | None = target.profile.tool_search
    if known is None or not target.facts.tool_search or not target.capabilities.native_tools:
        return None
    kind, settings = known
    return Tool.from_schema(str(settings.get("name") or kind)).with_spec({"type": kind, kind: settings})


class ToolSearch:
    """The search of one run. ``tool`` is ``find_tools``; ``hosted`` the provider's own search, if it is used."""

    def __init__(
        self,
        state: RunState,
        texts: Mapping[str, ToolText],
        submit: Tool,
        count: int,
        room: int | None,
        vectorizer: Vectorizer | None,
        hosted: Tool | None,
    ) -> None:
        self._state, self._texts, self._submit, self.hosted = state, texts, submit, hosted
        self._count, self._room, self._vectorizer = count, room, vectorizer
        box = state.large.toolbox
        self._tools = box.tools
        self._catalog: Callable[[], SearchedTools] = lambda: catalog_of(box, texts, vectorizer)
        self.show: Callable[[Tool], JsonObject] = _as_json
        self._offered: tuple[Tool, ...] = ()
        self._names: set[str] = set()
        self._read = 0  # turns of the conversation
        self.tool = _find_tool(self._find, self._tools)
        state.large.toolbox = copy(box)  # the agent's own is shared with other runs
        state.large.toolbox.tools = {**box.tools, self.tool.name: self.tool}
        state.large.toolbox.schema_of = self._missing_schema

    def ask(self, ask: Callable[[], Steps[Prediction]]) -> Steps[Prediction]:
        """Ask with the tools of the next turn, as the state of the run has them."""
        while True:
            self._state.offered = yield from self._next_tools()
            try:
                return (yield from ask())
            except (LMInvalidRequestError, UnsupportedFeature) as error:
                if self.hosted is None or not _REFUSED.search(str(error)):
                    raise
                self._fall_back(error)

    def _next_tools(self) -> Steps[tuple[Tool, ...]]:
        """Return the tools of the next turn: the same object if no tool was found since the last."""
        if self.hosted is not None:
            return self._offered or self._keep(_all_deferred(self._tools.values(), self._submit, self.hosted))
        if not self._offered:
            first = yield from self.first_names()
            self._keep((*(self._tools[name] for name in self._tools if name in first), self._submit, self.tool))
        turns = self._state.history.messages
        found = [name for turn in turns[self._read :] for name in self._named_in(turn) if name not in self._names]
        self._read = len(turns)
        return (
            self._keep((*self._offered, *map(self._tools.__getitem__, dict.fromkeys(found))))
            if found
            else self._offered
        )

    def _keep(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        self._offered, self._names = tools, {tool.name for tool in tools}
        return tools

    def first_names(self) -> Steps[set[str]]:
        """Return the true names of the tools that are sent first: always sent, called before, best for the inputs."""
        history, tools, catalog = self._state.history.messages, self._tools, self._catalog()
        start = next((at for at in range(len(history) - 1, -1, -1) if isinstance(history[at], Turn)), 0)
        self._read = start
        names = {call.name for turn in history[:start] if isinstance(turn, Message) for call in turn.tool_calls}
        names |= {name for name, tool in tools.items() if tool.defer is False or tool.config is not None}
        ranked = yield from self._ranked(fields_text(self._state.inputs)[:_LONGEST_QUERY])
        names |= {
            self._true_name(view.name)
            for view in fitting(map(catalog.views.__getitem__, ranked), self._count, self._room)
        }
        return names & tools.keys()

    def _ranked(self, query: str) -> Steps[list[str]]:
        """Return the names that models see of the tools that inputs may offer, the best first."""
        catalog, tools = self._catalog(), self._tools
        best = partial(catalog.best, query, len(tools))
        if self._vectorizer is None:
            ranked = best()
        else:
            ranked = yield FunctionEffect(best, lambda: to_thread(best))
        return [name for name in ranked if tools[self._true_name(name)].defer is None]

    def _named_in(self, turn: AnyTurn) -> Iterator[str]:
        """Yield the true names of the tools that a turn found or called."""
        if not isinstance(turn, Message):
            return
        yield from (call.name for call in turn.tool_calls if call.name in self._tools)
        for result in turn.tool_results:
            content = result.content if result.name == self.tool.name and not result.is_error else None
            for each in content if isinstance(content, list) else ():
                name = self._true_name(str(each.get("name"))) if isinstance(each, dict) else ""
                if name in self._tools:
                    yield name

    def _true_name(self, shown: str) -> str:
        return next((name for name, text in self._texts.items() if text.alias == shown), shown)

    def _find(self, query: str, count: int = _FOUND) -> JsonValue:
        catalog = self._catalog()
        found = [view for name in catalog.best(query, min(max(count, 1), _MOST_FOUND)) if (view := catalog.views[name])]
        if not found:
            return "No tool has these words. Describe in other words what the tool must do."
        return list[JsonValue](map(self.show, found))

    def _missing_schema(self, name: str) -> JsonObject | None:
        """Return the schema of a known tool that was not offered when the model called it."""
        is_known = self.hosted is None and name in self._tools and name not in self._names
        return self._tools[name].parameters if is_known else None

    def _fall_back(self, error: LMError | UnsupportedFeature) -> None:
        self.hosted, self._offered = None, ()
        why = str(error).splitlines()[0]
        warning = LMWarning(
            "tool_search", f"The provider refused its tool search; {self.tool.name} takes its place: {why}"
        )
        self._state.calls.add(warning)
        record_warnings(warning)


def _as_json(tool: Tool) -> JsonObject:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _find_tool(find: Callable[..., JsonValue], taken: Iterable[str]) -> Tool:
    names = (*_NAMES, *(f"{_NAMES[0]}_{number}" for number in range(2, 100)))
    return Tool(
        name=next(name for name in names if name not in taken),
        description="Find more tools by what they do. The tools that are found can be called in the next turn.",
        parameters=_PARAMETERS,
        handler=find,
        max_output=_LARGEST_RESULT,
        on_crash="rerun",
        approve=False,
        repeat=True,
    )


def _all_deferred(tools: Iterable[Tool], submit: Tool, hosted: Tool) -> tuple[Tool, ...]:
    return (
        *(tool if tool.defer is False or tool.config is not None else _deferred(tool) for tool in tools),
        submit,
        hosted,
    )


def _deferred(tool: Tool) -> Tool:
    function = cast("JsonObject", tool.spec["function"])
    return tool.with_spec({**tool.spec, "function": {**function, "defer_loading": True}})
