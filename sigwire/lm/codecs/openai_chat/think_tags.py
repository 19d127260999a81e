"""Split streamed text that starts with ``<think>...</think>`` into reasoning and text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

__all__ = ["ThinkTags"]

_OPEN, _CLOSE = "<think>", "</think>"
_Kind: TypeAlias = Literal["text", "thinking"]


class ThinkTags:
    """A reader of text deltas that yields deltas of reasoning and of text. The lookahead holds a possible tag.

    >>> tags = ThinkTags()
    >>> [list(tags.feed(delta)) for delta in ("<th", "ink>hm", "m</thi", "nk>\\n ", " ok")], list(tags.close())
    ([[], [('thinking', 'hm')], [('thinking', 'm')], [], [('text', 'ok')]], [])
    """

    def __init__(self) -> None:
        self._state: Literal["start", "thinking", "after", "text"] = "start"
        self._lookahead = ""  # at most a part of a tag
        self._blank: list[str] = []  # white space before the first other character

    @property
    def is_done(self) -> bool:
        """Whether only text can follow."""
        return self._state == "text"

    def feed(self, delta: str) -> Iterator[tuple[_Kind, str]]:
        """Yield deltas with their kind."""
        text, self._lookahead = self._lookahead + delta, ""
        if self._state == "start":
            text = self._read_start(text)
        if self._state == "thinking":
            thinking, text = self._read_thinking(text)
            if thinking:
                yield "thinking", thinking
        if self._state == "after":
            text = text.lstrip()
            self._state = "text" if text else "after"
        if self._state == "text" and text:
            yield "text", text

    def close(self) -> Iterator[tuple[_Kind, str]]:
        """Yield the lookahead, which became no tag."""
        if rest := "".join([*self._blank, self._lookahead]):
            yield "thinking" if self._state == "thinking" else "text", rest
        self._blank, self._lookahead = [], ""

    def _read_start(self, text: str) -> str:
        start = text.lstrip()
        if size := len(text) - len(start):
            self._blank.append(text[:size])
        if start.startswith(_OPEN):
            self._state, self._blank = "thinking", []
            return start[len(_OPEN) :]
        if _OPEN.startswith(start):
            self._lookahead = start
            return ""
        self._state = "text"
        whole, self._blank = "".join([*self._blank, start]), []
        return whole

    def _read_thinking(self, text: str) -> tuple[str, str]:
        thinking, tag, rest = text.partition(_CLOSE)
        if tag:
            self._state = "after"
            return thinking, rest
        size = next((size for size in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:size])), 0)
        self._lookahead = text[len(text) - size :]
        return text[: len(text) - size], ""
