"""Chat completions: a call that the host itself refused, read out of its error.

Some hosts (Groq) check a call before they hand it on, and answer with an error that holds what the model wrote. That is
an answer: the call goes to the caller with the host's complaint as its error, so that the model is told, as with any
other call that cannot be run. Where it cannot be told which tool was meant, the error stays one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.tool import CallError, ToolCall, number_calls
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.shared.errors import read_body, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, value_at

__all__ = ["recover", "recovered"]

_REFUSED = "tool_use_failed"


def recover(
    status: int, headers: Mapping[str, str], body: bytes | str, sent: EncodedRequest, target: Target[ChatProfile]
) -> Response | None:
    """The answer that an error reply holds; ``None`` where it holds none.

    >>> from sigwire.core.tools.names import NameMap, NameRules
    >>> sent = EncodedRequest("", {}, {}, {}, (), NameMap((), NameRules()))
    >>> body = '{"error": {"code": "tool_use_failed", "message": "x is missing", "failed_generation": '
    >>> body += '"{\\\\"name\\\\": \\\\"f\\\\", \\\\"arguments\\\\": {}}"}}'
    >>> recover(400, {}, body, sent, Target("groq", "m", ChatProfile())).choices[0].tool_calls[0].error.message
    'x is missing'
    """
    return recovered(read_body(body), sent, target)


def recovered(body: JsonValue, sent: EncodedRequest, target: Target[ChatProfile]) -> Response | None:
    """The same of a parsed body, or of an event in a stream."""
    calls = _refused_calls(body, sent)
    if not calls:
        return None
    said = read_error_body(None, {}, body).message
    warning = LMWarning("tool_calls", f"{target.provider} refused the model's call: {said}")
    choice = Choice(tool_calls=calls, finish_reason="tool_calls", raw=body)
    return Response((choice,), model=target.model, warnings=(*sent.warnings, warning), raw=body)


def _refused_calls(body: JsonValue, sent: EncodedRequest) -> tuple[ToolCall, ...]:
    """The calls that the error in a body holds, each with the host's complaint; none for any other error."""
    error = value_at(body, "error")
    text = string_of(error, "failed_generation")
    if string_of(error, "code") != _REFUSED or text is None:
        return ()
    said = string_of(error, "message") or "The provider refused the call."
    return number_calls(_read_calls(text, said, sent), sent.call_ids)


def _read_calls(text: str, said: str, sent: EncodedRequest) -> list[ToolCall]:
    """As JSON; else as the whole text for the one tool that it names."""
    try:
        data: JsonValue = loads(text)
    except ValueError:
        data = None
    wires = [wire for wire in objects_of(data if isinstance(data, list) else [data]) if string_of(wire, "name")]
    if wires:
        return [_read_call(wire, said, sent) for wire in wires]
    named = [name for name in _offered(sent) if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
    if len(named) != 1:
        return []
    return [ToolCall("", sent.names.decode(named[0]), None, text, CallError("malformed_json", said))]


def _read_call(wire: JsonObject, said: str, sent: EncodedRequest) -> ToolCall:
    given = wire["arguments"] if "arguments" in wire else wire.get("parameters")
    call = ToolCall.read("", sent.names.decode(string_of(wire, "name") or ""), given)
    error = CallError(call.error.code if call.error else "schema_mismatch", said)
    return ToolCall("", call.name, call.arguments, call.raw_arguments, error)


def _offered(sent: EncodedRequest) -> list[str]:
    functions = (tool.get("function") for tool in objects_of(sent.body.get("tools")))
    return [name for function in functions if (name := string_of(function, "name"))]
