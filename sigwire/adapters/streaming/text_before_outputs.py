"""``LeadingTextReader``: a text that may go over into outputs, up to where they begin; from there on it is kept and not shown.

For an answer that is free text by rule, and that a model ends in the form that outputs have elsewhere, with marks that nobody
shall see. Whether they count as outputs is known at the end of the answer.
"""

from __future__ import annotations

from collections.abc import Callable

from sigwire.adapters.field_events import FieldEvents
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.streaming.lookahead import Lookahead

__all__ = ["LeadingTextReader"]


class LeadingTextReader:
    """Reads one answer by the marks of a layout. What may be the beginning of a mark waits for more.

    >>> from sigwire.adapters.chat import ChatLayout
    >>> from sigwire.adapters.prompts.layout import VisibleFields
    >>> from sigwire.signatures.signature import Signature
    >>> text = LeadingTextReader(ChatLayout(VisibleFields((), Signature("question -> answer").spec.outputs)))
    >>> [text.feed(chunk) for chunk in ("I have [1, 2", "]. [[ ## ans", "wer ## ]]\\n3")]
    ['I have [1, 2', ']. ', '']
    >>> text.release()
    '[[ ## answer ## ]]\\n3'
    """

    __slots__ = ("_kept", "_lookahead", "_marks", "_opens", "_reads")

    def __init__(self, layout: Layout) -> None:
        chunks = layout.output_reader(FieldEvents())
        self._opens = chunks.opens if chunks is not None else None
        self._marks = tuple(layout.opening(name).strip() for name in layout.codecs)
        self._lookahead = Lookahead()
        self._kept: list[str] = []
        self._reads: Callable[[str], str] = self._beginning

    def feed(self, text: str) -> str:
        """More of the answer; what of it can be shown."""
        return self._reads(text)

    def release(self) -> str:
        """What was not shown. From now on everything is."""
        self._reads = str
        kept, self._kept = self._lookahead.release() + "".join(self._kept), []
        return kept

    def _beginning(self, text: str) -> str:
        """Before the first word, and while that may be outputs already."""
        so_far = self._lookahead.joined(text)
        if so_far is None:
            return ""
        begin = so_far.lstrip()
        opens = (self._opens(begin) if begin else None) if self._opens is not None else False
        if opens:
            return self._keep(so_far, len(so_far) - len(begin))
        if opens is None:
            self._lookahead.keep(so_far)
            return ""
        self._reads = self._looking
        return self._looking(so_far)

    def _looking(self, text: str) -> str:
        """Anywhere in the text."""
        so_far = self._lookahead.joined(text)
        if so_far is None:
            return ""
        found = [at for mark in self._marks if (at := so_far.find(mark)) >= 0]
        if found:
            return self._keep(so_far, min(found))
        waits = max((_begun(mark, so_far) for mark in self._marks), default=0)
        shown = so_far[: len(so_far) - waits]
        self._lookahead.keep(so_far[len(shown) :])
        return shown

    def _keep(self, text: str, start: int) -> str:
        self._kept.append(text[start:])
        self._reads = self._keeping
        return text[:start]

    def _keeping(self, text: str) -> str:
        self._kept.append(text)
        return ""


def _begun(mark: str, text: str) -> int:
    """How many characters at the end of the text are the beginning of the mark.

    >>> _begun("<answer>", "so <ans"), _begun("<answer>", "so")
    (4, 0)
    """
    most = min(len(mark) - 1, len(text))
    return next((n for n in range(most, 0, -1) if text.endswith(mark[:n])), 0)
