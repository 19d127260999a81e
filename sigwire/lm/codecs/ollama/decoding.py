"""``/api/chat``: body -> Response, and error reply -> ``LMError``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Part
from sigwire.core.parts import ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.response import Choice, LMWarning, Response
from sigwire.core.tools.calls import ToolCall, number_calls
from sigwire.core.tools.names import NameMap
from sigwire.errors import LMError, LMTransportError
from sigwire.lm.codecs.ollama.tables import ERRORS, FINISH_REASONS, USAGE, OllamaProfile
from sigwire.lm.codecs.shared.choices import resolve_finish, response_of_body
from sigwire.lm.codecs.shared.errors import empty_reply_error, lm_error, read_error_body
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.tools import read_call
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, remove_members, string_of
from sigwire.lm.codecs.shared.usage import read_usage

__all__ = ["decode", "decode_call", "decode_calls", "decode_error", "decode_extras", "decode_text", "error_in_success"]


def decode(body: JsonValue, sent: EncodedRequest, target: Target[OllamaProfile]) -> Response:
    """Return the response of a reply with status 200. Raises an ``LMError`` for an error, a truncated body or no message."""
    message = body.get("message") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(message, dict) or body.get("error"):
        raise error_in_success(body, target)
    if body.get("done") is False:
        raise LMTransportError("The reply is truncated.", model=target.model, provider=target.provider, status=200)
    choice, warnings = _decode_choice(body, message, sent, target)
    return response_of_body(body, (choice,), read_usage(body, USAGE), sent, warnings)


def error_in_success(body: JsonValue, target: Target[OllamaProfile]) -> LMError:
    """Return the error in a reply with status 200."""
    if isinstance(body, dict) and body.get("error"):
        return lm_error(read_error_body(200, {}, body), ERRORS, target)
    return empty_reply_error("message", body, target)


def _decode_choice(
    body: JsonObject, message: JsonObject, sent: EncodedRequest, target: Target[OllamaProfile]
) -> tuple[Choice, tuple[LMWarning, ...]]:
    family = target.profile.family
    texts, extras = decode_text(message, family), decode_extras(message, family)
    text = string_of(message, "content") or ""
    found = number_calls(decode_calls(message, sent.names, family), sent.call_ids)
    reason, calls, warnings = resolve_finish(body.get("done_reason"), FINISH_REASONS, text=text, calls=found)
    logprobs = body.get("logprobs")
    logprobs = {"content": logprobs} if logprobs else None
    rest: dict[str, Any] = {"finish_reason": reason, "logprobs": logprobs, "raw": body}
    if not extras and all(isinstance(part, TextPart) for part in texts):
        return Choice(text, calls, **rest), warnings
    return Choice.from_parts((*texts, *calls, *extras), **rest), warnings


_TURN_FIELDS = frozenset({"role", "content", "thinking", "images", "tool_calls"})


def decode_text(message: JsonObject, family: str) -> tuple[Part, ...]:
    """Return reasoning and text; an empty field is no part."""
    thinking, text = string_of(message, "thinking"), string_of(message, "content")
    reasoning = (ThinkingPart(thinking, provider=family),) if thinking else ()
    return (*reasoning, *((TextPart(text),) if text else ()))


def decode_extras(message: JsonObject, family: str) -> tuple[Part, ...]:
    """Return the images, and the unknown fields as one opaque part."""
    images = message.get("images")
    extra: JsonObject = {name: value for name, value in message.items() if name not in _TURN_FIELDS and value}
    return (
        *(ImagePart(data=data) for data in (images if isinstance(images, list) else ()) if isinstance(data, str)),
        *((OpaquePart(family, extra),) if extra else ()),
    )


def decode_calls(message: JsonObject, names: NameMap, family: str) -> list[ToolCall]:
    """Return the calls of a message."""
    return [decode_call(wire, names, family) for wire in objects_of(message.get("tool_calls"))]


def decode_call(wire: JsonObject, names: NameMap, family: str) -> ToolCall:
    """Return a call. Its unknown fields become its provider data."""
    function = object_of(wire.get("function"))
    extra = remove_members(wire, {"id", "type", "function"})
    if inner := remove_members(function, {"name", "arguments", "index"}):  # the index is the position of the call
        extra["function"] = inner
    arguments = function.get("arguments")
    return read_call(string_of(wire, "id"), string_of(function, "name"), arguments, extra, names, family)


def decode_error(status: int, headers: Mapping[str, str], body: bytes | str, target: Target[OllamaProfile]) -> LMError:
    """Return the error of a reply with an error status.

    >>> from sigwire.lm.codecs.ollama import OLLAMA
    >>> error = decode_error(404, {}, b'{"error": "model not found"}', Target("ollama", "m", OLLAMA))
    >>> type(error).__name__, error.message
    ('LMUnsupportedModelError', 'model not found. Download it with `ollama pull m`, or use a model that `ollama list` shows.')
    """
    return lm_error(read_error_body(status, headers, body), ERRORS, target)
