r"""``PartialJsonParser``: a JSON value that is parsed while it arrives, and its partial value at any time.

Strings may hold raw line breaks and unknown escapes, as ``json_text`` accepts. At any other invalid JSON the value has
``failed`` and does not change. Numbers and words appear when complete, strings up to their last character.

    text -> read(text, at) -> the position after the value, or the end of the text
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sigwire.core.json import JsonValue, loads

__all__ = ["PartialJsonParser", "PartialString"]

_MAX_DEPTH = 200
_MAX_TOKEN = 5000  # Python parses no integer of so many digits
_CHARACTERS_PER_ITEM = 500  # characters that are copied as fast as one item
_SPACE = re.compile(r"[ \t\r\n]*")
_PLAIN = re.compile(r'[^"\\]*')
_TOKEN = re.compile(r"[-+.\w]*")
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_PARTIAL_HEX = re.compile(r"[0-9a-fA-F]{0,3}\Z")
_ESCAPES: Mapping[str, str] = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'"
}  # fmt: skip


class PartialString:
    r"""The inside of one JSON string in chunks, unescaped, wherever an escape is cut.

    >>> string = PartialString()
    >>> string.read('caf\\u00', 0), string.read('e9", "next"', 0)
    (('caf', 7), ('é', 3))
    >>> string.closed
    True
    """

    __slots__ = ("_partial_escape", "closed")

    def __init__(self) -> None:
        self._partial_escape = ""  # an incomplete escape
        self.closed = False

    def read(self, text: str, at: int) -> tuple[str, int]:
        """Return the text up to the closing quote or the end of the chunk, and the position after it."""
        chunks: list[str] = []
        before = 0  # the length of the incomplete escape before the text
        if self._partial_escape:
            before, text = at - len(self._partial_escape), self._partial_escape + text[at:]
            at, self._partial_escape = 0, ""
        while at < len(text):
            plain = _PLAIN.match(text, at)
            assert plain is not None
            if plain[0]:
                chunks.append(plain[0])
            at = plain.end()
            if at == len(text):
                break
            if text[at] == '"':
                self.closed = True
                at += 1
                break
            character, after = self._unescape(text, at)
            if character is None:
                self._partial_escape = text[at:]
                at = len(text)
                break
            chunks.append(character)
            at = after
        return "".join(chunks), before + at

    def _unescape(self, text: str, at: int) -> tuple[str | None, int]:
        """Return the character of an escape, and the position after it; ``None`` if the escape is incomplete."""
        if at + 1 == len(text):
            return None, at
        mark = text[at + 1]
        if mark in _ESCAPES:
            return _ESCAPES[mark], at + 2
        if mark != "u":
            return "\\" + mark, at + 2
        unit = _HEX.match(text, at + 2)
        if unit is None:
            return (None, at) if _PARTIAL_HEX.match(text, at + 2) else ("\\u", at + 2)
        return self._decode_unit(int(unit[0], 16), text, unit.end())

    def _decode_unit(self, unit: int, text: str, at: int) -> tuple[str | None, int]:
        if not 0xD800 <= unit < 0xDC00:
            return chr(unit), at
        following = text[at : at + 6]
        low = _HEX.match(following, 2) if following.startswith("\\u") else None
        if low is not None and 0xDC00 <= int(low[0], 16) < 0xE000:
            return chr(0x10000 + ((unit - 0xD800) << 10) + (int(low[0], 16) - 0xDC00)), at + 6
        is_partial = at + len(following) == len(text) and (
            "\\u".startswith(following) or (following.startswith("\\u") and _PARTIAL_HEX.match(following, 2))
        )
        return (None, at) if is_partial else (chr(unit), at)


class PartialJsonParser:
    """One JSON value.

    >>> value = PartialJsonParser()
    >>> value.read('{"name": "Ad', 0), value.partial_value()
    (12, {'name': 'Ad'})
    >>> value.read('a", "age": 3', 0), value.partial_value()
    (12, {'name': 'Ada'})
    >>> value.read("6}", 0), value.partial_value(), value.done
    (2, {'name': 'Ada', 'age': 36}, True)
    """

    __slots__ = (
        "_chunks",
        "_expects",
        "_key",
        "_keys",
        "_length",
        "_open",
        "_root",
        "_string",
        "_token",
        "changes",
        "done",
        "failed",
    )

    def __init__(self) -> None:
        self._open: list[list[Any] | dict[str, Any]] = []  # containers that are not closed, outermost first
        self._keys: list[str] = []  # the current key of each container
        self._expects = "value"
        self._string: PartialString | None = None
        self._key = False
        self._chunks: list[str] = []  # of the open string
        self._length = 0
        self._token = ""
        self._root: Any = None
        self.changes = 0
        self.done = self.failed = False

    def read(self, text: str, at: int) -> int:
        """Read from a position. Return the position after the value, or the end of the text."""
        end = len(text)
        while at < end and not self.done and not self.failed:
            if self._string is not None:
                at = self._read_string(self._string, text, at)
            elif self._token:
                at = self._read_token(text, at)
            else:
                space = _SPACE.match(text, at)
                at = space.end() if space else at
                if at < end:
                    at = self._EXPECTED[self._expects](self, text, at)
        return at

    def close(self) -> None:
        """Read the end of the text, which completes a top-level number."""
        if self._token and not self._open:
            self._end_token()
        self.failed = self.failed or not self.done

    @property
    def cost(self) -> int:
        """The approximate number of items that ``partial_value`` copies."""
        return sum(map(len, self._open)) + len(self._chunks) + self._length // _CHARACTERS_PER_ITEM

    def partial_value(self) -> JsonValue:
        """Return the partial value. Finished members are shared with later results; do not mutate them."""
        value: Any = _NOTHING
        if self._string is not None and not self._key:
            value = "".join(self._chunks)
            self._chunks = [value]
        for container, key in zip(reversed(self._open), reversed(self._keys), strict=True):
            value = _copy_with(container, key, value)
        partial_value: JsonValue = self._root if value is _NOTHING else value
        return partial_value

    def _read_value(self, text: str, at: int) -> int:
        character = text[at]
        if character == '"':
            self._start_string(key=False)
            return at + 1
        if character in "{[":
            return self._open_container({} if character == "{" else [], at)
        if character == "]" and self._open and self._open[-1] == []:
            return self._close_container("]", at)
        return self._read_token(text, at)

    def _read_name(self, text: str, at: int) -> int:
        """Read a member's name, or the closing brace of an empty object."""
        if text[at] == '"':
            self._start_string(key=True)
            return at + 1
        return self._close_container("}", at) if text[at] == "}" and not self._open[-1] else self._fail(at)

    def _read_colon(self, text: str, at: int) -> int:
        self._expects = "value"
        return at + 1 if text[at] == ":" else self._fail(at)

    def _read_separator(self, text: str, at: int) -> int:
        is_object = isinstance(self._open[-1], dict)
        if text[at] == ",":
            self._expects = "name" if is_object else "item"
            return at + 1
        closing = "}" if is_object else "]"
        return self._close_container(closing, at) if text[at] == closing else self._fail(at)

    def _read_item(self, text: str, at: int) -> int:
        return self._fail(at) if text[at] == "]" else self._read_value(text, at)

    _EXPECTED: ClassVar[Mapping[str, Callable[[Any, str, int], int]]] = {
        "value": _read_value,
        "name": _read_name,
        "colon": _read_colon,
        "separator": _read_separator,
        "item": _read_item,
    }

    def _start_string(self, *, key: bool) -> None:
        self._string, self._key, self._chunks, self._length = PartialString(), key, [], 0
        self.changes += not key

    def _read_string(self, string: PartialString, text: str, at: int) -> int:
        chunk, at = string.read(text, at)
        if chunk:
            self._chunks.append(chunk)
            self._length += len(chunk)
            self.changes += not self._key
        if string.closed:
            whole, self._string, self._chunks = "".join(self._chunks), None, []
            if self._key:
                self._keys[-1], self._expects = whole, "colon"
            else:
                self._put(whole)
        return at

    def _read_token(self, text: str, at: int) -> int:
        match = _TOKEN.match(text, at)
        end = match.end() if match else at
        self._token += text[at:end]
        if not self._token or len(self._token) > _MAX_TOKEN:
            return self._fail(at)
        if end < len(text):
            self._end_token()
        return end

    def _end_token(self) -> None:
        token, self._token = self._token, ""
        try:
            self._put(loads(token))
            self.changes += 1  # strings and containers are counted when they open
        except ValueError:
            self._fail(0)

    def _open_container(self, container: Any, at: int) -> int:
        if len(self._open) >= _MAX_DEPTH:
            return self._fail(at)
        self._open.append(container)
        self._keys.append("")
        self._expects = "name" if isinstance(container, dict) else "value"
        self.changes += 1
        return at + 1

    def _close_container(self, closing: str, at: int) -> int:
        container = self._open.pop()
        self._keys.pop()
        self._put(container)
        return at + 1

    def _put(self, value: Any) -> None:
        if not self._open:
            self._root, self.done = value, True
            return
        container = self._open[-1]
        if isinstance(container, dict):
            container[self._keys[-1]] = value
        else:
            container.append(value)
        self._expects = "separator"

    def _fail(self, at: int) -> int:
        self.failed = True
        return at


_NOTHING: Any = object()


def _copy_with(container: list[Any] | dict[str, Any], key: str, value: Any) -> JsonValue:
    if value is _NOTHING:
        return container.copy()
    return {**container, key: value} if isinstance(container, dict) else [*container, value]
