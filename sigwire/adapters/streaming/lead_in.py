"""``LeadInReader``: the start of the outputs in an answer, so that no draft is emitted.

Equal to ``Plan``: thinking in tags before the answer is left out. If the prompt opened the thinking, only its closing tag
shows it. After a known lead-in (``values.lead_in``), an answer with any other start than a mark of its layout or an opening
tag is emitted at its end.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwire.adapters.field_events import OutputReader
from sigwire.adapters.streaming.lookahead import Lookahead
from sigwire.adapters.values.lead_in import lead_in_end

__all__ = ["LeadInReader"]


class LeadInReader:
    """Precedes the layout's reader. ``thoughts``: pairs of tags around thinking."""

    __slots__ = ("_closing", "_is_unknown", "_lookahead", "_outputs", "_thoughts", "is_open")

    def __init__(self, outputs: OutputReader, thoughts: Sequence[tuple[str, str]]) -> None:
        self._outputs, self._thoughts = outputs, thoughts
        self._lookahead = Lookahead()
        self._closing = ""
        self.is_open = self._is_unknown = False

    def feed(self, text: str) -> None:
        """Read the next text."""
        if self.is_open:
            self._outputs.feed(text)
        elif not self._is_unknown and (joined := self._lookahead.join(text)) is not None:
            if self._closing:
                self._skip_thinking(joined)
            else:
                self._decide(joined)

    def close(self) -> None:
        if self.is_open:
            self._outputs.close()

    def _decide(self, text: str) -> None:
        content = text.lstrip()
        end = lead_in_end(content)
        outputs = content[end:]
        opens = self._outputs.opens(outputs) if outputs and end is not None else None
        if opens:
            self._start(outputs)
        elif (thought := next((pair for pair in self._thoughts if content.startswith(pair[0])), None)) is not None:
            self._closing = thought[1]
            self._skip_thinking(content)
        elif opens is None or any(opening.startswith(content) for opening, _ in self._thoughts):
            self._lookahead.hold(text)
        else:
            self._is_unknown = True

    def _skip_thinking(self, text: str) -> None:
        """Skip a thinking block. Only a possible start of its closing tag is held."""
        _, closed, after = text.partition(self._closing)
        if closed:
            self._start(after)
        else:
            self._lookahead.hold(text[1 - len(self._closing) :])

    def _start(self, text: str) -> None:
        self.is_open = True
        self._outputs.feed(text)
