"""Find tool calls in a model's text, fed whole or in pieces: one left-to-right scan, asking a table of grammars.

The scanner owns position, quotation and reasoning; a ``Grammar`` owns one way of writing calls.

    quotation   inline code, block quotes and code fences are not looked into. One exception: fences that end the message and
                hold nothing but calls are wrapped calls, a frequent leak.
    reasoning   a closed thinking block hides what is in it; one that never closes hides nothing
    strength    a form with a marker is read anywhere; a weak one (bare JSON, a bracketed list) only where its calls run to
                the end of the message and no marked call was found
    holding     text goes out as soon as it can no longer be part of a mark or of a call. Calls go out whole, and wait
                while it may turn out that they were only thought

Linear in the text: what was searched for in vain is not searched for again, and no weak form is tried inside a failed one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sigwire.adapters.text_tools.cursor import Cursor, Wait, now
from sigwire.adapters.text_tools.grammar import END_TOKENS, Block, Grammar, Offer, broken
from sigwire.adapters.text_tools.outbox import Outbox
from sigwire.adapters.text_tools.skim import JSON, passing
from sigwire.core.events import TextDelta

__all__ = ["Scanner", "Scanning", "Thinking"]

Thinking: TypeAlias = Literal["unknown", "open", "over"]

_THOUGHTS: Mapping[str, str] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
}
_CLOSERS = frozenset(_THOUGHTS.values())
_WRAPPERS = frozenset({"", "json", "xml", "text", "tool_call", "tool_code", "python"})
_MARKS = {"`": re.compile(r"`*"), "~": re.compile(r"~*")}
_FENCE_CHARACTERS = re.compile(r"[ \t\r`~]*")
_LINE_REST = re.compile(r"[^\n]*")
_TICKS = re.compile(r"`+")
_NO_TICKS = re.compile(r"[^`\n]*")
_END_LITERALS = tuple(END_TOKENS)
_END_FIRSTS = frozenset(token[0] for token in END_TOKENS)
_PATTERNS_KEPT = 64
_AFTER_CALLS = re.compile(r"[\s;]*")


class Scanner:
    """A table of grammars, compiled. Holds nothing of any text."""

    __slots__ = (
        "_patterns", "by_opener", "by_start", "closers", "firsts", "named", "own_firsts", "own_line", "prefixes", "stops",
        "token", "tokens", "width",
    )  # fmt: skip

    def __init__(self, grammars: tuple[Grammar, ...]) -> None:
        self.by_opener = _by_opener(grammar for grammar in grammars if not grammar.weak)
        self.own_line = tuple(o for g in grammars if g.own_line for o in (*g.openers, *g.stops))
        self.own_firsts = frozenset(literal[0] for literal in self.own_line)
        self.by_start = _by_opener(grammar for grammar in grammars if grammar.weak and grammar.openers)
        self.named = tuple(grammar for grammar in grammars if grammar.weak and not grammar.openers)
        self.stops = frozenset(stop for grammar in grammars for stop in grammar.stops)
        self.closers = frozenset(closer for grammar in grammars for closer in grammar.closers)
        openers = {opener for g in grammars if not (g.own_line or g.weak) for opener in g.openers}
        stops = {stop for g in grammars if not g.own_line for stop in g.stops}
        tokens = openers | stops | self.closers | _THOUGHTS.keys() | _CLOSERS | END_TOKENS
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

    def pattern(self, offer: Offer) -> re.Pattern[str]:
        """Everything that may begin something, where these tools are on offer."""
        found = self._patterns.get(offer.initials)
        if found is None:
            starts = {opener[0] for opener in (*self.own_line, *self.by_start)} | set("`~>")
            starts |= set(offer.initials if self.named else "")
            # No group around an alternative: it would keep the search from skipping to where one may begin.
            line = rf"\n[ \t]*(?=[{re.escape(''.join(sorted(starts)))}])"
            found = re.compile(rf"{line}|`|{self.token.pattern}")
            if len(self._patterns) >= _PATTERNS_KEPT:
                self._patterns.clear()
            self._patterns[offer.initials] = found
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


@dataclass(slots=True)
class _Try:
    """Blocks that were read on trial, with the grammar of each."""

    found: list[tuple[Grammar, Block]]
    notes: tuple[str, ...] = ()


class Scanning:
    """One text being scanned. ``program`` is the scan: it waits at every ``None``; what comes out is in ``out``."""

    __slots__ = (
        "after_call", "closers", "cursor", "done", "fences", "offer", "out", "pattern", "said", "scanner", "strong", "thinking",
        "weak_from", "weak_off",
    )  # fmt: skip

    def __init__(
        self, scanner: Scanner, offer: Offer, *, thinking: Thinking = "unknown", whole_message: bool = False
    ) -> None:
        self.scanner, self.offer = scanner, offer
        self.pattern = scanner.pattern(offer)
        self.cursor = Cursor()
        self.out = Outbox(whole_message=whole_message)
        self.thinking = thinking
        self.closers: frozenset[str] = _CLOSERS
        self.said = 0  # up to here the text has been let out or taken as a call
        self.strong = self.done = self.weak_off = self.after_call = False
        self.weak_from = 0
        self.fences: dict[str, int] = {}  # by mark: the shortest fence that is known never to close

    # --- the scan --------------------------------------------------------------------------------------

    def program(self) -> Wait[None]:
        """The whole scan."""
        cursor = self.cursor
        yield from self._line_start()
        while not self.done:
            match = self.pattern.search(cursor.text, cursor.position)
            if match is not None:
                cursor.position = match.start()
                self._say()
                yield from self._deal(match)
                continue
            cursor.position = len(cursor.text) if cursor.closed else self._tail()
            self._say()
            if cursor.closed:
                break
            self._compact()
            yield None
        while not cursor.closed:  # what follows invented results is worthless
            cursor.text, cursor.position, self.said = "", 0, 0
            yield None
        self.out.finish()

    def _say(self) -> None:
        """Let out the text up to the cursor."""
        if self.cursor.position > self.said:
            text = self.cursor.text[self.said : self.cursor.position]
            self.after_call = self.after_call and text.isspace()
            self.out.say(TextDelta(text), thought=self.thinking == "open")
        self.said = max(self.said, self.cursor.position)

    def _tail(self) -> int:
        """From where on the text so far may still become a mark."""
        text, position = self.cursor.text, self.cursor.position
        start = max(position, len(text) - self.scanner.width)
        for index in range(start, len(text)):
            if text[index] in self.scanner.firsts and text[index:] in self.scanner.prefixes:
                return self._line_tail(index)
        return self._line_tail(len(text))

    def _line_tail(self, end: int) -> int:
        text = self.cursor.text
        blank = len(text.rstrip(" \t"))
        at_line = blank > self.cursor.position and text[blank - 1] == "\n"
        return min(end, blank - 1) if at_line else end

    @property
    def held(self) -> int:
        """How much text has come and was not let out."""
        return len(self.cursor.text) - self.said

    def _compact(self) -> None:
        """Forget the text that is done with, all but the character before. No one may hold a position over this."""
        cut = self.said - 1
        if cut > 4096 and cut > len(self.cursor.text) // 2:
            self.cursor.text = self.cursor.text[cut:]
            self.cursor.position -= cut
            self.said -= cut
            self.weak_from -= cut

    def _deal(self, match: re.Match[str]) -> Wait[None]:
        """Deal with the mark at the cursor."""
        match match[0][0]:
            case "\n":
                self.cursor.position += 1
                yield from self._line_start()
            case "`":
                yield from self._code()
            case _:
                yield from self._token(match[0])

    def _token(self, token: str) -> Wait[None]:
        cursor = self.cursor
        start = cursor.position
        if start and cursor.text[start - 1] == "\\":  # values are guarded so
            cursor.position += len(token)
        elif token in _THOUGHTS and self.thinking != "open":
            self._begin_thinking(token)
        elif token in self.closers and self.thinking != "over":
            yield from self._end_thinking(token)
        elif token in self.scanner.stops and self.out.has_calls:
            self._stop()
        elif self.after_call and token in self.scanner.closers:
            cursor.position = self.said = start + len(token)
        elif not (token in self.scanner.by_opener and (yield from self._open(token))):
            yield from self._end_token(token, start)

    def _stop(self) -> None:
        self.done = True
        self.out.note("what the model wrote in the tool's place was cut off")

    def _end_token(self, token: str, start: int) -> Wait[None]:
        """Leave out a token that ends the turn; anywhere else it is text."""
        cursor = self.cursor
        if token in END_TOKENS and self.thinking != "open":
            cursor.position = start + len(token)
            if (yield from self._at_end(cursor)):
                self.said = cursor.position
            return
        cursor.position = start + 1

    def _at_end(self, cursor: Cursor) -> Wait[bool]:
        """Whether nothing follows but space and tokens that end the turn."""
        while True:
            before = cursor.position
            yield from cursor.run(_AFTER_CALLS)
            here = yield from cursor.peek()
            if here not in _END_FIRSTS or (yield from cursor.takes_any(_END_LITERALS)) is None:
                cursor.position = before if here else cursor.position
                return not here

    # --- calls -----------------------------------------------------------------------------------------

    def _open(self, opener: str) -> Wait[bool]:
        """Ask the grammars of an opener; whether one of them read a block here."""
        cursor = self.cursor
        start = cursor.position
        for grammar in self.scanner.by_opener[opener]:
            cursor.position = start + len(opener)
            block = yield from self._spoken(grammar.read(cursor, opener, self.offer))
            if block is not None:
                self._take(grammar, block, start)
                return True
        cursor.position = start
        return False

    def _spoken(self, reading: Wait[Block | None]) -> Wait[Block | None]:
        """Let out what a reader says on its way."""
        while True:
            try:
                said = next(reading)
            except StopIteration as end:
                block: Block | None = end.value
                return block
            if said is None:
                yield None
            else:
                self.said = self.cursor.position
                self.out.say(said)
                self._compact()

    def _take(self, grammar: Grammar, block: Block, start: int, notes: tuple[str, ...] = ()) -> None:
        """Take a block out of the text."""
        cursor = self.cursor
        raw = cursor.text[max(start, self.said) : cursor.position]
        if self.thinking == "open" and any(call.error for call in block.calls):
            # What is only thought about need not be whole: the thought may end inside.
            closer = next((raw.find(closer) for closer in self.closers if closer in raw), -1)
            if closer >= 0:
                cursor.position = max(start, self.said) + closer
                return
        self.said = cursor.position
        if block.calls:
            self.after_call = True
            self.strong = self.strong or not grammar.weak
            block = _strictly(block) if self.offer.strict else block
            wait = self.thinking != "over"
            self.out.call(raw, block.calls, (*block.notes, *notes), grammar.name, wait=wait)

    # --- reasoning -------------------------------------------------------------------------------------

    def _begin_thinking(self, opener: str) -> None:
        if self.thinking == "unknown":
            self.out.release()  # it begins here, so what came before was no thought
        self.thinking, self.closers = "open", frozenset({_THOUGHTS[opener]})
        self.cursor.position += len(opener)

    def _end_thinking(self, closer: str) -> Wait[None]:
        """All that was held was thought, not said."""
        self.out.withdraw(everything=self.thinking == "unknown")
        self.thinking = "open"
        self.cursor.position += len(closer)
        self._say()
        self.thinking, self.strong = "over", self.out.has_calls
        after = self.cursor.position
        yield from self.cursor.space()
        start = self.cursor.position
        yield from self._weak((yield from self.cursor.peek()))
        self.cursor.position = after if self.cursor.position == start else self.cursor.position

    # --- lines -----------------------------------------------------------------------------------------

    def _line_start(self) -> Wait[None]:
        """What counts only at the start of a line; the cursor stands there, or goes past what was dealt with."""
        cursor = self.cursor
        start = cursor.position
        own = yield from self._own_line()
        if own is not None and own in self.scanner.stops and self.out.has_calls:
            if (yield from self._alone(own)):
                self._stop()
                return
        elif own in self.scanner.by_opener and (yield from self._open(own)):
            return
        if self.thinking == "open":
            return
        yield from cursor.blanks()
        here = yield from cursor.peek()
        if here == ">":
            yield from self._quote()
        elif here in _MARKS and here and cursor.position - start <= 3:
            yield from self._fence()
        elif here:
            yield from self._weak(here)

    def _quote(self) -> Wait[None]:
        """A quoted line, unless it is ``>>>`` and a call."""
        cursor = self.cursor
        start = cursor.position
        if (yield from cursor.peek(3)) == ">>>":
            yield from self._weak(">")
        whole = cursor.position > start
        while not whole:
            cursor.position, whole = self._line_end()
            self._say()
            if not whole:
                self._compact()
                yield None

    def _own_line(self) -> Wait[str | None]:
        """The opener or stop that begins this line, without passing it."""
        start = self.cursor.position
        if (yield from self.cursor.peek()) not in self.scanner.own_firsts:
            return None
        found = yield from self.cursor.takes_any(self.scanner.own_line)
        self.cursor.position = start
        return found

    def _alone(self, literal: str) -> Wait[bool]:
        """Whether a literal stands alone on this line; nothing is passed."""
        cursor = self.cursor
        start = cursor.position
        yield from cursor.takes(literal)
        rest = yield from cursor.run(_LINE_REST)
        cursor.position = start
        return not rest.strip()

    def _weak(self, here: str) -> Wait[None]:
        """Calls without a marker, if they run to the end; and an answer that is JSON, whose strings are quotation."""
        cursor = self.cursor
        start = cursor.position
        if self._reads_weak(start) and self._may_begin(here):
            ending = yield from self._ending()
            if self._settle(ending, start):
                return
        if here == "{" and not self.out.has_spoken and not cursor.text[self.said : start].strip():
            yield from self._answer()

    def _answer(self) -> Wait[None]:
        """Pass an answer that is a JSON object, letting it out as it comes."""
        cursor = self.cursor
        start = cursor.position
        cursor.position += 1
        yield from cursor.space()
        if (yield from cursor.peek()) != '"':
            cursor.position = start
            return
        cursor.position = start
        steps = passing(cursor, JSON)
        while next(steps, self) is None:
            self._say()
            self._compact()
            yield None

    def _reads_weak(self, start: int) -> bool:
        """Whether weak forms count here: after no marked call, and not inside what failed to be one."""
        return not self.strong and not self.weak_off and start >= self.weak_from

    def _may_begin(self, here: str) -> bool:
        return here in self.scanner.by_start or (bool(self.scanner.named) and here in self.offer.initials)

    def _settle(self, ending: _Try | None, start: int) -> bool:
        """Take calls that were read on trial, or go back."""
        cursor = self.cursor
        if ending is None or not ending.found:
            self.weak_from = max(self.weak_from, cursor.position)
            self.weak_off = self.weak_off or (cursor.closed and cursor.position >= len(cursor.text))
            cursor.position = start
            return False
        grammar, first = ending.found[0]
        calls = tuple(call for _, block in ending.found for call in block.calls)
        notes = tuple(note for _, block in ending.found for note in block.notes)
        self._take(grammar, replace(first, calls=calls, notes=tuple(dict.fromkeys(notes))), start, ending.notes)
        return True

    def _ending(self) -> Wait[_Try | None]:
        """Read weak calls and fences with nothing but calls, up to the end of the message."""
        cursor, ending = self.cursor, _Try([])
        while True:
            if (yield from self._at_end(cursor)):
                return ending
            yield from cursor.run(_AFTER_CALLS)
            here = yield from cursor.peek()
            if here in _MARKS:
                fenced = yield from self._fenced_calls()
                if fenced is None:
                    return None
                ending.found += fenced.found
                ending.notes = fenced.notes
                continue
            one = yield from self._weak_block(cursor)
            if one is None:
                return None
            ending.found.append(one)
            if not one[0].weak:
                return ending

    def _weak_block(self, cursor: Cursor) -> Wait[tuple[Grammar, Block] | None]:
        """One block without a marker, or with the rest of one."""
        start, furthest = cursor.position, cursor.position
        here = yield from cursor.peek()
        for grammar in (*self.scanner.by_start.get(here, ()), *self.scanner.named):
            block = yield from grammar.read(cursor, here, self.offer)
            if block is not None:
                return (replace(grammar, weak=False) if block.sure else grammar), block
            furthest, cursor.position = max(furthest, cursor.position), start
        cursor.position = furthest
        return None

    # --- quotation -------------------------------------------------------------------------------------

    def _code(self) -> Wait[None]:
        """Pass inline code. Its text goes out at once; a mark inside waits until it is known whether the code closes."""
        cursor = self.cursor
        ticks = yield from cursor.run(_MARKS["`"])
        if self.thinking == "open":
            return
        while True:
            end, whole = self._line_end()
            match = _TICKS.search(cursor.text, cursor.position, end)
            token = self.scanner.token.search(cursor.text, cursor.position, match.start() if match else end)
            if token is not None:
                cursor.position = token.start()
                self._say()
                yield from self._quoted_mark(ticks)
                return
            if match is not None:
                cursor.position = match.start()
                if (yield from cursor.run(_MARKS["`"])) == ticks:
                    return
                continue
            cursor.position = end if whole else max(cursor.position, self._tail())
            self._say()
            if whole:
                return
            yield None

    def _line_end(self) -> tuple[int, bool]:
        """Where this line ends, and whether it ends there for sure."""
        cursor = self.cursor
        end = cursor.text.find("\n", cursor.position)
        return (end, True) if end >= 0 else (len(cursor.text), cursor.closed)

    def _quoted_mark(self, ticks: str) -> Wait[None]:
        """Pass the rest of inline code from a mark in it, if the code closes on this line; else the mark stands."""
        cursor = self.cursor
        start = cursor.position
        while True:
            yield from cursor.run(_NO_TICKS)
            here = yield from cursor.peek()
            if here != "`":
                cursor.position = start
                return
            if (yield from cursor.run(_MARKS["`"])) == ticks:
                return

    def _fence(self) -> Wait[None]:
        """A code fence: calls, if it ends the message and holds nothing else, or quotation."""
        cursor = self.cursor
        start = cursor.position
        marks, label = yield from self._fence_opening()
        if not marks:
            if cursor.text[start] == "`":
                cursor.position = start
                yield from self._code()
            return
        content = cursor.position
        if self._reads_weak(start) and self._wraps(marks, label):
            cursor.position = start
            ending = yield from self._ending()
            if self._settle(ending, start):
                return
            cursor.position = content
        yield from self._quoted(marks)

    def _fence_opening(self) -> Wait[tuple[str, str]]:
        """Pass a fence's first line; its marks and label. No marks where this is no fence: then only they are passed."""
        cursor = self.cursor
        here = yield from cursor.peek()
        marks = yield from cursor.run(_MARKS[here])
        after = cursor.position
        if 3 <= len(marks) < self.fences.get(here, len(marks) + 1):
            label = yield from cursor.run(_LINE_REST)
            if not (here == "`" and here in label) and (yield from cursor.takes("\n")):
                return marks, label.strip().lower()
        cursor.position = after
        return "", ""

    def _wraps(self, marks: str, label: str) -> bool:
        """Whether a fence of this kind may hold calls."""
        if marks[0] == "~":
            return marks == "~~~" and label == "json" and not self.offer.strict
        return label in _WRAPPERS

    def _quoted(self, marks: str) -> Wait[None]:
        """Pass a fence. Its text goes out at once, but waits from a mark on until it is known that the fence closes."""
        cursor, waits = self.cursor, False
        self._say()
        while not (yield from self._closes(marks)):
            waits = waits or (yield from self._own_line()) is not None
            waits = yield from self._pass_line(waits)
            if not (yield from cursor.takes("\n")):
                # It never closes, so it is no fence, and what it seemed to hold is looked at.
                self.fences[marks[0]] = min(len(marks), self.fences.get(marks[0], len(marks)))
                cursor.position = self.said
                yield from self._line_start()
                return

    def _pass_line(self, waits: bool) -> Wait[bool]:
        """Pass the rest of a line; whether text now waits."""
        cursor = self.cursor
        while True:
            end, whole = self._line_end()
            if not waits and (match := self.scanner.token.search(cursor.text, cursor.position, end)):
                cursor.position, waits = match.start(), True
                self._say()
            cursor.position = end if waits or whole else max(cursor.position, self._tail())
            if not waits:
                self._say()
                self._compact()
            if whole:
                return waits
            yield None

    def _closes(self, marks: str) -> Wait[bool]:
        """Whether this line closes the fence; it is passed if so."""
        cursor = self.cursor
        start = cursor.position
        line = yield from cursor.run(_FENCE_CHARACTERS)
        here = yield from cursor.peek()
        if _is_closing(line, marks) and (here in ("", "\n") or (yield from self._ends_turn())):
            return True
        cursor.position = start
        return False

    def _ends_turn(self) -> Wait[bool]:
        """Whether a token that ends the turn stands here; nothing is passed."""
        start = self.cursor.position
        found = yield from self.cursor.takes_any(_END_LITERALS)
        self.cursor.position = start
        return found is not None

    def _fenced_calls(self) -> Wait[_Try | None]:
        """Pass a fence whose content is nothing but calls."""
        cursor = self.cursor
        marks, label = yield from self._fence_opening()
        if not marks or not self._wraps(marks, label):
            return None
        start = end = cursor.position
        if not (yield from self._begins_call(cursor)):
            return None
        cursor.position = start
        while not (yield from self._closes(marks)):
            yield from cursor.run(_LINE_REST)
            end = cursor.position
            if not (yield from cursor.takes("\n")):
                break
        found = self._only_calls(cursor.text[start:end])
        if not found or (label == "python" and any(grammar.name != "pythonic" for grammar, _ in found)):
            return None
        what = "calls in a code fence" if marks[0] == "`" else f"calls under the label {marks}{label}"
        return _Try(found, (what,))

    def _begins_call(self, cursor: Cursor) -> Wait[bool]:
        """Whether the first character of a fence's content can begin a call."""
        yield from cursor.space()
        here = yield from cursor.peek()
        return here in self.scanner.firsts or here in "~`" or self._may_begin(here)

    def _only_calls(self, text: str) -> list[tuple[Grammar, Block]] | None:
        """The calls of a text that holds nothing else."""
        inner = Cursor(text, closed=True)
        found: list[tuple[Grammar, Block]] = []
        openers = (*self.scanner.by_opener, *self.scanner.own_line)
        while not now(self._at_end(inner)):
            now(inner.run(_AFTER_CALLS))
            start = inner.position
            opener = now(inner.takes_any(openers))
            one = self._block_at(inner, opener) if opener else None
            if one is None:
                inner.position = start
                one = now(self._weak_block(inner))
            if one is None or not one[1].calls:
                return None
            found.append(one)
        return found

    def _block_at(self, inner: Cursor, opener: str) -> tuple[Grammar, Block] | None:
        start = inner.position
        for grammar in self.scanner.by_opener.get(opener, ()):
            inner.position = start
            block = now(grammar.read(inner, opener, self.offer))
            if block is not None:
                return grammar, block
        return None


def _is_closing(line: str, marks: str) -> bool:
    body = line.rstrip(" \t\r")
    indent = len(body) - len(body.lstrip(" "))
    return indent <= 3 and len(body) - indent >= len(marks) and not body[indent:].strip(marks[0])


def _strictly(block: Block) -> Block:
    """The same block where nothing is forgiven."""
    if not block.notes:
        return block
    what = f"The call needs a repair ({'; '.join(block.notes)})"
    calls = tuple(
        call if call.error else broken(call.arguments_text, what, call.name, id=call.id) for call in block.calls
    )
    return replace(block, calls=calls)
