"""Ollama's own wire, ``/api/chat``: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between hosts is an ``OllamaProfile``; what differs between models
is in the target's facts.

    tables      dialects, options, reasons, counts, errors                  encoding   encode()
    decoding    decode(), decode_error()                                    streaming  decoder()
    context    how much the server reads

Surprises of this wire:
    - It streams unless told otherwise, so ``stream`` is always sent.
    - Arguments are an *object* both ways; text in their place is an error of the server. Arguments that are no object
      travel as ``{"invalid_arguments": text}``.
    - Call ids are optional. One that the server sent goes back, with the tool's name, which most templates use; one
      that sigwire made up is not sent.
    - There is no ``tool_choice``: calls are forbidden by sending no tools, and cannot be forced.
    - ``format`` constrains the text of calls too, so beside tools the output's shape is asked for in words.
    - The server reads a few thousand tokens unless it is asked for more (``num_ctx``): a long request asks by itself,
      unless the caller did. What is longer still is cut silently, oldest turns first, unless ``truncate`` and ``shift``
      are false: they are, and the server answers with an error that says what to do.
    - The server knows a few keywords of a tool's schema and discards the others, ``$ref`` among them, unseen.
    - A turn has one text and a list of images, as bare base64. Unknown fields of a turn are an ``OpaquePart``, those of
      a call its provider data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.ollama.decoding import decode, decode_error
from sigwire.lm.codecs.ollama.encoding import encode
from sigwire.lm.codecs.ollama.tables import (
    ERRORS,
    FINISH_REASONS,
    OLLAMA,
    OLLAMA_CLOUD,
    OPTIONS,
    TOOL_SCHEMA,
    USAGE,
    OllamaProfile,
)

if TYPE_CHECKING:
    from sigwire.lm.codecs.ollama.stream_decoder import FRAMING, decoder

__all__ = [
    "ERRORS",
    "FINISH_REASONS",
    "FRAMING",
    "OLLAMA",
    "OLLAMA_CLOUD",
    "OPTIONS",
    "TOOL_SCHEMA",
    "USAGE",
    "OllamaProfile",
    "decode",
    "decode_error",
    "decoder",
    "encode",
]

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
