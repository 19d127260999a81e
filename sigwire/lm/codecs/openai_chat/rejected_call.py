"""Chat completions: read a call that the host rejected out of its error.

Some hosts (Groq) validate the calls of a model, and answer with an error that holds the text of a rejected call. That
error becomes a response: the call, with the host's complaint as its ``error``, so that the model can correct the call.
If the text does not determine the tool, the error is raised like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.calls import CallError, ToolCall, number_calls
from sigwire.lm.codecs.openai_chat.profiles import ChatProfile
from sigwire.lm.codecs.shared.errors import read_body, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, value_at

__all__ = ["recover", "recover_event"]


def recover(
    status: int, headers: Mapping[str, str], body: bytes | str, sent: EncodedRequest, target: Target[ChatProfile]
) -> Response | None:
    """Return the response in an error reply, or None if the error holds no call.

    >>> from sigwire.core.tools.names import NameMap, NameRules
    >>> sent = EncodedRequest("", {}, {}, {}, (), NameMap((), NameRules()))
    >>> body = '{"error": {"code": "tool_use_failed", "message": "x is missing", "failed_generation": '
    >>> body += '"{\\\\"name\\\\": \\\\"f\\\\", \\\\"arguments\\\\": {}}"}}'
    >>> recover(400, {}, body, sent, Target("groq", "m", ChatProfile())).choices[0].tool_calls[0].error.message
    'x is missing'
    """
    return recover_event(read_body(body), sent, target)


def recover_event(body: JsonValue, sent: EncodedRequest, target: Target[ChatProfile]) -> Response | None:
    """Return the response in a parsed error body or in an error event of a stream, else None."""
    calls = _rejected_calls(body, sent)
    if not calls:
        return None
    complaint = read_error_body(None, {}, body).message
    warning = LMWarning("tool_calls", f"{target.provider} rejected the model's call: {complaint}")
    choice = Choice(tool_calls=calls, finish_reason="tool_calls", raw=body)
    return Response((choice,), model=target.model, warnings=(*sent.warnings, warning), raw=body)


def _rejected_calls(body: JsonValue, sent: EncodedRequest) -> tuple[ToolCall, ...]:
    error = value_at(body, "error")
    text = string_of(error, "failed_generation")
    if string_of(error, "code") != "tool_use_failed" or text is None:
        return ()
    complaint = string_of(error, "message") or "The provider rejected the call."
    return number_calls(_parse_calls(text, complaint, sent), sent.call_ids)


def _parse_calls(text: str, complaint: str, sent: EncodedRequest) -> list[ToolCall]:
    """Parse the text as JSON. Any other text is the raw arguments of a call if it contains the name of one tool."""
    try:
        data: JsonValue = loads(text)
    except ValueError:
        data = None
    wires = [wire for wire in objects_of(data if isinstance(data, list) else [data]) if string_of(wire, "name")]
    if wires:
        return [_parse_call(wire, complaint, sent) for wire in wires]
    named = [name for name in _offered_names(sent) if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
    if len(named) != 1:
        return []
    return [ToolCall("", sent.names.decode(named[0]), None, text, CallError("malformed_json", complaint))]


def _parse_call(wire: JsonObject, complaint: str, sent: EncodedRequest) -> ToolCall:
    given = wire["arguments"] if "arguments" in wire else wire.get("parameters")
    call = ToolCall.read("", sent.names.decode(string_of(wire, "name") or ""), given)
    error = CallError(call.error.code if call.error else "schema_mismatch", complaint)
    return ToolCall("", call.name, call.arguments, call.raw_arguments, error)


def _offered_names(sent: EncodedRequest) -> list[str]:
    functions = (tool.get("function") for tool in objects_of(sent.body.get("tools")))
    return [name for function in functions if (name := string_of(function, "name"))]
