"""The names of DSPy that the door lacks on purpose, each with what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["INSTEAD", "advice", "check_import"]

_BATCHES = "`Embedder` batches texts, and `Module.batch` runs a program on many rows."
_PROPOSALS = "`MIPROv2` and `GEPA` propose instructions, and try each one that they propose."
_RETRIEVAL = "`Embeddings` searches a corpus of yours; a function of yours may be a tool of a `ReAct`."

INSTEAD: Mapping[str, str] = {
    "ColBERTv2": _RETRIEVAL,
    "propose": _PROPOSALS,
    "utils.Unbatchify": _BATCHES,
    "utils.lazy_import": "`importlib.import_module` inside the function that needs the package.",
    "utils.magicattr": "`operator.attrgetter` reads a path of attributes, `primitives.set_attribute_by_name` sets one.",
    "utils.unbatchify": _BATCHES,
}


def advice(name: str) -> str:
    """Return what to use instead of a name of DSPy (``utils.magicattr``), else the way to list the names there are.

    >>> advice("ColBERTv2")[:24], advice("Predictor")
    ('`Embeddings` searches a ', 'dir(sigwire.dspy) lists them.')
    """
    return INSTEAD.get(name, "dir(sigwire.dspy) lists them.")


def check_import(name: str) -> None:
    """Raise ``ModuleNotFoundError`` for a name that is missing on purpose. The finder of the door calls it last.

    >>> import sigwire.dspy.utils.magicattr
    Traceback (most recent call last):
    ModuleNotFoundError: sigwire.dspy has no 'utils.magicattr' (importing it). `operator.attrgetter` reads a path ...
    """
    if name in INSTEAD:
        # With the whole path as ``name``, a from-import would replace the error by its own.
        raise ModuleNotFoundError(f"sigwire.dspy has no {name!r} (importing it). {INSTEAD[name]}", name=name)
