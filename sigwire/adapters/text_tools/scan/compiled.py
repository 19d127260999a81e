"""The table of grammars, compiled for scanning: every literal at which markup can start. Holds no text."""

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
"""The tags that open thinking blocks, and the closing tag of each."""

CLOSERS = frozenset(THOUGHTS.values())
_MAX_PATTERNS = 64


class CompiledGrammars:
    """A compiled table of grammars, shared by all scans."""

    __slots__ = (
        "_patterns", "by_opener", "by_start", "by_tool_name", "closers", "first_characters", "own_by_first", "own_line",
        "prefixes", "stops", "token", "tokens", "width"
    )  # fmt: skip

    def __init__(self, grammars: tuple[Grammar, ...]) -> None:
        weak = [grammar for grammar in grammars if grammar.weak]
        self.by_opener = _group_by_opener(grammar for grammar in grammars if not grammar.weak)
        self.by_start = _group_by_opener(weak)
        self.by_tool_name = tuple(grammar for grammar in weak if not grammar.openers)
        self.stops = _flatten(grammar.stops for grammar in grammars)
        self.closers = _flatten(grammar.closers for grammar in grammars)
        self.own_line = _line_literals(grammars)
        self.own_by_first = _group_by_first(self.own_line)
        self.tokens = tuple(sorted(_inline_literals(grammars) | self.closers, key=len, reverse=True))
        self.prefixes = _proper_prefixes(self.tokens)
        self.first_characters = "".join(sorted(_group_by_first(self.tokens)))
        self.width = max(map(len, self.tokens))
        self.token = re.compile(_alternatives(self.tokens))
        self._patterns: dict[str, re.Pattern[str]] = {}

    @property
    def markers(self) -> tuple[str, ...]:
        """The literals at which a call can start anywhere in a line, the longest first."""
        return tuple(token for token in self.tokens if token in self.by_opener)

    def pattern(self, catalog: ToolCatalog) -> re.Pattern[str]:
        """Return the expression of all positions at which markup can start when these tools are offered."""
        found = self._patterns.get(catalog.initials)
        if found is None:
            starts = {opener[0] for opener in (*self.own_line, *self.by_start)} | set("`~>")
            starts |= set(catalog.initials if self.by_tool_name else "")
            # No group around an alternative: a group disables the search for a common prefix.
            line = rf"\n[ \t]*(?=[{re.escape(''.join(sorted(starts)))}])"
            found = re.compile(rf"{line}|`|{self.token.pattern}")
            if len(self._patterns) >= _MAX_PATTERNS:
                self._patterns.clear()
            self._patterns[catalog.initials] = found
        return found


def _flatten(groups: Iterable[tuple[str, ...]]) -> frozenset[str]:
    return frozenset(literal for group in groups for literal in group)


def _line_literals(grammars: Iterable[Grammar]) -> tuple[str, ...]:
    return tuple(literal for grammar in grammars if grammar.own_line for literal in (*grammar.openers, *grammar.stops))


def _inline_literals(grammars: Iterable[Grammar]) -> frozenset[str]:
    anywhere = [grammar for grammar in grammars if not grammar.own_line]
    openers = _flatten(grammar.openers for grammar in anywhere if not grammar.weak)
    return openers.union(THOUGHTS, CLOSERS, END_TOKENS, *(grammar.stops for grammar in anywhere))


def _proper_prefixes(literals: Iterable[str]) -> frozenset[str]:
    return frozenset(literal[:end] for literal in literals for end in range(1, len(literal)))


def _group_by_opener(grammars: Iterable[Grammar]) -> dict[str, tuple[Grammar, ...]]:
    table: dict[str, tuple[Grammar, ...]] = {}
    for grammar in grammars:
        for opener in grammar.openers:
            table[opener] = (*table.get(opener, ()), grammar)
    return table


def _group_by_first(literals: Iterable[str]) -> dict[str, tuple[str, ...]]:
    table: dict[str, tuple[str, ...]] = {}
    for literal in literals:
        table[literal[0]] = (*table.get(literal[0], ()), literal)
    return table


def _alternatives(tokens: tuple[str, ...]) -> str:
    """Return an expression of the literals, grouped by first character so that the search tries few at each position."""
    groups = _group_by_first(tokens).items()
    return "|".join(
        f"{re.escape(first)}(?:{'|'.join(re.escape(token[1:]) for token in group)})" for first, group in groups
    )
