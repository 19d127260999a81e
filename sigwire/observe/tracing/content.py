"""Content of calls as JSON: messages in the form of the conventions, arguments, results, and texts of exceptions.

``Content`` passes every value through the user's ``redact`` before it is written. Off, it writes nothing.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.core.parts import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import warn_user
from sigwire.observe.tracing import names

__all__ = ["Content", "Redact", "plain"]

Redact: TypeAlias = Callable[[str, JsonValue], JsonValue]
"""Called with the name of an attribute and its value as JSON data. Returns the value to record; ``None`` records nothing."""


class Content:
    """Writes content into attributes, if ``is_on``, after ``redact``.

    >>> Content(True, lambda kind, value: "***").attributes(names.TOOL_RESULT, {"card": "4111"})
    {'gen_ai.tool.call.result': '***'}
    >>> Content(False).attributes(names.TOOL_RESULT, {"card": "4111"})
    {}
    """

    def __init__(self, is_on: bool, redact: Redact | None = None) -> None:
        self.is_on, self._redact = is_on, redact

    def attributes(self, kind: str, value: object) -> dict[str, str]:
        """Return the attribute of a value; empty if content is off. If ``redact`` raises, the value is not recorded."""
        if not self.is_on:
            return {}
        shown = plain(value)
        if self._redact is not None:
            try:
                shown = self._redact(kind, shown)
            except Exception as error:
                warn_user(f"redact raised {type(error).__name__} for {kind}, which is not recorded.", RuntimeWarning)
                return {}
        if shown is None:
            return {}
        return {kind: shown if isinstance(shown, str) else json.dumps(plain(shown), ensure_ascii=False)}

    def of_request(self, request: object) -> dict[str, str]:
        """Return instructions, messages and tools of a request."""
        if not self.is_on or not isinstance(request, Request):
            return {}
        system = [
            part for message in request.messages if message.role == "system" for part in map(_part, message.parts)
        ]
        found = self.attributes(names.SYSTEM_INSTRUCTIONS, system) if system else {}
        found |= self.attributes(
            names.INPUT_MESSAGES, [_message(one) for one in request.messages if one.role != "system"]
        )
        return found | (
            self.attributes(names.TOOL_DEFINITIONS, list(map(_tool, request.tools))) if request.tools else {}
        )

    def of_response(self, response: Response) -> dict[str, str]:
        """Return the messages of a response, one a choice."""
        if not self.is_on:
            return {}
        return self.attributes(names.OUTPUT_MESSAGES, [_message(choice.message()) for choice in response.choices])

    def of_exception(self, error: BaseException) -> dict[str, str]:
        """Return type, message and stack of an exception. The message is content: it may quote an answer or an argument."""
        text = self.attributes(names.EXCEPTION_MESSAGE, str(error))
        last = ": ".join([type(error).__qualname__, *text.values()])
        stack = "".join(["Traceback (most recent call last):\n", *traceback.format_tb(error.__traceback__), last])
        return {names.EXCEPTION_TYPE: _type_of(error), names.EXCEPTION_STACKTRACE: stack, **text}


def _type_of(error: BaseException) -> str:
    module, name = type(error).__module__, type(error).__qualname__
    return name if module == "builtins" else f"{module}.{name}"


# --- messages


def _message(message: Message) -> JsonObject:
    return {"role": message.role, "parts": [_part(part) for part in message.parts]}


def _part(part: Part) -> JsonObject:
    match part:
        case TextPart():
            return {"type": "text", "content": part.text}
        case ThinkingPart():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            given = part.raw_arguments if part.arguments is None else part.arguments
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": given}
        case ToolResult():
            return {"type": "tool_call_response", "id": part.id, "response": plain(part.content)}
        case ImagePart():
            return _media("image", part.media_type, part.url, part.file_id, part.data)
        case AudioPart():
            return _media("audio", f"audio/{part.format}", None, None, part.data)
        case FilePart():
            return _media("document", part.media_type, part.url, part.file_id, part.data)
        case OpaquePart():
            return {"type": "opaque", "provider": part.provider}


def _media(modality: str, mime_type: str | None, url: str | None, file_id: str | None, data: str | None) -> JsonObject:
    """Return a part for media. The bytes are not recorded: ``size`` is the length of their base64 text."""
    known: JsonObject = {"modality": modality, "mime_type": mime_type}
    if url is not None and not url.startswith("data:"):
        return {"type": "uri", **known, "uri": url}
    if file_id is not None:
        return {"type": "file", **known, "file_id": file_id}
    return {"type": "blob", **known, "content": "", "size": len(data or url or "")}


def _tool(spec: Mapping[str, JsonValue]) -> JsonObject:
    function = spec.get("function")
    if not is_mapping(function):
        kind = str(spec.get("type") or next(iter(spec), "tool"))
        return {"type": kind, "name": kind}
    kept: JsonObject = {name: function[name] for name in ("name", "description", "parameters") if name in function}
    return {"type": "function", **kept}


# --- any value


def plain(value: object) -> JsonValue:
    """Return a value as JSON data: values with a ``to_json`` or ``model_dump`` by it, other objects by their ``str``.

    >>> plain({"when": (1, {2.5}), "who": ValueError("x")})
    {'when': [1, [2.5]], 'who': 'x'}
    """
    try:
        return _plain(value, 0)
    except Exception as error:  # a user's class may raise anything
        return f"<{type(value).__name__}: {type(error).__name__}>"


_MOST_LEVELS = 32


def _plain(value: object, depth: int) -> JsonValue:
    if isinstance(value, str):
        return value if type(value) is str else _plain_text(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth > _MOST_LEVELS:
        return "..."
    if is_mapping(value):
        return {str(name): _plain(item, depth + 1) for name, item in value.items()}
    if is_sequence(value) or isinstance(value, set | frozenset):
        items: Sequence[object] = list(value)  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
        return [_plain(item, depth + 1) for item in items]
    for method, options in (("to_json", {}), ("model_dump", {"mode": "json"})):
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, type):
            return _plain(convert(**options), depth + 1)
    return str(value)


def _plain_text(value: str) -> str:
    """Return a text of a subclass; a ``Secret`` as its repr, which masks it. ``lm`` is above this room."""
    is_secret = any(cls.__name__ == "Secret" for cls in type(value).__mro__)
    return repr(value).strip("'") if is_secret else str.__str__(value)
