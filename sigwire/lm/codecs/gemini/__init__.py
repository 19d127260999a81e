"""Gemini's generateContent wire, on the Gemini API and on Vertex AI: Request -> dict, dict -> Response.

Pure: no network, clock or environment. A ``GeminiProfile`` describes a host, the target's facts a model.

    profiles    the two hosts, and the JSON Schema they accept              tables     options, reasons, counts
    encoding    encode(), alternative(): options, reasoning, output, tools  contents   the conversation
    decoding    decode(), continuation(), decode_error()                    citations  the sources of an answer
    stream_decoder    decoder()                                             partial_calls    calls in several events
    parts       canonical parts as parts of the wire, and back              merge      several bodies of one answer

Surprises of this wire:
    - There is no tool role: results travel in a *user* content, all of a turn together and in the order of the calls,
      and neighbouring contents of one role are written as one.
    - A result is always wrapped ({"output": value} or {"error": value}): a bare object with such a key means another thing.
    - There is no finish reason for calls; STOP with a call means a call. A blocked prompt is status 200 with no candidate.
    - Signatures (``thoughtSignature``) must be sent back on the part that had them. On a call they are its provider data.
      Behind text and media a ``ThinkingPart(redacted="", signature=...)`` seals the part before it; a part that holds
      only a signature is ``ThinkingPart(redacted=...)``.
    - Newer models refuse an unsigned call in the current turn: a call of another provider gets a stand-in signature.
    - Ids are optional. A synthetic id is never sent.
    - An answer may be longer than a reply: ``continuation()`` returns the next request; decode() takes the list of bodies.
    - Any other part of the model's turn (server-side calls, code and its output) is an ``OpaquePart``.

The wire has no place for a file's name. URLs are sent as URLs, which the provider fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.gemini.decoding import continuation, decode, decode_error
from sigwire.lm.codecs.gemini.encoding import alternative, encode
from sigwire.lm.codecs.gemini.profiles import GEMINI, VERTEX, GeminiProfile
from sigwire.lm.codecs.gemini.tables import BUILTIN, FINISH_REASONS, OPTIONS, UNSIGNED, USAGE

if TYPE_CHECKING:
    from sigwire.lm.codecs.gemini.stream_decoder import FRAMING, decoder

__all__ = [
    "BUILTIN", "ENCODING_VERSION", "FINISH_REASONS", "FRAMING", "GEMINI", "OPTIONS", "UNSIGNED", "USAGE",
    "VERTEX", "GeminiProfile", "alternative", "continuation", "decode", "decode_error", "decoder", "encode",
]  # fmt: skip

ENCODING_VERSION = 3  # of the bodies; in the keys of stored answers

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
