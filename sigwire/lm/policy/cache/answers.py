"""Answers as the cache keeps them: which ones, in which JSON, and how a hit differs from the stored answer. Pure."""

from __future__ import annotations

from dataclasses import replace
from types import NoneType

from pydantic_core import from_json, to_json

from sigwire.core.json import dumps, loads
from sigwire.core.parts import TextPart
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall

__all__ = ["as_hit", "as_miss", "decode_response", "encode_response", "is_complete"]

_COMPLETE = frozenset({"stop", "tool_calls", "length"})
_NOTHING = Usage(input_tokens=0, output_tokens=0, cost=0.0)


def is_complete(response: Response) -> bool:
    """Return True for an answer that may be stored: each choice ended by itself, at a limit, or with the model's refusal.

    >>> is_complete(Response((Choice("4"),))), is_complete(Response((Choice("4", finish_reason="content_filter"),)))
    (True, False)
    """
    return bool(response.choices) and all(map(_is_whole, response.choices))


def _is_whole(choice: Choice) -> bool:
    if choice.refusal:
        return choice.finish_reason != "error"
    return choice.finish_reason in _COMPLETE and bool(choice.text or choice.tool_calls or choice.parts)


def as_hit(response: Response) -> Response:
    """Return an answer as a hit: it cost nothing and made no exchange."""
    usage = response.usage if response.cached_usage is None else response.cached_usage
    return Response(
        response.choices, _NOTHING, response.model, response.id, response.warnings, (), response.raw, "hit", usage
    )


def as_miss(response: Response) -> Response:
    """Return an answer of the provider, with the mark of a call that the cache is on for."""
    return Response(
        response.choices, response.usage, response.model, response.id, response.warnings, response.attempts,
        response.raw, "miss",
    )  # fmt: skip


def encode_response(response: Response) -> bytes:
    """Return an answer as JSON, with its own usage and without the log of its call. Raises ``ValueError`` if it has none."""
    usage = response.usage if response.cached_usage is None else response.cached_usage
    data = replace(response, usage=usage, attempts=(), cache="off", cached_usage=None).to_json()
    try:
        return to_json(data)
    except ValueError:  # half of a surrogate pair
        return dumps(data).encode("utf-8", "surrogatepass")


def decode_response(json: bytes) -> Response:
    """Return the hit of a stored answer. Raises ``ValueError`` for anything else.

    >>> decode_response(encode_response(Response((Choice("4"),), Usage(input_tokens=3)))).cached_usage.input_tokens
    3
    """
    try:
        try:
            data = from_json(json, allow_inf_nan=False)
        except ValueError:
            data = loads(json.decode("utf-8", "surrogatepass"))
        response = Response.from_json(data)
        if _is_sound(response):
            return as_hit(response)
    except (AttributeError, KeyError, RecursionError, TypeError) as error:
        raise ValueError(f"no answer: {error}") from error
    raise ValueError("no answer")


def _is_sound(response: Response) -> bool:
    """Return True if the values that programs read have their types. (``Value.from_json`` checks names only.)"""
    usage = response.usage
    texts: list[object] = [response.model, response.id]
    numbers: list[object] = [
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        usage.cost,
    ]
    required: list[object] = []
    for choice in response.choices:
        required.append(choice.text)
        texts += [choice.reasoning, choice.refusal]
        for part in (*choice.tool_calls, *choice.parts):
            if isinstance(part, ToolCall):
                required += [part.id, part.name]
                texts.append(part.raw_arguments)
            elif isinstance(part, TextPart):
                required.append(part.text)
    return (
        is_complete(response)
        and {*map(type, required)} <= {str}
        and {*map(type, texts)} <= {str, NoneType}
        and {*map(type, numbers)} <= {int, float, NoneType}
    )
