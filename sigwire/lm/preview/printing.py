"""Print calls of models for people, as JSON of the wire, or as JSON lines. Every text is cleaned and bounded."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TextIO, TypeAlias

from sigwire.core.json import JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import ConfigurationError
from sigwire.lm.preview.call_log import CallLog, CallRecord
from sigwire.lm.preview.model_call import ModelCall
from sigwire.lm.preview.preview import Preview
from sigwire.lm.preview.tokens import tokens_of_messages
from sigwire.show.cleaning import visible

__all__ = ["HistoryFormat", "print_calls", "print_log"]

HistoryFormat: TypeAlias = Literal["json", "text", "wire"]
_MOST = 20_000  # characters of one text


def print_calls(
    records: Sequence[CallRecord],
    file: TextIO | None = None,
    format: HistoryFormat = "text",
    preview: Callable[[Request], Preview] | None = None,
) -> None:
    """Print calls, oldest first. ``preview`` encodes a request for the format "wire".

    Raises ``ConfigurationError`` for another format.
    """
    if format not in ("json", "text", "wire"):
        raise ConfigurationError(f'format is "text", "wire" or "json", not {format!r:.80} (printing the history).')
    system = ""
    for call in map(ModelCall.of, records):
        if format == "json":
            lines: Iterable[str] = (_json_line(call.to_json()),)
        elif format == "wire":
            lines = _wire_lines(call, preview)
        else:
            lines = _text_lines(call, system)
            system = _system_of(call.request)
        for line in lines:
            print(line, file=file)


def print_log(owner: str, log: CallLog | None, n: int, file: TextIO | None) -> None:
    """Print the last ``n`` calls of a module, or how calls are recorded."""
    records = log.records if log is not None else []
    if not records:
        print(
            f"{owner} has no recorded calls. Write configure(max_history_size=100) before the call; "
            "a model's own lm.inspect_history() works without.",
            file=file,
        )
    print_calls(records[-n:] if n > 0 else [], file)


# --- text ------------------------------------------------------------------------------------------------


def _text_lines(call: ModelCall, system_before: str) -> Iterator[str]:
    """Yield a head, each message under its role with demos folded, and the answers or the error."""
    yield f"\n--- {_head(call)} ---"
    messages, first = call.request.messages, 0
    if system_before and _system_of(call.request) == system_before:
        yield from ("\nsystem:", "as above")
        first = 1
    if demos := messages[1 : 1 + _demos_of(call.request)]:
        if first == 0:
            yield from _message_lines(messages[0])
        count = sum(each.role == "user" for each in demos)
        yield f"\n{count} demo{'s' if count > 1 else ''}, {tokens_of_messages(call.model, demos):,} tokens"
        first = 1 + len(demos)
    for message in messages[first:]:
        yield from _message_lines(message)
    yield from _answer_lines(call)


def _answer_lines(call: ModelCall) -> Iterator[str]:
    choices = () if call.response is None else call.response.choices
    for number, choice in enumerate(choices, 1):
        yield f"\nanswer{'' if len(choices) == 1 else f' {number}'}:"
        yield from _choice_lines(choice)
    if (problem := call.problem()) is not None:
        yield f"\nerror:\n{_clean(problem)}"


def _head(call: ModelCall) -> str:
    at = datetime.datetime.fromtimestamp(call.time, datetime.UTC).isoformat(timespec="seconds")
    return " · ".join([f"{visible(call.model)} at {at}", *call.facts()])


def _demos_of(request: Request) -> int:
    """Return the number of messages of demos, which follow the system message."""
    first = request.repeated[0] if request.repeated else 0
    starts = bool(request.messages) and request.messages[0].role == "system"
    return max(first - 1, 0) if starts and first <= len(request.messages) else 0


def _system_of(request: Request) -> str:
    return request.messages[0].text if request.messages and request.messages[0].role == "system" else ""


def _message_lines(message: Message) -> Iterator[str]:
    yield f"\n{message.role}:"
    for part in message.parts:
        if isinstance(part, TextPart):
            yield _clean(part.text)
        elif isinstance(part, ToolCall):
            yield _call_line(part)
        elif isinstance(part, ToolResult):
            yield f"{visible(part.name)} = {_clean(part.text)}"
        else:
            yield _clean(part.text) if isinstance(part, ThinkingPart) and part.text else f"[{part.kind}]"


def _choice_lines(choice: Choice) -> Iterator[str]:
    if choice.reasoning:
        yield f"[reasoning] {_clean(choice.reasoning)}"
    if choice.text:
        yield _clean(choice.text)
    yield from map(_call_line, choice.tool_calls)


def _call_line(call: ToolCall) -> str:
    return f"-> {visible(call.name)}({_clean(call.arguments_text)})"


def _clean(text: str) -> str:
    rest = len(text) - _MOST
    return visible(text[:_MOST]) + (f" … {rest:,} more characters" if rest > 0 else "")


# --- wire and JSON ---------------------------------------------------------------------------------------


def _wire_lines(call: ModelCall, preview: Callable[[Request], Preview] | None) -> Iterator[str]:
    """Yield the provider's JSON both ways; the canonical forms of a model without a wire."""
    yield f"\n--- {_head(call)} ---"
    wire = preview(call.request).wire if preview is not None else None
    plain = call.to_json()
    yield _json_line(wire["body"] if wire is not None else plain["request"], 2)
    if (problem := call.problem()) is not None:
        yield f"error: {_clean(problem)}"
    elif call.response is not None:
        yield _json_line(call.response.raw if call.response.raw is not None else plain["response"], 2)


def _json_line(value: JsonValue, indent: int | None = None) -> str:
    return visible(json.dumps(value, ensure_ascii=False, indent=indent, default=str))
