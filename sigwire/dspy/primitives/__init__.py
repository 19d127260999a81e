"""The names of ``dspy.primitives``: records, ``Module``, interpreters. DSPy's modules below it are this module.

interpreters  the protocol, its errors, PythonInterpreter      foreign_code          interpreters of DSPy's protocol, used here
repl_types    records of a session of code, and inputs of RLM that are no JSON
"""

from __future__ import annotations

import ast
from typing import Any

from sigwire.core.example import Completions, Example, Prediction
from sigwire.dspy.missing import advise
from sigwire.dspy.modules import Module
from sigwire.dspy.paths import add_paths
from sigwire.dspy.primitives import repl_types as sandbox_serializable
from sigwire.dspy.primitives.interpreters import (
    CodeExecutionError,
    CodeInterpreter,
    CodeInterpreterError,
    FinalOutput,
    LocalInterpreter,
    PythonInterpreter,
)
from sigwire.dspy.primitives.repl_types import REPLEntry, REPLHistory, REPLVariable, SandboxSerializable
from sigwire.errors import ConfigurationError

__all__ = [
    "BaseModule", "CodeExecutionError", "CodeInterpreter", "CodeInterpreterError", "Completions", "Example", "FinalOutput",
    "LocalInterpreter", "Module", "Prediction", "PythonInterpreter", "REPLEntry", "REPLHistory", "REPLVariable",
    "SandboxSerializable", "sandbox_serializable", "set_attribute_by_name",
]  # fmt: skip

BaseModule = Module


def set_attribute_by_name(obj: object, name: str, value: object) -> None:
    """Set an attribute by its path of attributes, keys and indices.

    >>> program = Module()
    >>> program.parts = [{"first": Module()}]
    >>> set_attribute_by_name(program, "parts[0]['first'].note", "new")
    >>> program.parts[0]["first"].note
    'new'
    """
    path = ast.parse(f"_.{name}", mode="eval").body
    if not isinstance(path, ast.Attribute):
        raise ConfigurationError(f"{name!r} ends with no attribute (setting it). Write 'parts[0].name'.")
    setattr(_value_at(path.value, obj), path.attr, value)


def _value_at(path: ast.expr, obj: object) -> Any:
    if isinstance(path, ast.Attribute):
        return getattr(_value_at(path.value, obj), path.attr)
    return _value_at(path.value, obj)[ast.literal_eval(path.slice)] if isinstance(path, ast.Subscript) else obj


add_paths(
    __name__, "base_module code_interpreter example local_interpreter module prediction program python_interpreter"
)
add_paths("sigwire.dspy.primitives.repl_types", "sandbox_serializable", __name__)
advise(__name__)
