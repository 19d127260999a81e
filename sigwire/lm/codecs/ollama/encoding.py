"""``/api/chat``: Request -> body."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message, OpaquePart, Part, TextPart, ThinkingPart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import LMWarning
from sigwire.core.tools.names import NameMap
from sigwire.core.tools.tool import ToolCall, ToolResult
from sigwire.errors import InputError
from sigwire.lm.codecs.ollama.context import window_for
from sigwire.lm.codecs.ollama.tables import OPTIONS, THINK, OllamaProfile
from sigwire.lm.codecs.shared.choices import is_synthetic_id
from sigwire.lm.codecs.shared.history import error_text, normalize_history
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.media import text_of_file
from sigwire.lm.codecs.shared.options import (
    headers_for,
    merge_extra_body,
    merge_objects,
    place_options,
    repeat_warning,
    requested_choices,
    require_feature,
    schema_instruction,
)
from sigwire.lm.codecs.shared.reasoning import fit_effort, requested_reasoning
from sigwire.lm.codecs.shared.schema import compile_schema
from sigwire.lm.codecs.shared.tools import (
    OfferedTools,
    encode_functions,
    name_map,
    offered_tools,
    provider_data,
    refuse_builtin_tools,
)

__all__ = ["encode"]


def encode(request: Request, target: Target[OllamaProfile], *, stream: bool = False) -> EncodedRequest:
    """The request as this host takes it. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> sent = encode(Request((Message.user("q"),)), Target("ollama", "m", OllamaProfile(defaults={})))
    >>> sent.path, sent.body
    ('/api/chat', {'model': 'm', 'messages': [{'role': 'user', 'content': 'q'}], 'stream': False})
    """
    dialect = target.profile
    history = normalize_history(request.messages, dialect.history_rules)
    names = name_map(request.tools, history.call_names, dialect.names)
    tools = offered_tools(request, names, target)
    refuse_builtin_tools(tools, target)
    offered, tool_warnings = _encode_tools(tools, request.parallel_tool_calls, target)
    output, instruction, format_warnings = _encode_output(request.response_format, bool(offered), target)
    thinking, thinking_warnings = _encode_reasoning(request, target)
    options, option_warnings = place_options(request.options, OPTIONS, target)
    messages = [wire for message in history.messages for wire in _encode_message(message, names, target)]
    body: JsonObject = {
        "model": target.model,
        "messages": cast(JsonValue, _with_instruction(messages, instruction)),
        "stream": stream,
        **dialect.defaults,
        **offered,
        **output,
        **options,
        **thinking,
    }
    if (window := window_for(body, target)) is not None:
        body = merge_objects(body, {"options": {"num_ctx": window}})
    lost = (history.warnings, tools.warnings if offered else (), tool_warnings, format_warnings, thinking_warnings)
    return EncodedRequest(
        dialect.path.format(model=target.model),
        merge_extra_body(body, request),
        {},
        headers_for(request, dialect),
        (*itertools.chain(*lost, option_warnings), *repeat_warning(request, target)),
        names,
        history.call_ids,
        requested_choices(request),
    )


def _note(feature: str, target: Target[OllamaProfile], detail: str) -> LMWarning:
    return LMWarning(feature, f"{target.label} {detail}")


def _encode_reasoning(request: Request, target: Target[OllamaProfile]) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Nothing where nothing was asked: models that think do so by themselves."""
    asked = requested_reasoning(request)
    if asked is None:
        return {}, ()
    facts = target.facts
    efforts = target.profile.efforts if facts.efforts is None else facts.efforts
    efforts = () if facts.thinking == "none" else efforts
    if asked.is_off and not efforts:
        return {}, ()  # it does not think anyway
    effort, warnings = fit_effort(asked, efforts, target)
    return {"think": THINK[effort]}, warnings


# --- tools


