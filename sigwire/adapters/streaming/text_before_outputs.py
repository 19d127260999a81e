"""``LeadingTextReader``: free text up to the start of outputs in it. The text after that is held and not shown.

Some answers are free text by rule, but a model can end one in the form of outputs, whose marks no user should see. The end of
the answer decides whether they count as outputs.
"""

from __future__ import annotations

from collections.abc import Callable

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.streaming.lookahead import Lookahead, partial_length

__all__ = ["LeadingTextReader"]


class LeadingTextReader:
    """Reads one answer by the marks of a layout. Text that can be the start of a mark is held.

    >>> from sigwire.adapters.chat import ChatLayout
    >>> from sigwire.adapters.prompts.layout import VisibleFields
    >>> from sigwire.signatures.signature import Signature
    >>> text = LeadingTextReader(ChatLayout(VisibleFields((), Signature("question -> answer").spec.outputs)))
    >>> [text.feed(chunk) for chunk in ("I have [1, 2", "]. [[ ## ans", "wer ## ]]\\n3")]
    ['I have [1, 2', ']. ', '']
    >>> text.release()
    '[[ ## answer ## ]]\\n3'
    """

    __slots__ = ("_held", "_lookahead", "_marks", "_read", "_starts_outputs")

    def __init__(self, layout: Layout) -> None:
        chunks = layout.output_reader(FieldEvents())
        self._starts_outputs = chunks.opens if chunks is not None else None
        self._marks = tuple(layout.text_before(name).strip() for name in layout.codecs)
        self._lookahead = Lookahead()
        self._held: list[str] = []
        self._read: Callable[[str], str] = self._read_start

    def feed(self, text: str) -> str:
        """Return the part of the answer that can be shown after this text."""
        return self._read(text)

    def release(self) -> str:
        """Return the held text. All text after this call is shown."""
        self._read = str
        held, self._held = self._lookahead.release() + "".join(self._held), []
        return held

    def _read_start(self, text: str) -> str:
        """Read up to the first word, and while the text can be outputs. Leading blanks are held."""
        joined = self._lookahead.join(text)
        if joined is None:
            return ""
        content = joined.lstrip()
        opens = (self._starts_outputs(content) if content else None) if self._starts_outputs is not None else False
        if opens:
            return self._hold(joined, len(joined) - len(content))
        if opens is None:
            self._lookahead.hold(joined)
            return ""
        self._read = self._search
        return self._search(joined)

    def _search(self, text: str) -> str:
        joined = self._lookahead.join(text)
        if joined is None:
            return ""
        found = [at for mark in self._marks if (at := joined.find(mark)) >= 0]
        if found:
            return self._hold(joined, min(found))
        length = max((partial_length(mark, joined) for mark in self._marks), default=0)
        shown = joined[: len(joined) - length]
        self._lookahead.hold(joined[len(shown) :])
        return shown

    def _hold(self, text: str, start: int) -> str:
        self._held.append(text[start:])
        self._read = self._hold_rest
        return text[:start]

    def _hold_rest(self, text: str) -> str:
        self._held.append(text)
        return ""
