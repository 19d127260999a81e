"""Find tool calls in a model's text, whole or in chunks: one scan from left to right with a table of grammars.

The scan owns position, quotation (``quotation``) and reasoning; a ``Grammar`` owns one way of writing calls.

    quotation   inline code, block quotes, code fences, quoted words, the values of outputs and the results of tools are
                not read. Exceptions: fences at the end of the message that hold nothing but calls are wrapped calls;
                a block of the taught form at the end of the message counts in a section that does not end
    reasoning   a closed thinking block hides its content; an unclosed one hides nothing
    strength    a form with a marker is read anywhere; a weak one (bare JSON, a bracketed list) only if its calls reach the
                end of the message and no marked call was found
    output      text is emitted once it cannot be part of markup or of a call. Calls are emitted whole, and wait while they
                may turn out to be part of a thought

Linear in the text: no failed search is repeated, and no weak form is tried inside a failed one. ``emitted`` is the end of the
text that was emitted or dropped. ``_compact`` may forget the text before it, so no method keeps a position across a wait there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sigwire.adapters.text_tools.cursor import LINE_REST, Cursor, Wait, run_complete
from sigwire.adapters.text_tools.grammar import END_TOKENS, UNCLEAR, CallBlock, Grammar, ToolCatalog, broken_call
from sigwire.adapters.text_tools.scan.brackets import JSON, skip_value
from sigwire.adapters.text_tools.scan.compiled import CompiledGrammars
from sigwire.adapters.text_tools.scan.marks import CLOSERS, THOUGHTS
from sigwire.adapters.text_tools.scan.output_buffer import CallsAlone, OutputBuffer, PendingCalls
from sigwire.adapters.text_tools.scan.quotation import MARKS, NO_TICKS, TICKS, LineQuotes, is_closing
from sigwire.core.events import TextDelta

__all__ = ["CallScanner", "ThinkingState"]

ThinkingState: TypeAlias = Literal["unknown", "open", "over"]

_WRAPPERS = frozenset({"", "json", "xml", "text", "tool_call", "tool_code", "python"})
_AFTER_CALLS = re.compile(r"[\s;]*")
_END_LITERALS = tuple(END_TOKENS)
_END_FIRSTS = frozenset(token[0] for token in END_TOKENS)
_SECTION: tuple[str, ...] = ()  # a section has no closing mark; the next header ends it
_FENCE_CHARACTERS = re.compile(r"[ \t\r`~]*")
_KEPT = 4096
_RESULT_LABELS = ("tool_output", "tool_result")


@dataclass(slots=True)
class _Trial:
    found: list[tuple[Grammar, CallBlock]]
    notes: tuple[str, ...] = ()


class CallScanner:
    """One scan of one text. ``steps`` yields ``None`` when it needs more text; the events are in ``output``."""

    def __init__(
        self,
        grammars: CompiledGrammars,
        catalog: ToolCatalog,
        *,
        thinking: ThinkingState = "unknown",
        whole_message: CallsAlone = False,
    ) -> None:
        self.grammars, self.catalog = grammars, catalog
        self.pattern = grammars.pattern(catalog)
        self.cursor = Cursor()
        self.output = OutputBuffer(whole_message)
        self.thinking: ThinkingState = thinking
        self.emitted = 0
        self.after_call = False  # only space followed the last call
        self.weak_from = 0  # no weak form is tried before this position
        self._quotes = LineQuotes()  # of the emitted text
        self._unclosed_fences: dict[str, int] = {}  # mark -> length of the shortest fence that never closes
        self._ends: tuple[str, ...] | None = None  # the marks that end the result or output that is being passed
        self._closers: frozenset[str] = CLOSERS
        self._no_outputs = tuple(name for name in (catalog.output, "completed", "end_of_answer") if name)
        self._has_marked_calls = self._weak_disabled = False

    def steps(self) -> Wait[None]:
        """Scan the text."""
        cursor = self.cursor
        yield from self._handle_line_start()
        while not self.output.is_stopped:
            match = self.pattern.search(cursor.text, cursor.position)
            if match is not None:
                cursor.position = match.start()
                self._emit()
                yield from self._handle_match(match)
                continue
            cursor.position = len(cursor.text) if cursor.closed else self._safe_end()
            self._emit()
            if cursor.closed:
                break
            self._compact()
            yield None
        while not cursor.closed:  # drop the text after invented results
            cursor.text, cursor.position, self.emitted = "", 0, 0
            yield None
        self.output.finish(thinking=self.thinking, truncated=cursor.is_truncated)

    # --- text on its way to the output

    def _emit(self) -> None:
        if self.cursor.position > self.emitted:
            text = self.cursor.text[self.emitted : self.cursor.position]
            self.after_call = self.after_call and text.isspace()
            self._quotes.read(text)
            self.output.add_text(TextDelta(text), thought=self.thinking == "open")
        self.emitted = max(self.emitted, self.cursor.position)

    def _safe_end(self) -> int:
        """Return the position from which the text up to here can still become markup."""
        text, position = self.cursor.text, self.cursor.position
        start = max(position, len(text) - self.grammars.width)
        for index in range(start, len(text)):
            if text[index] in self.grammars.first_characters and text[index:] in self.grammars.prefixes:
                return self._before_line_break(index)
        return self._before_line_break(len(text))

    def _before_line_break(self, end: int) -> int:
        text = self.cursor.text
        blank = len(text.rstrip(" \t"))
        at_line = blank > self.cursor.position and text[blank - 1] == "\n"
        return min(end, blank - 1) if at_line else end

    @property
    def held_length(self) -> int:
        """The number of characters that arrived and were not emitted."""
        return len(self.cursor.text) - self.emitted

    def _compact(self) -> None:
        """Drop the text that was emitted, except for the last character of it."""
        cut = self.emitted - 1
        if cut > _KEPT and cut > len(self.cursor.text) // 2:
            self.cursor.text = self.cursor.text[cut:]
            self.cursor.position -= cut
            self.emitted -= cut
            self.weak_from -= cut

    # --- markers

    def _handle_match(self, match: re.Match[str]) -> Wait[None]:
        match match[0][0]:
            case "\n":
                self.cursor.position += 1
                yield from self._handle_line_start()
            case "`":
                yield from self._skip_code()
            case _:
                yield from self._handle_token(match[0])

    def _handle_token(self, token: str) -> Wait[None]:
        cursor = self.cursor
        start = cursor.position
        if start and cursor.text[start - 1] == "\\":  # an escaped marker inside a value
            cursor.position += len(token)
        elif self._ends is not None and token not in (*self._ends, *(self._closers if self.thinking != "over" else ())):
            cursor.position += 1
        else:
            self._ends = None
            if not (yield from self._skip_end_token(token)) and not (yield from self._handle_marker(token, start)):
                cursor.position = start + 1

    def _handle_marker(self, token: str, start: int) -> Wait[bool]:
        """Handle a token of a thinking block or a grammar. Return True if the token is one."""
        if token in THOUGHTS and self.thinking != "open":
            self._start_thinking(token)
        elif token in self._closers and self.thinking != "over":
            yield from self._end_thinking(token)
        elif token in self.grammars.quotations:
            self._start_quotation(token)
        elif self.after_call and token in self.grammars.closers:
            self._emit()
            self.output.add_marker(token)
            self.cursor.position = self.emitted = start + len(token)
        else:
            return (yield from self._read_calls_at(token, start))
        return True

    def _read_calls_at(self, opener: str, start: int) -> Wait[bool]:
        if self._quotes.is_open or (start and self.cursor.text[start - 1] in "'‘"):
            return False
        if opener not in self.grammars.by_start:
            return opener in self.grammars.by_opener and (yield from self._read_marked_block(opener))
        yield from self._read_weak_calls(opener[0])
        return self.cursor.position > start

    def _start_quotation(self, opener: str) -> None:
        """Pass over an output, or a tool's result that the model repeats. After a call, the result is invented."""
        if opener in self.grammars.echoes and self.output.has_calls:
            self.output.stop(wait=self.thinking != "over")
        self.output.expect_last()
        self._ends = self.grammars.quotations[opener]
        self.cursor.position += len(opener)

    def _skip_end_token(self, token: str) -> Wait[bool]:
        """Drop tokens that end the turn, or pass them as text. Return False if the token has another meaning here."""
        cursor = self.cursor
        start = cursor.position
        if token not in END_TOKENS or self.thinking == "open":
            return False
        cursor.position += len(token)
        if (yield from self._is_at_end(cursor)):
            self.emitted = cursor.position
        elif token in self.grammars.quotations:
            cursor.position = start
            return False
        return True

    def _is_at_end(self, cursor: Cursor) -> Wait[bool]:
        """Return True if only space and tokens that end the turn follow."""
        while True:
            before = cursor.position
            yield from cursor.run(_AFTER_CALLS)
            here = yield from cursor.peek()
            if here not in _END_FIRSTS or (yield from cursor.accept_any(_END_LITERALS)) is None:
                cursor.position = before if here else cursor.position
                return not here

    def _read_marked_block(self, opener: str) -> Wait[bool]:
        """Ask the grammars of an opener. Return True if one of them read a block here."""
        cursor = self.cursor
        start = cursor.position
        for grammar in self.grammars.by_opener[opener]:
            if self._ends is not None and not grammar.other_text:
                continue
            cursor.position = start + len(opener)
            block = yield from self._run_reader(grammar.read(cursor, opener, self.catalog))
            if block is not None:
                self._add_block(grammar, block, start)
                return True
        cursor.position = start
        return False

    def _run_reader(self, reading: Wait[CallBlock | None]) -> Wait[CallBlock | None]:
        while True:
            try:
                event = next(reading)
            except StopIteration as end:
                block: CallBlock | None = end.value
                return block
            if event is None:
                yield None
            else:
                self.emitted = self.cursor.position
                self.output.add_text(event)
                self._compact()

    def _add_block(self, grammar: Grammar, block: CallBlock, start: int, notes: tuple[str, ...] = ()) -> None:
        cursor = self.cursor
        end, cursor.position = cursor.position, max(start, self.emitted)
        self._emit()  # the line break before an opener of a line
        start, cursor.position = cursor.position, end
        raw = cursor.text[start:end]
        if self.thinking != "over" and (thought := self._thought_in(block, raw)) >= 0:
            cursor.position = start + thought
            return
        self.emitted = cursor.position
        if not block.calls:
            self.output.add_marker(raw)
        else:
            block = _reject_repairs(block) if self.catalog.strict else block
            found = PendingCalls(raw, block.calls, (*block.notes, *notes), grammar.name, grammar.other_text)
            self.after_call = self.output.add_calls(found, wait=self.thinking != "over")
            self._has_marked_calls |= self.after_call and not grammar.weak

    def _thought_in(self, block: CallBlock, raw: str) -> int:
        """Return the end of a thought in an incomplete call, or -1. A value without a certain end may hold a closing tag."""
        errors = [call.error.message for call in block.calls if call.error]
        if not errors or (self.thinking == "unknown" and any(UNCLEAR in message for message in errors)):
            return -1
        return next((raw.find(closer) for closer in self._closers if closer in raw), -1)

    def _start_thinking(self, opener: str) -> None:
        if self.thinking == "unknown":
            self.output.release()  # the block starts here, so the text before it was no thought
        self.output.start_thought()
        self.thinking, self._closers = "open", frozenset({THOUGHTS[opener]})
        self.cursor.position += len(opener)

    def _end_thinking(self, closer: str) -> Wait[None]:
        self.output.withdraw()
        self.thinking = "open"
        self.cursor.position += len(closer)
        self._emit()
        self.thinking, self._has_marked_calls = "over", self.output.has_calls
        self._quotes.close()
        after = self.cursor.position
        yield from self.cursor.skip_space()
        start = self.cursor.position
        yield from self._read_weak_calls((yield from self.cursor.peek()))
        self.cursor.position = after if self.cursor.position == start else self.cursor.position

    # --- starts of lines

    def _handle_line_start(self) -> Wait[None]:
        """Read what counts only at the start of a line. The cursor stays there or passes what was read."""
        cursor = self.cursor
        start = cursor.position
        if self._ends or (yield from self._handle_line_opener()) or self.thinking == "open":
            return
        yield from cursor.skip_blanks()
        here = yield from cursor.peek()
        if (yield from self._is_output_next(here)):
            return
        if here == ">":
            yield from self._skip_quote()
        elif here in MARKS and here and cursor.position - start <= 3:
            yield from self._handle_fence()
        elif here:
            yield from self._read_weak_calls(here)

    def _handle_line_opener(self) -> Wait[bool]:
        """Handle an opener or stop that counts at the start of a line only. Return True if one is here."""
        opener = yield from self._peek_line_opener()
        if opener is None:
            return False
        if opener not in self.grammars.stops or not self.output.has_calls:
            return opener in self.grammars.by_opener and (yield from self._read_marked_block(opener))
        if (yield from self._is_alone(opener)):
            self.output.stop(wait=self.thinking != "over")
        return self.output.is_stopped

    def _is_output_next(self, here: str) -> Wait[bool]:
        """Pass the start of a section's header. Return True if one is here, or this line is in the section of an output."""
        cursor = self.cursor
        if here != "[" or (yield from cursor.peek(2)) != "[[":
            return self._ends is not None
        start = cursor.position
        cursor.position += 2
        yield from cursor.skip_blanks()
        if not (yield from cursor.accept("##")):
            cursor.position = start
            return self._ends is not None
        yield from cursor.skip_blanks()
        # No part of the name of an output is held.
        is_output = (yield from cursor.accept_any(self._no_outputs)) is None
        self._ends = _SECTION if is_output else None
        if is_output:
            self.output.expect_last()
        return True

    def _skip_quote(self) -> Wait[None]:
        """Pass a quoted line, unless it is ``>>>`` and a call."""
        cursor = self.cursor
        start = cursor.position
        if (yield from cursor.peek(3)) == ">>>":
            yield from self._read_weak_calls(">")
        is_complete = cursor.position > start
        while not is_complete:
            cursor.position, is_complete = self._line_end()
            self._emit()
            if not is_complete:
                self._compact()
                yield None

    def _is_alone(self, literal: str) -> Wait[bool]:
        cursor = self.cursor
        start = cursor.position
        yield from cursor.accept(literal)
        rest = yield from cursor.run(LINE_REST)
        cursor.position = start
        return not rest.strip()

    # --- inline code and fences that are passed

    def _line_end(self) -> tuple[int, bool]:
        cursor = self.cursor
        end = cursor.text.find("\n", cursor.position)
        return (end, True) if end >= 0 else (len(cursor.text), cursor.closed)

    def _skip_code(self) -> Wait[None]:
        """Pass inline code and emit its text. A marker inside waits until the code closes or the line ends."""
        cursor = self.cursor
        ticks = yield from cursor.run(MARKS["`"])
        if self.thinking == "open" or self._ends is not None:
            return
        while True:
            end, is_complete = self._line_end()
            match = TICKS.search(cursor.text, cursor.position, end)
            token = self.grammars.token.search(cursor.text, cursor.position, match.start() if match else end)
            if token is not None:
                cursor.position = token.start()
                self._emit()
                yield from self._skip_quoted_marker(ticks)
                return
            if match is not None:
                cursor.position = match.start()
                if (yield from cursor.run(MARKS["`"])) == ticks:
                    return
                continue
            cursor.position = end if is_complete else max(cursor.position, self._safe_end())
            self._emit()
            if is_complete:
                return
            yield None

    def _skip_quoted_marker(self, ticks: str) -> Wait[None]:
        """Pass the rest of inline code, from a marker in it, if the code closes on this line."""
        cursor = self.cursor
        start = cursor.position
        while True:
            yield from cursor.run(NO_TICKS)
            here = yield from cursor.peek()
            if here != "`":
                cursor.position = start
                return
            if (yield from cursor.run(MARKS["`"])) == ticks:
                return

    def _read_fence_opening(self) -> Wait[tuple[str, str]]:
        """Pass a fence's first line and return its marks and label; without a fence pass the marks and return none."""
        cursor = self.cursor
        here = yield from cursor.peek()
        marks = yield from cursor.run(MARKS[here])
        after = cursor.position
        if 3 <= len(marks) < self._unclosed_fences.get(here, len(marks) + 1):
            label = yield from cursor.run(LINE_REST)
            if not (here == "`" and here in label) and (yield from cursor.accept("\n")):
                return marks, label.strip().lower()
        cursor.position = after
        return "", ""

    def _peek_line_opener(self) -> Wait[str | None]:
        """Return the opener or stop that starts this line. The cursor stays."""
        literals = self.grammars.own_by_first.get((yield from self.cursor.peek()))
        return (yield from self.cursor.peek_any(literals)) if literals is not None else None

    def _skip_fence(self, marks: str) -> Wait[bool]:
        """Pass a fence and emit its text; from a marker on the text waits. Return True if the fence closes."""
        # A fence that never closes is none: the cursor returns to the held text.
        cursor, holds = self.cursor, False
        self._emit()
        while not (yield from self._accept_fence_end(marks)):
            holds = holds or (yield from self._peek_line_opener()) is not None
            holds = yield from self._skip_line(holds)
            if not (yield from cursor.accept("\n")):
                self._unclosed_fences[marks[0]] = min(len(marks), self._unclosed_fences.get(marks[0], len(marks)))
                cursor.position = self.emitted
                return False
        return True

    def _skip_line(self, holds: bool) -> Wait[bool]:
        """Pass the rest of a line. Return True if text is held from now on."""
        cursor = self.cursor
        while True:
            end, is_complete = self._line_end()
            if not holds and (match := self.grammars.token.search(cursor.text, cursor.position, end)):
                cursor.position, holds = match.start(), True
                self._emit()
            cursor.position = end if holds or is_complete else max(cursor.position, self._safe_end())
            if not holds:
                self._emit()
                self._compact()
            if is_complete:
                return holds
            yield None

    def _accept_fence_end(self, marks: str) -> Wait[bool]:
        cursor = self.cursor
        start = cursor.position
        line = yield from cursor.run(_FENCE_CHARACTERS)
        here = yield from cursor.peek()
        if is_closing(line, marks) and (here in ("", "\n") or (yield from cursor.peek_any(_END_LITERALS))):
            return True
        cursor.position = start
        return False

    # --- calls without a marker

    def _read_weak_calls(self, here: str) -> Wait[None]:
        """Read calls without a marker at the end of the message. Pass a JSON answer, whose strings are quotation."""
        cursor = self.cursor
        start = cursor.position
        if self._can_read_weak(start) and self._can_start_call(here):
            trial = yield from self._run_trial()
            if self._accept_trial(trial, start):
                return
        if here == "{":
            yield from self._skip_answer()

    def _skip_answer(self) -> Wait[None]:
        cursor = self.cursor
        start = cursor.position
        cursor.position += 1
        yield from cursor.skip_space()
        is_object = (yield from cursor.peek()) in ('"', "'")
        cursor.position = start
        steps = skip_value(cursor, JSON)
        while is_object and next(steps, self) is None:
            self._emit()
            self._compact()
            yield None

    def _can_read_weak(self, start: int) -> bool:
        """Return True if weak forms count here: after no marked call, and not inside a failed form."""
        is_free = not self._has_marked_calls and not self._weak_disabled and start >= self.weak_from
        return is_free and self.output.can_count()

    def _can_start_call(self, here: str) -> bool:
        return here in self.grammars.by_start or (bool(self.grammars.by_tool_name) and here in self.catalog.initials)

    def _accept_trial(self, trial: _Trial | None, start: int) -> bool:
        """Add the calls of a trial, or return the cursor to the start."""
        cursor = self.cursor
        if trial is None or not trial.found:
            self.weak_from = max(self.weak_from, cursor.position)
            self._weak_disabled = self._weak_disabled or (cursor.closed and cursor.position >= len(cursor.text))
            cursor.position = start
            return False
        grammar, first = trial.found[0]
        calls = tuple(call for _, block in trial.found for call in block.calls)
        notes = tuple(note for _, block in trial.found for note in block.notes)
        self._add_block(grammar, replace(first, calls=calls, notes=tuple(dict.fromkeys(notes))), start, trial.notes)
        return True

    def _run_trial(self) -> Wait[_Trial | None]:
        """Read weak calls and fences with nothing but calls, up to the end of the message."""
        cursor, trial = self.cursor, _Trial([])
        while True:
            if (yield from self._is_at_end(cursor)):
                return trial
            yield from cursor.run(_AFTER_CALLS)
            here = yield from cursor.peek()
            if here in MARKS:
                fenced = yield from self._read_fenced_calls()
                if fenced is None:
                    return None
                trial.found += fenced.found
                trial.notes = fenced.notes
                continue
            one = yield from self._read_weak_block(cursor)
            if one is None:
                return None
            trial.found.append(one)
            if not one[0].weak:
                return trial

    def _read_weak_block(self, cursor: Cursor) -> Wait[tuple[Grammar, CallBlock] | None]:
        start, furthest = cursor.position, cursor.position
        here = yield from cursor.peek()
        for grammar in (*self.grammars.by_start.get(here, ()), *self.grammars.by_tool_name):
            block = yield from grammar.read(cursor, here, self.catalog)
            if block is not None:
                return (replace(grammar, weak=False) if block.is_marked else grammar), block
            furthest, cursor.position = max(furthest, cursor.position), start
        cursor.position = furthest
        return None

    def _handle_fence(self) -> Wait[None]:
        """Read a code fence: calls if it ends the message and holds nothing else, otherwise quotation."""
        cursor = self.cursor
        start = cursor.position
        marks, label = yield from self._read_fence_opening()
        if not marks:
            if cursor.text[start] == "`":
                cursor.position = start
                yield from self._skip_code()
            return
        content = cursor.position
        if self._can_read_weak(start) and self._can_wrap_calls(marks, label):
            cursor.position = start
            trial = yield from self._run_trial()
            if self._accept_trial(trial, start):
                return
            cursor.position = content
        if (yield from self._skip_fence(marks)):
            return
        if label in _RESULT_LABELS:
            cursor.position = len(cursor.text)
        else:
            yield from self._handle_line_start()

    def _can_wrap_calls(self, marks: str, label: str) -> bool:
        if marks[0] == "~":
            return marks == "~~~" and label == "json" and not self.catalog.strict
        return label in _WRAPPERS

    def _read_fenced_calls(self) -> Wait[_Trial | None]:
        cursor = self.cursor
        marks, label = yield from self._read_fence_opening()
        if not marks or not self._can_wrap_calls(marks, label):
            return None
        start = end = cursor.position
        if not (yield from self._is_call_start_next(cursor)):
            return None
        cursor.position = start
        while not (yield from self._accept_fence_end(marks)):
            yield from cursor.run(LINE_REST)
            end = cursor.position
            if not (yield from cursor.accept("\n")):
                break
        found = self._blocks_of(cursor.text[start:end])
        if not found or not self._can_count_in_fence(label, [grammar for grammar, _ in found]):
            return None
        what = "calls in a code fence" if marks[0] == "`" else f"calls under the label {marks}{label}"
        return _Trial(found, (what,))

    def _can_count_in_fence(self, label: str, grammars: list[Grammar]) -> bool:
        if label == "python" and any(grammar.name != "pythonic" for grammar in grammars):
            return False
        return self.output.can_count_in_fence(label, is_marked=not all(grammar.weak for grammar in grammars))

    def _is_call_start_next(self, cursor: Cursor) -> Wait[bool]:
        yield from cursor.skip_space()
        here = yield from cursor.peek()
        return here in self.grammars.first_characters or here in "~`" or self._can_start_call(here)

    def _blocks_of(self, text: str) -> list[tuple[Grammar, CallBlock]] | None:
        """Return the blocks of a text that holds nothing else; ``None`` if there is other text."""
        inner = Cursor(text, closed=True)
        found: list[tuple[Grammar, CallBlock]] = []
        openers = (*self.grammars.by_opener, *self.grammars.own_line)
        while not run_complete(self._is_at_end(inner)):
            run_complete(inner.run(_AFTER_CALLS))
            start = inner.position
            opener = run_complete(inner.accept_any(openers))
            if opener in self.grammars.own_line and text[text.rfind("\n", 0, start) + 1 : start].strip(" \t"):
                return None  # values are escaped at the start of a line
            one = self._marked_block_of(inner, opener) if opener else None
            if one is None:
                inner.position = start
                one = run_complete(self._read_weak_block(inner))
            if one is None or not one[1].calls:
                return None
            found.append(one)
        return found

    def _marked_block_of(self, inner: Cursor, opener: str) -> tuple[Grammar, CallBlock] | None:
        start = inner.position
        for grammar in self.grammars.by_opener.get(opener, ()):
            inner.position = start
            block = run_complete(grammar.read(inner, opener, self.catalog))
            if block is not None:
                return grammar, block
        return None


def _reject_repairs(block: CallBlock) -> CallBlock:
    """Return the block with errors instead of repaired calls."""
    if not block.notes:
        return block
    what = f"The call needs a repair ({'; '.join(block.notes)})"
    calls = tuple(
        call if call.error else broken_call(call.arguments_text, what, call.name, id=call.id) for call in block.calls
    )
    return replace(block, calls=calls)
