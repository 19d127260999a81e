"""OpenAI Responses wire: Request -> dict, dict -> Response.

Pure: no network, clock or environment. What differs between hosts is a ``ResponsesProfile``; what differs between
models is in the target's facts.

    dialects    the hosts                        tables    every option, finish reason, count and error code
    encoding    encode(): options, reasoning, tools, structured output       turns      the conversation, as items
    decoding    decode(), decode_error()                                     reading    read_request()
    streaming   decoder()                                                    stops      texts cut in a stream

A conversation is a flat list of *items*: a turn of the model is several of them (reasoning, a message, calls), and
each has an id of its own. Surprises of this wire:
    - A turn goes back item by item, in the order in which it came, or the provider refuses it. What a canonical part
      cannot hold stands in an ``OpaquePart``: a reasoning item or a built-in tool's trace whole (the ``ThinkingPart``
      before it is for reading and is not sent), a message without its text (``_split_message``).
    - A call has two ids. ``call_id`` pairs it with its result and is ours; ``id`` names the item, is provider data, and
      may only go back together with the reasoning item that led to it (``_encode_call``).
    - The provider stores answers unless it is told not to, so we tell it; then reasoning comes encrypted.
    - Tools are strict unless they say otherwise, so they do.
    - The first system turn is ``instructions``, which are no part of the input: JSON mode does not see them, and they
      cannot carry a cache mark. Then the turn is sent as an item like later ones.
    - There are no stop sequences: the text is cut when it has come. A failure may come with status 200.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.openai_responses.decoding import decode, decode_error
from sigwire.lm.codecs.openai_responses.encoding import encode
from sigwire.lm.codecs.openai_responses.profiles import AZURE, COMPATIBLE, DEEPSEEK, DIALECTS, OPENAI, ResponsesProfile
from sigwire.lm.codecs.openai_responses.tables import ERRORS, FINISH_REASONS, OPTIONS, USAGE

if TYPE_CHECKING:
    from sigwire.lm.codecs.openai_responses.stream_decoder import FRAMING, decoder

__all__ = [
    "AZURE",
    "COMPATIBLE",
    "DEEPSEEK",
    "DIALECTS",
    "ERRORS",
    "FINISH_REASONS",
    "FRAMING",
    "OPENAI",
    "OPTIONS",
    "USAGE",
    "ResponsesProfile",
    "decode",
    "decode_error",
    "decoder",
    "encode",
]

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
