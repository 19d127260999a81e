"""The names of ``dspy.primitives``: records, ``Module``, interpreters. DSPy's modules below it are this module."""

from __future__ import annotations

from sigwire.core.example import Completions, Example, Prediction
from sigwire.dspy.modules import Module
from sigwire.dspy.paths import add_paths
from sigwire.dspy.primitives.interpreters import (
    CodeExecutionError,
    CodeInterpreter,
    CodeInterpreterError,
    FinalOutput,
    LocalInterpreter,
    PythonInterpreter,
)

__all__ = [
    "BaseModule", "CodeExecutionError", "CodeInterpreter", "CodeInterpreterError", "Completions", "Example", "FinalOutput",
    "LocalInterpreter", "Module", "Prediction", "PythonInterpreter",
]  # fmt: skip

BaseModule = Module

add_paths(
    __name__, "base_module code_interpreter example local_interpreter module prediction program python_interpreter"
)
