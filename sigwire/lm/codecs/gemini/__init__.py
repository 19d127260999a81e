"""Gemini's generateContent wire, on the Gemini API and on Vertex AI: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between the two hosts is a ``GeminiProfile``; what differs between
models is in the target's facts.

    dialects    the two hosts, and the JSON Schema they take                tables     options, reasons, counts, errors
    encoding    encode(), otherwise(): options, reasoning, output, tools    contents   the conversation
    parts       a part of ours as one of the wire's, and back
    decoding    decode(), resume(), decode_error()                          citations  what an answer stands on
    streaming   decoder()                                                   fragments  a call that comes in pieces
    joining    one answer in several replies

Surprises of this wire:
    - There is no tool role: results travel in a *user* content, all of a turn together and in the order of the calls,
      and neighbouring contents of one role are written as one.
    - A result is always wrapped ({"output": value} or {"error": value}): a bare object with such a key means another thing.
    - There is no finish reason for calls; STOP with a call means a call. A blocked prompt is status 200 with no candidate.
    - Signatures (``thoughtSignature``) sit on parts and must come back on the same part. On a call they are its provider
      data. On text and media a ``ThinkingPart(redacted="", signature=...)`` follows, which seals the part before it; a
      part that is nothing but a signature is ``ThinkingPart(redacted=...)``.
    - Newer models refuse a call in the current turn that nobody signed: one made elsewhere gets a stand-in signature.
    - Ids are optional. One that sigwire made up is never sent.
    - An answer may be longer than a reply: ``resume()`` gives the request that goes on, decode() takes the list of all bodies.
    - Whatever else the model's turn holds (server-side calls, code and its output) is an ``OpaquePart``, the wire's part.

A file's name has no place here and is not sent. URLs are sent as URLs: the provider fetches them, or says it cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.gemini.decoding import continuation, decode, decode_error
from sigwire.lm.codecs.gemini.encoding import alternative, encode
from sigwire.lm.codecs.gemini.profiles import GEMINI, VERTEX, GeminiProfile
from sigwire.lm.codecs.gemini.tables import BUILTIN, ERRORS, FINISH_REASONS, OPTIONS, UNSIGNED, USAGE

if TYPE_CHECKING:
    from sigwire.lm.codecs.gemini.stream_decoder import FRAMING, decoder

__all__ = [
    "BUILTIN",
    "ERRORS",
    "FINISH_REASONS",
    "FRAMING",
    "GEMINI",
    "OPTIONS",
    "UNSIGNED",
    "USAGE",
    "VERTEX",
    "GeminiProfile",
    "alternative",
    "continuation",
    "decode",
    "decode_error",
    "decoder",
    "encode",
]

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
