"""OpenAI chat completions wire, spoken by OpenAI and by the hosts in ``dialects``: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between hosts is a ``ChatProfile``; what differs between models
is in the target's facts.

    tables      every option, finish reason, count and error code, by the wire's name
    encoding    encode(): options, reasoning, tools, structured output       messages   the conversation
    decoding    decode(), decode_error()                                     reading    read_request()
    streaming   decoder(), of a choice as it is ``growing``, calls in ``fragments`` and ``think_tags``
    refused     recover(): a call that stands in an error

Surprises of this wire:
    - Arguments travel as a JSON *string*, and the model writes it: it may be no JSON at all, and is kept.
    - Results are text only. Failures begin with ``ERROR: ``, media follow in a user turn.
    - api.openai.com never returns or takes reasoning here; compatible hosts do, under names of their own. It is kept
      as a ``ThinkingPart`` of the host's family and goes back only where the host wants it (``ChatProfile.replay``).
    - What we do not model is kept as ``OpaquePart``: in an assistant turn its data are fields of the message
      (``reasoning_details``), elsewhere a content part. Unknown fields of a call are its provider data
      (``extra_content``).
    - A host may answer status 200 with an error, and with a finish reason that contradicts the content.
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
    "ERRORS",
    "FINISH_REASONS",
    "FRAMING",
    "OPTIONS",
    "USAGE",
    "decode",
    "decode_error",
    "decoder",
    "encode",
    "recover",
]

__getattr__ = lazy_names(__name__, rejected_call="recover", stream_decoder="FRAMING decoder")
