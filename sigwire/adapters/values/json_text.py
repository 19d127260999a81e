"""JSON as models write it: read strictly when possible, else with repairs that are all listed.

``read_json`` tries strict JSON first. Then a lenient parser reads the text once, from left to right, and repairs a closed
list of faults: fences, backticks and prose around the JSON, comments, trailing commas, single quotes, unquoted keys, Python's
``True False None``, raw line breaks in strings, unknown escapes, duplicate keys, odd number spellings. It adds nothing: an
unclosed structure is ``truncated``, not completed; ``NaN`` is refused; of two JSON values neither is chosen. Every fault is a
``JsonReadError``; the depth is bounded and the time is linear in the text.

``unwrap_candidates`` yields values one level inside an answer ({"json": {...}}, a function-call envelope, JSON in a string).
The caller, which knows the type, chooses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Literal, TypeAlias

from sigwire.adapters.values.lead_in import lead_in_end
from sigwire.core.json import JsonValue, loads
from sigwire.core.response import Repair
from sigwire.errors import JsonReadError

__all__ = ["MAX_DEPTH", "JsonKind", "read_json", "unwrap_candidates"]

JsonKind: TypeAlias = Literal["object", "array"]

MAX_DEPTH = 200
_MAX_STARTS = 8  # positions tried in a text with many braces; each costs one pass at most

_FENCE = re.compile(r"```[\w+-]*[ \t]*\r?\n\s*")
_CODE_SPAN = re.compile(r"\s*(`{1,2})([^`\n]+)\1\s*")  # of Markdown
_SPACE = re.compile(r"[\s\ufeff]*")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?(?![\w.])", re.ASCII)
_LENIENT_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII)
_WORD = re.compile(r"[^\W\d][\w$-]*|\$[\w$-]*")
_KEY = re.compile(r"[\w$][\w$-]*")
_TOKEN = re.compile(r"[\w$.+-]*\Z")
_PLAIN = {'"': re.compile(r'[^"\\\x00-\x1f]+'), "'": re.compile(r"[^'\\\x00-\x1f]+")}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES: Mapping[str, str] = {
    '"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip
_WORDS: Mapping[str, tuple[JsonValue, bool]] = {  # the value, and whether the word is JSON
    "true": (True, True), "false": (False, True), "null": (None, True),
    "True": (True, False), "False": (False, False), "None": (None, False),
}  # fmt: skip

# A bracket and the text that may follow it in JSON; "{x | x > 0}" in prose is no object.
_OBJECT = r"""\{(?=\s*(?:["'}]|[\w$][\w$-]*["']?\s*:|//|/\*|\#))"""
_ARRAY = r"""\[(?=\s*(?:["'\[\]{+.\d-]|(?:true|false|null|True|False|None)\b|//|/\*|\#))"""
_OPENERS: Mapping[str | None, re.Pattern[str]] = {
    "object": re.compile(_OBJECT),
    "array": re.compile(_ARRAY),
    None: re.compile(f"{_OBJECT}|{_ARRAY}"),
}


def read_json(text: str, strict: bool = False, *, kind: JsonKind | None = None) -> tuple[JsonValue, tuple[Repair, ...]]:
    """Return the JSON value in a text, and the repairs that reading it needed.

    ``kind``: the structure to search for in prose. Raises only ``JsonReadError``; with ``strict``, for every repair.

    >>> read_json('{"a": [1, 2]}')
    ({'a': [1, 2]}, ())
    >>> value, repairs = read_json("Sure: {'a': True,}")
    >>> value, [repair.what for repair in repairs]
    ({'a': True}, ['text before the JSON was left out', 'single quotes', 'Python literal', 'trailing comma'])
    >>> read_json('{"a": [1, 2')
    Traceback (most recent call last):
    sigwire.errors.JsonReadError: the JSON ends before it is complete (character 11): an array is not closed
    """
    try:
        return loads(text), ()
    except ValueError as fault:
        if strict:
            raise JsonReadError(f"not valid JSON: {fault}", code="not_json") from None
        reason = str(fault)
    try:
        value, repairs = _read_leniently(text, kind)
    except RecursionError:
        raise JsonReadError("the JSON is nested too deeply", code="too_deep") from None
    return value, repairs or (Repair(None, f"not strict JSON: {reason}"),)


def _read_leniently(text: str, kind: JsonKind | None) -> tuple[JsonValue, tuple[Repair, ...]]:
    if span := _CODE_SPAN.fullmatch(text):
        value, repairs = read_json(span[2], kind=kind)
        return value, (Repair(None, "the backticks were taken off"), *repairs)
    first: JsonReadError | None = None
    for start in _starts(text, kind):
        reader = _JsonParser(text, start)
        try:
            value = reader.read()
        except JsonReadError as fault:
            if fault.code != "malformed":  # part of a truncated value must not be read as the value
                raise
            first = first or fault
            continue
        return value, _repairs_of(text, start, reader, kind)
    raise first or JsonReadError("there is no JSON in the text", code="not_json")


def _starts(text: str, kind: JsonKind | None) -> Iterator[int]:
    """Yield positions at which JSON may start, best first: the whole text, a fence, a line, anywhere."""
    begin = _after_space(text, lead_in_end(text) or 0)
    opener = _OPENERS[kind]
    if opener.match(text, begin):
        yield begin
        return
    if kind is None and begin < len(text):
        fence = _FENCE.match(text, begin)
        yield fence.end() if fence else begin
    fenced = (match.end() for match in _FENCE.finditer(text))
    found = [at for at in fenced if opener.match(text, at)][:_MAX_STARTS]
    openers = [match.start() for match in opener.finditer(text)]
    found += [at for at in openers if text[at - 1 : at] == "\n"][:_MAX_STARTS]
    found += openers[:1]
    yield from dict.fromkeys(found)


def _repairs_of(text: str, start: int, reader: _JsonParser, kind: JsonKind | None) -> tuple[Repair, ...]:
    before, after = text[:start].replace("\ufeff", "").strip(), text[reader.position :].strip()
    is_fence = _FENCE.fullmatch(text[:start].lstrip()) is not None
    fenced = is_fence or before.endswith(("```", "```json"))
    if is_fence:
        before = ""
    if fenced:
        after = after.removeprefix("```").strip()
    if (before or after) and not isinstance(reader.value, (dict, list)):
        raise JsonReadError("there is no JSON in the text", code="not_json")
    _refuse_second_value(after, reader.value, kind)
    repairs = ["a code fence was taken off"] if fenced else []
    repairs += ["text before the JSON was left out"] if before else []
    repairs += reader.repairs()
    repairs += ["text after the JSON was left out"] if after else []
    return tuple(Repair(None, what) for what in repairs)


def _refuse_second_value(after: str, value: JsonValue, kind: JsonKind | None) -> None:
    """Raise if a second value of the wanted kind follows that is not equal: the text is ambiguous."""
    match = _OPENERS[kind].search(after)
    if match is None:
        return
    reader = _JsonParser(after, match.start())
    try:
        second = reader.read()
    except JsonReadError:
        return
    if type(second) is type(value) and second != value:
        raise JsonReadError("the text holds more than one JSON value; give exactly one", code="ambiguous")


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


class _JsonParser:
    """Parses one JSON value; ``position`` is behind it in the end. Counts its repairs."""

    __slots__ = ("_depth", "_made", "position", "text", "value")

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.position = position
        self.value: JsonValue = None
        self._depth = 0
        self._made: dict[str, int] = {}

    def read(self) -> JsonValue:
        self.value = self._value()
        return self.value

    def repairs(self) -> list[str]:
        return [what if count == 1 else f"{what} ({count} times)" for what, count in self._made.items()]

    def _value(self) -> Any:
        character = self._next("a value is missing")
        read = self._READERS.get(character)
        if read is not None:
            return read(self)
        return self._number() if character in "+-.0123456789" else self._word()

    def _object(self) -> dict[str, Any]:
        self._open("an object is not closed")
        members: dict[str, Any] = {}
        while (character := self._next("an object is not closed")) != "}":
            key = self._key(character)
            if self._next("an object is not closed") != ":":
                raise self._malformed_error(f"after the key {key[:40]!r} there is no ':'")
            self.position += 1
            if key in members:
                self._add_repair("a key came twice, the last one counts")
            members[key] = self._value()
            self._separator("}", "an object is not closed")
        self._close()
        return members

    def _array(self) -> list[Any]:
        self._open("an array is not closed")
        items: list[Any] = []
        while self._next("an array is not closed") != "]":
            items.append(self._value())
            self._separator("]", "an array is not closed")
        self._close()
        return items

    def _separator(self, closing: str, unclosed: str) -> None:
        character = self._next(unclosed)
        if character == ",":
            self.position += 1
            if self._next(unclosed) == closing:
                self._add_repair("trailing comma")
        elif character != closing:
            raise self._malformed_error(f"',' or '{closing}' is missing")

    def _key(self, character: str) -> str:
        if character in _PLAIN:
            return self._string()
        match = _KEY.match(self.text, self.position)
        if match is None:
            raise self._malformed_error("a key is missing")
        self.position = match.end()
        self._add_repair("unquoted key")
        return match[0]

    def _string(self) -> str:
        quote = self.text[self.position]
        if quote == "'":
            self._add_repair("single quotes")
        self.position += 1
        plain = _PLAIN[quote]
        parts: list[str] = []
        while True:
            if match := plain.match(self.text, self.position):
                parts.append(match[0])
                self.position = match.end()
            character = self._current("a string is not closed")
            self.position += 1
            if character == quote:
                return "".join(parts)
            if character == "\\":
                parts.append(self._escape())
            else:
                self._add_repair("line break or control character in a string")
                parts.append(character)

    def _escape(self) -> str:
        character = self._current("a string is not closed")
        self.position += 1
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "u" and (match := _HEX.match(self.text, self.position)):
            self.position = match.end()
            return self._character(int(match[0], 16))
        if character == "'":
            self._add_repair("escaped single quote")
            return character
        self._add_repair("unknown escape, kept as it is written")
        return "\\" + character

    def _character(self, unit: int) -> str:
        """Return the character of a UTF-16 unit; a high surrogate consumes the low surrogate after it."""
        if 0xD800 <= unit < 0xDC00 and self.text.startswith("\\u", self.position):
            match = _HEX.match(self.text, self.position + 2)
            low = int(match[0], 16) if match else 0
            if 0xDC00 <= low < 0xE000:
                self.position += 6
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
        return chr(unit)

    def _number(self) -> int | float:
        match = _NUMBER.match(self.text, self.position)
        if match is None:
            match = _LENIENT_NUMBER.match(self.text, self.position)
            if match is None:
                raise self._token_error("a number is not written as JSON")
            self._add_repair("odd spelling of a number")
        whole = not any(mark in match[0] for mark in ".eE")
        try:
            number = int(match[0]) if whole else float(match[0])
        except ValueError:  # Python reads no integer of more than 4300 digits
            raise JsonReadError("a number has too many digits", code="number", position=self.position) from None
        if isinstance(number, float) and math.isinf(number):
            raise JsonReadError("a number is too great", code="number", position=self.position)
        self.position = match.end()
        return number

    def _word(self) -> JsonValue:
        match = _WORD.match(self.text, self.position)
        word = match[0] if match else self.text[self.position]
        if word not in _WORDS:
            raise self._token_error(f"{word[:40]!r} is not a JSON value")
        self.position += len(word)
        value, is_json = _WORDS[word]
        if not is_json:
            self._add_repair("Python literal")
        return value

    _READERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "{": _object,
        "[": _array,
        '"': _string,
        "'": _string,
    }

    def _next(self, unfinished: str) -> str:
        """Return the next character after blanks and comments."""
        self.position = _after_space(self.text, self.position)
        while match := _COMMENT.match(self.text, self.position):
            self._add_repair("comment")
            self.position = _after_space(self.text, match.end())
        return self._current(unfinished)

    def _current(self, unfinished: str) -> str:
        if self.position >= len(self.text):
            raise self._truncation_error(unfinished)
        return self.text[self.position]

    def _open(self, unclosed: str) -> None:
        self.position += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise JsonReadError(
                f"the JSON is nested too deeply: more than {MAX_DEPTH} levels", code="too_deep", position=self.position
            )
        self._next(unclosed)

    def _close(self) -> None:
        self.position += 1
        self._depth -= 1

    def _add_repair(self, what: str) -> None:
        self._made[what] = self._made.get(what, 0) + 1

    def _token_error(self, what: str) -> JsonReadError:
        """Return the error for a word or number: truncated at the end of an open structure, else malformed."""
        is_truncated = self._depth and _TOKEN.match(self.text, self.position)
        return self._truncation_error("a value is cut off") if is_truncated else self._malformed_error(what)

    def _truncation_error(self, unfinished: str) -> JsonReadError:
        where = f"the JSON ends before it is complete (character {self.position})"
        return JsonReadError(f"{where}: {unfinished}", code="truncated", position=self.position)

    def _malformed_error(self, what: str) -> JsonReadError:
        return JsonReadError(
            f"not valid JSON at character {self.position}: {what}", code="malformed", position=self.position
        )


def unwrap_candidates(value: JsonValue) -> Iterator[tuple[JsonValue, str]]:
    """Yield the values one level inside an answer, each with the repair; the likeliest first.

    >>> [inner for inner, _ in unwrap_candidates({"type": "function", "name": "answer", "parameters": {"a": 1}})]
    [{'a': 1}]
    >>> list(unwrap_candidates({"json": '{"a": 1}'}))
    [({'a': 1}, "the envelope 'json' was taken off; JSON in a string was decoded")]
    """
    for inner, what in _envelopes(value):
        if isinstance(inner, str):
            decoded: JsonValue = None
            with suppress(JsonReadError):
                decoded = read_json(inner)[0]
            if isinstance(decoded, (dict, list)):
                yield decoded, "; ".join(filter(None, [what, "JSON in a string was decoded"]))
        elif what:
            yield inner, what


def _envelopes(value: JsonValue) -> Iterator[tuple[JsonValue, str]]:
    if isinstance(value, str):
        yield value, ""
    if not isinstance(value, dict):
        return
    call = value.get("function")
    if not isinstance(call, dict):
        call = value if "name" in value or value.get("type") == "function" else {}
    for key in ("arguments", "parameters", "input", "args"):
        if key in call:
            yield call[key], f"the function-call envelope ({key!r}) was taken off"
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if isinstance(inner, (dict, list, str)):
            yield inner, f"the envelope {key[:40]!r} was taken off"
