"""``/api/chat``: Request -> body."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.names import NameMap
from sigwire.lm.codecs.ollama.context import context_warnings, window_for
from sigwire.lm.codecs.ollama.tables import OPTIONS, THINK, OllamaProfile
from sigwire.lm.codecs.shared.assembly import assemble, prepare
from sigwire.lm.codecs.shared.choices import is_synthetic_id
from sigwire.lm.codecs.shared.history import error_text
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.media import require_source, text_of_file
from sigwire.lm.codecs.shared.options import merge_objects, place_options, target_warning, unsupported_feature
from sigwire.lm.codecs.shared.output import OutputForm, StructuredMode, add_instruction, choose_output
from sigwire.lm.codecs.shared.paths import model_in_path
from sigwire.lm.codecs.shared.reasoning import fit_effort, requested_reasoning
from sigwire.lm.codecs.shared.tools import (
    OfferedTools,
    encode_functions,
    object_arguments,
    provider_data,
    refuse_builtin_tools,
)
from sigwire.lm.histories.fields import fields_of

__all__ = ["encode"]


def encode(request: Request, target: Target[OllamaProfile], *, stream: bool = False) -> EncodedRequest:
    """Encode a request for the target's host. Raises ``UnsupportedFeature`` or ``InputError``; nothing was sent then.

    >>> sent = encode(Request((Message.user("q"),)), Target("ollama", "m", OllamaProfile(defaults={})))
    >>> sent.path, sent.body
    ('/api/chat', {'model': 'm', 'messages': [{'role': 'user', 'content': 'q'}], 'stream': False})
    """
    profile = target.profile
    ready = prepare(request, target)
    history, names, tools = ready.history, ready.names, ready.tools
    refuse_builtin_tools(tools, target)
    offered, tool_warnings = _encode_tools(tools, request.parallel_tool_calls, target)
    form = choose_output(request.response_format, () if offered else _STRUCTURED, bool(offered), target)
    output, format_warnings = _encode_output(form, target)
    thinking, thinking_warnings = _encode_reasoning(request, target)
    options, option_warnings = place_options(request.options, OPTIONS, target)
    messages = [wire for message in history.messages for wire in _encode_message(message, names, target)]
    body: JsonObject = {
        "model": target.model,
        "messages": cast(JsonValue, add_instruction(messages, form.instruction)),
        "stream": stream,
        **profile.defaults,
        **offered,
        **output,
        **options,
        **thinking,
    }
    if (window := window_for(body, target)) is not None:
        body = merge_objects(body, {"options": {"num_ctx": window}})
    lost = (history.warnings, tools.warnings if offered else (), tool_warnings, format_warnings, thinking_warnings)
    found = itertools.chain(*lost, option_warnings)
    sent = assemble(ready, profile.path.format(model=model_in_path(target.model)), body, found)
    return sent._replace(warnings=(*sent.warnings, *context_warnings(sent.body, request)))


def _encode_reasoning(request: Request, target: Target[OllamaProfile]) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return the field of the body and the warnings. Without the option, models that reason do so by default."""
    asked = requested_reasoning(request)
    if asked is None:
        return {}, ()
    efforts = target.facts.known_efforts(target.profile.efforts)
    if asked.is_off and not efforts:
        return {}, ()  # the model does not reason at all
    effort, warnings = fit_effort(asked, efforts, target)
    return {"think": THINK[effort]}, warnings


# --- tools


def _encode_tools(
    tools: OfferedTools, parallel: bool | None, target: Target[OllamaProfile]
) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    """Return the tools that the choice allows: the wire has no field for a choice."""
    if not tools.functions or tools.choice == "none":
        return {}, ()
    warnings: list[LMWarning] = []
    if tools.choice == "required":
        warnings.append(target_warning("tool_choice", target, "cannot be forced to call a tool; the model chooses."))
    if parallel is False:
        warnings.append(target_warning("parallel_tool_calls", target, "cannot be limited to one call at a time."))
    return {"tools": [*encode_functions(tools.allowed_functions(), _encode_tool)]}, tuple(warnings)


def _encode_tool(name: str, description: str, parameters: JsonObject | None, fields: JsonObject) -> JsonObject:
    function: JsonObject = {"name": name, "description": description} if description else {"name": name}
    # Templates iterate over the properties, so an empty object is sent.
    function["parameters"] = {"type": "object", "properties": {}, **(parameters or {})}
    return {"type": "function", "function": {**function, **fields}}


# --- structured output


_STRUCTURED: tuple[StructuredMode, ...] = ("json_schema", "json_object")


def _encode_output(form: OutputForm, target: Target[OllamaProfile]) -> tuple[JsonObject, tuple[LMWarning, ...]]:
    if form.schema is None:
        return {"format": "json"} if form.mode else {}, form.warnings
    if not target.capabilities.schema_on_demand:
        return {"format": form.schema}, form.warnings
    lost = target_warning("response_format", target, "takes the schema but does not enforce it.")
    return {"format": form.schema}, (*form.warnings, lost)


# --- messages


def _encode_message(message: Message, names: NameMap, target: Target[OllamaProfile]) -> list[JsonObject]:
    if message.role == "tool":
        return [_encode_result(result, names) for result in message.tool_results]
    wire: JsonObject = {"role": message.role, "content": _encode_text(message.parts, target)}
    wire |= {name: value for name, value in _message_fields(message, names, target).items() if value}
    wire |= fields_of(message.parts)
    return [wire] if wire["content"] or len(wire) > 2 else []  # an empty turn is not sent


def _message_fields(message: Message, names: NameMap, target: Target[OllamaProfile]) -> JsonObject:
    calls: list[JsonValue] = [_encode_call(call, names, target.profile.family) for call in message.tool_calls]
    return {
        "thinking": "".join(part.text for part in message.parts if isinstance(part, ThinkingPart)),
        "images": [_encode_image(part, target) for part in message.parts if isinstance(part, ImagePart)],
        "tool_calls": calls,
    }


def _encode_text(parts: Iterable[Part], target: Target[OllamaProfile]) -> str:
    """Return the one text of a turn: an image separates two paragraphs, and a document is a paragraph."""
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
    instead = "Send it as text, or use a provider that takes it."
    if isinstance(part, AudioPart):
        raise unsupported_feature("audio input", target, instead)
    text = text_of_file(part)
    if text is None:
        raise unsupported_feature("documents that are not text", target, instead)
    return text


def _encode_image(part: ImagePart, target: Target[OllamaProfile]) -> str:
    require_source(part, target)
    matched = re.fullmatch(r"data:[^,]*;base64,(.*)", part.url or "", re.DOTALL)
    data = matched[1] if matched and part.data is None else part.data
    if data is None:
        raise unsupported_feature("an image by URL", target, "Download it and pass its data.")
    return data


def _encode_call(call: ToolCall, names: NameMap, family: str) -> JsonObject:
    function: JsonObject = {"name": names.encode(call.name), "arguments": object_arguments(call)}
    return merge_objects({**_id_field("id", call.id), "function": function}, provider_data(call, family))


def _encode_result(result: ToolResult, names: NameMap) -> JsonObject:
    text = error_text(result)
    return {
        "role": "tool",
        "tool_name": names.encode(result.name),
        **_id_field("tool_call_id", result.id),
        "content": text,
    }


def _id_field(name: str, call_id: str) -> JsonObject:
    """Return the id under ``name``; nothing for a synthetic id, which the server does not know."""
    return {} if is_synthetic_id(call_id) else {name: call_id}
