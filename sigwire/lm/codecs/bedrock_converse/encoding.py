"""Converse: Request -> body: options, system text, turns and tools; ``blocks`` encodes the parts of a turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.core.tools.names import NameMap
from sigwire.lm.codecs.bedrock_converse.blocks import encode_blocks
from sigwire.lm.codecs.bedrock_converse.cache_points import with_cache_points
from sigwire.lm.codecs.bedrock_converse.reasoning import ReasoningFields, encode_reasoning
from sigwire.lm.codecs.bedrock_converse.tables import OPTIONS, SAMPLING, ConverseProfile
from sigwire.lm.codecs.shared.assembly import assemble, prepare
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.options import (
    merge_objects,
    place_options,
    target_warning,
)
from sigwire.lm.codecs.shared.output import OutputForm, StructuredMode, choose_output
from sigwire.lm.codecs.shared.tools import (
    OfferedTools,
    can_force,
    encode_functions,
    refuse_builtin_tools,
)

__all__ = ["encode"]


def encode(request: Request, target: Target[ConverseProfile], *, stream: bool = False) -> EncodedRequest:
    """Return the request for a model. Raises ``UnsupportedFeature`` or ``InputError`` before anything is sent.

    >>> from sigwire.lm.codecs.bedrock_converse import CONVERSE
    >>> sent = encode(Request((Message.user("q"),)), Target("bedrock", "amazon.nova-lite-v1:0", CONVERSE))
    >>> sent.path, sent.body
    ('/model/amazon.nova-lite-v1%3A0/converse', {'messages': [{'role': 'user', 'content': [{'text': 'q'}]}]})
    """
    profile, warnings = target.profile, list[LMWarning]()
    ready = prepare(request, target)
    history, names, tools = ready.history, ready.names, ready.tools
    refuse_builtin_tools(tools, target)
    form = choose_output(request.response_format, _STRUCTURED, bool(request.tools), target)
    warnings += (*history.warnings, *tools.warnings, *form.warnings)
    reasoning = encode_reasoning(request, history.messages, target, warnings)
    table = {**OPTIONS, **profile.options}
    options, lost = place_options(request.options, table, target, sampling=SAMPLING, thinks=reasoning.thinks)
    warnings += lost
    body: JsonObject = {
        **_encode_system(history.messages, form.instruction, names, target),
        "messages": cast(JsonValue, _encode_turns(history.messages, names, target)),
        **_encode_tools(tools, request.parallel_tool_calls, history.call_names, names, reasoning, target, warnings),
        **merge_objects(merge_objects(options, _encode_output(form)), reasoning.fields),
    }
    path = profile.path.format(model=_in_path(target.model), method="converse-stream" if stream else "converse")
    return assemble(ready, path, with_cache_points(body, request, target, warnings), warnings)


def _in_path(model: str) -> str:
    """Return a model's name as one segment of a path. boto3 encodes the same characters; the signature depends on them.

    >>> _in_path("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.x")
    'arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Feu.x'
    """
    return model.replace("%", "%25").replace("/", "%2F").replace(":", "%3A")


_STRUCTURED: tuple[StructuredMode, ...] = ("json_schema",)


def _encode_output(form: OutputForm) -> JsonObject:
    """Return the enforced form. Its schema is a text."""
    if form.mode is None:
        return {}
    structure: JsonObject = {"jsonSchema": {"schema": dumps(form.schema), "name": form.name}}
    return {"outputConfig": {"textFormat": {"type": form.mode, "structure": structure}}}


# --- turns


def _encode_system(
    messages: Iterable[Message], instruction: str, names: NameMap, target: Target[ConverseProfile]
) -> JsonObject:
    """Return the system blocks, the output instruction last."""
    system = [message for message in messages if message.role == "system"]
    last: list[JsonObject] = [{"text": instruction}] if instruction else []
    blocks: list[JsonValue] = [*(block for message in system for block in encode_blocks(message, names, target)), *last]
    return {"system": blocks} if blocks else {}


def _encode_turns(messages: Iterable[Message], names: NameMap, target: Target[ConverseProfile]) -> list[JsonObject]:
    """Encode the turns; neighbours of one role on the wire are one message: results, then the user's text."""
    turns: list[tuple[str, list[JsonObject]]] = []
    for message in messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = encode_blocks(message, names, target)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    return [{"role": role, "content": cast(JsonValue, blocks)} for role, blocks in turns]


# --- tools


def _encode_tools(
    tools: OfferedTools,
    parallel: bool | None,
    called: frozenset[str],
    names: NameMap,
    reasoning: ReasoningFields,
    target: Target[ConverseProfile],
    warnings: list[LMWarning],
) -> JsonObject:
    """Return ``toolConfig``: the offered tools, or those of the history's calls, which the provider requires."""
    functions = tools.functions
    if tools.choice == "none" or not functions:
        if not called:
            return {}
        if not functions:
            functions = tuple((names.encode(name), "", None, dict[str, JsonValue]()) for name in sorted(called))
        detail = "needs the tools of past calls in the request; the model may call them again."
        warnings.append(target_warning("tool_choice", target, detail))
        return {"toolConfig": {"tools": [*encode_functions(functions, _encode_function)]}}
    choice = _encode_choice(tools, reasoning, target, warnings)
    if parallel is False:
        warnings.append(target_warning("parallel_tool_calls", target, "cannot be limited to one call at a time."))
    listed = tools.allowed_functions() if tools.forced_name is None else functions
    return {"toolConfig": {"tools": [*encode_functions(listed, _encode_function)], **choice}}


def _encode_function(name: str, description: str, parameters: JsonObject | None, fields: JsonObject) -> JsonObject:
    described: JsonObject = {"description": description} if description else {}
    schema: JsonObject = {"json": parameters or {"type": "object", "properties": {}}}
    return {"toolSpec": {"name": name, **described, "inputSchema": schema, **fields}}


def _encode_choice(
    tools: OfferedTools, reasoning: ReasoningFields, target: Target[ConverseProfile], warnings: list[LMWarning]
) -> JsonObject:
    if tools.choice != "required":
        return {}  # "auto" is the default; some models refuse the field
    if not can_force(reasoning.thinks, target):
        detail = "cannot be made to call a tool; the choice was left to the model."
        warnings.append(target_warning("tool_choice", target, detail))
        return {}
    return {"toolChoice": {"tool": {"name": tools.forced_name}} if tools.forced_name else {"any": {}}}
