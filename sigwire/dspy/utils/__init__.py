"""The names of ``dspy.utils``: callbacks, the test model, both forms of a program, errors."""

from __future__ import annotations

from sigwire.dspy.clients.history import inspect_history
from sigwire.dspy.paths import add_paths
from sigwire.dspy.settings import track_usage
from sigwire.dspy.streamify import StatusMessage, StatusMessageProvider
from sigwire.dspy.utils import exceptions, foreign_tools, magicattr
from sigwire.dspy.utils.annotation import experimental
from sigwire.dspy.utils.both_forms import asyncify, syncify
from sigwire.dspy.utils.callback import ACTIVE_CALL_ID, BaseCallback, with_callbacks
from sigwire.dspy.utils.dummies import DummyLM, DummyVectorizer, dummy_rm
from sigwire.dspy.utils.logging_utils import disable_logging, enable_logging
from sigwire.dspy.utils.parallelizer import ParallelExecutor
from sigwire.observe.usage import UsageTracker

__all__ = [
    "ACTIVE_CALL_ID", "BaseCallback", "DummyLM", "DummyVectorizer", "ParallelExecutor", "StatusMessage",
    "StatusMessageProvider", "UsageTracker", "asyncify",
    "disable_logging", "dummy_rm", "enable_logging", "exceptions", "experimental", "foreign_tools", "inspect_history",
    "magicattr", "syncify", "track_usage", "with_callbacks",
]  # fmt: skip

add_paths(__name__, "usage_tracker")
add_paths("sigwire.dspy.utils.both_forms", "asyncify syncify", __name__)
