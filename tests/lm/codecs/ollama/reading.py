"""``/api/chat``: body -> Request, the opposite of ``encoding``, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Role
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult, number_calls
from sigwire.core.tools.names import NameMap
from sigwire.lm.codecs.ollama.decoding import decode_calls, decode_extras, decode_text
from sigwire.lm.codecs.ollama.tables import OLLAMA, OPTIONS, THINK, OllamaProfile
from sigwire.lm.codecs.shared.options import Place
from sigwire.lm.codecs.shared.untrusted import objects_of, remove_members, string_of
from tests.lm.codecs.reading import read_error_text

__all__ = ["read_request"]


def read_request(body: JsonObject, profile: OllamaProfile = OLLAMA) -> Request:
    """Return the request of a body. Unknown data become opaque parts and ``extra_body``."""
    known = {"model", "messages", "stream", "tools", "format"}
    rest: JsonObject = {
        name: value
        for name, value in body.items()
        if name not in known and profile.defaults.get(name, _ABSENT) != value
    }
    return Request(
        tuple(_read_messages(objects_of(body.get("messages")), profile)),
        objects_of(body.get("tools")),
        None,
        None,
        _read_format(body.get("format")),
        _read_options(rest, profile),
    )


_ABSENT = object()


def _read_format(wire: JsonValue) -> ResponseFormat | None:
    if isinstance(wire, dict):
        return ResponseFormat(wire)
    return ResponseFormat() if wire == "json" else None


def _read_options(rest: JsonObject, profile: OllamaProfile) -> JsonObject:
    places = {option.path: name for name, option in OPTIONS.items() if isinstance(option, Place)}
    inner = rest.get("options")
    inner = inner if isinstance(inner, dict) else {}
    given = {**rest, **{f"options.{name}": value for name, value in inner.items()}}
    options: JsonObject = {places[path]: value for path, value in given.items() if path in places}
    efforts = [effort for effort in profile.efforts if THINK[effort] == rest.get("think", _ABSENT)]
    if efforts:
        options["reasoning"] = efforts[0]
    extra = remove_members(rest, {*places, "options", *(["think"] if efforts else [])})
    if unknown := {name: value for name, value in inner.items() if f"options.{name}" not in places}:
        extra["options"] = unknown
    return {**options, "extra_body": extra} if extra else options


_ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def _read_messages(wires: Iterable[JsonObject], profile: OllamaProfile) -> list[Message]:
    messages: list[Message] = []
    waiting: list[ToolCall] = []
    for wire in wires:
        role = string_of(wire, "role") or "user"
        if role == "tool":
            result = _read_result(wire, waiting)
            together = messages[-1].tool_results if messages and messages[-1].role == "tool" else ()
            messages[len(messages) - bool(together) :] = [Message.tool(*together, result)]
            continue
        taken = [call.id for message in messages for call in message.tool_calls]
        calls = number_calls(decode_calls(wire, NameMap((), profile.names), profile.family), taken)
        waiting = list(calls) or waiting
        parts = (*decode_text(wire, profile.family), *calls, *decode_extras(wire, profile.family))
        messages.append(Message(_ROLES.get(role, "user"), parts))
    return messages


def _read_result(wire: JsonObject, waiting: list[ToolCall]) -> ToolResult:
    """Pair a result with the call of its id, else with the first open call of its tool, else with the first open call."""
    call_id, name = string_of(wire, "tool_call_id"), string_of(wire, "tool_name")
    fitting = ([c for c in waiting if c.id == call_id], [c for c in waiting if c.name == name], waiting)
    call = next((calls[0] for calls in fitting if calls), None)
    if call is not None:
        waiting.remove(call)
    value, failed = read_error_text(string_of(wire, "content") or "")
    return ToolResult(call_id or (call.id if call else ""), name or (call.name if call else ""), value, failed)
