"""The lead-in of an answer: polite lines and an opening code fence in front of the outputs. Pure.

Only a known beginning counts. Any other line in front of the outputs may be reasoning that the prompt opened, with drafts of
the outputs in it. Streams and readers of whole answers share this rule, so that both find the same outputs.
"""

from __future__ import annotations

import re

__all__ = ["lead_in_end"]

_PHRASES = (
    "Sure", "Certainly", "Of course", "Absolutely", "Great question", "Here", "Below is", "Below are", "The answer",
    "The result", "The output", "The response", "The JSON", "Answer", "Result", "Output", "Response", "JSON",
)  # fmt: skip
_LONGEST_LINE, _MOST_LINES = 120, 4
_LINE = re.compile(rf"(?:{'|'.join(_PHRASES)})\b[^\n]*[:.!][ \t\r]*|```[\w+-]*[ \t\r]*")
_PARTIAL_LINE = re.compile(rf"(?:{'|'.join(_PHRASES)})\b|`{{1,2}}\Z|```[\w+-]*[ \t\r]*\Z")
_SPACE = re.compile(r"[\s\ufeff]*")


def lead_in_end(text: str) -> int | None:
    """Return the position after the lead-in of a text, ``None`` while more text can continue the lead-in.

    >>> lead_in_end("Sure, here it is:\\n\\n```json\\n{"), lead_in_end("Sure, he"), lead_in_end("So: {")
    (27, None, 0)
    """
    at = _end_of_space(text, 0)
    for _ in range(_MOST_LINES):
        end = text.find("\n", at)
        line = text[at:] if end < 0 else text[at:end]
        if end < 0:
            return None if _may_continue(line) else at
        if len(line) > _LONGEST_LINE or not _LINE.fullmatch(line):
            return at
        at = _end_of_space(text, end)
    return at


def _may_continue(line: str) -> bool:
    """Return True if an incomplete line can become a line of the lead-in."""
    if not line or len(line) > _LONGEST_LINE:
        return not line
    return _PARTIAL_LINE.match(line) is not None or any(phrase.startswith(line) for phrase in _PHRASES)


def _end_of_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
