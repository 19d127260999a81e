"""The names of ``dspy.clients``: models, the embedder and the cache. DSPy's modules below it are this module."""

from __future__ import annotations

from sigwire.dspy.cache import Cache, configure_cache
from sigwire.dspy.cached_functions import request_cache
from sigwire.dspy.call_history import GLOBAL_HISTORY, inspect_history
from sigwire.dspy.lm import LM, LM_CLASS_STATE_KEY, BaseLM
from sigwire.dspy.paths import add_paths
from sigwire.retrieval.embedder import Embedder

__all__ = [
    "GLOBAL_HISTORY",
    "LM",
    "LM_CLASS_STATE_KEY",
    "BaseLM",
    "Cache",
    "Embedder",
    "configure_cache",
    "inspect_history",
    "request_cache",
]

add_paths(__name__, "base_lm cache embedding lm")
