"""The table of grammars, compiled for scanning: every literal at which markup can start. Holds no text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeAlias

from sigwire.adapters.text_tools.grammar import END_TOKENS, PREFIXES, Grammar, ToolCatalog
from sigwire.adapters.text_tools.scan.marks import CLOSERS, ECHOES, THOUGHTS

__all__ = ["NO_FIELDS", "CompiledGrammars"]

NO_FIELDS: Mapping[str, str] = {}
_MAX_PATTERNS = 64


class CompiledGrammars:
    """A compiled table of grammars, shared by all scans. ``fields``: the tags around the outputs, closing by opening tag."""

    __slots__ = (
        "_openers",
        "_patterns",
        "by_opener",
        "by_start",
        "by_tool_name",
        "closers",
        "echoes",
        "first_characters",
        "own_by_first",
        "own_line",
        "prefixes",
        "quotations",
        "stops",
        "token",
        "tokens",
        "width",
    )

    def __init__(self, grammars: tuple[Grammar, ...], fields: Mapping[str, str] = NO_FIELDS) -> None:
        weak = [grammar for grammar in grammars if grammar.weak]
        self.by_opener = _group_by_opener(grammar for grammar in grammars if not grammar.weak)
        self.by_start = _group_by_opener(weak)
        self.by_tool_name = tuple(grammar for grammar in weak if not grammar.openers)
        self.stops = _flatten(grammar.stops for grammar in grammars)
        self.echoes, self.quotations = _quotations(grammars, fields)
        self.closers = _flatten(grammar.closers for grammar in grammars)
        self.own_line = _line_literals(grammars)
        self.own_by_first = _group_by_first(self.own_line)
        inline = _inline_literals(grammars).union(self.closers, self.quotations, *self.quotations.values())
        self.tokens = tuple(sorted(inline, key=len, reverse=True))
        self.prefixes = _proper_prefixes(self.tokens)
        self.first_characters = "".join(sorted(_group_by_first(self.tokens)))
        self.width = max(map(len, self.tokens))
        self.token = re.compile(_alternatives(self.tokens))
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._openers: dict[str, re.Pattern[str]] = {}

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

    def can_hold_calls(self, text: str, catalog: ToolCatalog) -> bool:
        """Return False if the text holds nothing that a scan would act on: no opener and no token. Quotation is no opener.

        >>> from sigwire.adapters.text_tools.registry import current_scanner
        >>> tools = ToolCatalog.of(["ping"])
        >>> current_scanner().can_hold_calls("[[ ## answer ## ]]\\nCall `ping`.", tools)
        False
        >>> current_scanner().can_hold_calls("ping\\n{}", tools)
        True
        """
        text = "\n" + text
        if self._opener_pattern(catalog.output).search(text):
            return True
        if not self.by_tool_name or not catalog.initials:
            return False
        lines = _lines_starting_with(catalog.initials)
        if lines.search(text) is None:
            return False
        names = (*catalog.tools, *PREFIXES)
        return any(text.startswith(names, line.end()) for line in lines.finditer(text))

    def _opener_pattern(self, output: str) -> re.Pattern[str]:
        """Return the expression of all openers: tokens anywhere, others at the start of a line. ``output``: of the catalog."""
        found = self._openers.get(output)
        if found is None:
            known = self.by_opener.items()
            sections = {opener for opener, grammars in known if all(each.name == "section" for each in grammars)}
            plain = {*self.own_line, *self.by_start} - sections - {"["}
            starts = [*map(re.escape, sorted(plain)), r"\[(?!\[[ \t]*##)"]  # the header of an output is no list
            if output and sections:
                starts.append(rf"\[\[[ \t]*##[ \t]*{re.escape(output)}")
            found = re.compile(rf"\n[ \t]*(?:{'|'.join(starts)})|{self.token.pattern}")
            if len(self._openers) >= _MAX_PATTERNS:
                self._openers.clear()
            self._openers[output] = found
        return found


@lru_cache(_MAX_PATTERNS)
def _lines_starting_with(characters: str) -> re.Pattern[str]:
    return re.compile(rf"\n[ \t]*(?=[{re.escape(characters)}])")


_Quotations: TypeAlias = Mapping[str, tuple[str, ...]]


def _quotations(grammars: Iterable[Grammar], fields: Mapping[str, str]) -> tuple[_Quotations, _Quotations]:
    """Return the marks around tools' results, and those around results and outputs: closing marks by opening mark."""
    stops = {stop: (stop,) for grammar in grammars if not grammar.own_line for stop in grammar.stops}
    echoes = {**stops, **ECHOES}
    return echoes, {**echoes, **{opening: (closing,) for opening, closing in fields.items()}}


def _flatten(groups: Iterable[tuple[str, ...]]) -> frozenset[str]:
    return frozenset(literal for group in groups for literal in group)


def _line_literals(grammars: Iterable[Grammar]) -> tuple[str, ...]:
    return tuple(literal for grammar in grammars if grammar.own_line for literal in (*grammar.openers, *grammar.stops))


def _proper_prefixes(literals: Iterable[str]) -> frozenset[str]:
    return frozenset(literal[:end] for literal in literals for end in range(1, len(literal)))


def _inline_literals(grammars: Iterable[Grammar]) -> frozenset[str]:
    anywhere = [grammar for grammar in grammars if not grammar.own_line]
    openers = {opener for grammar in anywhere for opener in grammar.openers if not grammar.weak or len(opener) > 1}
    return frozenset(openers.union(THOUGHTS, CLOSERS, END_TOKENS))


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
