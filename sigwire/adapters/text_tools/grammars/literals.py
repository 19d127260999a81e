r"""Python's literals, and notations close to them, read without ``ast`` or ``eval``.

Strings in either quotes, tripled or not, with Python's escapes; numbers; ``True False None`` and JSON's spellings of them;
lists, tuples (as lists) and dicts, nested. Raw line breaks in strings are kept: models write them though Python refuses them.
Strings between longer marks (``<escape>``) are verbatim, and a key may be a bare word. Everything else is refused: a name, a
call, an operator, an ``f`` or ``b`` before a string, a number that is not finite.

    read_literal("{'a': [1, None]}")      {"a": [1, None]}
    read_arguments("city='Bern', days=2")    {"city": "Bern", "days": 2}
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from sigwire.adapters.text_tools.scan.brackets import MAX_DEPTH
from sigwire.core.json import JsonObject, JsonValue

__all__ = ["LiteralError", "MissingKeywords", "read_arguments", "read_bare_object", "read_literal"]


class LiteralError(ValueError):
    """A text is not a literal; the message has the problem and its position."""


class MissingKeywords(LiteralError):
    """Arguments without names: not readable as a call."""


_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\W\d]\w*")
_BARE_KEY = re.compile(r"[^\W\d][\w$.-]*")
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII)
_MAX_DIGITS = 4000
_STRINGS = ("'''", '"""', "<escape>", '<|"|>', "'", '"')
_BODIES = {  # the text before the closing mark
    "'": re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL),
    '"': re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL),
    "'''": re.compile(r"(?:[^'\\]|\\.|'(?!''))*", re.DOTALL),
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*', re.DOTALL),
}
_RAW = re.compile(r"[rRuU](?=['\"])")
_ESCAPE = re.compile(r"\\(?:\n|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PLAIN_ESCAPES: Mapping[str, str] = {
    "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "/": "/"
}  # fmt: skip
_WORDS: Mapping[str, JsonValue] = {
    "True": True, "False": False, "None": None, "true": True, "false": False, "null": None
}  # fmt: skip


def read_literal(text: str) -> JsonValue:
    """Return the value of a text that is one literal. Raises ``LiteralError``.

    >>> read_literal("('a', 1.5, True)")
    ['a', 1.5, True]
    """
    reader = _LiteralParser(text)
    value: JsonValue = reader.value()
    reader.expect_end()
    return value


def read_arguments(text: str) -> JsonObject:
    """Return the keyword arguments between a call's parentheses. Raises ``LiteralError``.

    >>> read_arguments('city="Bern", days=2,')
    {'city': 'Bern', 'days': 2}
    """
    reader = _LiteralParser(text)
    arguments: JsonObject = {}
    while reader.next_character():
        key = reader.keyword()
        if key in arguments:
            raise LiteralError(f"the argument {key!r} is given twice")
        arguments[key] = reader.value()
        if reader.next_character() and not reader.accept(","):
            raise reader.make_error("there is no ',' between arguments")
    return arguments


def read_bare_object(text: str) -> JsonObject:
    """Return an object whose keys are bare words. Raises ``LiteralError``.

    >>> read_bare_object("{city:<escape>Bern<escape>,days:2}")
    {'city': 'Bern', 'days': 2}
    """
    value = read_literal(text)
    if not isinstance(value, dict):
        raise LiteralError("this is not an object")
    return value


