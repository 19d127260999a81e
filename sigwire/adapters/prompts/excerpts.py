"""Shorten a failed answer before it is sent back: its start, its end and the fields with problems are kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sigwire.adapters.finish import with_calls
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall

__all__ = ["LONGEST_RESENT", "excerpt", "shorten_answer"]

LONGEST_RESENT = 8_000  # characters: some 2,000 tokens


def shorten_answer(choice: Choice, marks: Iterable[str] = ()) -> Choice:
    """Return the choice with its text shortened around ``marks``, and with shortened arguments of its calls."""
    text = excerpt(choice.text, marks)
    calls = tuple(map(_shorten_call, choice.tool_calls))
    unchanged = text is choice.text and all(map(lambda new, old: new is old, calls, choice.tool_calls))
    return choice if unchanged else with_calls(choice, text, calls)


def _shorten_call(call: ToolCall) -> ToolCall:
    text = call.arguments_text
    return call if len(text) <= LONGEST_RESENT else replace(call, arguments=None, raw_arguments=excerpt(text))


def excerpt(text: str, marks: Iterable[str] = (), longest: int = LONGEST_RESENT) -> str:
    """Return the text; if it is longer than allowed, its start, its end and the text after each mark.

    >>> excerpt("a" * 90 + "[n] three" + "b" * 90, ["[n]"], 24)
    'aaaaaaaa\\n[... 82 characters omitted ...]\\n[n] thre\\n[... 83 characters omitted ...]\\nbbbbbbbb'
    """
    if len(text) <= longest:
        return text
    found = {at for mark in marks if (at := text.rfind(mark)) >= 0}
    size = longest // (len(found) + 2)
    kept, end = text[:size], size
    for start in sorted({*found, len(text) - size}):
        if start > end:
            kept += f"\n[... {start - end} characters omitted ...]\n"
            end = start
        kept += text[end : start + size]
        end = max(end, start + size)
    return kept
