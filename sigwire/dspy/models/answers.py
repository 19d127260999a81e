"""Answers of a custom model in DSPy's forms -> ``Response``: OpenAI-shaped objects and dicts, and lists of outputs. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from sigwire.core.json import JsonValue
from sigwire.core.narrow import is_mapping
from sigwire.core.response import Choice, FinishReason, LMWarning, Response, Usage
from sigwire.errors import LMUnexpectedError
from sigwire.lm.codecs.shared.usage import UsageReading, read_usage
from sigwire.lm.openai_dicts import decode_text, decode_tool_calls, get

__all__ = ["FINISH_REASONS", "decode_answer"]

FINISH_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop", "end_turn": "stop", "eos": "stop", "length": "length", "max_tokens": "length",
    "tool_calls": "tool_calls", "tool_use": "tool_calls", "function_call": "tool_calls",
    "content_filter": "content_filter", "error": "error",
}  # fmt: skip


def decode_answer(output: object, *, model: str | None = None) -> Response:
    """Return the response of a custom LM's output: a ``Response``, an OpenAI-shaped object or dict, or a list of outputs.

    Attributes and dict keys are equal. An unknown finish reason counts as ``stop``, with a warning. Raises
    ``LMUnexpectedError`` for any other type.

    >>> decode_answer({"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}).choices[0].text
    '4'
    >>> decode_answer(["4", {"text": "5"}]).choices[1].text
    '5'
    """
    if isinstance(output, Response):
        return output
    if isinstance(output, (str, list, tuple)):
        outputs: Sequence[object] = [output] if isinstance(output, str) else cast("Sequence[object]", output)
        return Response(tuple(map(_decode_output, outputs)), model=model)
    choices = get(output, "choices")
    if isinstance(choices, str) or not hasattr(choices, "__iter__"):
        raise LMUnexpectedError(
            f"The language model returned {type(output).__name__}, which has no list of choices. Return an object or dict "
            "with choices[i].message.content, a list of texts, or a sigwire Response.",
            model=model,
        )
    decoded, (usage, doubts) = tuple(map(_decode_choice, choices)), _decode_usage(get(output, "usage"))
    answered, answer_id, warnings = get(output, "model") or model, get(output, "id"), _finish_warnings(choices)
    return Response(decoded, usage, answered, answer_id, (*warnings, *doubts), raw=_json_or_none(output))


def _finish_warnings(choices: Iterable[object]) -> tuple[LMWarning, ...]:
    reasons = (get(choice, "finish_reason") for choice in choices)
    unknown = [reason for reason in reasons if reason is not None and reason not in FINISH_REASONS]
    return tuple(LMWarning("finish_reason", f"{reason!r} is unknown and was read as 'stop'") for reason in unknown)


def _decode_choice(choice: object) -> Choice:
    message = get(choice, "message")
    text = get(choice, "text") if message is None else get(message, "content")  # text: of a text completion
    calls = decode_tool_calls(get(message, "tool_calls"))
    reason = FINISH_REASONS.get(str(get(choice, "finish_reason")), "stop")
    return Choice(
        text if isinstance(text, str) else decode_text(text),
        calls,
        get(message, "reasoning_content") or get(message, "reasoning") or None,
        get(message, "refusal") or None,
        "tool_calls" if calls and reason == "stop" else reason,
        logprobs=_json_or_none(get(choice, "logprobs")),
        raw=_json_or_none(choice),
    )


def _decode_output(item: object) -> Choice:
    if isinstance(item, str):
        return Choice(item)
    if not is_mapping(item):
        raise LMUnexpectedError(
            f"The language model returned a list with {type(item).__name__}. Return texts, or dicts with 'text'."
        )
    calls = decode_tool_calls(item.get("tool_calls"))
    return Choice(
        str(item.get("text") or ""),
        calls,
        item.get("reasoning_content"),
        finish_reason="tool_calls" if calls else "stop",
        logprobs=_json_or_none(item.get("logprobs")),
        citations=tuple(item.get("citations") or ()),
    )


_USAGE: Mapping[str, tuple[str, ...]] = {
    "input_tokens": ("prompt_tokens", "input_tokens"),
    "output_tokens": ("completion_tokens", "output_tokens"),
    "cached_tokens": ("prompt_tokens_details.cached_tokens", "cached_tokens"),
    "reasoning_tokens": ("completion_tokens_details.reasoning_tokens", "reasoning_tokens"),
    "cost": ("cost",),
}
_NAMES = {name: name for name in _USAGE}


def _decode_usage(usage: object) -> UsageReading:
    if isinstance(usage, Usage):
        return UsageReading(usage)
    return read_usage({name: _first_number(usage, paths) for name, paths in _USAGE.items()}, _NAMES)


def _first_number(data: object, paths: tuple[str, ...]) -> Any:
    values = (functools.reduce(get, path.split("."), data) for path in paths)
    return next((value for value in values if isinstance(value, (int, float))), None)


def _json_or_none(value: object) -> JsonValue:
    """Return a JSON value, or the dump of a pydantic model; None for any other object."""
    if isinstance(value, (str, int, float, bool, dict, list)) or value is None:
        return cast(JsonValue, value)
    dump = getattr(value, "model_dump", None)
    return cast(JsonValue, dump(mode="json")) if callable(dump) else None
