"""``SandboxSerializable``: an input of ``RLM`` that is no JSON; code of its own makes the variable inside the session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sigwire.dspy.primitives.repl_types import REPLVariable
from sigwire.signatures.fields import compile_field

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import CoreSchema

__all__ = ["SandboxSerializable", "SandboxSetup", "build_repl_variable"]


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

        return core_schema.is_instance_schema(
            cls, serialization=core_schema.plain_serializer_function_ser_schema(_preview)
        )


def _preview(value: SandboxSerializable) -> str:
    return value.rlm_preview()


def build_repl_variable(obj: SandboxSerializable, name: str, field_info: FieldInfo | None = None) -> REPLVariable:
    """Return the record of a value for prompts: its preview, and in the description the code that ran before it."""
    preview, setup = obj.rlm_preview(), obj.sandbox_setup().strip()
    made = REPLVariable(name, type(obj).__name__, len(preview), preview)
    if field_info is not None:
        field = compile_field(name, type(obj), field_info)
        made = replace(made, desc=field.description, constraints=field.constraints)
    ran = f"The session ran:\n{setup}" if setup else ""
    return replace(made, desc="\n".join(filter(None, [made.desc, ran])))


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
