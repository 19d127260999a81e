"""The names of ``dspy.primitives``: records and ``Module``. DSPy's modules below it are this module."""

from __future__ import annotations

from sigwire.core.example import Completions, Example, Prediction
from sigwire.dspy.modules import Module
from sigwire.dspy.paths import add_paths

__all__ = ["BaseModule", "Completions", "Example", "Module", "Prediction"]

BaseModule = Module

add_paths(__name__, "base_module example module prediction program")
