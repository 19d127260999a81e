"""Answers as the cache keeps them: which ones, in which JSON, and how a hit differs from the stored answer. Pure.

Most answers are one choice of text. Their JSON is a list, the row: form, text, finish_reason, reasoning, model, id, counts of
the usage, raw, the path of the choice's raw inside raw, and the choice's raw if it has no such path. Any other answer is the
object of ``Response.to_json``.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from types import NoneType
from typing import Any

from pydantic_core import from_json, to_json

from sigwire.core.json import dumps, loads
from sigwire.core.narrow import is_array, is_object
from sigwire.core.parts import TextPart
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall

__all__ = ["as_hit", "as_miss", "decode_response", "encode_response", "is_complete"]

_COMPLETE = frozenset({"stop", "tool_calls", "length"})
_NOTHING = Usage(input_tokens=0, output_tokens=0, cost=0.0)
_TEXTS, _NUMBERS = frozenset({str, NoneType}), frozenset({int, float, NoneType})
_ROW = 1  # the form of a row
_COUNTED = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost",
    "hour_write_tokens",
)
_counts = attrgetter(*_COUNTED)


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
        response.choices,
        response.usage,
        response.model,
        response.id,
        response.warnings,
        response.attempts,
        response.raw,
        "miss",
    )


def encode_response(response: Response) -> bytes:
    """Return an answer as JSON, with its own usage and without the log of its call. Raises ``ValueError`` if it has none."""
    usage = response.usage if response.cached_usage is None else response.cached_usage
    data: object = _row_of(response, usage)
    if data is None:
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
        if is_array(data):
            return _hit_of(*data)
        response = Response.from_json(data)
        if _is_sound(response):
            return as_hit(response)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError) as error:
        raise ValueError(f"no answer: {error}") from error
    raise ValueError("no answer")


# --- rows


def _row_of(response: Response, usage: Usage) -> list[object] | None:
    """Return the row of an answer; ``None`` if it is not one choice of text."""
    if len(response.choices) != 1 or response.warnings:
        return None
    choice, raw = response.choices[0], response.raw
    if choice != Choice(choice.text, (), choice.reasoning, None, choice.finish_reason, raw=choice.raw):
        return None
    path = _path_of(choice.raw, raw)
    return [
        _ROW,
        choice.text,
        choice.finish_reason,
        choice.reasoning,
        response.model,
        response.id,
        _counts(usage),
        raw,
        path,
        choice.raw if path is None else None,
    ]


def _path_of(part: object, raw: object) -> list[str | int] | None:
    """Return the path of an object inside the raw JSON: that of the whole, of a member, or of the first item of a member."""
    if part is None:
        return None
    if part is raw:
        return []
    for name, member in raw.items() if is_object(raw) else ():
        if member is part:
            return [name]
        if is_array(member) and member and member[0] is part:
            return [name, 0]
    return None


def _hit_of(
    form: object,
    text: Any,
    reason: Any,
    reasoning: Any,
    model: Any,
    id: Any,
    counts: Any,
    raw: Any,
    path: Any,
    part: Any,
) -> Response:
    """Return the hit of a row. The values that programs read must have their types."""
    if not (
        form == _ROW
        and type(text) is str
        and text
        and reason in _COMPLETE
        and type(reasoning) in _TEXTS
        and type(model) in _TEXTS
        and type(id) in _TEXTS
        and len(counts) <= len(_COUNTED)
        and _NUMBERS.issuperset(map(type, counts))
    ):
        raise ValueError("no answer")
    if path is not None:
        part = raw
        for step in path:
            part = part[step]
    choice = Choice(text, (), reasoning, None, reason, None, (), (), part)
    return Response((choice,), _NOTHING, model, id, (), (), raw, "hit", Usage(*counts))


# --- other answers


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
        and _TEXTS.issuperset(map(type, texts))
        and _NUMBERS.issuperset(map(type, numbers))
    )
