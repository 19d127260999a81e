"""Amazon Bedrock's Converse wire, for the models of every vendor there: Request -> dict, dict -> Response.

Pure: no network, clock or environment. A ``ConverseProfile`` has the differences between the vendors' models, ``target.facts``
those between models. Signing is no part of the wire (``providers.aws``).

    tables      profiles, options, stop reasons, counts, errors         encoding         encode()
    blocks      parts of a turn as content blocks, and back             reasoning        the requested reasoning
    decoding    decode(), decode_error()                                stream_decoder   decoder()
    framing     the binary frames of ConverseStream                     cache_points     marks of the prompt cache

Source: the service model of botocore (``bedrock-runtime``, 2023-09-30) and
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.

Surprises of this wire:
    - The model is in the path, and an ARN has slashes there: ``/`` and ``:`` of a name are encoded.
    - A block is an object with one member, which names its type. Bytes are base64.
    - There are user and assistant turns only: results travel in a user turn, before the user's text.
    - A history with calls needs ``toolConfig``, also if the request offers no tools; there is no choice "none".
    - Only some models take a forced choice, the status of a result, or reasoning; a field that a model lacks is an error.
    - The name of an error is in the header ``x-amzn-errortype``; in a stream an exception is an event of its own.
    - The reply of a stream is binary (``application/vnd.amazon.eventstream``), each frame with two checksums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names
from sigwire.lm.codecs.bedrock_converse.decoding import decode, decode_error
from sigwire.lm.codecs.bedrock_converse.encoding import encode
from sigwire.lm.codecs.bedrock_converse.tables import (
    CLAUDE,
    CONVERSE,
    ERRORS,
    EXTRA,
    FINISH_REASONS,
    NOVA,
    OPTIONS,
    USAGE,
    WITHOUT_TOP_K,
    ConverseProfile,
)

if TYPE_CHECKING:
    from sigwire.lm.codecs.bedrock_converse.stream_decoder import FRAMING, decoder

__all__ = [
    "CLAUDE", "CONVERSE", "ENCODING_VERSION", "ERRORS", "FINISH_REASONS", "FRAMING", "NOVA", "OPEN_PATH", "OPTIONS", "USAGE",
    "WITHOUT_TOP_K", "ConverseProfile", "decode", "decode_error", "decoder", "encode",
]  # fmt: skip

OPEN_PATH = EXTRA
ENCODING_VERSION = 3  # of the bodies; in the keys of stored answers

__getattr__ = lazy_names(__name__, stream_decoder="FRAMING decoder")
