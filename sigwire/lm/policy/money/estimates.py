"""Token estimates of requests, and of answers that ended early. Pure.

No tokenizer is loaded: 3 bytes of UTF-8 count as a token, which is more than the tokenizers of the providers make of prose,
code and most scripts. The bound of a request adds 15 % and 64 tokens for roles and marks of the provider's template.
"""

from __future__ import annotations

from typing import Any

from sigwire.core.json import dumps
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message, Part, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult

__all__ = ["estimated_tokens", "input_bound", "output_bound", "usage_of_partial"]

_BYTES_A_TOKEN = 3
_IMAGE = 2_000  # tokens: more than the providers count for an image at the largest size that they read
_DOCUMENT, _BASE64_A_TOKEN = 1_000, 30  # of a document or a sound: at least, and characters
_LEAST_OUTPUT = 4_096
_OUTPUT_FACTOR = 4


def estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text.

    >>> estimated_tokens("The quick brown fox jumps over the lazy dog.")
    15
    """
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN)


def input_bound(request: Request) -> int:
    """Return an upper bound of the input tokens of a request.

    >>> input_bound(Request((Message.user("What is the capital of France?"),)))
    85
    """
    tokens = sum(message.derived(_tokens_of_message) for message in request.messages)
    tokens += sum(estimated_tokens(dumps(tool)) for tool in request.tools)
    if request.response_format is not None:
        tokens += estimated_tokens(dumps(request.response_format.to_json()))
    return -(-tokens * 115 // 100) + 64


def output_bound(request: Request, limit: int | None, largest: int) -> int:
    """Return an upper bound of the output tokens of all choices: ``max_tokens``, else 4 times the ``largest`` answer seen.

    ``limit``: the model's own, if it is known.

    >>> output_bound(Request(options={"max_tokens": 100, "n": 2}), None, 0), output_bound(Request(), 32_000, 3_000)
    (200, 12000)
    """
    asked: Any = request.options.get("max_tokens")
    choices: Any = request.options.get("n")
    guess = max(_LEAST_OUTPUT, _OUTPUT_FACTOR * largest)
    bound = asked if isinstance(asked, int) else min(limit or guess, guess)
    return bound * (choices if isinstance(choices, int) and choices > 0 else 1)


def usage_of_partial(partial: Response | None, tokens: int) -> Usage:
    """Return the usage of an exchange that failed after it was sent; ``tokens``: the estimated input.

    Counts that the provider sent are kept; the output is estimated from the answer as far as it was emitted.
    """
    if partial is None:
        return Usage(input_tokens=tokens, output_tokens=0)
    usage = partial.usage
    written = sum(_tokens_of_message(choice.message()) for choice in partial.choices)
    return Usage(
        tokens if usage.input_tokens is None else usage.input_tokens,
        max(usage.output_tokens or 0, written),
        usage.cached_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
        usage.cost,
        usage.hour_write_tokens,
        usage.unbilled_tokens,
    )


def _tokens_of_message(message: Message) -> int:
    return 8 + sum(_tokens_of_part(part) for part in message.parts)


def _tokens_of_part(part: Part) -> int:
    if isinstance(part, TextPart | ThinkingPart):
        return estimated_tokens(part.text)
    if isinstance(part, ImagePart):
        return _IMAGE
    if isinstance(part, AudioPart | FilePart):
        return _DOCUMENT + len(part.data or "") // _BASE64_A_TOKEN
    if isinstance(part, ToolCall):
        return estimated_tokens(part.name) + estimated_tokens(part.arguments_text)
    if isinstance(part, ToolResult):
        return estimated_tokens(part.text) + sum(map(_tokens_of_part, part.media))
    return estimated_tokens(dumps(part.data))
