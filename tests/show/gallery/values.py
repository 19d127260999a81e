"""Specimens of core and signatures: records, messages, calls, tools, signatures, histories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, cast

from sigwire.core.cards.examples import Examples
from sigwire.core.example import Completions, Example, Prediction
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.parts import FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Attempt, Choice, LMWarning, Repair, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolCalls, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.core.tools.tool import Tool
from sigwire.core.typed_dict import TypeExpression
from sigwire.show.card import HasCard
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import SignatureMeta, make_signature
from sigwire.signatures.types.history import History
from sigwire.signatures.types.media import Image
from tests.show.gallery.material import Material

__all__ = ["VALUES", "conversation", "conversation_request", "pixel", "signature"]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="


def pixel() -> Image:
    """Return an image of one pixel."""
    return Image(data=PIXEL, media_type="image/png")


def signature(of: Material) -> SignatureMeta:
    """Return a signature with texts in every place."""
    literal: TypeExpression = Literal
    kind = literal[tuple(f"{at} {of.text[:2_000]}" for at in range(of.count + 1))]
    fields = {
        "question": (str, InputField(desc=of.text)),
        "topic": (kind, OutputField(desc=of.text, default=of.text)),
        **{f"answer_{at}": (list[str] | None, OutputField()) for at in of.indices[:20]},
    }
    made: SignatureMeta = make_signature(cast("Mapping[str, object]", fields), of.encodable)
    return made


def conversation(of: Material) -> tuple[Message, ...]:
    """Return messages with calls, results, thinking and media; one call has no result."""
    calls = [ToolCall(f"call_{at}", of.name, {of.name: of.text, "at": at}) for at in of.indices]
    results = [ToolResult(call.id, call.name, of.text, at == 0) for at, call in enumerate(calls[:-1])]
    thought = ThinkingPart(of.text, signature="s", provider=of.name)
    return (
        Message.system(of.text),
        Message.user(of.text, ImagePart(url=of.text), FilePart(url=of.text, filename=of.name), pixel().part()),
        Message("assistant", (thought, TextPart(of.text), OpaquePart(of.name, {of.name: of.text}), *calls)),
        *([Message.tool(*results)] if results else []),
        *(Message.user(of.text) for _ in of.indices),
    )


def _example(of: Material) -> Example:
    fields = {of.name: of.text, "question": of.text, "answer": [of.text] * of.count}
    return Example(fields).with_inputs("question", of.name)


def _prediction(of: Material) -> Prediction:
    outputs = {"topic": of.text, "image": pixel(), of.name: {of.name: of.text}}
    repairs = [Repair(None, of.text)] * of.count
    response = _response(of)
    return Prediction.make(
        outputs,
        signature=signature(of),
        response=response,
        choice=response.choices[0] if response.choices else None,
        repairs=repairs,
        mode=of.name,
        attempts=[Attempt(model=of.name, usage=Usage(185, 29))],
    )


def _completions(of: Material) -> Completions:
    return Completions([{of.name: of.text, "number": at // 2} for at in of.indices])


def _examples(of: Material) -> Examples:
    rows = [_example(of).copy(number=at) for at in of.indices]
    return Examples(rows, **{of.name: rows[:1]})


def conversation_request(of: Material) -> Request:
    """Return a request with messages, tools, a schema and options."""
    property_schema: JsonObject = {"type": "string", "description": of.text[:100_000]}
    schema: JsonObject = {"type": "object", "properties": {of.name: property_schema}}
    return Request(
        conversation(of),
        tuple(_tool(of, at).spec for at in of.indices[:3]),
        ToolChoice("required", (of.name,)),
        response_format=ResponseFormat(schema),
        options={"stop": [of.text], "temperature": 0.2, "extra_headers": {"x": of.text}},
    )


def _choice(of: Material) -> Choice:
    calls = tuple(ToolCall(f"call_{at}", of.name, None, of.text) for at in of.indices)
    return Choice(of.text, calls, of.text or None, of.text or None, raw={of.name: of.text})


def _response(of: Material) -> Response:
    warnings = tuple(LMWarning(of.name, of.text, of.name) for _ in of.indices)
    choices = tuple(_choice(of) for _ in of.indices)
    return Response(
        choices, Usage(185, 29, 100, cost=0.0002), of.name, of.name, warnings, raw={of.name: of.text}, cache="hit"
    )


def _tool(of: Material, number: int = 0) -> Tool:
    text = of.text[:100_000]  # schemas are compiled
    argument = {"type": "string", "description": text, "default": text, "enum": [text]}
    arguments = {f"{of.name}{at}": argument for at in of.indices}
    return Tool.from_schema(f"{of.name}{number}", of.text, {"type": "object", "properties": arguments}, timeout=5.0)


def _tool_calls(of: Material) -> ToolCalls:
    return ToolCalls([ToolCall(f"call_{at}", of.name, {of.name: of.text}) for at in of.indices], of.text)


def _history(of: Material) -> History:
    return History([*({of.name: of.text} for _ in of.indices), *conversation(of)])


VALUES: Mapping[type, Callable[[Material], HasCard]] = {
    Choice: _choice,
    Completions: _completions,
    Example: _example,
    Examples: _examples,
    History: _history,
    Message: lambda of: conversation(of)[2],
    Prediction: _prediction,
    Request: conversation_request,
    Response: _response,
    SignatureMeta: signature,
    Tool: _tool,
    ToolCalls: _tool_calls,
    Usage: lambda of: Usage(185, of.count),
}
"""Specimens by class."""