class _LiteralParser:
    __slots__ = ("_depth", "position", "text")

    def __init__(self, text: str) -> None:
        self.text, self.position, self._depth = text, 0, 0

    def value(self) -> Any:
        next_character = self.next_character()
        read = self._CONTAINERS.get(next_character)
        if read is not None:
            return self._parse_nested(read)
        prefix = _RAW.match(self.text, self.position)
        self.position += prefix is not None
        mark = next((mark for mark in _STRINGS if self.text.startswith(mark, self.position)), None)
        if mark is not None:
            return self._string(mark, raw=prefix is not None and prefix[0] in "rR")
        return self._number() if next_character in "+-.0123456789" and next_character else self._word()

    def keyword(self) -> str:
        match = _BARE_KEY.match(self.text, self.position)
        if match is None or self.text[match.end() :].lstrip()[:1] != "=":
            raise MissingKeywords(f"an argument has no name (character {self.position})")
        self.position = match.end()
        self.accept("=")
        return match[0]

    def expect_end(self) -> None:
        if self.next_character():
            raise self.make_error("something follows the value")

    def _parse_nested(self, read: Callable[[_LiteralParser], Any]) -> Any:
        self.position += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LiteralError(f"nested too deeply: more than {MAX_DEPTH} levels")
        value = read(self)
        self._depth -= 1
        return value

    def _tuple(self) -> Any:
        start = self.position
        items = self._items(")")
        single = len(items) == 1 and not self.text[start : self.position - 1].rstrip().endswith(",")
        return items[0] if single else items

    def _items(self, closing: str) -> list[Any]:
        items: list[Any] = []
        while not self.accept(closing):
            items.append(self.value())
            self._separator(closing)
        return items

    def _dict(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not self.accept("}"):
            key = self._key()
            if not self.accept(":"):
                raise self.make_error("there is no ':' after a key")
            members[key] = self.value()
            self._separator("}")
        return members

    def _key(self) -> str:
        self.next_character()
        if match := _BARE_KEY.match(self.text, self.position):
            self.position = match.end()
            return match[0]
        key = self.value()
        if not isinstance(key, str):
            raise self.make_error("a key is not a text")
        return key

    def _separator(self, closing: str) -> None:
        if not self.accept(",") and self.next_character() != closing:
            raise self.make_error(f"',' or '{closing}' is missing")

    def _string(self, mark: str, raw: bool = False) -> str:
        start = self.position + len(mark)
        end = self._string_end(mark, start)
        self.position = end + len(mark)
        body = self.text[start:end]
        if raw or mark[0] == "<" or "\\" not in body:
            return body
        text = _ESCAPE.sub(_unescape, body)
        return _SURROGATES.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)

    def _string_end(self, mark: str, start: int) -> int:
        body = _BODIES[mark].match(self.text, start) if mark in _BODIES else None
        end = self.text.find(mark, start) if body is None else body.end()
        if end < 0 or not self.text.startswith(mark, end):
            raise self.make_error("a string is not closed")
        return end

    def _number(self) -> int | float:
        match = _NUMBER.match(self.text, self.position)
        if match is None or len(match[0]) > _MAX_DIGITS:
            raise self.make_error("this is not a number")
        self.position = match.end()
        digits = match[0].replace("_", "")
        number = float(digits) if any(mark in digits for mark in ".eE") else int(digits)
        if isinstance(number, float) and math.isinf(number):
            raise self.make_error("a number is too large")
        return number

    def _word(self) -> JsonValue:
        match = _WORD.match(self.text, self.position)
        if match is None or match[0] not in _WORDS:
            raise self.make_error("this is not a literal")
        self.position = match.end()
        return _WORDS[match[0]]

    def next_character(self) -> str:
        match = _SPACE.match(self.text, self.position)
        self.position = match.end() if match else self.position
        return self.text[self.position : self.position + 1]

    def accept(self, character: str) -> bool:
        found = self.next_character() == character
        self.position += found
        return found

    def make_error(self, what: str) -> LiteralError:
        return LiteralError(f"{what} (character {self.position})")

    _CONTAINERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "[": lambda parser: parser._items("]"),
        "(": _tuple,
        "{": _dict,
    }


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        number = int(code, 16)
        return chr(number) if number < 0x110000 else match[0]
    if match[4]:
        return chr(int(match[4], 8))
    if match[5] is None:
        return ""  # an escaped line break
    return _PLAIN_ESCAPES.get(match[5], match[0])
