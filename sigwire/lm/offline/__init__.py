"""The embedded model ``offline/lexical``: no weights, key or network; equal requests get equal answers.

It is not a language model: it matches words and fills slots by rules. docs/offline.md lists its limits.

    words, mentions             tokens, stems and values of a text
    slots, scoring, filling     a JSON Schema and a text -> arguments
    prompt_types, request       a request -> question, demos, steps, tools, outputs
    tool_choice, examples       the tools that suit a question; hints from demos
    planning, answers           the next calls; the fields of an answer and its form
    evidence                    distributions of deciding outputs
    vectors                     vectors of words, for embeddings
"""

from __future__ import annotations

import json
import re
from itertools import islice

from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, number_calls
from sigwire.core.tools.choice import ToolChoice
from sigwire.lm.offline.answers import answer_text, finish_arguments
from sigwire.lm.offline.evidence import evidence_of
from sigwire.lm.offline.planning import Call, finish_tool, next_calls
from sigwire.lm.offline.request import PromptContent, read_request
from sigwire.lm.option_aliases import OPTION_NAMES

__all__ = ["Lexical", "connect"]

_MODEL = "offline/lexical"


class Lexical:
    """The backend of ``LM("offline/lexical")``.

    >>> from sigwire.core.messages import Message
    >>> city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    >>> weather = {"name": "weather", "description": "The weather in a city.", "parameters": city}
    >>> request = Request((Message.user("What's the weather in Oslo?"),), ({"type": "function", "function": weather},))
    >>> Lexical().answer(request).choices[0].tool_calls[0].arguments
    {'city': 'Oslo'}
    """

    option_names = OPTION_NAMES | {"evidence"}

    def answer(self, request: Request) -> Response:
        """Return the response to a request; with ``n`` choices, all are equal."""
        choice = _limited(_answer(read_request(request), request), request.options.get("max_tokens"))
        count = request.options.get("n")
        choices = (choice,) * (count if isinstance(count, int) and count > 0 else 1)
        return Response(choices, _usage(request, choice), _MODEL)

    async def aanswer(self, request: Request) -> Response:
        """Return the response to a request."""
        return self.answer(request)


def connect(name: str, connection: object = None) -> Lexical:
    """Return the backend for a model of the ``offline`` row."""
    return Lexical()


def _answer(content: PromptContent, request: Request) -> Choice:
    calls = next_calls(content, request.tool_choice or ToolChoice.AUTO, request.parallel_tool_calls is not False)
    calls = calls or _final_call(content, request)
    if not calls:
        if request.options.get("evidence"):
            return Choice(answer_text(content), evidence=evidence_of(content))
        return Choice(answer_text(content))
    if content.tools_as_text:
        return Choice("\n\n".join(_call_text(call) for call in calls))
    taken = [call.id for message in request.messages for call in message.tool_calls]
    return Choice(
        tool_calls=number_calls((ToolCall("", name, arguments) for name, arguments in calls), taken),
        finish_reason="tool_calls",
    )


def _final_call(content: PromptContent, request: Request) -> list[Call]:
    """Return the call that submits the answer, if a tool is offered for that and an answer is due."""
    finish = finish_tool(content.tools)
    mode = request.tool_choice.mode if request.tool_choice is not None else "auto"
    is_due = content.steps or mode == "required" or len(content.tools) == 1
    if finish is None or mode == "none" or not is_due:
        return []
    return [(finish.name, finish_arguments(content, finish.parameters))]


def _call_text(call: Call) -> str:
    name, arguments = call
    return f"~~~tool_call\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n~~~"


_TOKEN = re.compile(r"\w+|[^\w\s]")


def _limited(choice: Choice, limit: object) -> Choice:
    """Return the choice, cut after ``limit`` tokens; as with a provider, a call that is cut has broken arguments.

    >>> cut = _limited(Choice("Oslo is in Norway."), 2)
    >>> cut.text, cut.finish_reason
    ('Oslo is', 'length')
    """
    texts = (choice.text, *(call.arguments_text for call in choice.tool_calls))
    if not isinstance(limit, int) or limit < 1 or sum(map(_count, texts)) <= limit:
        return choice
    text, calls, left = _first_tokens(choice.text, limit), list[ToolCall](), limit - _count(choice.text)
    for call in choice.tool_calls:
        if 0 < left < _count(call.arguments_text):
            calls.append(ToolCall.read(call.id, call.name, _first_tokens(call.arguments_text, left)))
        elif left > 0:
            calls.append(call)
        left -= _count(call.arguments_text)
    return Choice(text, tuple(calls), finish_reason="length")


def _first_tokens(text: str, limit: int) -> str:
    ends = [match.end() for match in islice(_TOKEN.finditer(text), limit)]
    return text[: ends[-1]] if len(ends) == limit else text


def _count(text: str) -> int:
    return len(_TOKEN.findall(text))


def _usage(request: Request, choice: Choice) -> Usage:
    written = sum(map(_count, (choice.text, *(call.arguments_text for call in choice.tool_calls))))
    return Usage(input_tokens=sum(_count(message.text) for message in request.messages), output_tokens=written)
