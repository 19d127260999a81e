"""Shared by the tests of the codecs: encode a request unchanged, features of warnings, results of calls."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

from sigwire.core.json import JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, Target


def encoded_untouched(
    codec: Codec[Any], request: Request, target: Target[Any], *, stream: bool = False
) -> EncodedRequest:
    """Encode, and check that encoding did not change the request."""
    before = copy.deepcopy(request)
    sent = codec.encode(request, target, stream=stream)
    assert request == before
    return sent


def features(warnings: Iterable[LMWarning]) -> list[str]:
    return [warning.feature for warning in warnings]


def results_for(message: Message) -> tuple[Message, ...]:
    """A turn with a result for each call of a message; none where nothing was called."""
    results = [ToolResult(call.id, call.name, "ok") for call in message.tool_calls]
    return (Message.tool(*results),) if results else ()


def openai_error(message: str, code: JsonValue = None, kind: JsonValue = None) -> str:
    """The body of an error in OpenAI's form."""
    return json.dumps({"error": {"message": message, "type": kind, "code": code, "param": None}})


def with_parts(*parts: Part, **rest: Any) -> Choice:
    """A choice whose parts have an order."""
    return Choice.from_parts(parts, **rest)
