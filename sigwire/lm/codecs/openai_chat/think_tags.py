"""Thinking that stands as ``<think>...</think>`` at the start of the text, taken apart piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

__all__ = ["ThinkTags"]

_OPEN, _CLOSE = "<think>", "</think>"
_Kind: TypeAlias = Literal["text", "thinking"]


class ThinkTags:
    """Pieces of text in, pieces of thinking and of text out; what may still become a mark is held back.

    >>> tags = ThinkTags()
    >>> [list(tags.feed(piece)) for piece in ("<th", "ink>hm", "m</thi", "nk>\\n ", " ok")], list(tags.close())
    ([[], [('thinking', 'hm')], [('thinking', 'm')], [], [('text', 'ok')]], [])
    """

    def __init__(self) -> None:
        self._state: Literal["start", "thinking", "after", "text"] = "start"
        self._held = ""

    def feed(self, piece: str) -> Iterator[tuple[_Kind, str]]:
        """What can be told now, by its kind."""
        text, self._held = self._held + piece, ""
        if self._state == "start":
            text = self._start(text)
        if self._state == "thinking":
            thought, text = self._thinking(text)
            if thought:
                yield "thinking", thought
        if self._state == "after":
            text = text.lstrip()
            self._state = "text" if text else "after"
        if self._state == "text" and text:
            yield "text", text

    def close(self) -> Iterator[tuple[_Kind, str]]:
        """What was held back and became no mark."""
        if self._held:
            yield "thinking" if self._state == "thinking" else "text", self._held
        self._held = ""

    def _start(self, text: str) -> str:
        begun = text.lstrip()
        if begun.startswith(_OPEN):
            self._state = "thinking"
            return begun[len(_OPEN) :]
        if _OPEN.startswith(begun):
            self._held = text
            return ""
        self._state = "text"
        return text

    def _thinking(self, text: str) -> tuple[str, str]:
        thought, mark, rest = text.partition(_CLOSE)
        if mark:
            self._state = "after"
            return thought, rest
        kept = next((size for size in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:size])), 0)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept], ""