def _encode_tools(
    tools: OfferedTools, parallel: bool | None, target: Target[OllamaProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """The tools that may be called; which of them is all that a choice can say here."""
    if not tools.functions or tools.choice == "none":
        return {}, ()
    warnings: list[LMWarning] = []
    if tools.choice == "required":
        warnings.append(
            _note("tool_choice", target, "cannot be made to call a tool; the choice was left to the model.")
        )
    if parallel is False:
        warnings.append(_note("parallel_tool_calls", target, "cannot be kept to one call at a time."))
    return {"tools": [*encode_functions(tools.allowed_functions(), _encode_tool)]}, tuple(warnings)


def _encode_tool(name: str, description: str, parameters: JsonObject | None) -> JsonObject:
    function: JsonObject = {"name": name, "description": description} if description else {"name": name}
    # Templates walk through the properties, so an object without any says so.
    function["parameters"] = {"type": "object", "properties": {}, **(parameters or {})}
    return {"type": "function", "function": function}


# --- structured output


def _encode_output(
    wanted: ResponseFormat | None, tools: bool, target: Target[OllamaProfile]
) -> tuple[JsonObject, str, tuple[LMWarning, ...]]:
    """``format``, or what has to be said in words instead."""
    if wanted is None:
        return {}, "", ()
    able = target.capabilities
    if tools or not (able.json_schema if wanted.schema is not None else able.json_object):
        lost = "has no structured output beside tools here" if tools else "has no structured output by schema here"
        native: JsonObject = {"format": "json"} if able.json_object and not tools else {}
        words = (_note("response_format", target, f"{lost}; it was asked for in words."),)
        return native, schema_instruction(wanted.schema), words
    if wanted.schema is None:
        return {"format": "json"}, "", ()
    schema, warnings = compile_schema(
        wanted.schema, target.profile.output_schema, f"the output {wanted.name!r}", target.label
    )
    if not target.profile.enforces_format:
        warnings = (*warnings, _note("response_format", target, "takes the schema but does not hold the model to it."))
    return {"format": schema}, "", warnings


def _with_instruction(messages: list[JsonObject], text: str) -> list[JsonObject]:
    """The instruction at the end of the system turn, or as one."""
    if not text:
        return messages
    if messages and messages[0]["role"] == "system":
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{text}".lstrip("\n")}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


# --- messages


def _encode_message(message: Message, names: NameMap, target: Target[OllamaProfile]) -> list[JsonObject]:
    if message.role == "tool":
        return [_encode_result(result, names) for result in message.tool_results]
    wire: JsonObject = {"role": message.role, "content": _encode_text(message.parts, target)}
    if thinking := "".join(part.text for part in message.parts if isinstance(part, ThinkingPart)):
        wire["thinking"] = thinking
    if images := [_encode_image(part, target) for part in message.parts if isinstance(part, ImagePart)]:
        wire["images"] = cast(JsonValue, images)
    if calls := [_encode_call(call, names, target.profile.family) for call in message.tool_calls]:
        wire["tool_calls"] = cast(JsonValue, calls)
    for part in message.parts:
        if isinstance(part, OpaquePart):
            require_feature(isinstance(part.data, dict), "an opaque item that is no object", target, "Leave it out.")
            wire |= cast(JsonObject, part.data)
    return [wire] if wire["content"] or len(wire) > 2 else []  # a turn in which nothing is said is not sent


def _encode_text(parts: Iterable[Part], target: Target[OllamaProfile]) -> str:
    """The one text of a turn; what a picture parts stays apart, and a document is a paragraph of its own."""
    paragraphs = [""]
    for part in parts:
        if isinstance(part, TextPart):
            paragraphs[-1] += part.text
        elif isinstance(part, ImagePart):
            paragraphs.append("")
        elif isinstance(part, AudioPart | FilePart):
            paragraphs += [_encode_document(part, target), ""]
    return "\n\n".join(filter(None, paragraphs))


def _encode_document(part: AudioPart | FilePart, target: Target[OllamaProfile]) -> str:
    require_feature(isinstance(part, FilePart), "audio input", target, _ELSEWHERE)
    text = text_of_file(cast(FilePart, part))
    require_feature(text is not None, "documents that are not text", target, _ELSEWHERE)
    return cast(str, text)


_ELSEWHERE = "Send it as text, or use a provider that takes it."


def _encode_image(part: ImagePart, target: Target[OllamaProfile]) -> str:
    if part.url is None and part.data is None:
        raise InputError("An image needs a url or data.")
    data = part.data if part.data is not None else _data_of(part.url or "")
    require_feature(data is not None, "an image by URL", target, "Download it and pass its data.")
    return cast(str, data)


def _data_of(url: str) -> str | None:
    matched = re.fullmatch(r"data:[^,]*;base64,(.*)", url, re.DOTALL)
    return matched.group(1) if matched else None


def _encode_call(call: ToolCall, names: NameMap, family: str) -> JsonObject:
    arguments: JsonObject = {"invalid_arguments": call.arguments_text} if call.arguments is None else call.arguments
    function: JsonObject = {"name": names.encode(call.name), "arguments": arguments}
    return merge_objects({**_id("id", call.id), "function": function}, provider_data(call, family))


def _encode_result(result: ToolResult, names: NameMap) -> JsonObject:
    text = error_text(result)
    return {"role": "tool", "tool_name": names.encode(result.name), **_id("tool_call_id", result.id), "content": text}


def _id(name: str, call_id: str) -> JsonObject:
    """The id under this name, unless sigwire made it up: the server never saw it."""
    return {} if is_synthetic_id(call_id) else {name: call_id}
