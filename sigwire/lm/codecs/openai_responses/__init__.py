"""OpenAI Responses wire: Request -> dict, dict -> Response.

Pure: no network, clock or environment. A ``ResponsesProfile`` has the differences between hosts, ``target.facts`` those
between models.

    profiles         the hosts                    tables    every option, finish reason, count and error code
    encoding         encode(): options, reasoning, tools, output format      items     the conversation as items
    decoding         decode(), decode_error()     stops     stop sequences, which this wire lacks
    stream_decoder   decoder()

A conversation is a flat list of *items*: a turn of the model is several items (reasoning, a message, calls), each with
its id. Surprises of this wire:
    - The provider rejects a turn of the model that is not repeated item by item, in the same order. Data without a
      canonical part are an ``OpaquePart``: a reasoning item or the trace of a built-in tool as it is (the ``ThinkingPart``
      before it is only for readers, and not sent), a message without its text (``split_message``).
    - A call has two ids. ``call_id`` pairs the call with its result, and is the canonical id. ``id`` names the item: it is
      provider data, and may only be sent together with the reasoning item before the call (``_encode_call``).
    - The provider stores responses unless ``store`` is false, which is sent. Then reasoning arrives encrypted.
    - Tools are strict unless ``strict`` is false, which is sent.
    - The first system turn is ``instructions``, which are not part of the input: JSON mode does not see them, and they
      cannot have a cache mark. In these cases the turn is an item, like later system turns.
    - There are no stop sequences: decode() truncates the text. A failure may have status 200.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.openai_responses.decoding import decode, decode_error
from sigwire.lm.codecs.openai_responses.encoding import encode
from sigwire.lm.codecs.openai_responses.profiles import AZURE, COMPATIBLE, DEEPSEEK, OPENAI, PROFILES, ResponsesProfile
from sigwire.lm.codecs.openai_responses.tables import ERRORS, FINISH_REASONS, OPTIONS, USAGE

if TYPE_CHECKING:
    from sigwire.lm.codecs.openai_responses.stream_decoder import FRAMING, decoder

__all__ = [
    "AZURE", "COMPATIBLE", "DEEPSEEK", "ENCODING_VERSION", "ERRORS", "FINISH_REASONS", "FRAMING", "OPENAI", "OPTIONS",
    "PROFILES", "USAGE", "ResponsesProfile", "decode", "decode_error", "decoder", "encode",
]  # fmt: skip

ENCODING_VERSION = 3  # of the bodies; in the keys of stored answers

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
