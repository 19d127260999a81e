"""The embedded model ``offline/lexical``: no weights, no key, no network, the same answer every time.

It is not a large language model. It compares words and fills slots by rules; docs/offline.md says what it can do and cannot.

    words, places, mentions, scene   what a text is made of        reading   a request -> question, examples, results, form
    slots, scores, options, written  a schema put to a text        choice    which tool, and how surely
    filling                          text + schema -> arguments    facts     what results give
    demos                            what examples teach           answers   fields, in the form the prompt teaches
    planning, parallel               the next calls
"""

from __future__ import annotations

import json
import re

from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.tool import ToolCall, number_calls
from sigwire.lm.offline.answers import answer_text, finish_arguments
from sigwire.lm.offline.planning import Call, finish_tool, next_calls
from sigwire.lm.offline.reading import Reading, read_request

__all__ = ["Lexical", "connect"]

MODEL = "offline/lexical"


class Lexical:
    """The backend of ``LM("offline/lexical")``.

    >>> from sigwire.core.messages import Message
    >>> city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    >>> weather = {"name": "weather", "description": "The weather in a city.", "parameters": city}
    >>> request = Request((Message.user("What's the weather in Oslo?"),), ({"type": "function", "function": weather},))
    >>> Lexical().answer(request).choices[0].tool_calls[0].arguments
    {'city': 'Oslo'}
    """

    def answer(self, request: Request) -> Response:
        """Answer by rules; ``n`` choices are the same answer ``n`` times."""
        choice = _answer(read_request(request), request)
        count = request.options.get("n")
        choices = (choice,) * (count if isinstance(count, int) and count > 0 else 1)
        return Response(choices, _usage(request, choice), MODEL)

    async def aanswer(self, request: Request) -> Response:
        """The same, awaited."""
        return self.answer(request)


def connect(name: str, connection: object = None) -> Lexical:
    """The backend for a model of the ``offline`` row."""
    return Lexical()


def _answer(reading: Reading, request: Request) -> Choice:
    calls = next_calls(reading, request.tool_choice, request.parallel_tool_calls is not False)
    if not calls:
        calls = _final_call(reading, request)
    if not calls:
        return Choice(answer_text(reading))
    if reading.tools_as_text:
        return Choice("\n\n".join(_as_text(call) for call in calls))
    taken = [call.id for message in request.messages for call in message.tool_calls]
    return Choice(
        tool_calls=number_calls((ToolCall("", name, arguments) for name, arguments in calls), taken),
        finish_reason="tool_calls",
    )


def _final_call(reading: Reading, request: Request) -> list[Call]:
    """The call that hands in the answer, where a tool takes it and there is something to hand in."""
    finish = finish_tool(reading.tools)
    refused = request.tool_choice is not None and request.tool_choice.mode == "none"
    forced = request.tool_choice is not None and request.tool_choice.mode == "required"
    if finish is None or refused or not (reading.steps or forced or len(reading.tools) == 1):
        return []
    return [(finish.name, finish_arguments(reading, finish.parameters))]


def _as_text(call: Call) -> str:
    name, arguments = call
    return f"~~~tool_call\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n~~~"


_TOKEN = re.compile(r"\w+|[^\w\s]")


def _usage(request: Request, choice: Choice) -> Usage:
    """Words and marks, counted as if they were tokens."""
    read = sum(len(_TOKEN.findall(message.text)) for message in request.messages)
    written = len(_TOKEN.findall(choice.text)) + sum(len(_TOKEN.findall(c.arguments_text)) for c in choice.tool_calls)
    return Usage(input_tokens=read, output_tokens=written)
