"""The ``submit`` call that a model writes in its text: its arguments, while the text arrives."""

from __future__ import annotations

import re
from functools import cache

from sigwire.adapters.text_tools.styles import style_named
from sigwire.core.tools.calls import ToolCall

__all__ = ["SubmitBlockReader"]

_MAX_HEAD = 200


class SubmitBlockReader:
    """Finds the arguments of ``submit`` in a text that arrives in chunks. Thinking in tags hides them.

    The call has the form that the prompt teaches, if its arguments are a JSON object, or the fenced form.
    """

    __slots__ = ("_found", "_head", "_held", "_marks", "is_done")

    def __init__(self, style: str, name: str) -> None:
        self._head, self._marks = _head_of_call(style, name)
        self._held = ""
        self._found = self.is_done = False

    def feed(self, text: str) -> str:
        """Return the argument text in this chunk."""
        if self.is_done:
            return ""
        if self._found:
            return text
        self._held += text
        if (head := self._head.search(self._held)) is not None:
            self._found = True
            return self._held[head.end() :]
        found = [at for mark in self._marks if (at := self._held.find(mark)) >= 0]
        self.is_done = "<think" in self._held or (bool(found) and len(self._held) - min(found) > _MAX_HEAD)
        if not found:
            self._held = self._held[-max(map(len, self._marks)) - 1 :]
        return ""


@cache
def _head_of_call(style: str, name: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return a pattern of the text before the arguments of a call at the start of a line, and the marks it begins with."""
    written = [style_named(each).calls([ToolCall("", name, {"": 0})]) for each in (style, "fenced")]
    heads = [before for before, arguments, _ in (text.partition('{""') for text in written) if arguments]
    flexible = (
        "".join(r"\s*" if c.isspace() else re.escape(c) + r"\s*" * (c in "{[:,") for c in head) for head in heads
    )
    return re.compile(rf"(?:\A|\n)[ \t]*(?:{'|'.join(flexible)})"), tuple(
        h.partition("{")[0].strip() or "{" for h in heads
    )
