"""The names of DSPy that the door lacks on purpose, each with what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["INSTEAD", "advice"]

_BOTH_FORMS = "Every module has both forms: `program(...)` blocks, `await program.acall(...)` awaits."
_NO_CODE = "No code of a model is run. Give a `ReAct` a tool of yours that runs code in your sandbox."
_RETRIEVAL = "`Embeddings` searches a corpus of yours; a function of yours may be a tool of a `ReAct`."

INSTEAD: Mapping[str, str] = {
    "asyncify": _BOTH_FORMS,
    "syncify": _BOTH_FORMS,
    "ReActV2": "`ReAct` is the native loop: `submit` is a tool, and `history` continues a run.",
    "CodeAct": _NO_CODE,
    "ProgramOfThought": _NO_CODE,
    "PythonInterpreter": _NO_CODE,
    "RLM": _NO_CODE,
    "ColBERTv2": _RETRIEVAL,
    "Retrieve": _RETRIEVAL,
    "BAMLAdapter": "The compact types of that adapter are the default of every adapter: `types=\"compact\"`.",
    "Citations": "A response has the citations of its provider: `response.choices[0].citations`.",
    "Document": "Give documents as an input: a text, a list of pydantic models, or a `File`.",
    "Type": "A pydantic model is a type: its fields and descriptions reach the prompt.",
    "ToolCallResults": "`step.results` of an agent has a `ToolResult` for each call.",
    "load": "`load_program` makes a program of a file of `save_program`; `program.load` loads a state.",
    "load_settings": "Settings are set in code: `configure(...)`.",
    "utils": "`DummyLM` is at the top: `dspy.DummyLM`.",
}  # fmt: skip


def advice(name: str) -> str:
    """Return what to use instead of a name of DSPy, else the way to list the names there are.

    >>> advice("CodeAct")[:24], advice("Predictor")
    ('No code of a model is ru', 'dir(sigwire.dspy) lists them.')
    """
    return INSTEAD.get(name, "dir(sigwire.dspy) lists them.")
