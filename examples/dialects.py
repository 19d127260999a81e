"""A model that has no tools and writes its calls as text, in the form of its family.

Behind it is `offline/lexical`, which calls tools natively. ``Speaker`` stands between: it reads a request as such a model would
(the tools listed in the system message, earlier calls and their results as text) and writes the calls of the answer as text.
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

__all__ = ["Speaker"]

RESULT = re.compile(r'\{"name": .*\}')  # a result stands on one line, whatever marks its dialect puts around it


class Speaker:
    """Answers requests in a dialect: `FakeProvider(Speaker("hermes"))`."""

    def __init__(self, dialect: str) -> None:
        self._style = style_named(dialect)
        self._lm = sigwire.LM("offline/lexical")

    def __call__(self, request: Request) -> Choice:
        """The next turn, its calls among the words."""
        tools = listed(request.messages[0].text)
        messages = tuple(understood(request.messages[1:], tools))
        choice = self._lm.respond(Request(messages, tuple(tool.spec for tool in tools))).choices[0]
        if not choice.tool_calls:
            return choice
        return Choice(f"I use {choice.tool_calls[0].name}.\n{self._style.calls(choice.tool_calls)}")


def listed(system: str) -> list[Tool]:
    """The tools of a system message: one JSON object a line, up to an empty line."""
    lines = system.partition("\nTools:\n")[2].partition("\n\n")[0].splitlines()
    return [Tool.from_schema(**json.loads(line)) for line in lines]


def understood(messages: Iterable[Message], tools: Iterable[Tool]) -> Iterator[Message]:
    """The conversation with its calls and results, which stand in it as text."""
    schemas = {tool.name: tool.parameters for tool in tools}
    waiting: list[ToolCall] = []
    for message in messages:
        results = [json.loads(found) for found in RESULT.findall(message.text)] if message.role == "user" else []
        if message.role == "assistant":
            said = read_calls(message.text, schemas)
            waiting = [replace(call, id=f"call_{number}") for number, call in enumerate(said.calls)]
            yield Message("assistant", tuple(waiting))
        elif results:
            yield Message("tool", tuple(answered(call, data) for call, data in zip(waiting, results, strict=True)))
        else:
            yield message


def answered(call: ToolCall, data: Mapping[str, Any]) -> ToolResult:
    return ToolResult(call.id, call.name, data.get("error", data.get("result")), "error" in data)
