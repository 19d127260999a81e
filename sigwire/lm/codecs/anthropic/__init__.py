"""Anthropic Messages wire, of Anthropic and compatible hosts: Request -> dict, dict -> Response.

Pure: no network, clock or environment. A ``MessagesProfile`` describes a host, the target's facts a model.

    profiles    the hosts, and the JSON Schema they accept               tables    options, reasons, counts, errors
    encoding    encode(): options, structured output, system, turns      tools     tools and the choice among them
    thinking    reasoning and the token limit                            blocks    parts of a turn as blocks, and back
    decoding    decode(), continuation(), decode_error()                 stream_decoder    decoder()
    cache_marks  the marks up to which the provider caches a prompt

Surprises of this wire:
    - Results travel in a *user* turn: all results of one turn together, before the user's text.
    - The system text is outside the conversation; only newer models accept system turns inside it.
    - ``max_tokens`` is required, and thinking counts against it.
    - Order matters: thinking, text, calls and the provider's items are sent back in the order of the reply, with their
      signatures. An ``OpaquePart`` is a whole block, or, without a ``type``, fields of the block before it (citations,
      ``cache_control``). Unknown fields of a call are its provider data (``caller``).
    - ``input_tokens`` of the wire excludes tokens read from or written to the cache; the canonical count includes them.
    - A turn may be paused: ``continuation()`` returns the request that continues it; decode() takes the list of bodies.

Beside ``function``, a tool's object under the profile's family holds fields of Anthropic
(``{"type": "function", "function": {...}, "anthropic": {"defer_loading": True}}``). Anthropic's tool types are sent
unchanged: ``{"type": "code_execution_20260120", "code_execution_20260120": {"name": "code_execution"}}``. A result that
is a list of ``tool_reference`` or ``search_result`` objects is sent as these blocks, not as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.anthropic.decoding import continuation, decode, decode_error
from sigwire.lm.codecs.anthropic.encoding import encode
from sigwire.lm.codecs.anthropic.profiles import ANTHROPIC, COMPATIBLE_MESSAGES, OUTPUT_SCHEMA, MessagesProfile
from sigwire.lm.codecs.anthropic.tables import ERRORS, FINISH_REASONS, OPTIONS, STATUSES, USAGE

if TYPE_CHECKING:
    from sigwire.lm.codecs.anthropic.stream_decoder import FRAMING, decoder

__all__ = [
    "ANTHROPIC", "COMPATIBLE_MESSAGES", "ENCODING_VERSION", "ERRORS", "FINISH_REASONS", "FRAMING", "OPTIONS",
    "OUTPUT_SCHEMA", "STATUSES", "USAGE", "MessagesProfile", "continuation", "decode", "decode_error", "decoder",
    "encode",
]  # fmt: skip

ENCODING_VERSION = 3  # of the bodies; in the keys of stored answers

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
