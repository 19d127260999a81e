"""Find tool calls in a model's text, fed whole or in pieces: one left-to-right scan, asking a table of grammars.

The scan owns position, quotation (``passage``) and reasoning; a ``Grammar`` owns one way of writing calls.

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
from dataclasses import dataclass, replace

from sigwire.adapters.text_tools.cursor import Cursor, Wait, run_complete
from sigwire.adapters.text_tools.grammar import END_TOKENS, CallBlock, Grammar, ToolCatalog, broken
from sigwire.adapters.text_tools.scan.brackets import JSON, skip_value
from sigwire.adapters.text_tools.scan.compiled import CLOSERS, THOUGHTS, CompiledGrammars
from sigwire.adapters.text_tools.scan.quotation import END_LITERALS, LINE_REST, MARKS, QuoteFilter, ThinkingParameters

__all__ = ["CallScanner"]

_WRAPPERS = frozenset({"", "json", "xml", "text", "tool_call", "tool_code", "python"})
_AFTER_CALLS = re.compile(r"[\s;]*")
_END_FIRSTS = frozenset(token[0] for token in END_TOKENS)


@dataclass(slots=True)
class _Trial:
    """Blocks that were read on trial, with the grammar of each."""

    found: list[tuple[Grammar, CallBlock]]
    notes: tuple[str, ...] = ()


class CallScanner(QuoteFilter):
    """One text being scanned. ``program`` is the scan: it waits at every ``None``; what comes out is in ``out``."""

    def __init__(
        self,
        scanner: CompiledGrammars,
        offer: ToolCatalog,
        *,
        thinking: ThinkingParameters = "unknown",
        whole_message: bool = False,
    ) -> None:
        super().__init__(scanner, offer, thinking, whole_message)
        self._closers: frozenset[str] = CLOSERS
        self._strong = self._done = self._weak_off = False

    # --- the scan ----------------------------------------------------------------------------------

    def program(self) -> Wait[None]:
        """The whole scan."""
        cursor = self.cursor
        yield from self._line_start()
        while not self._done:
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
        elif token in THOUGHTS and self.thinking != "open":
            self._begin_thinking(token)
        elif token in self._closers and self.thinking != "over":
            yield from self._end_thinking(token)
        elif token in self.scanner.stops and self.out.has_calls:
            self._stop()
        elif self.after_call and token in self.scanner.closers:
            self._say()
            self.out.drop(token)
            cursor.position = self.said = start + len(token)
        elif not (token in self.scanner.by_opener and (yield from self._open(token))):
            yield from self._end_token(token, start)

    def _stop(self) -> None:
        self._done = True
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
            if here not in _END_FIRSTS or (yield from cursor.takes_any(END_LITERALS)) is None:
                cursor.position = before if here else cursor.position
                return not here

    # --- calls -------------------------------------------------------------------------------------

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

    def _spoken(self, reading: Wait[CallBlock | None]) -> Wait[CallBlock | None]:
        """Let out what a reader says on its way."""
        while True:
            try:
                said = next(reading)
            except StopIteration as end:
                block: CallBlock | None = end.value
                return block
            if said is None:
                yield None
            else:
                self.said = self.cursor.position
                self.out.say(said)
                self._compact()

    def _take(self, grammar: Grammar, block: CallBlock, start: int, notes: tuple[str, ...] = ()) -> None:
        """Take a block out of the text."""
        cursor = self.cursor
        end, cursor.position = cursor.position, max(start, self.said)
        self._say()  # the line break before what counts at the start of a line only
        start, cursor.position = cursor.position, end
        raw = cursor.text[start:end]
        if self.thinking != "over" and any(call.error for call in block.calls):
            # What is only thought about need not be whole: the thought may end inside.
            closer = next((raw.find(closer) for closer in self._closers if closer in raw), -1)
            if closer >= 0:
                cursor.position = start + closer
                return
        self.said = cursor.position
        if not block.calls:
            self.out.drop(raw)
        else:
            self.after_call = True
            self._strong = self._strong or not grammar.weak
            block = _strictly(block) if self.offer.strict else block
            wait = self.thinking != "over"
            self.out.call(raw, block.calls, (*block.notes, *notes), grammar.name, wait=wait)

    # --- reasoning ---------------------------------------------------------------------------------

    def _begin_thinking(self, opener: str) -> None:
        if self.thinking == "unknown":
            self.out.release()  # it begins here, so what came before was no thought
        self.thinking, self._closers = "open", frozenset({THOUGHTS[opener]})
        self.cursor.position += len(opener)

    def _end_thinking(self, closer: str) -> Wait[None]:
        """All that was held was thought, not said."""
        self.out.withdraw(everything=self.thinking == "unknown")
        self.thinking = "open"
        self.cursor.position += len(closer)
        self._say()
        self.thinking, self._strong = "over", self.out.has_calls
        after = self.cursor.position
        yield from self.cursor.space()
        start = self.cursor.position
        yield from self._weak((yield from self.cursor.peek()))
        self.cursor.position = after if self.cursor.position == start else self.cursor.position

    # --- lines -------------------------------------------------------------------------------------

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
        elif here in MARKS and here and cursor.position - start <= 3:
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

    def _alone(self, literal: str) -> Wait[bool]:
        """Whether a literal stands alone on this line; nothing is passed."""
        cursor = self.cursor
        start = cursor.position
        yield from cursor.takes(literal)
        rest = yield from cursor.run(LINE_REST)
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
        steps = skip_value(cursor, JSON)
        while next(steps, self) is None:
            self._say()
            self._compact()
            yield None

    # --- without a marker --------------------------------------------------------------------------

    def _reads_weak(self, start: int) -> bool:
        """Whether weak forms count here: after no marked call, and not inside what failed to be one."""
        return not self._strong and not self._weak_off and start >= self.weak_from

    def _may_begin(self, here: str) -> bool:
        return here in self.scanner.by_start or (bool(self.scanner.named) and here in self.offer.initials)

    def _settle(self, ending: _Trial | None, start: int) -> bool:
        """Take calls that were read on trial, or go back."""
        cursor = self.cursor
        if ending is None or not ending.found:
            self.weak_from = max(self.weak_from, cursor.position)
            self._weak_off = self._weak_off or (cursor.closed and cursor.position >= len(cursor.text))
            cursor.position = start
            return False
        grammar, first = ending.found[0]
        calls = tuple(call for _, block in ending.found for call in block.calls)
        notes = tuple(note for _, block in ending.found for note in block.notes)
        self._take(grammar, replace(first, calls=calls, notes=tuple(dict.fromkeys(notes))), start, ending.notes)
        return True

    def _ending(self) -> Wait[_Trial | None]:
        """Read weak calls and fences with nothing but calls, up to the end of the message."""
        cursor, ending = self.cursor, _Trial([])
        while True:
            if (yield from self._at_end(cursor)):
                return ending
            yield from cursor.run(_AFTER_CALLS)
            here = yield from cursor.peek()
            if here in MARKS:
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

    def _weak_block(self, cursor: Cursor) -> Wait[tuple[Grammar, CallBlock] | None]:
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

    # --- fences ------------------------------------------------------------------------------------

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
        if not (yield from self._quoted(marks)):
            yield from self._line_start()

    def _wraps(self, marks: str, label: str) -> bool:
        """Whether a fence of this kind may hold calls."""
        if marks[0] == "~":
            return marks == "~~~" and label == "json" and not self.offer.strict
        return label in _WRAPPERS

    def _fenced_calls(self) -> Wait[_Trial | None]:
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
            yield from cursor.run(LINE_REST)
            end = cursor.position
            if not (yield from cursor.takes("\n")):
                break
        found = self._only_calls(cursor.text[start:end])
        if not found or (label == "python" and any(grammar.name != "pythonic" for grammar, _ in found)):
            return None
        what = "calls in a code fence" if marks[0] == "`" else f"calls under the label {marks}{label}"
        return _Trial(found, (what,))

    def _begins_call(self, cursor: Cursor) -> Wait[bool]:
        """Whether the first character of a fence's content can begin a call."""
        yield from cursor.space()
        here = yield from cursor.peek()
        return here in self.scanner.firsts or here in "~`" or self._may_begin(here)

    def _only_calls(self, text: str) -> list[tuple[Grammar, CallBlock]] | None:
        """The calls of a text that holds nothing else."""
        inner = Cursor(text, closed=True)
        found: list[tuple[Grammar, CallBlock]] = []
        openers = (*self.scanner.by_opener, *self.scanner.own_line)
        while not run_complete(self._at_end(inner)):
            run_complete(inner.run(_AFTER_CALLS))
            start = inner.position
            opener = run_complete(inner.takes_any(openers))
            if opener in self.scanner.own_line and text[text.rfind("\n", 0, start) + 1 : start].strip(" \t"):
                return None  # a value is guarded at the start of a line, and other blanks are none of it
            one = self._block_at(inner, opener) if opener else None
            if one is None:
                inner.position = start
                one = run_complete(self._weak_block(inner))
            if one is None or not one[1].calls:
                return None
            found.append(one)
        return found

    def _block_at(self, inner: Cursor, opener: str) -> tuple[Grammar, CallBlock] | None:
        start = inner.position
        for grammar in self.scanner.by_opener.get(opener, ()):
            inner.position = start
            block = run_complete(grammar.read(inner, opener, self.offer))
            if block is not None:
                return grammar, block
        return None


def _strictly(block: CallBlock) -> CallBlock:
    """The same block where nothing is forgiven."""
    if not block.notes:
        return block
    what = f"The call needs a repair ({'; '.join(block.notes)})"
    calls = tuple(
        call if call.error else broken(call.arguments_text, what, call.name, id=call.id) for call in block.calls
    )
    return replace(block, calls=calls)
