"""Ollama's own wire, ``/api/chat``: Request -> dict, dict -> Response.

Pure: no network, clock or environment. An ``OllamaProfile`` has the differences between hosts, ``target.facts`` those
between models.

    tables      profiles, options, finish reasons, counts, errors       encoding         encode()
    decoding    decode(), decode_error()                                stream_decoder   decoder()
    context     the context window that a request needs

Surprises of this wire:
    - It streams unless ``stream`` is false, so ``stream`` is always sent.
    - Arguments are an *object* both ways; the server rejects a string. Arguments that are no object are sent as
      ``{"invalid_arguments": text}``.
    - Call ids are optional. An id of the server is sent again, with the tool's name, which most templates use; a
      synthetic id is not sent.
    - There is no ``tool_choice``: without tools no call is possible, and calls cannot be forced.
    - ``format`` also constrains the text of calls, so a request with tools asks for the format in the prompt.
    - The server reads a few thousand tokens by default. ``num_ctx`` raises that: encode() sets it for a long request, unless
      the caller did, and never above the model's context length (``/api/show``). The server truncates a longer prompt
      silently, oldest turns first, unless ``truncate`` and ``shift`` are false. They are sent as false, and the server
      answers with an error that has instructions.
    - The server knows a few keywords of a tool's schema and ignores all others, ``$ref`` among them.
    - A turn has one text and a list of images, as base64 without a URL. Unknown fields of a turn are an ``OpaquePart``,
      those of a call its provider data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.ollama.context import length_request, read_length
from sigwire.lm.codecs.ollama.decoding import decode, decode_error
from sigwire.lm.codecs.ollama.encoding import encode
from sigwire.lm.codecs.ollama.tables import ERRORS, FINISH_REASONS, OLLAMA, OLLAMA_CLOUD, OPTIONS, USAGE, OllamaProfile

if TYPE_CHECKING:
    from sigwire.lm.codecs.ollama.stream_decoder import FRAMING, decoder

__all__ = [
    "ENCODING_VERSION", "ERRORS", "FINISH_REASONS", "FRAMING", "OLLAMA", "OLLAMA_CLOUD", "OPEN_PATH", "OPTIONS", "USAGE",
    "OllamaProfile", "decode", "decode_error", "decoder", "encode", "length_request", "read_length",
]  # fmt: skip

OPEN_PATH = "options"
ENCODING_VERSION = 2  # of the bodies; in the keys of stored answers

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
