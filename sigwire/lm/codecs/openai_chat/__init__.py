"""OpenAI chat completions wire, of OpenAI and of the hosts in ``profiles``: Request -> dict, dict -> Response.

Pure: no network, clock or environment. A ``ChatProfile`` has the differences between hosts, ``target.facts`` those between
models.

    tables           every option, finish reason, count and error code, by its name on the wire
    encoding         encode(): options, reasoning, tools, output format       messages    the conversation
    decoding         decode(), decode_error()                                 profiles    the hosts
    stream_decoder   decoder(): a ``partial_choice`` with its ``partial_calls`` and ``think_tags``
    rejected_call    recover(): a call in an error reply                      cache_marks  marks of a prompt's cache

Surprises of this wire:
    - The model writes arguments as a JSON *string*, which may be invalid JSON. The invalid text is kept.
    - Results are text only. Failures start with ``ERROR: ``, media follow in a user turn.
    - api.openai.com has no reasoning text on this wire. Compatible hosts do, under several names: it becomes a
      ``ThinkingPart`` of the host's family, and is sent again if the host wants it (``ChatProfile.replay``).
    - Unknown data are an ``OpaquePart``: in an assistant turn, fields of the message (``reasoning_details``); in any
      other turn, a content part. Unknown fields of a call are its provider data (``extra_content``).
    - A reply with status 200 may be an error, and its finish reason may contradict its content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.openai_chat.decoding import decode, decode_error
from sigwire.lm.codecs.openai_chat.encoding import encode
from sigwire.lm.codecs.openai_chat.tables import ERRORS, FINISH_REASONS, OPTIONS, USAGE

if TYPE_CHECKING:
    from sigwire.lm.codecs.openai_chat.rejected_call import recover
    from sigwire.lm.codecs.openai_chat.stream_decoder import FRAMING, decoder

__all__ = [
    "ENCODING_VERSION", "ERRORS", "FINISH_REASONS", "FRAMING", "OPTIONS", "USAGE", "decode", "decode_error", "decoder",
    "encode", "recover",
]  # fmt: skip

ENCODING_VERSION = 4  # of the bodies; in the keys of stored answers

__getattr__ = lazy_names(__name__, rejected_call="recover", stream_decoder="FRAMING decoder")
