"""The names of DSPy that the door lacks on purpose, each with what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["INSTEAD", "advice"]

_PROPOSALS = "`MIPROv2` and `GEPA` propose instructions, and try each one that they propose."
_RETRIEVAL = "`Embeddings` searches a corpus of yours; a function of yours may be a tool of a `ReAct`."

INSTEAD: Mapping[str, str] = {
    "ColBERTv2": _RETRIEVAL,
    "propose": _PROPOSALS,
    "utils.lazy_import": "`importlib.import_module` inside the function that needs the package.",
    "utils.magicattr": "`operator.attrgetter` reads a path of attributes, `primitives.set_attribute_by_name` sets one.",
    "utils.unbatchify": "`Embedder` batches texts, and `Module.batch` runs a program on many rows.",
}


def advice(name: str) -> str:
    """Return what to use instead of a name of DSPy (``utils.magicattr``), else the way to list the names there are.

    >>> advice("ColBERTv2")[:24], advice("Predictor")
    ('`Embeddings` searches a ', 'dir(sigwire.dspy) lists them.')
    """
    return INSTEAD.get(name, "dir(sigwire.dspy) lists them.")
