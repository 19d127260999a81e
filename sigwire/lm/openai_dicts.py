"""OpenAI-shaped dicts and objects <-> canonical values, for code in the same process.

``lm(messages=[...])``, the entries of ``lm.history`` and models of a user's own in the door have this shape. It is not the
wire of a provider: no name is mapped, nothing is refused or limited. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part, Role
from sigwire.core.narrow import is_mapping
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall, ToolResult, number_calls
from sigwire.core.tools.choice import ToolChoice, read_tool_choice
from sigwire.errors import InputError, suggest
from sigwire.lm.codecs.shared.media import data_url, split_data_url

__all__ = [
    "decode_call", "decode_messages", "decode_response_format", "decode_text", "decode_tool_calls", "encode_call",
    "encode_messages", "encode_outputs", "get",
]  # fmt: skip


def encode_messages(messages: Iterable[Message]) -> list[JsonObject]:
    """Return messages as OpenAI-like dicts, one for each tool result.

    >>> encode_messages([Message.user("Hi")])
    [{'role': 'user', 'content': 'Hi'}]
    """
    return [data for message in messages for data in _encode_message(message)]


def _encode_message(message: Message) -> list[JsonObject]:
    results: list[JsonObject] = [
        {"role": "tool", "tool_call_id": result.id, "name": result.name, "content": result.text}
        for result in message.tool_results
    ]
    turn = _encode_turn(message)
    return results if results and not turn["content"] and "tool_calls" not in turn else [turn, *results]


def _encode_turn(message: Message) -> JsonObject:
    content = _encode_content([part for part in message.parts if type(part) in _ENCODE_PART])
    calls: list[JsonValue] = [_encode_tool_call(call) for call in message.tool_calls]
    data: JsonObject = {"role": message.role, "content": content}
    if calls:
        data |= {"tool_calls": calls, "content": content or None}
    if reasoning := "".join(part.text for part in message.parts if isinstance(part, ThinkingPart)):
        data["reasoning_content"] = reasoning
    return data


def _encode_content(parts: Sequence[Part]) -> JsonValue:
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(cast(TextPart, part).text for part in parts)
    return [_ENCODE_PART[type(part)](part) for part in parts]


def _encode_image(part: ImagePart) -> JsonObject:
    url = part.url if part.url is not None else data_url(part.data, part.media_type or "image/png")
    return {"type": "image_url", "image_url": {"url": url, **({"detail": part.detail} if part.detail else {})}}


def _encode_file(part: FilePart) -> JsonObject:
    file = {name: value for name, field in _FILE_FIELDS.items() if (value := getattr(part, field)) is not None}
    if part.data is not None:
        file["file_data"] = data_url(part.data, part.media_type or "application/octet-stream")
    return {"type": "file", "file": file}


_FILE_FIELDS = {"file_data": "data", "file_url": "url", "file_id": "file_id", "filename": "filename"}
_ENCODE_PART: Mapping[type, Callable[[Any], JsonObject]] = {
    TextPart: lambda part: {"type": "text", "text": part.text},
    ImagePart: _encode_image,
    AudioPart: lambda part: {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}},
    FilePart: _encode_file,
}


def _encode_tool_call(call: ToolCall) -> JsonObject:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text}}


def encode_call(request: Request) -> tuple[list[JsonObject], JsonObject]:
    """Return a request as the ``messages`` and keyword arguments of an OpenAI-like call.

    >>> encode_call(Request((Message.user("Hi"),), options={"temperature": 0.5}))
    ([{'role': 'user', 'content': 'Hi'}], {'temperature': 0.5})
    """
    kwargs: JsonObject = dict(request.options)
    if request.tools:
        kwargs["tools"] = list(request.tools)
    if request.tool_choice is not None:
        kwargs["tool_choice"] = _encode_tool_choice(request.tool_choice)
    if request.parallel_tool_calls is not None:
        kwargs["parallel_tool_calls"] = request.parallel_tool_calls
    if request.response_format is not None:
        kwargs["response_format"] = _encode_response_format(request.response_format)
    return encode_messages(request.messages), kwargs


def _encode_tool_choice(choice: ToolChoice) -> JsonValue:
    if not choice.allowed:
        return choice.mode
    named: list[JsonValue] = [{"type": "function", "function": {"name": name}} for name in choice.allowed]
    if len(named) == 1 and choice.mode == "required":
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": named}}


def _encode_response_format(wanted: ResponseFormat) -> JsonObject:
    if wanted.schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": wanted.name, "schema": wanted.schema}}


_ROLES: Mapping[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
}  # fmt: skip


def decode_messages(messages: Iterable[Message | Mapping[str, object]]) -> tuple[Message, ...]:
    """Return messages from OpenAI-like dicts or from messages; tool results in a row become one message.

    Raises ``InputError`` for an unknown role or an unknown type of content part.

    >>> decode_messages([{"role": "user", "content": "Hi"}])
    (Message(role='user', parts=(TextPart(text='Hi'),)),)
    """
    decoded: list[Message] = []
    names: dict[str, str] = {}
    for data in messages:
        message = data if isinstance(data, Message) else _decode_message(data, names)
        names.update((call.id, call.name) for call in message.tool_calls)
        if message.role == "tool" and decoded and decoded[-1].role == "tool":
            message = Message("tool", (*decoded.pop().parts, *message.parts))
        decoded.append(message)
    return tuple(decoded)


def _decode_message(data: Mapping[str, object], names: Mapping[str, str]) -> Message:
    role, content = _ROLES.get(str(data.get("role"))), get(data, "content")
    if role is None:
        given = data.get("role")
        raise InputError(
            f"Unknown role {given!r} (decoding messages). {suggest(str(given), _ROLES)}Use one of {', '.join(_ROLES)}."
        )
    if role == "tool":
        call_id = str(data.get("tool_call_id") or "")
        if isinstance(content, list):
            content = decode_text(cast(object, content))
        return Message("tool", (ToolResult(call_id, str(data.get("name") or names.get(call_id, "")), content or ""),))
    reasoning = data.get("reasoning_content")
    parts = (ThinkingPart(str(reasoning)),) if reasoning else ()
    return Message(role, (*parts, *_decode_content(content), *decode_tool_calls(get(data, "tool_calls"))))


def decode_text(content: object) -> str:
    return "".join(part.text for part in _decode_content(content) if isinstance(part, TextPart))


def _decode_content(content: object) -> tuple[Part, ...]:
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (TextPart(content),)
    if not isinstance(content, Sequence):
        raise InputError(
            f"The content of a message is {type(content).__name__} (decoding messages). "
            "Use text, or a list of parts such as {'type': 'text', 'text': ...}."
        )
    return tuple(map(_decode_part, cast("Sequence[object]", content)))


def _decode_part(part: object) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    kind = get(part, "type")
    decode = _DECODE_PART.get(str(kind))
    if decode is None:
        raise InputError(
            f"Unknown type {kind!r} of a content part (decoding messages). "
            f"{suggest(str(kind), _DECODE_PART)}Use one of {', '.join(_DECODE_PART)}."
        )
    return decode(part)


def _decode_image(part: object) -> Part:
    image = get(part, "image_url")
    url, detail = str(get(image, "url", image)), get(image, "detail")
    media_type, data = split_data_url(url)
    return ImagePart(url=url if data is None else None, data=data, media_type=media_type, detail=detail)


def _decode_audio(part: object) -> Part:
    audio = get(part, "input_audio")
    return AudioPart(str(get(audio, "data", "")), str(get(audio, "format", "wav")))


def _decode_file(part: object) -> Part:
    file = get(part, "file")
    media_type, data = split_data_url(str(get(file, "file_data") or ""))
    fields = {field: get(file, name) for name, field in _FILE_FIELDS.items()}
    return FilePart(**{**fields, "data": data, "media_type": media_type})


_DECODE_PART: Mapping[str, Callable[[object], Part]] = {
    "text": lambda part: TextPart(str(get(part, "text", ""))),
    "image_url": _decode_image,
    "input_audio": _decode_audio,
    "file": _decode_file,
}


def decode_tool_calls(calls: Iterable[object] | None) -> tuple[ToolCall, ...]:
    return number_calls(_decode_tool_call(call) for call in calls or ())


def _decode_tool_call(call: object) -> ToolCall:
    if isinstance(call, ToolCall):
        return call
    function = get(call, "function", call)
    arguments = get(function, "arguments", get(function, "args"))
    return ToolCall.read(str(get(call, "id") or ""), str(get(function, "name") or ""), arguments)


def decode_call(
    prompt: str | None = None, messages: Iterable[Message | Mapping[str, object]] | None = None, **kwargs: Any
) -> Request:
    """Return the request of a prompt, or of messages and options. Raises ``InputError`` without both.

    >>> decode_call("Hi", temperature=0.5, tool_choice="auto").tool_choice
    ToolChoice(mode='auto', allowed=())
    """
    if isinstance(messages, str) or (messages is None and prompt is None):
        wrong = "without prompt and messages" if messages is None else "with messages as one text"
        raise InputError(f'A language model was called {wrong}. Use lm("text") or lm(messages=[...]).')
    tools: Iterable[Any] = kwargs.pop("tools", None) or ()
    choice, parallel = read_tool_choice(kwargs.pop("tool_choice", None)), kwargs.pop("parallel_tool_calls", None)
    wanted = decode_response_format(kwargs.pop("response_format", None))
    decoded = (Message.user(cast(str, prompt)),) if messages is None else decode_messages(messages)
    return Request(decoded, tuple(tools), choice, parallel, wanted, kwargs)


def decode_response_format(wanted: object) -> ResponseFormat | None:
    """Return a format from a ``ResponseFormat``, from OpenAI's dict, or from a pydantic model. Raises ``InputError``.

    >>> decode_response_format({"type": "json_object"})
    ResponseFormat(schema=None, name='response', required=False)
    """
    if isinstance(wanted, type) and (schema := getattr(wanted, "model_json_schema", None)) is not None:  # of pydantic
        return ResponseFormat(schema(), wanted.__name__)
    if wanted is None or isinstance(wanted, ResponseFormat):
        return wanted
    if not is_mapping(wanted):
        raise InputError(
            f"response_format is {type(wanted).__name__} (decoding the call). Use {{'type': 'json_object'}} or "
            "{'type': 'json_schema', 'json_schema': {'name': ..., 'schema': {...}}}."
        )
    if wanted.get("type") == "text":
        return None
    described = get(wanted, "json_schema", wanted)  # the form of Responses has its members beside the type
    return ResponseFormat(described.get("schema"), described.get("name", "response"))


def encode_outputs(response: Response) -> list[str | dict[str, Any]]:
    """Return an item for each choice: its text, or a dict if the choice has more than text.

    >>> encode_outputs(Response((Choice(text="4"), Choice(text="5", reasoning="2 + 3"))))
    ['4', {'text': '5', 'reasoning_content': '2 + 3'}]
    """
    return [_encode_output(choice) for choice in response.choices]


def _encode_output(choice: Choice) -> str | dict[str, Any]:
    fields: dict[str, Any] = {
        "tool_calls": [_encode_tool_call(call) for call in choice.tool_calls],
        "reasoning_content": choice.reasoning,
        "logprobs": choice.logprobs,
        "citations": list(choice.citations),
    }
    fields = {name: value for name, value in fields.items() if value}
    return {"text": choice.text, **fields} if fields else choice.text


def get(data: object, name: str, default: object = None) -> Any:
    if isinstance(data, Mapping):
        return cast("Mapping[str, object]", data).get(name, default)
    return getattr(data, name, default)
