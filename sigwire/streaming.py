"""What DSPy has in ``dspy.streaming``: ``streamify`` and what belongs to it, under one name.

``program.stream`` and ``program.astream`` need none of it; their events are in ``core.events``.
"""

from __future__ import annotations

from sigwire.modules.streamify import (
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
