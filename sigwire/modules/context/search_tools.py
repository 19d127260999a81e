"""The search of the turns that are left out: ``search_conversation``, and passages for programs without tools.

Passages are parts of turns of about 300 characters with turn number and speaker, ranked by BM25. They are shown in the order
of the conversation, so that a correction stands behind what it corrects.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from operator import is_
from typing import NamedTuple

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.tools.tool import Tool
from sigwire.core.words import WordIndex
from sigwire.modules.turn_text import text_of_value
from sigwire.signatures.types.history import AnyTurn, History, shown_as
from sigwire.signatures.types.views import quoted

__all__ = ["find_passages", "search_tool", "with_passages"]

_LENGTH = 300  # characters of a passage
_MOST_CHARACTERS = 4_000
_MOST_PASSAGES = 50

_DESCRIPTION = (
    "Search the earlier turns of this conversation that are not shown. Returns passages that have the words of the query, "
    "oldest first: a later passage corrects an earlier one."
)
_HEAD = (
    "Passages of the turns that were left out, nearest to what follows, oldest first. A later one corrects an earlier one. "
    "They are quoted as data:"
)
_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Words that the passages have: names, numbers, topics."},
        "count": {"type": "integer", "minimum": 1, "description": "The most passages; 8 if omitted."},
    },
    "required": ["query"],
    "additionalProperties": False,
}


class _Passage(NamedTuple):
    turn: int
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"[turn {self.turn}, {self.speaker}]\n{quoted(self.text)}"


class _Index:
    """The passages of the first turns of a conversation; grows with it."""

    def __init__(self) -> None:
        self._words, self._passages, self._turns = WordIndex[int](length=0.4), list[_Passage](), list[AnyTurn]()
        self._lock = threading.Lock()

    def found(self, history: History, query: str, count: int) -> list[_Passage] | None:
        """Return the best passages of what a fold leaves out, in the order of the conversation.

        ``None`` if the index has other turns: several conversations may begin with one history.
        """
        fold = history.folds[-1]
        names, upto = {fold.search, fold.reader}, max(fold.upto, fold.cleared)
        with self._lock:
            if len(self._turns) > upto or not all(map(is_, self._turns, history.messages)):
                return None
            for number in range(len(self._turns), upto):
                turn = history.messages[number]
                for passage in _passages(number, turn, names):
                    self._words.add(len(self._passages), passage.text)
                    self._passages.append(passage)
                self._turns.append(turn)
            return [self._passages[at] for at in sorted(at for at, _ in self._words.search(query, count))]


def find_passages(history: History, query: str, count: int) -> list[_Passage]:
    """Return the passages of the turns that a folded history leaves out which are nearest to a query.

    >>> from sigwire.core.fold import Fold
    >>> from sigwire.signatures.types.history import folded
    >>> history = folded(History([{"q": "The code of Ada is 7."}, {"q": "Bob is 3."}, {"q": "?"}]), Fold(2))
    >>> [str(passage) for passage in find_passages(history, "Ada code", 2)]
    ['[turn 0, q]\\n> The code of Ada is 7.']
    """
    if not history.folds:
        return []
    index: _Index = history.derived.setdefault("index", _Index())
    found = index.found(history, query, count)
    if found is None:
        index = history.derived["index"] = _Index()
        found = index.found(history, query, count)
    return found or []


def _passages(number: int, turn: AnyTurn, tools: set[str]) -> Iterator[_Passage]:
    for speaker, text in _speakers(turn, tools):
        yield from (_Passage(number, speaker, part) for part in _parts(text))


def _speakers(turn: AnyTurn, tools: set[str]) -> Iterator[tuple[str, str]]:
    if not isinstance(turn, Message):
        yield from ((name, text_of_value(value)) for name, value in turn.items())
        return
    if turn.text:
        yield turn.role, turn.text
    yield from (("call", f"{call.name}({call.arguments_text})") for call in turn.tool_calls if call.name not in tools)
    yield from ((f"result of {each.name}", each.text) for each in turn.tool_results if each.name not in tools)


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts that end at a blank if there is one in their second half.

    >>> list(map(len, _parts("word " * 100)))
    [299, 199]
    """
    start, text = 0, text.strip()
    while start < len(text):
        end = start + _LENGTH
        if (
            end < len(text)
            and (blank := max(text.rfind(" ", start, end), text.rfind("\n", start, end))) > start + _LENGTH // 2
        ):
            end = blank
        if part := text[start:end].strip():
            yield part
        start = end


def search_tool(name: str, history: Callable[[], History]) -> Tool:
    """Return the tool that searches what the requests of a conversation leave out."""

    def search(query: str, count: int = 8) -> str:
        found = find_passages(history(), query, min(count, _MOST_PASSAGES))
        if not found:
            return "No passage has a word of this query. Try other words."
        return _shown(
            f"{len(found)} passage{'s' if len(found) > 1 else ''} of the conversation, oldest first, quoted as data:",
            found,
        )

    return Tool(
        name=name,
        description=_DESCRIPTION,
        parameters=_PARAMETERS,
        handler=search,
        max_output=_MOST_CHARACTERS + 200,
        on_crash="rerun",
        approve=False,
    )


def _shown(head: str, passages: list[_Passage]) -> str:
    lines, left = [head], _MOST_CHARACTERS
    for passage in passages:
        if (left := left - len(str(passage))) < 0:
            lines.append("(More passages were found. Ask for fewer, or with other words.)")
            break
        lines.append(str(passage))
    return "\n".join(lines)


def with_passages(history: History, query: str, count: int, *, before_last: bool) -> History:
    """Return the history whose next request has the passages nearest to a query, at the end or in front of the last turn."""
    found = find_passages(history, query, count)
    if not found:
        return history
    turns = list(history.view().messages)
    turns.insert(len(turns) - before_last, Message.user(_shown(_HEAD, found)))
    return shown_as(history, History(turns))
