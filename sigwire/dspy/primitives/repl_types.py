"""DSPy's records of a session of code: ``REPLVariable``, ``REPLEntry``, ``REPLHistory``, with the texts of a prompt.

``RLM`` writes its prompts with them. ``SandboxSerializable`` is an input of it that is no JSON: code of its own makes the
variable inside the session.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import TYPE_CHECKING, Self

from sigwire.core.json import JsonObject
from sigwire.core.record import to_plain
from sigwire.signatures.fields import compile_field
from sigwire.signatures.types.base import FieldType

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import CoreSchema

__all__ = ["REPLEntry", "REPLHistory", "REPLVariable", "SandboxSerializable", "SandboxSetup", "build_repl_variable"]


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


class SandboxSerializable(ABC):
    """The base of values that a session gets as data and code, for example a table for an interpreter with pandas.

    ``sandbox_setup`` is code before it (imports), ``to_sandbox`` the data, ``sandbox_assignment(name, data)`` the code that
    assigns the variable from the variable of the data (text if the bytes are UTF-8), ``rlm_preview`` its text in prompts.
    A subclass may be the type of an input.

    >>> class Pairs(SandboxSerializable):
    ...     def sandbox_setup(self):
    ...         return "import json"
    ...     def to_sandbox(self):
    ...         return b'[["a", 1]]'
    ...     def sandbox_assignment(self, var_name, data_expr):
    ...         return f"{var_name} = dict(json.loads({data_expr}))"
    ...     def rlm_preview(self, max_chars=500):
    ...         return "a dict of 1 pair"
    >>> Pairs().to_repl_variable("pairs").preview, SandboxSetup.of({"pairs": Pairs()}).variables
    ('a dict of 1 pair', {'_raw_pairs': '[["a", 1]]'})
    """

    @abstractmethod
    def sandbox_setup(self) -> str: ...

    @abstractmethod
    def to_sandbox(self) -> bytes: ...

    @abstractmethod
    def sandbox_assignment(self, var_name: str, data_expr: str) -> str: ...

    @abstractmethod
    def rlm_preview(self, max_chars: int = 500) -> str: ...

    def to_repl_variable(self, name: str, field_info: FieldInfo | None = None) -> REPLVariable:
        """Return the record of this value for prompts."""
        return build_repl_variable(self, name, field_info)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        from pydantic_core import core_schema

        shown = core_schema.plain_serializer_function_ser_schema(methodcaller("rlm_preview"))
        return core_schema.is_instance_schema(cls, serialization=shown)


def build_repl_variable(obj: SandboxSerializable, name: str, field_info: FieldInfo | None = None) -> REPLVariable:
    """Return the record of a value for prompts: its preview, and in the description the code that ran before it."""
    preview, setup = obj.rlm_preview(), obj.sandbox_setup().strip()
    made = REPLVariable.from_value(name, preview, field_info, len(preview))
    ran = f"The session ran:\n{setup}" if setup else ""
    return replace(made, type_name=type(obj).__name__, desc="\n".join(filter(None, [made.desc, ran])))


@dataclass(frozen=True, slots=True)
class SandboxSetup:
    """The code that makes such variables, and the variables that it reads."""

    code: str
    variables: Mapping[str, str]

    @classmethod
    def of(cls, values: Mapping[str, SandboxSerializable]) -> SandboxSetup:
        """Return the setup of the values by the names of their variables."""
        lines: list[str] = []
        variables: dict[str, str] = {}
        for name, value in values.items():
            raw, data = f"_raw_{name}", value.to_sandbox()
            try:
                variables[raw] = data if isinstance(data, str) else data.decode()
            except UnicodeDecodeError:
                variables[f"{raw}_base64"] = b64encode(data).decode()
                lines += ["import base64", f"{raw} = base64.b64decode({raw}_base64)"]
            lines += [line for line in (value.sandbox_setup(), value.sandbox_assignment(name, raw)) if line]
        return cls("\n".join(lines), variables)


def _ends(text: str, most: int, between: str) -> str:
    """Return the text, or its beginning and end of together ``most`` characters."""
    if len(text) <= most:
        return text
    start = most // 2
    return text[:start] + between + text[len(text) - (most - start) :]
