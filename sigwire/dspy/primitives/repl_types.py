"""DSPy's records of a session of code: ``REPLVariable``, ``REPLEntry``, ``REPLHistory``, with the texts of a prompt.

``RLM`` writes its prompts with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from sigwire.core.json import JsonObject
from sigwire.core.record import to_plain
from sigwire.signatures.fields import compile_field
from sigwire.signatures.types.base import FieldType

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["REPLEntry", "REPLHistory", "REPLVariable"]


@dataclass(frozen=True, slots=True)
class REPLVariable:
    """A variable of the session: its type, size in characters and beginning and end.

    >>> print(REPLVariable.from_value("page", "a long text", preview_chars=4).format())
    Variable: `page`
    Type: str
    Total length: 11 characters
    Preview:
    a ...xt
    """

    name: str
    type_name: str
    total_length: int
    preview: str
    desc: str = ""
    constraints: str = ""

    @classmethod
    def from_value(
        cls, name: str, value: object, field_info: FieldInfo | None = None, preview_chars: int = 1000
    ) -> REPLVariable:
        """Return the record of a value; ``field_info`` is its ``InputField``, with description and constraints."""
        plain = to_plain(value)
        text = json.dumps(plain, indent=2) if isinstance(plain, (dict, list)) else str(plain)
        field = None if field_info is None else compile_field(name, type(value), field_info)
        return cls(
            name,
            type(value).__name__,
            len(text),
            _ends(text, preview_chars, "..."),
            field.description if field else "",
            field.constraints if field else "",
        )

    def format(self) -> str:
        """Return the text of a prompt."""
        known = {"Description": self.desc, "Constraints": self.constraints}
        return "\n".join(
            [
                f"Variable: `{self.name}`",
                f"Type: {self.type_name}",
                *(f"{title}: {text}" for title, text in known.items() if text),
                f"Total length: {self.total_length:,} characters",
                f"Preview:\n{self.preview}",
            ]
        )


@dataclass(frozen=True, slots=True)
class REPLEntry:
    """One turn of the session."""

    code: str
    output: str
    reasoning: str = ""

    def format(self, index: int, max_output_chars: int = 10_000) -> str:
        """Return the text of a prompt; ``index`` counts from 0. A longer output keeps its beginning and end."""
        omitted = f"\n... {len(self.output) - max_output_chars:,} characters omitted ...\n"
        shown = _ends(self.output, max_output_chars, omitted)
        thought = f"{self.reasoning}\n" if self.reasoning else ""
        return f"Step {index + 1}\n{thought}```python\n{self.code}\n```\nOutput ({len(self.output):,} chars):\n{shown}"


@dataclass(frozen=True, slots=True)
class REPLHistory(FieldType):
    """The turns of a session; ``append`` returns a longer history. As an input of a signature it is its text.

    ``saved`` is the text of a history that was saved, in a demo.

    >>> turns = REPLHistory().append(code="print(1)", output="1")
    >>> len(turns), [turn.output for turn in turns], bool(REPLHistory())
    (1, ['1'], False)
    """

    entries: tuple[REPLEntry, ...] = ()
    max_output_chars: int = 10_000
    saved: str = ""

    def append(self, *, code: str, output: str, reasoning: str = "") -> REPLHistory:
        """Return the history with one more turn."""
        return replace(self, entries=(*self.entries, REPLEntry(code, output, reasoning)))

    def format(self) -> str:
        """Return the text of a prompt."""
        turns = [entry.format(number, self.max_output_chars) for number, entry in enumerate(self.entries)]
        return "\n".join(turns) or self.saved or "You have not interacted with the REPL."

    @classmethod
    def read(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(saved=value)
        raise ValueError(f"A history of a session is a REPLHistory or its text, not {type(value).__name__}.")

    @classmethod
    def json_schema(cls) -> JsonObject:
        return {"type": "string"}

    def to_json(self) -> str:
        return self.format()

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[REPLEntry]:
        return iter(self.entries)


def _ends(text: str, most: int, between: str) -> str:
    """Return the text, or its beginning and end of together ``most`` characters."""
    if len(text) <= most:
        return text
    start = most // 2
    return text[:start] + between + text[len(text) - (most - start) :]
