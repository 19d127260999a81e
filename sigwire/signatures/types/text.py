"""Reasoning and Code: text with a meaning, read from the text of a model.

Models usually write code in fences, so ``Code.read`` removes fences. ``Code.to_json`` adds a fence to code that contains
fences, so that reading its result gives equal code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Self

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_mapping
from sigwire.errors import InputError
from sigwire.show.values import MOST_IN_REPR, call_line, short_repr
from sigwire.signatures.types.base import FieldType

__all__ = ["Code", "Reasoning", "fenced_blocks"]


class Reasoning(str, FieldType):
    """The reasoning of a model before its answer: a ``str`` with its own role in a signature.

    >>> thought = Reasoning("2 + 2 is 4")
    >>> thought.content, "4" in thought, thought + "."
    ('2 + 2 is 4', True, '2 + 2 is 4.')
    """

    __slots__ = ()

    def __new__(cls, content: str = "") -> Self:
        return super().__new__(cls, content)

    @property
    def content(self) -> str:
        """The text as a plain string."""
        return str.__str__(self)

    @classmethod
    def read(cls, value: object) -> Self:
        if isinstance(value, str):
            return value if isinstance(value, cls) else cls(value)
        if is_mapping(value) and isinstance(value.get("content"), str):
            return cls(value["content"])
        raise ValueError(f"Reasoning is text, not {type(value).__name__}.")

    @classmethod
    def json_schema(cls) -> JsonObject:
        return {"type": "string"}

    def to_json(self) -> str:
        return self.content


@dataclass(frozen=True, slots=True, repr=False)
class Code(FieldType):
    """Source text. ``Code["java"]`` is the type of another language; ``language`` is a class attribute.

    mypy parses a string in brackets as a type; a subclass works with every checker: ``class Java(Code): language = "java"``.
    ``Code(text)`` removes a markdown fence of the language around the whole text; ``Code.read`` (for text of a model) every
    fence. Raises ``InputError`` for a value that is no text.

    >>> Code("print(1)").code, Code["java"].language, Code["java"] is Code["java"]
    ('print(1)', 'java', True)
    >>> Code("```python\\nprint(1)\\n```").code
    'print(1)'
    >>> Code.read("Here it is:\\n```python\\nprint(1)\\n```\\nEnjoy.").code
    'print(1)'
    """

    code: str
    language: ClassVar[str] = "python"

    def __post_init__(self) -> None:
        if not isinstance(self.code, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped callers
            raise InputError(f"Code is text, not {type(self.code).__name__}. Write {type(self).__name__}('...').")
        object.__setattr__(self, "code", _unwrap(self.code, self.language))

    def __class_getitem__(cls, language: str) -> type[Code]:
        return _code_in(str(language).lower())

    @classmethod
    def read(cls, value: object) -> Self:
        if isinstance(value, Code):
            return value if isinstance(value, cls) else cls(value.code)
        if is_mapping(value) and isinstance(value.get("code"), str):
            return cls(value["code"])
        if isinstance(value, str):
            return cls(_unfence(value, cls.language))
        raise ValueError(f"Code is text, or an object with a text 'code', not {type(value).__name__}.")

    @classmethod
    def json_schema(cls) -> JsonObject:
        return {"type": "string", "description": f"{cls.language} source code"}

    def to_json(self) -> str:
        """Return the text for a model or a file; in a fence only if it contains fences."""
        return self.code if _unfence(self.code, self.language) == self.code else self.fenced()

    def fenced(self) -> str:
        """Return the code in a markdown fence that is longer than every fence inside.

        >>> print(Code("print(1)").fenced())
        ```python
        print(1)
        ```
        """
        longest = max((len(run) for run in re.findall(r"`{3,}", self.code)), default=2)
        fence = "`" * (longest + 1)
        return f"{fence}{self.language}\n{self.code}\n{fence}"

    def __reduce__(self) -> tuple[object, ...]:
        kind = type(self)
        if kind is not _code_in(self.language):
            return kind, (self.code,)
        return _code, (self.language, self.code)  # pickle cannot find classes of other languages by name

    def __str__(self) -> str:
        return self.code

    def __repr__(self) -> str:
        kind = type(self)
        language = f"[{self.language!r}]" if kind is not Code and kind is _code_in(self.language) else ""
        return call_line(f"{kind.__name__}{language}", [short_repr(self.code, MOST_IN_REPR)])


@cache
def _code_in(language: str) -> type[Code]:
    if language == Code.language:
        return Code
    names = {"__module__": Code.__module__, "__qualname__": f"Code[{language}]"}
    return type("Code", (Code,), {"__slots__": (), "language": language, **names})


def __getattr__(name: str) -> type[Code]:
    """Return ``Code`` of another language by its qualified name, which pickles hold."""
    if name.startswith("Code["):
        return _code_in(name[5:-1])
    raise AttributeError(f"{__name__} has no name {name!r}.")


def _code(language: str, code: str) -> Code:
    return _code_in(language)(code)


_OPENING = re.compile(r"(?P<fence>`{3,})(?P<info>[^`]*)")


def _unwrap(text: str, language: str) -> str:
    """Return the text without fences of the language around all of it."""
    lines = text.strip().split("\n") if "```" in text else []
    opening = _OPENING.fullmatch(lines[0]) if len(lines) > 1 else None
    if opening is None or lines[-1] != opening["fence"] or lines[-1] in lines[1:-1]:
        return text
    tag = next(iter(opening["info"].split()), "").lower()
    return _unwrap("\n".join(lines[1:-1]), language) if tag == language else text


def _unfence(text: str, language: str) -> str:
    """Return the fenced blocks of the language, else all blocks; a text without fences unchanged."""
    if "```" not in text:
        return text
    blocks = list(fenced_blocks(text.split("\n")))
    if not blocks:
        return text
    wanted = [body for tag, body in blocks if tag == language] or [body for _, body in blocks]
    return "\n\n".join(wanted)


def fenced_blocks(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield tag and body of each block. An unclosed fence is text; closing fences are searched once, in linear time."""
    closings: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if line.startswith("```") and not (fence := line.rstrip(" \t\r")).strip("`"):
            closings.setdefault(fence, []).append(at)
    at = 0
    while at < len(lines):
        opening = _OPENING.fullmatch(lines[at])
        ends = closings.get(opening["fence"], []) if opening else []
        nearest = bisect_right(ends, at)
        if opening and nearest < len(ends):
            info, body = opening["info"], "\n".join(lines[at + 1 : ends[nearest]])
            yield next(iter(info.split()), "").lower(), body.removesuffix("\r") if info.endswith("\r") else body
            at = ends[nearest]
        at += 1
