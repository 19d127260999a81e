"""Anthropic Messages wire, spoken by Anthropic and by hosts that imitate it: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between hosts is a ``MessagesProfile``; what differs between models
is in the target's facts.

    dialects    hosts: what each of them takes                              tables     options, reasons, counts, errors
    encoding    encode(): options, structured output, system, turns         offering   tools and the choice among them
    thinking    reasoning and the token limit                               notes      the warnings of one request
    blocks      the parts of a turn as blocks, and back
    decoding    decode(), resume(), decode_error()                          streaming  decoder()

Surprises of this wire:
    - Results travel in a *user* turn, all of one turn's together, before any text of the user's.
    - The system text stands outside the conversation; only newer models take system turns inside it.
    - ``max_tokens`` has to be sent, and thinking counts against it.
    - Order matters: thinking, text, calls and the provider's own items go back interleaved as they came, with their
      signatures. An ``OpaquePart`` is a whole block, or, without a ``type``, fields of the block before it (citations,
      ``cache_control``). Unknown fields of a call are its provider data (``caller``).
    - ``input_tokens`` leaves out what was read from or written to the cache; ours is all of it.
    - A turn may be paused: ``resume()`` gives the request that goes on, and decode() takes the list of all the bodies.

Beside a tool's ``function``, its object under the dialect's family holds fields of Anthropic's own
(``{"type": "function", "function": {...}, "anthropic": {"defer_loading": True}}``). Anthropic's own tool types pass as
they are: ``{"type": "code_execution_20260120", "code_execution_20260120": {"name": "code_execution"}}``. A result that
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
    "ANTHROPIC",
    "COMPATIBLE_MESSAGES",
    "ERRORS",
    "FINISH_REASONS",
    "FRAMING",
    "OPTIONS",
    "OUTPUT_SCHEMA",
    "STATUSES",
    "USAGE",
    "MessagesProfile",
    "continuation",
    "decode",
    "decode_error",
    "decoder",
    "encode",
]

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
