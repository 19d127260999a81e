"""A model that has no tools and writes its calls as text, in the form of its family.

``DialectModel`` wraps `offline/lexical`, which calls tools natively. It parses the request from the prompt (the tools listed in
the system message, earlier calls and their results as text) and writes the calls of the answer as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sigwire
from sigwire import Choice, Message, Request, Tool, ToolCall, ToolResult
from sigwire.adapters.text_tools import read_calls
from sigwire.adapters.text_tools.styles import style_named

__all__ = ["DialectModel"]

RESULT = re.compile(r'\{"name": .*\}')  # a result is one line, between any marks of its dialect


class DialectModel:
    """Answers requests in a dialect: `FakeProvider(DialectModel("hermes"))`."""

    def __init__(self, dialect: str) -> None:
        self._style = style_named(dialect)
        self._lm = sigwire.LM("offline/lexical")

    def __call__(self, request: Request) -> Choice:
        """Return the next turn, with its calls in the text."""
        tools = listed_tools(request.messages[0].text)
        messages = tuple(parsed_messages(request.messages[1:], tools))
        choice = self._lm.respond(Request(messages, tuple(tool.spec for tool in tools))).choices[0]
        if not choice.tool_calls:
            return choice
        return Choice(f"I use {choice.tool_calls[0].name}.\n{self._style.calls(choice.tool_calls)}")


def listed_tools(system: str) -> list[Tool]:
    """Return the tools of a system message: one JSON object a line, up to an empty line."""
    lines = system.partition("\nTools:\n")[2].partition("\n\n")[0].splitlines()
    return [Tool.from_schema(**json.loads(line)) for line in lines]


def parsed_messages(messages: Iterable[Message], tools: Iterable[Tool]) -> Iterator[Message]:
    """Yield the conversation with its calls and results parsed from text."""
    schemas = {tool.name: tool.parameters for tool in tools}
    waiting: list[ToolCall] = []
    for message in messages:
        results = [json.loads(found) for found in RESULT.findall(message.text)] if message.role == "user" else []
        if message.role == "assistant":
            parsed = read_calls(message.text, schemas)
            waiting = [replace(call, id=f"call_{number}") for number, call in enumerate(parsed.calls)]
            yield Message("assistant", tuple(waiting))
        elif results:
            yield Message("tool", tuple(answered(call, data) for call, data in zip(waiting, results, strict=True)))
        else:
            yield message


def answered(call: ToolCall, data: Mapping[str, Any]) -> ToolResult:
    return ToolResult(call.id, call.name, data.get("error", data.get("result")), "error" in data)
