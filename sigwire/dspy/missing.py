"""The names of DSPy that the door lacks on purpose, each with what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["INSTEAD", "advice"]

_NO_CODE = "No code of a model is run. Give a `ReAct` a tool of yours that runs code in your sandbox."
_RETRIEVAL = "`Embeddings` searches a corpus of yours; a function of yours may be a tool of a `ReAct`."

INSTEAD: Mapping[str, str] = {
    "CodeAct": _NO_CODE,
    "ProgramOfThought": _NO_CODE,
    "PythonInterpreter": _NO_CODE,
    "RLM": _NO_CODE,
    "ColBERTv2": _RETRIEVAL,
}  # fmt: skip


def advice(name: str) -> str:
    """Return what to use instead of a name of DSPy, else the way to list the names there are.

    >>> advice("CodeAct")[:24], advice("Predictor")
    ('No code of a model is ru', 'dir(sigwire.dspy) lists them.')
    """
    return INSTEAD.get(name, "dir(sigwire.dspy) lists them.")
