"""Output buffer of the scanner: emits text, reasoning and calls in order, and holds ambiguous ones back.

Calls wait while the model may still be thinking, or while text may follow that makes text of the calls. From the first waiting
call on, everything waits. ``release`` emits it as calls, ``withdraw`` as the source text.

Space next to calls is trimmed: none at the ends; between two texts the space before the calls, else the space after them.
A text without calls is emitted unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sigwire.core.events import ReasoningDelta, TextDelta, ToolCallEnd
from sigwire.core.tools.calls import ToolCall

__all__ = ["CallsAlone", "OutputBuffer", "PendingCalls", "TextEvent"]

TextEvent: TypeAlias = TextDelta | ReasoningDelta | ToolCallEnd
CallsAlone: TypeAlias = bool | Literal["families", "fences"]
"""Whether calls count only in a message without other text. "families": all forms but the taught one; "fences": only those in
code fences. With either, JSON in a ``json`` fence is a form, and any other fence is quotation: always with "families", beside
other text with "fences".
"""


@dataclass(frozen=True, slots=True)
class PendingCalls:
    """Calls and their source text. A marker that only ends a call has no calls. ``other_text`` is that of ``Grammar``."""

    raw: str
    calls: tuple[ToolCall, ...] = ()
    notes: tuple[str, ...] = ()
    dialect: str = ""
    other_text: str = ""


class OutputBuffer:
    """Collects events. ``is_stopped``: the text from here on is dropped, since the model invented a tool's result."""

    __slots__ = (
        "_after_calls",
        "_alone",
        "_before_thought",
        "_has_emitted",
        "_has_prose",
        "_held",
        "_held_calls",
        "_is_fragile",
        "_is_spoiled",
        "_rule",
        "_space",
        "_space_before_calls",
        "_stops",
        "call_count",
        "dialect",
        "events",
        "is_stopped",
        "notes",
    )

    def __init__(self, alone: CallsAlone) -> None:
        self.events: list[TextEvent] = []
        self.notes: list[str] = []
        self.dialect: str | None = None
        self.call_count = 0
        self.is_stopped = False
        self._rule = alone
        self._alone: CallsAlone | Literal["last"] = alone if alone != "fences" else False
        self._held: list[PendingCalls | TextDelta | ReasoningDelta | None] | None = None  # None: a result starts here
        self._held_calls = 0
        self._stops = False  # a result starts in the held items
        self._is_fragile = False  # text after the held calls makes text of them
        self._is_spoiled = False  # text followed calls that could not count beside it
        self._has_prose = False
        self._before_thought = (0, 0, False, False)
        self._space: list[str] = []
        self._space_before_calls = ""
        self._after_calls = self._has_emitted = False

    @property
    def has_calls(self) -> bool:
        """Whether a call was read, emitted or not."""
        return self.call_count > 0 or self._held_calls > 0

    def can_count_in_fence(self, label: str, *, is_marked: bool) -> bool:
        """Return True if calls of a code fence can count after the text up to here."""
        if isinstance(self._rule, bool) or (self._rule == "fences" and not self._has_prose):
            return True
        return label == "json" and not is_marked

    def expect_last(self) -> None:
        """Count calls from here on only at the end of the message: a quotation whose end the text may forge precedes."""
        self._alone = self._alone or "last"

    def can_count(self, other_text: str = "") -> bool:
        """Return True if calls of a form can count after the text up to here."""
        may_follow = self._alone == "last" or (self._alone == "families" and other_text == "before")
        return not self._alone or not (self._is_spoiled if may_follow else self._has_prose)

    def add_text(self, event: TextDelta | ReasoningDelta, *, thought: bool = False) -> None:
        """Emit text, or reasoning that is no part of the text. ``thought``: the text is in a thinking block."""
        if isinstance(event, TextDelta) and not (thought or self._stops or event.text.isspace()):
            if self._is_fragile:
                self._is_spoiled = True
                self._flush(as_calls=False)
            self._has_prose = True
        if self._held is not None:
            self._held.append(event)
        else:
            self._emit(event)

    def add_calls(self, found: PendingCalls, *, wait: bool = False) -> bool:
        """Emit calls, or hold them and everything after them. Return False if they are text here."""
        if not self._stops and not self.can_count(found.other_text):
            self.add_text(TextDelta(found.raw))
            return False
        is_fragile = bool(self._alone) and not (self._alone == "families" and found.other_text == "after")
        if self._held is None and (wait or is_fragile):
            self._held = []
        if self._held is None:
            self._emit_calls(found)
        else:
            self._held.append(found)
            self._held_calls += 1
            self._is_fragile = self._is_fragile or is_fragile
        return True

    def add_marker(self, raw: str) -> None:
        """Leave a marker out, unless the calls before it turn out to be text."""
        if self._held is not None:
            self._held.append(PendingCalls(raw))

    def stop(self, *, wait: bool) -> None:
        """Drop the text from here on, if the calls before it count."""
        if self._held is None:
            self._stop()
            return
        self._held.append(None)
        self._stops = True
        if not wait:
            self._flush(as_calls=True)

    def release(self) -> None:
        """Emit held items as calls. Calls that no text may follow wait for the end."""
        if not self._alone:
            self._flush(as_calls=True)

    def start_thought(self) -> None:
        """Note that a thinking block starts here."""
        self._before_thought = (len(self._held or ()), self._held_calls, self._has_prose, self._is_spoiled)

    def withdraw(self) -> None:
        """Make text of the calls since the start of the thought; at first, this is the start of the message."""
        count, self._held_calls, self._has_prose, self._is_spoiled = self._before_thought
        thought = (self._held or [])[count:]
        if self._held is not None:
            del self._held[count:]
            self._held = self._held or None
        self._stops, self._is_fragile = False, self._is_fragile and self._held_calls > 0
        for item in thought:
            if item is not None:
                self.add_text(TextDelta(item.raw) if isinstance(item, PendingCalls) else item, thought=True)

    def finish(self, *, thinking: str = "over", truncated: bool = False) -> None:
        """End the text. Its calls are text in a thought that was truncated, or may have been, and in one that excludes text."""
        is_thought = thinking == "open" or (thinking == "unknown" and self._has_prose)
        if (truncated and is_thought) or (thinking == "open" and self._alone in (True, "families")):
            self.withdraw()
        self._flush(as_calls=True)
        if self._space and not self.call_count:
            self.events.append(TextDelta("".join(self._space)))
        self._space = []

    def _flush(self, *, as_calls: bool) -> None:
        held, self._held, self._held_calls = self._held or [], None, 0
        self._stops = self._is_fragile = False
        for item in held:
            if item is None:
                if as_calls:
                    self._stop()
                    return
            elif not isinstance(item, PendingCalls):
                self._emit(item)
            elif not as_calls:
                self._emit(TextDelta(item.raw))
            elif item.calls:
                self._emit_calls(item)

    def _stop(self) -> None:
        self.is_stopped = True
        self.notes.append("the results that the model invented were removed")

    def _emit_calls(self, held: PendingCalls) -> None:
        if not self._after_calls:
            self._space_before_calls, self._after_calls = "".join(self._space), True
        self._space = []
        for call in held.calls:
            self.events.append(ToolCallEnd(self.call_count, call))
            self.call_count += 1
        self.notes += held.notes
        self.dialect = self.dialect or held.dialect

    def _emit(self, event: TextDelta | ReasoningDelta) -> None:
        if isinstance(event, ReasoningDelta):
            self.events.append(event)
            return
        text, body = event.text, event.text.strip()
        if not body:
            self._space.append(text)
            return
        lead = text[: len(text) - len(text.lstrip())]
        space = "".join([*self._space, lead])
        if self._after_calls:
            space = (self._space_before_calls or space) if self._has_emitted else ""
        self._space = [text[len(text.rstrip()) :]]
        self._after_calls, self._has_emitted = False, True
        self.events.append(TextDelta(space + body))
