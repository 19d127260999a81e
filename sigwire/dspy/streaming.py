"""The names of ``dspy.streaming``: ``streamify``, its listeners and its messages.

``program.stream`` and ``program.astream`` need none of these; their events are in ``core.events``.
"""

from __future__ import annotations

from sigwire.dspy.paths import add_paths
from sigwire.dspy.streamify import (
    SendStream,
    StatusMessage,
    StatusMessageProvider,
    StreamListener,
    StreamResponse,
    apply_sync_streaming,
    streamify,
    streaming_response,
    sync_send_to_stream,
)

__all__ = [
    "SendStream",
    "StatusMessage",
    "StatusMessageProvider",
    "StreamListener",
    "StreamResponse",
    "apply_sync_streaming",
    "streamify",
    "streaming_response",
    "sync_send_to_stream",
]

add_paths(__name__, "messages streamify streaming_listener")
