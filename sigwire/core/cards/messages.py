"""Cards of conversations: messages role by role, each call with its result; requests, choices, responses, usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TypeAlias

from sigwire.core.cards.tools import shown_call, tool_spec_card
from sigwire.core.cards.values import call_facts, json_line, media_line, option_parts, usage_parts, value_line
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.show.card import Card
from sigwire.show.cleaning import inline
from sigwire.show.lines import CardLine, CardTag, ValueLine
from sigwire.show.numbers import count
from sigwire.show.values import call_line, fields_line, short_repr

__all__ = [
    "choice_card", "choice_line", "message_card", "message_cards", "message_line", "request_card", "request_line",
    "response_card", "response_line", "unanswered_rows", "usage_card", "usage_line", "warning_rows",
]  # fmt: skip

Rows: TypeAlias = list[tuple[str, list[CardLine]]]
AnyMessage: TypeAlias = "Message | Mapping[str, object]"


# --- messages -----------------------------------------------------------------------------------------


def message_line(message: Message) -> str:
    """Return a message as Python writes it; one of more than 500 characters has cut parts."""
    return fields_line("Message", {"role": message.role, "parts": message.parts})


def message_card(message: Message) -> Card:
    """Return the card of one message."""
    return _message_card(message, {}, "Message", message.role)


def message_cards(messages: Sequence[AnyMessage]) -> list[Card]:
    """Return the cards of a conversation. The result of a call stands beside the call; a mapping is a turn of fields."""
    cards: list[Card] = []
    answered: set[str] = set()
    for position, message in enumerate(messages):
        if not isinstance(message, Message):
            rows = [(inline(name, 60), [value_line(value)]) for name, value in message.items()]
            cards.append(Card("turn", rows=rows, is_open=True))
        elif message.tool_calls:
            results = _results_after(messages, position)
            answered = {call.id for call in message.tool_calls if call.id in results}
            cards.append(_message_card(message, results, message.role))
        elif (rest := _without_results(message, answered)) is not None:
            cards.append(_message_card(rest, {}, message.role))
    return cards


def _without_results(message: Message, answered: set[str]) -> Message | None:
    """Return a message without the results that stand beside their calls; ``None`` if nothing is left."""
    rest = tuple(part for part in message.parts if not (isinstance(part, ToolResult) and part.id in answered))
    return Message(message.role, rest) if rest or not message.parts else None


def _results_after(messages: Sequence[AnyMessage], position: int) -> dict[str, ToolResult]:
    """Return the results between a message of the model and its next one."""
    turn = takewhile(lambda each: isinstance(each, Message) and each.role != "assistant", messages[position + 1 :])
    return {result.id: result for each in turn if isinstance(each, Message) for result in each.tool_results}


def unanswered_rows(messages: Sequence[AnyMessage]) -> Rows:
    """Return a row with a warning if a call of the conversation has no result."""
    missing: list[str] = []
    for position, message in enumerate(messages):
        if isinstance(message, Message) and message.tool_calls:
            results = _results_after(messages, position)
            missing += [inline(call.name, 60) for call in message.tool_calls if call.id not in results]
    text = f"{count(len(missing), 'call')} without a result: {', '.join(missing[:5])}"
    return [("unanswered", [ValueLine(text, "attention")])] if missing else []


def _message_card(message: Message, results: dict[str, ToolResult], title: str, subtitle: str = "") -> Card:
    rows: Rows = [row for part in message.parts if (row := _part_row(part)) is not None]
    calls = [shown_call(call, results.get(call.id)) for call in message.tool_calls]
    thoughts = [_thought_card(part) for part in message.parts if isinstance(part, ThinkingPart)]
    return Card(title, subtitle, rows, calls=calls, children=thoughts, is_open=True)


def _part_row(part: object) -> tuple[str, list[CardLine]] | None:
    if isinstance(part, ThinkingPart | ToolCall):
        return None
    if isinstance(part, TextPart):
        return "text", [ValueLine(part.text)]
    if isinstance(part, ToolResult):
        shown = shown_call(ToolCall(part.id, part.name, {}), part)
        return f"result of {inline(part.name, 60)}", [ValueLine(shown.result or "", "wrong" if part.is_error else "")]
    if isinstance(part, OpaquePart):
        return f"item of {inline(part.provider, 60)}", [ValueLine(short_repr(part.data, 160), is_code=True)]
    line = media_line(part)
    return ("media", [line]) if line is not None else None


def _thought_card(part: ThinkingPart) -> Card:
    by = f" by {inline(part.provider, 60)}" if part.provider else ""
    signed = f"redacted{by}" if part.redacted is not None else f"signed{by}" if part.signature else ""
    return Card("thinking", signed, [("text", [ValueLine(part.text)])] if part.text else [])


# --- requests -----------------------------------------------------------------------------------------


def request_line(request: Request) -> str:
    """Return ``Request(3 messages, 2 tools, json_schema)``."""
    return call_line("Request", _request_parts(request))


def request_card(request: Request) -> Card:
    """Return the card of a request."""
    options = ", ".join(option_parts(request.options))
    choice = request.tool_choice
    rows: Rows = [
        *unanswered_rows(request.messages),
        ("tool choice", [f"{choice.mode} {', '.join(choice.allowed)}"] if choice is not None else []),
        ("options", [ValueLine(options, is_code=True)] if options else []),
    ]
    children = message_cards(request.messages)
    if request.tools:
        children.append(Card("tools", f"{len(request.tools)}", children=[*map(tool_spec_card, request.tools)]))
    if request.response_format is not None:
        children.append(Card("response format", rows=[("JSON", [json_line(request.response_format.to_json())])]))
    subtitle = ", ".join(_request_parts(request))
    return Card("Request", subtitle, [(label, lines) for label, lines in rows if lines], children=children)


def _request_parts(request: Request) -> list[str]:
    parts = [count(len(request.messages), "message")]
    if request.tools:
        parts.append(count(len(request.tools), "tool"))
    if (form := request.response_format) is not None:
        parts.append("json_object" if form.schema is None else "json_schema")
    return parts


# --- responses ----------------------------------------------------------------------------------------


def usage_line(usage: Usage) -> str:
    """Return ``Usage(185 in, 29 out, 100 cached, $0.0002)``; unknown parts are left out."""
    return call_line("Usage", usage_parts(usage))


def usage_card(usage: Usage) -> Card:
    """Return the card of a usage."""
    return Card("Usage", " · ".join(usage_parts(usage)) or "unknown")


def choice_line(choice: Choice) -> str:
    """Return ``Choice(stop, '4')``."""
    calls = [count(len(choice.tool_calls), "call")] if choice.tool_calls else []
    return call_line("Choice", [choice.finish_reason, *([short_repr(choice.text)] if choice.text else []), *calls])


def choice_card(choice: Choice) -> Card:
    """Return the card of a choice."""
    return _choice_card(choice, "Choice", is_open=True)


def response_line(response: Response) -> str:
    """Return ``Response(openai/gpt-5-mini, stop, 29 out)``."""
    choices = [count(len(response.choices), "choice")] if len(response.choices) != 1 else []
    reasons = dict.fromkeys(str(choice.finish_reason) for choice in response.choices)
    written = [f"{number:,} out"] if (number := response.usage.output_tokens) is not None else []
    hit = ["cache hit"] if response.cache == "hit" else []
    return call_line(
        "Response", [*([inline(response.model, 80)] if response.model else []), *choices, *reasons, *written, *hit]
    )


def response_card(response: Response) -> Card:
    """Return the card of a response."""
    rows: Rows = [
        ("usage", [" · ".join(parts)] if (parts := usage_parts(response.usage)) else []),
        ("call", [" · ".join(call_facts(response.attempts, response.usage))] if response.attempts else []),
        *warning_rows(response.warnings),
    ]
    one = len(response.choices) == 1
    children = [_choice_card(each, f"choice {position}", is_open=one) for position, each in enumerate(response.choices)]
    if response.raw is not None:
        children.append(Card("raw", rows=[("JSON", [json_line(response.raw)])]))
    tags = [CardTag("cache hit", "call")] if response.cache == "hit" else []
    subtitle = inline(response.model) if response.model else ""
    return Card("Response", subtitle, [(label, lines) for label, lines in rows if lines], children=children, tags=tags)


def warning_rows(warnings: Sequence[LMWarning]) -> Rows:
    """Return a row with the warnings."""
    lines: list[CardLine] = [
        ValueLine(f"{each.feature[:160]}: {each.detail[:20_000]}", "attention") for each in warnings[:20]
    ]
    return [("warnings", lines)] if lines else []


def _choice_card(choice: Choice, title: str, *, is_open: bool) -> Card:
    card = _message_card(choice.message(), {}, title, choice.finish_reason)
    refusal: Rows = [("refusal", [ValueLine(choice.refusal, "wrong")])] if choice.refusal else []
    tags = [] if choice.finish_reason in ("stop", "tool_calls") else [CardTag(choice.finish_reason)]
    return Card(
        title,
        card.subtitle,
        [*card.rows, *refusal],
        calls=card.calls,
        children=card.children,
        is_open=is_open,
        tags=tags,
    )
