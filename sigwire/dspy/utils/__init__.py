"""The names of ``dspy.utils``: callbacks, the test model, both forms of a program, errors.

both_forms     asyncify, syncify                          dummies        the test model, an embedder, a retriever
exceptions     DSPy's names of errors                     foreign_tools  tools of MCP and LangChain
parallelizer   ParallelExecutor: items in threads         logging_utils  the level of log records
annotation     ``experimental``                           downloading    download: the file behind a URL
"""

from __future__ import annotations

from sigwire.dspy import callback
from sigwire.dspy import loading as saving
from sigwire.dspy.call_history import inspect_history
from sigwire.dspy.callback import ACTIVE_CALL_ID, BaseCallback, with_callbacks
from sigwire.dspy.missing import advise
from sigwire.dspy.paths import add_paths
from sigwire.dspy.settings import track_usage
from sigwire.dspy.streamify import StatusMessage, StatusMessageProvider
from sigwire.dspy.utils import exceptions, foreign_tools
from sigwire.dspy.utils.annotation import experimental
from sigwire.dspy.utils.both_forms import asyncify, syncify
from sigwire.dspy.utils.downloading import download
from sigwire.dspy.utils.dummies import DummyLM, DummyVectorizer, dummy_rm
from sigwire.dspy.utils.logging_utils import disable_logging, enable_logging
from sigwire.dspy.utils.parallelizer import ParallelExecutor
from sigwire.observe.usage import UsageTracker

__all__ = [
    "ACTIVE_CALL_ID", "BaseCallback", "DummyLM", "DummyVectorizer", "ParallelExecutor", "StatusMessage",
    "StatusMessageProvider", "UsageTracker", "asyncify", "callback", "disable_logging", "download",
    "dummy_rm", "enable_logging", "exceptions", "experimental", "foreign_tools", "inspect_history",
    "saving", "syncify", "track_usage", "with_callbacks",
]  # fmt: skip

add_paths(__name__, "usage_tracker")
add_paths("sigwire.dspy.utils.both_forms", "asyncify syncify", __name__)
add_paths("sigwire.dspy.callback", "callback", __name__)
add_paths("sigwire.dspy.loading", "saving", __name__)
advise(__name__)
