"""Tool results as the model sees them: values as JSON, media as parts, errors as one line.

Pure: nothing here runs a tool.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from math import isfinite
from os.path import basename, dirname
from traceback import walk_tb
from types import CodeType, GeneratorType
from typing import Any, TypeAlias, cast

from sigwire.core.example import Prediction
from sigwire.core.json import JsonValue, Value, loads
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart
from sigwire.core.record import Record
from sigwire.core.set_order import sort_sets

__all__ = ["SECRET_TEXT", "describe_exception", "encode", "short_message"]

_MEDIA_PARTS = (ImagePart, AudioPart, FilePart)
_SCALARS = frozenset({bool, int, str, type(None)})
_LARGEST = 10**4000  # Python refuses to convert numbers of more than 4300 digits to text
_SMALLEST = -_LARGEST
_CONTAINERS = frozenset({dict, list, tuple})
_LONGEST_MESSAGE = 500
_LONGEST_LINE = 10_000  # characters of a message that are searched for secrets and paths


def encode(value: object) -> tuple[JsonValue, tuple[MediaPart, ...]]:
    """Return a tool's value as JSON content and media. Text stays text; ``bytes`` become base64; NaN becomes text.

    Of a prediction, also inside lists and dicts, only the declared outputs are sent, of a single one its value.
    Media may be the value or inside lists and dicts; the content has a placeholder for each. Sets, ranges, generators and
    arrays become lists. Raises ``ValueError`` for values without a JSON form.

    >>> import datetime
    >>> encode({"on": datetime.date(2026, 1, 2), "tags": {"a"}, "raw": b"\\xff"})
    ({'on': '2026-01-02', 'tags': ['a'], 'raw': '_w=='}, ())
    >>> encode(["a chart", ImagePart(url="https://example.com/c.png")])[0]
    ['a chart', '(image 1)']
    """
    if type(value) in _SCALARS:
        return _scalar(cast("JsonValue", value)), ()
    if (part := _media_part(value)) is not None:
        return "", (part,)
    extractor = _MediaExtractor()
    try:
        content = extractor.copy(value)
        return cast(JsonValue, content) if extractor.is_json else _to_json_value(content), tuple(extractor.media)
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None


def _scalar(value: JsonValue) -> JsonValue:
    """Return a scalar that every JSON encoder accepts: a lone surrogate, as in undecodable file names, becomes its escape."""
    if type(value) is str and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode()
    if type(value) is int and not _SMALLEST < value < _LARGEST:
        raise ValueError("it has a number of thousands of digits")
    return value


def _media_part(value: object) -> MediaPart | None:
    if type(value) in _CONTAINERS:
        return None
    if isinstance(value, _MEDIA_PARTS):
        return value
    # Image, Audio and File, the types of fields, have a method ``part``.
    make = getattr(value, "part", None) if isinstance(value, Value) else None
    return cast("MediaPart", make()) if callable(make) else None


class _MediaExtractor:
    """Copies a value without its media. ``is_json``: all copied values are JSON values."""

    __slots__ = ("is_json", "media")

    def __init__(self) -> None:
        self.is_json = True
        self.media: list[MediaPart] = []

    def copy(self, value: Any) -> object:
        kind = value.__class__
        if kind in _SCALARS:  # the fast path of two scalars that need no check
            return value if kind is bool or (kind is str and value.isascii()) else _scalar(value)
        if kind is dict:
            return self._copy_dict(value)
        if kind in (list, tuple):
            return [self.copy(item) for item in value]
        if kind is float and isfinite(value):
            return value
        return self._copy_other(value)

    def _copy_dict(self, value: dict[Any, Any]) -> dict[object, object]:
        made: dict[object, object] = {}
        for key, item in value.items():
            if key.__class__ is not str:
                self.is_json = False
            made[key] = item if item.__class__ is int and _SMALLEST < item < _LARGEST else self.copy(item)
        return made

    def _copy_other(self, value: Any) -> object:
        if issubclass(type(value), dict):
            self.is_json = False
            return {key: self.copy(item) for key, item in value.items()}
        if isinstance(value, GeneratorType):  # runs the tool's code, whose errors pydantic would hide
            return [self.copy(item) for item in cast("Iterable[object]", value)]
        if isinstance(value, Prediction):
            return self.copy(Prediction.sent_outputs(value))
        part = _media_part(value)
        if part is None:
            self.is_json = False
            return value
        self.media.append(part)
        return f"({part.kind} {len(self.media)})"


def _to_json_value(value: object) -> JsonValue:
    from pydantic_core import PydanticSerializationError, to_json

    without_form = [type(value).__name__]

    def fallback(part: object) -> object:
        without_form.append(type(part).__name__)
        form = _json_form(part)
        without_form.pop()
        return form

    try:
        text = to_json(value, bytes_mode="base64", inf_nan_mode="strings", fallback=fallback).decode()
        made: JsonValue = sort_sets(value, loads(text))
    except (PydanticSerializationError, ValueError) as error:
        raise ValueError(f"a value of the type {without_form[-1]} has no JSON form") from error
    return made


def _json_form(value: object) -> object:
    """Return the JSON form of a value that pydantic does not support. Raises ``ValueError`` if there is none."""
    if isinstance(value, Record):
        return value.toDict()
    if isinstance(value, type):
        raise ValueError("a class is no value")
    for has_form, form in _FORMS:
        if has_form(value):
            return form(value)
    raise ValueError("the value has no JSON form")


_Form: TypeAlias = "tuple[Callable[[Any], bool], Callable[[Any], object]]"
_FORMS: Sequence[_Form] = (
    (lambda value: type(value) is memoryview, lambda value: bytes(value)),
    (lambda value: issubclass(type(value), Mapping), lambda value: dict(value)),
    (lambda value: callable(getattr(value, "to_json", None)), lambda value: value.to_json()),
    (lambda value: callable(getattr(value, "tolist", None)), lambda value: value.tolist()),  # numpy
    (lambda value: issubclass(type(value), (Sequence, Set)), lambda value: list(value)),
)


# An absolute path of two or more segments, on any system; not the path of a URL.
_PATH = re.compile(r"""(?<![\w:/\\.~-])(?:~|[A-Za-z]:)?(?:[/\\]+[^\s/\\'":;,()<>|*?]+){2,}""")
# Secrets by their form (a key, a header, the password in a URL), and values after a name: token=..., "token": "...".
SECRET_TEXT = re.compile(
    r"""\b(?:sk-|xox[a-z]-|gh[pousr]_|AIza)[\w-]{6,} | (?<=bearer\ )[^\s'",]{8,} | (?<=basic\ )[\w+/=]{12,}
    | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)
    | ((?:\w[_-]?key|passwd|password|pwd|secret|signature|token)
       (?:['"]?\s?=\s?['"]?|['"]:\s?['"]|:\s(?=\S{7,}\d)))(?!\.\.\.)[^\s&;'",]+""",
    re.IGNORECASE | re.VERBOSE,
)


def short_message(error: BaseException) -> str:
    """Return an error for the model: its class and first line, without directories and secrets, at most 500 characters.

    >>> short_message(FileNotFoundError(2, "No such file", "/home/ada/orders/2026.csv"))
    "FileNotFoundError: [Errno 2] No such file: '2026.csv'"
    >>> short_message(ValueError("401 for https://shop.example/orders?api_key=abcd1234"))
    'ValueError: 401 for https://shop.example/orders?api_key=***'
    """
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # a user's __str__ may raise
        lines = []
    text = f"{type(error).__name__}: {_masked(lines[0])}" if lines else type(error).__name__
    text = _PATH.sub(lambda found: re.split(r"[/\\]", found[0])[-1], text)
    return text if len(text) <= _LONGEST_MESSAGE else text[: _LONGEST_MESSAGE - 3] + "..."


def describe_exception(name: str, error: BaseException, handler: object) -> tuple[str, str, int]:
    """Return an exception of a tool for its author, without secrets, with file and line: the innermost of the user's code.

    If there is none, as for a value without a JSON form, they are those of the function.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    code: CodeType | None = getattr(handler, "__code__", None)
    last = frames[-1] if code is None else (code.co_filename, code.co_firstlineno)
    of_user = [each for each in frames if not each[0].startswith(_LIBRARIES) and "site-packages" not in each[0]]
    path, line = of_user[-1] if of_user else last
    try:
        shown = _masked(repr(error))[:_LONGEST_MESSAGE]
    except Exception:  # a user's __repr__ may raise
        shown = type(error).__name__
    text = f"{name} raised {shown} at {basename(path)}:{line}; the model got its message and the run continued"
    return text, path, line


def _masked(text: str) -> str:
    return SECRET_TEXT.sub(lambda found: f"{found[1] or ''}***", text[:_LONGEST_LINE])


_LIBRARIES = ("<frozen ", dirname(os.__file__) + os.sep, dirname(dirname(dirname(__file__))) + os.sep)
