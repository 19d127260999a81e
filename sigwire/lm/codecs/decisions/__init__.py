"""Decision endpoints: questions about an input -> a distribution for each answer. OpenAI's, System One's, the Gemini API's.

Pure: no network, clock or environment. A ``DecisionsProfile`` has the differences between hosts.

    profiles    the hosts                                   tables    options, counts
    questions   the questions of an output schema           encoding  encode(): the input, the questions, the limits
    decoding    decode(): answers -> text and evidence

The questions come from the JSON Schema of ``response_format``, so a request without a signature is answered too. A reply
becomes an ordinary choice: its text is the JSON object of the answers, ``Choice.evidence`` has the distributions by path.
Surprises of these wires:
    - Values are texts on the wire, of OpenAI's choices also booleans; ``EncodedRequest.questions`` has the typed values.
    - OpenAI may refuse single questions. An output with a default, or one that may be ``None``, goes without an answer.
    - Hosts round probabilities to two decimals, so that a sum is 1 only nearly.
    - No stream: the answer is emitted whole.
"""

from __future__ import annotations

from sigwire.lm.codecs.decisions.decoding import decode, decode_error
from sigwire.lm.codecs.decisions.encoding import encode
from sigwire.lm.codecs.decisions.profiles import GEMINI, OPENAI, SYSTEM_ONE, TYPESAFE, DecisionsProfile
from sigwire.lm.codecs.decisions.tables import OPTIONS, USAGE

__all__ = [
    "ENCODING_VERSION", "GEMINI", "OPENAI", "OPTIONS", "SYSTEM_ONE", "TYPESAFE", "USAGE", "DecisionsProfile", "decode",
    "decode_error", "encode",
]  # fmt: skip

ENCODING_VERSION = 1  # of the bodies; in the keys of stored answers
