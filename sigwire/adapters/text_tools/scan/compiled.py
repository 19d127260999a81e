"""The table of grammars, compiled for scanning: where anything may begin. Holds nothing of any text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sigwire.adapters.text_tools.grammar import END_TOKENS, Grammar, ToolCatalog

__all__ = ["CLOSERS", "THOUGHTS", "CompiledGrammars"]

THOUGHTS: Mapping[str, str] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
}
"""What opens a thinking block, and what closes it."""

CLOSERS = frozenset(THOUGHTS.values())
_MAX_PATTERNS = 64


class CompiledGrammars:
    """A table of grammars, compiled. Holds nothing of any text."""

    __slots__ = (
        "_patterns",
        "by_opener",
        "by_start",
        "by_tool_name",
        "closers",
        "firsts",
        "own_by_first",
        "own_line",
        "prefixes",
        "stops",
        "token",
        "tokens",
        "width",
    )  # fmt: skip

    def __init__(self, grammars: tuple[Grammar, ...]) -> None:
        self.by_opener = _by_opener(grammar for grammar in grammars if not grammar.weak)
        self.own_line = tuple(o for g in grammars if g.own_line for o in (*g.openers, *g.stops))
        self.own_by_first = {
            first: tuple(literal for literal in self.own_line if literal[0] == first)
            for first in {literal[0] for literal in self.own_line}
        }
        self.by_start = _by_opener(grammar for grammar in grammars if grammar.weak and grammar.openers)
        self.by_tool_name = tuple(grammar for grammar in grammars if grammar.weak and not grammar.openers)
        self.stops = frozenset(stop for grammar in grammars for stop in grammar.stops)
        self.closers = frozenset(closer for grammar in grammars for closer in grammar.closers)
        openers = {opener for g in grammars if not (g.own_line or g.weak) for opener in g.openers}
        stops = {stop for g in grammars if not g.own_line for stop in g.stops}
        tokens = openers | stops | self.closers | THOUGHTS.keys() | CLOSERS | END_TOKENS
        self.tokens = tuple(sorted(tokens, key=len, reverse=True))
        self.prefixes = frozenset(token[:cut] for token in self.tokens for cut in range(1, len(token)))
        self.firsts = "".join(sorted({token[0] for token in self.tokens}))
        self.width = max(map(len, self.tokens))
        self.token = re.compile(_alternatives(self.tokens))
        self._patterns: dict[str, re.Pattern[str]] = {}

    @property
    def markers(self) -> tuple[str, ...]:
        """The literals at which a call may begin anywhere in a line, the longest first."""
        return tuple(token for token in self.tokens if token in self.by_opener)

    def pattern(self, catalog: ToolCatalog) -> re.Pattern[str]:
        """Everything that may begin something, where these tools are on offer."""
        found = self._patterns.get(catalog.initials)
        if found is None:
            starts = {opener[0] for opener in (*self.own_line, *self.by_start)} | set("`~>")
            starts |= set(catalog.initials if self.by_tool_name else "")
            # No group around an alternative: it would keep the search from skipping to where one may begin.
            line = rf"\n[ \t]*(?=[{re.escape(''.join(sorted(starts)))}])"
            found = re.compile(rf"{line}|`|{self.token.pattern}")
            if len(self._patterns) >= _MAX_PATTERNS:
                self._patterns.clear()
            self._patterns[catalog.initials] = found
        return found


def _by_opener(grammars: Iterable[Grammar]) -> dict[str, tuple[Grammar, ...]]:
    table: dict[str, tuple[Grammar, ...]] = {}
    for grammar in grammars:
        for opener in grammar.openers:
            table[opener] = (*table.get(opener, ()), grammar)
    return table


def _alternatives(tokens: tuple[str, ...]) -> str:
    """The literals as an expression, grouped by their first character so that few are tried at each."""
    by_first: dict[str, list[str]] = {}
    for token in tokens:
        by_first.setdefault(token[0], []).append(re.escape(token[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in by_first.items())
