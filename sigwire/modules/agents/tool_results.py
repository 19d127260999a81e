"""What a tool gave, as the model gets to see it: values as JSON, media as parts, long text cut in the middle, errors in a line.

Pure: nothing here runs a tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from math import isfinite
from typing import Any, TypeAlias, cast

from sigwire.core.json import JsonValue, Value, dumps, loads
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart
from sigwire.core.record import Record
from sigwire.core.set_order import sort_sets

__all__ = ["encode", "short_message", "shorten"]

_MEDIA_PARTS = (ImagePart, AudioPart, FilePart)
_SCALARS = frozenset({bool, int, str, type(None)})  # most of what a result is made of
_LARGEST = 10**4000  # Python writes no number of more than 4300 digits
_SMALLEST = -_LARGEST
_CONTAINERS = frozenset({dict, list, tuple})
_LONGEST_MESSAGE = 300


def encode(value: Any) -> tuple[JsonValue, tuple[MediaPart, ...]]:
    """A tool's value as JSON content and media. Text stays text; ``bytes`` become base64; NaN becomes text.

    Media stand alone or in a list or dict; where they stood, the content says so. Whatever has elements (sets, ranges,
    generators, arrays) becomes a list. Raises ``ValueError`` for what has no JSON form.

    >>> import datetime
    >>> encode({"on": datetime.date(2026, 1, 2), "tags": {"a"}, "raw": b"\\xff"})
    ({'on': '2026-01-02', 'tags': ['a'], 'raw': '_w=='}, ())
    >>> encode(["a chart", ImagePart(url="https://example.com/c.png")])[0]
    ['a chart', '(image 1)']
    """
    if type(value) in _SCALARS:
        return _scalar(value), ()
    if (part := _media_part(value)) is not None:
        return "", (part,)
    reading = _MediaExtractor()
    try:
        content = reading.read(value)
        return content if reading.is_json else _jsonable(content), tuple(reading.media)
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None


def _scalar(value: Any) -> Any:
    """A scalar that every JSON writer takes: half a surrogate pair, as in odd file names, is written as its escape."""
    if type(value) is str and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode()
    if type(value) is int and not _SMALLEST < value < _LARGEST:
        raise ValueError("it has a number of thousands of digits")
    return value


def _media_part(value: Any) -> MediaPart | None:
    if type(value) in _CONTAINERS:
        return None
    if isinstance(value, _MEDIA_PARTS):
        return value
    # The field types Image, Audio and File know the part they are.
    make = getattr(value, "part", None) if isinstance(value, Value) else None
    return cast("MediaPart", make()) if callable(make) else None


class _MediaExtractor:
    """A copy of a value without its media. ``is_json``: nothing was met that JSON cannot hold as it stands."""

    __slots__ = ("is_json", "media")

    def __init__(self) -> None:
        self.is_json = True
        self.media: list[MediaPart] = []

    def read(self, value: Any) -> Any:
        kind = value.__class__
        if kind in _SCALARS:  # the two that need no second look do not pay for one
            return value if kind is bool or (kind is str and value.isascii()) else _scalar(value)
        if kind is dict:
            return self._read_dict(value)
        if kind in (list, tuple):
            return [self.read(item) for item in value]
        if kind is float and isfinite(value):
            return value
        return self._read_other(value)

    def _read_dict(self, value: dict[Any, Any]) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, item in value.items():
            if key.__class__ is not str:
                self.is_json = False
            made[key] = item if item.__class__ is int and _SMALLEST < item < _LARGEST else self.read(item)
        return made

    def _read_other(self, value: Any) -> Any:
        if issubclass(type(value), dict):
            self.is_json = False
            return {key: self.read(item) for key, item in value.items()}
        part = _media_part(value)
        if part is None:
            self.is_json = False
            return value
        self.media.append(part)
        return f"({part.kind} {len(self.media)})"


def _jsonable(value: Any) -> JsonValue:
    from pydantic_core import PydanticSerializationError, to_json

    without_form = [type(value).__name__]

    def own_form(part: Any) -> Any:
        without_form.append(type(part).__name__)
        form = _own_form(part)
        without_form.pop()
        return form

    try:
        text = to_json(value, bytes_mode="base64", inf_nan_mode="strings", fallback=own_form).decode()
        made = sort_sets(value, loads(text))
    except (PydanticSerializationError, ValueError) as fault:
        raise ValueError(f"a value of the type {without_form[-1]} has no JSON form") from fault
    return made


def _own_form(value: Any) -> Any:
    """What to write for a value that pydantic does not know. Raises ``ValueError`` where there is nothing."""
    if isinstance(value, Record):
        return value.toDict()
    if isinstance(value, type):
        raise ValueError("a class is no value")
    for has_form, form in _FORMS:
        if has_form(value):
            return form(value)
    raise ValueError("nothing to write")


_Form: TypeAlias = "tuple[Callable[[Any], bool], Callable[[Any], Any]]"
_FORMS: Sequence[_Form] = (
    (lambda value: type(value) is memoryview, lambda value: bytes(value)),
    (lambda value: issubclass(type(value), Mapping), lambda value: dict(cast("Mapping[Any, Any]", value))),
    (lambda value: callable(getattr(value, "to_json", None)), lambda value: value.to_json()),
    (lambda value: callable(getattr(value, "tolist", None)), lambda value: value.tolist()),  # numpy's
    (lambda value: issubclass(type(value), (Sequence, Set)), lambda value: list(cast("Iterable[Any]", value))),
)


def shorten(content: JsonValue, characters: int | None) -> JsonValue:
    """The content, or where its text is longer than that many characters, its beginning and end around a note.

    >>> limit("abcdefghij" * 3, 10)
    'abcdefg\\n[... 20 of 30 characters omitted ...]\\nhij'
    """
    if characters is None:
        return content
    text = content if isinstance(content, str) else dumps(content)
    if len(text) <= characters:
        return content
    head = characters * 2 // 3 + 1 if characters else 0
    tail = characters - head
    left_out = f"[... {len(text) - characters} of {len(text)} characters omitted ...]"
    return f"{text[:head]}\n{left_out}\n{text[len(text) - tail :]}"


# An absolute path of two or more steps, on any system; not the path of a URL.
_PATH = re.compile(r"""(?<![\w:/\\.~-])(?:~|[A-Za-z]:)?(?:[/\\]+[^\s/\\'":;,()<>|*?]+){2,}""")


def short_message(error: BaseException) -> str:
    """An error for the model: its class and first line, without paths, at most 300 characters.

    >>> short_message(FileNotFoundError(2, "No such file", "/home/ada/orders/2026.csv"))
    "FileNotFoundError: [Errno 2] No such file: '2026.csv'"
    """
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # a user's __str__ may fail too
        lines = []
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    text = _PATH.sub(lambda found: re.split(r"[/\\]", found[0])[-1], text)
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 3] + "..."
