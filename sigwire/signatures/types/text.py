"""Reasoning and Code: text with a meaning.

Both are read from what a model writes. Code comes in fences more often than not, so ``Code.read`` unwraps them, and
``Code.to_json`` wraps the rare code that would itself be taken for fenced: reading what was written gives it back
exactly.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

from sigwire.signatures.types.base import FieldType, as_mapping

__all__ = ["Code", "Reasoning"]


class Reasoning(str, FieldType):
    """What the model thinks before it answers. A ``str`` in every respect, with its own role in a signature.

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
    def read(cls, value: Any) -> Self:
        if isinstance(value, str):
            return value if isinstance(value, cls) else cls(value)
        if (fields := as_mapping(value)) and isinstance(fields.get("content"), str):
            return cls(fields["content"])
        raise ValueError(f"Reasoning is text, not {type(value).__name__}.")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        return {"type": "string"}

    def to_json(self) -> str:
        return self.content


@dataclass(frozen=True, slots=True, repr=False)
class Code(FieldType):
    """Source text. ``Code["java"]`` is the same for another language; ``language`` is a class attribute.

    mypy takes a text in brackets for a type's name; a subclass suits every checker: ``class Java(Code): language = "java"``.
    ``Code(text)`` keeps the text as it is; ``Code.read`` (what a model wrote) takes it out of markdown fences.

    >>> Code("print(1)").code, Code["java"].language, Code["java"] is Code["java"]
    ('print(1)', 'java', True)
    >>> Code.read("Here it is:\\n```python\\nprint(1)\\n```\\nEnjoy.").code
    'print(1)'
    """

    code: str
    language: ClassVar[str] = "python"

    def __class_getitem__(cls, language: str) -> type[Code]:
        return _code_in(str(language).lower())

    @classmethod
    def read(cls, value: Any) -> Self:
        if isinstance(value, Code):
            return value if isinstance(value, cls) else cls(value.code)
        if (fields := as_mapping(value)) and isinstance(fields.get("code"), str):
            return cls(fields["code"])
        if isinstance(value, str):
            return cls(_unfence(value, cls.language))
        raise ValueError(f"Code is text, or an object with a text 'code', not {type(value).__name__}.")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        return {"type": "string", "description": f"{cls.language} source code"}

    def to_json(self) -> str:
        """The text for a model or a file; in a fence only where it would be misread without one."""
        return self.code if _unfence(self.code, self.language) == self.code else self.fenced()

    def fenced(self) -> str:
        """The code in a markdown fence that is longer than any inside.

        >>> print(Code("print(1)").fenced())
        ```python
        print(1)
        ```
        """
        longest = max((len(run) for run in re.findall(r"`{3,}", self.code)), default=2)
        fence = "`" * (longest + 1)
        return f"{fence}{self.language}\n{self.code}\n{fence}"

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        if kind is not _code_in(self.language):
            return kind, (self.code,)
        return _code, (self.language, self.code)  # classes of other languages are not found by name

    def __str__(self) -> str:
        return self.code

    def __repr__(self) -> str:
        kind = type(self)
        language = f"[{self.language!r}]" if kind is not Code and kind is _code_in(self.language) else ""
        return f"{kind.__name__}{language}({self.code!r})"


@cache
def _code_in(language: str) -> type[Code]:
    if language == Code.language:
        return Code
    return type("Code", (Code,), {"__slots__": (), "__module__": Code.__module__, "language": language})


def _code(language: str, code: str) -> Code:
    return _code_in(language)(code)


_OPENING = re.compile(r"(?P<fence>`{3,})(?P<info>[^`]*)")


def _unfence(text: str, language: str) -> str:
    """The fenced blocks in the wanted language, else all of them; a text without fences as it is."""
    if "```" not in text:
        return text
    blocks = list(_blocks(text.split("\n")))
    if not blocks:
        return text
    wanted = [body for tag, body in blocks if tag == language] or [body for _, body in blocks]
    return "\n\n".join(wanted)


def _blocks(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Tag and body of each block. A fence that is never closed is text; which ones are is found out once for all."""
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
