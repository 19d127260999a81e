"""JSON as models write it: read strictly when possible, else with repairs that are all listed.

``read_json`` tries strict JSON first. Then a reader of our own goes through the text once, from left to right, and forgives
a closed list of faults: fences and prose around the JSON, comments, trailing commas, single quotes, unquoted keys, Python's
``True False None``, raw line breaks in strings, unknown escapes, repeated keys, odd number spellings. Each one is in the
repairs. It never adds what is not there: a structure that is not closed is ``truncated``, not completed; ``NaN`` is refused;
of two JSON values none is chosen. Every fault is a ``JsonReadError``; depth is bounded and the work is linear in the text.

``unwrapped`` gives what an answer holds one level down ({"json": {...}}, a function-call envelope, JSON in a string). Which of
them fits is decided by whoever knows the type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from sigwire.core.json import JsonValue, loads
from sigwire.core.response import Repair
from sigwire.errors import JsonReadError

__all__ = ["MAX_DEPTH", "JsonKind", "read_json", "unwrap_candidates"]

JsonKind: TypeAlias = Literal["object", "array"]

MAX_DEPTH = 200
_MAX_STARTS = 8  # places tried in a text full of braces; each costs one walk at most

_FENCE = re.compile(r"```[\w+-]*[ \t]*\r?\n\s*")
_SPACE = re.compile(r"[\s\ufeff]*")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?(?![\w.])", re.ASCII)
_LOOSE_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII)
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

# What may follow a bracket that begins JSON; "{x | x > 0}" in prose is no object.
_OBJECT = r"""\{(?=\s*(?:["'}]|[\w$][\w$-]*["']?\s*:|//|/\*|\#))"""
_ARRAY = r"""\[(?=\s*(?:["'\[\]{+.\d-]|(?:true|false|null|True|False|None)\b|//|/\*|\#))"""
_OPENERS: Mapping[str | None, re.Pattern[str]] = {
    "object": re.compile(_OBJECT),
    "array": re.compile(_ARRAY),
    None: re.compile(f"{_OBJECT}|{_ARRAY}"),
}


def read_json(text: str, strict: bool = False, *, kind: JsonKind | None = None) -> tuple[JsonValue, tuple[Repair, ...]]:
    """The JSON value in a text, and what had to be repaired to read it.

    ``kind`` says what to look for where prose stands around the JSON. Raises ``JsonReadError`` and nothing else; with
    ``strict`` for everything that needs a repair.

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
        value, repairs = _read_tolerantly(text, kind)
    except RecursionError:
        raise JsonReadError("the JSON is nested too deeply", code="too_deep") from None
    return value, repairs or (Repair(None, f"not strict JSON: {reason}"),)


# --- finding the JSON ------------------------------------------------------------------------------


def _read_tolerantly(text: str, kind: JsonKind | None) -> tuple[JsonValue, tuple[Repair, ...]]:
    first: JsonReadError | None = None
    for start in _starts(text, kind):
        reader = _JsonParser(text, start)
        try:
            value = reader.read()
        except JsonReadError as fault:
            if fault.code != "malformed":  # what is cut off here must not be found again further in
                raise
            first = first or fault
            continue
        return value, _around(text, start, reader, kind)
    raise first or JsonReadError("there is no JSON in the text", code="not_json")


def _starts(text: str, kind: JsonKind | None) -> Iterator[int]:
    """Where JSON may begin, best place first: the whole text, a fence, a line, anywhere."""
    begin = _after_space(text, 0)
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


def _around(text: str, start: int, reader: _JsonParser, kind: JsonKind | None) -> tuple[Repair, ...]:
    """The repairs of a reading, with what was left out around it."""
    before, after = text[:start].replace("\ufeff", "").strip(), text[reader.position :].strip()
    if fenced := _FENCE.fullmatch(text[:start].lstrip()) is not None:
        before = ""
    elif before.endswith(("```", "```json")):
        fenced = True
    if fenced:
        after = after.removeprefix("```").strip()
    if (before or after) and not isinstance(reader.value, (dict, list)):
        raise JsonReadError("there is no JSON in the text", code="not_json")
    _refuse_a_second(after, reader.value, kind)
    repairs = ["a code fence was taken off"] if fenced else []
    repairs += ["text before the JSON was left out"] if before else []
    repairs += reader.repairs()
    repairs += ["text after the JSON was left out"] if after else []
    return tuple(Repair(None, what) for what in repairs)


def _refuse_a_second(after: str, value: JsonValue, kind: JsonKind | None) -> None:
    """Two values of the kind that is looked for: which one is meant cannot be known, unless they are equal."""
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


# --- reading it ----------------------------------------------------------------------------------------


class _JsonParser:
    """One walk through one JSON value. Remembers where it is and which repairs it made."""

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
        """What was repaired, each kind once, with how often."""
        return [what if count == 1 else f"{what} ({count} times)" for what, count in self._made.items()]

    # --- the grammar -----------------------------------------------------------------------------------

    def _value(self) -> Any:
        character = self._next("a value is missing")
        read = self._READERS.get(character)
        if read is not None:
            return read(self)
        return self._number() if character in "+-.0123456789" else self._word()

    def _object(self) -> dict[str, Any]:
        self._enter("an object is not closed")
        members: dict[str, Any] = {}
        while (character := self._next("an object is not closed")) != "}":
            key = self._key(character)
            if self._next("an object is not closed") != ":":
                raise self._malformed(f"after the key {key[:40]!r} there is no ':'")
            self.position += 1
            if key in members:
                self._repaired("a key came twice, the last one counts")
            members[key] = self._value()
            self._separator("}", "an object is not closed")
        self._leave()
        return members

    def _array(self) -> list[Any]:
        self._enter("an array is not closed")
        items: list[Any] = []
        while self._next("an array is not closed") != "]":
            items.append(self._value())
            self._separator("]", "an array is not closed")
        self._leave()
        return items

    def _separator(self, closing: str, unclosed: str) -> None:
        character = self._next(unclosed)
        if character == ",":
            self.position += 1
            if self._next(unclosed) == closing:
                self._repaired("trailing comma")
        elif character != closing:
            raise self._malformed(f"',' or '{closing}' is missing")

    def _key(self, character: str) -> str:
        if character in _PLAIN:
            return self._string()
        match = _KEY.match(self.text, self.position)
        if match is None:
            raise self._malformed("a key is missing")
        self.position = match.end()
        self._repaired("unquoted key")
        return match[0]

    def _string(self) -> str:
        quote = self.text[self.position]
        if quote == "'":
            self._repaired("single quotes")
        self.position += 1
        plain = _PLAIN[quote]
        pieces: list[str] = []
        while True:
            if match := plain.match(self.text, self.position):
                pieces.append(match[0])
                self.position = match.end()
            character = self._here("a string is not closed")
            self.position += 1
            if character == quote:
                return "".join(pieces)
            if character == "\\":
                pieces.append(self._escape())
            else:
                self._repaired("line break or control character in a string")
                pieces.append(character)

    def _escape(self) -> str:
        character = self._here("a string is not closed")
        self.position += 1
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "u" and (match := _HEX.match(self.text, self.position)):
            self.position = match.end()
            return self._joined(int(match[0], 16))
        if character == "'":
            self._repaired("escaped single quote")
            return character
        self._repaired("unknown escape, kept as it is written")
        return "\\" + character

    def _joined(self, unit: int) -> str:
        """A character from its UTF-16 unit and, where it is the first half of a pair, the next one."""
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
            match = _LOOSE_NUMBER.match(self.text, self.position)
            if match is None:
                raise self._unreadable("a number is not written as JSON")
            self._repaired("odd spelling of a number")
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
            raise self._unreadable(f"{word[:40]!r} is not a JSON value")
        self.position += len(word)
        value, is_json = _WORDS[word]
        if not is_json:
            self._repaired("Python literal")
        return value

    _READERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "{": _object, "[": _array, '"': _string, "'": _string,
    }  # fmt: skip

    # --- moving ------------------------------------------------------------------------------------------

    def _next(self, unfinished: str) -> str:
        """The next character that means something; blanks and comments are passed."""
        self.position = _after_space(self.text, self.position)
        while match := _COMMENT.match(self.text, self.position):
            self._repaired("comment")
            self.position = _after_space(self.text, match.end())
        return self._here(unfinished)

    def _here(self, unfinished: str) -> str:
        if self.position >= len(self.text):
            raise self._truncated(unfinished)
        return self.text[self.position]

    def _enter(self, unclosed: str) -> None:
        self.position += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise JsonReadError(
                f"the JSON is nested too deeply: more than {MAX_DEPTH} levels", code="too_deep", position=self.position
            )
        self._next(unclosed)

    def _leave(self) -> None:
        self.position += 1
        self._depth -= 1

    def _repaired(self, what: str) -> None:
        self._made[what] = self._made.get(what, 0) + 1

    def _unreadable(self, what: str) -> JsonReadError:
        """The fault of a word or number: at the very end of an open structure it is half of one."""
        half = self._depth and _TOKEN.match(self.text, self.position)
        return self._truncated("a value is cut off") if half else self._malformed(what)

    def _truncated(self, unfinished: str) -> JsonReadError:
        where = f"the JSON ends before it is complete (character {self.position})"
        return JsonReadError(f"{where}: {unfinished}", code="truncated", position=self.position)

    def _malformed(self, what: str) -> JsonReadError:
        return JsonReadError(
            f"not valid JSON at character {self.position}: {what}", code="malformed", position=self.position
        )


# --- one level down ------------------------------------------------------------------------------------


def unwrap_candidates(value: JsonValue) -> Iterator[tuple[JsonValue, str]]:
    """What an answer may hold one level down, with what was taken off; the likeliest first.

    >>> [inner for inner, _ in unwrapped({"type": "function", "name": "answer", "parameters": {"a": 1}})]
    [{'a': 1}]
    >>> list(unwrapped({"json": '{"a": 1}'}))
    [({'a': 1}, "the envelope 'json' was taken off; JSON in a string was decoded")]
    """
    for inner, what in _envelopes(value):
        if isinstance(inner, str):
            decoded = _decoded(inner)
            if isinstance(decoded, (dict, list)):
                yield decoded, "; ".join(filter(None, [what, "JSON in a string was decoded"]))
        elif what:
            yield inner, what


def _envelopes(value: JsonValue) -> Iterator[tuple[JsonValue, str]]:
    if isinstance(value, str):
        yield value, ""
    if not isinstance(value, dict):
        return
    call = value.get("function") if isinstance(value.get("function"), dict) else value
    if isinstance(call, dict) and (call is not value or "name" in call or value.get("type") == "function"):
        for key in ("arguments", "parameters", "input", "args"):
            if key in call:
                yield call[key], f"the function-call envelope ({key!r}) was taken off"
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if isinstance(inner, (dict, list, str)):
            yield inner, f"the envelope {key[:40]!r} was taken off"


def _decoded(text: str) -> JsonValue:
    try:
        return read_json(text)[0]
    except JsonReadError:
        return None
