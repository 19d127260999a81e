"""The names of ``dspy.clients``: models, the embedder and the cache. DSPy's modules below it are this module."""

from __future__ import annotations

from sigwire.dspy.cache import Cache, configure_cache
from sigwire.dspy.cached_functions import request_cache
from sigwire.dspy.call_history import GLOBAL_HISTORY, inspect_history
from sigwire.dspy.lm import LM, LM_CLASS_STATE_KEY, BaseLM
from sigwire.dspy.missing import advise
from sigwire.dspy.paths import add_paths
from sigwire.dspy.typesafe import TypeSafe
from sigwire.dspy.utils.logging_utils import disable_litellm_logging, enable_litellm_logging
from sigwire.lm.policy.cache.folder import default_folder
from sigwire.retrieval.embedder import Embedder

__all__ = [
    "DISK_CACHE_DIR",
    "GLOBAL_HISTORY",
    "LM",
    "LM_CLASS_STATE_KEY",
    "BaseLM",
    "Cache",
    "Embedder",
    "TypeSafe",
    "configure_cache",
    "disable_litellm_logging",
    "enable_litellm_logging",
    "inspect_history",
    "request_cache",
]

DISK_CACHE_DIR = str(default_folder())
"""The folder of stored answers, unless ``configure_cache`` has another one."""

add_paths(__name__, "base_lm cache embedding lm typesafe")
advise(__name__)
