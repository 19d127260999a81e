"""``LargeResults``: the results of a run that the model saw in part or as a reference, and the tool that reads them.

A toolbox with a ``reader`` names that tool in the note of each shortened result. The first such result adds the tool to the
tools of the run. Its calls run in the toolbox like all others: journaled, streamed, in the steps and in the JSON of the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any

from sigwire.core.fold import Fold
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, ToolFailed
from sigwire.modules.agents.tool_run import ToolRun
from sigwire.signatures.types.history import History

if TYPE_CHECKING:
    from sigwire.modules.agents.toolbox import Toolbox

__all__ = ["LargeResults", "reader_name"]

_CHOICES = ("reference", "cut")
_NAMES = ("read_result", "read_tool_result", "read_large_tool_result")
_DEFAULT_LENGTH = 4_000  # characters
_LARGEST_PAGE = 20_000  # characters, if the toolbox has no limit
_SMALLEST_PAGE = 200  # characters: a limit of 10 would make one call for each word
_CONTEXT = 120  # characters on each side of a match
_LONGEST_NOTE = 500  # characters of a header around the text
_MOST_IDS = 10  # in an error

_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "The id in the note of the shortened result."},
        "start": {"type": "integer", "minimum": 0, "description": "The first character to return or search."},
        "length": {"type": "integer", "minimum": 1, "description": "The most characters to return."},
        "search": {
            "type": "string",
            "description": "Return only the places with this text; upper and lower case match.",
        },
    },
    "required": ["id"],
    "additionalProperties": False,
}


def reader_name(large_results: str, taken: Container[str]) -> str:
    """Return the name of the tool that reads large results, "" if they are only cut.

    Raises ``ConfigurationError`` for another choice.

    >>> reader_name("reference", ["read_result"]), reader_name("cut", [])
    ('read_tool_result', '')
    """
    if large_results not in _CHOICES:
        known = " or ".join(map(repr, _CHOICES))
        raise ConfigurationError(f"large_results is {known}, not {large_results!r} (creating a ReAct).")
    return "" if large_results == "cut" else next(name for name in _candidates() if name not in taken)


def _candidates() -> Iterator[str]:
    yield from _NAMES
    number = 2
    while True:
        yield f"{_NAMES[-1]}_{number}"
        number += 1


class LargeResults:
    """The results of a run that were shown in part. ``toolbox`` runs its calls; ``tools`` are offered beside the agent's.

    >>> from sigwire.core.tools.calls import ToolCall
    >>> from sigwire.effects.steps import run
    >>> from sigwire.modules.agents.toolbox import Toolbox
    >>> box = Toolbox([Tool(lambda: "abc" * 100, name="find", description="", max_output=10)])
    >>> box.reader = "read_result"
    >>> large = LargeResults(box)
    >>> large.keep(run(large.toolbox.run([ToolCall("a", "find", {})])))
    >>> print(large.toolbox([ToolCall("b", "read_result", {"id": "a", "start": 297})])[0].text)
    Characters 297 to 300 of 300:
    abc
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        self.tools: tuple[Tool, ...] = ()
        self._page = max(_SMALLEST_PAGE, _LARGEST_PAGE if toolbox.max_output is None else toolbox.max_output)
        self.texts: dict[str, str] = {}
        self._history: Callable[[], History] = History

    def keep(self, runs: Iterable[ToolRun]) -> None:
        """Keep the texts of the results that were shown in part; offer the tool if there are any."""
        if not self.toolbox.reader:
            return
        for done in runs:
            # A run that a journal returns has two equal results.
            if done.shown is not done.result and done.shown.content != done.result.content:
                self.texts[done.call.id] = done.result.text
        if self.texts and not self.tools:
            self._add(self._reader(self.toolbox.reader))

    def tools_of(self, fold: Fold, history: Callable[[], History]) -> Iterator[Tool]:
        """Yield the tools that find what a fold of a conversation leaves out, and that are not offered yet."""
        offered = {"", *(tool.name for tool in self.tools)}
        if fold.reader not in offered:
            yield self._reader(fold.reader)
        if fold.search not in offered:
            from sigwire.modules.context.search_tools import search_tool  # few conversations are folded

            yield search_tool(fold.search, history)

    def offer_search(self, fold: Fold, history: Callable[[], History]) -> None:
        """Offer the tools that find what a fold of a conversation leaves out, from now on."""
        self._history = history
        for tool in (*self.tools_of(fold, history),):
            self._add(tool)

    def restore(self, texts: Mapping[str, Any]) -> None:
        """Keep the texts of a run that is resumed, as its state has them."""
        if not all(isinstance(text, str) for text in texts.values()):
            raise TypeError("a large result is a text")
        self.texts.update(texts)
        if self.texts:
            self._add(self._reader(self.toolbox.reader))

    def _reader(self, name: str) -> Tool:
        return Tool(
            name=name,
            description="Read a part of a large tool result of which only a part or a reference is shown, or search it.",
            parameters=_PARAMETERS,
            handler=self._read,
            max_output=self._page + _LONGEST_NOTE,
            on_crash="rerun",
            approve=False,
            tunable=False,
        )

    def _add(self, tool: Tool) -> None:
        self.tools = (*self.tools, tool)
        self.toolbox = copy(self.toolbox)  # the agent's own is shared with other runs
        self.toolbox.tools = {**self.toolbox.tools, tool.name: tool}

    def _results(self) -> dict[str, str]:
        """Return the texts of the results that the conversation has, by the id of their call."""
        turns = [turn for turn in self._history().messages if isinstance(turn, Message) and turn.role == "tool"]
        return {result.id: result.text for turn in turns for result in turn.tool_results}

    def _read(self, id: str, start: int = 0, length: int = _DEFAULT_LENGTH, search: str = "") -> str:
        text = self.texts[id] if id in self.texts else self._results().get(id)
        if text is None:
            known = ", ".join([*self._results(), *self.texts][-_MOST_IDS:])
            raise ToolFailed(f"There is no large result {id[:60]!r} in this run. The latest ids are: {known}.")
        length = min(length, self._page)
        if search:
            return _found_places(text, search, start, length)
        end = min(start + length, len(text))
        if start >= end:
            raise ToolFailed(f"The result ends at character {len(text)}; start must be lower.")
        return f"Characters {start} to {end} of {len(text)}:\n{text[start:end]}"


def _found_places(text: str, search: str, start: int, length: int) -> str:
    """Return the places of a text with their offsets, and the offset at which the next search starts.

    >>> print(_found_places("one two ONE", "one", 0, 4000))
    2 matches in characters 0 to 11:
    [at 0] one two ONE
    [at 8] one two ONE
    """
    found = [match.start() for match in re.finditer(re.escape(search), text[start:], re.IGNORECASE)]
    if not found:
        return f"No match in characters {start} to {len(text)}."
    lines = [f"{len(found)} match{'es' if len(found) > 1 else ''} in characters {start} to {len(text)}:"]
    lines += islice(
        _excerpts(text, [start + at for at in found], len(search)), max(1, length // (2 * _CONTEXT + len(search)))
    )
    if shown := len(found) - len(lines) + 1:
        lines.append(f"({shown} more: search with start={start + found[len(lines) - 1]})")
    return "\n".join(lines)


def _excerpts(text: str, places: Sequence[int], width: int) -> Iterator[str]:
    return (f"[at {at}] {text[max(0, at - _CONTEXT) : at + min(width, _CONTEXT) + _CONTEXT]}" for at in places)
