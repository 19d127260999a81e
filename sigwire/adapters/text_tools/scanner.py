"""Find tool calls in a model's text: one left-to-right scan, asking a small table of grammars.

The scanner owns position, quotation and reasoning; a ``Grammar`` owns one way of writing calls: how a call opens, how its
payload is read, where the model starts to play the tool's side. What is quoted (block quotes, inline code, code fences) or
reasoned (a closed thinking block) is never a call. One exception: a fence that ends the message and holds nothing but calls
is a wrapped call, a frequent leak.

Pure text work, linear in the length of the text: what was searched for once in vain is not searched for again.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sigwire.core.tools import ToolCall

__all__ = ["Block", "Grammar", "Scan", "Scanner"]


@dataclass(frozen=True, slots=True)
class Block:
    """What a grammar read at its opener: calls (those that do not read well carry an error), the block's end, remarks."""

    calls: tuple[ToolCall, ...]
    end: int
    notes: tuple[str, ...] = ()


BlockReader: TypeAlias = "Callable[[str, re.Match[str], bool], Block | None]"
FenceReader: TypeAlias = Callable[[str, Collection[str]], tuple[ToolCall, ...]]


@dataclass(frozen=True, slots=True)
class Grammar:
    """One way of writing calls as text.

    ``hints``: a text without any of these strings cannot hold such a call. ``opener``: a regular expression (multi-line) that
    finds where one may begin. ``read(text, opener match, strict)``: the block that begins there, or ``None`` when it is
    only prose about the markup. ``stop``: an expression for what the tool's side would write; after a call the text is
    cut there. ``fences``: labels of a last fence in the message, such as ``~~~json``, whose content ``read_fence`` may take
    for calls when nothing surer was found.
    """

    name: str
    hints: tuple[str, ...]
    opener: str
    read: BlockReader
    stop: str | None = None
    fences: tuple[str, ...] = ()
    read_fence: FenceReader | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """The calls of a text, the text without them, the grammar that read them, and what had to be forgiven."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    dialect: str | None = None
    notes: tuple[str, ...] = ()


class Scanner:
    """Reads texts by the given grammars; the first grammar wins where two could begin."""

    __slots__ = ("grammars", "hints", "pattern", "resume")

    def __init__(self, grammars: tuple[Grammar, ...]) -> None:
        self.grammars = grammars
        self.hints = tuple(hint for grammar in grammars for hint in grammar.hints)
        openers = [f"(?P<call{number}>{grammar.opener})" for number, grammar in enumerate(grammars)]
        stops = [grammar.stop for grammar in grammars if grammar.stop]
        if stops:
            openers.append(f"(?P<stop>{'|'.join(stops)})")
        self.pattern = re.compile("|".join([*openers, *_QUOTATION, *_THINKING]), re.MULTILINE)
        self.resume = re.compile("|".join([*openers, _CLOSERS]), re.MULTILINE)

    def scan(self, text: str, names: Collection[str] = (), *, strict: bool = False) -> Scan:
        """Read one text. ``names`` are the declared tools, which weak forms must name; ``strict`` forgives nothing."""
        for hint in self.hints:
            if hint in text:
                return _Reading(self, text, names, strict).finish()
        return Scan(text)


_QUOTATION = (
    r"(?P<fence>^[ ]{0,3}(?P<marks>`{3,}|~{3,})(?P<label>[^\n]*)$)",
    r"(?P<quote>^[ ]{0,3}>[^\n]*)",
    r"(?P<code>`+[^`\n]+`+)",
)
_THOUGHTS: Mapping[str, str] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
}
_CLOSERS = f"(?P<unthink>{'|'.join(map(re.escape, _THOUGHTS.values()))})"
_THINKING = (f"(?P<think>{'|'.join(map(re.escape, _THOUGHTS))})", _CLOSERS)

_WRAPPER_LABELS = frozenset({"", "json", "xml", "text", "tool_call", "tool_code"})


class _Reading:
    """One text being read: where calls stood, which ones, and which searches are known to be vain."""

    __slots__ = ("calls", "dialect", "end", "names", "notes", "removed", "scanner", "strict", "text", "vain")

    def __init__(self, scanner: Scanner, text: str, names: Collection[str], strict: bool) -> None:
        self.scanner, self.text, self.names, self.strict = scanner, text, names, strict
        self.calls: list[ToolCall] = []
        self.removed: list[tuple[int, int]] = []
        self.notes: list[str] = []
        self.dialect: str | None = None
        self.end = len(text)
        self.vain: dict[str, int] = {}

    def finish(self) -> Scan:
        position = 0
        while match := self.scanner.pattern.search(self.text, position, self.end):
            position = max(self._step(match), match.start() + 1)
        return Scan(self._remainder(), tuple(self.calls), self.dialect, tuple(self.notes))

    def _step(self, match: re.Match[str]) -> int:
        """Deal with what begins here; the answer is where to go on."""
        kind = match.lastgroup or ""
        if kind.startswith("call"):
            return self._call(self.scanner.grammars[int(kind[4:])], match)
        match kind:
            case "fence":
                return self._fence(match)
            case "think":
                return self._thinking(match)
            case "unthink":
                # The prompt had opened the thinking, so all that came before is thought, not said.
                self._forget()
            case "stop" if self.calls:
                self.end = match.start()
                self.notes.append("what the model wrote in the tool's place was cut off")
            case _:
                pass  # quoted: not looked into
        return match.end()

    def _call(self, grammar: Grammar, match: re.Match[str]) -> int:
        block = grammar.read(self.text, match, self.strict)
        if block is None:
            return match.end()
        self._take(grammar, block.calls, match.start(), block.end, block.notes)
        return block.end

    def _take(
        self, grammar: Grammar, calls: tuple[ToolCall, ...], start: int, end: int, notes: tuple[str, ...] = ()
    ) -> None:
        self.calls.extend(calls)
        self.removed.append((start, end))
        self.notes.extend(notes)
        self.dialect = self.dialect or grammar.name

    def _forget(self) -> None:
        self.calls.clear()
        self.removed.clear()
        self.notes.clear()
        self.dialect = None

    # --- reasoning -------------------------------------------------------------------------------

    def _thinking(self, match: re.Match[str]) -> int:
        """The end of a thinking block; one that never closes hides nothing. A closer inside a call's text closes nothing."""
        closer, position = _THOUGHTS[match.group()], match.end()
        if closer in self.vain:
            return position
        while found := self.scanner.resume.search(self.text, position, self.end):
            if found.group() == closer:
                return found.end()
            position = self._past(found)
        self.vain[closer] = 0
        return match.end()

    def _past(self, found: re.Match[str]) -> int:
        kind = found.lastgroup or ""
        if not kind.startswith("call"):
            return found.end()
        block = self.scanner.grammars[int(kind[4:])].read(self.text, found, True)
        whole = block is not None and not any(call.error for call in block.calls)
        return block.end if block is not None and whole else found.end()

    # --- quotation -------------------------------------------------------------------------------

    def _fence(self, match: re.Match[str]) -> int:
        """The end of a code fence. One that never closes is no fence."""
        marks = match["marks"]
        close = self._fence_end(marks, match.end())
        if close is None:
            return match.end()
        if not self.text[close.end() : self.end].strip():
            self._last_fence(match, close)
        return close.end()

    def _fence_end(self, marks: str, position: int) -> re.Match[str] | None:
        character, length = marks[0], len(marks)
        if length >= self.vain.get(character, length + 1):
            return None
        close = _closing_fence(character, length).search(self.text, position, self.end)
        if close is None:
            self.vain[character] = length
        return close

    def _last_fence(self, match: re.Match[str], close: re.Match[str]) -> None:
        label, content = match["label"].strip(), self.text[match.end() + 1 : close.start()]
        if match["marks"][0] == "`" and label in _WRAPPER_LABELS:
            inner = self.scanner.scan(content, self.names, strict=self.strict)
            if inner.calls and not inner.text.strip():
                grammar = next(grammar for grammar in self.scanner.grammars if grammar.name == inner.dialect)
                self._take(grammar, inner.calls, match.start(), close.end(), (*inner.notes, "calls in a code fence"))
        elif not self.calls and not self.strict:
            self._labelled(match, close, match["marks"] + label, content)

    def _labelled(self, match: re.Match[str], close: re.Match[str], label: str, content: str) -> None:
        for grammar in self.scanner.grammars:
            calls = grammar.read_fence(content, self.names) if grammar.read_fence and label in grammar.fences else ()
            if calls:
                self._take(grammar, calls, match.start(), close.end(), (f"calls under the label {label}",))
                return

    # --- what is left ----------------------------------------------------------------------------

    def _remainder(self) -> str:
        if not self.calls:
            return self.text
        pieces: list[str] = []
        position = 0
        for start, end in self.removed:
            pieces.append(self.text[position:start])
            position = end + 1 if self.text[end : end + 1] == "\n" else end
        pieces.append(self.text[position : self.end])
        return "".join(pieces).strip()


@functools.lru_cache(maxsize=32)
def _closing_fence(character: str, length: int) -> re.Pattern[str]:
    return re.compile(rf"^[ ]{{0,3}}{character}{{{length},}}[ \t]*\r?$", re.MULTILINE)
